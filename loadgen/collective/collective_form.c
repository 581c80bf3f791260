/*
 * All forms but the pipelines are calls of one struct qn_coll on the tree
 * lanes. A pipeline is made anew for each run, on the direct lanes, with the
 * next view: the nodes meet before and after it, so no message of it comes to a
 * node that has not ended the one before.
 *
 * What an operation carries is made from its number, which all nodes count, and
 * from the rank: a result of another operation is wrong.
 */
#include "loadgen/collective/collective_form.h"

#include <assert.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"

/* ---- calls ---- */

static int call(struct qn_collective_node *n, const struct qn_coll_call *what)
{
    uint32_t number;
    int rc = qn_coll_start(n->coll, what, &number);
    n->done++;
    return rc == QN_OK ? qn_coll_wait(n->coll, number, n->deadline) : rc;
}

static bool is_root(const struct qn_collective_node *n)
{
    return n->end->self == n->o->tree->root;
}

/* What a rank contributes to the operation that comes next. */
static uint64_t contribution(const struct qn_collective_node *n, uint64_t rank)
{
    return (rank + 1) * (n->done + 1);
}

static uint64_t sum_of_all(const struct qn_collective_node *n)
{
    const uint64_t nodes = n->end->nodes;
    return nodes * (nodes + 1) / 2 * (n->done + 1);
}

static int barriers(struct qn_collective_node *n, uint32_t count)
{
    const struct qn_coll_call c = {.what = QN_COLL_ALLREDUCE};
    int rc = QN_OK;
    for (uint32_t i = 0; i < count && rc == QN_OK; i++) {
        rc = call(n, &c);
    }
    return rc;
}

static int sums(struct qn_collective_node *n, enum qn_coll_what what,
                uint32_t count)
{
    uint64_t part, sum;
    const struct qn_coll_call c = {
        .what = what, .op = &qn_sum_u64, .in = &part, .out = &sum, .count = 1};
    int rc = QN_OK;
    for (uint32_t i = 0; i < count && rc == QN_OK; i++) {
        const uint64_t all = sum_of_all(n);
        part = contribution(n, n->end->self);
        sum = 0;
        rc = call(n, &c);
        n->wrong += (what == QN_COLL_ALLREDUCE || is_root(n)) && sum != all;
    }
    return rc;
}

static int allreduce(struct qn_collective_node *n, uint32_t count)
{
    return sums(n, QN_COLL_ALLREDUCE, count);
}

static int reduce(struct qn_collective_node *n, uint32_t count)
{
    return sums(n, QN_COLL_REDUCE, count);
}

static int broadcasts(struct qn_collective_node *n, enum qn_coll_what what,
                      uint32_t count)
{
    const struct qn_coll_call c = {
        .what = what, .in = n->in, .out = n->out, .count = n->o->size};
    int rc = QN_OK;
    for (uint32_t i = 0; i < count && rc == QN_OK; i++) {
        const uint64_t word = n->done;
        uint64_t got;
        memcpy(n->in, &word, sizeof word);
        n->in[n->o->size - 1] = (uint8_t)word;
        rc = call(n, &c);
        memcpy(&got, n->out, sizeof got);
        n->wrong += (n->o->size > sizeof got && got != word) ||
                    n->out[n->o->size - 1] != (uint8_t)word;
    }
    return rc;
}

static int broadcast(struct qn_collective_node *n, uint32_t count)
{
    return broadcasts(n, QN_COLL_BROADCAST, count);
}

static int acknowledged(struct qn_collective_node *n, uint32_t count)
{
    return broadcasts(n, QN_COLL_ACKNOWLEDGED, count);
}

static int gather(struct qn_collective_node *n, uint32_t count)
{
    uint64_t part, all[QN_NODES_MAX];
    const struct qn_coll_call c = {
        .what = QN_COLL_GATHER, .in = &part, .out = all, .count = sizeof part};
    int rc = QN_OK;
    for (uint32_t i = 0; i < count && rc == QN_OK; i++) {
        const uint64_t last = contribution(n, n->end->nodes - 1);
        part = contribution(n, n->end->self);
        rc = call(n, &c);
        n->wrong += is_root(n) && all[n->end->nodes - 1] != last;
    }
    return rc;
}

