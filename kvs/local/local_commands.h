#ifndef QN_KVS_LOCAL_LOCAL_COMMANDS_H
#define QN_KVS_LOCAL_LOCAL_COMMANDS_H

/** Commands that the connection's process answers itself: PING, HELLO, CLIENT,
 *  CONFIG, INFO, ... One thread, the loop's. */

#include "kvs/frontend/frontend.h"

/** Is this for qn_local_commands_run? Every LOCAL and ALL command is; and
 * CONFIG SET, a WRITE, if it names an option that changes beside the log
 * (kvs/config/settings.h).
 */
bool qn_local_commands_takes(const struct qn_cmd_call *call);

/** Run what qn_local_commands_takes; its arity was checked, and nothing is
 * pending on the connection. The reply goes to call->reply, at once or - then
 * the connection is held for QN_HOLD_ANSWER - when other replicas have
 * answered.
 */
void qn_local_commands_run(struct qn_conn *c, struct qn_cmd_call *call);

#endif
