/*
 * Workers.
 *
 * The deque is a ring of tasks: both orders take from it, moves from the queue
 * go to its new end. The backlog is a list that a task fills and steps empty
 * from the front; only the first is tried, so the order of a sender is kept.
 *
 * Bells: a worker that was sent to is remembered and rung at the end of the
 * step, once for all that it was sent; the ring's fence is behind the puts
 * (core/wait/doorbell.h).
 */
#include "core/tasks/task_worker.h"

#include <stdlib.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/base/mark.h"
#include "core/wait/spin.h"

struct sent {
    uint32_t to;
    struct qn_task task;
};

struct qn_task_worker {
    alignas(QN_CACHELINE) struct qn_task_queue queue;
    alignas(QN_CACHELINE) struct qn_doorbell_line line;
    alignas(QN_CACHELINE) struct qn_task_team *team;
    uint32_t number;
    struct qn_doorbell doorbell;
    struct qn_doorbell_handle *ringer; /* [workers] */
    uint32_t *unrung; /* [sends]: workers that were sent to in this step */
    uint32_t unrungs;
    struct qn_task *deque; /* [local], a ring */
    uint32_t oldest, count;
    struct sent *backlog; /* [sends] */
    uint32_t backlog_at, backlog_end;
};

struct qn_task_team {
    struct qn_task_team_opts opts;
    alignas(QN_CACHELINE) qn_a32 stopped;
    struct qn_task_worker worker[];
};

static int init_worker(struct qn_task_team *team, uint32_t number)
{
    struct qn_task_worker *w = &team->worker[number];
    const struct qn_task_team_opts *o = &team->opts;
    w->team = team;
    w->number = number;
    w->ringer = calloc(o->workers, sizeof *w->ringer);
    w->unrung = calloc(o->sends, sizeof *w->unrung);
    w->deque = calloc(o->local, sizeof *w->deque);
    w->backlog = calloc(o->sends, sizeof *w->backlog);
    if (w->ringer == NULL || w->unrung == NULL || w->deque == NULL ||
        w->backlog == NULL) {
        return QN_ENOMEM;
    }
    qn_doorbell_init(&w->doorbell, &w->line, -1);
    for (uint32_t i = 0; i < o->workers; i++) {
        qn_doorbell_handle_init(&w->ringer[i], &team->worker[i].line, -1);
    }
    return qn_task_queue_init(&w->queue, o->slots);
}

static bool opts_good(const struct qn_task_team_opts *o)
{
    return o->workers >= 1 && o->workers <= QN_TASK_WORKERS_MAX &&
           o->local >= 1 && o->local <= QN_TASK_LOCAL_MAX && o->sends >= 1 &&
           o->sends <= QN_TASK_SENDS_MAX;
}

int qn_task_team_create(struct qn_task_team **out,
                        const struct qn_task_team_opts *opts)
{
    if (!opts_good(opts)) {
        return QN_EINVAL;
    }
    size_t bytes = sizeof(struct qn_task_team) +
                   opts->workers * sizeof(struct qn_task_worker);
    struct qn_task_team *team = aligned_alloc(QN_CACHELINE, bytes);
    if (team == NULL) {
        return QN_ENOMEM;
    }
    memset(team, 0, bytes);
    team->opts = *opts;
    int err = QN_OK;
    for (uint32_t i = 0; i < opts->workers && err == QN_OK; i++) {
        err = init_worker(team, i);
    }
    if (err != QN_OK) {
        qn_task_team_destroy(team);
        return err;
    }
    *out = team;
    return QN_OK;
}

void qn_task_team_destroy(struct qn_task_team *team)
{
    if (team == NULL) {
        return;
    }
    for (uint32_t i = 0; i < team->opts.workers; i++) {
        struct qn_task_worker *w = &team->worker[i];
        qn_task_queue_fini(&w->queue);
        free(w->ringer);
        free(w->unrung);
        free(w->deque);
        free(w->backlog);
    }
    free(team);
}

const struct qn_task_team_opts *qn_task_team_opts(
    const struct qn_task_team *team)
{
    return &team->opts;
}

struct qn_task_worker *qn_task_worker_of(struct qn_task_team *team,
                                         uint32_t number)
{
    QN_ASSERT(number < team->opts.workers);
    return &team->worker[number];
}

uint32_t qn_task_worker_number(const struct qn_task_worker *w)
{
    return w->number;
}

/* ---- the deque ---- */

static struct qn_task *entry(struct qn_task_worker *w, uint32_t i)
{
    uint32_t at = w->oldest + i;
    return &w->deque[at < w->team->opts.local ? at : at - w->team->opts.local];
}

bool qn_task_spawn(struct qn_task_worker *w, const struct qn_task *task)
{
    if (w->count == w->team->opts.local) {
        return false;
    }
    *entry(w, w->count++) = *task;
    return true;
}

