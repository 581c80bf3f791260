#ifndef QN_LOADGEN_TOPO_MODEL_CORES_H
#define QN_LOADGEN_TOPO_MODEL_CORES_H

/** Subsets of a machine's cores. Pure, any thread. */

#include "core/machine/machine.h"

/**
 * "0-7,16": operating system numbers. A range may contain numbers that the
 * machine does not have; single numbers and both ends of a range must exist.
 *
 * @param index  [QN_CORES_MAX] filled: indices, ascending, each once.
 * @param count  Filled, at least 1.
 * @return QN_OK or QN_EINVAL, fault filled.
 */
int qn_cores_parse(uint32_t *index, uint32_t *count, const struct qn_machine *m,
                   const char *list, struct qn_parse_error *parse_error);

/** All cores dealt round robin over the memory nodes: the first of each node,
 *  nodes in the order of their first cores, then the second of each, ...
 *  @param index [n] filled. O(n^2). */
void qn_cores_deal(uint32_t *index, const struct qn_machine *m);

#endif
