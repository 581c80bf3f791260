#include "core/topo/answered.h"

#include <math.h>
#include <stdlib.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/topo/plan.h"
#include "tests/support/test.h"
#include "tests/unit/core/topo/world.h"

/* Naive second version: every tree with every order down, with every tree up,
 * as the cost is defined. */
#define CORES 5u
#define TREES 2000u
#define MORE  7u

struct all {
    const struct qn_machine *m;
    uint32_t root;
    struct qn_shape *up; /* [ups] */
    uint32_t ups;
    double best[2]; /* ack, 2pc */
};

static void every_up(struct all *x, uint8_t *parent, uint32_t v)
{
    if (v < x->m->n) {
        for (parent[v] = 0; parent[v] < x->m->n; parent[v]++) {
            every_up(x, parent, v + 1);
            if (v == x->root) {
                return;
            }
        }
        return;
    }
    struct qn_edges e;
    qn_edges_init(&e, x->m->n);
    for (uint32_t i = 0; i < x->m->n; i++) {
        if (i != x->root) {
            qn_edges_add(&e, parent[i], i);
        }
    }
    cr_assert(x->ups < TREES);
    if (qn_shape_from_edges(&x->up[x->ups], &e, x->root) == QN_OK) {
        x->ups++;
    }
}

static void with_every_up(struct all *x, const struct qn_shape *down)
{
    for (uint32_t i = 0; i < x->ups; i++) {
        double ack = qn_plan_cost(x->m, down, &x->up[i], QN_GOAL_ACK, 1);
        double commit = qn_plan_cost(x->m, down, &x->up[i], QN_GOAL_2PC, 1);
        x->best[0] = fmin(x->best[0], ack);
        x->best[1] = fmin(x->best[1], commit);
    }
}

/* Cores join one after the other, each as the last child of one that is there.
 * Every ordered tree comes up, some several times. */
static void every_down(struct all *x, struct qn_edges *e, uint32_t in)
{
    uint32_t n = x->m->n;
    if (in == (1U << n) - 1) {
        struct qn_shape down;
        cr_assert_eq(qn_shape_from_edges(&down, e, x->root), QN_OK);
        with_every_up(x, &down);
        return;
    }
    for (uint32_t u = 0; u < n; u++) {
        for (uint32_t v = 0; v < n && (in >> u & 1) != 0; v++) {
            /* of edges that do not touch, in one order only */
            uint32_t last = e->count - 1;
            bool free_order = e->count > 0 && e->parent[last] != u &&
                              e->child[last] != u && e->parent[last] > u;
            if ((in >> v & 1) == 0 && !free_order) {
                qn_edges_add(e, u, v);
                every_down(x, e, in | 1U << v);
                e->count--;
            }
        }
    }
}

/* From one root; the least of what was there is kept. */
static void enumerate(struct all *x, uint32_t root)
{
    uint8_t parent[CORES] = {0};
    struct qn_edges e;
    x->root = root;
    x->ups = 0;
    every_up(x, parent, 0);
    qn_edges_init(&e, x->m->n);
    every_down(x, &e, 1U << root);
}

static void expect_proven(const struct qn_machine *m, uint32_t root,
                          const double *best)
{
    for (uint32_t i = 0; i < 2; i++) {
        struct qn_plan_opts o = QN_PLAN_OPTS_DEFAULT;
        struct qn_plan p;
        o.goal = i == 0 ? QN_GOAL_ACK : QN_GOAL_2PC;
        o.root = root;
        cr_assert_eq(qn_plan(&p, m, &o), QN_OK);
        cr_assert(p.exact);
        cr_assert_eq(p.cost, qn_plan_cost(m, &p.down, &p.up, o.goal, 1));
        cr_assert(fabs(p.cost - best[i]) < 1e-8 * best[i],
                  "%s, %u cores, %s: %g, should be %g", m->name, m->n,
                  qn_goal_name(o.goal), p.cost, best[i]);
    }
}

static void compare(const struct qn_machine *m)
{
    struct all x = {.m = m, .up = malloc(TREES * sizeof *x.up)};
    double any[2] = {HUGE_VAL, HUGE_VAL};
    cr_assert_not_null(x.up);
    for (uint32_t root = 0; root < m->n; root++) {
        x.best[0] = x.best[1] = HUGE_VAL;
        enumerate(&x, root);
        expect_proven(m, root, x.best);
        any[0] = fmin(any[0], x.best[0]);
        any[1] = fmin(any[1], x.best[1]);
    }
    expect_proven(m, QN_ROOT_FREE, any);
    free(x.up);
}

Test(answered, of_random_costs_is_the_best_of_all_pairs)
{
    for (uint32_t seed = 1; seed <= 20; seed++) {
        for (uint32_t n = 2; n <= 4; n++) {
            struct qn_machine *m = scattered(n, seed);
            compare(m);
            qn_machine_destroy(m);
        }
    }
}

/* QN_MACHINES=FOLDER takes all machines in that folder. */
Test(answered, of_recorded_cores_is_the_best_of_all_pairs)
{
    struct machines all;
    machines_open(&all);
    for (uint32_t i = 0; i < all.count; i++) {
        uint32_t index[CORES], step = all.m[i]->n / CORES;
        struct qn_machine *m = NULL;
        for (uint32_t v = 0; v < CORES; v++) {
            index[v] = v * step;
        }
        cr_assert_eq(qn_machine_restrict(&m, all.m[i], index, CORES), QN_OK);
        compare(m);
        qn_machine_destroy(m);
    }
    machines_close(&all);
}