static struct qn_task next(struct qn_task_worker *w)
{
    if (!w->team->opts.fifo) {
        return *entry(w, --w->count);
    }
    struct qn_task task = *entry(w, 0);
    w->oldest = w->oldest + 1 < w->team->opts.local ? w->oldest + 1 : 0;
    w->count--;
    return task;
}

/* Move tasks from the queue, as many as fit. @return true if there was one. */
static bool drain(struct qn_task_worker *w)
{
    bool any = false;
    while (w->count < w->team->opts.local &&
           qn_task_queue_take(&w->queue, entry(w, w->count))) {
        w->count++;
        any = true;
    }
    return any;
}

/* ---- sending ---- */

static bool put(struct qn_task_worker *w, uint32_t to,
                const struct qn_task *task)
{
    if (!qn_task_queue_put(&w->team->worker[to].queue, task)) {
        return false;
    }
    for (uint32_t i = 0; i < w->unrungs; i++) {
        if (w->unrung[i] == to) {
            return true;
        }
    }
    w->unrung[w->unrungs++] = to;
    return true;
}

static void ring(struct qn_task_worker *w)
{
    for (uint32_t i = 0; i < w->unrungs; i++) {
        (void)qn_doorbell_ring(&w->ringer[w->unrung[i]]);
    }
    w->unrungs = 0;
}

bool qn_task_can_send(const struct qn_task_worker *w)
{
    return w->backlog_end == 0;
}

void qn_task_send(struct qn_task_worker *w, uint32_t to,
                  const struct qn_task *task)
{
    QN_ASSERT(to < w->team->opts.workers);
    qn_mark(QN_MARK_SEND);
    if (w->backlog_end == 0 && put(w, to, task)) {
        if (w->unrungs == w->team->opts.sends) {
            ring(w);
        }
        return;
    }
    QN_ASSERT(w->backlog_end < w->team->opts.sends);
    w->backlog[w->backlog_end++] = (struct sent){to, *task};
}

/* @return true if something of the backlog has gone. */
static bool send_backlog(struct qn_task_worker *w)
{
    uint32_t began = w->backlog_at;
    while (
        w->backlog_at < w->backlog_end &&
        put(w, w->backlog[w->backlog_at].to, &w->backlog[w->backlog_at].task)) {
        w->backlog_at++;
        if (w->unrungs == w->team->opts.sends) {
            ring(w);
        }
    }
    bool any = w->backlog_at > began;
    if (w->backlog_at == w->backlog_end) {
        w->backlog_at = w->backlog_end = 0;
    }
    return any;
}

/* ---- steps ---- */

static bool step(struct qn_task_worker *w)
{
    if (!qn_task_can_send(w)) {
        bool any = send_backlog(w);
        return drain(w) || any;
    }
    if (w->count == 0 && !drain(w)) {
        return false;
    }
    struct qn_task task = next(w);
    qn_mark(QN_MARK_RECEIVE);
    task.run(w, &task);
    return true;
}

bool qn_task_step(struct qn_task_worker *w)
{
    bool any = step(w);
    ring(w);
    return any;
}

static bool stopped(const struct qn_task_worker *w)
{
    /* seq_cst: behind the declaration of sleep, as every channel. */
    return qn_load(&w->team->stopped, QN_SEQ_CST) != 0;
}

/* A receiver that makes room does not ring its senders, so a worker with a
 * backlog looks again soon. */
#define CONGESTED (100 * QN_US)

void qn_task_rest(struct qn_task_worker *w, qn_time_t deadline)
{
    qn_doorbell_arm(&w->doorbell);
    if (!stopped(w) && !qn_task_step(w)) {
        const qn_time_t soon = qn_clock_now() + CONGESTED;
        (void)qn_doorbell_wait(&w->doorbell, qn_task_can_send(w)
                                                 ? deadline
                                                 : QN_MIN(deadline, soon));
    }
    qn_doorbell_disarm(&w->doorbell);
}

void qn_task_run(struct qn_task_worker *w, qn_time_t spin)
{
    struct qn_spin look;
    qn_spin_init(&look, spin);
    while (!stopped(w)) {
        if (qn_task_step(w)) {
            qn_spin_reset(&look);
        } else if (spin > 0 && qn_spin_again(&look, qn_clock_now())) {
            qn_pause();
        } else {
            qn_task_rest(w, QN_TIME_NEVER);
        }
    }
}

void qn_task_stop(struct qn_task_worker *w)
{
    qn_store(&w->team->stopped, 1, QN_SEQ_CST);
    for (uint32_t i = 0; i < w->team->opts.workers; i++) {
        (void)qn_doorbell_ring(&w->ringer[i]);
    }
}
