#include "core/plan/plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/err.h"
#include "core/topo/adaptive.h"
#include "core/topo/candidates.h"
#include "core/topo/static_trees.h"
#include "tests/support/test.h"
#include "tests/unit/core/topo/world.h"

static void check_plan(const struct qn_machine *m, const struct qn_plan *p,
                       const struct qn_plan_opts *o)
{
    cr_assert_eq(qn_shape_check(&p->down), QN_OK);
    cr_assert_eq(qn_shape_check(&p->up), QN_OK);
    cr_assert_eq(p->down.root, p->up.root);
    cr_assert(o->root == QN_ROOT_FREE || o->root == p->down.root);
    cr_assert_eq(p->cost, qn_plan_cost(m, &p->down, &p->up, o->goal, o->q));
}

static void beats_the_rules(const struct qn_machine *m, enum qn_goal goal,
                            uint32_t root)
{
    struct qn_plan_opts o = QN_PLAN_OPTS_DEFAULT;
    struct qn_plan p;
    struct qn_shape s;
    o.goal = goal;
    o.root = root;
    o.moves = 1000;
    cr_assert_eq(qn_plan(&p, m, &o), QN_OK);
    check_plan(m, &p, &o);
    uint32_t from = root == QN_ROOT_FREE ? 0 : root;
    for (uint32_t i = 0; qn_static_name_at(i) != NULL; i++) {
        (void)qn_static_build(&s, m, qn_static_name_at(i), from, QN_LEVEL_NODE);
        cr_assert_leq(p.cost, qn_plan_cost(m, &s, &s, goal, 1), "%s %u %s",
                      m->name, m->n, qn_static_name_at(i));
    }
    for (uint32_t k = 1; k <= QN_CANDIDATE_ARITY; k++) {
        char name[16];
        (void)snprintf(name, sizeof name, "tree:k=%u", k);
        (void)qn_static_build(&s, m, name, from, QN_LEVEL_NODE);
        cr_assert_leq(p.cost, qn_plan_cost(m, &s, &s, goal, 1), "%s %u %s",
                      m->name, m->n, name);
    }
    from = root == QN_ROOT_FREE ? qn_adaptive_root(m) : root;
    (void)qn_adaptive_build(&s, m, from, QN_LEVEL_NODE);
    cr_assert_leq(p.cost, qn_plan_cost(m, &s, &s, goal, 1));
}

/* Its first `count` cores, dealt round robin over the nodes. */
static struct qn_machine *dealt(const struct qn_machine *m, uint32_t count)
{
    bool taken[QN_CORES_MAX] = {false};
    uint32_t index[QN_CORES_MAX], have = 0;
    while (have < count) {
        bool served[QN_CORES_MAX] = {false}; /* by a node's first core */
        for (uint32_t v = 0; v < m->n && have < count; v++) {
            uint32_t head = 0;
            while (m->core[head].node != m->core[v].node) {
                head++;
            }
            if (!taken[v] && !served[head]) {
                taken[v] = served[head] = true;
                have++;
            }
        }
    }
    for (uint32_t v = 0, i = 0; v < m->n; v++) {
        if (taken[v]) {
            index[i++] = v;
        }
    }
    struct qn_machine *r = NULL;
    cr_assert_eq(qn_machine_restrict(&r, m, index, count), QN_OK);
    return r;
}

static double both(const struct qn_machine *m, uint32_t u, uint32_t v)
{
    return qn_send_cost(m, u, v) + qn_receive_cost(m, u, v) +
           qn_send_cost(m, v, u) + qn_receive_cost(m, v, u);
}

struct looked {
    const struct qn_machine *m;
    uint32_t chains;
};

static void look_at_chain(void *arg, const char *name, const struct qn_shape *s)
{
    struct looked *x = arg;
    bool in[QN_CORES_MAX] = {false};
    if (strcmp(name, "nearest chain") != 0) {
        return;
    }
    x->chains++;
    cr_assert_eq(qn_shape_depth(s), s->n - 1);
    for (uint32_t i = 1, v = s->root; i < s->n; i++) {
        uint32_t next = qn_shape_children(s, v)[0];
        in[v] = true;
        for (uint32_t u = 0; u < s->n; u++) {
            cr_assert(in[u] || both(x->m, v, next) <= both(x->m, v, u));
        }
        v = next;
    }
}

