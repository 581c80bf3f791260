#include "core/topo/predict.h"

#include <math.h>
#include <stdio.h>

#include "core/base/err.h"
#include "core/topo/adaptive.h"
#include "core/topo/static_trees.h"
#include "tests/support/test.h"
#include "tests/unit/core/topo/world.h"

/* Root 0 -> 1, 2 and 1 -> 3. Directions differ, by hand:
 *   down: s01 3 r01 10, s02 4 r02 20, s13 5 r13 30
 *   up:   s10 6 r10 40, s20 7 r20 50, s31 8 r31 60 */
static struct qn_machine *four(void)
{
    static const struct {
        uint8_t u, v;
        double s, r;
    } cost[] = {{0, 1, 3, 10}, {0, 2, 4, 20}, {1, 3, 5, 30},
                {1, 0, 6, 40}, {2, 0, 7, 50}, {3, 1, 8, 60}};
    struct qn_machine *m = uniform(4, 1000, 1000, 2);
    for (uint32_t i = 0; i < 6; i++) {
        m->send[cost[i].u * 4 + cost[i].v] = cost[i].s;
        m->receive[cost[i].u * 4 + cost[i].v] = cost[i].r;
    }
    return m;
}

static const uint8_t edges[][2] = {{0, 1}, {0, 2}, {1, 3}};

Test(predict, broadcast_sums_sends_and_adds_the_receive)
{
    struct qn_machine *m = four();
    struct qn_shape s = shape_of(4, 0, edges);
    double at[4], idle[4];
    /* a1 = 3 + 10; a2 = 3 + 4 + 20; a3 = 13 + 5 + 30 */
    cr_expect_eq(qn_predict_broadcast(m, &s, at, idle), 48);
    cr_expect(at[0] == 0 && at[1] == 13 && at[2] == 27 && at[3] == 48);
    cr_expect(idle[0] == 7 && idle[1] == 18 && idle[2] == 27 && idle[3] == 48);
    cr_expect_eq(qn_predict(m, &s, QN_COLLECTIVE_BROADCAST, 0.125), 48);
    qn_machine_destroy(m);
}

Test(predict, reduction_takes_messages_in_order_of_visibility)
{
    struct qn_machine *m = four();
    struct qn_shape s = shape_of(4, 0, edges);
    double done[4];
    /* 3 is visible at 8, d1 = 8 + 60 = 68, visible at 74; 2 is visible at 7,
     * received until 57; then wait for 74: d0 = 74 + 40. */
    cr_expect_eq(qn_predict_reduce(m, &s, 1, NULL, done), 114);
    cr_expect(done[1] == 68 && done[2] == 0 && done[3] == 0);
    cr_expect_eq(qn_predict(m, &s, QN_COLLECTIVE_BARRIER, 1), 114 + 48);
    qn_machine_destroy(m);
}

Test(predict, an_exchange_is_over_when_the_last_core_has_received_all)
{
    struct qn_machine *m = uniform(3, 10, 80, 8);
    /* Each sends until 20; of two messages one is visible at 10, one at 20. */
    cr_expect_eq(qn_predict_exchange(m, 1), 20 + 80 + 80);
    cr_expect_eq(qn_predict_exchange(m, 0.125), 20 + 10 + 10);
    m->send[0 * 3 + 1] = 100; /* 0 sends until 110; 1 waits until 100 for it,
                                 2 until 110 */
    cr_expect_eq(qn_predict_exchange(m, 1), 110 + 80 + 80, "core 0");
    cr_expect_eq(qn_predict_exchange(m, 0.125), 110 + 80, "core 2");
    m->send[0 * 3 + 1] = 10;
    m->receive[2 * 3 + 1] = 200; /* visible at 20, as 0's is at 10 */
    cr_expect_eq(qn_predict_exchange(m, 1), 20 + 80 + 200);
    qn_machine_destroy(m);
    m = uniform(1, 10, 80, 8);
    cr_expect_eq(qn_predict_exchange(m, 1), 0, "alone");
    qn_machine_destroy(m);
}

