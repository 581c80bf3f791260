#ifndef QN_LOADGEN_TOPO_DRAW_PICTURE_H
#define QN_LOADGEN_TOPO_DRAW_PICTURE_H

/**
 * A topology drawn over its machine, and below who is busy when: one SVG for
 * paper and for dark screens.
 *
 * One thread; allocates while it draws. The caller checks ferror().
 */

#include <stdio.h>

#include "core/machine/machine.h"
#include "loadgen/topo/model/timeline.h"

struct qn_picture {
    const struct qn_machine *m; /* borrowed, as all of it */
    const struct qn_timeline *t;
    uint32_t root;    /* index */
    const char *name; /* of the topology */
    const char *goal; /* what is done with it: "broadcast", ... */
    const char *note; /* a line below the title; "" */
    double busiest;   /* cycles of the busiest core per operation, where that
                         was asked for; 0: the operation's latency was */
};

/** @return QN_OK or QN_ENOMEM. */
int qn_picture_write(const struct qn_picture *p, FILE *to);

#endif
