/*
 * Candidates come first: they are the start of the search and the floor under
 * it. With a free root they are built from the first core, where static trees
 * are rooted by custom, and from the root that the adaptive tree would choose.
 * If that is clearly nearer to all, the search begins with one of its trees,
 * though one from the first core may be better at first: a search seldom moves
 * a root far.
 *
 * Small groups: a reduction with q = 1 is a broadcast back in time, s and r
 * and the direction of every edge exchanged, because on a path from a leaf to
 * the root the last message that was waited for plays the part of the critical
 * child. So the subset recursion solves both, and a barrier with a tree per
 * direction is the root for which the two sum up to least. Of answered
 * broadcasts answered.h finds and proves the best two trees.
 */
#include "core/plan/plan.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/plan/exact/ack_plan.h"
#include "core/plan/planner_internal.h"
#include "core/topo/adaptive.h"
#include "core/topo/candidates.h"

/* For two trees of an answered broadcast: 25 to 35 ms. As many again for a free
 * root. */
#define ANSWERED_MOVES 85000u

#define CLEARLY_NEARER 0.8 /* part of the way to all others */

static bool within_occupancy(const struct qn_planner *p, double busy)
{
    return !(p->o.max_occupancy > 0) || busy <= p->o.max_occupancy;
}

/* What is made small: the cost or its quantile; above the bound of occupancy
 * all that counts is occupancy, and nothing there beats what keeps it. */
static double merit_of(const struct qn_planner *p, double cost,
                       const struct qn_shape *down, const struct qn_shape *up)
{
    double busy = qn_plan_occupancy(p->m, down, up, p->o.goal);
    if (!within_occupancy(p, busy)) {
        return 1e100 * busy;
    }
    return p->scratch == NULL ? cost
                              : qn_plan_disturbed(p->scratch, p->m, down, up,
                                                  p->o.goal, p->o.q, p->o.seed);
}

void qn_planner_offer(struct qn_planner *p, const char *from,
                      const struct qn_shape *down, const struct qn_shape *up)
{
    double cost = qn_plan_cost(p->m, down, up, p->o.goal, p->o.q);
    double merit = merit_of(p, cost, down, up);
    if (!p->any || merit < p->merit) {
        p->any = true;
        p->merit = merit;
        p->best.cost = cost;
        p->best.down = *down;
        p->best.up = *up;
        snprintf(p->best.from, sizeof p->best.from, "%s", from);
    }
}

static void candidate(void *arg, const char *name, const struct qn_shape *s)
{
    struct qn_planner *p = arg;
    double cost = qn_plan_cost(p->m, s, s, p->o.goal, p->o.q);
    if (p->start_cost == 0 || cost < p->start_cost) {
        p->start_cost = cost;
        p->start = *s;
    }
    qn_planner_offer(p, name, s, s);
}

static double way_to_all(const struct qn_machine *m, uint32_t u)
{
    double sum = 0;
    for (uint32_t v = 0; v < m->n; v++) {
        sum += u == v ? 0
                      : qn_send_cost(m, u, v) + qn_receive_cost(m, u, v) +
                            qn_send_cost(m, v, u) + qn_receive_cost(m, v, u);
    }
    return sum;
}

/* What was built from the first core before is not built again: with costs
 * without structure adaptive trees take a tenth of the time. */
static int look_at_candidates(struct qn_planner *p)
{
    bool free_root = p->o.root == QN_ROOT_FREE;
    int err =
        p->any ? QN_OK
               : qn_candidates(p->m, free_root ? 0 : p->o.root, candidate, p);
    uint32_t root = qn_adaptive_root(p->m);
    if (err == QN_OK && free_root && root != 0) {
        if (way_to_all(p->m, root) < CLEARLY_NEARER * way_to_all(p->m, 0)) {
            p->start_cost = 0; /* begin there */
        }
        err = qn_candidates(p->m, root, candidate, p);
    }
    return err;
}

/* The machine on which a broadcast is a reduction on m, back in time. */
static int reverse(struct qn_machine **out, const struct qn_machine *m)
{
    int err = qn_machine_create(out, m->n);
    for (uint32_t u = 0; err == QN_OK && u < m->n; u++) {
        for (uint32_t v = 0; v < m->n; v++) {
            size_t at = (size_t)u * m->n + v;
            (*out)->send[at] = qn_receive_cost(m, v, u);
            (*out)->receive[at] = qn_send_cost(m, v, u);
        }
    }
    return err;
}

static bool solvable(const struct qn_planner *p)
{
    const struct qn_plan_opts *o = &p->o;
    if (p->m->n > QN_PLAN_EXACT_MAX || o->max_occupancy > 0 || o->robust) {
        return false;
    }
    bool lockstep = !(o->q < 1);
    return o->goal == QN_GOAL_BROADCAST ||
           (o->goal == QN_GOAL_REDUCE && lockstep) ||
           (o->goal == QN_GOAL_BARRIER && lockstep && !o->one_tree);
}

