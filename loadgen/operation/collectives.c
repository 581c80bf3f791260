/*
 * Reductions, all-reductions, barriers and commits.
 *
 *     latency                               throughput
 *     all   agree on a start: all-reduce    all   BATCH operations
 *     all   wait for it                     all   all-reduce: was it the last?
 *     all   the operation: time
 *
 * The all-reduction that agrees on the next start also says when the last node
 * had left the previous operation, whether some node was late for its start,
 * and whether the root wants an end. So each node knows the same, and the root
 * can record. A round for whose start some node was late is not counted; the
 * time in which a start is prepared then doubles, and shrinks slowly again.
 *
 * The alternative, to time a leaf from its contribution to a message of the
 * root, is what published measurements do; but then the other nodes are ahead,
 * and their messages are queued when the leaf's arrives. A common start is what
 * the model predicts.
 */
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/base/mark.h"
#include "loadgen/operation/operation_internal.h"

#define LEAST      32u /* operations of the latency part */
#define COLD       4u  /* of them, not counted */
#define BATCH      64u /* operations of the throughput part */
#define MARGIN_MIN QN_US
#define MARGIN_MAX QN_MS

/* Words of the all-reduction by maximum. */
enum { ENTERED, LEFT, LATE, LAST, WORDS };

struct state {
    struct qn_operation_self *n;
    bool root;
    uint64_t done;   /* operations */
    uint64_t margin; /* ns, the same at all nodes */
};

/* Poll until the operation that was started is complete. @return the time. */
static qn_time_t complete(struct qn_operation_self *n, int rc)
{
    while (rc == QN_OK && (rc = qn_coll_poll(n->coll)) == QN_EAGAIN) {
        (void)qn_coll_flush(n->coll);
        if (qn_operation_given_up(n)) {
            return 0;
        }
        if (!qn_coll_moved(n->coll)) {
            qn_operation_idle(n);
        }
        rc = QN_OK;
    }
    qn_time_t now = qn_clock_now();
    (void)qn_coll_flush(n->coll);
    n->moved = 0;
    if (rc != QN_OK) {
        qn_operation_give_up(n); /* QN_ECORRUPT: no node was said to be dead */
    }
    return now;
}

/* word[i] becomes its maximum over all nodes. */
static void agree(struct qn_operation_self *n, uint64_t word[WORDS])
{
    const struct qn_coll_call call = {.what = QN_COLL_ALLREDUCE,
                                      .op = &qn_max_u64,
                                      .in = word,
                                      .out = word,
                                      .count = WORDS};
    complete(n, qn_coll_start(n->coll, &call, NULL));
}

/* What node v (from 0) contributes at place i of operation k. */
static uint64_t contribution(qn_node_t v, uint64_t k, uint32_t i)
{
    return (v + 1) * (k + 1) + i;
}

static uint64_t sum_of_all(uint64_t n, uint64_t k, uint32_t i)
{
    return n * (n + 1) / 2 * (k + 1) + n * i;
}

/* @param what  QN_COLL_REDUCE or QN_COLL_ALLREDUCE. */
static qn_time_t reduce(struct state *s, enum qn_coll_what what)
{
    struct qn_operation_self *n = s->n;
    const struct qn_operation_opts *o = &n->p->o;
    uint32_t count = o->size / (uint32_t)sizeof(uint64_t);
    uint64_t word[QN_COLL_WORDS], sum[QN_COLL_WORDS] = {0};
    const struct qn_coll_call call = {.what = what,
                                      .op = &qn_sum_u64,
                                      .in = word,
                                      .out = sum,
                                      .count = count};
    const bool has_result = s->root || what == QN_COLL_ALLREDUCE;
    for (uint32_t i = 0; i < count; i++) {
        word[i] = contribution(n->end->self, s->done, i);
    }
    qn_time_t left = complete(n, qn_coll_start(n->coll, &call, NULL));
    for (uint32_t i = 0; has_result && !qn_operation_given_up(n) && i < count;
         i++) {
        n->wrong += sum[i] != sum_of_all(o->tree->n, s->done, i);
    }
    return left;
}

/* Of REFUSED operations one has a member that says no. */
#define REFUSED 8u

static qn_time_t commit(struct state *s)
{
    struct qn_operation_self *n = s->n;
    const bool refused = s->done % REFUSED == REFUSED - 1;
    const qn_node_t refuser = (qn_node_t)(s->done / REFUSED % n->p->o.tree->n);
    const uint64_t vote = !refused || n->end->self != refuser;
    uint64_t all = UINT64_MAX;
    const struct qn_coll_call call = {
        .what = QN_COLL_COMMIT, .in = &vote, .out = &all};
    qn_time_t left = complete(n, qn_coll_start(n->coll, &call, NULL));
    n->wrong += !qn_operation_given_up(n) && all != !refused;
    return left;
}

