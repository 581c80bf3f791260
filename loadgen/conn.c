#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/conn_internal.h"

#include <assert.h>
#include <stddef.h>

/*
 * The shell around qn_client: no decision about requests is made here.
 *
 * Why libuv's streams and not sockets of our own: uv_try_write is one write
 * and a stream's readiness costs one read, so a turn makes the system calls
 * that a hand-made epoll loop makes (strace -c: one write and one read per
 * batch, and the share of one epoll_wait). uv_write, which allocates and waits
 * for room, only gets what the socket did not take at once.
 */

static_assert(sizeof(uv_buf_t) == sizeof(struct iovec) &&
                  offsetof(uv_buf_t, base) == offsetof(struct iovec, iov_base),
              "libuv promises that uv_buf_t is an iovec");

static void rest(struct qn_conn *c)
{
    struct qn_crew *crew = c->crew;
    if (!c->resting) {
        c->resting = true;
        crew->resting++;
        if (crew->resting == crew->count) {
            crew->all_rest(crew);
        }
    }
}

static void on_closed(uv_handle_t *handle)
{
    struct qn_conn *c = handle->data;
    c->state = QN_CONN_DOWN;
}

/* The connection is of no more use: what was asked is lost. */
static void drop(struct qn_conn *c)
{
    struct qn_crew *crew = c->crew;
    if (crew->over) {
        return; /* its owner closes it */
    }
    if (c->state == QN_CONN_UP) {
        crew->stats->disconnects++;
    }
    c->state = QN_CONN_CLOSING;
    uv_close(&c->u.handle, on_closed);
    qn_client_lost(&c->client, crew->stats);
    if (crew->draining || qn_client_done(&c->client)) {
        rest(c);
    }
}

static void on_written(uv_write_t *req, int status);

/* Write a batch: at once what the socket takes, the rest when it has room. */
static void send_batch(struct qn_conn *c, struct iovec *iov, int count)
{
    uv_buf_t *buf = (uv_buf_t *)iov;
    int did = uv_try_write(&c->u.stream, buf, (unsigned)count);
    if (did < 0 && did != UV_EAGAIN) {
        drop(c);
        return;
    }
    size_t skip = did < 0 ? 0 : (size_t)did;
    while (count > 0 && skip >= buf->len) {
        skip -= buf->len;
        buf++;
        count--;
    }
    if (count == 0) {
        return;
    }
    buf->base += skip;
    buf->len -= skip;
    c->writing = true;
    if (uv_write(&c->write, &c->u.stream, buf, (unsigned)count, on_written)) {
        c->writing = false;
        drop(c);
    }
}

void qn_conn_pump(struct qn_conn *c)
{
    struct qn_crew *crew = c->crew;
    if (c->writing || !qn_client_idle(&c->client)) {
        return;
    }
    if (crew->draining || qn_client_done(&c->client)) {
        rest(c);
    } else if (c->state == QN_CONN_UP) {
        struct iovec *iov;
        int count;
        qn_client_fill(&c->client, qn_clock_now(), &iov, &count);
        send_batch(c, iov, count);
    }
}

static void on_written(uv_write_t *req, int status)
{
    struct qn_conn *c = QN_CONTAINER_OF(req, struct qn_conn, write);
    c->writing = false;
    if (c->state == QN_CONN_UP || c->state == QN_CONN_GREETING) {
        if (status < 0) {
            drop(c);
        } else {
            qn_conn_pump(c);
        }
    }
}

static void on_alloc(uv_handle_t *handle, size_t hint, uv_buf_t *buf)
{
    (void)hint;
    struct qn_conn *c = handle->data;
    *buf = uv_buf_init((char *)c->crew->read_buf, QN_CONN_READ_BYTES);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct qn_conn *c = stream->data;
    if (n == 0) {
        return;
    }
    if (n < 0 ||
        qn_client_feed(&c->client, (const uint8_t *)buf->base, (size_t)n,
                       qn_clock_now(), c->crew->stats) != QN_OK) {
        drop(c);
        return;
    }
    if (qn_client_idle(&c->client)) {
        c->state =
            QN_CONN_UP; /* at the latest: the greeting was the first batch */
        qn_conn_pump(c);
    }
}

static void on_connect(uv_connect_t *req, int status)
{
    struct qn_conn *c = QN_CONTAINER_OF(req, struct qn_conn, connect);
    if (c->state != QN_CONN_CONNECTING) {
        return; /* closed meanwhile */
    }
    if (status < 0 || uv_read_start(&c->u.stream, on_alloc, on_read) != 0) {
        drop(c);
        return;
    }
    if (!qn_address_is_unix(c->address)) {
        uv_tcp_nodelay(&c->u.tcp, 1);
    }
    if (c->crew->resp3) {
        struct iovec *iov;
        int count;
        c->state = QN_CONN_GREETING;
        qn_client_greet(&c->client, qn_clock_now(), &iov, &count);
        send_batch(c, iov, count);
    } else {
        c->state = QN_CONN_UP;
        qn_conn_pump(c);
    }
}

void qn_conn_open(struct qn_conn *c)
{
    struct qn_crew *crew = c->crew;
    QN_ASSERT(c->state == QN_CONN_DOWN);
    c->state = QN_CONN_CONNECTING;
    if (qn_address_is_unix(c->address)) {
        uv_pipe_init(crew->loop, &c->u.pipe, 0);
        c->u.handle.data = c;
        uv_pipe_connect(&c->connect, &c->u.pipe, qn_address_path(c->address),
                        on_connect);
    } else {
        uv_tcp_init(crew->loop, &c->u.tcp);
        c->u.handle.data = c;
        if (uv_tcp_connect(&c->connect, &c->u.tcp,
                           (const struct sockaddr *)&c->address->addr,
                           on_connect) != 0) {
            drop(c);
        }
    }
}
