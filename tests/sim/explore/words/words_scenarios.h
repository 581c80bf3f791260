#ifndef QN_TESTS_SIM_WORDS_SCENARIOS_H
#define QN_TESTS_SIM_WORDS_SCENARIOS_H

/**
 * Scenarios on a device of words for the schedule explorer:
 * test_words_explore.c runs them as they are and with the defects of
 * core/words/words_mutant.h, test_words_orders.c with weaker memory orders.
 *
 * A node that ends in the middle of a send says so in `ended`, its last access;
 * a node that loads that is told of the end. A node that the explorer kills is
 * known to have ended after the run.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/sim/explore/explore.h"
#include "core/words/words_internal.h"

/* Deviations in TSO and kills of each are in words_scenarios.c. */
#define WORDS_SCENARIO_MAP(X)                                                  \
    X(a_message_is_whole)                                                      \
    X(senders_do_not_interleave)                                               \
    X(a_sender_without_room_is_woken)                                          \
    X(a_long_message_waits_for_room)                                           \
    X(what_a_killed_sender_left_is_whole_or_absent)                            \
    X(a_killed_receiver_leaves_a_queue_that_goes_on)                           \
    X(what_is_passed_over_gives_its_room_back)                                 \
    X(a_range_of_the_dead_is_padded_beside_the_living)                         \
    X(a_dead_intent_hides_no_message)                                          \
    X(a_sender_at_a_dead_core_is_woken)                                        \
    X(a_sender_at_a_core_that_never_lived_is_woken)                            \
    X(a_sender_that_is_not_known_yet_is_woken)                                 \
    X(incarnations_do_not_mix)                                                 \
    X(a_range_of_an_incarnation_never_named_is_padded)

enum words_scenario {
#define X(name) WORDS_##name,
    WORDS_SCENARIO_MAP(X)
#undef X
        WORDS_SCENARIOS
};

extern const char *const words_scenario_names[WORDS_SCENARIOS];

/** Explore one scenario. `more`: deviations beyond the usual number.
 *  @return true: clean. *out filled. */
bool words_explore(enum words_scenario s, enum qn_explore_memory memory,
                   int more, struct qn_explored *out);

/** One run of it with the given choices. */
bool words_replay(enum words_scenario s, enum qn_explore_memory memory,
                  const char *choices, struct qn_explored *out);

#endif
