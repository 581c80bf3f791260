#ifndef QN_TESTS_SIM_FAULT_ORACLE_H
#define QN_TESTS_SIM_FAULT_ORACLE_H

/**
 * What becomes of a group when one more node dies, seen from above: which
 * deaths it must survive, and which row of PROTOCOL.md 6.4 a change of leader
 * or acceptor was.
 */

#include "tests/sim/paxos/cluster.h"
#include "tests/sim/paxos/coverage.h"

/** Process acceptor: if `dying` died now, the group would go on, whatever
 *  entry is chosen next. With false it may have to stop. */
bool fault_oracle_survives(const struct cluster *c, qn_node_t dying);

/** The row of 6.4 that says why it stops, were `dying` dead. */
enum coverage_row fault_oracle_stop(const struct cluster *c, qn_node_t dying);

/* For cluster.c. */

/** `node` is about to die: what it proposes may be chosen all the same. */
void fault_oracle_dies(struct cluster *c, qn_node_t node);
/** An entry was learned for the first time, by `node`. */
void fault_oracle_entry(struct cluster *c, qn_node_t node);
/** `node` became ACTIVE in the epoch that it believes in. */
void fault_oracle_leads(struct cluster *c, qn_node_t node);

#endif
