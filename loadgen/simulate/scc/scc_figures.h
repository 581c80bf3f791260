#ifndef QN_LOADGEN_SIMULATE_SCC_SCC_FIGURES_H
#define QN_LOADGEN_SIMULATE_SCC_SCC_FIGURES_H

/** The figures of the thesis (Petrovic, EPFL; 3.2 to 3.4, 4.2 and 4.3) as a
 *  simulated SCC draws them. */

#include <stdio.h>

#include "core/machine/parse_error.h"

/**
 * Run all that the figures show on the machine of a file, and draw them into
 * one picture, SVG.
 *
 * @return QN_OK; those of qn_tiled_load, then `parse_error` is filled;
 *         QN_EINVAL: no SCC; QN_ENOMEM; QN_ECORRUPT: a broadcast was not
 *         complete. The caller checks ferror().
 */
int qn_scc_figures(const char *path, FILE *to,
                   struct qn_parse_error *parse_error);

#endif
