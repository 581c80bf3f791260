#ifndef QN_KVS_LOCAL_CLUSTER_QUERY_H
#define QN_KVS_LOCAL_CLUSTER_QUERY_H

/**
 * The commands that concern the whole server: INFO, CONFIG RESETSTAT, CLIENT
 * LIST, CLIENT KILL; and CLIENT INFO, which is a line of the same list.
 *
 * A session that asks is blocked for QN_BLOCKED_REMOTE and keeps its question.
 * Every replica answers it (kvs/introspect/fanout_query.h), and the reply is
 * made from what came within QN_FANOUT_TIMEOUT: INFO names the replicas that
 * are missing, CLIENT LIST leaves their connections out, CLIENT KILL counts
 * without them, CONFIG RESETSTAT replies an error.
 *
 * One thread, the loop's.
 */

#include "kvs/frontend/frontend.h"

struct qn_server;

/** Make the server's fan-out query and run id, after replica and front end.
 *  @return QN_OK; QN_ENOMEM. */
int qn_cluster_query_init(struct qn_server *s);

/* As qn_local_commands_run: the reply goes to call->reply, at once or later. */
void qn_cluster_query_info(struct qn_conn *c, struct qn_cmd_call *call);
void qn_cluster_query_client_info(struct qn_conn *c, struct qn_cmd_call *call);
void qn_cluster_query_client_list(struct qn_conn *c, struct qn_cmd_call *call);
void qn_cluster_query_client_kill(struct qn_conn *c, struct qn_cmd_call *call);
void qn_cluster_query_config_resetstat(struct qn_conn *c,
                                       struct qn_cmd_call *call);

#endif
