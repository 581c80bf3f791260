#include "loadgen/worker.h"

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/client.h"
#include "loadgen/random.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

/*
 * The shell around qn_client: sockets and time, no decisions about requests.
 *
 * Why libuv's streams and not sockets of our own: uv_try_write is one write
 * and a stream's readiness costs one read, so a turn makes the system calls
 * that a hand-made epoll loop makes. uv_write, which allocates and waits for
 * room, only gets what the socket did not take at once.
 *
 * All clients of a loop read into one buffer: it is parsed before the next
 * read, and stays in the cache.
 *
 * Phases of a worker, and what ends them:
 *
 *     PRELOAD  all shares are stored; then all workers meet
 *     WARMUP   the timer
 *     SETTLE   all replies have come (only if requests are counted)
 *     MEASURE  the timer, or all counted requests are answered
 *     DRAIN    all replies have come, or the grace is over
 *     OVER     every handle is closed
 */

enum { READ_BYTES = 256 * 1024 };

static_assert(sizeof(uv_buf_t) == sizeof(struct iovec) &&
                  offsetof(uv_buf_t, base) == offsetof(struct iovec, iov_base),
              "libuv promises that uv_buf_t is an iovec");

enum phase { PRELOAD, WARMUP, SETTLE, MEASURE, DRAIN, OVER };

enum conn_state { DOWN, CONNECTING, GREETING, UP, CLOSING };

struct conn {
    struct qn_worker *worker;
    const struct qn_address *address;
    struct qn_client client;
    enum conn_state state;
    bool resting; /* its task is done */
    bool writing; /* libuv still holds a part of the batch */
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } u;
    uv_connect_t connect;
    uv_write_t write;
};

struct qn_worker {
    const struct qn_worker_plan *plan;
    uint32_t index;
    enum phase phase;
    bool stopping; /* asked to end early */
    uv_loop_t loop;
    uv_async_t stop;
    uv_timer_t timer; /* end of the phase, and each second of MEASURE */
    uv_timer_t retry; /* opens what is DOWN */
    qn_time_t measure_end;
    uint64_t seconds;    /* of MEASURE that were handed in */
    uint64_t dead_ticks; /* of `retry`, without a connection */
    struct qn_stats *stats;
    uint8_t *read_buf; /* [READ_BYTES] */
    uint32_t conn_count;
    uint32_t resting;  /* connections */
    struct conn *conn; /* [conn_count] */
};

static void all_rest(struct qn_worker *w);

/* ---- one connection ---- */

static void rest(struct conn *c)
{
    struct qn_worker *w = c->worker;
    if (!c->resting) {
        c->resting = true;
        w->resting++;
        if (w->resting == w->conn_count) {
            all_rest(w);
        }
    }
}

static void on_closed(uv_handle_t *handle)
{
    struct conn *c = handle->data;
    c->state = DOWN;
}

/* The connection is of no more use: what was asked is lost. */
static void drop(struct conn *c)
{
    struct qn_worker *w = c->worker;
    if (w->phase == OVER) {
        return; /* closed by `finish` */
    }
    if (c->state == UP) {
        w->stats->disconnects++;
    }
    c->state = CLOSING;
    uv_close(&c->u.handle, on_closed);
    qn_client_lost(&c->client, w->stats);
    if (w->phase == DRAIN || qn_client_done(&c->client)) {
        rest(c);
    }
}

static void on_written(uv_write_t *req, int status);

/* Write a batch: at once what the socket takes, the rest when it has room. */
static void send_batch(struct conn *c, struct iovec *iov, int count)
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

/* Ask on, if the last batch is answered and there is something to ask. */
static void pump(struct conn *c)
{
    struct qn_worker *w = c->worker;
    if (c->writing || !qn_client_idle(&c->client)) {
        return;
    }
    if (w->phase >= DRAIN || qn_client_done(&c->client)) {
        rest(c);
    } else if (c->state == UP) {
        struct iovec *iov;
        int count;
        qn_client_fill(&c->client, qn_clock_now(), &iov, &count);
        send_batch(c, iov, count);
    }
}

static void on_written(uv_write_t *req, int status)
{
    struct conn *c = QN_CONTAINER_OF(req, struct conn, write);
    c->writing = false;
    if (c->state == UP || c->state == GREETING) {
        if (status < 0) {
            drop(c);
        } else {
            pump(c);
        }
    }
}

