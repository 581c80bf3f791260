#ifndef QN_KVS_LOCAL_LOCAL_COMMANDS_H
#define QN_KVS_LOCAL_LOCAL_COMMANDS_H

/** Commands that the connection's process answers itself: PING, HELLO, CLIENT,
 *  CONFIG, INFO, ... One thread, the loop's. */

#include "kvs/frontend/frontend.h"

/** Is this WRITE without keys for qn_local_commands_run? CONFIG SET is, if it
 * names an option that changes beside the log (kvs/config/settings.h). Every
 * LOCAL and ALL command is, too, and is not asked about. */
bool qn_local_commands_takes(const struct qn_cmd_call *call);

/** Run a command; its arity was checked, and nothing is pending on the
 *  connection. The reply goes to call->reply at once. Or the session is blocked
 *  for QN_BLOCKED_REMOTE, and it comes when other replicas have answered. */
void qn_local_commands_run(struct qn_conn *c, struct qn_cmd_call *call);

#endif
