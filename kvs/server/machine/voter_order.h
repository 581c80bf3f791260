#ifndef QN_KVS_SERVER_MACHINE_VOTER_ORDER_H
#define QN_KVS_SERVER_MACHINE_VOTER_ORDER_H

/**
 * The supervisor's order to change the voters (VOTER_CHANGE): this replica
 * gives it to its driver, and answers once what has become of it
 * (VOTER_CHANGED).
 *
 * The driver keeps one order at a time. An order that it takes while the same
 * one is under way is that one: a later supervisor has repeated it, and the
 * newest number is answered. An order that it does not take is answered at
 * once, and changes nothing of the one that is under way.
 *
 * Threads: one. Pure.
 */

#include <stdbool.h>

#include "kvs/control/control_protocol.h"

/** Private, except what others read: `pending`. Zero it to begin. */
struct qn_voter_order {
    bool pending; /* the driver has it, and its number is to be answered */
    uint32_t number;
};

/** The driver has said `err` to the order of that number.
 *  @param out  Filled if it is to be answered now: outcome, number, error.
 *  @return true: answer it. */
bool qn_voter_order_begin(struct qn_voter_order *o, uint32_t number, int err,
                          struct qn_ctl_voter_changed *out);

/** The one that is under way has ended. @param error  Why, unless OK.
 *  @param out  Filled, as above: answer it. */
void qn_voter_order_end(struct qn_voter_order *o, enum qn_voter_outcome outcome,
                        int error, struct qn_ctl_voter_changed *out);

#endif