static void on_alloc(uv_handle_t *handle, size_t hint, uv_buf_t *buf)
{
    (void)hint;
    struct conn *c = handle->data;
    *buf = uv_buf_init((char *)c->worker->read_buf, READ_BYTES);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct conn *c = stream->data;
    if (n == 0) {
        return;
    }
    if (n < 0 ||
        qn_client_feed(&c->client, (const uint8_t *)buf->base, (size_t)n,
                       qn_clock_now(), c->worker->stats) != QN_OK) {
        drop(c);
        return;
    }
    if (qn_client_idle(&c->client)) {
        c->state = UP; /* at the latest: the greeting was the first batch */
        pump(c);
    }
}

static void on_connect(uv_connect_t *req, int status)
{
    struct conn *c = QN_CONTAINER_OF(req, struct conn, connect);
    if (c->state != CONNECTING) {
        return; /* closed meanwhile */
    }
    if (status < 0 || uv_read_start(&c->u.stream, on_alloc, on_read) != 0) {
        drop(c);
        return;
    }
    if (!qn_address_is_unix(c->address)) {
        uv_tcp_nodelay(&c->u.tcp, 1);
    }
    if (c->worker->plan->resp3) {
        struct iovec *iov;
        int count;
        c->state = GREETING;
        qn_client_greet(&c->client, qn_clock_now(), &iov, &count);
        send_batch(c, iov, count);
    } else {
        c->state = UP;
        pump(c);
    }
}

static void open_conn(struct conn *c)
{
    struct qn_worker *w = c->worker;
    QN_ASSERT(c->state == DOWN);
    c->state = CONNECTING;
    if (qn_address_is_unix(c->address)) {
        uv_pipe_init(&w->loop, &c->u.pipe, 0);
        c->u.handle.data = c;
        uv_pipe_connect(&c->connect, &c->u.pipe, qn_address_path(c->address),
                        on_connect);
    } else {
        uv_tcp_init(&w->loop, &c->u.tcp);
        c->u.handle.data = c;
        if (uv_tcp_connect(&c->connect, &c->u.tcp,
                           (const struct sockaddr *)&c->address->addr,
                           on_connect) != 0) {
            drop(c);
        }
    }
}

static void stop_early(struct qn_worker *w);

static void on_retry(uv_timer_t *timer)
{
    struct qn_worker *w = timer->data;
    uint32_t up = 0;
    for (uint32_t i = 0; i < w->conn_count && w->phase < DRAIN; i++) {
        up += w->conn[i].state == UP;
        if (w->conn[i].state == DOWN) {
            open_conn(&w->conn[i]);
        }
    }
    w->dead_ticks = up > 0 ? 0 : w->dead_ticks + 1;
    bool timed = w->phase != PRELOAD && w->plan->requests == 0;
    if (!timed && w->phase < DRAIN &&
        w->dead_ticks > QN_WORKER_GIVE_UP_MS / QN_WORKER_RETRY_MS) {
        stop_early(w);
    }
}

/* ---- the phases ---- */

/* The i-th client of this worker, counted over all of them. */
static uint32_t client_number(const struct qn_worker *w, uint32_t i)
{
    return w->index + i * w->plan->threads;
}

/* The share of `total` that client `number` of `clients` gets. */
static uint64_t share(uint64_t total, uint32_t number, uint32_t clients)
{
    return total / clients + (number < total % clients);
}

static struct qn_client_task preload_task(const struct qn_worker *w,
                                          uint32_t number)
{
    const struct qn_workload_opts *o = &w->plan->workload->opts;
    uint32_t clients = w->plan->connections;
    uint64_t fit = QN_WORKER_PRELOAD_BYTES / (o->key_size + o->value_size + 1);
    fit = QN_MAX(fit, (uint64_t)1);
    return (struct qn_client_task){
        .depth = (uint32_t)QN_MIN(fit, (uint64_t)QN_WORKER_PRELOAD_DEPTH),
        .requests = w->plan->preload ? share(o->keys, number, clients) : 0,
        .preload = true,
        .first_key = number,
        .step = clients,
    };
}

static struct qn_client_task mix_task(const struct qn_worker *w,
                                      uint64_t requests)
{
    return (struct qn_client_task){.depth = w->plan->pipeline,
                                   .requests = requests};
}

/* Everybody back to work. */
static void wake_all(struct qn_worker *w)
{
    w->resting = 0;
    for (uint32_t i = 0; i < w->conn_count; i++) {
        w->conn[i].resting = false;
    }
    for (uint32_t i = 0; i < w->conn_count; i++) {
        pump(&w->conn[i]);
    }
}

