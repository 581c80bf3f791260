#ifndef QN_LOADGEN_TOPO_DRAW_SURVEY_MAP_H
#define QN_LOADGEN_TOPO_DRAW_SURVEY_MAP_H

/** A survey as a map of colours. One thread. */

#include "loadgen/topo/model/survey.h"

/** The heat map: a panel per operation, machines (of one machine: sizes) by
 *  topologies. */
void qn_survey_write_svg(const struct qn_survey *s, FILE *to);

#endif
