/*
 * Workers look for tasks until the root has all acknowledgements, as a node
 * that owns its core does. What a member has worked on is counted where nothing
 * costs time: beside the simulated memory.
 */
#include "loadgen/simulate/net/task_pipeline.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"

#define SLOTS 256u /* of each queue: a sender seldom waits */

struct burst_worker {
    struct qn_wiring *wiring;
    bool worked[QN_PIPELINE_TOTAL + 1]; /* by number */
    uint32_t count, last;
};

static struct {
    const struct qn_task_pipeline_opts *o;
    struct qn_task_team *team;
    struct qn_task_broadcast *broadcast;
    const struct qn_wiring **wiring; /* [nodes] */
    struct burst_worker *worker;     /* [nodes] */
    struct qn_pipeline_times times;
    alignas(QN_CACHELINE) qn_a32 over;
    uint64_t wrong;
    uint32_t complete; /* nodes that came to their end */
} tasks;

static void work(void *ctx, uint32_t member, uint32_t number,
                 const void *payload, size_t len)
{
    struct burst_worker *m = &tasks.worker[member];
    uint32_t word = 0;
    (void)ctx;
    memcpy(&word, payload, QN_MIN(len, sizeof word));
    const bool known = number >= 1 && number <= QN_PIPELINE_TOTAL;
    tasks.wrong += !known || word != number || m->worked[number];
    tasks.wrong += tasks.o->kind == QN_TASK_SDR && number != m->last + 1;
    m->last = number;
    m->count++;
    if (known) {
        m->worked[number] = true;
    }
}

static void turn(struct qn_task_worker *w)
{
    if (!qn_task_step(w)) {
        qn_pause();
    }
}

/* @return the time until all have acknowledged. */
static qn_ps_t send(void *ctx, uint32_t count)
{
    struct qn_task_worker *w = ctx;
    struct qn_task_broadcast *b = tasks.broadcast;
    const uint32_t first = qn_task_broadcast_completed(b);
    const qn_ps_t start = qn_timed_clock();
    for (uint32_t i = 1; i <= count; i++) {
        const uint32_t word = first + i;
        while (qn_task_broadcast_start(b, w, &word, sizeof word, NULL) ==
               QN_EAGAIN) {
            turn(w);
        }
        qn_timed_sleep_until(qn_timed_clock() +
                             tasks.o->operation_ns * QN_PS_PER_NS);
    }
    while (qn_task_broadcast_completed(b) < first + count) {
        turn(w);
    }
    return qn_timed_clock() - start;
}

static void node(void *ctx, uint32_t self)
{
    struct qn_task_worker *w = qn_task_worker_of(tasks.team, self);
    (void)ctx;
    if (tasks.worker[self].wiring->root) {
        qn_pipeline_times_run(&tasks.times, send, w);
        /* relaxed: it says nothing of other memory. */
        qn_store(&tasks.over, 1, QN_RELAXED);
    }
    while (qn_load(&tasks.over, QN_RELAXED) == 0) {
        turn(w);
    }
    tasks.wrong += tasks.worker[self].count != QN_PIPELINE_TOTAL;
    tasks.complete++;
}

static int make_wiring(struct qn_wiring **out,
                       const struct qn_task_pipeline_opts *o, uint32_t self)
{
    const struct qn_wiring_opts tree = {.kind = QN_WIRING_ACKNOWLEDGED,
                                        .down = o->tree,
                                        .up = o->tree,
                                        .self = self};
    const struct qn_wiring_ring_opts ring = {.ring = o->ring, .self = self};
    return o->kind == QN_TASK_BT ? qn_wiring_tree(out, &tree)
                                 : qn_wiring_ring(out, &ring);
}

static int make_team(const struct qn_task_pipeline_opts *o)
{
    struct qn_task_team_opts t = {
        .workers = o->nodes, .slots = SLOTS, .fifo = o->fifo};
    for (uint32_t v = 0; v < o->nodes; v++) {
        struct burst_worker *m = &tasks.worker[v];
        int err = make_wiring(&m->wiring, o, v);
        if (err != QN_OK) {
            return err;
        }
        tasks.wiring[v] = m->wiring;
        t.local = QN_MAX(t.local,
                         qn_task_broadcast_most(m->wiring, QN_PIPELINE_BURST));
        t.sends = QN_MAX(t.sends, m->wiring->links);
    }
    return qn_task_team_create(&tasks.team, &t);
}

static int prepare(const struct qn_task_pipeline_opts *o)
{
    memset(&tasks, 0, sizeof tasks);
    tasks.o = o;
    tasks.worker = calloc(o->nodes, sizeof *tasks.worker);
    tasks.wiring = calloc(o->nodes, sizeof *tasks.wiring);
    int err =
        tasks.worker != NULL && tasks.wiring != NULL ? make_team(o) : QN_ENOMEM;
    const struct qn_task_broadcast_opts b = {.kind = o->kind,
                                             .wiring = tasks.wiring,
                                             .window = QN_PIPELINE_BURST,
                                             .work = work};
    return err == QN_OK
               ? qn_task_broadcast_create(&tasks.broadcast, tasks.team, &b)
               : err;
}

static void release(void)
{
    qn_task_broadcast_destroy(tasks.broadcast);
    qn_task_team_destroy(tasks.team);
    for (uint32_t v = 0; tasks.worker != NULL && v < tasks.o->nodes; v++) {
        qn_wiring_destroy(tasks.worker[v].wiring);
    }
    free(tasks.worker);
    free(tasks.wiring);
    tasks.worker = NULL;
    tasks.wiring = NULL;
}

int qn_task_pipeline_run(struct qn_pipeline_result *r,
                         const struct qn_task_pipeline_opts *o)
{
    struct qn_timed_result run;
    int err = prepare(o);
    if (err == QN_OK) {
        const struct qn_timed_opts t = {.nodes = o->nodes,
                                        .prices = o->prices,
                                        .main = node,
                                        .seed = o->seed};
        err = qn_timed_run(&t, &run);
    }
    if (err == QN_OK) {
        qn_timed_result_free(&run);
        *r = qn_pipeline_times_result(&tasks.times, tasks.wrong);
        err = tasks.complete == o->nodes ? QN_OK : QN_EIO;
    }
    release();
    return err;
}
