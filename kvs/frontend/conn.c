/*
 * The socket of a session: open, read, write, close.
 *
 * Input. A readable connection is read into the intake's room for the turn. The
 * session parses it in place, and only an unfinished request is kept. So ten
 * thousand idle connections hold no input memory. Once a whole request is
 * there, the rest waits in the socket for the next turn.
 *
 * Output. Replies are appended to the session's `out` and written once per
 * turn. What the socket does not take goes to libuv as `sending`, one write at
 * a time. Both together are bounded by client-output-buffer-limit while a reply
 * grows: a client whose replies do not fit is closed.
 *
 * Back-pressure. The socket of a blocked session is not read; TCP does the
 * rest.
 */
#include "kvs/frontend/conn.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include "core/base/assert.h"
#include "core/base/log.h"
#include "kvs/frontend/admit.h"
#include "kvs/frontend/frontend_internal.h"

enum {
    OUT_KEEP_BYTES = 4096, /* an idle connection's output buffer */
};

/* ---- input --------------------------------------------------------------- */

static void input_give(struct qn_conn *c)
{
    if (c->input != NULL) {
        qn_intake_give(&c->fe->intake, c->input);
        c->input = NULL;
        c->input_len = 0;
    }
}

/* The turn's bytes become the session's own; the intake gets its room back. */
static int save_partial_input(struct qn_conn *c)
{
    QN_DASSERT((c->input == NULL) == (c->input_len == 0));
    int err = qn_session_save_partial_input(&c->fe->turn.env, &c->session);
    input_give(c);
    return err;
}

/* ---- open and close ------------------------------------------------------ */

static void conn_free(struct qn_conn *c)
{
    QN_ASSERT(c->input == NULL);
    QN_ASSERT(!c->admitted);
    qn_session_fini(&c->session);
    qn_buf_free(&c->sending);
    qn_buf_free(&c->question);
    free(c->name);
    free(c->lib_name);
    free(c->lib_ver);
    free(c);
}

void qn_conn_free_if_done(struct qn_conn *c)
{
    if (qn_conn_is_closed(c) && !qn_session_is_referenced(&c->session) &&
        !c->waiter.queued && c->fe == NULL) {
        conn_free(c);
    }
}

static void on_closed(uv_handle_t *h)
{
    struct qn_conn *c = h->data;
    struct qn_frontend *fe = c->fe;
    if (c->prev != NULL) {
        c->prev->next = c->next;
    } else {
        fe->all = c->next;
    }
    if (c->next != NULL) {
        c->next->prev = c->prev;
    }
    fe->clients--;
    fe->turn.again |= fe->draining;
    c->fe = NULL;
    qn_session_fini(&c->session); /* submissions may keep it for long */
    qn_conn_free_if_done(c);
}

void qn_conn_close(struct qn_conn *c)
{
    if (qn_conn_is_closed(c)) {
        return;
    }
    qn_session_close(&c->session);
    qn_waiter_cancel(&c->waiter);
    qn_admit_gone(c);
    input_give(c);
    uv_close((uv_handle_t *)&c->uv, on_closed);
}

/* Close it now, because it asks for more than it may have; say so, once a
 * second at most. */
static void conn_drop(struct qn_conn *c, const char *why)
{
    struct qn_frontend *fe = c->fe;
    QN_ASSERT(!qn_conn_is_closed(c));
    qn_time_t now = qn_clock_now();
    if (fe->dropped_at != 0 && now - fe->dropped_at < QN_S) {
        fe->dropped_unsaid++;
    } else {
        char others[64] = "";
        if (fe->dropped_unsaid > 0) {
            snprintf(others, sizeof others, "; and %llu others before",
                     (unsigned long long)fe->dropped_unsaid);
        }
        qn_log(QN_LOG_WARN, "client %llu at %s is closed: %s%s",
               (unsigned long long)c->id, c->addr, why, others);
        fe->dropped_at = now;
        fe->dropped_unsaid = 0;
    }
    qn_conn_close(c);
}

void qn_conn_close_after_reply(struct qn_conn *c)
{
    qn_session_close_after_replies(&c->session);
    qn_turn_flush_later(&c->fe->turn, &c->session);
}

/* ---- writing ------------------------------------------------------------- */

