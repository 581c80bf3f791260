/*
 * Words under every schedule, within bounds: clean as they are, in TSO and in
 * C11; each defect of core/words/words_mutant.h is found. A failure prints
 * scenario, memory and choices; QN_SIM_REPLAY with these, QN_SIM_MEMORY (tso,
 * c11) and QN_WORDS_SCENARIO (its number) run it alone.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/words/words_mutant.h"
#include "tests/sim/explore/words/words_scenarios.h"
#include "tests/support/test.h"

enum qn_words_mutant qn_words_mutant;

/* A sanitizer makes each run twenty times slower. */
#ifdef __SANITIZE_ADDRESS__
#define LESS 1
#else
#define LESS 0
#endif

static void must_be_clean(enum words_scenario s)
{
    for (uint32_t m = 0; m < 2; m++) {
        struct qn_explored out;
        int more = (int)m - LESS; /* one more in C11, which has less runs */
        bool clean = words_explore(s, (enum qn_explore_memory)m, more, &out);
        cr_assert(clean, "%s (%u), %s: %s; QN_SIM_REPLAY='%s'",
                  words_scenario_names[s], s, m == 0 ? "tso" : "c11", out.fault,
                  out.choices);
        cr_assert(out.complete);
        if (getenv("QN_SHOW_RUNS") != NULL) {
            printf("%s %u: %lu runs\n", words_scenario_names[s], m, out.runs);
        }
    }
}

#define X(name)                                                                \
    Test(words_explore, name, .timeout = 600)                                  \
    {                                                                          \
        must_be_clean(WORDS_##name);                                           \
    }
WORDS_SCENARIO_MAP(X)
#undef X

/* ---- defects ---- */

/* The scenario that finds it. */
static const struct {
    enum qn_words_mutant mutant;
    enum words_scenario by;
    const char *name;
} finds[] = {
#define FOUND(mutant, by)                                                      \
    {                                                                          \
        QN_WORDS_MUTANT_##mutant, WORDS_##by, #mutant                          \
    }
    FOUND(NO_COMPARE, senders_do_not_interleave),
    FOUND(FIRST_FIRST, a_message_is_whole),
    FOUND(NO_PAD, what_a_killed_sender_left_is_whole_or_absent),
    FOUND(PAD_LIVING, a_dead_intent_hides_no_message),
    FOUND(INTENT_LATE, a_dead_intent_hides_no_message),
    FOUND(INTENT_EARLY, a_dead_intent_hides_no_message),
    FOUND(ANY_INCARNATION, incarnations_do_not_mix),
    FOUND(LATE_HEAD, what_is_passed_over_gives_its_room_back),
    FOUND(DEAF, a_sender_at_a_dead_core_is_woken),
    FOUND(NEVER_LIVED, a_sender_at_a_core_that_never_lived_is_woken),
    FOUND(NEVER_NAMED, a_range_of_an_incarnation_never_named_is_padded),
    FOUND(UNWOKEN, a_sender_that_is_not_known_yet_is_woken),
#undef FOUND
};

Test(words_explore, each_defect_is_found, .timeout = 600)
{
#define X(name, text) +1
    cr_assert_eq(QN_ARRAY_COUNT(finds), 0 QN_WORDS_MUTANT_MAP(X));
#undef X
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(finds); i++) {
        struct qn_explored out;
        qn_words_mutant = finds[i].mutant;
        bool clean = words_explore(finds[i].by, QN_EXPLORE_TSO, 0, &out);
        qn_words_mutant = QN_WORDS_MUTANT_NONE;
        cr_expect(!clean, "not found: %s", finds[i].name);
        if (getenv("QN_SHOW_RUNS") != NULL) {
            printf("%s: %s\n", finds[i].name, out.fault);
        }
    }
}

Test(words_explore, replay, .timeout = 600)
{
    struct qn_explored out;
    const char *choices = getenv("QN_SIM_REPLAY");
    const char *which = getenv("QN_WORDS_SCENARIO");
    const char *memory = getenv("QN_SIM_MEMORY");
    if (choices != NULL && which != NULL) {
        bool c11 = memory != NULL && strcmp(memory, "c11") == 0;
        bool clean =
            words_replay((enum words_scenario)atoi(which),
                         c11 ? QN_EXPLORE_C11 : QN_EXPLORE_TSO, choices, &out);
        cr_assert(clean, "%s", out.fault);
    }
}
