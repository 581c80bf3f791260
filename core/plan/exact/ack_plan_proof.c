/*
 * For each core v there is a moment between x(v), when D lets it go, and
 * cost - y(v), when U needs it. The two trees have nothing else to do with each
 * other. So the search is for these moments. A box holds an interval for each:
 *
 *     idle(v) <= x(v) <= due(v),    y(v) >= tail(v),    x(v) + y(v) <= limit
 *
 * D with its latest times as tails of the recursion over subsets is one bound:
 * if it does not end within the limit, the box is empty. U with the earliest
 * ones is the other. And each tells the other more: the least idle time of v
 * over all D that end in time raises idle(v), that of U raises tail(v)
 * (transfer_edges.c has both from two passes), until nothing moves any more.
 * What D and U are left with then are two trees. D with the best U for it may
 * be a better plan. Then, if the two do not fit, there is a core that D lets go
 * later than U needs it: the box is cut in two at a moment in between, x(v)
 * before it or after, and either one of the trees must change.
 *
 * In 2pc, D's latency is the largest x(v). It has an interval of its own, from
 * `latency` to the largest due(v), and limit = cost - latency.
 *
 * Which core: of those for which the trees do not fit, the one that D lets go
 * last. Where: close to x(v); so one part loses little but this D, and the
 * other one nearly all that was wrong. Together that halves the work against
 * the widest interval and its middle (9 cores, five machines). The early part
 * comes first: it finds the least cost of more groups before the moves are
 * spent.
 *
 * Twins, cores that may trade places, are told in the order of their numbers.
 *
 * Not here: bounds of weighted sums of x and y instead of single ones
 * (Lagrange), which cut 1 % of the boxes and cost as much as all the rest; a
 * search for clearly better plans before any better one, and shares of the
 * moves for each root, which both find fewer of the least cost.
 */
#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/plan/exact/ack_plan_internal.h"

#define ROUNDS   6u   /* of one tree after the other */
#define PER_MOVE 128u /* hand-overs */
#define WHERE    0.9  /* a box is cut, between what U and D have */

struct box {
    struct qn_transfer_edge_list down, up;
    double idle[QN_ACK_PLAN_MAX], due[QN_ACK_PLAN_MAX], tail[QN_ACK_PLAN_MAX];
    double has[QN_ACK_PLAN_MAX], needs[QN_ACK_PLAN_MAX]; /* x of D, y of U */
    double latency;        /* of the commit; 0 if there is none */
    double goal;           /* that it was priced for; it falls */
    bool down_old, up_old; /* bounds have moved since it was priced */
};

struct proof {
    struct qn_answering *p;
    uint32_t root;
    uint32_t twin[QN_ACK_PLAN_MAX]; /* the one before; itself: none */
};

static double goal_of(const struct proof *x)
{
    return x->p->out->cost * (1 - QN_ANSWERED_CLEARLY);
}

static double limit_of(const struct proof *x, const struct box *b)
{
    return goal_of(x) - b->latency;
}

static bool raise(double *bound, double to)
{
    bool higher = to > *bound;
    *bound = higher ? to : *bound;
    return higher;
}

static bool lower(double *bound, double to)
{
    bool less = to < *bound;
    *bound = less ? to : *bound;
    return less;
}

/* Bounds of one core are its twin's, too. */
static void order_twins(const struct proof *x, struct box *b)
{
    for (uint32_t v = 0; v < x->p->m->n; v++) {
        uint32_t u = x->twin[v];
        b->up_old |= raise(&b->idle[v], b->idle[u]);
    }
    for (uint32_t v = x->p->m->n; v-- > 0;) {
        uint32_t u = x->twin[v];
        b->down_old |= lower(&b->due[u], b->due[v]);
        b->down_old |= lower(&b->due[u], limit_of(x, b) - b->tail[v]);
    }
}

