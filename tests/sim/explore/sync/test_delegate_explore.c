/*
 * Delegation under every schedule, by backend. Two clients of two calls each
 * with 3 deviations, three of one with 2; QN_EXPLORE_MORE adds to these.
 * Defects of core/sync/delegate/delegate_mutant.h are found. Here every second
 * batch that has served no other looks twice for one (combining.c).
 */
#include <stdio.h>
#include <stdlib.h>

#include "core/base/bits.h"
#include "core/sync/delegate/delegate_mutant.h"
#include "tests/sim/explore/sync/delegate_world.h"
#include "tests/support/test.h"

enum qn_delegate_mutant qn_delegate_mutant;

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

Test(delegate_explore, cc_synch_on_own_cores, .timeout = 300)
{
    struct delegate_program p = {.type = "cc_synch", .own_cores = true};
    two_and_three(p);
    p.only_operations = true;
    two_and_three(p);
}

Test(delegate_explore, h_synch_on_own_cores, .timeout = 300)
{
    clean((struct delegate_program){.type = "h_synch",
                                    .clients = 2,
                                    .calls = 2,
                                    .domains = 2,
                                    .own_cores = true,
                                    .only_operations = true,
                                    .deviations = 2},
          QN_EXPLORE_C11);
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

/* From the lock to CC-Synch, to H-Synch and back. */
Test(delegate_explore, auto_that_changes_into_h_synch_and_out, .timeout = 300)
{
    two_and_three((struct delegate_program){
        .type = "auto", .domains = 2, .change_every = 1});
}

Test(delegate_explore, a_client_leaves_with_the_node_that_it_has,
     .timeout = 300)
{
    clean((struct delegate_program){.type = "cc_synch",
                                    .clients = 2,
                                    .calls = 3,
                                    .rejoin = true,
                                    .deviations = 2},
          QN_EXPLORE_C11);
}

/* ---- defects ---- */

static const struct {
    enum qn_delegate_mutant mutant;
    struct delegate_program by;
} finds[] = {
    {QN_DELEGATE_MUTANT_LATE_LINK,
     {.type = "cc_synch", .clients = 2, .calls = 2, .deviations = 3}},
    {QN_DELEGATE_MUTANT_FIRST_NODE,
     {.type = "cc_synch",
      .clients = 2,
      .calls = 3,
      .rejoin = true,
      .deviations = 2}},
    {QN_DELEGATE_MUTANT_FROM_OUTSIDE,
     {.type = "auto", .clients = 2, .calls = 2, .deviations = 3}},
    {QN_DELEGATE_MUTANT_BLIND,
     {.type = "auto",
      .clients = 2,
      .calls = 2,
      .rejoin = true,
      .change_every = 1,
      .deviations = 3}},
    {QN_DELEGATE_MUTANT_UNLINKED,
     {.type = "cc_synch", .clients = 2, .calls = 2, .deviations = 3}},
};

Test(delegate_explore, every_defect_is_found, .timeout = 300)
{
    cr_assert_eq(QN_ARRAY_COUNT(finds), QN_DELEGATE_MUTANT_COUNT - 1);
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(finds); i++) {
        struct qn_explored out;
        qn_delegate_mutant = finds[i].mutant;
        bool found = !delegate_explore(&finds[i].by, QN_EXPLORE_C11, &out);
        qn_delegate_mutant = QN_DELEGATE_MUTANT_NONE;
        cr_expect(found, "defect %u is not found", finds[i].mutant);
        if (getenv("QN_SHOW_RUNS") != NULL && found) {
            fprintf(stderr, "defect %u: %s\n", finds[i].mutant, out.fault);
        }
    }
}
