/*
 * A session runs: the requests that it was fed, one by one, until it is blocked
 * or needs more bytes; and it resumes.
 *
 * Linearizability. A blocked session is not read, so all bytes that it holds
 * were received before the index that its request waits for was loaded, and the
 * same index serves them. They are as old as that request, too. When its
 * deadline has passed, so has theirs, until the index is reached, bytes are
 * read again, or the client was what the session waited for.
 */
#include "kvs/resp/reply.h"
#include "kvs/session/session_internal.h"

enum {
    ARGS_OF_WORK = 4, /* as much work as a small request */
};

/* ---- blocked, and resumed ------------------------------------------------ */

bool qn_session_can_resume(const struct qn_session_env *env,
                           const struct qn_client_session *s)
{
    switch (s->reason) {
    case QN_NOT_BLOCKED:
        return s->state == QN_SESSION_RUN;
    case QN_BLOCKED_BUDGET:
        return true;
    case QN_BLOCKED_PENDING:
        return s->pending == 0;
    case QN_BLOCKED_READ_INDEX:
        return env->applied >= QN_MIN(s->index, env->read_index) ||
               env->ops->timed_out(env->ctx, s->blocked_tick);
    case QN_BLOCKED_BACKPRESSURE:
        return env->ops->can_submit(env->ctx);
    case QN_BLOCKED_OUTPUT:
        return qn_session_unsent(s) <= env->output_pause / 2;
    case QN_BLOCKED_REMOTE:
        return false;
    }
    return false;
}

/* The replica may have applied more meanwhile, or the deadline has passed. */
static bool resume_read(struct qn_session_env *env, struct qn_client_session *s)
{
    QN_ASSERT(!s->deadline_passed);
    /* A later index will do as well. The former one may have been garbage that
     * could not be recognized (qn_driver_read_index). */
    s->index = QN_MIN(s->index, env->read_index);
    (void)env->ops->tick(env->ctx);
    if (!qn_session_can_resume(env, s)) {
        return false;
    }
    if (env->applied < s->index) {
        s->deadline_passed = true;
    }
    qn_session_unblock(s);
    return true;
}

bool qn_session_resume(struct qn_session_env *env, struct qn_client_session *s)
{
    if (s->reason == QN_BLOCKED_READ_INDEX) {
        return resume_read(env, s);
    }
    if (s->state != QN_SESSION_RUN) {
        if (!qn_session_can_resume(env, s)) {
            return false;
        }
        qn_session_unblock(s);
    }
    s->index = env->read_index;
    return true;
}

/* ---- all that a session was fed ------------------------------------------ */

/* There is no whole request. */
static int input_ended(struct qn_session_env *env, struct qn_client_session *s,
                       int err)
{
    if (err == QN_EAGAIN) {
        return QN_OK;
    }
    if (err != QN_EINVAL) {
        return err;
    }
    if (s->pending > 0) {
        /* The error comes behind the replies; the reader's is sticky. */
        qn_session_block(s, QN_BLOCKED_PENDING);
        return QN_OK;
    }
    qn_reply_error(qn_session_reply(env, s), "%s", qn_resp_error(&s->in));
    qn_session_close_after_replies(s);
    return QN_OK;
}

/* The session has stopped running for now. What it still holds is as old as the
 * request that was refused only if it was blocked by the server. */
static void deadline_forget(const struct qn_session_env *env,
                            struct qn_client_session *s)
{
    bool waits_for_server =
        s->state == QN_SESSION_BLOCKED && s->reason != QN_BLOCKED_OUTPUT;
    if (!waits_for_server || env->applied >= s->index) {
        s->deadline_passed = false;
    }
}

/* Run the next request, or find out why there is none. */
static int step(struct qn_session_env *env, struct qn_client_session *s,
                bool *has_request)
{
    struct qn_resp_req req;
    int err = qn_resp_next(&s->in, &req);
    if (err != QN_OK) {
        *has_request = false;
        return input_ended(env, s, err);
    }
    env->budget -= 1 + req.argc / ARGS_OF_WORK;
    enum qn_outcome outcome = qn_session_request(env, s, &req);
    return outcome != QN_REQUEST_NO_MEMORY ? QN_OK : QN_ENOMEM;
}

int qn_session_run(struct qn_session_env *env, struct qn_client_session *s)
{
    int err = QN_OK;
    bool has_request = true;
    /* A session whose replies have found no memory closes at the flush. */
    while (err == QN_OK && has_request && s->state == QN_SESSION_RUN &&
           !s->out.oom) {
        if (env->budget <= 0) {
            qn_session_block(s, QN_BLOCKED_BUDGET);
        } else if (qn_session_unsent(s) > env->output_pause) {
            qn_session_block(s, QN_BLOCKED_OUTPUT);
        } else {
            err = step(env, s, &has_request);
        }
    }
    deadline_forget(env, s);
    if (s->eof && s->state == QN_SESSION_RUN) {
        qn_session_close_after_replies(s);
    }
    return err;
}

uint64_t qn_session_unanswered(struct qn_client_session *s)
{
    struct qn_resp_req req;
    uint64_t n = s->reason == QN_BLOCKED_REMOTE;
    n += qn_session_unsent(s) > 0;
    while (s->state != QN_SESSION_CLOSING &&
           qn_resp_next(&s->in, &req) == QN_OK) {
        n++;
    }
    return n;
}
