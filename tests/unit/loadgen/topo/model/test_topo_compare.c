#include <math.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/topo/model/compare.h"
#include "loadgen/topo/model/sweep.h"
#include "tests/support/test.h"
#include "tests/unit/core/topo/world.h"

Test(compare, the_front_has_the_unbeaten_points_and_one_of_equal_ones)
{
    struct qn_compare_point p[] = {
        {.latency = 5, .each = 5},  {.latency = 1, .each = 9},
        {.latency = 9, .each = 1},  {.latency = 5, .each = 5},
        {.latency = 5, .each = 6},  {.latency = 9, .each = 9},
        {.latency = 1, .each = 10},
    };
    static const bool want[] = {true, true, true, false, false, false, false};
    qn_compare_mark_front(p, QN_ARRAY_COUNT(p));
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(p); i++) {
        cr_assert_eq(p[i].front, want[i], "point %u", i);
    }
}

Test(compare, has_every_arity_once_for_each_map)
{
    struct qn_machine *m = scattered(9, 4);
    const struct qn_topology_spec_opts o = {
        .root = QN_ROOT_FREE, .q = 1, .seed = 1, .moves = 100};
    struct qn_compare *c = NULL;
    uint32_t seen[QN_COMPARE_KINDS] = {0};
    cr_assert_eq(qn_compare_run(&c, m, &o, false), QN_OK);
    for (uint32_t i = 0; i < c->count; i++) {
        const struct qn_compare_point *p = &c->point[i];
        cr_assert(p->latency > 0 && p->each > 0, "%s", p->name);
        seen[p->kind] += p->arity;
    }
    cr_assert_eq(seen[QN_COMPARE_RING], 72, "twice 1 + ... + 8");
    cr_assert_eq(seen[QN_COMPARE_COMPANION], 72);
    cr_assert_eq(seen[QN_COMPARE_TREE], 36);
    qn_compare_destroy(c);
    qn_machine_destroy(m);
}

Test(compare, the_best_point_for_a_window_has_the_lowest_bound)
{
    struct qn_compare_point p[] = {
        {.latency = 100, .each = 60}, /* a fast tree */
        {.latency = 400, .each = 20}, /* a ring */
        {.latency = 500, .each = 20}, /* not better in a sequence */
    };
    const struct qn_compare c = {.count = 3, .point = p};
    cr_assert(qn_compare_cycles(&p[1], 1) == 400);
    cr_assert(qn_compare_cycles(&p[1], 16) == 25);
    cr_assert(qn_compare_cycles(&p[1], 100) == 20, "the busiest core");
    cr_assert_eq(qn_compare_best(&c, 1), &p[0]);
    cr_assert_eq(qn_compare_best(&c, 6), &p[0]);
    cr_assert_eq(qn_compare_best(&c, 7), &p[1]);
    cr_assert_eq(qn_compare_best(&c, 128), &p[1]);
}

static struct qn_sweep *sweep(const char *sizes, uint32_t threads)
{
    struct qn_sweep *s = NULL;
    struct qn_parse_error f = {""};
    const struct qn_sweep_opts o = {.folder = QN_DATA,
                                    .sizes = sizes,
                                    .threads = threads,
                                    .o = {.q = 1, .seed = 1, .moves = 100}};
    cr_assert_eq(qn_sweep_run(&s, &o, &f), QN_OK, "%s", f.text);
    return s;
}

Test(sweep, is_the_same_for_any_number_of_threads)
{
    struct qn_sweep *a = sweep("3,5", 1), *b = sweep("3,5", 4);
    cr_assert_eq(a->groups, 2 * RECORDED);
    cr_assert_eq(memcmp(a->group, b->group, a->groups * sizeof *a->group), 0);
    qn_sweep_destroy(a);
    qn_sweep_destroy(b);
}

/* Two machines with known ratios: the mean of means, as logarithms. */
Test(sweep, means_count_each_machine_once)
{
    struct qn_machine *m = uniform(4, 1, 1, 4);
    struct qn_sweep_group g[3] = {{.machine = 0, .size = 2},
                                  {.machine = 0, .size = 4},
                                  {.machine = 1, .size = 4}};
    struct qn_sweep s = {.machines = 2,
                         .machine = {m, m},
                         .topos = 3,
                         .topo = {"auto", "auto, first core", "binary"},
                         .groups = 3,
                         .group = g};
    static const double times[] = {2, 8, 16};
    for (uint32_t i = 0; i < 3; i++) {
        g[i].cost[0][0] = 10;
        g[i].cost[1][0] = 20;
        g[i].cost[2][0] = 10 * times[i];
    }
    cr_assert(fabs(qn_sweep_times(&s, 2, 0, 0, 0) - 4) < 1e-9);
    cr_assert(fabs(qn_sweep_times(&s, 2, 0, UINT32_MAX, 0) - 8) < 1e-9);
    cr_assert(fabs(qn_sweep_times(&s, 2, 0, 0, UINT32_MAX) - 8) < 1e-9);
    cr_assert(isnan(qn_sweep_times(&s, 2, 0, 1, 2)), "no such group");
    cr_assert(fabs(qn_sweep_gain(&s, 1, 0, 0) - 4) < 1e-9, "best static");
    qn_machine_destroy(m);
}