Test(plan, a_chain_of_nearest_neighbours_is_a_candidate)
{
    struct looked x = {.m = scattered(9, 4)};
    cr_assert_eq(qn_candidates(x.m, 3, look_at_chain, &x), QN_OK);
    cr_assert_eq(x.chains, 1);
    qn_machine_destroy((void *)(uintptr_t)x.m);
}

Test(plan, is_never_worse_than_a_tree_that_is_not_searched_for)
{
    for (uint32_t i = 0; i < RECORDED; i++) {
        struct qn_machine *m = recorded(recorded_names[i]);
        for (uint32_t n = 2; n <= m->n; n += 1 + n / 4) {
            struct qn_machine *g = dealt(m, n);
            for (uint32_t goal = 0; goal < QN_GOALS; goal++) {
                beats_the_rules(g, (enum qn_goal)goal, QN_ROOT_FREE);
                beats_the_rules(g, (enum qn_goal)goal, g->n - 1);
            }
            qn_machine_destroy(g);
        }
        qn_machine_destroy(m);
    }
}

/* Groups of a machine with a search in each operation, the largest one with
 * default budgets. */
Test(plan, with_a_free_root_is_never_worse_than_from_the_first_core)
{
    struct qn_machine *m = recorded("threadripper_1950x_1x16");
    for (uint32_t n = 2; n <= m->n; n++) {
        struct qn_machine *g = dealt(m, n);
        for (uint32_t goal = 0; goal < QN_GOALS; goal++) {
            struct qn_plan_opts o = QN_PLAN_OPTS_DEFAULT;
            struct qn_plan any, first;
            o.goal = (enum qn_goal)goal;
            o.moves = n == m->n ? 0 : 500;
            cr_assert_eq(qn_plan(&any, g, &o), QN_OK);
            o.root = 0;
            cr_assert_eq(qn_plan(&first, g, &o), QN_OK);
            cr_assert(any.cost <= first.cost, "%s %u cores: %g > %g",
                      qn_goal_name(goal), n, any.cost, first.cost);
        }
        qn_machine_destroy(g);
    }
    qn_machine_destroy(m);
}

/* Cores in a line, the farther apart the dearer. */
static struct qn_machine *in_line(uint32_t n)
{
    struct qn_machine *m = NULL;
    cr_assert_eq(qn_machine_create(&m, n), QN_OK);
    for (uint32_t u = 0; u < n; u++) {
        for (uint32_t v = 0; v < n; v++) {
            uint32_t way = u < v ? v - u : u - v;
            m->send[u * n + v] = 20 + way;
            m->receive[u * n + v] = 100 + 3 * way;
        }
    }
    return m;
}

/* Begun at the best candidate from the first core, too, an acknowledged
 * broadcast took 1.33 times as long, from core 21. */
Test(plan, with_a_free_root_begins_in_the_middle)
{
    struct qn_machine *m = in_line(256);
    for (uint32_t goal = QN_GOAL_BARRIER; goal <= QN_GOAL_2PC; goal++) {
        struct qn_plan_opts o = QN_PLAN_OPTS_DEFAULT;
        struct qn_plan any, middle;
        o.goal = (enum qn_goal)goal;
        cr_assert_eq(qn_plan(&any, m, &o), QN_OK);
        o.root = m->n / 2;
        cr_assert_eq(qn_plan(&middle, m, &o), QN_OK);
        cr_expect_leq(any.cost, 1.15 * middle.cost, "%s: root %u, %g > %g",
                      qn_goal_name(goal), any.down.root, any.cost, middle.cost);
    }
    qn_machine_destroy(m);
}

static void two_trees_cost_no_more(const struct qn_machine *m,
                                   struct qn_plan_opts o)
{
    struct qn_plan one, two;
    cr_assert_eq(qn_plan(&two, m, &o), QN_OK);
    check_plan(m, &two, &o);
    o.one_tree = true;
    cr_assert_eq(qn_plan(&one, m, &o), QN_OK);
    cr_expect_leq(two.cost, one.cost, "%s, %u cores, %s", m->name, m->n,
                  qn_goal_name(o.goal));
}

