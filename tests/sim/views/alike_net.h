#ifndef QN_TESTS_SIM_VIEWS_ALIKE_NET_H
#define QN_TESTS_SIM_VIEWS_ALIKE_NET_H

/**
 * A group of members that run a program of collective operations
 * (core/coll/coll.h) which end alike, over channels in memory with few cells,
 * in one thread. In each round each member takes a turn: it starts operations,
 * polls, flushes, looks at results; some are slow. Members are killed between
 * any two of these, or in the middle of what they send. A decider outside tells
 * the living, asks them, and tells them the next view, over other trees and
 * mostly with another root; it begins again if a member dies meanwhile.
 *
 * The program is one of alike_program.h; of some seeds its payloads are as long
 * as they can be, through lanes that hold a part of one.
 *
 * Checked: each result, by the members of the view in which the operation ran;
 * results are the same before and after a death; no output is written twice, or
 * after its end; what was complete stays so; all that is under way fails in
 * `heard_rounds`; the living members complete the whole program.
 */

#include <stdbool.h>
#include <stdint.h>

#include "tests/support/flow_states.h"

#define ALIKE_NET_MAX 9u /* members */

/** Rows of the states beside the kinds of operations. */
#define ALIKE_ROW_AGAIN    8u
#define ALIKE_ROW_EXCHANGE 9u

/** What was reached; counts of events. */
struct alike_coverage {
    uint64_t seeds, kills, views, operations, voided, handed, late, far, outran,
        killed_root, killed_sending, killed_left, killed_entering, killed_again,
        root_lacked, rounds, heard, kills_long, handed_long;
    struct flow_states states;
    uint64_t hash; /* of all results, in the order in which they came */
};

/** One seed. Asserts what is said above. */
void alike_net_run(uint64_t seed, struct alike_coverage *c);

#endif
