#include "loadgen/engine/worker.h"

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/engine/send_timer_internal.h"
#include "loadgen/engine/user_pool_internal.h"

#include <sched.h>
#include <stdlib.h>

/*
 * Phases of a worker, and what ends each of them:
 *
 *     PRELOAD  all keys of its share are stored; then all workers meet
 *     WARMUP   the timer
 *     SETTLE   all replies have arrived (only if requests are counted)
 *     MEASURE  the timer; or all counted requests are answered; or the history
 *              has no more room
 *     DRAIN    all replies have arrived, or the grace period has expired
 *     OVER     every handle is closed
 */

enum phase { PRELOAD, WARMUP, SETTLE, MEASURE, DRAIN, OVER };

struct qn_worker {
    const struct qn_worker_plan *plan;
    uint32_t index;
    enum phase phase;
    bool stopping; /* told to end early */
    uv_loop_t loop;
    uv_async_t stop;
    uv_timer_t timer; /* end of the phase, and each second of MEASURE */
    uv_timer_t retry; /* opens connections that are DOWN */
    struct qn_send_timer alarm; /* lets users send when they are due */
    qn_time_t measure_end;
    uint64_t hand_ins;   /* hand-ins of MEASURE, one per interval */
    uint64_t unsent;     /* requests due at measure_end and not sent */
    uint64_t dead_ticks; /* ticks of `retry` during which no user with work had
                            a connection */
    struct qn_stats *stats;
    struct qn_user_pool pool;
};

static void stop_early(struct qn_worker *w);

