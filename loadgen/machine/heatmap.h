#ifndef QN_LOADGEN_MACHINE_HEATMAP_H
#define QN_LOADGEN_MACHINE_HEATMAP_H

/**
 * Costs of all pairs as two heat maps in one SVG, send and receive. Rows are
 * senders, columns receivers, both by socket, node, cache and physical core;
 * lines separate the groups. Readable from 2 to 256 cores, on paper and on dark
 * screens.
 */

#include <stdio.h>

#include "core/machine/machine.h"

/** Write the maps; m must have costs. @return QN_OK or QN_ENOMEM; the caller
 *  checks ferror(). */
int qn_heatmap_write(const struct qn_machine *m, FILE *to);

#endif
