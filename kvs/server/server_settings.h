#ifndef QN_KVS_SERVER_SERVER_SETTINGS_H
#define QN_KVS_SERVER_SERVER_SETTINGS_H

/**
 * Settings beside the log, in a replica (kvs/config/settings.h): what it says
 * and what it takes from its peers, by outboxes or by message.
 *
 * Threads: one, the loop's.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/node.h"

struct qn_server;
struct qn_conn;
struct qn_cmd_call;

/** Take what is newer at the peers. At the beginning of a turn,
 *  before requests are run and slots are filled. */
void qn_settings_turn(struct qn_server *s);

/** Take what is newer at that present peer: its incarnation has ended. */
void qn_settings_take(struct qn_server *s, qn_node_t peer);

/** The number of voters has changed. An automatic min-replicas-to-write
 *  follows it, until an operator sets another one. */
void qn_settings_voters(struct qn_server *s, uint32_t voters);

/** No operator has set min-replicas-to-write, neither at the start nor since.
 */
bool qn_settings_min_is_auto(const struct qn_server *s);

/** CONFIG SET of options that change beside the log, as qn_local_commands_run.
 * When it is answered +OK this replica goes by them, and each peer does from
 * its next turn on, also if this replica has ended by then. */
void qn_settings_set(struct qn_conn *c, struct qn_cmd_call *call);

#endif