/* One tree is two equal ones: with the same budget two cost no more. Few moves
 * are where a search has not yet found what the other has. */
Test(plan, of_two_trees_costs_no_more_than_of_one)
{
    struct machines all;
    machines_open(&all);
    for (uint32_t n = 24; n <= 96 && all.count < MACHINES_MAX; n += 24) {
        all.m[all.count++] = scattered(n, n);
    }
    for (uint32_t i = 0; i < all.count; i++) {
        struct qn_plan_opts o = QN_PLAN_OPTS_DEFAULT;
        for (uint32_t k = 0; k < 8; k++) {
            o.goal = k % 2 == 0 ? QN_GOAL_ACK : QN_GOAL_2PC;
            o.root = k % 4 < 2 ? QN_ROOT_FREE : 0;
            o.moves = k < 4 ? 0 : 2000;
            two_trees_cost_no_more(all.m[i], o);
        }
    }
    machines_close(&all);
}

static void same_plan(const struct qn_machine *m, struct qn_plan_opts *o)
{
    struct qn_plan a, b;
    cr_assert_eq(qn_plan(&a, m, o), QN_OK);
    cr_assert_eq(qn_plan(&b, m, o), QN_OK);
    cr_assert(qn_shape_equal(&a.down, &b.down));
    cr_assert(qn_shape_equal(&a.up, &b.up));
    cr_assert_eq(a.moves, b.moves);
    cr_assert_eq(a.cost, b.cost);
}

Test(plan, is_the_same_for_the_same_seed)
{
    struct qn_machine *m = recorded("syn_8x4x1");
    for (uint32_t goal = 0; goal < QN_GOALS; goal++) {
        struct qn_plan_opts o = QN_PLAN_OPTS_DEFAULT;
        o.goal = (enum qn_goal)goal;
        o.moves = 3000;
        o.seed = 7;
        same_plan(m, &o);
    }
    qn_machine_destroy(m);
}

/* Naive second version: every tree, and for broadcasts its best order, which
 * reordering finds. Both directions from each root. */
static void enumerate(const struct qn_machine *m, uint32_t root,
                      uint8_t *parent, uint32_t v, double *best)
{
    struct qn_edges e;
    struct qn_shape s;
    if (v < m->n) {
        for (parent[v] = 0; parent[v] < m->n; parent[v]++) {
            enumerate(m, root, parent, v + 1, best);
            if (v == root) {
                break;
            }
        }
        return;
    }
    qn_edges_init(&e, m->n);
    for (uint32_t i = 0; i < m->n; i++) {
        if (i != root) {
            qn_edges_add(&e, parent[i], i);
        }
    }
    if (qn_shape_from_edges(&s, &e, root) == QN_OK) {
        (void)qn_adaptive_reorder(&s, m, QN_KEY_OPTIMAL);
        for (uint32_t goal = 0; goal < 2; goal++) {
            double cost = qn_plan_cost(m, &s, &s, (enum qn_goal)goal, 1);
            best[goal] = fmin(best[goal], cost);
        }
    }
}

static void exact_on(const struct qn_machine *m)
{
    double best[3] = {1e300, 1e300, 1e300};
    for (uint32_t root = 0; root < m->n; root++) {
        double b[2] = {1e300, 1e300};
        uint8_t parent[6] = {0};
        enumerate(m, root, parent, 0, b);
        best[QN_GOAL_BROADCAST] = fmin(best[QN_GOAL_BROADCAST], b[0]);
        best[QN_GOAL_REDUCE] = fmin(best[QN_GOAL_REDUCE], b[1]);
        best[QN_GOAL_BARRIER] = fmin(best[QN_GOAL_BARRIER], b[0] + b[1]);
    }
    for (uint32_t goal = 0; goal < 3; goal++) {
        struct qn_plan_opts o = QN_PLAN_OPTS_DEFAULT;
        struct qn_plan p;
        o.goal = (enum qn_goal)goal;
        cr_assert_eq(qn_plan(&p, m, &o), QN_OK);
        check_plan(m, &p, &o);
        cr_assert(p.exact);
        cr_assert(fabs(p.cost - best[goal]) < 1e-9 * p.cost, "%s: %g %g",
                  qn_goal_name(goal), p.cost, best[goal]);
    }
}

