/*
 * Every barrier under every schedule, in both memories; QN_EXPLORE_DEVIATIONS
 * is another bound for two members, and two less is that of three. And each
 * defect of core/barrier/barrier_mutant.h, which is found.
 */
#include <stdio.h>
#include <stdlib.h>

#include "core/base/bits.h"
#include "tests/sim/explore/barrier/barrier_world.h"
#include "tests/support/test.h"

enum qn_barrier_mutant qn_barrier_mutant;

static const struct barrier_program two = {.members = 2, .episodes = 3};
static const struct barrier_program three = {.members = 3, .episodes = 2};
static const struct barrier_program own = {
    .members = 2, .episodes = 3, .own_cores = true};
static const struct barrier_program own_three = {
    .members = 3, .episodes = 2, .own_cores = true};
static const struct barrier_program followed = {
    .members = 2, .episodes = 2, .follower = true};

#ifdef __SANITIZE_ADDRESS__ /* which takes four times as long */
#define USUAL 2u
#else
#define USUAL 3u
#endif

static void explore(const struct barrier_program *p)
{
    const char *more = getenv("QN_EXPLORE_DEVIATIONS");
    const uint32_t most = more != NULL ? (uint32_t)atoi(more) : USUAL;
    for (uint32_t i = 0; qn_barrier_forms[i] != NULL; i++) {
        const char *form = qn_barrier_forms[i]->name;
        for (enum qn_explore_memory m = QN_EXPLORE_TSO; m <= QN_EXPLORE_C11;
             m++) {
            struct qn_explored out;
            const bool clean = barrier_is_clean(
                form, p, m,
                p->members + p->follower > 2 ? most - QN_MIN(2, most) : most,
                &out);
            cr_expect(clean, "%s, memory %d: %s at %s", form, (int)m, out.fault,
                      out.choices);
            if (getenv("QN_SHOW_RUNS") != NULL) {
                printf("%s of %u: memory %d, %llu runs\n", form, p->members,
                       (int)m, (unsigned long long)out.runs);
            }
        }
    }
}

Test(barrier_explore, two_members, .timeout = 300)
{
    explore(&two);
}

Test(barrier_explore, three_members, .timeout = 300)
{
    explore(&three);
}

Test(barrier_explore, members_with_cores_of_their_own, .timeout = 300)
{
    explore(&own);
    explore(&own_three);
}

Test(barrier_explore, a_seat_that_goes_to_another_node, .timeout = 300)
{
    explore(&followed);
}

static const struct {
    const char *form;
    enum qn_barrier_mutant mutant;
} finds[] = {
#define X(name, of, text) {of, QN_BARRIER_MUTANT_##name},
    QN_BARRIER_MUTANT_MAP(X)
#undef X
};

static bool finds_by(uint32_t i, const struct barrier_program *p)
{
    struct qn_explored out;
    const bool clean =
        barrier_is_clean(finds[i].form, p, QN_EXPLORE_C11, 2, &out);
    if (!clean && getenv("QN_SHOW_RUNS") != NULL) {
        printf("defect %u: %s at %s\n", finds[i].mutant, out.fault,
               out.choices);
    }
    return !clean && out.fault != NULL;
}

Test(barrier_explore, every_defect_is_found, .timeout = 300)
{
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(finds); i++) {
        qn_barrier_mutant = finds[i].mutant;
        const bool found = finds_by(i, &two) || finds_by(i, &three);
        qn_barrier_mutant = QN_BARRIER_MUTANT_NONE;
        cr_expect(found, "defect %u is not found", finds[i].mutant);
    }
}