/* The operation that is measured. @return when it was complete here. */
static qn_time_t operate(struct state *s)
{
    const struct qn_operation_opts *o = &s->n->p->o;
    qn_time_t left = 0;
    if (o->op == QN_COLLECTIVE_REDUCE) {
        left = reduce(s, QN_COLL_REDUCE);
    } else if (o->op == QN_COLLECTIVE_2PC) {
        left = commit(s);
    } else if (o->size > 0) {
        left = reduce(s, QN_COLL_ALLREDUCE);
    } else if (o->other != NULL) {
        o->other(o->other_ctx);
        left = qn_clock_now();
    } else {
        left = complete(s->n, qn_coll_barrier(s->n->coll, NULL));
    }
    s->done++;
    return left;
}

/* @return true if it had passed already. */
static bool await_start(qn_time_t start)
{
    qn_time_t now = qn_clock_now();
    bool late = now > start;
    while (now < start) {
        qn_looks_until(start);
        qn_pause();
        now = qn_clock_now();
    }
    return late;
}

static void latencies(struct state *s, qn_time_t deadline)
{
    struct qn_operation_self *n = s->n;
    const struct qn_operation_opts *o = &n->p->o;
    /* Whose end counts; of nodes that share cores, whose start, too. */
    bool counts = s->root || (o->op != QN_COLLECTIVE_REDUCE && !o->shared);
    qn_time_t start = 0, left = 0;
    bool late = true;
    for (;;) {
        bool last = s->root && qn_operation_over(n, s->done, LEAST, deadline);
        uint64_t word[WORDS] = {[LEFT] = left, [LATE] = late, [LAST] = last};
        word[ENTERED] = qn_clock_now();
        agree(n, word);
        if (qn_operation_given_up(n)) {
            return;
        }
        if (s->root && s->done > COLD && word[LATE] == 0) {
            qn_histogram_record(&n->p->r->latency[0], word[LEFT] - start);
        }
        if (word[LAST] != 0) {
            return;
        }
        s->margin = word[LATE] != 0 ? QN_MIN(2 * s->margin, MARGIN_MAX)
                                    : s->margin - s->margin / 64;
        s->margin = QN_MAX(s->margin, MARGIN_MIN);
        start = o->shared ? qn_clock_now() : word[ENTERED] + s->margin;
        late = !o->shared && await_start(start);
        left = operate(s);
        left = counts ? left : 0;
    }
}

static void stream(struct state *s, double seconds)
{
    struct qn_operation_self *n = s->n;
    const uint64_t before = s->done;
    qn_time_t start = qn_clock_now();
    qn_time_t deadline = start + (qn_time_t)(seconds * (double)QN_S);
    uint64_t word[WORDS] = {0};
    while (word[LAST] == 0) {
        for (uint32_t i = 0; i < BATCH && !qn_operation_given_up(n); i++) {
            (void)operate(s);
        }
        word[LAST] =
            s->root && qn_operation_over(n, s->done - before, 0, deadline);
        agree(n, word);
        if (qn_operation_given_up(n)) {
            return;
        }
    }
    if (s->root) {
        n->p->r->stream += s->done - before;
        n->p->r->stream_s += (double)(qn_clock_now() - start) / (double)QN_S;
    }
}

int qn_operation_collectives(struct qn_operation_self *n)
{
    struct qn_operation *p = n->p;
    struct qn_operation_tally *mine = &p->tally[n->end->self];
    const struct qn_coll_opts o = {.self = n->end->self,
                                   .down = p->o.tree,
                                   .qp = n->end->tree_qp,
                                   .view = 1};
    const double half = p->o.seconds / 2;
    struct state s = {
        .n = n, .root = n->end->self == p->o.tree->root, .margin = MARGIN_MIN};
    int rc = qn_coll_create(&n->coll, &o);
    if (rc != QN_OK) {
        return rc;
    }
    mine->coll = n->coll;
    latencies(&s, qn_clock_now() + (qn_time_t)(half * (double)QN_S));
    if (!qn_operation_given_up(n)) {
        stream(&s, half);
    }
    /* release -> acquire in qn_operation_sum, which reads after all have
     * ended. */
    qn_store(&mine->delivered, s.done, QN_RELEASE);
    mine->wrong = n->wrong;
    return QN_OK;
}
