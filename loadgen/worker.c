#include "loadgen/worker.h"

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/conn_internal.h"
#include "loadgen/random.h"

#include <stdlib.h>

/*
 * Phases of a worker, and what ends them:
 *
 *     PRELOAD  all shares are stored; then all workers meet
 *     WARMUP   the timer
 *     SETTLE   all replies have come (only if requests are counted)
 *     MEASURE  the timer, or all counted requests are answered
 *     DRAIN    all replies have come, or the grace is over
 *     OVER     every handle is closed
 */

enum phase { PRELOAD, WARMUP, SETTLE, MEASURE, DRAIN, OVER };

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
    struct qn_crew crew;
    struct qn_conn *conn; /* [crew.count] */
};

static void stop_early(struct qn_worker *w);

static void on_retry(uv_timer_t *timer)
{
    struct qn_worker *w = timer->data;
    uint32_t up = 0;
    for (uint32_t i = 0; i < w->crew.count && w->phase < DRAIN; i++) {
        up += w->conn[i].state == QN_CONN_UP;
        if (w->conn[i].state == QN_CONN_DOWN) {
            qn_conn_open(&w->conn[i]);
        }
    }
    w->dead_ticks = up > 0 ? 0 : w->dead_ticks + 1;
    bool timed = w->phase != PRELOAD && w->plan->requests == 0;
    if (!timed && w->phase < DRAIN &&
        w->dead_ticks > QN_WORKER_GIVE_UP_MS / QN_WORKER_RETRY_MS) {
        stop_early(w);
    }
}

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
    w->crew.resting = 0;
    for (uint32_t i = 0; i < w->crew.count; i++) {
        w->conn[i].resting = false;
    }
    for (uint32_t i = 0; i < w->crew.count; i++) {
        qn_conn_pump(&w->conn[i]);
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
    w->crew.over = true;
    uint64_t unanswered = w->stats->unanswered;
    qn_stats_clear(w->stats); /* replies that came after the end */
    w->stats->unanswered = unanswered;
    for (uint32_t i = 0; i < w->crew.count; i++) {
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
    w->crew.draining = true;
    w->crew.resting = 0;
    for (uint32_t i = 0; i < w->crew.count; i++) {
        struct qn_conn *c = &w->conn[i];
        c->resting = c->state != QN_CONN_UP || qn_client_idle(&c->client);
        w->crew.resting += c->resting;
    }
    if (w->crew.resting == w->crew.count) {
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
        for (uint32_t i = 0; i < w->crew.count; i++) {
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
    for (uint32_t i = 0; i < w->crew.count; i++) {
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
    for (uint32_t i = 0; i < w->crew.count; i++) {
        qn_client_begin(&w->conn[i].client, &task);
    }
    set_timer(w, plan->measure_from);
    wake_all(w);
}

static void on_all_rest(struct qn_crew *crew)
{
    struct qn_worker *w = QN_CONTAINER_OF(crew, struct qn_worker, crew);
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
    w->crew = (struct qn_crew){
        .loop = &w->loop,
        .stats = w->stats,
        .read_buf = malloc(QN_CONN_READ_BYTES),
        .resp3 = plan->resp3,
        .count = (uint32_t)share(plan->connections, w->index, plan->threads),
        .all_rest = on_all_rest,
    };
    w->conn = calloc(w->crew.count, sizeof *w->conn);
    if (w->conn == NULL || w->crew.read_buf == NULL) {
        return QN_ENOMEM;
    }
    for (uint32_t i = 0; i < w->crew.count; i++) {
        struct qn_conn *c = &w->conn[i];
        uint32_t number = client_number(w, i);
        struct qn_client_task task = preload_task(w, number);
        uint64_t seed = plan->seed + number;
        const struct qn_client_opts opts = {
            .workload = plan->workload,
            .depth_max = QN_MAX(plan->pipeline, task.depth),
            .seed = qn_random_next(&seed), /* neighbours share nothing */
        };
        c->crew = &w->crew;
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
    for (uint32_t i = 0; w->conn != NULL && i < w->crew.count; i++) {
        qn_client_fini(&w->conn[i].client);
    }
    free(w->conn);
    free(w->stats);
    free(w->crew.read_buf);
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
    if (w->stats == NULL || make_conns(w) != QN_OK) {
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
