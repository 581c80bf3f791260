#include "loadgen/engine/worker.h"

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/engine/crew_internal.h"
#include "loadgen/engine/send_timer_internal.h"

#include <sched.h>
#include <stdlib.h>

/*
 * Phases of a worker, and what ends them:
 *
 *     PRELOAD  all shares are stored; then all workers meet
 *     WARMUP   the timer
 *     SETTLE   all replies have come (only if requests are counted)
 *     MEASURE  the timer, or all counted requests are answered, or all that can
 *              be recorded
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
    struct qn_send_timer alarm; /* calls clients when they are due */
    qn_time_t measure_end;
    uint64_t hand_ins;   /* of MEASURE, an interval each */
    uint64_t unsent;     /* due at measure_end, and not sent */
    uint64_t dead_ticks; /* of `retry`, without a connection of
                            anybody who has something to ask */
    struct qn_stats *stats;
    struct qn_crew crew;
};

static void stop_early(struct qn_worker *w);

static void on_retry(uv_timer_t *timer)
{
    struct qn_worker *w = timer->data;
    uint32_t up = 0;
    for (uint32_t i = 0; i < w->crew.conn_count && w->phase < DRAIN; i++) {
        struct qn_load_conn *c = &w->crew.conn[i];
        up += c->state == QN_CONN_UP && !c->user->resting;
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

/* Count what never came home, hand in, and let the loop run empty. */
static void finish(struct qn_worker *w)
{
    w->phase = OVER;
    w->crew.over = true;
    uint64_t unanswered = w->stats->unanswered;
    qn_stats_clear(w->stats); /* replies that came after the end */
    w->stats->unanswered = unanswered;
    for (uint32_t i = 0; i < w->crew.conn_count; i++) {
        qn_client_lost(&w->crew.conn[i].lane, w->stats);
    }
    w->stats->unsent = w->unsent;
    w->stats->spent = qn_crew_spent(&w->crew);
    qn_collect_hand_in(w->plan->measured, w->stats, w->measure_end, true);
    uv_walk(&w->loop, close_handle, w);
}

static void hand_in(struct qn_worker *w, struct qn_collect *to, qn_time_t now)
{
    uint64_t unsent;
    w->stats->waiting = qn_crew_owed(&w->crew, now, &unsent) + unsent;
    qn_collect_hand_in(to, w->stats, now, false);
}

static void end_measure(struct qn_worker *w)
{
    const struct qn_worker_plan *plan = w->plan;
    w->measure_end = qn_clock_now();
    w->stats->raw = NULL;
    qn_crew_owed(&w->crew, QN_MIN(w->measure_end, plan->measure_to),
                 &w->unsent);
    hand_in(w, plan->measured, w->measure_end);
    w->phase = DRAIN;
    w->crew.draining = true;
    w->crew.resting = 0;
    for (uint32_t i = 0; i < w->crew.count; i++) {
        struct qn_user *u = &w->crew.user[i];
        qn_agenda_set(&w->crew.agenda, i, QN_TIME_NEVER);
        u->resting = !qn_user_is_up(u) || qn_client_idle(&u->client);
        w->crew.resting += u->resting;
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
    qn_time_t now = qn_clock_now();
    qn_collect_hand_in(plan->warmed, w->stats, now, true);
    w->stats->raw = plan->raw;
    qn_collect_hand_in(plan->measured, w->stats, now, false);
    w->phase = MEASURE;
    bool spent = plan->requests == 0 && w->crew.resting == w->crew.count;
    if (w->stopping || spent) {
        end_measure(w);
        return;
    }
    set_next_hand_in(w);
    if (plan->requests > 0) {
        for (uint32_t i = 0; i < w->crew.count; i++) {
            qn_crew_begin(&w->crew, i, plan->requests, now);
        }
        qn_crew_wake(&w->crew);
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
        qn_crew_begin(&w->crew, i, 0, 0);
    }
    qn_crew_wake(&w->crew);
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
    qn_collect_hand_in(plan->warmed, w->stats, qn_clock_now(), false);
    bool warm = plan->requests == 0 || plan->measure_from > qn_clock_now();
    for (uint32_t i = 0; i < w->crew.count; i++) {
        qn_crew_begin(&w->crew, i, warm ? UINT64_MAX : 0, plan->warm_from);
    }
    set_timer(w, plan->measure_from);
    qn_crew_wake(&w->crew);
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

static void free_memory(struct qn_worker *w)
{
    qn_crew_fini(&w->crew);
    free(w->stats);
    free(w);
}

/* The loop, and what stays open until destroy: a signal may come at any time.
 * It does not keep the loop alive. */
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
    if (qn_send_timer_init(&w->alarm, &w->crew) == QN_OK) {
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
    w->crew.loop = &w->loop;
    w->crew.all_rest = on_all_rest;
    w->stats = calloc(1, sizeof *w->stats);
    w->crew.stats = w->stats;
    int err =
        w->stats == NULL ? QN_ENOMEM : qn_crew_init(&w->crew, plan, index);
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
    uv_walk(&w->loop, close_handle, w); /* of a worker that never ran */
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
        /* Refused: it runs where the system likes, and the report's CPU time
         * is right all the same. */
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
    qn_crew_wake(&w->crew); /* without a preload, that was it */
    uv_run(&w->loop, UV_RUN_DEFAULT);
    QN_ASSERT(w->phase == OVER);
}

uint32_t qn_worker_conn_count(const struct qn_worker *w)
{
    return w->crew.conn_count;
}

struct qn_worker_conn qn_worker_conn(const struct qn_worker *w, uint32_t i)
{
    QN_ASSERT(i < w->crew.conn_count);
    const struct qn_load_conn *c = &w->crew.conn[i];
    return (struct qn_worker_conn){c->address_number, c->opened, c->failed};
}

void qn_worker_stop(struct qn_worker *w)
{
    uv_async_send(&w->stop);
}