static void on_timer(uv_timer_t *timer);

static void set_timer(struct qn_worker *w, qn_time_t at)
{
    uv_update_time(&w->loop);
    qn_time_t now = qn_clock_now();
    uint64_t ms = at > now ? (at - now + QN_MS - 1) / QN_MS : 0;
    uv_timer_start(&w->timer, on_timer, ms, 0);
}

static void set_next_second(struct qn_worker *w)
{
    qn_time_t next = w->plan->measure_from + (w->seconds + 1) * QN_S;
    set_timer(w, QN_MIN(next, w->plan->measure_to));
}

static void close_handle(uv_handle_t *handle, void *worker)
{
    struct qn_worker *w = worker;
    if (handle != (uv_handle_t *)&w->stop && !uv_is_closing(handle)) {
        uv_close(handle, NULL);
    }
}

/* Count what never came home, hand in, and let the loop run empty. */
static void finish(struct qn_worker *w)
{
    w->phase = OVER;
    qn_stats_clear(w->stats);
    for (uint32_t i = 0; i < w->conn_count; i++) {
        qn_client_lost(&w->conn[i].client, w->stats);
    }
    qn_collect_hand_in(w->plan->measured, w->stats, w->measure_end, true);
    uv_walk(&w->loop, close_handle, w);
}

static void end_measure(struct qn_worker *w)
{
    w->measure_end = qn_clock_now();
    qn_collect_hand_in(w->plan->measured, w->stats, w->measure_end, false);
    w->phase = DRAIN;
    w->resting = 0;
    for (uint32_t i = 0; i < w->conn_count; i++) {
        struct conn *c = &w->conn[i];
        c->resting = c->state != UP || qn_client_idle(&c->client);
        w->resting += c->resting;
    }
    if (w->resting == w->conn_count) {
        finish(w);
    } else {
        uv_timer_start(&w->timer, on_timer, QN_WORKER_GRACE_MS, 0);
    }
}

static void begin_measure(struct qn_worker *w)
{
    const struct qn_worker_plan *plan = w->plan;
    qn_stats_clear(w->stats);
    qn_collect_hand_in(plan->measured, w->stats, qn_clock_now(), false);
    w->phase = MEASURE;
    if (w->stopping) {
        end_measure(w);
        return;
    }
    set_next_second(w);
    if (plan->requests > 0) {
        for (uint32_t i = 0; i < w->conn_count; i++) {
            struct qn_client_task task =
                mix_task(w, share(plan->requests, client_number(w, i),
                                  plan->connections));
            qn_client_begin(&w->conn[i].client, &task);
        }
        wake_all(w);
    }
}

/* Counted requests begin when the warm-up's are all answered. */
static void end_warmup(struct qn_worker *w)
{
    if (w->plan->requests == 0 || w->stopping) {
        begin_measure(w);
        return;
    }
    w->phase = SETTLE;
    for (uint32_t i = 0; i < w->conn_count; i++) {
        struct qn_client_task none = mix_task(w, 0);
        qn_client_begin(&w->conn[i].client, &none);
    }
    wake_all(w);
}

static void end_preload(struct qn_worker *w)
{
    const struct qn_worker_plan *plan = w->plan;
    qn_collect_hand_in(plan->preloaded, w->stats, qn_clock_now(), true);
    pthread_barrier_wait(plan->start);
    if (w->stopping) {
        begin_measure(w);
        return;
    }
    w->phase = WARMUP;
    bool warm = plan->requests == 0 || plan->measure_from > qn_clock_now();
    struct qn_client_task task = mix_task(w, warm ? UINT64_MAX : 0);
    for (uint32_t i = 0; i < w->conn_count; i++) {
        qn_client_begin(&w->conn[i].client, &task);
    }
    set_timer(w, plan->measure_from);
    wake_all(w);
}

