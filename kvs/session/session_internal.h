#ifndef QN_KVS_SESSION_SESSION_INTERNAL_H
#define QN_KVS_SESSION_SESSION_INTERNAL_H

/**
 * What the parts of a session share:
 *
 *     session.c      states and their transitions, bytes in, bounds of `out`
 *     run.c          its requests one after the other; resuming
 *     requests.c     one request: found, run, submitted, refused or put back
 *     completions.c  replies that come later: completions, deferred reads, late
 *                    replies
 */

#include "kvs/session/session.h"

/* ---- session.c ----------------------------------------------------------- */

/** RUN -> BLOCKED. */
void qn_session_block(struct qn_client_session *s, enum qn_blocked reason);
/** BLOCKED -> RUN. */
void qn_session_unblock(struct qn_client_session *s);

/** An empty buffer for a reply that is not sent, bounded like that of a
 *  client. */
struct qn_buf *qn_session_scratch(struct qn_session_env *env);

/** Debug builds: the relations between its fields hold. */
static inline void qn_session_check(const struct qn_client_session *s)
{
    QN_DASSERT((s->state == QN_SESSION_BLOCKED) ==
               (s->reason != QN_NOT_BLOCKED));
    QN_DASSERT(s->deferred_reads <= s->pending);
    QN_DASSERT(s->deferred_reads <= QN_DEFERRED_READS_MAX);
    QN_DASSERT(s->reason != QN_BLOCKED_REMOTE || s->pending == 0);
    QN_DASSERT(s->drain_left == 0 || s->draining);
    QN_DASSERT(s->drain_left == 0 || !s->eof);
    QN_DASSERT(s->proto == 2 || s->proto == 3);
}

/* ---- requests.c ---------------------------------------------------------- */

/** What became of a request. */
enum qn_outcome {
    QN_REQUEST_DONE,
    QN_REQUEST_PUT_BACK,  /* it is the next one again; the session is blocked */
    QN_REQUEST_NO_MEMORY, /* nothing was started; the session cannot go on */
};

/** Run one, and take the work of its reply from the turn's budget. */
enum qn_outcome qn_session_request(struct qn_session_env *env,
                                   struct qn_client_session *s,
                                   const struct qn_resp_req *req);

/** Where the reply of the request that runs goes. */
struct qn_buf *qn_session_reply(struct qn_session_env *env,
                                struct qn_client_session *s);

#endif
