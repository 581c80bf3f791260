#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/bcast/core_mapping.h"
#include "tests/support/test.h"

/* Cores 4, 6, 8, ...; a send from u to v costs 100 + 10 u + v, a receive twice
 * that. */
static struct qn_machine *machine(uint32_t n)
{
    struct qn_machine *m;
    cr_assert_eq(qn_machine_create(&m, n), QN_OK);
    m->facts.clock_ghz = 2;
    for (uint32_t u = 0; u < n; u++) {
        m->core[u].os = 4 + 2 * u;
        m->core[u].node = u * 2 / n;
        for (uint32_t v = 0; v < n; v++) {
            m->send[u * n + v] = u == v ? 0 : 100 + 10 * u + v;
            m->receive[u * n + v] = 2 * m->send[u * n + v];
        }
    }
    return m;
}

static struct qn_core_mapping make(uint32_t cores, uint32_t nodes)
{
    struct qn_core_mapping s;
    struct qn_machine *m = machine(cores);
    cr_assert_eq(qn_core_mapping_make(&s, m, nodes), QN_OK);
    qn_machine_destroy(m);
    cr_assert_eq(qn_machine_check(s.m), QN_OK);
    cr_assert_eq(s.m->n, nodes);
    cr_assert_eq(s.m->facts.clock_ghz, 2);
    return s;
}

Test(mapping, a_part_is_dealt_over_the_memory_nodes)
{
    struct qn_core_mapping s = make(4, 2);
    cr_assert_eq(s.home[0], 4); /* the first core of each node */
    cr_assert_eq(s.home[1], 8);
    cr_assert_eq(qn_send_cost(s.m, 0, 1), 102);
    cr_assert(s.costs_known);
    qn_core_mapping_fini(&s);
}

Test(mapping, more_nodes_than_cores_share_at_the_mean_cost)
{
    struct qn_core_mapping s = make(2, 5);
    cr_assert_eq(s.home[4], 4);
    cr_assert_eq(s.m->core[4].os, 4); /* the node's number */
    cr_assert_eq(s.m->core[3].os, 3);
    cr_assert_eq(qn_send_cost(s.m, 2, 1), 101);
    cr_assert_eq(qn_send_cost(s.m, 3, 4), 110);
    cr_assert_eq(qn_send_cost(s.m, 0, 4), 105.5);
    cr_assert_eq(qn_receive_cost(s.m, 4, 2), 211);
    qn_core_mapping_fini(&s);
}

Test(mapping, one_core_has_no_costs)
{
    struct qn_core_mapping s = make(1, 3);
    cr_assert_not(s.costs_known);
    qn_core_mapping_fini(&s);
}

Test(mapping, nodes_without_a_core_get_the_usable_ones_in_turn)
{
    struct qn_core_mapping s = make(4, 4); /* 4 6 8 10 */
    const uint32_t usable[] = {6, 7};
    qn_core_mapping_assign(&s, usable, 2);
    const uint32_t want[] = {6, 6, 6, 7};
    cr_assert_arr_eq(s.core, want, sizeof want);
    cr_assert_eq(s.cores, 2);
    const uint32_t all[] = {10, 8, 6, 4};
    qn_core_mapping_assign(&s, all, 4);
    cr_assert_arr_eq(s.core, s.home, sizeof want);
    cr_assert_eq(s.cores, 4);
    qn_core_mapping_fini(&s);
}

Test(mapping, a_group_has_1_to_64_nodes)
{
    struct qn_core_mapping s;
    struct qn_machine *m = machine(2);
    cr_assert_eq(qn_core_mapping_make(&s, m, 0), QN_EINVAL);
    cr_assert_eq(qn_core_mapping_make(&s, m, QN_NODES_MAX + 1), QN_EINVAL);
    qn_machine_destroy(m);
}