/* Its replies did not fit: they are more than it may have, or than there is. */
static void drop_for_output(struct qn_conn *c)
{
    bool full = c->session.out.full;
    c->fe->part.output_limit_closed += full;
    conn_drop(c, full ? "its replies exceed client-output-buffer-limit; it "
                        "should ask for less at a time or read sooner, or "
                        "CONFIG SET a larger limit"
                      : "no memory for a reply");
}

static void on_written(uv_write_t *req, int status)
{
    struct qn_conn *c = req->data;
    QN_ASSERT(c->writing);
    c->writing = false;
    qn_buf_free(&c->sending);
    if (qn_conn_is_closed(c)) {
        return;
    }
    qn_session_set_sending(&c->fe->turn.env, &c->session, 0);
    if (status < 0) {
        qn_conn_close(c);
        return;
    }
    qn_turn_flush_later(&c->fe->turn, &c->session);
    c->fe->turn.again = true;
    qn_turn_sent(&c->fe->turn, &c->session);
}

/* uv_buf_init takes an unsigned length, a reply may be longer. */
static uv_buf_t buf_of(const struct qn_buf *from, size_t done)
{
    QN_ASSERT(done <= from->len);
    uv_buf_t b = {.base = (char *)from->data + done, .len = from->len - done};
    return b;
}

/* Hand what the socket did not take to libuv. */
static void write_rest(struct qn_conn *c, size_t done)
{
    struct qn_client_session *s = &c->session;
    QN_ASSERT(!c->writing);
    c->sending = s->out;
    s->out = (struct qn_buf){0};
    qn_session_set_sending(&c->fe->turn.env, s, c->sending.len);
    uv_buf_t b = buf_of(&c->sending, done);
    c->write_req.data = c;
    c->writing = true;
    if (uv_write(&c->write_req, &c->uv.stream, &b, 1, on_written) != 0) {
        c->writing = false;
        qn_conn_close(c);
    }
}

static void write_out(struct qn_conn *c)
{
    struct qn_buf *out = &c->session.out;
    struct qn_info_part *part = &c->fe->part;
    uv_buf_t b = buf_of(out, 0);
    int n = uv_try_write(&c->uv.stream, &b, 1);
    c->bytes_out += out->len;
    part->net_output_bytes += out->len;
    part->output_most = QN_MAX(part->output_most, out->len);
    if (n < 0 && n != UV_EAGAIN) {
        qn_conn_close(c);
    } else if (n >= 0 && (size_t)n == out->len) {
        out->len = 0;
        if (out->cap > OUT_KEEP_BYTES) {
            qn_buf_free(out);
        }
        qn_turn_sent(&c->fe->turn, &c->session);
    } else {
        write_rest(c, n < 0 ? 0 : (size_t)n);
    }
}

void qn_conn_flush(struct qn_conn *c)
{
    struct qn_client_session *s = &c->session;
    QN_ASSERT(c->writing == (s->sending > 0));
    if (s->out.oom) {
        drop_for_output(c);
        return;
    }
    if (s->out.len > 0 && !c->writing) {
        write_out(c);
    }
    if (qn_session_is_finished(s)) {
        QN_ASSERT(c->question.len == 0);
        qn_conn_close(c);
    }
}

/* ---- reading ------------------------------------------------------------- */

static void on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *buf)
{
    (void)suggested;
    struct qn_conn *c = h->data;
    struct qn_resp_reader *in = &c->session.in;
    qn_frontend_wake(c->fe);
    *buf = uv_buf_init(NULL, 0);
    if (!qn_turn_may_read(&c->fe->turn)) {
        return; /* it is still readable, and is read in the next turn */
    }
    if (!qn_resp_wants(in)) {
        return; /* what is there is run first */
    }
    if (c->input != NULL && save_partial_input(c) != QN_OK) {
        return;
    }
    size_t n = 0;
    uint8_t *room = NULL;
    if (qn_resp_holds(in)) {
        room = qn_resp_room(in, &n);
    } else {
        room = qn_intake_room(&c->fe->intake, &n);
        n = qn_resp_feed_max(in, n);
    }
    if (room != NULL) {
        *buf = uv_buf_init((char *)room, (unsigned)QN_MIN(n, 1u << 30));
    }
}

