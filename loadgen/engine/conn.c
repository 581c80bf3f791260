#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/base/random.h"
#include "loadgen/engine/conn_internal.h"

#include <assert.h>
#include <stddef.h>

/*
 * The shell around qn_client: the only decision about requests made here is
 * which connection they take.
 *
 * Why libuv's streams and not plain sockets: uv_try_write is one write, and a
 * stream's readiness costs one read, so a turn makes the same system calls as a
 * hand-made epoll loop (strace -c: one write and one read per batch, and a
 * share of one epoll_wait). uv_write, which allocates and waits for room, only
 * gets the bytes that the socket did not take at once.
 */

static_assert(sizeof(uv_buf_t) == sizeof(struct iovec) &&
                  offsetof(uv_buf_t, base) == offsetof(struct iovec, iov_base),
              "libuv promises that uv_buf_t is an iovec");

static void become_idle(struct qn_virtual_user *u)
{
    struct qn_user_pool *pool = u->pool;
    if (!u->idle) {
        u->idle = true;
        pool->idle_count++;
        if (pool->idle_count == pool->count) {
            pool->all_idle(pool);
        }
    }
}

static bool has_finished(const struct qn_virtual_user *u)
{
    return u->pool->draining ? qn_client_idle(&u->client)
                             : qn_client_done(&u->client);
}

static void on_closed(uv_handle_t *handle)
{
    struct qn_load_conn *c = handle->data;
    c->state = QN_CONN_DOWN;
    qn_virtual_user_send_due(
        c->user); /* another connection can take the requests */
}

/* Close a broken connection; its outstanding requests are lost. */
static void drop(struct qn_load_conn *c)
{
    struct qn_user_pool *pool = c->user->pool;
    if (pool->over) {
        return; /* the owner of the pool closes it */
    }
    if (c->state == QN_CONN_UP) {
        pool->stats->disconnects++;
    } else {
        c->failed = true;
    }
    c->state = QN_CONN_CLOSING;
    uv_close(&c->u.handle, on_closed);
    qn_client_lost(&c->connection, pool->stats);
    if (has_finished(c->user)) {
        become_idle(c->user);
    }
}

static void set_up(struct qn_load_conn *c)
{
    c->state = QN_CONN_UP;
    c->opened = true;
}

static void on_written(uv_write_t *req, int status);

/* Write the bytes of the connection: at once as much as the socket takes, the
 * rest when it has room. */
