#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/bcast/seats.h"
#include "tests/support/test.h"

/* Cores 4, 6, 8, ...; from u to v costs 100 + 10 u + v, and twice that. */
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

static struct qn_seats make(uint32_t cores, uint32_t nodes)
{
    struct qn_seats s;
    struct qn_machine *m = machine(cores);
    cr_assert_eq(qn_seats_make(&s, m, nodes), QN_OK);
    qn_machine_destroy(m);
    cr_assert_eq(qn_machine_check(s.m), QN_OK);
    cr_assert_eq(s.m->n, nodes);
    cr_assert_eq(s.m->facts.clock_ghz, 2);
    return s;
}

Test(seats, a_part_is_dealt_over_the_memory_nodes)
{
    struct qn_seats s = make(4, 2);
    cr_assert_eq(s.home[0], 4); /* first of each */
    cr_assert_eq(s.home[1], 8);
    cr_assert_eq(qn_send_cost(s.m, 0, 1), 102);
    cr_assert(s.costs_known);
    qn_seats_fini(&s);
}

Test(seats, more_nodes_than_cores_share_at_the_mean_cost)
{
    struct qn_seats s = make(2, 5);
    cr_assert_eq(s.home[4], 4);
    cr_assert_eq(s.m->core[4].os, 4); /* the node's number */
    cr_assert_eq(s.m->core[3].os, 3);
    cr_assert_eq(qn_send_cost(s.m, 2, 1), 101);
    cr_assert_eq(qn_send_cost(s.m, 3, 4), 110);
    cr_assert_eq(qn_send_cost(s.m, 0, 4), 105.5);
    cr_assert_eq(qn_receive_cost(s.m, 4, 2), 211);
    qn_seats_fini(&s);
}

Test(seats, one_core_has_no_costs_to_know)
{
    struct qn_seats s = make(1, 3);
    cr_assert_not(s.costs_known);
    qn_seats_fini(&s);
}

Test(seats, who_has_no_core_here_takes_the_usable_ones_in_turn)
{
    struct qn_seats s = make(4, 4); /* 4 6 8 10 */
    const uint32_t usable[] = {6, 7};
    qn_seats_sit(&s, usable, 2);
    const uint32_t want[] = {6, 6, 6, 7};
    cr_assert_arr_eq(s.core, want, sizeof want);
    cr_assert_eq(s.cores, 2);
    const uint32_t all[] = {10, 8, 6, 4};
    qn_seats_sit(&s, all, 4);
    cr_assert_arr_eq(s.core, s.home, sizeof want);
    cr_assert_eq(s.cores, 4);
    qn_seats_fini(&s);
}

Test(seats, a_group_has_1_to_64_nodes)
{
    struct qn_seats s;
    struct qn_machine *m = machine(2);
    cr_assert_eq(qn_seats_make(&s, m, 0), QN_EINVAL);
    cr_assert_eq(qn_seats_make(&s, m, QN_NODES_MAX + 1), QN_EINVAL);
    qn_machine_destroy(m);
}
