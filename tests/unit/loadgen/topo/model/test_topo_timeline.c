#include <math.h>
#include <stdlib.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/topo/pipeline_sim.h"
#include "core/topo/static_trees.h"
#include "loadgen/topo/model/timeline.h"
#include "tests/support/test.h"
#include "tests/unit/core/topo/world.h"

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * (1 + fabs(b));
}

/* No core does two things at a time, and every sent message is received. */
static void must_be_possible(const struct qn_timeline *t,
                             const struct qn_machine *m)
{
    double free[QN_CORES_MAX] = {0};
    uint8_t phase[QN_CORES_MAX] = {0};
    uint32_t sends = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        const struct qn_span *s = &t->span[i];
        cr_assert(s->core < m->n && s->peer < m->n && s->phase < t->phases);
        cr_assert(s->end >= s->begin && s->end <= t->end * (1 + 1e-12));
        sends += s->send;
        if (s->phase != phase[s->core]) {
            phase[s->core] = s->phase;
        }
        cr_assert(s->begin >= free[s->core] - 1e-6, "core %u is busy until %g",
                  s->core, free[s->core]);
        free[s->core] = s->end;
    }
    cr_assert_eq(2 * sends, t->count, "each message is sent and received");
}

/* The planner's cost function for goals that are latencies. */
static void must_agree(const struct qn_machine *m, const struct qn_shape *down,
                       const struct qn_shape *up, double q)
{
    for (uint32_t g = 0; g < QN_GOALS; g++) {
        struct qn_timeline *t = NULL;
        enum qn_goal goal = (enum qn_goal)g, as = goal;
        as = goal == QN_GOAL_THROUGHPUT ? QN_GOAL_ACK : as;
        as = goal == QN_GOAL_STREAM ? QN_GOAL_BROADCAST : as;
        cr_assert_eq(qn_timeline_trees(&t, m, down, up, goal, q), QN_OK);
        double want = qn_plan_cost(m, down, up, as, q);
        cr_assert(near(t->end, want), "%s: %.3f, predicted %.3f",
                  qn_goal_name(g), t->end, want);
        must_be_possible(t, m);
        free(t);
    }
}

Test(timeline, ends_at_the_predicted_time_for_every_operation)
{
    static const char *const names[] = {"binary", "cluster", "mst2", "bad"};
    for (uint32_t i = 0; i < RECORDED; i++) {
        struct qn_machine *m = recorded(recorded_names[i]);
        for (uint32_t k = 0; k < QN_ARRAY_COUNT(names); k++) {
            struct qn_shape down, up;
            qn_static_build(&down, m, names[k], 2, QN_LEVEL_NODE);
            qn_static_build(&up, m, "fibonacci", 2, QN_LEVEL_NODE);
            must_agree(m, &down, &down, 1);
            must_agree(m, &down, &up, 0.125);
        }
        qn_machine_destroy(m);
    }
}

Test(timeline, at_is_when_cores_are_informed)
{
    struct qn_machine *m = scattered(23, 5);
    struct qn_shape s;
    struct qn_timeline *t = NULL;
    double at[QN_CORES_MAX];
    qn_static_build(&s, m, "mst", 4, QN_LEVEL_NODE);
    (void)qn_predict_broadcast(m, &s, at, NULL);
    cr_assert_eq(qn_timeline_trees(&t, m, &s, &s, QN_GOAL_ACK, 1), QN_OK);
    for (uint32_t v = 0; v < m->n; v++) {
        cr_assert(near(t->at[v], at[v]), "core %u: %g, not %g", v, t->at[v],
                  at[v]);
    }
    free(t);
    qn_machine_destroy(m);
}

Test(timeline, of_a_ring_ends_with_one_operation_of_a_burst)
{
    for (uint32_t n = 1; n <= 40; n++) {
        struct qn_machine *m = scattered(n, n);
        for (uint32_t k = 1; k <= 12; k++) {
            const struct qn_diamond_ring_opts o = {.n = n,
                                                   .k = 1 + k / 3,
                                                   .full = k % 3 == 0,
                                                   .companion =
                                                       k % 3 == 1 && n > 2};
            struct qn_diamond_ring *r = NULL;
            struct qn_timeline *t = NULL;
            double want = -1;
            cr_assert_eq(qn_diamond_ring_create(&r, &o), QN_OK);
            const struct qn_pipeline_sim_opts once = {.ops = 1, .q = 0.5};
            cr_assert_eq(qn_pipeline_sim_ring(m, r, &once, &want), QN_OK);
            cr_assert_eq(qn_timeline_ring(&t, m, r, 0.5), QN_OK);
            cr_assert(near(t->end, want), "n=%u k=%u: %g, not %g", n, o.k,
                      t->end, want);
            must_be_possible(t, m);
            free(t);
            qn_diamond_ring_destroy(r);
        }
        qn_machine_destroy(m);
    }
}

Test(timeline, one_core_has_no_messages)
{
    struct qn_machine *m = uniform(1, 1, 1, 1);
    struct qn_shape s;
    qn_static_build(&s, m, "binary", 0, QN_LEVEL_NODE);
    must_agree(m, &s, &s, 1);
    qn_machine_destroy(m);
}
