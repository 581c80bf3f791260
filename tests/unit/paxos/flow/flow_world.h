#ifndef FLOW_WORLD_H
#define FLOW_WORLD_H

/**
 * A leader's gate, and members of which a test says what they have applied.
 * Node 0 leads; batches have BATCH bytes unless a test says otherwise.
 */

#include <stdint.h>

#include "paxos/flow/flow.h"

enum { LAG = 100, STOP = 400, BATCH = 10 }; /* bytes */

struct flow_world {
    struct qn_flow f;
    qn_time_t now;
    qn_slot_t decided, lo; /* the last one; the first that the ring keeps */
    qn_slot_t applied[QN_NODES_MAX];
    uint64_t read_too[QN_NODES_MAX]; /* bytes that a follower has read, beside
                                        what it has applied */
};

extern struct flow_world fw; /* of the test that runs */
extern const struct qn_flow_limits flow_limits;

/** @param min  Number of members that must be awaited. */
void flow_begin(uint32_t nodes, uint32_t min);

/** Three nodes, of which none must be awaited. */
void flow_setup(void);

struct qn_flow_place flow_place(qn_node_t n);

/** @return how many batches were decided of `most`. */
uint64_t flow_decide(uint64_t most);

/** Member `n` applies `slots` more, if they are decided. */
void flow_applies(qn_node_t n, uint64_t slots);

void flow_passes(qn_time_t ns);

/** Applies `slots` in one of `turns` turns of 10 ms. */
struct flow_follower {
    uint64_t slots, turns;
};

extern const struct flow_follower flow_well, flow_squeezed, flow_stopped;

/** For `count` seconds as much as may be is decided, and members 1 and 2
 *  apply. @return slots that were decided. */
uint64_t flow_seconds(uint64_t count, struct flow_follower one,
                      struct flow_follower two);

#endif
