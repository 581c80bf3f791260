#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/topo/explain.h"
#include "loadgen/topo/model/cores.h"
#include "loadgen/topo/model/topology_spec.h"
#include "tests/support/test.h"
#include "tests/unit/core/topo/world.h"

static const struct qn_topology_spec_opts plain = {
    .root = QN_ROOT_FREE, .q = 1, .seed = 1, .moves = 1000};

static struct qn_topology_spec make(const struct qn_machine *m,
                                    const char *name)
{
    struct qn_topology_spec c;
    struct qn_parse_error f = {""};
    cr_assert_eq(qn_topology_spec_make(&c, m, name, &plain, &f), QN_OK,
                 "%s: %s", name, f.text);
    return c;
}

static const char *refusal(const struct qn_machine *m, const char *name)
{
    static struct qn_parse_error f;
    struct qn_topology_spec c;
    f.text[0] = '\0';
    cr_assert_neq(qn_topology_spec_make(&c, m, name, &plain, &f), QN_OK, "%s",
                  name);
    return f.text;
}

Test(topology_spec, every_compared_name_can_be_built)
{
    struct qn_machine *m = scattered(13, 3);
    for (uint32_t i = 0; qn_topology_spec_name_at(i) != NULL; i++) {
        struct qn_topology_spec c = make(m, qn_topology_spec_name_at(i));
        bool ring = c.ring != NULL;
        double cost = qn_topology_spec_cost(&c, m, QN_GOAL_BARRIER, 1);
        cr_assert_eq(isnan(cost), ring, "%s: %g", c.name, cost);
        cr_assert(qn_topology_spec_cost(&c, m, QN_GOAL_ACK, 1) >=
                      qn_topology_spec_bound(m, QN_GOAL_ACK, 1),
                  "%s", c.name);
        qn_topology_spec_fini(&c);
    }
    qn_machine_destroy(m);
}

Test(topology_spec, a_wrong_name_gets_a_suggestion)
{
    struct qn_machine *m = scattered(5, 3);
    cr_assert_not_null(strstr(refusal(m, "binray"), "did you mean binary"));
    cr_assert_not_null(strstr(refusal(m, "ring:k=0"), "ring:k=N"));
    cr_assert_not_null(strstr(refusal(m, "ring:k=2,half"), "ring:k=N"));
    cr_assert_not_null(strstr(refusal(m, "tree:k=2,full"), "tree:k=N"));
    cr_assert_not_null(strstr(refusal(m, "ring:k=65"), "k must be 1 to 64"));
    cr_assert_not_null(strstr(refusal(m, "/no/such.csv"), "/no/such.csv"));
    qn_machine_destroy(m);
}

Test(topology_spec, a_given_root_is_the_root)
{
    struct qn_machine *m = scattered(9, 2);
    static const char *const names[] = {"auto", "adaptive", "mst", "tree:k=3",
                                        "ring:k=2"};
    struct qn_topology_spec_opts o = plain;
    o.root = 4;
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(names); i++) {
        struct qn_topology_spec c;
        cr_assert_eq(qn_topology_spec_make(&c, m, names[i], &o, NULL), QN_OK);
        cr_assert_eq(c.root, 4, "%s: %u", names[i], c.root);
        qn_topology_spec_fini(&c);
    }
    qn_machine_destroy(m);
}

/* No tree of any kind is below the bound, and equal cores reach it. */
Test(topology_spec, bounds_are_below_the_plan_and_exact_for_equal_cores)
{
    struct qn_machine *m = uniform(9, 3, 7, 9);
    struct qn_topology_spec_opts o = plain;
    for (uint32_t g = 0; g < QN_GOALS; g++) {
        struct qn_topology_spec c;
        o.goal = (enum qn_goal)g;
        cr_assert_eq(qn_topology_spec_make(&c, m, "auto", &o, NULL), QN_OK);
        double cost = qn_topology_spec_cost(&c, m, o.goal, 1);
        double bound = qn_topology_spec_bound(m, o.goal, 1);
        cr_assert(bound <= cost + 1e-9, "%s: %g below %g", qn_goal_name(g),
                  cost, bound);
        qn_topology_spec_fini(&c);
    }
    struct qn_topology_spec best;
    o.goal = QN_GOAL_BROADCAST;
    cr_assert_eq(qn_topology_spec_make(&best, m, "auto", &o, NULL), QN_OK);
    cr_assert(fabs(qn_topology_spec_cost(&best, m, o.goal, 1) -
                   qn_topology_spec_bound(m, o.goal, 1)) < 1e-9);
    qn_machine_destroy(m);
}

