#ifndef QN_KVS_LOCAL_DEBUG_COMMAND_H
#define QN_KVS_LOCAL_DEBUG_COMMAND_H

/**
 * DEBUG, for tests; refused unless the server was started with
 * --enable-debug-command. Every subcommand concerns the connection's own
 * replica:
 *
 *   DEBUG DIGEST            position and digest of its store
 *   DEBUG SLEEP seconds     it is stalled
 *   DEBUG HOLD-LEARNS 0|1   it does not read what is decided
 *   DEBUG OVERWRITE-REGISTER epoch hi
 *                           the leader sets the accept register (memory
 *                           acceptor): the group stops
 *   DEBUG WRECK seed        it overwrites all shared memory that it can reach,
 *                           with zeros (0), ones (-1) or garbage of the seed,
 *                           and dies
 */

#include "kvs/frontend/frontend.h"

/* Each as qn_local_commands_run: the reply goes to call->reply. */
void qn_debug_digest(struct qn_conn *c, struct qn_cmd_call *call);
void qn_debug_sleep(struct qn_conn *c, struct qn_cmd_call *call);
void qn_debug_hold_learns(struct qn_conn *c, struct qn_cmd_call *call);
void qn_debug_overwrite_register(struct qn_conn *c, struct qn_cmd_call *call);
void qn_debug_wreck(struct qn_conn *c, struct qn_cmd_call *call);

#endif
