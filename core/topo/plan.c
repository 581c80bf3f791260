/*
 * The best of all candidates by the goal. With a free root they are built from
 * the first core, where static trees are rooted by custom, and from the root
 * that the adaptive tree would choose.
 */
#include "core/topo/plan.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/topo/adaptive.h"
#include "core/topo/candidates.h"

const char *qn_goal_name(uint32_t goal)
{
    return goal < QN_OPS                ? qn_op_name(goal)
           : goal == QN_GOAL_THROUGHPUT ? "throughput"
           : goal == QN_GOAL_STREAM     ? "stream"
                                        : NULL;
}

/* Cycles that the busiest core spends on sends down and receives up. */
static double occupancy(const struct qn_machine *m, const struct qn_shape *down,
                        const struct qn_shape *up, bool acks)
{
    double busy[QN_CORES_MAX] = {0}, most = 0;
    for (uint32_t v = 0; v < m->n; v++) {
        uint32_t d = down->parent[v], u = up->parent[v];
        if (v != down->root) {
            busy[d] += qn_send_cost(m, d, v);
            busy[v] += qn_receive_cost(m, d, v);
            busy[v] += acks ? qn_send_cost(m, v, u) : 0;
            busy[u] += acks ? qn_receive_cost(m, v, u) : 0;
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
    if (goal == QN_GOAL_REDUCE) {
        return qn_predict_reduce(m, up, q, NULL, NULL);
    }
    if (goal == QN_GOAL_THROUGHPUT || goal == QN_GOAL_STREAM) {
        return occupancy(m, down, up, goal == QN_GOAL_THROUGHPUT);
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

struct planner {
    const struct qn_machine *m;
    const struct qn_plan_opts *o;
    struct qn_plan best;
    bool any;
};

static void consider(void *arg, const char *name, const struct qn_shape *s)
{
    struct planner *p = arg;
    double cost = qn_plan_cost(p->m, s, s, p->o->goal, p->o->q);
    if (!p->any || cost < p->best.cost) {
        p->any = true;
        p->best.cost = cost;
        p->best.down = p->best.up = *s;
        snprintf(p->best.from, sizeof p->best.from, "%s", name);
    }
}

static int look_at_all(struct planner *p)
{
    uint32_t root = p->o->root == QN_ROOT_FREE ? 0 : p->o->root;
    int err = qn_candidates(p->m, root, consider, p);
    root = qn_adaptive_root(p->m);
    if (err == QN_OK && p->o->root == QN_ROOT_FREE && root != 0) {
        err = qn_candidates(p->m, root, consider, p);
    }
    return err;
}

int qn_plan(struct qn_plan *out, const struct qn_machine *m,
            const struct qn_plan_opts *o)
{
    if ((o->root >= m->n && o->root != QN_ROOT_FREE) || o->goal >= QN_GOALS ||
        !(o->q >= 0 && o->q <= 1)) {
        return QN_EINVAL;
    }
    struct planner *p = calloc(1, sizeof *p);
    if (p == NULL) {
        return QN_ENOMEM;
    }
    p->m = m;
    p->o = o;
    int err = look_at_all(p);
    if (err == QN_OK) {
        *out = p->best;
    }
    free(p);
    return err;
}
