#ifndef QN_LOADGEN_TOPO_DRAW_PICTURE_H
#define QN_LOADGEN_TOPO_DRAW_PICTURE_H

/**
 * Draws a topology over its machine, with a timeline of busy cores below: one
 * SVG for paper and for dark screens.
 *
 * One thread; allocates while it draws. The caller checks ferror().
 */

#include <stdio.h>

#include "core/machine/machine.h"
#include "loadgen/topo/model/timeline.h"

struct qn_picture {
    const struct qn_machine *m; /* borrowed, like all pointers here */
    const struct qn_timeline *t;
    uint32_t root;    /* index */
    const char *name; /* of the topology */
    const char *goal; /* operation: "broadcast", ... */
    const char *note; /* a line below the title; "": none */
    double busiest; /* cycles of the busiest core per operation, if this is the
                       goal; 0: the goal is latency */
};

/** @return QN_OK or QN_ENOMEM. */
int qn_picture_write(const struct qn_picture *p, FILE *to);

#endif
