#ifndef QN_TESTS_UNIT_PAXOS_DRIVER_CHANGE_CHANGE_WORLD_H
#define QN_TESTS_UNIT_PAXOS_DRIVER_CHANGE_CHANGE_WORLD_H

/** What stories of orders to change the voters need beside the world. */

#include "tests/unit/paxos/driver/driver_world.h"

/** Of eight seats 0 to n - 1 have voters, and go on. */
struct world *change_voters(uint32_t n);

/** Time passes faster than the members turn. */
void change_waits(struct world *w, qn_time_t ns);

/** `at` gets the order: it is refused, for this reason, and has changed
 *  nothing. */
void change_refused(struct world *w, qn_node_t at,
                    const struct qn_driver_change *c, int err);

/** The outcome of the order that `at` has is unknown, for this reason. */
void change_unknown(const struct world *w, qn_node_t at, int err);

#endif
