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
 * Finding: one after the other is replaced by the best one for the other, until
 * nothing falls. From each root that begins with the fastest broadcast, and
 * then from the best trees with times disturbed at random. A commit goes down
 * D, so there D's latency counts twice: tails below a floor cannot be told from
 * the floor, and of some floors the best D is kept.
 *
 * Proving: D is built message by message, always by the core that is free first
 * among those that have not stopped; it informs somebody new, or stops. So each
 * D is built in one way only. At any moment each core's idle time has a lower
 * bound: its clock, or for who is not informed yet, the shortest way from who
 * may still send. The best U for those bounds costs no more than any plan that
 * can still come of it. If that is not less than what is known, no such plan
 * needs to be looked at. It is a strong bound: 8 cores and a given root take
 * 100 to 12000 recursions, where there are 2 * 10^6 trees D with 3 * 10^5 trees
 * U each. Without new bounds a node needs no recursion of its own.
 *
 * Limits: a recursion takes about 17 us for 8 cores and 0.25 ms for 10, where a
 * proof is some ten thousands of them. Nine tenths of all time is choose() in
 * subsets.c, at some 3 ns per subset.
 */
#include "core/topo/answered.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/topo/anneal.h"

#define ROUNDS   10u /* of one tree after the other; 2 to 4 are used */
#define RESTARTS 12u
#define FLOORS   4u
#define CLEARLY  1e-9 /* part of the cost by which better is better */

struct work {
    const struct qn_machine *m;
    const struct qn_answered_opts *o;
    struct qn_answered *out;
    struct qn_subsets there, back; /* the machine, and back in time */
    struct qn_anneal random;
    uint64_t left; /* recursions */
    bool cut;      /* there were not enough of them */
    /* of a proof */
    uint32_t root, informed, stopped; /* sets of cores */
    double quickest;                  /* broadcast from this root */
    double clock[QN_ANSWERED_MAX];    /* of the informed */
    struct qn_edges edges;            /* of D so far */
};

static double recursion(struct work *p, struct qn_subsets *x, uint32_t root,
                        const double *tail, const double *limit)
{
    p->cut = p->cut || p->left == 0;
    p->left -= p->left > 0;
    qn_subsets_fill(x, root, tail, limit);
    return qn_subsets_value(x, root);
}

static double offer(struct work *p, const struct qn_shape *down,
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
static const double *limit_to(const struct work *p, const double *idle,
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
        limit[v] = most * (1 + CLEARLY);
    }
    return limit;
}

/* The best D for this U, by the whole cost. */
static double answer_down(struct work *p, const struct qn_shape *up,
                          const double *idle, struct qn_shape *down)
{
    double limit[QN_ANSWERED_MAX];
    double tail[QN_ANSWERED_MAX], floored[QN_ANSWERED_MAX],
        least = QN_SUBSETS_NEVER;
    double most = qn_predict_broadcast(p->back.m, up, NULL, tail);
    uint32_t floors = p->o->commit && idle != NULL ? FLOORS : 1;
    for (uint32_t i = 0; i < floors && !p->cut; i++) {
        struct qn_shape d;
        for (uint32_t v = 0; v < p->m->n; v++) {
            floored[v] = QN_MAX(tail[v], most * i / FLOORS);
        }
        (void)recursion(p, &p->there, up->root, floored,
                        limit_to(p, idle, floored, limit));
        qn_subsets_tree(&p->there, up->root, &d);
        double cost = offer(p, &d, up);
        if (cost < least) {
            least = cost;
            *down = d;
        }
    }
    return least;
}

/* Begin with a D whose cores are idle at these times. */
static void alternate(struct work *p, uint32_t root, const double *first)
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
        if (!(cost < last * (1 - CLEARLY))) {
            return;
        }
        last = cost;
        (void)qn_predict_broadcast(p->m, &down, NULL, idle);
    }
}

static void from_fastest_broadcast(struct work *p, uint32_t root)
{
    struct qn_shape down;
    double idle[QN_ANSWERED_MAX];
    (void)recursion(p, &p->there, root, NULL, NULL);
    qn_subsets_tree(&p->there, root, &down);
    (void)qn_predict_broadcast(p->m, &down, NULL, idle);
    alternate(p, root, idle);
}

/* Every second time from another root. */
static void from_disturbed(struct work *p, bool elsewhere)
{
    double idle[QN_ANSWERED_MAX];
    uint32_t root = p->out->down.root;
    (void)qn_predict_broadcast(p->m, &p->out->down, NULL, idle);
    for (uint32_t v = 0; v < p->m->n; v++) {
        idle[v] *= 0.5 + qn_anneal_below(&p->random, 1024) / 1024.0;
    }
    if (elsewhere && p->o->root == QN_ROOT_FREE) {
        root = qn_anneal_below(&p->random, p->m->n);
    }
    alternate(p, root, idle);
}

