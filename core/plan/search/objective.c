/*
 * A disturbed machine differs in the costs that the trees use; no other cost
 * is looked at, so only those are written. A cost's disturbance depends on the
 * sample and on the edge, not on the tree: all trees are judged in the same
 * twenty worlds.
 */
#include "core/plan/search/objective.h"

#include <stdlib.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/plan/search/anneal.h"

#define DISTURBANCE 0.1

const char *qn_goal_name(uint32_t goal)
{
    return goal < QN_COLLECTIVES        ? qn_collective_name(goal)
           : goal == QN_GOAL_THROUGHPUT ? "throughput"
           : goal == QN_GOAL_STREAM     ? "stream"
                                        : NULL;
}

double qn_plan_occupancy(const struct qn_machine *m,
                         const struct qn_shape *down, const struct qn_shape *up,
                         enum qn_goal goal)
{
    bool there = goal != QN_GOAL_REDUCE;
    bool back = goal != QN_GOAL_BROADCAST && goal != QN_GOAL_STREAM;
    double busy[QN_CORES_MAX] = {0}, most = 0;
    for (uint32_t v = 0; v < m->n; v++) {
        uint32_t d = down->parent[v], u = up->parent[v];
        if (there && v != down->root) {
            busy[d] += qn_send_cost(m, d, v);
            busy[v] += qn_receive_cost(m, d, v);
        }
        if (back && v != up->root) {
            busy[v] += qn_send_cost(m, v, u);
            busy[u] += qn_receive_cost(m, v, u);
        }
    }
    for (uint32_t v = 0; v < m->n; v++) {
        most = QN_MAX(most, busy[v]);
    }
    return most;
}

double qn_plan_cost(const struct qn_machine *m, const struct qn_shape *down,
                    const struct qn_shape *up, enum qn_goal goal, double q)
{
    double idle[QN_CORES_MAX];
    QN_ASSERT(goal < QN_GOALS && down->root == up->root);
    if (goal == QN_GOAL_REDUCE) {
        return qn_predict_reduce(m, up, q, NULL, NULL);
    }
    if (goal == QN_GOAL_THROUGHPUT || goal == QN_GOAL_STREAM) {
        return qn_plan_occupancy(m, down, up, goal);
    }
    double cost = qn_predict_broadcast(m, down, NULL, idle);
    if (goal == QN_GOAL_BROADCAST) {
        return cost;
    }
    if (goal == QN_GOAL_BARRIER) {
        return qn_predict_reduce(m, up, q, NULL, NULL) + cost;
    }
    double acked = qn_predict_reduce(m, up, q, idle, NULL);
    return goal == QN_GOAL_ACK ? acked : acked + cost;
}

/* Uniform in 1 - DISTURBANCE .. 1 + DISTURBANCE. */
static double factor(struct qn_anneal *a)
{
    double unit = (double)(qn_anneal_random(a) >> 11) * 0x1p-53;
    return 1 + DISTURBANCE * (2 * unit - 1);
}

static void disturb_edge(struct qn_machine *to, const struct qn_machine *m,
                         uint32_t u, uint32_t v, uint64_t seed)
{
    size_t at = (size_t)u * m->n + v;
    struct qn_anneal a = {.random = seed + at * 0x2545f4914f6cdd1dU};
    to->send[at] = m->send[at] * factor(&a);
    to->receive[at] = m->receive[at] * factor(&a);
}

static void disturb(struct qn_machine *to, const struct qn_machine *m,
                    const struct qn_shape *s, uint64_t seed)
{
    for (uint32_t v = 0; v < m->n; v++) {
        if (v != s->root) {
            disturb_edge(to, m, s->parent[v], v, seed);
            disturb_edge(to, m, v, s->parent[v], seed);
        }
    }
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double qn_plan_disturbed(struct qn_machine *scratch, const struct qn_machine *m,
                         const struct qn_shape *down, const struct qn_shape *up,
                         enum qn_goal goal, double q, uint64_t seed)
{
    double cost[QN_DISTURBED_SAMPLES];
    struct qn_anneal a = {.random = seed};
    QN_ASSERT(scratch->n == m->n);
    for (uint32_t i = 0; i < QN_DISTURBED_SAMPLES; i++) {
        uint64_t world = qn_anneal_random(&a);
        disturb(scratch, m, down, world);
        disturb(scratch, m, up, world);
        cost[i] = qn_plan_cost(scratch, down, up, goal, q);
    }
    qsort(cost, QN_DISTURBED_SAMPLES, sizeof *cost, by_value);
    return cost[QN_DISTURBED_SAMPLES * 9 / 10 - 1];
}
