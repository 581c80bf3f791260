/* Which variant the members of a group take, and why; on a machine of 24 memory
 * nodes that is not here. */
#include <string.h>

#include "core/base/err.h"
#include "loadgen/large/large_group.h"
#include "tests/support/test.h"

#define MEMBERS 6u
#define BYTES   ((uint64_t)1 << 16)

static struct qn_large_group g; /* too large for the stack */
static struct qn_places places;
static char why[QN_LARGE_WHY_MAX];

/* Every eighth core, the last one first; two on a memory node. */
static struct qn_machine *begin(uint32_t cores)
{
    struct qn_parse_error bad = {""};
    struct qn_machine *m = NULL;
    places = (struct qn_places){.count = cores, .numa_nodes = 3};
    for (uint32_t i = 0; i < cores; i++) {
        places.place[i].cpu = (int)(8 * (cores - 1 - i));
        places.place[i].numa_node = (int)(i / 2);
    }
    cr_assert_eq(qn_machine_load(&m, QN_MACHINES "/uv2000_24x8", &bad), QN_OK,
                 "%s", bad.text);
    return m;
}

Test(large_group, takes_what_is_predicted_to_take_least)
{
    struct qn_machine *m = begin(MEMBERS);
    uint32_t other = 0;
    cr_assert_eq(qn_large_group_make(&g, &places, m, MEMBERS, true), QN_OK);
    cr_assert_not_null(g.m);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        cr_expect_eq(g.core[i], 8 * i, "in the order of the machine");
        cr_expect_eq(g.m->core[i].os, g.core[i]);
    }
    for (uint32_t op = 0; op < QN_LARGE_OPERATIONS; op++) {
        const struct qn_large_variant *v, *best;
        const enum qn_large_operation o = (enum qn_large_operation)op;
        v = qn_large_group_variant(&g, o, BYTES);
        cr_assert_eq(qn_large_predict_best(g.m, g.place, o, BYTES, true, &best),
                     QN_OK);
        cr_expect_eq(v, best, "%s, %s", v->name, best->name);
        const bool usual = v == qn_large_variant_choose(o, MEMBERS, true);
        other += !usual;
        qn_large_group_why(&g, o, BYTES, why);
        cr_expect_eq(strncmp(why, "by prices, ", 11), 0, "%s", why);
        cr_expect_not_null(strstr(why, usual ? "as without" : "without them "),
                           "%s", why);
    }
    cr_expect_gt(other, 0, "prices change nothing: choose another machine");
    qn_large_group_fini(&g);
    qn_machine_destroy(m);
}

Test(large_group, without_prices_regions_decide)
{
    struct qn_machine *m = begin(MEMBERS);
    cr_assert_eq(qn_large_group_make(&g, &places, NULL, MEMBERS, false), QN_OK);
    cr_expect_eq(qn_large_tree_regions(g.place, MEMBERS), 3);
    cr_expect_eq(qn_large_group_variant(&g, QN_LARGE_GATHER, BYTES),
                 qn_large_variant_choose(QN_LARGE_GATHER, 3, false));
    qn_large_group_why(&g, QN_LARGE_GATHER, BYTES, why);
    cr_expect_str_eq(why, "without prices, 3 regions, members are isolated");
    qn_machine_destroy(m);
}

/* Copies that take turns on a core are not predicted. */
Test(large_group, members_that_share_cores_have_no_prices)
{
    struct qn_machine *m = begin(MEMBERS);
    cr_assert_eq(qn_large_group_make(&g, &places, m, MEMBERS + 1, true), QN_OK);
    cr_expect_null(g.m);
    cr_expect_eq(g.core[MEMBERS], g.core[0]);
    qn_large_group_why(&g, QN_LARGE_GATHER, BYTES, why);
    cr_expect_str_eq(why, "members share cores: without prices, 3 regions");
    qn_machine_destroy(m);
}

Test(large_group, a_machine_without_a_core_of_theirs_is_refused)
{
    struct qn_machine *m = begin(2);
    places.place[1].cpu = 4000;
    cr_assert_eq(qn_large_group_make(&g, &places, m, 2, true), QN_ENOENT);
    cr_expect_null(g.m);
    qn_machine_destroy(m);
}
