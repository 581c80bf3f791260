/*
 * Replies that come after their request has run: completions of submissions,
 * deferred reads, late replies.
 *
 * A closed session stays in memory until its last submission is complete, so a
 * completion always finds its session; the reply is dropped.
 */
#include "kvs/session/reply_stats.h"
#include "kvs/session/session_internal.h"

/* Its reply is among those of the session, or dropped. */
static void completed(struct qn_client_session *s, const struct qn_cmd *cmd)
{
    QN_ASSERT(s->pending > 0);
    s->pending--;
    s->deferred_reads -= cmd->where == QN_CMD_READ;
    qn_session_check(s);
}

struct qn_client_session *qn_session_complete(struct qn_session_env *env,
                                              struct qn_slice reply,
                                              qn_slot_t last_slot)
{
    struct qn_submission done;
    if (!qn_in_flight_pop(&env->in_flight, &done)) {
        return NULL;
    }
    struct qn_client_session *s = done.session;
    qn_reply_stats_note(env->part, done.cmd, reply);
    completed(s, done.cmd);
    if (qn_session_is_closed(s)) {
        return s;
    }
    if (reply.len == 0) {
        s->out.oom = true;
    } else if (!done.is_muted) {
        qn_buf_append(&s->out, reply.data, reply.len);
    }
    if (done.cmd->where == QN_CMD_WRITE) {
        s->last_write = last_slot;
    }
    return s;
}

struct qn_client_session *qn_session_run_deferred(struct qn_session_env *env,
                                                  struct qn_store *store,
                                                  struct qn_cmd_call *call)
{
    struct qn_submission done;
    bool found = qn_in_flight_pop(&env->in_flight, &done);
    QN_ASSERT(found);
    QN_ASSERT(done.cmd == call->cmd);
    QN_ASSERT(done.session->deferred_reads > 0);
    bool drop = done.is_muted || qn_session_is_closed(done.session);
    call->reply = drop ? qn_session_scratch(env) : &done.session->out;
    size_t start = call->reply->len;
    (void)qn_cmd_run(store, call); /* a read: only the reply needs memory */
    qn_reply_stats_note(env->part, done.cmd,
                        qn_reply_stats_slice(call->reply, start));
    completed(done.session, done.cmd);
    return done.session;
}

/* ---- late replies -------------------------------------------------------- */

struct qn_buf *qn_session_late_reply(struct qn_session_env *env,
                                     struct qn_client_session *s)
{
    QN_ASSERT(s->reason == QN_BLOCKED_REMOTE);
    struct qn_buf *b = s->mode.late_muted ? qn_session_scratch(env) : &s->out;
    qn_reply_mode_late_begins(&s->mode, b->len);
    return b;
}

void qn_session_late_reply_done(struct qn_session_env *env,
                                struct qn_client_session *s)
{
    QN_ASSERT(s->reason == QN_BLOCKED_REMOTE);
    QN_ASSERT(s->mode.late_begun);
    const struct qn_buf *b = s->mode.late_muted ? &env->scratch : &s->out;
    qn_reply_stats_note(env->part, s->last_cmd,
                        qn_reply_stats_slice(b, s->mode.late_start));
    qn_session_unblock(s);
}