static int commit(struct qn_collective_node *n, uint32_t count)
{
    uint64_t vote, all;
    const struct qn_coll_call c = {
        .what = QN_COLL_COMMIT, .in = &vote, .out = &all};
    int rc = QN_OK;
    for (uint32_t i = 0; i < count && rc == QN_OK; i++) {
        /* Now and then a member says no. */
        const bool refused = n->done % 8 == 0;
        vote = !refused || n->done / 8 % n->end->nodes != n->end->self;
        rc = call(n, &c);
        n->wrong += all != (refused ? 0 : 1);
    }
    return rc;
}

/* ---- pipelines ---- */

struct pipeline {
    struct qn_collective_node *n;
    struct qn_sequenced_broadcast *b;
    uint32_t sent, count;
};

static void deliver(void *ctx, uint32_t number, const void *msg, size_t len)
{
    struct qn_collective_node *n = ctx;
    uint64_t word;
    memcpy(&word, msg, sizeof word);
    n->delivered++;
    n->wrong += number != n->delivered || len != n->o->size || word != number;
}

/* @return true if something moved. */
static bool turn(struct pipeline *p)
{
    struct qn_collective_node *n = p->n;
    bool moved = false;
    while (is_root(n) && p->sent < p->count) {
        const uint64_t word = p->sent + 1;
        memcpy(n->in, &word, sizeof word);
        if (qn_sequenced_broadcast_send(p->b, n->in, n->o->size, NULL) !=
            QN_OK) {
            break;
        }
        p->sent++;
        moved = true;
    }
    return qn_sequenced_broadcast_poll(p->b) || moved;
}

/* @param last  All has come: it waits for room only, for no message. */
static int park(struct pipeline *p, bool last)
{
    struct qn_doorbell *bell = &p->n->end->doorbell;
    int slept = QN_OK;
    qn_doorbell_arm(bell);
    const bool left = qn_sequenced_broadcast_flush(p->b);
    if ((left || !last) && !qn_sequenced_broadcast_pending(p->b)) {
        slept = qn_doorbell_wait(bell, p->n->deadline);
    }
    qn_doorbell_disarm(bell);
    return slept;
}

static int run_pipeline(struct pipeline *p)
{
    struct qn_backoff backoff;
    int rc = QN_OK;
    qn_backoff_init(&backoff, &p->n->o->backoff);
    while (qn_sequenced_broadcast_acked(p->b) < p->count && rc == QN_OK) {
        const bool moved = turn(p);
        (void)qn_sequenced_broadcast_flush(p->b);
        if (moved) {
            qn_backoff_reset(&backoff);
        } else if (!qn_backoff_again(&backoff)) {
            rc = park(p, false);
            qn_backoff_reset(&backoff);
        }
        rc = rc == QN_OK ? qn_sequenced_broadcast_error(p->b) : rc;
    }
    /* The last acknowledgement. */
    while (rc == QN_OK && qn_sequenced_broadcast_flush(p->b)) {
        rc = park(p, true);
    }
    p->n->wrong += rc == QN_OK && p->n->delivered != p->count;
    return rc;
}

static int pipeline(struct qn_collective_node *n, const struct qn_wiring *w,
                    uint32_t count)
{
    struct pipeline p = {.n = n, .count = count};
    const struct qn_sequenced_broadcast_opts o = {.wiring = w,
                                                  .qp = n->direct_qp,
                                                  .window = n->o->window,
                                                  .bytes_max = n->o->size,
                                                  .view = ++n->view,
                                                  .deliver = deliver,
                                                  .ctx = n};
    n->delivered = 0;
    int rc = qn_sequenced_broadcast_create(&p.b, &o);
    if (rc == QN_OK) {
        rc = run_pipeline(&p);
        qn_sequenced_broadcast_destroy(p.b);
    }
    return rc;
}

static int tree_pipeline(struct qn_collective_node *n, uint32_t count)
{
    struct qn_wiring *w;
    const struct qn_wiring_opts o = {.kind = QN_WIRING_ACKNOWLEDGED,
                                     .down = n->o->tree,
                                     .up = n->o->tree,
                                     .self = n->end->self};
    int rc = qn_wiring_tree(&w, &o);
    if (rc == QN_OK) {
        rc = pipeline(n, w, count);
        qn_wiring_destroy(w);
    }
    return rc;
}

