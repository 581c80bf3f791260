/*
 * Delegation under every schedule, by backend. Two clients of two calls each
 * with 3 deviations, three of one with 2; QN_EXPLORE_DEVIATIONS adds more.
 */
#include <stdlib.h>

#include "tests/sim/explore/sync/delegate_world.h"
#include "tests/support/test.h"

static uint32_t more(void)
{
    const char *text = getenv("QN_EXPLORE_MORE");
    return text != NULL ? (uint32_t)atoi(text) : 0;
}

static void clean(struct delegate_program p, enum qn_explore_memory m)
{
    struct qn_explored out;
    p.deviations += more();
    cr_assert(delegate_explore(&p, m, &out), "%s %u x %u, memory %d: %s at %s",
              p.type, p.clients, p.calls, (int)m,
              out.fault != NULL ? out.fault : "not complete", out.choices);
}

static void two_and_three(struct delegate_program p)
{
    p.clients = 2;
    p.calls = 2;
    p.deviations = 3;
    clean(p, QN_EXPLORE_C11);
    p.clients = 3;
    p.calls = 1;
    p.deviations = 2;
    clean(p, QN_EXPLORE_C11);
}

Test(delegate_explore, under_a_lock, .timeout = 300)
{
    two_and_three((struct delegate_program){.type = "lock", .lock = "tas"});
}

Test(delegate_explore, cc_synch, .timeout = 300)
{
    two_and_three((struct delegate_program){.type = "cc_synch"});
}

Test(delegate_explore, cc_synch_with_the_smallest_batch, .timeout = 300)
{
    two_and_three((struct delegate_program){.type = "cc_synch", .batch = 1});
}

Test(delegate_explore, h_synch_in_two_domains, .timeout = 300)
{
    two_and_three((struct delegate_program){.type = "h_synch", .domains = 2});
}

/* From the lock to CC-Synch and back, by each operation. */
Test(delegate_explore, auto_that_changes_both_ways, .timeout = 300)
{
    two_and_three((struct delegate_program){.type = "auto", .change_every = 1});
}