/* The session has read its last byte. */
static void reading_ended(struct qn_conn *c)
{
    QN_ASSERT(c->session.eof);
    qn_conn_reading(c, false);
    qn_turn_run_later(&c->fe->turn, &c->session);
}

void qn_conn_drain(struct qn_conn *c)
{
    int fd = -1;
    int bytes = 0;
    if (uv_fileno((uv_handle_t *)&c->uv, &fd) == 0) {
        (void)ioctl(fd, FIONREAD, &bytes);
    }
    qn_session_drain(&c->session, (size_t)QN_MAX(bytes, 0));
    if (c->session.eof) {
        reading_ended(c);
    }
}

/* Nothing more can be read into memory. */
static void drop_for_input(struct qn_conn *c)
{
    bool full = c->session.in.held.len >= c->fe->limits.buffer_max;
    c->fe->part.query_limit_closed += full;
    conn_drop(c, full ? "its requests exceed client-query-buffer-limit"
                      : "no memory for a request");
}

/* `n` bytes came into what on_alloc gave. */
static void input_came(struct qn_conn *c, const uv_buf_t *buf, size_t n)
{
    c->bytes_in += (uint64_t)n;
    c->fe->part.net_input_bytes += (uint64_t)n;
    qn_turn_count_read(&c->fe->turn, n);
    if (!qn_resp_holds(&c->session.in)) {
        QN_ASSERT(c->input == NULL);
        c->input = qn_intake_take(&c->fe->intake, n);
        c->input_len = n;
    }
    qn_session_feed(&c->session, (const uint8_t *)buf->base, n);
    if (c->session.eof) {
        reading_ended(c);
    } else {
        qn_turn_run_later(&c->fe->turn, &c->session);
    }
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct qn_conn *c = stream->data;
    if (n > 0) {
        input_came(c, buf, (size_t)n);
    } else if (n == UV_ENOBUFS) {
        /* on_alloc gave no room: not in this turn, or never. */
        if (qn_turn_may_read(&c->fe->turn) && qn_resp_wants(&c->session.in)) {
            drop_for_input(c);
        }
    } else if (n == UV_EOF) {
        qn_session_eof(&c->session);
        reading_ended(c);
    } else if (n < 0) {
        qn_conn_close(c);
    }
}

void qn_conn_reading(struct qn_conn *c, bool on)
{
    if (c->reading == on || qn_conn_is_closed(c)) {
        return;
    }
    c->reading = on;
    if (on) {
        if (uv_read_start(&c->uv.stream, on_alloc, on_read) != 0) {
            qn_conn_close(c);
        }
    } else {
        uv_read_stop(&c->uv.stream);
    }
}

/* ---- requests ------------------------------------------------------------ */

/* The stream of its requests is over. */
static void input_failed(struct qn_conn *c, int err)
{
    if (err == QN_EPERM) {
        qn_log(QN_LOG_WARN,
               "possible cross-protocol attack: POST or Host: from %s",
               c->addr);
    } else {
        qn_log(QN_LOG_WARN, "client %llu: %s", (unsigned long long)c->id,
               qn_strerror(err));
    }
    qn_conn_close(c);
}

void qn_conn_run(struct qn_conn *c)
{
    struct qn_turn *turn = &c->fe->turn;
    c->active_ms = uv_now(c->fe->o.loop);
    int err = qn_session_run(&turn->env, &c->session);
    if (qn_conn_is_closed(c)) {
        return; /* by the command that has run */
    }
    if (err == QN_OK) {
        err = save_partial_input(c);
    }
    if (err != QN_OK) {
        input_failed(c, err);
        return;
    }
    qn_conn_reading(c, qn_session_wants_input(&c->session));
    qn_turn_ran(turn, &c->session);
}

/* ---- late replies -------------------------------------------------------- */

struct qn_buf *qn_conn_answer(struct qn_conn *c)
{
    return qn_session_late_reply(&c->fe->turn.env, &c->session);
}

void qn_conn_answered(struct qn_conn *c)
{
    if (qn_conn_is_closed(c)) {
        qn_conn_free_if_done(c);
        return;
    }
    qn_session_late_reply_done(&c->fe->turn.env, &c->session);
    qn_turn_late_reply_done(&c->fe->turn, &c->session);
}