Test(predict, queued_messages_cost_their_share)
{
    struct qn_machine *m = uniform(3, 10, 80, 8);
    static const uint8_t flat[][2] = {{0, 1}, {0, 2}};
    struct qn_shape s = shape_of(3, 0, flat);
    /* Both visible at 10; the first is waited for, the second queued. */
    cr_expect_eq(qn_predict(m, &s, QN_COLLECTIVE_REDUCE, 1), 170);
    cr_expect_eq(qn_predict(m, &s, QN_COLLECTIVE_REDUCE, 0.125), 100);
    cr_expect_eq(qn_predict(m, &s, QN_COLLECTIVE_REDUCE, 0), 90);
    m->send[2 * 3 + 0] = 90; /* visible the moment the receiver turns to it */
    cr_expect_eq(qn_predict(m, &s, QN_COLLECTIVE_REDUCE, 0.125), 170);
    m->send[2 * 3 + 0] = 89;
    cr_expect_eq(qn_predict(m, &s, QN_COLLECTIVE_REDUCE, 0.125), 100);
    qn_machine_destroy(m);
}

/* Equally visible: lower cores first. Only then does the order matter, because
 * receive costs differ and the queued one is cheap. */
Test(predict, ties_of_visibility_go_to_the_lower_core)
{
    struct qn_machine *m = uniform(3, 10, 80, 8);
    static const uint8_t flat[][2] = {{0, 2}, {0, 1}};
    struct qn_shape s = shape_of(3, 0, flat);
    m->receive[1 * 3 + 0] = 40;
    cr_expect_eq(qn_predict(m, &s, QN_COLLECTIVE_REDUCE, 0.5), 10 + 40 + 40);
    qn_machine_destroy(m);
}

Test(predict, acknowledgements_start_when_a_core_is_idle)
{
    struct qn_machine *m = four();
    struct qn_shape s = shape_of(4, 0, edges);
    /* idle: 7 18 27 48. 2 acknowledges at 27, visible 34, received until 84.
     * 3: visible 56, d1 = 116, visible 122: d0 = 122 + 40. */
    cr_expect_eq(qn_predict(m, &s, QN_COLLECTIVE_ACK, 1), 162);
    cr_expect_eq(qn_predict(m, &s, QN_COLLECTIVE_2PC, 1), 162 + 48);
    cr_expect_leq(qn_predict(m, &s, QN_COLLECTIVE_ACK, 1),
                  qn_predict(m, &s, QN_COLLECTIVE_BARRIER, 1));
    qn_machine_destroy(m);
}

Test(predict, published_measurements_add_one_message)
{
    struct qn_machine *m = four();
    struct qn_shape s = shape_of(4, 0, edges);
    m->send[3 * 4 + 0] = m->receive[3 * 4 + 0] = 100; /* leaf 3 -> root */
    m->send[0 * 4 + 3] = m->receive[0 * 4 + 3] = 11;
    cr_expect_eq(qn_predict_published(m, &s, QN_COLLECTIVE_BROADCAST, 1),
                 48 + 200);
    cr_expect_eq(qn_predict_published(m, &s, QN_COLLECTIVE_REDUCE, 1),
                 114 + 24);
    cr_expect_eq(qn_predict_published(m, &s, QN_COLLECTIVE_BARRIER, 1),
                 114 + 48);
    cr_expect_eq(qn_predict_published(m, &s, QN_COLLECTIVE_2PC, 1), 210 + 200);
    qn_machine_destroy(m);
}

Test(predict, occupancy_is_what_one_operation_takes_of_each_core)
{
    struct qn_machine *m = four();
    struct qn_shape s = shape_of(4, 0, edges);
    double busy[4];
    cr_expect_eq(qn_predict_occupancy(m, &s, false, busy), 30);
    cr_expect(busy[0] == 7 && busy[1] == 15 && busy[2] == 20 && busy[3] == 30);
    cr_expect_eq(qn_predict_occupancy(m, &s, true, busy), 97);
    cr_expect(busy[0] == 97 && busy[1] == 81 && busy[2] == 27 && busy[3] == 38);
    qn_machine_destroy(m);
}