static int ring_pipeline(struct qn_collective_node *n, uint32_t count)
{
    struct qn_wiring *w;
    const struct qn_wiring_ring_opts o = {.ring = n->o->ring,
                                          .self = n->end->self};
    int rc = qn_wiring_ring(&w, &o);
    if (rc == QN_OK) {
        rc = pipeline(n, w, count);
        qn_wiring_destroy(w);
    }
    return rc;
}

/* ---- tasks ---- */

static int tasks(struct qn_collective_node *n, enum qn_task_broadcast_kind kind,
                 uint32_t count)
{
    return qn_collective_tasks_run(n->o->tasks, n->end->self, kind, count,
                                   n->deadline, &n->wrong);
}

static int task_dr(struct qn_collective_node *n, uint32_t count)
{
    return tasks(n, QN_TASK_DR, count);
}

static int task_sdr(struct qn_collective_node *n, uint32_t count)
{
    return tasks(n, QN_TASK_SDR, count);
}

static int task_bt(struct qn_collective_node *n, uint32_t count)
{
    return tasks(n, QN_TASK_BT, count);
}

/* ---- the table ---- */

static const struct qn_collective_form forms[] = {
    {"barrier", "no member goes on before all have come", 0, barriers, false},
    {"allreduce", "the sum of a word of each, at all", 8, allreduce, false},
    {"reduce", "the sum of a word of each, at the root", 8, reduce, false},
    {"gather", "a word of each, at the root", 8, gather, false},
    {"broadcast", "the root's message, to all", QN_COLLECTIVE_AS_SIZE,
     broadcast, false},
    {"ack", "the same; the root waits until all have it", QN_COLLECTIVE_AS_SIZE,
     acknowledged, false},
    {"commit", "asked, voted, told", 8, commit, false},
    {"sequence", "a pipeline of acknowledged broadcasts over the tree",
     QN_COLLECTIVE_AS_SIZE, tree_pipeline, false},
    {"ring", "the same over a diamond ring", QN_COLLECTIVE_AS_SIZE,
     ring_pipeline, false},
    {"dr", "the same as tasks, the newest first", QN_TASK_BROADCAST_BYTES,
     task_dr, true},
    {"sdr", "the same, sequenced", QN_TASK_BROADCAST_BYTES, task_sdr, true},
    {"bt", "the same as tasks, over the tree", QN_TASK_BROADCAST_BYTES, task_bt,
     true},
};

static_assert(QN_ARRAY_COUNT(forms) <= QN_COLLECTIVE_FORMS_MAX, "forms");

const struct qn_collective_form *qn_collective_form(uint32_t i)
{
    return i < QN_ARRAY_COUNT(forms) ? &forms[i] : NULL;
}

/* ---- a node ---- */

int qn_collective_node_init(struct qn_collective_node *n,
                            struct qn_mesh_end *end,
                            const struct qn_collective_opts *o)
{
    memset(n, 0, sizeof *n);
    n->o = o;
    n->end = end;
    for (qn_node_t i = 0; i < end->nodes; i++) {
        n->tree_qp[i] = end->qp[i][QN_LANE_TREE];
        n->direct_qp[i] = end->qp[i][QN_LANE_DIRECT];
    }
    const uint32_t gathered = end->nodes * 2 * (uint32_t)sizeof(uint64_t);
    const uint32_t least = QN_MAX(gathered, QN_COLLECTIVE_TOLD_MAX);
    const struct qn_coll_opts c = {.self = end->self,
                                   .down = o->tree,
                                   .qp = n->tree_qp,
                                   .doorbell = &end->doorbell,
                                   .backoff = o->backoff,
                                   .bytes_max = QN_MAX(o->size, least),
                                   .view = 1,
                                   .exchange = o->exchange};
    return qn_coll_create(&n->coll, &c);
}

void qn_collective_node_fini(struct qn_collective_node *n)
{
    qn_coll_destroy(n->coll);
    n->coll = NULL;
}

int qn_collective_meet(struct qn_collective_node *n)
{
    n->deadline = qn_clock_now() + QN_COLLECTIVE_DEADLINE_NS;
    return barriers(n, 1);
}

int qn_collective_tell(struct qn_collective_node *n, void *bytes, uint32_t len)
{
    const struct qn_coll_call c = {
        .what = QN_COLL_BROADCAST, .in = bytes, .out = bytes, .count = len};
    return call(n, &c);
}