static void on_retry(uv_timer_t *timer)
{
    struct qn_worker *w = timer->data;
    uint32_t up = 0;
    for (uint32_t i = 0; i < w->pool.conn_count && w->phase < DRAIN; i++) {
        struct qn_load_conn *c = &w->pool.conn[i];
        up += c->state == QN_CONN_UP && !c->user->idle;
        if (c->state == QN_CONN_DOWN) {
            qn_conn_open(c);
        }
    }
    w->dead_ticks = up > 0 ? 0 : w->dead_ticks + 1;
    bool timed = w->phase != PRELOAD && w->plan->requests == 0;
    if (!timed && w->phase < DRAIN &&
        w->dead_ticks > QN_WORKER_GIVE_UP_MS / QN_WORKER_RETRY_MS) {
        stop_early(w);
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

static void set_next_hand_in(struct qn_worker *w)
{
    qn_time_t next =
        w->plan->measure_from + (w->hand_ins + 1) * w->plan->interval;
    set_timer(w, QN_MIN(next, w->plan->measure_to));
}

static void close_handle(uv_handle_t *handle, void *worker)
{
    struct qn_worker *w = worker;
    if (handle != (uv_handle_t *)&w->stop && !uv_is_closing(handle)) {
        uv_close(handle, NULL);
    }
}

/* Count the requests without a reply, hand in, and let the loop run empty. */
static void finish(struct qn_worker *w)
{
    w->phase = OVER;
    w->pool.over = true;
    uint64_t unanswered = w->stats->unanswered;
    qn_stats_clear(w->stats); /* drop replies that arrived after the end */
    w->stats->unanswered = unanswered;
    for (uint32_t i = 0; i < w->pool.conn_count; i++) {
        qn_client_lost(&w->pool.conn[i].connection, w->stats);
    }
    w->stats->unsent = w->unsent;
    w->stats->spent = qn_user_pool_spent(&w->pool);
    qn_stats_sink_hand_in(w->plan->measured, w->stats, w->measure_end, true);
    uv_walk(&w->loop, close_handle, w);
}

static void hand_in(struct qn_worker *w, struct qn_stats_sink *to,
                    qn_time_t now)
{
    uint64_t unsent;
    w->stats->waiting =
        qn_user_pool_outstanding(&w->pool, now, &unsent) + unsent;
    qn_stats_sink_hand_in(to, w->stats, now, false);
}

static void end_measure(struct qn_worker *w)
{
    const struct qn_worker_plan *plan = w->plan;
    w->measure_end = qn_clock_now();
    w->stats->raw = NULL;
    qn_user_pool_outstanding(&w->pool, QN_MIN(w->measure_end, plan->measure_to),
                             &w->unsent);
    hand_in(w, plan->measured, w->measure_end);
    w->phase = DRAIN;
    w->pool.draining = true;
    w->pool.idle_count = 0;
    for (uint32_t i = 0; i < w->pool.count; i++) {
        struct qn_virtual_user *u = &w->pool.user[i];
        qn_timer_heap_set(&w->pool.timers, i, QN_TIME_NEVER);
        u->idle = !qn_virtual_user_is_up(u) || qn_client_idle(&u->client);
        w->pool.idle_count += u->idle;
    }
    if (w->pool.idle_count == w->pool.count) {
        finish(w);
    } else {
        uv_timer_start(&w->timer, on_timer, QN_WORKER_GRACE_MS, 0);
    }
}

static void begin_measure(struct qn_worker *w)
{
    const struct qn_worker_plan *plan = w->plan;
    qn_time_t now = qn_clock_now();
    qn_stats_sink_hand_in(plan->warmed, w->stats, now, true);
    w->stats->raw = plan->raw;
    qn_stats_sink_hand_in(plan->measured, w->stats, now, false);
    w->phase = MEASURE;
    bool spent = plan->requests == 0 && w->pool.idle_count == w->pool.count;
    if (w->stopping || spent) {
        end_measure(w);
        return;
    }
    set_next_hand_in(w);
    if (plan->requests > 0) {
        for (uint32_t i = 0; i < w->pool.count; i++) {
            qn_user_pool_begin(&w->pool, i, plan->requests, now);
        }
        qn_user_pool_wake(&w->pool);
    }
}

/* Counted requests begin when all requests of the warm-up are answered. */
static void end_warmup(struct qn_worker *w)
{
    if (w->plan->requests == 0 || w->stopping) {
        begin_measure(w);
        return;
    }
    w->phase = SETTLE;
    for (uint32_t i = 0; i < w->pool.count; i++) {
        qn_user_pool_begin(&w->pool, i, 0, 0);
    }
    qn_user_pool_wake(&w->pool);
}

static void end_preload(struct qn_worker *w)
{
    const struct qn_worker_plan *plan = w->plan;
    qn_stats_sink_hand_in(plan->preloaded, w->stats, qn_clock_now(), true);
    pthread_barrier_wait(plan->start);
    if (w->stopping) {
        begin_measure(w);
        return;
    }
    w->phase = WARMUP;
    qn_stats_sink_hand_in(plan->warmed, w->stats, qn_clock_now(), false);
    bool warm = plan->requests == 0 || plan->measure_from > qn_clock_now();
    for (uint32_t i = 0; i < w->pool.count; i++) {
        qn_user_pool_begin(&w->pool, i, warm ? UINT64_MAX : 0, plan->warm_from);
    }
    set_timer(w, plan->measure_from);
    qn_user_pool_wake(&w->pool);
}

/* The next phase, whatever the present one has still to do. */
static void end_phase(struct qn_worker *w)
{
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

static void on_all_idle(struct qn_user_pool *pool)
{
    struct qn_worker *w = QN_CONTAINER_OF(pool, struct qn_worker, pool);
    if (w->phase != WARMUP) { /* which ends by the clock */
        end_phase(w);
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct qn_worker *w = timer->data;
    qn_time_t now = qn_clock_now();
    switch (w->phase) {
    case PRELOAD:
        hand_in(w, w->plan->preloaded, now);
        set_timer(w, now + QN_S);
        break;
    case WARMUP:
        end_warmup(w);
        break;
    case MEASURE:
        w->hand_ins++;
        if (w->plan->measure_from + w->hand_ins * w->plan->interval >=
            w->plan->measure_to) {
            end_measure(w);
        } else {
            hand_in(w, w->plan->measured, now);
            set_next_hand_in(w);
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
    end_phase(w);
}

static void on_stop(uv_async_t *async)
{
    stop_early(async->data);
}

/* ---- create, run, destroy ---- */

static void free_memory(struct qn_worker *w)
{
    qn_user_pool_fini(&w->pool);
    free(w->stats);
    free(w);
}

/* Make the loop, and the handle that stays open until destroy, because a signal
 * may arrive at any time. The handle does not keep the loop alive. */
static int make_loop(struct qn_worker *w)
{
    if (uv_loop_init(&w->loop) != 0) {
        return QN_EMFILE;
    }
    if (uv_async_init(&w->loop, &w->stop, on_stop) != 0) {
        goto no_stop;
    }
    w->stop.data = w;
    uv_unref((uv_handle_t *)&w->stop);
    if (qn_send_timer_init(&w->alarm, &w->pool) == QN_OK) {
        return QN_OK;
    }
    uv_close((uv_handle_t *)&w->stop, NULL);
    uv_run(&w->loop, UV_RUN_DEFAULT);
no_stop:
    uv_loop_close(&w->loop);
    return QN_EMFILE;
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
    w->pool.loop = &w->loop;
    w->pool.all_idle = on_all_idle;
    w->stats = calloc(1, sizeof *w->stats);
    w->pool.stats = w->stats;
    int err =
        w->stats == NULL ? QN_ENOMEM : qn_user_pool_init(&w->pool, plan, index);
    if (err == QN_OK) {
        err = make_loop(w);
    }
    if (err != QN_OK) {
        free_memory(w);
        return err;
    }
    *out = w;
    return QN_OK;
}

void qn_worker_destroy(struct qn_worker *w)
{
    if (w == NULL) {
        return;
    }
    uv_walk(&w->loop, close_handle, w); /* for a worker that never ran */
    uv_close((uv_handle_t *)&w->stop, NULL);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    qn_send_timer_fini(&w->alarm);
    int busy = uv_loop_close(&w->loop);
    QN_ASSERT(busy == 0);
    free_memory(w);
}

static void pin(const struct qn_worker *w)
{
    int cpu = w->plan->cpu != NULL ? w->plan->cpu[w->index] : -1;
    if (cpu >= 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET((size_t)cpu, &set);
        /* On failure the thread runs unpinned; the reported CPU time is right
         * in any case. */
        (void)pthread_setaffinity_np(pthread_self(), sizeof set, &set);
    }
}

void qn_worker_run(struct qn_worker *w)
{
    pin(w);
    uv_timer_init(&w->loop, &w->timer);
    uv_timer_init(&w->loop, &w->retry);
    w->timer.data = w;
    w->retry.data = w;
    set_timer(w, qn_clock_now() + QN_S);
    uv_timer_start(&w->retry, on_retry, QN_WORKER_RETRY_MS, QN_WORKER_RETRY_MS);
    if (w->plan->rate != NULL) {
        qn_send_timer_start(&w->alarm);
    }
    on_retry(&w->retry);
    qn_user_pool_wake(
        &w->pool); /* without a preload this ends the phase at once */
    uv_run(&w->loop, UV_RUN_DEFAULT);
    QN_ASSERT(w->phase == OVER);
}

uint32_t qn_worker_conn_count(const struct qn_worker *w)
{
    return w->pool.conn_count;
}

struct qn_worker_conn qn_worker_conn(const struct qn_worker *w, uint32_t i)
{
    QN_ASSERT(i < w->pool.conn_count);
    const struct qn_load_conn *c = &w->pool.conn[i];
    return (struct qn_worker_conn){c->address_number, c->opened, c->failed};
}

void qn_worker_stop(struct qn_worker *w)
{
    uv_async_send(&w->stop);
}
