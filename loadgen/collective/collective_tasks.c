/*
 * One team of workers for all three kinds. The root starts broadcasts as the
 * window allows and, when all are complete, sends each other worker a task that
 * ends its run: by then no task of the broadcasts is left anywhere.
 *
 * Numbers go on from run to run. A member that has worked on as many as there
 * were, whose numbers have the right sum, has had each once.
 */
#include "loadgen/collective/collective_tasks.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"

#define KINDS 3u
#define SLOTS 256u /* of each queue */

/** What a node has worked on; its own line. */
struct tasks_node {
    alignas(QN_CACHELINE) uint64_t sum; /* of the numbers of a run */
    uint64_t wrong;
    uint32_t count, last[KINDS]; /* numbers */
    uint32_t before[KINDS];      /* broadcasts of earlier runs */
    bool is_over;                /* the root has ended this run */
};

struct tasks_kind {
    struct qn_collective_tasks *of;
    enum qn_task_broadcast_kind kind;
    struct qn_task_broadcast *broadcast;
};

struct qn_collective_tasks {
    struct qn_collective_tasks_opts o;
    struct qn_task_team *team;
    struct qn_wiring **ring, **tree; /* [nodes] */
    struct tasks_kind kind[KINDS];
    struct tasks_node *node; /* [nodes] */
};

/* ---- tasks ---- */

static void work(void *ctx, uint32_t member, uint32_t number,
                 const void *payload, size_t len)
{
    const struct tasks_kind *k = ctx;
    struct tasks_node *n = &k->of->node[member];
    uint32_t word;
    memcpy(&word, payload, sizeof word);
    n->wrong += len != QN_TASK_BROADCAST_BYTES || word != number;
    n->wrong += k->kind == QN_TASK_SDR && number != n->last[k->kind] + 1;
    n->last[k->kind] = number;
    n->sum += number;
    n->count++;
}

static void end_run(struct qn_task_worker *w, const struct qn_task *task)
{
    (void)w;
    ((struct tasks_node *)task->ctx)->is_over = true;
}

/* ---- a run ---- */

struct tasks_run {
    struct qn_collective_tasks *t;
    struct qn_task_worker *w;
    struct qn_backoff backoff;
    qn_time_t deadline;
};

static int turn(struct tasks_run *r)
{
    if (qn_task_step(r->w)) {
        qn_backoff_reset(&r->backoff);
        return QN_OK;
    }
    if (qn_backoff_again(&r->backoff)) {
        return QN_OK;
    }
    qn_task_rest(r->w, r->deadline);
    qn_backoff_reset(&r->backoff);
    return qn_clock_now() < r->deadline ? QN_OK : QN_ETIMEDOUT;
}

static int start_all(struct tasks_run *r, struct qn_task_broadcast *b,
                     uint32_t count)
{
    uint8_t message[QN_TASK_BROADCAST_BYTES] = {0};
    const uint32_t first = qn_task_broadcast_completed(b);
    int rc = QN_OK;
    for (uint32_t i = 1; i <= count && rc == QN_OK; i++) {
        const uint32_t word = first + i;
        memcpy(message, &word, sizeof word);
        while (rc == QN_OK &&
               qn_task_broadcast_start(b, r->w, message, sizeof message,
                                       NULL) == QN_EAGAIN) {
            rc = turn(r);
        }
    }
    while (rc == QN_OK && qn_task_broadcast_completed(b) != first + count) {
        rc = turn(r);
    }
    return rc;
}

static int end_all(struct tasks_run *r)
{
    int rc = QN_OK;
    for (uint32_t v = 1; v < r->t->o.nodes && rc == QN_OK; v++) {
        const struct qn_task task = {.run = end_run, .ctx = &r->t->node[v]};
        while (!qn_task_can_send(r->w) && rc == QN_OK) {
            rc = turn(r);
        }
        qn_task_send(r->w, v, &task);
    }
    do { /* what was sent last is rung for by a step */
        rc = rc == QN_OK ? turn(r) : rc;
    } while (rc == QN_OK && !qn_task_can_send(r->w));
    return rc;
}

