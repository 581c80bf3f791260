#ifndef QN_LOADGEN_TOPO_DRAW_LAYOUT_H
#define QN_LOADGEN_TOPO_DRAW_LAYOUT_H

/**
 * Where the cores of a machine are drawn: sockets, memory nodes, caches and
 * physical cores as nested boxes.
 *
 * Levels are nested from the coarsest to the finest, whichever that is on this
 * machine (a cache may span memory nodes); a group that lies in two boxes is
 * split. Levels that split nothing share one box, groups of one core get none.
 *
 * Pure but for memory, deterministic, any thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/machine/machine.h"

#define QN_LAYOUT_LABEL 64u

struct qn_box {
    double x, y, width, height; /* pixels from the top left */
    uint32_t parent;            /* box around it; its own index: none */
    uint32_t depth;             /* boxes around it */
    bool bare;                  /* a physical core of several threads: no label,
                                   no room for one */
    char label[QN_LAYOUT_LABEL];
};

struct qn_layout {
    double width, height; /* of everything */
    double pitch;         /* side of the square that belongs to a core */
    uint32_t n;           /* cores */
    uint32_t boxes;       /* parents before children */
    struct qn_box *box;
    double x[QN_CORES_MAX]; /* [n] center of each core */
    double y[QN_CORES_MAX];
};

/** Room for a label above a box's content, and around all of it. */
#define QN_LAYOUT_HEAD 17.0
#define QN_LAYOUT_PAD  7.0
#define QN_LAYOUT_GAP  9.0

/** Least width of a box with a label: "socket 12" fits. */
#define QN_LAYOUT_LEAST 62.0

/**
 * @param out    Filled; freed by qn_layout_destroy.
 * @param width  Pixels; kept to if a box of one core per row fits.
 * @param pitch  Pixels per core, > 0.
 * @return QN_OK or QN_ENOMEM.
 */
int qn_layout_create(struct qn_layout **out, const struct qn_machine *m,
                     double width, double pitch);

/** NULL is allowed. */
void qn_layout_destroy(struct qn_layout *l);

#endif
