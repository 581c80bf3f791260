/* A yield is guarded if anything waits for the member, and for that only. */
#include "core/base/bits.h"
#include "paxos/group/idle_yield.h"
#include "tests/support/test.h"

static const struct {
    bool has_role;
    uint64_t proposals, barriers;
    enum qn_idle_yield want;
} rows[] = {
    {false, 0, 0, QN_IDLE_YIELD_PLAIN},
    {true, 0, 0, QN_IDLE_YIELD_GUARDED},
    {false, 1, 0, QN_IDLE_YIELD_GUARDED},
    {false, 0, 1, QN_IDLE_YIELD_GUARDED},
    {false, UINT64_C(1) << 32, 0, QN_IDLE_YIELD_GUARDED},
    {true, 2, 3, QN_IDLE_YIELD_GUARDED},
};

Test(idle_yield, it_is_guarded_where_anything_waits_for_the_member)
{
    for (size_t i = 0; i < QN_ARRAY_COUNT(rows); i++) {
        cr_expect_eq(qn_idle_yield_of(rows[i].has_role, rows[i].proposals,
                                      rows[i].barriers),
                     rows[i].want, "row %zu", i);
    }
}