/* The best D for the present tails; false: it does not end in time. */
static bool price_down(struct proof *x, struct box *b)
{
    double tail[QN_ACK_PLAN_MAX], limit = limit_of(x, b);
    for (uint32_t v = 0; v < x->p->m->n; v++) {
        tail[v] = QN_MAX(b->tail[v], limit - b->due[v]);
    }
    qn_answering_spend(x->p, 1 + b->down.count / PER_MOVE);
    b->down_old = false;
    return qn_transfer_edge_price(&x->p->down, &b->down, tail, b->has) <= limit;
}

static bool price_up(struct proof *x, struct box *b)
{
    double limit = limit_of(x, b);
    qn_answering_spend(x->p, 1 + b->up.count / PER_MOVE);
    double least = qn_transfer_edge_price(&x->p->up, &b->up, b->idle, b->needs);
    b->up_old = false;
    for (uint32_t v = 0; v < x->p->m->n && x->p->o->commit; v++) {
        b->down_old |= lower(&b->due[v], goal_of(x) - least);
    }
    return least <= limit;
}

static bool narrow_down(struct proof *x, struct box *b)
{
    double idle[QN_ACK_PLAN_MAX];
    if (!price_down(x, b)) {
        return false;
    }
    qn_answering_spend(x->p, b->down.count / PER_MOVE);
    qn_transfer_edge_trim(&x->p->down, &b->down, limit_of(x, b), idle);
    for (uint32_t v = 0; v < x->p->m->n; v++) {
        b->up_old |= raise(&b->idle[v], idle[v]);
        b->up_old |= x->p->o->commit && raise(&b->latency, idle[v]);
    }
    order_twins(x, b);
    return true;
}

static bool narrow_up(struct proof *x, struct box *b)
{
    double tail[QN_ACK_PLAN_MAX];
    if (!price_up(x, b)) {
        return false;
    }
    qn_answering_spend(x->p, b->up.count / PER_MOVE);
    qn_transfer_edge_trim(&x->p->up, &b->up, limit_of(x, b), tail);
    for (uint32_t v = 0; v < x->p->m->n; v++) {
        b->down_old |= raise(&b->tail[v], tail[v]);
    }
    order_twins(x, b);
    return true;
}

/* Whether there may be a plan in the box; then D and U are two trees that fit
 * its bounds. */
static bool narrow(struct proof *x, struct box *b)
{
    for (uint32_t i = 0; i < ROUNDS && (b->down_old || b->up_old); i++) {
        if (b->down_old ? !narrow_down(x, b) : !narrow_up(x, b)) {
            return false;
        }
    }
    return (!b->up_old || price_up(x, b)) && (!b->down_old || price_down(x, b));
}

/* D's latency, and when all its cores have answered. */
static double latest(const struct proof *x, const struct box *b,
                     const double *needs, double *worst)
{
    double latency = 0;
    *worst = 0;
    for (uint32_t v = 0; v < x->p->m->n; v++) {
        latency = QN_MAX(latency, b->has[v]);
        *worst = QN_MAX(*worst, b->has[v] + needs[v]);
    }
    return latency;
}

/* Whether D and the best U for it are a better plan. */
static bool better(struct proof *x, struct box *b)
{
    struct qn_shape down, up;
    double before = x->p->out->cost, needs[QN_ACK_PLAN_MAX], worst;
    qn_answering_spend(x->p, 1 + b->up.count / PER_MOVE);
    (void)qn_transfer_edge_price(&x->p->up, &b->up, b->has, needs);
    double latency = latest(x, b, needs, &worst);
    if (worst + (x->p->o->commit ? latency : 0) >= before) {
        return false;
    }
    qn_transfer_edge_tree(&x->p->up, &b->up, x->root, &up);
    (void)price_down(x, b); /* what was priced since is another D */
    qn_transfer_edge_tree(&x->p->down, &b->down, x->root, &down);
    return qn_answering_offer(x->p, &down, &up) < before;
}

