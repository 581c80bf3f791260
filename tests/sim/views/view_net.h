#ifndef QN_TESTS_SIM_VIEWS_VIEW_NET_H
#define QN_TESTS_SIM_VIEWS_VIEW_NET_H

/**
 * A group of members of one sequence (core/coll/sequence.h) in rounds of
 * virtual time, in one thread. Each member takes a turn in each round; messages
 * take some rounds and lanes are short. Members are killed between any two
 * actions of a turn. A decider outside hears of it, asks the living members,
 * and tells them the next view, over wirings of any sort; it begins again if a
 * member dies meanwhile. In some runs dead members come back as new
 * incarnations, with the state of a living one.
 *
 * Checked at each delivery: the next number; what all living members have
 * delivered with this number; the next submission of its source. At each end of
 * a submission: all living members of the source's view have delivered it.
 * After each death: every other member of the view has heard of it in
 * `heard_rounds`. In the end: all that living sources have submitted was
 * delivered, and living members have delivered the same.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/coll/sequence.h"

#define VIEW_NET_MAX  9u /* members */
#define VIEW_NET_ROOM 8u /* messages of a lane */

/** What was reached; counts of events. */
struct view_coverage {
    uint64_t seeds, rounds, kills, views, delivered, again, joined;
    uint64_t killed_root, killed_source, killed_alone, killed_left,
        killed_sending, killed_deciding, killed_entering;
    uint64_t root_moved, voided, requests_again, window_full, blocked, rings,
        trees;
    uint64_t hash; /* over all deliveries */
};

/** One seed, `kills` deaths at most (fewer if members run out). Asserts the
 *  invariants. */
void view_net_run(uint64_t seed, struct view_coverage *c);

#endif