static void all_rest(struct qn_worker *w)
{
    switch (w->phase) {
    case PRELOAD:
        end_preload(w);
        break;
    case SETTLE:
        begin_measure(w);
        break;
    case MEASURE:
        end_measure(w);
        break;
    case DRAIN:
        finish(w);
        break;
    case WARMUP:
    case OVER:
        break;
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct qn_worker *w = timer->data;
    qn_time_t now = qn_clock_now();
    switch (w->phase) {
    case PRELOAD:
        qn_collect_hand_in(w->plan->preloaded, w->stats, now, false);
        set_timer(w, now + QN_S);
        break;
    case WARMUP:
        end_warmup(w);
        break;
    case MEASURE:
        w->seconds++;
        if (w->plan->measure_from + w->seconds * QN_S >= w->plan->measure_to) {
            end_measure(w);
        } else {
            qn_collect_hand_in(w->plan->measured, w->stats, now, false);
            set_next_second(w);
        }
        break;
    case DRAIN:
        finish(w);
        break;
    case SETTLE:
    case OVER:
        break;
    }
}

static void stop_early(struct qn_worker *w)
{
    w->stopping = true;
    switch (w->phase) {
    case PRELOAD:
        end_preload(w);
        break;
    case WARMUP:
    case SETTLE:
        begin_measure(w);
        break;
    case MEASURE:
        end_measure(w);
        break;
    case DRAIN:
        finish(w);
        break;
    case OVER:
        break;
    }
}

static void on_stop(uv_async_t *async)
{
    stop_early(async->data);
}

/* ---- life ---- */

static int make_conns(struct qn_worker *w)
{
    const struct qn_worker_plan *plan = w->plan;
    w->conn_count = (uint32_t)share(plan->connections, w->index, plan->threads);
    w->conn = calloc(w->conn_count, sizeof *w->conn);
    if (w->conn == NULL) {
        return QN_ENOMEM;
    }
    for (uint32_t i = 0; i < w->conn_count; i++) {
        struct conn *c = &w->conn[i];
        uint32_t number = client_number(w, i);
        struct qn_client_task task = preload_task(w, number);
        uint64_t seed = plan->seed + number;
        const struct qn_client_opts opts = {
            .workload = plan->workload,
            .depth_max = QN_MAX(plan->pipeline, task.depth),
            .seed = qn_random_next(&seed), /* neighbours share nothing */
        };
        c->worker = w;
        c->address = &plan->address[number % plan->address_count];
        if (qn_client_init(&c->client, &opts) != QN_OK) {
            return QN_ENOMEM;
        }
        qn_client_begin(&c->client, &task);
    }
    return QN_OK;
}

static void free_memory(struct qn_worker *w)
{
    for (uint32_t i = 0; w->conn != NULL && i < w->conn_count; i++) {
        qn_client_fini(&w->conn[i].client);
    }
    free(w->conn);
    free(w->stats);
    free(w->read_buf);
    free(w);
}

int qn_worker_create(struct qn_worker **out, const struct qn_worker_plan *plan,
                     uint32_t index)
{
    QN_ASSERT(index < plan->threads && plan->threads <= plan->connections);
    struct qn_worker *w = calloc(1, sizeof *w);
    if (w == NULL) {
        return QN_ENOMEM;
    }
    w->plan = plan;
    w->index = index;
    w->stats = calloc(1, sizeof *w->stats);
    w->read_buf = malloc(READ_BYTES);
    if (w->stats == NULL || w->read_buf == NULL || make_conns(w) != QN_OK) {
        free_memory(w);
        return QN_ENOMEM;
    }
    if (uv_loop_init(&w->loop) != 0) {
        free_memory(w);
        return QN_EMFILE;
    }
    /* Stays open until destroy, so that a signal may come at any time, but
     * does not keep the loop alive. */
    if (uv_async_init(&w->loop, &w->stop, on_stop) != 0) {
        uv_loop_close(&w->loop);
        free_memory(w);
        return QN_EMFILE;
    }
    w->stop.data = w;
    uv_unref((uv_handle_t *)&w->stop);
    *out = w;
    return QN_OK;
}

void qn_worker_destroy(struct qn_worker *w)
{
    if (w == NULL) {
        return;
    }
    uv_close((uv_handle_t *)&w->stop, NULL);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    int busy = uv_loop_close(&w->loop);
    QN_ASSERT(busy == 0);
    free_memory(w);
}

void qn_worker_run(struct qn_worker *w)
{
    uv_timer_init(&w->loop, &w->timer);
    uv_timer_init(&w->loop, &w->retry);
    w->timer.data = w;
    w->retry.data = w;
    set_timer(w, qn_clock_now() + QN_S);
    uv_timer_start(&w->retry, on_retry, QN_WORKER_RETRY_MS, QN_WORKER_RETRY_MS);
    on_retry(&w->retry);
    wake_all(w); /* without a preload, that was it */
    uv_run(&w->loop, UV_RUN_DEFAULT);
    QN_ASSERT(w->phase == OVER);
}

void qn_worker_stop(struct qn_worker *w)
{
    uv_async_send(&w->stop);
}