/* The core for which the trees do not fit; n: none. */
static uint32_t misfit(const struct proof *x, const struct box *b)
{
    uint32_t n = x->p->m->n, worst = n;
    double fits = limit_of(x, b) + x->p->out->cost * QN_ANSWERED_CLEARLY / 4;
    for (uint32_t v = 0; v < n; v++) {
        if (b->has[v] + b->needs[v] > fits &&
            (worst == n || b->has[v] > b->has[worst])) {
            worst = v;
        }
    }
    return worst;
}

/* Cut at a core's moment: D lets it go earlier, or U gets it later. */
static void cut_core(const struct proof *x, uint32_t v, struct box *early,
                     struct box *late)
{
    double needed = limit_of(x, early) - early->needs[v];
    double at = needed + (early->has[v] - needed) * WHERE;
    early->down_old |= lower(&early->due[v], at);
    late->up_old |= raise(&late->idle[v], at);
}

/* The trees fit but for the commit: cut at D's latency. */
static void cut_latency(const struct proof *x, struct box *early,
                        struct box *late)
{
    double worst, latency = latest(x, early, early->needs, &worst);
    double at = (goal_of(x) - worst + latency) / 2;
    for (uint32_t v = 0; v < x->p->m->n; v++) {
        early->down_old |= lower(&early->due[v], at);
    }
    late->down_old = late->up_old = raise(&late->latency, at);
}

static void search(struct proof *x, struct box *b)
{
    do {
        if (b->goal > goal_of(x)) {
            b->goal = goal_of(x);
            b->down_old = b->up_old = true;
        }
        if (x->p->cut || !narrow(x, b)) {
            return;
        }
    } while (better(x, b));
    struct box early = *b; /* and b becomes the late one */
    uint32_t v = misfit(x, b);
    if (v < x->p->m->n) {
        cut_core(x, v, &early, b);
    } else {
        cut_latency(x, &early, b);
    }
    search(x, &early);
    search(x, b);
}

/* The hand-overs of one direction from this root; false: none is in time. */
static bool collect(struct proof *x, struct qn_subset_dp *s,
                    struct qn_transfer_edges *h, const double *tail,
                    double most, struct qn_transfer_edge_list *list)
{
    double limit[QN_ACK_PLAN_MAX];
    for (uint32_t v = 0; v < x->p->m->n; v++) {
        limit[v] = most - s->way[x->root * x->p->m->n + v];
    }
    qn_answering_spend(x->p, x->p->fill);
    qn_subset_dp_fill(s, x->root, tail, limit);
    if (!(qn_subset_dp_value(s, x->root) < most)) {
        return false;
    }
    qn_transfer_edge_collect(h, s, x->root, most, list);
    qn_answering_spend(x->p, list->count / PER_MOVE);
    return true;
}

static void begin(struct proof *x, struct box *b)
{
    struct qn_answering *p = x->p;
    for (uint32_t v = 0; v < p->m->n; v++) {
        b->idle[v] = p->there.way[x->root * p->m->n + v];
        b->tail[v] = p->back.way[x->root * p->m->n + v];
        b->due[v] = p->out->cost;
        x->twin[v] = v;
        for (uint32_t u = 0; u < v && v != x->root; u++) {
            if (u != x->root && qn_answering_twins(p->m, u, v)) {
                x->twin[v] = u;
            }
        }
    }
    if (p->o->commit) {
        qn_answering_spend(p, p->fill);
        qn_subset_dp_fill(&p->there, x->root, NULL, NULL);
        b->latency = qn_subset_dp_value(&p->there, x->root);
    }
}

void qn_answering_prove(struct qn_answering *p, uint32_t root)
{
    struct proof x = {.p = p, .root = root};
    struct box b = {.goal = QN_SUBSETS_NEVER};
    begin(&x, &b);
    if (collect(&x, &p->there, &p->down, b.tail, limit_of(&x, &b), &b.down) &&
        narrow_down(&x, &b) &&
        collect(&x, &p->back, &p->up, b.idle, limit_of(&x, &b), &b.up)) {
        search(&x, &b);
    }
}
