/*
 * With q = 1 an answer is a broadcast back in time: what lies between a core's
 * last send and the root's last receive is the time at which that core would
 * have sent its last message if the root broadcast over the answers' tree with
 * all costs exchanged. So for two trees D and U
 *
 *     cost = max over v of idle(D, v) + idle'(U, v)
 *
 * and for a given D the best U is the recursion over subsets with the idle
 * times of D as tails; for a given U the best D is the same with U's.
 *
 * From each root the fastest broadcast and the best answer to it are a plan to
 * begin with, and say which roots are promising. Then each root is searched for
 * anything better until there is nothing, the most promising one first
 * (ack_plan_proof.c). Of roots that are twins one is enough. To improve those
 * first plans, one tree for the other in turn, costs more than it saves later.
 */
#include "core/plan/exact/ack_plan.h"

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/plan/exact/ack_plan_internal.h"

void qn_answering_spend(struct qn_answering *p, uint64_t moves)
{
    p->cut = p->cut || p->left < moves;
    p->left -= QN_MIN(p->left, moves);
}

bool qn_answering_twins(const struct qn_machine *m, uint32_t u, uint32_t v)
{
    bool twins = qn_send_cost(m, u, v) == qn_send_cost(m, v, u) &&
                 qn_receive_cost(m, u, v) == qn_receive_cost(m, v, u);
    for (uint32_t w = 0; w < m->n; w++) {
        twins =
            twins && (w == u || w == v ||
                      (qn_send_cost(m, u, w) == qn_send_cost(m, v, w) &&
                       qn_send_cost(m, w, u) == qn_send_cost(m, w, v) &&
                       qn_receive_cost(m, u, w) == qn_receive_cost(m, v, w) &&
                       qn_receive_cost(m, w, u) == qn_receive_cost(m, w, v)));
    }
    return twins;
}

static void recursion(struct qn_answering *p, struct qn_subset_dp *x,
                      uint32_t root, const double *tail)
{
    qn_answering_spend(p, p->fill);
    qn_subset_dp_fill(x, root, tail, NULL);
}

double qn_answering_offer(struct qn_answering *p, const struct qn_shape *down,
                          const struct qn_shape *up)
{
    enum qn_goal goal = p->o->commit ? QN_GOAL_2PC : QN_GOAL_ACK;
    double cost = qn_plan_cost(p->m, down, up, goal, 1);
    if (cost < p->out->cost) {
        p->out->cost = cost;
        p->out->down = *down;
        p->out->up = *up;
    }
    return cost;
}

/* The fastest broadcast and the best answer to it. @return What they cost. */
static double from_fastest_broadcast(struct qn_answering *p, uint32_t root)
{
    struct qn_shape down, up;
    double idle[QN_ACK_PLAN_MAX];
    recursion(p, &p->there, root, NULL);
    qn_subset_dp_tree(&p->there, root, &down);
    (void)qn_predict_broadcast(p->m, &down, NULL, idle);
    recursion(p, &p->back, root, idle);
    qn_subset_dp_tree(&p->back, root, &up);
    return qn_answering_offer(p, &down, &up);
}

/* Whether nothing has to be done from this root that is not done from another
 * one. */
static bool idle_root(const struct qn_answering *p, uint32_t v)
{
    if (p->o->root != QN_ROOT_FREE) {
        return p->o->root != v;
    }
    if (v == p->o->proven) {
        return true;
    }
    for (uint32_t u = 0; u < v; u++) {
        if (qn_answering_twins(p->m, u, v)) {
            return true;
        }
    }
    return false;
}

/* All roots that have to be looked at, by what is found from them at once. */
static uint32_t begin(struct qn_answering *p, uint32_t *order)
{
    double cost[QN_ACK_PLAN_MAX];
    uint32_t roots = 0;
    for (uint32_t v = 0; v < p->m->n && !p->cut; v++) {
        if (idle_root(p, v)) {
            continue;
        }
        cost[v] = from_fastest_broadcast(p, v);
        uint32_t i = roots++;
        for (; i > 0 && cost[order[i - 1]] > cost[v]; i--) {
            order[i] = order[i - 1];
        }
        order[i] = v;
    }
    return roots;
}

/* @return Whether nothing better is left. */
static bool run(struct qn_answering *p)
{
    uint32_t order[QN_ACK_PLAN_MAX] = {0};
    uint32_t roots = begin(p, order);
    for (uint32_t i = 0; i < roots && !p->cut; i++) {
        qn_answering_prove(p, order[i]);
    }
    return !p->cut;
}

int qn_ack_plan_search(struct qn_ack_plan *out, const struct qn_machine *m,
                       const struct qn_machine *back,
                       const struct qn_ack_plan_opts *o)
{
    QN_ASSERT(m->n >= 2 && m->n <= QN_ACK_PLAN_MAX && back->n == m->n);
    struct qn_ack_plan found = *out;
    struct qn_answering p = {
        .m = m, .o = o, .out = &found, .fill = 5, .left = o->moves};
    for (uint32_t i = 2; i < m->n; i++) {
        p.fill *= 5;
    }
    p.fill = 6 + p.fill / 1800;
    int err = qn_subset_dp_init(&p.there, m);
    err = err == QN_OK ? qn_subset_dp_init(&p.back, back) : err;
    err = err == QN_OK ? qn_transfer_edge_init(&p.down, m) : err;
    err = err == QN_OK ? qn_transfer_edge_init(&p.up, back) : err;
    if (err == QN_OK) {
        found.exact = run(&p);
        found.moves = o->moves - p.left;
        *out = found;
    }
    qn_subset_dp_fini(&p.there);
    qn_subset_dp_fini(&p.back);
    qn_transfer_edge_fini(&p.down);
    qn_transfer_edge_fini(&p.up);
    return err;
}
