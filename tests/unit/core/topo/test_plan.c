#include "core/topo/plan.h"

#include <math.h>

#include "core/base/err.h"
#include "core/topo/adaptive.h"
#include "core/topo/statics.h"
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

/* The first `count` cores of a machine, dealt round robin over its nodes, must
 * not be served better by any tree that is not searched for. */
static void beats_the_rules(const struct qn_machine *m, enum qn_goal goal,
                            uint32_t root)
{
    struct qn_plan_opts o = QN_PLAN_OPTS_DEFAULT;
    struct qn_plan p;
    struct qn_shape s;
    o.goal = goal;
    o.root = root;
    cr_assert_eq(qn_plan(&p, m, &o), QN_OK);
    check_plan(m, &p, &o);
    uint32_t from = root == QN_ROOT_FREE ? 0 : root;
    for (uint32_t i = 0; qn_static_name_at(i) != NULL; i++) {
        (void)qn_static_build(&s, m, qn_static_name_at(i), from, QN_LEVEL_NODE);
        cr_assert_leq(p.cost, qn_plan_cost(m, &s, &s, goal, 1), "%s %u %s",
                      m->name, m->n, qn_static_name_at(i));
    }
    from = root == QN_ROOT_FREE ? qn_adaptive_root(m) : root;
    (void)qn_adaptive_build(&s, m, from, QN_LEVEL_NODE);
    cr_assert_leq(p.cost, qn_plan_cost(m, &s, &s, goal, 1));
}

Test(plan, is_never_worse_than_a_tree_that_is_not_searched_for)
{
    for (uint32_t i = 0; i < RECORDED; i++) {
        struct qn_machine *m = recorded(recorded_names[i]);
        for (uint32_t goal = 0; goal < QN_GOALS; goal++) {
            beats_the_rules(m, (enum qn_goal)goal, QN_ROOT_FREE);
            beats_the_rules(m, (enum qn_goal)goal, m->n - 1);
        }
        qn_machine_destroy(m);
    }
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
    qn_machine_destroy(m);
}
