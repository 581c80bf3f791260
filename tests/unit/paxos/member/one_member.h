#ifndef QN_TESTS_UNIT_PAXOS_MEMBER_ONE_MEMBER_H
#define QN_TESTS_UNIT_PAXOS_MEMBER_ONE_MEMBER_H

/**
 * Node 0 of three, in the test's thread, with commons of its own. Its peers are
 * outboxes that the test makes.
 */

#include "tests/unit/paxos/member/member_world.h"

struct one {
    struct qn_commons *commons;
    struct qn_member_opts o; /* of node 0, incarnation 1 */
    struct world world;
};

extern struct one one;

/** `one.world.seats` may be set before. */
void one_begin(void);
void one_end(void);

/** An outbox as another node of the group has it, and likewise one that has
 *  lanes for these seats only. The caller's. */
struct qn_outbox *one_outbox(struct qn_member *m, qn_node_t node,
                             uint64_t incarnation);
struct qn_outbox *one_outbox_seats(struct qn_member *m, qn_node_t node,
                                   uint64_t incarnation, uint64_t seats);

/** Meet, or hear of, the node with that outbox. @return what the member says.
 */
int one_meet(struct qn_member *m, struct qn_outbox *outbox, qn_node_t node,
             uint64_t incarnation);
int one_peer_up(struct qn_member *m, struct qn_outbox *outbox, qn_node_t node,
                uint64_t incarnation);

/** A callback. */
void one_ignores_recorder(void *ctx, qn_node_t node, uint64_t incarnation,
                          const void *flight);

#endif
