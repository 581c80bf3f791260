#ifndef QN_TESTS_SIM_EXPLORE_TAKEOVER_WORLD_H
#define QN_TESTS_SIM_EXPLORE_TAKEOVER_WORLD_H

/**
 * Three members of the memory acceptor for the schedule explorer: what
 * test_takeover_*.c share. Node 0 leads epoch 0.
 */

#include "core/sim/explore/explore.h"
#include "paxos/machine/onepaxos_internal.h"
#include "paxos/mutant.h"

#define TAKEOVER_NODES    3u
#define TAKEOVER_EPOCHS   3u
#define TAKEOVER_SLOTS    8u
#define TAKEOVER_CAPACITY 1024u
#define TAKEOVER_RING     2048u
#define TAKEOVER_HEAP     (1u << 20)

extern struct takeover {
    bool twins;
    bool announced; /* a member that moves the word says so first */
    uint8_t *heap, *ring_mem;
    size_t heap_used;
    struct qn_pair word;
    struct qn_pair owner[TAKEOVER_EPOCHS]; /* {epoch + 1, life} */
    struct qn_memory_acceptor shared[TAKEOVER_NODES];
    struct qn_step_out out[TAKEOVER_NODES];
    struct qn_onepaxos *node[TAKEOVER_NODES];
} takeover;

extern const struct qn_alloc takeover_pieces;

/** Memory for all runs; the settings are cleared. */
void takeover_make(void);
void takeover_unmake(void);

/** A run begins: nothing is decided. */
void takeover_begin(void);

/** Incarnation of a node. */
uint64_t takeover_life(qn_node_t i);

void takeover_member_make(qn_node_t i);
void takeover_tick(qn_node_t i, uint32_t turns);
void takeover_submit(qn_node_t i, uint32_t bytes);

/** Entry `index` of the utility log, which names that leader. */
void takeover_hears_of(qn_node_t i, uint32_t index, qn_node_t leader);

/** The ring of the epoch's owner; outside a run. */
const struct qn_ring *takeover_ring_of(uint64_t epoch);

#endif