/* The root from which both directions together take least. */
static int common_root(const struct qn_machine *m, const struct qn_machine *r,
                       uint32_t *root)
{
    double down[QN_OPTIMUM_MAX], up[QN_OPTIMUM_MAX];
    int err = qn_optimum_roots(m, down);
    err = err == QN_OK ? qn_optimum_roots(r, up) : err;
    *root = 0;
    for (uint32_t v = 1; err == QN_OK && v < m->n; v++) {
        *root = down[v] + up[v] < down[*root] + up[*root] ? v : *root;
    }
    return err;
}

static int solve(struct qn_planner *p)
{
    struct qn_machine *r = NULL;
    struct qn_shape down, up;
    uint32_t root = p->o.root;
    int err = look_at_candidates(p);
    err = err == QN_OK ? reverse(&r, p->m) : err;
    if (err == QN_OK && p->o.goal == QN_GOAL_BARRIER && root == QN_ROOT_FREE) {
        err = common_root(p->m, r, &root);
    }
    if (err == QN_OK && p->o.goal != QN_GOAL_REDUCE) {
        err = qn_optimum_build(&down, p->m, root, NULL);
        up = down;
    }
    if (err == QN_OK && p->o.goal != QN_GOAL_BROADCAST) {
        err = qn_optimum_build(&up, r, root, NULL);
        down = p->o.goal == QN_GOAL_REDUCE ? up : down;
    }
    qn_machine_destroy(r);
    if (err == QN_OK) {
        qn_planner_offer(p, "exact", &down, &up);
        p->best.exact = true;
    }
    return err;
}

static bool answered_pair(const struct qn_planner *p)
{
    const struct qn_plan_opts *o = &p->o;
    return (o->goal == QN_GOAL_ACK || o->goal == QN_GOAL_2PC) && !(o->q < 1) &&
           p->m->n <= QN_ACK_PLAN_MAX && !o->one_tree &&
           !(o->max_occupancy > 0) && !o->robust;
}

/* Two trees for answered broadcasts, from the best candidate. */
static int search_answered(struct qn_planner *p)
{
    struct qn_machine *r = NULL;
    struct qn_ack_plan x = {
        .down = p->best.down, .up = p->best.up, .cost = p->best.cost};
    struct qn_ack_plan_opts o = {.commit = p->o.goal == QN_GOAL_2PC,
                                 .root = p->o.root,
                                 .proven = QN_ROOT_FREE,
                                 .moves = p->o.moves};
    o.moves = o.moves == 0 ? ANSWERED_MOVES : o.moves;
    if (p->o.root == QN_ROOT_FREE) { /* after the first core */
        o.proven = p->best.exact ? 0 : QN_ROOT_FREE;
        o.moves = o.moves * 2 - QN_MIN(p->best.moves, o.moves);
    }
    int err = reverse(&r, p->m);
    err = err == QN_OK ? qn_ack_plan_search(&x, p->m, r, &o) : err;
    qn_machine_destroy(r);
    if (err == QN_OK) {
        p->best.exact = x.exact;
        p->best.provable = !x.exact;
        p->best.moves += x.moves;
        qn_planner_offer(p, x.exact ? "exact" : "search", &x.down, &x.up);
    }
    return err;
}

static int search_once(struct qn_planner *p)
{
    int err = look_at_candidates(p);
    if (err != QN_OK) {
        return err;
    }
    return answered_pair(p) ? search_answered(p) : qn_planner_search(p);
}

/* With a free root first what is planned from the first core, move by move,
 * then as many again over all roots, so that freedom is never a loss. Whatever
 * the first search found as a start of the second made means worse by up to 1
 * %. */
static int search(struct qn_planner *p)
{
    bool free_root = p->o.root == QN_ROOT_FREE;
    p->o.root = free_root ? 0 : p->o.root;
    int err = search_once(p);
    if (err == QN_OK && free_root) {
        p->o.root = QN_ROOT_FREE;
        err = search_once(p);
    }
    return err;
}

static bool valid(const struct qn_machine *m, const struct qn_plan_opts *o)
{
    return (o->root < m->n || o->root == QN_ROOT_FREE) && o->goal < QN_GOALS &&
           o->q >= 0 && o->q <= 1 && o->max_occupancy >= 0;
}

int qn_plan(struct qn_plan *out, const struct qn_machine *m,
            const struct qn_plan_opts *o)
{
    if (!valid(m, o)) {
        return QN_EINVAL;
    }
    struct qn_planner *p = calloc(1, sizeof *p);
    if (p == NULL) {
        return QN_ENOMEM;
    }
    p->m = m;
    p->o = *o;
    p->o.one_tree = o->one_tree || o->max_occupancy > 0;
    int err = o->robust ? qn_machine_create(&p->scratch, m->n) : QN_OK;
    if (err == QN_OK && m->n == 1) {
        err = look_at_candidates(p); /* one core has one tree */
    } else if (err == QN_OK) {
        err = solvable(p) ? solve(p) : search(p);
    }
    if (err == QN_OK) {
        p->best.exact = p->best.exact || m->n == 1;
        *out = p->best;
    }
    qn_machine_destroy(p->scratch);
    free(p);
    return err;
}
