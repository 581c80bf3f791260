#ifndef QN_LOADGEN_TOPO_DRAW_LAYOUT_H
#define QN_LOADGEN_TOPO_DRAW_LAYOUT_H

/**
 * Layout of the cores of a machine: sockets, memory nodes, caches and physical
 * cores as nested boxes.
 *
 * Levels are nested from the coarsest to the finest on this machine (a cache
 * may span memory nodes); a group that lies in two boxes is split. Levels that
 * split nothing share one box; groups of one core have no box.
 *
 * Pure except for memory, deterministic, any thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/machine/machine.h"

#define QN_LAYOUT_LABEL 64u

struct qn_box {
    double x, y, width, height; /* pixels from the top left */
    uint32_t parent;            /* enclosing box; its own index: none */
    uint32_t depth;             /* number of enclosing boxes */
    bool bare; /* a physical core of several threads: without a label */
    char label[QN_LAYOUT_LABEL];
};

struct qn_layout {
    double width, height; /* of the whole layout */
    double pitch;         /* side of the square of a core */
    uint32_t n;           /* cores */
    uint32_t boxes;       /* parents before children */
    struct qn_box *box;
    double x[QN_CORES_MAX]; /* [n] center of each core */
    double y[QN_CORES_MAX];
};

/** Space for a label above the content of a box, around the content, and
 *  between boxes. */
#define QN_LAYOUT_HEAD 17.0
#define QN_LAYOUT_PAD  7.0
#define QN_LAYOUT_GAP  9.0

/** Smallest width of a box with a label: room for "socket 12". */
#define QN_LAYOUT_LEAST 62.0

/**
 * @param out    Filled; freed by qn_layout_destroy.
 * @param width  Pixels; not exceeded if a box of one core per row fits.
 * @param pitch  Pixels per core, > 0.
 * @return QN_OK or QN_ENOMEM.
 */
int qn_layout_create(struct qn_layout **out, const struct qn_machine *m,
                     double width, double pitch);

/** NULL is allowed. */
void qn_layout_destroy(struct qn_layout *l);

#endif
