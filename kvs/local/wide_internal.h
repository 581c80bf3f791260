#ifndef QN_KVS_LOCAL_WIDE_INTERNAL_H
#define QN_KVS_LOCAL_WIDE_INTERNAL_H

/**
 * What the commands for the whole server share: a question, this replica's
 * answer to each (`_answer`), and the reply that is made from all answers
 * (`_finish`).
 *
 *     wide.c          questions: asked, answered, finished
 *     wide_info.c     INFO, CONFIG RESETSTAT
 *     wide_client.c   CLIENT LIST, KILL, INFO
 */

#include "kvs/local/wide.h"
#include "kvs/server/server.h"

/* What is asked. */
enum { ASK_INFO = 1, ASK_LIST, ASK_KILL, ASK_RESETSTAT };

/** A question begins with it. */
struct wide_head {
    uint64_t asker; /* connection */
    uint32_t argc;
    uint32_t zero;
};

/* ---- wide.c -------------------------------------------------------------- */

/** Hold the connection and ask all replicas. */
void qn_wide_ask(struct qn_conn *c, struct qn_cmd_call *call, uint8_t what);

/* ---- wide_info.c --------------------------------------------------------- */

void qn_wide_info_answer(struct qn_server *s, const struct wide_head *h,
                         struct qn_buf *out);
void qn_wide_info_finish(struct qn_server *s, struct qn_conn *c,
                         struct qn_asked *a, const struct qn_slice *argv,
                         uint32_t argc);
void qn_wide_resetstat_answer(struct qn_server *s);
void qn_wide_resetstat_finish(struct qn_conn *c, const struct qn_asked *a);

/* ---- wide_client.c ------------------------------------------------------- */

/** Does it wait for answers to a question that is not `asker`'s? */
bool qn_wide_is_blocked(const struct qn_conn *c, uint64_t asker);

void qn_wide_list_answer(struct qn_server *s, const struct wide_head *h,
                         const struct qn_slice *argv, struct qn_buf *out);
void qn_wide_list_finish(struct qn_server *s, struct qn_conn *c,
                         const struct qn_asked *a);
void qn_wide_kill_answer(struct qn_server *s, const struct wide_head *h,
                         const struct qn_slice *argv, struct qn_buf *out);
void qn_wide_kill_finish(struct qn_server *s, struct qn_conn *c,
                         const struct qn_asked *a, const struct qn_slice *argv,
                         uint32_t argc);

#endif
