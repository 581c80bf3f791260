/*
 * The passes of core/topo/predict.c again, with a record of each message. They
 * are written a second time because the planner's predictions must not pay for
 * records; a test compares the two on every operation.
 *
 * A ring's messages go from higher to lower ids (the root counts as n), so ids
 * in descending order are a topological order and one loop is enough: a
 * forwarding core has its last message by then.
 */
#include "loadgen/topo/model/timeline.h"

#include <stdlib.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/topo/arrival.h"

static void add(struct qn_timeline *t, uint32_t core, uint32_t peer, bool send,
                double begin, double end)
{
    t->span[t->count++] = (struct qn_span){
        begin, end, (uint16_t)core, (uint16_t)peer, (uint8_t)t->phases, send};
}

/* Completes the phase that was written last. */
static void close_phase(struct qn_timeline *t, const char *name, double begin,
                        double end)
{
    t->phase[t->phases++] = (struct qn_phase){name, begin, end};
    t->end = QN_MAX(t->end, end);
}

/* From the root down, beginning at t0. @return the time when all cores are
 * informed. */
static double go_down(struct qn_timeline *t, const struct qn_machine *m,
                      const struct qn_shape *s, const char *name, double t0,
                      double *idle)
{
    uint16_t order[QN_CORES_MAX];
    double last = t0;
    uint32_t n = qn_shape_order(s, order);
    QN_ASSERT(n == m->n);
    t->at[s->root] = t0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t v = order[i];
        double now = t->at[v];
        for (uint32_t k = 0; k < s->count[v]; k++) {
            uint32_t c = qn_shape_children(s, v)[k];
            double sent = now + qn_send_cost(m, v, c);
            t->at[c] = sent + qn_receive_cost(m, v, c);
            add(t, v, c, true, now, sent);
            add(t, c, v, false, sent, t->at[c]);
            last = QN_MAX(last, t->at[c]);
            now = sent;
        }
        idle[v] = now;
    }
    close_phase(t, name, t0, last);
    return last;
}

/* v receives the messages of its children. @return the time when it has all. */
static double take_all(struct qn_timeline *t, const struct qn_machine *m,
                       const struct qn_shape *s, uint32_t v, double q,
                       double now, const double *sent)
{
    struct qn_arrival in[QN_CORES_MAX];
    uint32_t count = s->count[v];
    for (uint32_t k = 0; k < count; k++) {
        uint32_t c = qn_shape_children(s, v)[k];
        in[k] = (struct qn_arrival){sent[c], c};
    }
    if (count > 1) {
        qsort(in, count, sizeof *in, qn_arrival_order);
    }
    for (uint32_t k = 0; k < count; k++) {
        double r = qn_receive_cost(m, in[k].from, v);
        double begin = QN_MAX(now, in[k].visible);
        now = in[k].visible < now ? now + q * r : in[k].visible + r;
        add(t, v, in[k].from, false, begin, now);
    }
    return now;
}

/* From the leaves up; core v takes part from start[v] on. @return the time when
 * the root has all messages. `has` [n] is filled: when each core has its
 * subtree. */
static double go_up(struct qn_timeline *t, const struct qn_machine *m,
                    const struct qn_shape *s, const char *name, double q,
                    const double *start, double *has)
{
    uint16_t order[QN_CORES_MAX];
    double sent[QN_CORES_MAX], begin = start[s->root];
    uint32_t n = qn_shape_order(s, order);
    QN_ASSERT(n == m->n);
    for (uint32_t i = n; i-- > 0;) {
        uint32_t v = order[i], p = s->parent[v];
        has[v] = take_all(t, m, s, v, q, start[v], sent);
        begin = QN_MIN(begin, start[v]);
        if (v != s->root) {
            sent[v] = has[v] + qn_send_cost(m, v, p);
            add(t, v, p, true, has[v], sent[v]);
        }
    }
    close_phase(t, name, begin, has[s->root]);
    return has[s->root];
}

static struct qn_timeline *allocate(uint32_t n, size_t spans)
{
    struct qn_timeline *t = calloc(1, sizeof *t + spans * sizeof *t->span);
    if (t != NULL) {
        t->n = n;
        t->at_means = "informed";
    }
    return t;
}

