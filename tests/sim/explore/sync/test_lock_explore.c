/*
 * Every lock under every schedule, in both memories; QN_EXPLORE_DEVIATIONS is
 * another bound for two nodes, and one less is that of three. And each defect
 * of core/sync/lock/lock_mutant.h, which is found.
 */
#include <stdio.h>
#include <stdlib.h>

#include "core/base/bits.h"
#include "core/sync/lock/lock_mutant.h"
#include "tests/sim/explore/sync/lock_world.h"
#include "tests/support/test.h"

enum qn_lock_mutant qn_lock_mutant;

static uint32_t deviations_of(const struct lock_program *p)
{
    const char *more = getenv("QN_EXPLORE_DEVIATIONS");
#ifdef __SANITIZE_ADDRESS__ /* which takes four times as long */
    const uint32_t usual = 3;
#else
    const uint32_t usual = 4;
#endif
    const uint32_t most = more != NULL ? (uint32_t)atoi(more) : usual;
    return p->node[2] == NULL ? most : most - 1;
}

static void explore(const struct qn_lock_type *type,
                    const struct lock_program *p)
{
    for (enum qn_explore_memory m = QN_EXPLORE_TSO; m <= QN_EXPLORE_C11; m++) {
        struct qn_explored out;
        const bool clean = lock_is_clean(type, p, m, deviations_of(p), &out);
        if (getenv("QN_SHOW_RUNS") != NULL) {
            printf("%s %s: memory %d, %llu runs\n", type->name, p->node[0],
                   (int)m, (unsigned long long)out.runs);
        }
        cr_expect(clean, "%s, memory %d: %s at %s", type->name, (int)m,
                  out.fault, out.choices);
    }
}

static void explore_each(const struct lock_program *p, bool timed)
{
    for (uint32_t i = 0; qn_lock_types[i] != NULL; i++) {
        const struct qn_lock_type *type = qn_lock_types[i];
        if (!type->words && (type->timed || !timed)) {
            explore(type, p);
        }
    }
}

Test(lock_explore, two_nodes_of_two_operations, .timeout = 300)
{
    explore_each(&lock_of_two, false);
}

Test(lock_explore, three_nodes_of_one_operation, .timeout = 300)
{
    explore_each(&lock_of_three, false);
}

Test(lock_explore, a_node_that_only_tries, .timeout = 300)
{
    explore_each(&lock_of_tries, false);
}

Test(lock_explore, a_node_that_tries_beside_a_sleeper, .timeout = 300)
{
    explore_each(&lock_of_a_sleeper, false);
}

Test(lock_explore, nodes_with_cores_of_their_own, .timeout = 300)
{
    explore(&qn_lock_mcs, &lock_of_own_cores);
    explore(&qn_lock_clh, &lock_of_own_cores);
    explore(&qn_lock_tas, &lock_of_own_cores);
    explore(&qn_lock_ttas, &lock_of_own_cores);
}

Test(lock_explore, a_deadline_that_passes_loses_no_sleeper, .timeout = 300)
{
    explore_each(&lock_of_deadlines, true);
}

/* ---- defects ---- */

static const struct {
    const struct qn_lock_type *type;
    enum qn_lock_mutant mutant;
    const struct lock_program *by;
} finds[] = {
    {&qn_lock_tas, QN_LOCK_MUTANT_TAS_NO_WAKE, &lock_of_two},
    {&qn_lock_tas, QN_LOCK_MUTANT_TAS_FORGETS, &lock_of_three},
    {&qn_lock_tas, QN_LOCK_MUTANT_TAS_OVERWRITES, &lock_of_a_sleeper},
    {&qn_lock_ttas, QN_LOCK_MUTANT_TTAS_STORES, &lock_of_two},
    {&qn_lock_mcs, QN_LOCK_MUTANT_MCS_NO_WAKE, &lock_of_two},
    {&qn_lock_mcs, QN_LOCK_MUTANT_MCS_SILENT_LINK, &lock_of_two},
    {&qn_lock_mcs, QN_LOCK_MUTANT_MCS_LATE, &lock_of_two},
    {&qn_lock_mcs, QN_LOCK_MUTANT_MCS_LEAVES, &lock_of_two},
    {&qn_lock_mcs, QN_LOCK_MUTANT_MCS_TRY_STORES, &lock_of_tries},
    {&qn_lock_clh, QN_LOCK_MUTANT_CLH_NO_WAKE, &lock_of_two},
    {&qn_lock_clh, QN_LOCK_MUTANT_CLH_OWN_NODE, &lock_of_two},
    {&qn_lock_clh, QN_LOCK_MUTANT_CLH_NO_VERSION, &lock_of_tries},
};

Test(lock_explore, every_defect_is_found, .timeout = 300)
{
    cr_assert_eq(QN_ARRAY_COUNT(finds), QN_LOCK_MUTANT_COUNT - 1);
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(finds); i++) {
        struct qn_explored out;
        qn_lock_mutant = finds[i].mutant;
        const bool found =
            !lock_is_clean(finds[i].type, finds[i].by, QN_EXPLORE_C11, 2, &out);
        qn_lock_mutant = QN_LOCK_MUTANT_NONE;
        cr_expect(found && out.fault != NULL, "defect %u is not found",
                  finds[i].mutant);
        if (getenv("QN_SHOW_RUNS") != NULL && found) {
            printf("defect %u: %s at %s\n", finds[i].mutant, out.fault,
                   out.choices);
        }
    }
}
