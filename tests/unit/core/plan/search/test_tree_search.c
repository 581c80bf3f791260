#include "core/plan/search/tree_search.h"

#include <math.h>

#include "core/base/err.h"
#include "core/plan/search/objective.h"
#include "core/plan/search/tree_search_internal.h"
#include "core/topo/static_trees.h"
#include "tests/support/test.h"
#include "tests/unit/core/topo/world.h"

struct kind {
    enum qn_fold fold;
    bool reversed;
    double q;
    enum qn_goal goal;
};

static const struct kind kinds[] = {
    {QN_FOLD_DOWN, false, 1, QN_GOAL_BROADCAST},
    {QN_FOLD_DOWN, true, 1, QN_GOAL_REDUCE},
    {QN_FOLD_UP, false, 1, QN_GOAL_REDUCE},
    {QN_FOLD_UP, false, 0.125, QN_GOAL_REDUCE},
    {QN_FOLD_BOTH, false, 1, QN_GOAL_BARRIER},
    {QN_FOLD_BOTH, false, 0.125, QN_GOAL_BARRIER},
    {QN_FOLD_ACK, false, 1, QN_GOAL_ACK},
    {QN_FOLD_ACK, false, 0.125, QN_GOAL_ACK},
    {QN_FOLD_COMMIT, false, 1, QN_GOAL_2PC},
    {QN_FOLD_RATE, false, 1, QN_GOAL_THROUGHPUT},
    {QN_FOLD_STREAM, false, 1, QN_GOAL_STREAM},
};
#define KINDS (sizeof kinds / sizeof *kinds)

static struct qn_tree_search *begin(const struct qn_machine *m,
                                    const struct kind *k, bool root_free,
                                    double cap)
{
    struct qn_shape s;
    struct qn_tree_search *x = NULL;
    (void)qn_static_build(&s, m, "binary", 0, QN_LEVEL_NODE);
    struct qn_tree_search_opts o = {.fold = k->fold,
                                    .reversed = k->reversed,
                                    .root_free = root_free,
                                    .q = k->q,
                                    .scale =
                                        qn_plan_cost(m, &s, &s, k->goal, k->q),
                                    .cap = cap,
                                    .cap_acks = true,
                                    .seed = 3};
    cr_assert_eq(qn_tree_search_create(&x, m, &o), QN_OK);
    qn_tree_search_load(x, &s);
    return x;
}

static void agrees(const struct qn_machine *m, const struct kind *k,
                   const struct qn_tree_search *x, const struct qn_shape *s)
{
    double want = qn_plan_cost(m, s, s, k->goal, k->q);
    double got = qn_tree_search_cost(x);
    /* With q < 1 a message that is visible just when its receiver turns to it
     * may be priced either way. */
    double tolerance = k->q < 1 ? 0.1 : 1e-4;
    cr_assert(fabs(want - got) <= tolerance * want, "%s: %g, priced at %g",
              qn_goal_name(k->goal), want, got);
}

/* What is folded incrementally, over thousands of moves made and taken back,
 * is what prediction says of the tree. */
Test(tree_search, prices_trees_as_prediction_does)
{
    for (uint32_t i = 0; i < KINDS; i++) {
        for (uint32_t n = 2; n <= 34; n += 4) {
            struct qn_machine *m = scattered(n, n + i);
            struct qn_tree_search *x = begin(m, &kinds[i], n % 8 == 2, 0);
            struct qn_shape s;
            qn_tree_search_store(x, &s);
            agrees(m, &kinds[i], x, &s);
            double before = qn_tree_search_cost(x);
            qn_tree_search_run(x, 3000, 0.3, 0.001);
            qn_tree_search_store(x, &s);
            agrees(m, &kinds[i], x, &s);
            cr_assert_leq(qn_tree_search_cost(x), before);
            cr_assert_eq(qn_shape_check(&s), QN_OK);
            cr_assert(n % 8 == 2 || s.root == 0);
            qn_tree_search_destroy(x);
            qn_machine_destroy(m);
        }
    }
}

Test(tree_search, cores_that_are_ready_late_answer_late)
{
    struct qn_machine *m = scattered(12, 5);
    struct qn_shape s;
    struct qn_tree_search *x = NULL;
    double start[12];
    for (uint32_t v = 0; v < 12; v++) {
        start[v] = 100.0 * v;
    }
    (void)qn_static_build(&s, m, "binary", 0, QN_LEVEL_NODE);
    struct qn_tree_search_opts o = {
        .fold = QN_FOLD_UP, .q = 1, .start = start, .scale = 3000, .seed = 1};
    cr_assert_eq(qn_tree_search_create(&x, m, &o), QN_OK);
    qn_tree_search_load(x, &s);
    qn_tree_search_run(x, 2000, 0.1, 0.001);
    qn_tree_search_store(x, &s);
    double want = qn_predict_reduce(m, &s, 1, start, NULL);
    cr_expect(fabs(want - qn_tree_search_cost(x)) < 1e-4 * want);
    qn_tree_search_destroy(x);
    qn_machine_destroy(m);
}

/* A binary tree's cap holds from the binary tree on. */
Test(tree_search, never_leaves_a_core_above_the_cap)
{
    for (uint32_t i = 0; i < KINDS; i++) {
        if (kinds[i].reversed) {
            continue; /* its occupancy is another one */
        }
        struct qn_machine *m = scattered(24, 9 + i);
        struct qn_shape s;
        (void)qn_static_build(&s, m, "binary", 0, QN_LEVEL_NODE);
        double cap = qn_predict_occupancy(m, &s, true, NULL);
        struct qn_tree_search *x = begin(m, &kinds[i], true, cap * 1.0001);
        qn_tree_search_run(x, 5000, 0.1, 0.001);
        qn_tree_search_store(x, &s);
        cr_expect_leq(qn_predict_occupancy(m, &s, true, NULL), cap * 1.001);
        qn_tree_search_destroy(x);
        qn_machine_destroy(m);
    }
}

/* Where sending is nearly free the best tree is a star, in which changing the
 * root sorts everybody anew. */
Test(tree_search, of_stars_takes_no_longer_than_its_moves_allow)
{
    struct qn_machine *m = uniform(200, 1, 500, 1);
    for (uint32_t i = 0; i < m->n * m->n; i++) {
        bool self = i % (m->n + 1) == 0;
        m->receive[i] = self ? 0 : 500 + (double)(i * 7 % 100);
    }
    struct qn_tree_search *x = begin(m, &kinds[0], true, 0);
    struct qn_shape star;
    uint64_t moves = 20000;
    (void)qn_static_build(&star, m, "sequential", 0, QN_LEVEL_NODE);
    qn_tree_search_load(x, &star);
    qn_tree_search_run(x, moves, 0.01, 1e-4);
    cr_expect_leq(qn_tree_search_cost(x), 200 + 600);
    cr_expect_leq(x->passed, QN_PASSED_PER_MOVE * moves + m->n * m->n);
    qn_tree_search_destroy(x);
    qn_machine_destroy(m);
}
