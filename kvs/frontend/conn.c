/*
 * A connection: its life, reading, writing, holding.
 *
 * Input. A readable connection is read into the intake's room for the turn; the
 * reader parses it in place, and only an unfinished request is kept. So ten
 * thousand idle connections hold no input memory. Once a whole request is
 * there, the rest waits in the socket for the next turn.
 *
 * Output. Replies are appended to `out` and written once per turn. What the
 * socket does not take goes to libuv as `sending`, one write at a time. Both
 * together are bounded by client-output-buffer-limit, while a reply grows:
 * whose replies do not fit is closed.
 *
 * Back-pressure. A write without room at the replica, or a peer that does not
 * read its replies: the connection is held and its socket not read; TCP does
 * the rest.
 */
#include "kvs/frontend/conn.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include "core/base/log.h"
#include "kvs/frontend/admit.h"
#include "kvs/frontend/frontend_internal.h"

enum {
    OUT_KEEP_BYTES = 4096, /* an idle connection's output buffer */
};

/* ---- input ----------------------------------------------------------------
 */

static void input_give(struct qn_conn *c)
{
    if (c->input != NULL) {
        qn_intake_give(&c->fe->intake, c->input);
        c->input = NULL;
        c->input_len = 0;
    }
}

int qn_conn_settle(struct qn_conn *c)
{
    int err = qn_resp_settle(&c->in);
    struct qn_info_part *part = &c->fe->part;
    part->input_most = QN_MAX(part->input_most, c->in.held.len);
    input_give(c);
    return err;
}

/* ---- life ---------------------------------------------------------------- */

static void conn_free(struct qn_conn *c)
{
    qn_resp_free(&c->in);
    qn_buf_free(&c->out);
    qn_buf_free(&c->sending);
    qn_buf_free(&c->question);
    free(c->name);
    free(c->lib_name);
    free(c->lib_ver);
    free(c);
}

void qn_conn_free_if_done(struct qn_conn *c)
{
    if (c->closed && c->pending == 0 && !c->in_ready && !c->in_dirty &&
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
    fe->again |= fe->draining;
    c->fe = NULL;
    qn_buf_free(&c->out); /* submissions may keep it for long */
    qn_resp_free(&c->in);
    qn_conn_free_if_done(c);
}

void qn_conn_close(struct qn_conn *c)
{
    if (c->closed) {
        return;
    }
    c->closed = true;
    qn_waiter_cancel(&c->waiter);
    c->hold = QN_HOLD_NONE;
    qn_admit_gone(c);
    input_give(c);
    uv_close((uv_handle_t *)&c->uv, on_closed);
}

void qn_conn_drop(struct qn_conn *c, const char *why)
{
    struct qn_frontend *fe = c->fe;
    if (c->closed) {
        return;
    }
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
    c->closing = true;
    qn_frontend_dirty(c);
}

/* ---- writing ------------------------------------------------------------- */

size_t qn_conn_unsent(const struct qn_conn *c)
{
    return c->out.len + c->sending.len;
}

void qn_conn_bound(struct qn_conn *c)
{
    uint64_t limit = qn_replica_config(c->fe->o.replica)->client_output_limit;
    uint64_t left = limit - QN_MIN(limit, (uint64_t)c->sending.len);
    c->out.max = limit == 0 ? 0 : QN_MAX(left, (uint64_t)1);
}

/* Its replies did not fit: they are more than it may have, or than there is. */
static void drop_for_output(struct qn_conn *c)
{
    c->fe->part.output_limit_closed += c->out.full;
    qn_conn_drop(c, c->out.full
                        ? "its replies exceed client-output-buffer-limit; it "
                          "should ask for less at a time or read sooner, or "
                          "CONFIG SET a larger limit"
                        : "no memory for a reply");
}

static void on_written(uv_write_t *req, int status)
{
    struct qn_conn *c = req->data;
    c->writing = false;
    qn_buf_free(&c->sending);
    if (c->closed) {
        return;
    }
    qn_conn_bound(c);
    if (status < 0) {
        qn_conn_close(c);
        return;
    }
    qn_frontend_dirty(c);
    c->fe->again = true;
    if (c->hold == QN_HOLD_OUTPUT) {
        qn_frontend_ready(c);
    }
}

/* uv_buf_init takes an unsigned length, a reply may be longer. */
static uv_buf_t buf_of(const struct qn_buf *from, size_t done)
{
    uv_buf_t b = {.base = (char *)from->data + done, .len = from->len - done};
    return b;
}

/* Hand what the socket did not take to libuv. */
static void conn_write_rest(struct qn_conn *c, size_t done)
{
    c->sending = c->out;
    c->out = (struct qn_buf){0};
    qn_conn_bound(c);
    uv_buf_t b = buf_of(&c->sending, done);
    c->write_req.data = c;
    c->writing = true;
    if (uv_write(&c->write_req, &c->uv.stream, &b, 1, on_written) != 0) {
        c->writing = false;
        qn_conn_close(c);
    }
}

void qn_conn_flush(struct qn_conn *c)
{
    if (c->closed) {
        return;
    }
    if (c->out.oom) {
        drop_for_output(c);
        return;
    }
    if (c->out.len > 0 && !c->writing) {
        struct qn_info_part *part = &c->fe->part;
        uv_buf_t b = buf_of(&c->out, 0);
        int n = uv_try_write(&c->uv.stream, &b, 1);
        c->bytes_out += c->out.len;
        part->net_output_bytes += c->out.len;
        part->output_most = QN_MAX(part->output_most, c->out.len);
        if (n < 0 && n != UV_EAGAIN) {
            qn_conn_close(c);
            return;
        }
        if (n >= 0 && (size_t)n == c->out.len) {
            c->out.len = 0;
            if (c->out.cap > OUT_KEEP_BYTES) {
                qn_buf_free(&c->out);
            }
            if (c->hold == QN_HOLD_OUTPUT) {
                qn_frontend_ready(c);
                c->fe->again = true;
            }
        } else {
            conn_write_rest(c, n < 0 ? 0 : (size_t)n);
        }
    }
    if (c->closing && c->out.len == 0 && !c->writing && c->pending == 0 &&
        c->question.len == 0) {
        qn_conn_close(c);
    }
}

/* ---- reading ------------------------------------------------------------- */

static void on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *buf)
{
    (void)suggested;
    struct qn_conn *c = h->data;
    qn_frontend_wake(c->fe);
    *buf = uv_buf_init(NULL, 0);
    if (c->fe->reads_left <= 0) {
        return; /* it is still readable, and is read in the next turn */
    }
    if (!qn_resp_wants(&c->in)) {
        return; /* what is there is run first */
    }
    if (c->input != NULL && qn_conn_settle(c) != QN_OK) {
        return;
    }
    size_t n = 0;
    uint8_t *room = NULL;
    if (qn_resp_holds(&c->in)) {
        room = qn_resp_room(&c->in, &n);
    } else {
        room = qn_intake_room(&c->fe->intake, &n);
        n = qn_resp_feed_max(&c->in, n);
    }
    if (room != NULL) {
        *buf = uv_buf_init((char *)room, (unsigned)QN_MIN(n, 1u << 30));
    }
}

