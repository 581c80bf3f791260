#ifndef QN_TESTS_UNIT_PAXOS_GROUP_GROUP_PROCESS_H
#define QN_TESTS_UNIT_PAXOS_GROUP_GROUP_PROCESS_H

/**
 * What runs in the process of a member: it joins the group, applies and
 * proposes, and obeys the orders that the test sends over a socket, one in each
 * turn of its loop. The test's side is group_world.h.
 *
 * Threads: the process has one.
 */

#include "tests/unit/paxos/group/group_world.h"

enum group_order_kind {
    ORDER_PROPOSE,
    ORDER_PROPOSE_ONCE,
    ORDER_BARRIER,
    ORDER_CHANGE,
    ORDER_REPORT,
    ORDER_LEAVE,
    ORDER_FAIL,
    ORDER_HOLD,
    ORDER_PART,
    ORDER_EXEC,
    ORDER_FORK
};

struct group_order {
    enum group_order_kind kind;
    uint64_t n, timeout;
    uint64_t bytes; /* proposed at the end of a barrier */
    struct qn_group_change change;
};

/** Join with w->opts, and obey until an order to leave, or the end of
 * `control`.
 *  @param control  SOCK_SEQPACKET: each packet that comes is an order. A struct
 *  group_world_report answers ORDER_REPORT, an int[2] ORDER_FORK. */
void group_process_run(const struct group_world *w, uint32_t i, int control);

/** The process can open `spare` descriptors more: the kernel gives the lowest
 *  numbers that are free. */
void group_process_limit(pid_t pid, uint32_t spare);

#endif
