#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/base/random.h"
#include "loadgen/engine/conn_internal.h"

#include <assert.h>
#include <stddef.h>

/*
 * The shell around qn_client: no decision about requests is made here but for
 * the connection that they take.
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

static void rest(struct qn_user *u)
{
    struct qn_crew *crew = u->crew;
    if (!u->resting) {
        u->resting = true;
        crew->resting++;
        if (crew->resting == crew->count) {
            crew->all_rest(crew);
        }
    }
}

static bool has_finished(const struct qn_user *u)
{
    return u->crew->draining ? qn_client_idle(&u->client)
                             : qn_client_done(&u->client);
}

static void on_closed(uv_handle_t *handle)
{
    struct qn_load_conn *c = handle->data;
    c->state = QN_CONN_DOWN;
    qn_user_pump(c->user); /* another connection may take over */
}

/* The connection is of no more use: what was asked on it is lost. */
static void drop(struct qn_load_conn *c)
{
    struct qn_crew *crew = c->user->crew;
    if (crew->over) {
        return; /* its owner closes it */
    }
    if (c->state == QN_CONN_UP) {
        crew->stats->disconnects++;
    } else {
        c->failed = true;
    }
    c->state = QN_CONN_CLOSING;
    uv_close(&c->u.handle, on_closed);
    qn_client_lost(&c->lane, crew->stats);
    if (has_finished(c->user)) {
        rest(c->user);
    }
}

static void set_up(struct qn_load_conn *c)
{
    c->state = QN_CONN_UP;
    c->opened = true;
}

static void on_written(uv_write_t *req, int status);

/* Write what the lane holds: at once what the socket takes, the rest when it
 * has room. */
static void send_filled(struct qn_load_conn *c)
{
    struct iovec *iov;
    int count = qn_connection_state_bytes(&c->lane, &iov);
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

/* Where each request chooses, a connection takes no more than --pipeline: a
 * server that is silent does not hold back what others could answer. */
static bool is_full(const struct qn_load_conn *c)
{
    const struct qn_user *u = c->user;
    return u->client.task.one_by_one &&
           qn_connection_state_outstanding(&c->lane) >= u->crew->plan->pipeline;
}

/* A connection of that role that can be written to, any of them with the same
 * chance; NULL if there is none. */
static struct qn_load_conn *choose(struct qn_user *u, unsigned role)
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

/* @return false if there is no connection for it: whichever is usable next
 * will ask. */
static bool ask(struct qn_user *u)
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
                   reads != NULL ? &reads->lane : NULL,
                   writes != NULL ? &writes->lane : NULL);
    if (reads != NULL) {
        send_filled(reads);
    }
    if (writes != NULL && writes != reads) {
        send_filled(writes);
    }
    return true;
}

void qn_user_pump(struct qn_user *u)
{
    if (has_finished(u)) {
        rest(u);
        return;
    }
    if (u->crew->draining) {
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
    /* Still due at that time: no connection can be written to, and the next one
     * that can will pump. What has become due since is on the agenda. */
    qn_time_t due = qn_client_due(&u->client);
    qn_agenda_set(&u->crew->agenda, u->place, due <= now ? QN_TIME_NEVER : due);
}

bool qn_user_is_up(const struct qn_user *u)
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
            qn_user_pump(c->user);
        }
    }
}

static void on_alloc(uv_handle_t *handle, size_t hint, uv_buf_t *buf)
{
    (void)hint;
    struct qn_load_conn *c = handle->data;
    *buf = uv_buf_init((char *)c->user->crew->read_buf, QN_CONN_READ_BYTES);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct qn_load_conn *c = stream->data;
    struct qn_crew *crew = c->user->crew;
    if (n == 0) {
        return;
    }
    qn_time_t now = qn_clock_now();
    if (n < 0 || qn_client_feed(&c->lane, (const uint8_t *)buf->base, (size_t)n,
                                now, crew->stats) != QN_OK) {
        drop(c);
        return;
    }
    if (c->lane.succeeded != 0) {
        qn_silence_success(crew->silence, c->address_number, c->lane.succeeded,
                           now);
        c->lane.succeeded = 0;
    }
    if (c->state == QN_CONN_GREETING && qn_connection_state_idle(&c->lane)) {
        set_up(c);
    }
    qn_user_pump(c->user);
}

static void on_connect(uv_connect_t *req, int status)
{
    struct qn_load_conn *c = QN_CONTAINER_OF(req, struct qn_load_conn, connect);
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
    if (c->user->crew->resp3) {
        c->state = QN_CONN_GREETING;
        qn_client_greet(&c->lane);
        send_filled(c);
    } else {
        set_up(c);
        qn_user_pump(c->user);
    }
}

void qn_conn_open(struct qn_load_conn *c)
{
    struct qn_crew *crew = c->user->crew;
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
