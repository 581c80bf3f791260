#ifndef QN_LOADGEN_TOPO_DRAW_ROUTE_H
#define QN_LOADGEN_TOPO_DRAW_ROUTE_H

/**
 * Which way an edge of a picture takes from core to core: behind no third
 * core's circle if there is such a way, and upon other edges as little as can
 * be, so that one sees where each ends.
 *
 * An edge is a bow; where no bow is free, it runs between the rows and columns
 * of cores, with round corners. Of some dozen ways the cheapest is taken: a
 * circle crossed is dear, an edge upon which it would lie is cheap, and of
 * equals the shortest wins. Edges are found one after the other: short ones
 * first.
 *
 * Pure but for memory, deterministic, any thread. A way costs O(length).
 */

#include <stdio.h>

#include "loadgen/topo/draw/layout.h"

#define QN_ROUTE_POINTS 5u

/** Points of a way, the first and the last on the rims of two circles. Three:
 *  a quadratic curve; more: lines with round corners. Pixels. */
struct qn_route {
    uint32_t count; /* 3..QN_ROUTE_POINTS */
    double x[QN_ROUTE_POINTS];
    double y[QN_ROUTE_POINTS];
};

struct qn_router;

/** @param l       Kept.
 *  @param radius  Of each core's circle, pixels.
 *  @return QN_OK or QN_ENOMEM. */
int qn_router_create(struct qn_router **out, const struct qn_layout *l,
                     double radius);

/** NULL is allowed. */
void qn_router_destroy(struct qn_router *r);

/** The way from a core to another one; later ways stay clear of it.
 *  @return of how many third circles it crosses a part. */
uint32_t qn_router_find(struct qn_router *r, uint32_t from, uint32_t to,
                        struct qn_route *out);

/** As a path of SVG, beginning with M. */
void qn_route_write(const struct qn_route *way, double radius, FILE *to);

#endif