/* The second version for more cores: every tree down with every order, each
 * with the best tree up for it by the recursion over subsets. */
struct downs {
    const struct qn_machine *m;
    struct qn_subsets back;
    uint32_t root;
    double best[2]; /* ack, 2pc */
};

static void with_best_up(struct downs *x, const struct qn_edges *e)
{
    struct qn_shape down;
    double idle[MORE];
    cr_assert_eq(qn_shape_from_edges(&down, e, x->root), QN_OK);
    double latency = qn_predict_broadcast(x->m, &down, NULL, idle);
    qn_subsets_fill(&x->back, x->root, idle, NULL);
    double acked = qn_subsets_value(&x->back, x->root);
    x->best[0] = fmin(x->best[0], acked);
    x->best[1] = fmin(x->best[1], acked + latency);
}

/* The lowest core that may still send informs somebody, or stops; so each
 * ordered tree comes up once. */
static void each_down(struct downs *x, struct qn_edges *e, uint32_t in,
                      uint32_t stopped)
{
    uint32_t n = x->m->n, senders = in & ~stopped;
    if (in == (1U << n) - 1) {
        with_best_up(x, e);
        return;
    }
    if (senders == 0) {
        return;
    }
    uint32_t u = (uint32_t)__builtin_ctz(senders);
    for (uint32_t v = 0; v < n; v++) {
        if ((in >> v & 1) == 0) {
            qn_edges_add(e, u, v);
            each_down(x, e, in | 1U << v, stopped);
            e->count--;
        }
    }
    each_down(x, e, in, stopped | 1U << u);
}

static void compare_more(const struct qn_machine *m, uint32_t roots)
{
    struct downs x = {.m = m};
    struct qn_machine *back = NULL;
    double any[2] = {HUGE_VAL, HUGE_VAL};
    cr_assert_eq(qn_machine_create(&back, m->n), QN_OK);
    for (uint32_t i = 0; i < m->n * m->n; i++) {
        back->send[i] = qn_receive_cost(m, i % m->n, i / m->n);
        back->receive[i] = qn_send_cost(m, i % m->n, i / m->n);
    }
    cr_assert_eq(qn_subsets_init(&x.back, back), QN_OK);
    for (x.root = 0; x.root < roots; x.root++) {
        struct qn_edges e;
        qn_edges_init(&e, m->n);
        x.best[0] = x.best[1] = HUGE_VAL;
        each_down(&x, &e, 1U << x.root, 0);
        expect_proven(m, x.root, x.best);
        any[0] = fmin(any[0], x.best[0]);
        any[1] = fmin(any[1], x.best[1]);
    }
    if (roots == m->n) {
        expect_proven(m, QN_ROOT_FREE, any);
    }
    qn_subsets_fini(&x.back);
    qn_machine_destroy(back);
}

Test(answered, of_5_to_7_random_cores_is_the_best_of_all_trees_down)
{
    for (uint32_t seed = 1; seed <= 30; seed++) {
        struct qn_machine *m = scattered(5, seed);
        compare_more(m, 5);
        qn_machine_destroy(m);
    }
    for (uint32_t seed = 1; seed <= 4; seed++) {
        struct qn_machine *m = scattered(6, seed);
        compare_more(m, 6);
        qn_machine_destroy(m);
    }
    struct qn_machine *m = scattered(MORE, 9);
    compare_more(m, 1);
    qn_machine_destroy(m);
}

/* Cores of a group may trade places, which the search makes use of; with other
 * costs in one pair or one direction they may not. */
Test(answered, of_twins_is_the_best_of_all_trees_down)
{
    for (uint32_t group = 1; group <= 5; group++) {
        struct qn_machine *m = uniform(5, 10, 30, group);
        for (uint32_t i = 0; i < 25; i++) {
            if (i / 5 / group != i % 5 / group) {
                m->send[i] *= 1.5;
                m->receive[i] *= 2;
            }
        }
        compare_more(m, 5);
        m->send[7] += 11;
        compare_more(m, 5);
        m->receive[19] -= 17;
        compare_more(m, 5);
        qn_machine_destroy(m);
    }
    struct qn_machine *m = uniform(10, 10, 30, 10);
    struct qn_plan_opts o = QN_PLAN_OPTS_DEFAULT;
    struct qn_plan p;
    o.goal = QN_GOAL_2PC;
    cr_assert_eq(qn_plan(&p, m, &o), QN_OK);
    cr_expect(p.exact); /* not with 9! ways to name its cores */
    qn_machine_destroy(m);
}

Test(answered, of_equal_cores_and_of_far_ones_is_the_best_of_all_pairs)
{
    struct qn_machine *m = uniform(4, 3, 7, 2);
    compare(m);
    m->send[1] = m->receive[1] = 1000; /* 0 -> 1: better by way of another */
    compare(m);
    qn_machine_destroy(m);
}

/* What was found before is kept, and not called proven. */
Test(answered, without_moves_is_no_worse_than_what_it_began_with)
{
    struct qn_machine *m = recorded("amd64_sparse_10");
    struct qn_plan_opts o = QN_PLAN_OPTS_DEFAULT;
    struct qn_plan p, q;
    o.goal = QN_GOAL_ACK;
    o.moves = 1;
    cr_assert_eq(qn_plan(&p, m, &o), QN_OK);
    cr_expect(!p.exact);
    o.moves = 100000;
    cr_assert_eq(qn_plan(&q, m, &o), QN_OK);
    cr_expect_leq(q.cost, p.cost);
    cr_expect_leq(q.moves, 2 * o.moves + 2500);
    qn_machine_destroy(m);
}
