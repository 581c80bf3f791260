#ifndef QN_LOADGEN_LARGE_PLOT_H
#define QN_LOADGEN_LARGE_PLOT_H

/** A picture of large collectives: of each operation of each group, the speed
 *  of the variants over the size. One thread. */

#include <stdint.h>

#include "loadgen/plot/panel.h"

struct qn_large_plot {
    struct qn_panel *panel;
    char (*title)[64]; /* of each */
    uint32_t count;
    double memcpy_ns; /* of the size that comes; 0: not measured */
};

/**
 * What a variant takes.
 *
 * @param p      Zero at first; freed by qn_large_plot_free. Without memory for
 *               a panel the figure is left out.
 * @param group  Begins a group: "4 processes"; all of one in a row.
 * @param name   Of a variant, or "memcpy", which comes before those that it is
 *               drawn with. Kept.
 */
void qn_large_plot_add(struct qn_large_plot *p, const char *group,
                       const char *name, uint64_t bytes, double ns);

/** @return the exit status: 0, or 1 after a line of `program`. */
int qn_large_plot_write(const struct qn_large_plot *p, const char *title,
                        const char *path, const char *program);

void qn_large_plot_free(struct qn_large_plot *p);

#endif
