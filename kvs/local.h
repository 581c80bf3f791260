#ifndef QN_KVS_LOCAL_H
#define QN_KVS_LOCAL_H

/** Commands that the connection's process answers itself: PING, HELLO, CLIENT,
 *  CONFIG, INFO, ... One thread, the loop's. */

#include "kvs/frontend.h"

/** Run a LOCAL or ALL command; its arity was checked, and nothing is pending
 *  on the connection. The reply goes to call->reply, at once or - then the
 *  connection is held for QN_HOLD_ANSWER - when other replicas have answered.
 */
void qn_local_run(struct qn_conn *c, struct qn_cmd_call *call);

#endif
