#ifndef QN_TESTS_SIM_MPB_WORLD_H
#define QN_TESTS_SIM_MPB_WORLD_H

/**
 * Two nodes and a queuepair over message buffers, for the schedule explorer:
 * what test_mpb_explore and test_mpb_lives_mutants share. Node 0 sends, node 1
 * receives, unless a test brings its own nodes.
 */

#include "core/sim/explore/explore.h"
#include "transports/mpb/mpb.h"

/** What is explored, by name: also for the mutants. */
#define MPB_SCENARIO_MAP(X)                                                    \
    X(messages_pass_between_sleepers)                                          \
    X(a_sender_that_waits_for_room_is_woken)                                   \
    X(a_long_message_passes_a_chunk_of_one_cell)                               \
    X(who_looks_for_room_behind_a_staged_message_is_woken)                     \
    X(a_strict_chip_passes_them_too)                                           \
    X(death_in_front_of_every_operation_tears_nothing)                         \
    X(a_reader_of_the_dead_gets_nothing_of_the_successor)                      \
    X(incarnations_never_mix_in_any_order)

/** A smaller search, for tests that repeat it: in C11 alone, with fewer
 *  deviations. Also of oc_explored. */
struct mpb_search {
    bool c11;
    uint32_t deviations; /* 0: those of the scenario */
};

extern struct mpb_search mpb_search;

#define X(name) bool mpb_##name(struct qn_explored *out);
MPB_SCENARIO_MAP(X)
#undef X

#endif