Test(cores, lists_name_cores_by_number_and_ranges_may_have_gaps)
{
    struct qn_machine *m = scattered(6, 1); /* 0 4 6 10 12 16 */
    uint32_t index[QN_CORES_MAX], count = 0;
    struct qn_parse_error f = {""};
    cr_assert_eq(qn_cores_parse(index, &count, m, "12,4-10,4", &f), QN_OK);
    cr_assert_eq(count, 4);
    cr_assert(index[0] == 1 && index[3] == 4);
    static const char *const wrong[] = {"",     "1",          "4-", "-4",
                                        "10-4", "4,,6",       "4,", "4 6",
                                        "4-11", "99999999999"};
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(wrong); i++) {
        cr_assert_eq(qn_cores_parse(index, &count, m, wrong[i], &f), QN_EINVAL,
                     "'%s'", wrong[i]);
    }
    qn_machine_destroy(m);
}

Test(cores, are_dealt_round_robin_over_the_nodes)
{
    struct qn_machine *m = uniform(5, 1, 1, 1);
    static const uint32_t node[] = {7, 7, 3, 7, 3};
    static const uint32_t want[] = {0, 2, 1, 4, 3};
    uint32_t index[QN_CORES_MAX];
    for (uint32_t v = 0; v < 5; v++) {
        m->core[v].node = node[v];
    }
    qn_cores_deal(index, m);
    for (uint32_t i = 0; i < 5; i++) {
        cr_assert_eq(index[i], want[i], "place %u: %u", i, index[i]);
    }
    qn_machine_destroy(m);
}

Test(explain, explains_times_receivers_and_reasons)
{
    struct qn_machine *m = uniform(4, 2, 3, 4);
    struct qn_topology_spec c = make(m, "binary");
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    cr_assert_eq(qn_tree_explain(&c, m, QN_GOAL_BROADCAST, 1, f), QN_OK);
    fclose(f);
    cr_assert_str_eq(
        text,
        "\nbroadcast, cycles 0.0 to 10.0\n"
        "       0.0  core 0 (socket 0, node 0, cache 0), the root, begins\n"
        "        sends to 1: 0.0 to 2.0; it has the message at 5.0, its whole "
        "subtree at 10.0\n"
        "        sends to 2: 2.0 to 4.0; it has the message at 7.0\n"
        "        why: largest remaining time first; no other order is faster\n"
        "       5.0  core 1 (socket 0, node 0, cache 0) receives from 0\n"
        "        sends to 3: 5.0 to 7.0; it has the message at 10.0\n"
        "       7.0  core 2 (socket 0, node 0, cache 0) receives from 0\n"
        "        sends to no core\n"
        "      10.0  core 3 (socket 0, node 0, cache 0) receives from 1\n"
        "        sends to no core\n"
        "\nbroadcast on binary: 10.0 cycles\n",
        "got: %s", text);
    free(text);
    qn_machine_destroy(m);
}

/* The number in the last line is the prediction, for every operation. */
Test(explain, ends_with_the_prediction)
{
    struct qn_machine *m = recorded("syn_8x4x1");
    struct qn_topology_spec c = make(m, "fibonacci");
    for (uint32_t g = 0; g < QN_GOAL_THROUGHPUT; g++) {
        char *text = NULL, want[80];
        size_t size = 0;
        FILE *f = open_memstream(&text, &size);
        cr_assert_eq(qn_tree_explain(&c, m, (enum qn_goal)g, 1, f), QN_OK);
        fclose(f);
        snprintf(want, sizeof want, "\n%s on fibonacci: %.1f cycles\n",
                 qn_goal_name(g),
                 qn_topology_spec_cost(&c, m, (enum qn_goal)g, 1));
        cr_assert(size > strlen(want) &&
                      strcmp(text + size - strlen(want), want) == 0,
                  "%s", want);
        free(text);
    }
    qn_machine_destroy(m);
}

/* A ring is evaluated with a map that was searched for, unless another is
 * named. */
Test(topology_spec, rings_are_mapped_for_the_operation)
{
    struct qn_machine *m = scattered(24, 5);
    struct qn_topology_spec_opts o = plain;
    double cost[3][2];
    static const char *const names[] = {"ring:k=2", "ring:k=2,map=identity",
                                        "ring:k=2,map=latency"};
    for (uint32_t i = 0; i < 3; i++) {
        for (uint32_t busy = 0; busy < 2; busy++) {
            struct qn_topology_spec c;
            o.goal = busy ? QN_GOAL_THROUGHPUT : QN_GOAL_ACK;
            cr_assert_eq(qn_topology_spec_make(&c, m, names[i], &o, NULL),
                         QN_OK);
            cost[i][busy] = qn_topology_spec_cost(&c, m, o.goal, 1);
            cr_assert_eq(c.root, c.ring->core[0]);
            cr_assert(i != 1 || c.root == 0);
            qn_topology_spec_fini(&c);
        }
    }
    cr_assert(cost[0][0] < cost[1][0], "latency");
    cr_assert(cost[0][1] < cost[1][1], "busiest core");
    cr_assert(cost[2][0] == cost[0][0], "the default for ack");
    cr_assert(cost[2][1] > cost[0][1], "not the one for throughput");
    qn_machine_destroy(m);
}