/* Lower bounds of the times at which cores are idle; the largest. */
static double bounds(const struct work *p, double *idle)
{
    double most = p->quickest;
    for (uint32_t v = 0; v < p->m->n; v++) {
        uint32_t senders = p->informed & ~p->stopped;
        idle[v] = (p->informed >> v & 1) != 0 ? p->clock[v] : QN_SUBSETS_NEVER;
        if ((p->informed >> v & 1) == 0) {
            for (; senders != 0; senders &= senders - 1) {
                uint32_t u = (uint32_t)__builtin_ctz(senders);
                idle[v] = QN_MIN(idle[v],
                                 p->clock[u] + p->there.way[u * p->m->n + v]);
            }
        }
        most = QN_MAX(most, idle[v]);
    }
    return most;
}

/* Whether no plan from here is better; else the table has the best U. */
static bool hopeless(struct work *p, const double *idle, double latest)
{
    double limit[QN_ANSWERED_MAX];
    double most = p->out->cost * (1 - CLEARLY) - (p->o->commit ? latest : 0);
    for (uint32_t v = 0; v < p->m->n; v++) {
        limit[v] = most - p->back.way[p->root * p->m->n + v];
        if (idle[v] >= limit[v]) {
            return true;
        }
    }
    return !(recursion(p, &p->back, p->root, idle, limit) < QN_SUBSETS_NEVER);
}

static void complete(struct work *p, const double *idle)
{
    struct qn_shape down, up;
    (void)recursion(p, &p->back, p->root, idle, NULL);
    qn_subsets_tree(&p->back, p->root, &up);
    int err = qn_shape_from_edges(&down, &p->edges, p->root);
    QN_ASSERT(err == QN_OK);
    (void)offer(p, &down, &up);
}

/* Who is free first of those that may send; n: nobody. */
static uint32_t next_sender(const struct work *p)
{
    uint32_t best = p->m->n;
    for (uint32_t v = 0; v < p->m->n; v++) {
        bool may = ((p->informed & ~p->stopped) >> v & 1) != 0;
        if (may && (best == p->m->n || p->clock[v] < p->clock[best])) {
            best = v;
        }
    }
    return best;
}

/* All plans that begin with the present messages. `known`: the bounds of who
 * called, which were not hopeless; NULL: none. */
static void branch(struct work *p, const double *known)
{
    uint32_t n = p->m->n, v = next_sender(p);
    double idle[QN_ANSWERED_MAX];
    double latest = bounds(p, idle);
    if (p->cut || v == n ||
        ((known == NULL || memcmp(known, idle, n * sizeof *idle) != 0) &&
         hopeless(p, idle, latest))) {
        return;
    }
    if (p->informed == (1U << n) - 1) {
        complete(p, idle);
        return;
    }
    double now = p->clock[v];
    for (uint32_t u = 0; u < n; u++) {
        if ((p->informed >> u & 1) == 0) {
            p->informed |= 1U << u;
            p->clock[v] = now + qn_send_cost(p->m, v, u);
            p->clock[u] = p->clock[v] + qn_receive_cost(p->m, v, u);
            qn_edges_add(&p->edges, v, u);
            branch(p, idle);
            p->edges.count--;
            p->informed &= ~(1U << u);
        }
    }
    p->clock[v] = now;
    p->stopped |= 1U << v;
    branch(p, idle);
    p->stopped &= ~(1U << v);
}

static void prove(struct work *p, uint32_t root)
{
    p->root = root;
    p->quickest = recursion(p, &p->there, root, NULL, NULL);
    p->informed = 1U << root;
    p->stopped = 0;
    p->clock[root] = 0;
    qn_edges_init(&p->edges, p->m->n);
    branch(p, NULL);
}

static void run(struct work *p)
{
    uint32_t root = p->o->root, n = p->m->n;
    for (uint32_t v = 0; v < n; v++) {
        if (root == QN_ROOT_FREE || root == v) {
            from_fastest_broadcast(p, v);
        }
    }
    for (uint32_t i = 0; i < RESTARTS && !p->cut; i++) {
        from_disturbed(p, i % 2 != 0);
    }
    for (uint32_t v = 0; v < n && !p->cut; v++) {
        if ((root == QN_ROOT_FREE || root == v) && v != p->o->proven) {
            prove(p, v);
        }
    }
}

int qn_answered_search(struct qn_answered *out, const struct qn_machine *m,
                       const struct qn_machine *back,
                       const struct qn_answered_opts *o)
{
    QN_ASSERT(m->n >= 2 && m->n <= QN_ANSWERED_MAX && back->n == m->n);
    uint64_t each = 5;
    for (uint32_t i = 2; i < m->n; i++) {
        each *= 5;
    }
    each = 6 + each / 1200;
    struct work *p = calloc(1, sizeof *p);
    int err = p == NULL ? QN_ENOMEM : qn_subsets_init(&p->there, m);
    err = err == QN_OK ? qn_subsets_init(&p->back, back) : err;
    if (err == QN_OK) {
        uint64_t all = o->moves / each + 1;
        p->m = m;
        p->o = o;
        p->out = out;
        p->random.random = o->seed;
        p->left = all;
        run(p);
        out->exact = !p->cut;
        out->moves = (all - p->left) * each;
    }
    if (p != NULL) {
        qn_subsets_fini(&p->there);
        qn_subsets_fini(&p->back);
    }
    free(p);
    return err;
}
