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
 * Here one after the other is replaced by the best one for the other, until
 * nothing falls, from each root, beginning with the fastest broadcast. That is
 * a plan to begin with, and says which roots are promising. Then each root is
 * searched for anything better until there is nothing, the most promising one
 * first (answered_proof.c). Of roots that are twins one is enough.
 */
#include "core/topo/answered.h"

#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/topo/answered_internal.h"

#define ROUNDS 10u /* of one tree after the other; 2 to 4 are used */

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

static double recursion(struct qn_answering *p, struct qn_subsets *x,
                        uint32_t root, const double *tail, const double *limit)
{
    qn_answering_spend(p, p->fill);
    qn_subsets_fill(x, root, tail, limit);
    return qn_subsets_value(x, root);
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

/* Nothing dearer than a plan with these times is looked for; NULL: there is no
 * such plan. */
static const double *limit_to(const struct qn_answering *p, const double *idle,
                              const double *tail, double *limit)
{
    if (idle == NULL || tail == NULL) {
        return NULL;
    }
    double most = 0;
    for (uint32_t v = 0; v < p->m->n; v++) {
        most = QN_MAX(most, idle[v] + tail[v]);
    }
    for (uint32_t v = 0; v < p->m->n; v++) {
        limit[v] = most * (1 + QN_ANSWERED_CLEARLY);
    }
    return limit;
}

/* The best D for this U. @return What the two cost. */
static double answer_down(struct qn_answering *p, const struct qn_shape *up,
                          const double *idle, struct qn_shape *down)
{
    double tail[QN_ANSWERED_MAX], limit[QN_ANSWERED_MAX];
    (void)qn_predict_broadcast(p->back.m, up, NULL, tail);
    (void)recursion(p, &p->there, up->root, tail,
                    limit_to(p, idle, tail, limit));
    qn_subsets_tree(&p->there, up->root, down);
    return qn_answering_offer(p, down, up);
}

/* Begin with a D whose cores are idle at these times. */
static double alternate(struct qn_answering *p, uint32_t root,
                        const double *first)
{
    double idle[QN_ANSWERED_MAX], tail[QN_ANSWERED_MAX], limit[QN_ANSWERED_MAX];
    double last = QN_SUBSETS_NEVER;
    memcpy(idle, first, p->m->n * sizeof *idle);
    for (uint32_t i = 0; i < ROUNDS && !p->cut; i++) {
        struct qn_shape down, up;
        (void)recursion(p, &p->back, root, idle,
                        limit_to(p, idle, i == 0 ? NULL : tail, limit));
        qn_subsets_tree(&p->back, root, &up);
        (void)qn_predict_broadcast(p->back.m, &up, NULL, tail);
        double cost = answer_down(p, &up, i == 0 ? NULL : idle, &down);
        if (!(cost < last * (1 - QN_ANSWERED_CLEARLY))) {
            return last;
        }
        last = cost;
        (void)qn_predict_broadcast(p->m, &down, NULL, idle);
    }
    return last;
}

static double from_fastest_broadcast(struct qn_answering *p, uint32_t root)
{
    struct qn_shape down;
    double idle[QN_ANSWERED_MAX];
    (void)recursion(p, &p->there, root, NULL, NULL);
    qn_subsets_tree(&p->there, root, &down);
    (void)qn_predict_broadcast(p->m, &down, NULL, idle);
    return alternate(p, root, idle);
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
    double cost[QN_ANSWERED_MAX];
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
    uint32_t order[QN_ANSWERED_MAX] = {0};
    uint32_t roots = begin(p, order);
    for (uint32_t i = 0; i < roots && !p->cut; i++) {
        qn_answering_prove(p, order[i]);
    }
    return !p->cut;
}

int qn_answered_search(struct qn_answered *out, const struct qn_machine *m,
                       const struct qn_machine *back,
                       const struct qn_answered_opts *o)
{
    QN_ASSERT(m->n >= 2 && m->n <= QN_ANSWERED_MAX && back->n == m->n);
    struct qn_answered found = *out;
    struct qn_answering p = {
        .m = m, .o = o, .out = &found, .fill = 5, .left = o->moves};
    for (uint32_t i = 2; i < m->n; i++) {
        p.fill *= 5;
    }
    p.fill = 6 + p.fill / 1200;
    int err = qn_subsets_init(&p.there, m);
    err = err == QN_OK ? qn_subsets_init(&p.back, back) : err;
    err = err == QN_OK ? qn_handover_init(&p.down, m) : err;
    err = err == QN_OK ? qn_handover_init(&p.up, back) : err;
    if (err == QN_OK) {
        found.exact = run(&p);
        found.moves = o->moves - p.left;
        *out = found;
    }
    qn_subsets_fini(&p.there);
    qn_subsets_fini(&p.back);
    qn_handover_fini(&p.down);
    qn_handover_fini(&p.up);
    return err;
}