Test(plan, of_a_small_group_is_exact)
{
    for (uint32_t seed = 1; seed <= 6; seed++) {
        for (uint32_t n = 2; n <= 5; n++) {
            struct qn_machine *m = scattered(n, seed);
            exact_on(m);
            qn_machine_destroy(m);
        }
    }
}

/* Below what the fastest tree takes, down to less than any tree can keep. */
Test(plan, keeps_the_busiest_core_within_its_bound)
{
    struct qn_machine *m = recorded("intel_xeon_e5_v2_2x10");
    struct qn_plan_opts o = QN_PLAN_OPTS_DEFAULT;
    struct qn_plan p, bound;
    o.goal = QN_GOAL_THROUGHPUT;
    o.one_tree = true;
    o.moves = 20000;
    cr_assert_eq(qn_plan(&bound, m, &o), QN_OK);
    for (uint32_t goal = QN_GOAL_BROADCAST; goal <= QN_GOAL_2PC; goal++) {
        o.goal = (enum qn_goal)goal;
        o.max_occupancy = 1.1 * bound.cost;
        cr_assert_eq(qn_plan(&p, m, &o), QN_OK);
        check_plan(m, &p, &o);
        double busy = qn_plan_occupancy(m, &p.down, &p.up, o.goal);
        cr_expect_leq(busy, o.max_occupancy, "%s", qn_goal_name(goal));
        o.max_occupancy = 1;
        cr_assert_eq(qn_plan(&p, m, &o), QN_OK);
        check_plan(m, &p, &o);
    }
    qn_machine_destroy(m);
}

Test(plan, a_robust_one_stands_disturbance_best)
{
    struct qn_machine *m = recorded("threadripper_1950x_1x16"), *t = NULL;
    struct qn_plan_opts o = QN_PLAN_OPTS_DEFAULT;
    struct qn_plan a, b;
    cr_assert_eq(qn_machine_create(&t, m->n), QN_OK);
    o.moves = 5000;
    cr_assert_eq(qn_plan(&a, m, &o), QN_OK);
    o.robust = true;
    cr_assert_eq(qn_plan(&b, m, &o), QN_OK);
    check_plan(m, &b, &o);
    cr_expect_leq(qn_plan_disturbed(t, m, &b.down, &b.up, o.goal, 1, o.seed),
                  qn_plan_disturbed(t, m, &a.down, &a.up, o.goal, 1, o.seed));
    qn_machine_destroy(t);
    qn_machine_destroy(m);
}

Test(plan, of_one_and_two_cores)
{
    for (uint32_t n = 1; n <= 2; n++) {
        struct qn_machine *m = uniform(n, 3, 7, 1);
        struct qn_plan_opts o = QN_PLAN_OPTS_DEFAULT;
        for (uint32_t goal = 0; goal < QN_GOALS; goal++) {
            struct qn_plan p;
            o.goal = (enum qn_goal)goal;
            cr_assert_eq(qn_plan(&p, m, &o), QN_OK);
            check_plan(m, &p, &o);
            cr_expect(n == 2 || p.cost == 0);
        }
        qn_machine_destroy(m);
    }
}

Test(plan, bad_options_are_refused)
{
    struct qn_machine *m = uniform(3, 1, 1, 1);
    struct qn_plan_opts o = QN_PLAN_OPTS_DEFAULT;
    struct qn_plan p;
    o.root = 3;
    cr_expect_eq(qn_plan(&p, m, &o), QN_EINVAL);
    o = QN_PLAN_OPTS_DEFAULT;
    o.goal = QN_GOALS;
    cr_expect_eq(qn_plan(&p, m, &o), QN_EINVAL);
    o = QN_PLAN_OPTS_DEFAULT;
    o.q = NAN;
    cr_expect_eq(qn_plan(&p, m, &o), QN_EINVAL);
    o = QN_PLAN_OPTS_DEFAULT;
    o.max_occupancy = -1;
    cr_expect_eq(qn_plan(&p, m, &o), QN_EINVAL);
    qn_machine_destroy(m);
}