static void hear_no_more(struct qn_conn *c)
{
    c->eof = true;
    qn_conn_reading(c, false);
    qn_frontend_ready(c);
}

void qn_conn_drain(struct qn_conn *c)
{
    int fd = -1;
    int bytes = 0;
    if (uv_fileno((uv_handle_t *)&c->uv, &fd) == 0 && !c->eof) {
        (void)ioctl(fd, FIONREAD, &bytes);
    }
    c->last_bytes = (size_t)QN_MAX(bytes, 0);
    if (c->last_bytes == 0) {
        hear_no_more(c);
    }
}

/* Nothing more can be read into memory. */
static void drop_for_input(struct qn_conn *c)
{
    bool full = c->in.held.len >= c->fe->limits.buffer_max;
    c->fe->part.query_limit_closed += full;
    qn_conn_drop(c, full ? "its requests exceed client-query-buffer-limit"
                         : "no memory for a request");
}

/* `n` bytes came into what on_alloc gave. */
static void input_came(struct qn_conn *c, const uv_buf_t *buf, size_t n)
{
    if (qn_resp_holds(&c->in)) {
        qn_resp_fed(&c->in, n);
    } else {
        c->input = qn_intake_take(&c->fe->intake, n);
        c->input_len = n;
        qn_resp_feed(&c->in, (const uint8_t *)buf->base, n);
    }
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct qn_conn *c = stream->data;
    struct qn_frontend *fe = c->fe;
    if (n > 0) {
        c->bytes_in += (uint64_t)n;
        fe->part.net_input_bytes += (uint64_t)n;
        fe->reads_left -= 1 + n / QN_TURN_BYTES;
        input_came(c, buf, (size_t)n);
        if (fe->draining) {
            c->last_bytes -= QN_MIN(c->last_bytes, (size_t)n);
            if (c->last_bytes == 0) {
                hear_no_more(c);
            }
        }
        qn_frontend_ready(c);
        return;
    }
    if (n == 0) {
        return;
    }
    if (n == UV_ENOBUFS && (fe->reads_left <= 0 || !qn_resp_wants(&c->in))) {
        return;
    }
    if (n == UV_ENOBUFS) {
        drop_for_input(c);
        return;
    }
    if (n == UV_EOF) {
        /* The peer may still read: answer what it has sent, then close. */
        hear_no_more(c);
        return;
    }
    qn_conn_close(c);
}

void qn_conn_reading(struct qn_conn *c, bool on)
{
    if (c->reading == on || c->closed) {
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

/* ---- holding ------------------------------------------------------------- */

void qn_conn_hold(struct qn_conn *c, enum qn_hold why, qn_slot_t index)
{
    c->hold = why;
    c->index = index;
    c->hold_tick = qn_replica_tick(c->fe->o.replica);
}

/* Is what the connection waited for there? */
bool qn_conn_hold_over(struct qn_conn *c)
{
    struct qn_frontend *fe = c->fe;
    switch (c->hold) {
    case QN_HOLD_NONE:
    case QN_HOLD_TURN:
        return true;
    case QN_HOLD_BEHIND:
        return c->pending == 0;
    case QN_HOLD_INDEX:
        c->overdue = qn_replica_timed_out(fe->o.replica, c->hold_tick);
        (void)qn_replica_tick(fe->o.replica); /* it goes on */
        return c->overdue || qn_replica_applied(fe->o.replica) >= c->index;
    case QN_HOLD_ROOM:
        return qn_replica_can_submit(fe->o.replica) ||
               qn_replica_unavailable(fe->o.replica);
    case QN_HOLD_OUTPUT:
        return qn_conn_unsent(c) <=
               qn_replica_config(fe->o.replica)->client_output_pause / 2;
    case QN_HOLD_ANSWER:
        return false;
    }
    return false;
}