static void send_filled(struct qn_load_conn *c)
{
    struct iovec *iov;
    int count = qn_connection_state_bytes(&c->connection, &iov);
    if (count == 0) {
        return;
    }
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

/* If each request chooses its connection, a connection takes at most --pipeline
 * requests: a server that does not answer must not hold back requests that
 * other servers could answer. */
static bool is_full(const struct qn_load_conn *c)
{
    const struct qn_virtual_user *u = c->user;
    return u->client.task.one_by_one &&
           qn_connection_state_outstanding(&c->connection) >=
               u->pool->plan->pipeline;
}

/* Choose uniformly among the writable connections of that role; NULL if there
 * is none. */
static struct qn_load_conn *choose(struct qn_virtual_user *u, unsigned role)
{
    struct qn_load_conn *chosen = NULL;
    uint64_t usable = 0;
    for (uint32_t i = 0; i < u->conn_count; i++) {
        struct qn_load_conn *c = &u->conn[i];
        if (c->state == QN_CONN_UP && !c->writing && (c->role & role) != 0 &&
            !is_full(c)) {
            usable++;
            if (usable == 1 || qn_random_below(&u->random, usable) == 0) {
                chosen = c;
            }
        }
    }
    return chosen;
}

/* Send what is due. @return false if no connection is usable: the next one that
 * becomes usable will send. */
static bool ask(struct qn_virtual_user *u)
{
    struct qn_load_conn *reads = choose(u, QN_CONN_READS);
    struct qn_load_conn *writes =
        reads != NULL && (reads->role & QN_CONN_WRITES)
            ? reads
            : choose(u, QN_CONN_WRITES);
    if (reads == NULL && writes == NULL) {
        return false;
    }
    qn_client_fill(&u->client, qn_clock_now(),
                   reads != NULL ? &reads->connection : NULL,
                   writes != NULL ? &writes->connection : NULL);
    if (reads != NULL) {
        send_filled(reads);
    }
    if (writes != NULL && writes != reads) {
        send_filled(writes);
    }
    return true;
}

void qn_virtual_user_send_due(struct qn_virtual_user *u)
{
    if (has_finished(u)) {
        become_idle(u);
        return;
    }
    if (u->pool->draining) {
        return;
    }
    if (u->client.task.schedule == NULL) {
        if (qn_client_due(&u->client) == 0) {
            ask(u);
        }
        return;
    }
    qn_time_t now = qn_clock_now();
    while (qn_client_due(&u->client) <= now && ask(u)) {
    }
    /* If still due, no connection is writable, and the next writable one calls
     * this function. Later deadlines go to the timers. */
    qn_time_t due = qn_client_due(&u->client);
    qn_timer_heap_set(&u->pool->timers, u->place,
                      due <= now ? QN_TIME_NEVER : due);
}

bool qn_virtual_user_is_up(const struct qn_virtual_user *u)
{
    for (uint32_t i = 0; i < u->conn_count; i++) {
        if (u->conn[i].state == QN_CONN_UP) {
            return true;
        }
    }
    return false;
}

static void on_written(uv_write_t *req, int status)
{
    struct qn_load_conn *c = QN_CONTAINER_OF(req, struct qn_load_conn, write);
    c->writing = false;
    if (c->state == QN_CONN_UP || c->state == QN_CONN_GREETING) {
        if (status < 0) {
            drop(c);
        } else {
            qn_virtual_user_send_due(c->user);
        }
    }
}

static void on_alloc(uv_handle_t *handle, size_t hint, uv_buf_t *buf)
{
    (void)hint;
    struct qn_load_conn *c = handle->data;
    *buf = uv_buf_init((char *)c->user->pool->read_buf, QN_CONN_READ_BYTES);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct qn_load_conn *c = stream->data;
    struct qn_user_pool *pool = c->user->pool;
    if (n == 0) {
        return;
    }
    qn_time_t now = qn_clock_now();
    if (n < 0 || qn_client_feed(&c->connection, (const uint8_t *)buf->base,
                                (size_t)n, now, pool->stats) != QN_OK) {
        drop(c);
        return;
    }
    if (c->connection.succeeded != 0) {
        qn_unavailability_success(pool->unavailability, c->address_number,
                                  c->connection.succeeded, now);
        c->connection.succeeded = 0;
    }
    if (c->state == QN_CONN_GREETING &&
        qn_connection_state_idle(&c->connection)) {
        set_up(c);
    }
    qn_virtual_user_send_due(c->user);
}

static void on_connect(uv_connect_t *req, int status)
{
    struct qn_load_conn *c = QN_CONTAINER_OF(req, struct qn_load_conn, connect);
    if (c->state != QN_CONN_CONNECTING) {
        return; /* closed in the meantime */
    }
    if (status < 0 || uv_read_start(&c->u.stream, on_alloc, on_read) != 0) {
        drop(c);
        return;
    }
    if (!qn_address_is_unix(c->address)) {
        uv_tcp_nodelay(&c->u.tcp, 1);
    }
    if (c->user->pool->resp3) {
        c->state = QN_CONN_GREETING;
        qn_client_greet(&c->connection);
        send_filled(c);
    } else {
        set_up(c);
        qn_virtual_user_send_due(c->user);
    }
}

void qn_conn_open(struct qn_load_conn *c)
{
    struct qn_user_pool *pool = c->user->pool;
    QN_ASSERT(c->state == QN_CONN_DOWN);
    c->state = QN_CONN_CONNECTING;
    if (qn_address_is_unix(c->address)) {
        uv_pipe_init(pool->loop, &c->u.pipe, 0);
        c->u.handle.data = c;
        uv_pipe_connect(&c->connect, &c->u.pipe, qn_address_path(c->address),
                        on_connect);
    } else {
        uv_tcp_init(pool->loop, &c->u.tcp);
        c->u.handle.data = c;
        if (uv_tcp_connect(&c->connect, &c->u.tcp,
                           (const struct sockaddr *)&c->address->addr,
                           on_connect) != 0) {
            drop(c);
        }
    }
}
