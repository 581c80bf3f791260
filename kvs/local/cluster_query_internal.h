#ifndef QN_KVS_LOCAL_CLUSTER_QUERY_INTERNAL_H
#define QN_KVS_LOCAL_CLUSTER_QUERY_INTERNAL_H

/**
 * What the commands for the whole server share: a question, this replica's
 * answer to each (`_answer`), and the reply that is made from all answers
 * (`_finish`).
 *
 *     cluster_query.c          questions: asked, answered, finished
 *     info_command.c     INFO, CONFIG RESETSTAT
 *     client_command.c   CLIENT LIST, KILL, INFO
 */

#include "kvs/local/cluster_query.h"
#include "kvs/server/server.h"

/* The kinds of questions. */
enum { ASK_INFO = 1, ASK_LIST, ASK_KILL, ASK_RESETSTAT };

/** A question begins with it. */
struct cluster_query_head {
    uint64_t asker; /* connection */
    uint32_t argc;
    uint32_t zero;
};

/* ---- cluster_query.c
 * -------------------------------------------------------------- */

/** Block the connection and ask all replicas. */
void qn_cluster_query_ask(struct qn_conn *c, struct qn_cmd_call *call,
                          uint8_t what);

/* ---- info_command.c ------------------------------------------------------ */

void qn_cluster_query_info_answer(struct qn_server *s,
                                  const struct cluster_query_head *h,
                                  struct qn_buf *out);
void qn_cluster_query_info_finish(struct qn_server *s, struct qn_conn *c,
                                  struct qn_fanout_result *a,
                                  const struct qn_slice *argv, uint32_t argc);
void qn_cluster_query_resetstat_answer(struct qn_server *s);
void qn_cluster_query_resetstat_finish(struct qn_conn *c,
                                       const struct qn_fanout_result *a);

/* ---- client_command.c ---------------------------------------------------- */

/** True if the connection waits for answers to a question that is not
 *  `asker`'s. */
bool qn_cluster_query_is_blocked(const struct qn_conn *c, uint64_t asker);

void qn_cluster_query_list_answer(struct qn_server *s,
                                  const struct cluster_query_head *h,
                                  const struct qn_slice *argv,
                                  struct qn_buf *out);
void qn_cluster_query_list_finish(struct qn_server *s, struct qn_conn *c,
                                  const struct qn_fanout_result *a);
void qn_cluster_query_kill_answer(struct qn_server *s,
                                  const struct cluster_query_head *h,
                                  const struct qn_slice *argv,
                                  struct qn_buf *out);
/** @return true if the asker has killed itself: it closes after its reply. */
bool qn_cluster_query_kill_finish(struct qn_server *s, struct qn_conn *c,
                                  const struct qn_fanout_result *a,
                                  const struct qn_slice *argv, uint32_t argc);

#endif
