#ifndef QN_LOADGEN_TOPO_DRAW_ROUTE_H
#define QN_LOADGEN_TOPO_DRAW_ROUTE_H

/**
 * Routes of a picture's edges from core to core: behind no third core's circle
 * if such a route exists, and overlapping other edges as little as possible, so
 * that the reader sees where each edge ends.
 *
 * An edge is a bow; where no bow is free, it runs between the rows and columns
 * of cores, with round corners. Of about 30 candidates the cheapest is taken:
 * crossing a circle is expensive, overlapping an edge is cheap, and of equal
 * candidates the shortest wins. Edges are routed one after the other, short
 * ones first.
 *
 * Pure except for memory, deterministic, any thread. A route costs O(length).
 */

#include <stdio.h>

#include "loadgen/topo/draw/layout.h"

#define QN_ROUTE_POINTS 5u

/** Points of a route; the first and the last lie on the edges of two circles.
 *  Three points: a quadratic curve; more: lines with round corners. Pixels. */
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

/** The route from one core to another; later routes avoid it.
 *  @return how many third circles it crosses. */
uint32_t qn_router_find(struct qn_router *r, uint32_t from, uint32_t to,
                        struct qn_route *out);

/** Writes the route as SVG path data that begins with M. */
void qn_route_write(const struct qn_route *way, double radius, FILE *to);

#endif
