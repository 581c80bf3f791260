/*
 * The states of a session, and its bytes.
 *
 * Each transition is one function, which asserts that it is legal. `reason`
 * belongs to BLOCKED alone, so the two fields change together, here and nowhere
 * else.
 */
#include "kvs/session/session.h"

#include "kvs/session/session_internal.h"

enum {
    SCRATCH_KEEP = 65536, /* bytes */
};

/* ---- states -------------------------------------------------------------- */

void qn_session_block(struct qn_client_session *s, enum qn_blocked reason)
{
    QN_ASSERT(s->state == QN_SESSION_RUN);
    QN_ASSERT(reason != QN_NOT_BLOCKED);
    s->state = QN_SESSION_BLOCKED;
    s->reason = reason;
    qn_session_check(s);
}

void qn_session_unblock(struct qn_client_session *s)
{
    QN_ASSERT(s->state == QN_SESSION_BLOCKED);
    QN_ASSERT(s->reason != QN_NOT_BLOCKED);
    s->state = QN_SESSION_RUN;
    s->reason = QN_NOT_BLOCKED;
    qn_session_check(s);
}

void qn_session_block_remote(struct qn_client_session *s)
{
    QN_ASSERT(s->pending == 0);
    qn_session_block(s, QN_BLOCKED_REMOTE);
}

void qn_session_unblock_remote(struct qn_client_session *s)
{
    QN_ASSERT(s->reason == QN_BLOCKED_REMOTE);
    qn_session_unblock(s);
}

void qn_session_close_after_replies(struct qn_client_session *s)
{
    QN_ASSERT(s->state == QN_SESSION_RUN);
    QN_ASSERT(s->reason == QN_NOT_BLOCKED);
    s->state = QN_SESSION_CLOSING;
    qn_session_check(s);
}

void qn_session_close(struct qn_client_session *s)
{
    QN_ASSERT(s->state != QN_SESSION_CLOSED);
    s->state = QN_SESSION_CLOSED;
    s->reason = QN_NOT_BLOCKED;
    qn_session_check(s);
}

/* ---- open and close ------------------------------------------------------ */

void qn_session_init(struct qn_client_session *s,
                     const struct qn_resp_limits *limits)
{
    *s = (struct qn_client_session){.proto = 2};
    qn_resp_init(&s->in, limits);
    qn_session_check(s);
}

void qn_session_fini(struct qn_client_session *s)
{
    QN_ASSERT(s->state == QN_SESSION_CLOSED);
    qn_resp_free(&s->in);
    qn_buf_free(&s->out);
}

/* ---- bytes in ------------------------------------------------------------ */

void qn_session_eof(struct qn_client_session *s)
{
    QN_ASSERT(s->state != QN_SESSION_CLOSED);
    s->eof = true;
    s->drain_left = 0;
}

void qn_session_drain(struct qn_client_session *s, size_t bytes)
{
    QN_ASSERT(s->state != QN_SESSION_CLOSED);
    QN_ASSERT(!s->draining);
    s->draining = true;
    s->drain_left = s->eof ? 0 : bytes;
    if (s->drain_left == 0) {
        qn_session_eof(s);
    }
    qn_session_check(s);
}

static void drain_count(struct qn_client_session *s, size_t n)
{
    s->drain_left -= QN_MIN(s->drain_left, n);
    if (s->drain_left == 0) {
        qn_session_eof(s);
    }
}

void qn_session_feed(struct qn_client_session *s, const uint8_t *bytes,
                     size_t n)
{
    QN_ASSERT(s->state != QN_SESSION_CLOSED);
    QN_ASSERT(!s->eof);
    if (qn_resp_holds(&s->in)) {
        QN_ASSERT(bytes == s->in.held.data + s->in.held.len);
        qn_resp_fed(&s->in, n);
    } else {
        qn_resp_feed(&s->in, bytes, n);
    }
    if (s->draining) {
        drain_count(s, n);
    }
}

int qn_session_save_partial_input(struct qn_session_env *env,
                                  struct qn_client_session *s)
{
    QN_DASSERT(s->state != QN_SESSION_CLOSED);
    int err = qn_resp_settle(&s->in);
    env->part->input_most = QN_MAX(env->part->input_most, s->in.held.len);
    return err;
}

/* ---- bounds of the replies ----------------------------------------------- */

void qn_session_set_sending(struct qn_session_env *env,
                            struct qn_client_session *s, size_t bytes)
{
    uint64_t limit = env->output_limit;
    uint64_t left = limit - QN_MIN(limit, (uint64_t)bytes);
    s->sending = bytes;
    s->out.max = limit == 0 ? 0 : QN_MAX(left, (uint64_t)1);
}

struct qn_buf *qn_session_scratch(struct qn_session_env *env)
{
    struct qn_buf *b = &env->scratch;
    if (b->cap > SCRATCH_KEEP) {
        qn_buf_free(b);
    }
    b->max = env->output_limit;
    b->len = 0;
    b->oom = b->full = false;
    return b;
}
