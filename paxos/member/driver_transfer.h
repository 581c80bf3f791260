#ifndef QN_PAXOS_MEMBER_DRIVER_TRANSFER_H
#define QN_PAXOS_MEMBER_DRIVER_TRANSFER_H

/**
 * The operations that a state transfer (paxos/member/transfer) needs of its
 * member, on a driver. Threads: the driver's. Nothing blocks.
 */

#include "paxos/driver/driver.h"
#include "paxos/member/member.h"

struct qn_driver_transfer {
    struct qn_driver *driver; /* kept */
    qn_node_t self;
    uint32_t nodes;
    uint64_t incarnation;   /* of this member */
    uint64_t backlog_bytes; /* of the log, kept for members that lag */
    const struct qn_member_state *state; /* kept */
};

/** @param t  Kept. */
struct qn_state_transfer_ops qn_driver_transfer_ops(
    struct qn_driver_transfer *t);

#endif
