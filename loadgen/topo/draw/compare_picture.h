#ifndef QN_LOADGEN_TOPO_DRAW_COMPARE_PICTURE_H
#define QN_LOADGEN_TOPO_DRAW_COMPARE_PICTURE_H

/** A comparison as a picture. One thread. */

#include "loadgen/topo/model/compare.h"

/** Latency against throughput, and who is on the front. */
void qn_compare_write_svg(const struct qn_compare *c, FILE *to);

#endif
