#ifndef QN_LOADGEN_TOPO_DRAW_SWEEP_MAP_H
#define QN_LOADGEN_TOPO_DRAW_SWEEP_MAP_H

/** A sweep as a heat map. One thread. */

#include "loadgen/topo/model/sweep.h"

/** Writes one panel per operation: machines (for a single machine: group sizes)
 *  by topologies. */
void qn_sweep_write_svg(const struct qn_sweep *s, FILE *to);

#endif