Test(predict, one_core_costs_nothing)
{
    struct qn_machine *m = uniform(1, 1, 1, 1);
    struct qn_shape s = {.n = 1};
    for (uint32_t op = 0; op < QN_COLLECTIVES; op++) {
        cr_expect_eq(qn_predict(m, &s, (enum qn_collective)op, 1), 0);
        cr_assert_not_null(qn_collective_name(op));
    }
    cr_expect_eq(qn_predict_bound(m), 0);
    cr_assert_null(qn_collective_name(QN_COLLECTIVES));
    qn_machine_destroy(m);
}

/* N(t) = 1 for t < s + r, else N(t - s) + N(t - s - r). */
static double informed(double t, double s, double r)
{
    return t < s + r ? 1 : informed(t - s, s, r) + informed(t - s - r, s, r);
}

Test(predict, the_bound_is_the_first_time_at_which_n_cores_are_informed)
{
    for (uint32_t n = 2; n <= 60; n++) {
        struct qn_machine *m = uniform(n, 2, 5, 4);
        double t = qn_predict_bound(m);
        cr_expect_geq(informed(t, 2, 5), n, "n=%u t=%g", n, t);
        cr_expect(informed(t - 0.5, 2, 5) < n, "n=%u t=%g", n, t);
        qn_machine_destroy(m);
    }
}

/* Published kilocycles: barrier, reduction, broadcast, two-phase commit. */
static const struct {
    const char *name;
    double cost[4];
} published[] = {{"binary", {6.516, 2.752, 3.212, 8.046}},
                 {"cluster", {5.307, 2.086, 2.872, 6.852}},
                 {"bad", {14.3125, 6.608, 6.916, 19.26}},
                 {"sequential", {10.745, 2.4, 5.548, 14.36}},
                 {"mst", {8.37, 3.628, 3.864, 9.732}},
                 {"fibonacci", {6.625, 3.048, 3.66, 7.862}},
                 {"adaptive", {4.963, 2.428, 3.15, 6.072}}};

static double rank(const double *x, uint32_t i)
{
    double below = 0;
    for (uint32_t k = 0; k < 7; k++) {
        below += x[k] < x[i];
    }
    return below;
}

/* Spearman's; there are no ties. */
static double correlation(const double *a, const double *b)
{
    double sum = 0;
    for (uint32_t i = 0; i < 7; i++) {
        sum += pow(rank(a, i) - rank(b, i), 2);
    }
    return 1 - 6 * sum / (7 * 48);
}

/* As published the spanning trees are capped at two children. */
Test(predict, the_order_of_topologies_is_that_of_published_measurements)
{
    static const struct {
        enum qn_collective op;
        double q, least;
    } want[4] = {{QN_COLLECTIVE_BARRIER, 1, 0.85},
                 {QN_COLLECTIVE_REDUCE, 0.125, 0.8},
                 {QN_COLLECTIVE_BROADCAST, 1, 0.9},
                 {QN_COLLECTIVE_2PC, 1, 0.95}};
    struct qn_machine *m = recorded("intel_xeon_e5_v2_2x10");
    for (uint32_t k = 0; k < 4; k++) {
        double model[7], real[7];
        for (uint32_t i = 0; i < 7; i++) {
            struct qn_shape s;
            const char *name = i == 4   ? "mst2"
                               : i == 2 ? "bad2"
                                        : published[i].name;
            int err = i == 6 ? qn_adaptive_build(&s, m, 0, QN_LEVEL_NODE)
                             : qn_static_build(&s, m, name, 0, QN_LEVEL_NODE);
            cr_assert_eq(err, QN_OK);
            model[i] = qn_predict_published(m, &s, want[k].op, want[k].q);
            real[i] = published[i].cost[k];
            printf("%-10s %-10s model %7.0f measured %7.0f cycles\n",
                   qn_collective_name(want[k].op), published[i].name, model[i],
                   1000 * real[i]);
        }
        double c = correlation(model, real);
        printf("%-10s rank correlation %.3f\n", qn_collective_name(want[k].op),
               c);
        cr_expect_geq(c, want[k].least, "%s: %.3f",
                      qn_collective_name(want[k].op), c);
    }
    qn_machine_destroy(m);
}