int qn_collective_tasks_run(struct qn_collective_tasks *t, qn_node_t node,
                            enum qn_task_broadcast_kind kind, uint32_t count,
                            qn_time_t deadline, uint64_t *wrong)
{
    struct tasks_node *n = &t->node[node];
    struct tasks_run r = {
        .t = t, .w = qn_task_worker_of(t->team, node), .deadline = deadline};
    int rc = QN_OK;
    qn_backoff_init(&r.backoff, &t->o.backoff);
    if (node == 0) {
        rc = start_all(&r, t->kind[kind].broadcast, count);
        rc = rc == QN_OK ? end_all(&r) : rc;
    }
    while (node != 0 && !n->is_over && rc == QN_OK) {
        rc = turn(&r);
    }
    const uint64_t before = n->before[kind], all = count;
    *wrong += n->wrong + (n->count != count) +
              (n->sum != before * all + all * (all + 1) / 2);
    n->before[kind] += count;
    n->wrong = n->sum = 0;
    n->count = 0;
    n->is_over = false;
    return rc;
}

/* ---- make ---- */

static int wire(struct qn_collective_tasks *t, qn_node_t self)
{
    const struct qn_collective_tasks_opts *o = &t->o;
    const struct qn_wiring_opts tree = {.kind = QN_WIRING_ACKNOWLEDGED,
                                        .down = o->tree,
                                        .up = o->tree,
                                        .self = self};
    const struct qn_wiring_ring_opts ring = {.ring = o->ring, .self = self};
    int rc = qn_wiring_tree(&t->tree[self], &tree);
    return rc == QN_OK ? qn_wiring_ring(&t->ring[self], &ring) : rc;
}

static int make_team(struct qn_collective_tasks *t)
{
    struct qn_task_team_opts o = {
        .workers = t->o.nodes, .slots = SLOTS, .sends = 1};
    for (uint32_t v = 0; v < t->o.nodes; v++) {
        int rc = wire(t, (qn_node_t)v);
        if (rc != QN_OK) {
            return rc;
        }
        const struct qn_wiring *const both[] = {t->ring[v], t->tree[v]};
        for (uint32_t i = 0; i < QN_ARRAY_COUNT(both); i++) {
            const uint32_t most =
                qn_task_broadcast_most(both[i], t->o.window) + 1; /* the end */
            o.local = QN_MAX(o.local, most);
            o.sends = QN_MAX(o.sends, both[i]->links);
        }
    }
    return qn_task_team_create(&t->team, &o);
}

static int make_kinds(struct qn_collective_tasks *t)
{
    int rc = QN_OK;
    for (uint32_t i = 0; i < KINDS && rc == QN_OK; i++) {
        struct tasks_kind *k = &t->kind[i];
        k->of = t;
        k->kind = (enum qn_task_broadcast_kind)i;
        const struct qn_task_broadcast_opts o = {
            .kind = k->kind,
            .wiring = (const struct qn_wiring *const *)(k->kind == QN_TASK_BT
                                                            ? t->tree
                                                            : t->ring),
            .window = t->o.window,
            .work = work,
            .ctx = k};
        rc = qn_task_broadcast_create(&k->broadcast, t->team, &o);
    }
    return rc;
}

int qn_collective_tasks_create(struct qn_collective_tasks **out,
                               const struct qn_collective_tasks_opts *o)
{
    struct qn_collective_tasks *t = calloc(1, sizeof *t);
    if (t == NULL) {
        return QN_ENOMEM;
    }
    t->o = *o;
    const size_t bytes = o->nodes * sizeof *t->node;
    t->ring = calloc(o->nodes, sizeof *t->ring);
    t->tree = calloc(o->nodes, sizeof *t->tree);
    t->node = aligned_alloc(QN_CACHELINE, bytes);
    int rc = QN_ENOMEM;
    if (t->ring != NULL && t->tree != NULL && t->node != NULL) {
        memset(t->node, 0, bytes);
        rc = make_team(t);
    }
    rc = rc == QN_OK ? make_kinds(t) : rc;
    if (rc != QN_OK) {
        qn_collective_tasks_destroy(t);
        return rc;
    }
    *out = t;
    return QN_OK;
}

void qn_collective_tasks_destroy(struct qn_collective_tasks *t)
{
    if (t == NULL) {
        return;
    }
    for (uint32_t i = 0; i < KINDS; i++) {
        qn_task_broadcast_destroy(t->kind[i].broadcast);
    }
    qn_task_team_destroy(t->team);
    for (uint32_t v = 0; v < t->o.nodes; v++) {
        if (t->ring != NULL) {
            qn_wiring_destroy(t->ring[v]);
        }
        if (t->tree != NULL) {
            qn_wiring_destroy(t->tree[v]);
        }
    }
    free(t->ring);
    free(t->tree);
    free(t->node);
    free(t);
}