/* A reduction is an operation of its own or the first part of a barrier. */
static void reduce(struct qn_timeline *t, const struct qn_machine *m,
                   const struct qn_shape *up, double q)
{
    double start[QN_CORES_MAX] = {0};
    (void)go_up(t, m, up, "reduction", q, start, t->at);
    t->at_means = "has its subtree";
}

int qn_timeline_trees(struct qn_timeline **out, const struct qn_machine *m,
                      const struct qn_shape *down, const struct qn_shape *up,
                      enum qn_goal goal, double q)
{
    struct qn_timeline *t = allocate(m->n, 2 * (size_t)QN_PHASES_MAX * m->n);
    double idle[QN_CORES_MAX], has[QN_CORES_MAX];
    if (t == NULL) {
        return QN_ENOMEM;
    }
    QN_ASSERT(goal < QN_GOALS && down->root == up->root);
    if (goal == QN_GOAL_REDUCE || goal == QN_GOAL_BARRIER) {
        reduce(t, m, up, q);
    }
    if (goal == QN_GOAL_BARRIER) {
        (void)go_down(t, m, down, "broadcast", t->end, idle);
        t->at_means = "released";
    } else if (goal != QN_GOAL_REDUCE) {
        bool votes = goal == QN_GOAL_2PC;
        (void)go_down(t, m, down, votes ? "prepare" : "broadcast", 0, idle);
        if (goal != QN_GOAL_BROADCAST && goal != QN_GOAL_STREAM) {
            (void)go_up(t, m, up, votes ? "votes" : "acknowledgements", q, idle,
                        has);
        }
        if (votes) {
            double turn = has[down->root];
            (void)go_down(t, m, down, "commit", turn, idle);
            t->at_means = "commits";
        }
    }
    *out = t;
    return QN_OK;
}

/* ---- rings ---- */

/* Messages in flight to a node, by visibility, ties to the lower core. */
struct inbox {
    uint32_t count;
    struct qn_arrival in[QN_CORES_MAX];
};

static double take_inbox(struct qn_timeline *t, const struct qn_machine *m,
                         uint32_t v, struct inbox *box, double q, double now,
                         bool note)
{
    qsort(box->in, box->count, sizeof *box->in, qn_arrival_order);
    for (uint32_t i = 0; i < box->count; i++) {
        uint32_t u = box->in[i].from;
        double r = qn_receive_cost(m, u, v), visible = box->in[i].visible;
        double begin = QN_MAX(now, visible);
        now = visible < now ? now + q * r : visible + r;
        add(t, v, u, false, begin, now);
        if (i == 0 && note) {
            t->at[v] = now;
        }
    }
    return now;
}

/* Messages to all successors of node `id`, at core v. */
static double forward(struct qn_timeline *t, const struct qn_machine *m,
                      const struct qn_diamond_ring *r, uint32_t id, double now,
                      struct inbox *box)
{
    uint32_t v = r->core[id];
    for (uint32_t i = r->first[id]; i < r->first[id + 1]; i++) {
        uint32_t to = r->next[i], w = r->core[to];
        double sent = now + qn_send_cost(m, v, w);
        add(t, v, w, true, now, sent);
        box[to].in[box[to].count++] = (struct qn_arrival){sent, v};
        now = sent;
    }
    return now;
}

int qn_timeline_ring(struct qn_timeline **out, const struct qn_machine *m,
                     const struct qn_diamond_ring *r, double q)
{
    struct qn_timeline *t = allocate(m->n, 2 * (size_t)r->messages + 1);
    struct inbox *box = calloc(m->n, sizeof *box);
    if (t == NULL || box == NULL) {
        free(t);
        free(box);
        return QN_ENOMEM;
    }
    QN_ASSERT(r->o.n == m->n);
    double sent = forward(t, m, r, 0, 0, box);
    /* The companion has id n-1 but comes last: all others before it. */
    uint32_t last = r->o.companion ? m->n - 1 : m->n;
    for (uint32_t id = last; id-- > 1;) {
        double has = take_inbox(t, m, r->core[id], &box[id], q, 0, true);
        (void)forward(t, m, r, id, has, box);
    }
    if (r->o.companion) {
        double has = take_inbox(t, m, r->core[last], &box[last], q, 0, true);
        (void)forward(t, m, r, last, has, box);
    }
    double end = take_inbox(t, m, r->core[0], &box[0], q, sent, false);
    close_phase(t, "acknowledged broadcast", 0, end);
    free(box);
    *out = t;
    return QN_OK;
}
