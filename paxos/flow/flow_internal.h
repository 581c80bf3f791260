#ifndef QN_PAXOS_FLOW_FLOW_INTERNAL_H
#define QN_PAXOS_FLOW_FLOW_INTERNAL_H

/** Flow control: what flow.c asks flow_slow.c. Pure, one thread. */

#include "paxos/flow/flow.h"

#define QN_FLOW_BIT(n) (UINT64_C(1) << (n))

/** May `m` be given up? One that does not vote always. */
bool qn_flow_may_give_up(const struct qn_flow *f,
                         const struct qn_flow_member *m);

/** `m` is awaited no longer. @param slow  It has a pause for certain; else if
 * it came back a short time ago. */
void qn_flow_give_up(struct qn_flow *f, struct qn_flow_member *m, qn_time_t now,
                     bool slow);

/** The member was slow in enough consecutive looks: the leader gives it up as
 *  soon as it shuts the gate. */
bool qn_flow_is_slow(const struct qn_flow_member *m);

/** Every member that may be joining has a pause that is not over at `until`,
 *  and there is at least one. 0: also if the pause is over. */
bool qn_flow_joiners_pause(const struct qn_flow *f, qn_time_t until);

/** The hold of `giver` is for such joiners, and has shut the gate for a quarter
 *  of the shortest of their pauses. */
bool qn_flow_hold_costs(const struct qn_flow *f, qn_node_t giver,
                        qn_time_t now);

/** All members that may be joining have failed: their next pauses begin. */
void qn_flow_pause_joiners(struct qn_flow *f, qn_time_t now);

/** Once per `timeout`: give up slow members. A leader that was stalled, or
 *  had nothing to do, begins anew. @return true: a member was given up. */
bool qn_flow_paces_look(struct qn_flow *f, qn_time_t now);

#endif
