/*
 * HybLock, HybComb and MP-Server under every schedule: clean as they are, and
 * each defect of core/sync/sync_mutant.h is found. QN_EXPLORE_MORE: more
 * of them, by night.
 */
#include <stdlib.h>

#include "core/sync/sync_mutant.h"
#include "tests/sim/explore/sync/words_sync_world.h"
#include "tests/support/test.h"

/* A sanitizer makes each run twenty times slower. */
#ifdef __SANITIZE_ADDRESS__
#define LESS 1
#else
#define LESS 0
#endif

static int more(void)
{
    const char *text = getenv("QN_EXPLORE_MORE");
    return text != NULL ? atoi(text) : -LESS;
}

static void must_be_clean(const struct words_program *p)
{
    for (int m = 0; m < 2; m++) {
        struct qn_explored out;
        const bool clean =
            words_sync_is_clean(p, (enum qn_explore_memory)m, more(), &out);
        cr_assert(clean && out.complete, "%s, memory %d: %s at %s", p->node[0],
                  m, out.fault, out.choices);
    }
}

#define CLEAN(name, ...)                                                       \
    Test(words_sync_explore, name, .timeout = 3600)                            \
    {                                                                          \
        must_be_clean(&(const struct words_program){__VA_ARGS__});             \
    }

CLEAN(hyblock_of_two_nodes, .node = {"aa", "aa"}, .deviations = 3)
CLEAN(hyblock_of_three_nodes, .node = {"a", "a", "a"}, .deviations = 2)
CLEAN(hyblocks_nested, .node = {"n", "b", "a"}, .deviations = 2, .split = true)
CLEAN(hyb_comb_of_two_nodes, .node = {"cc", "cc"}, .deviations = 3)
CLEAN(hyb_comb_of_three_nodes, .node = {"c", "c", "c"}, .deviations = 2)
CLEAN(hyb_comb_with_a_batch_of_1, .node = {"cc", "cc"}, .batch = 1,
      .deviations = 2)
CLEAN(hyb_comb_for_two_objects, .node = {"cd", "dc"}, .deviations = 2)
CLEAN(mp_server_of_a_client, .node = {"ss", "cxcx"}, .delegate = "mp_server",
      .deviations = 3)
CLEAN(mp_server_of_a_client_that_calls_thrice, .node = {"ss", "ccxcx"},
      .delegate = "mp_server", .deviations = 2)
CLEAN(mp_server_of_two_clients, .node = {"s", "cl", "cX"},
      .delegate = "mp_server", .deviations = 2)
CLEAN(mp_server_that_moves, .node = {"pyxpyl", "S", "cX"},
      .delegate = "mp_server", .deviations = 2)

/* Other forms than the product's are clean, too. */
static void form_is_clean(enum qn_sync_mutant form)
{
    qn_sync_mutant = form;
    must_be_clean(&(const struct words_program){.node = {"cc", "cc", "c"},
                                                .deviations = 2});
    must_be_clean(
        &(const struct words_program){.node = {"cc", "cc"}, .deviations = 3});
    qn_sync_mutant = QN_SYNC_MUTANT_NONE;
}

/* The opening is a release, and no fence is in front of it. */
Test(words_sync_explore, hyb_comb_with_a_release, .timeout = 3600)
{
    form_is_clean(QN_SYNC_MUTANT_LATE_RELEASE);
}

/* As behind CAS_MOST failures, which no bound here reaches. */
Test(words_sync_explore, hyb_comb_that_exchanges, .timeout = 3600)
{
    form_is_clean(QN_SYNC_MUTANT_EXCHANGE);
}

/* ---- defects ---- */

static const struct {
    enum qn_sync_mutant mutant;
    struct words_program by;
} finds[] = {
    {QN_SYNC_MUTANT_NO_OBJECT, {.node = {"n", "b", "a"}, .deviations = 2}},
    {QN_SYNC_MUTANT_ONE_NODE, {.node = {"cd", "dc", "c"}, .deviations = 3}},
    {QN_SYNC_MUTANT_WEAK_OPENING, {.node = {"cc", "cc", "c"}, .deviations = 3}},
    {QN_SYNC_MUTANT_FORGET_LATE,
     {.node = {"pyxpyl", "S", "cX"}, .delegate = "mp_server", .deviations = 2}},
};

Test(words_sync_explore, each_defect_is_found, .timeout = 3600)
{
    for (uint32_t i = 0; i < sizeof finds / sizeof *finds; i++) {
        struct qn_explored out;
        qn_sync_mutant = finds[i].mutant;
        const bool clean =
            words_sync_is_clean(&finds[i].by, QN_EXPLORE_C11, 0, &out);
        qn_sync_mutant = QN_SYNC_MUTANT_NONE;
        cr_expect(!clean, "not found: %u", finds[i].mutant);
    }
}
