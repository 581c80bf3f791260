#ifndef QN_LOADGEN_TOPO_DRAW_COMPARE_PICTURE_H
#define QN_LOADGEN_TOPO_DRAW_COMPARE_PICTURE_H

/** Draws a comparison. One thread. */

#include "loadgen/topo/model/compare.h"

/** Draw latency against throughput, and mark the front. */
void qn_compare_write_svg(const struct qn_compare *c, FILE *to);

#endif
