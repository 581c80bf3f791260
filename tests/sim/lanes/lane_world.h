#ifndef QN_TESTS_SIM_LANE_WORLD_H
#define QN_TESTS_SIM_LANE_WORLD_H

/**
 * Two nodes and a channel between them, for the schedule explorer: what
 * test_lane_*.c share. Which transport it is says the one source that defines
 * lane_kind. One whose lanes are a device has one in place of the two lanes. A
 * scenario is a struct lane_world with its first part filled; node 0 sends,
 * node 1 receives, unless a test brings its own nodes.
 *
 * Each scenario is explored in both memories, in C11 with 3 deviations at least
 * (QN_EXPLORE_DEVIATIONS: another number), or 2 if there are three nodes or
 * long messages. A failure prints memory and choices; QN_SIM_MEMORY and
 * QN_SIM_REPLAY with these run them alone.
 */

#include "core/qp.h"
#include "core/sim/explore/explore.h"

#include "tests/sim/explore/orders.h"

#define LANE_CELLS       16u
#define LANE_SHORT       120u
/* Bytes. An end has room for two messages, which each run clears: at the usual
 * 64 KiB that was half of the time. */
#define LANE_MESSAGE_MAX 2048u

/* Deviations to leave out: a sanitizer makes each run twenty times slower, and
 * has seen all code after a few. */
#ifdef __SANITIZE_ADDRESS__
#define LANE_LESS 1u
#else
#define LANE_LESS 0u
#endif

/* All of them, by name: also for the mutants of test_lane_orders.c. The heavy
 * ones take 2 to 20 s with 3 deviations. */
#define LANE_LIGHT_MAP(X)                                                      \
    X(a_doorbell_that_rings_twice_loses_nothing)                               \
    X(a_doorbell_with_two_ringers_loses_nothing)                               \
    X(two_senders_wake_one_receiver)                                           \
    X(what_the_dead_left_is_whole_or_nothing)                                  \
    X(lives_never_mix_in_any_order)                                            \
    X(who_wakes_too_late_gets_nothing)                                         \
    X(a_receiver_that_sleeps_is_woken)                                         \
    X(a_conversation_of_sleepers_goes_on)                                      \
    X(a_sender_that_waits_for_room_is_woken)                                   \
    X(a_flush_alone_tells_of_room)                                             \
    X(a_flush_of_little_tells_of_room)                                         \
    X(the_sequence_wraps)

#define LANE_HEAVY_MAP(X)                                                      \
    X(death_in_front_of_every_operation_tears_nothing)                         \
    X(a_message_longer_than_the_ring_gets_through)                             \
    X(a_sender_behind_a_staged_message_is_woken)                               \
    X(who_looks_for_room_behind_a_staged_message_is_woken)

/** The transport that a program explores, and how. */
struct lane_kind {
    const struct qn_transport *transport;
    /** Its open, with a chosen first sequence. */
    int (*open_at)(struct qn_qp **out, const struct qn_qp_opts *o,
                   uint32_t start);
    uint32_t full;  /* cells that a fresh lane of LANE_CELLS holds */
    uint32_t again; /* that it holds when all of those were read */
    bool eager;     /* the receiver acknowledges each cell when it is read */
    uint32_t most; /* deviations, or kills, in either memory, where an operation
                      has many accesses; 1 less, but 1, with kills or messages
                      longer than LANE_SHORT. 0: as many as a scenario says */
    /* test_lane_orders.c */
    const char *const *files; /* as of struct orders, like the next three */
    const struct unfound *unfound;
    uint32_t least;
    uint32_t levels; /* level n is n + 1 deviations, of heavy ones 1 */
    const char *const
        *opening; /* functions that open a lane; NULL at the end */
};

extern const struct lane_kind lane_kind;

/** A scenario: a function, and in test_ump_explore a test that calls it. */
#ifdef LANE_ORDERS
#define LANE_TEST(name)
#else
#define LANE_TEST(name)                                                        \
    Test(lane_explore, name, .timeout = 3600)                                  \
    {                                                                          \
        lane_##name();                                                         \
    }
#endif
#define LANE_SCENARIO(name)                                                    \
    void lane_##name(void);                                                    \
    LANE_TEST(name)                                                            \
    void lane_##name(void)

/** While it is on, scenarios run in C11 only, with these deviations, and say
 *  whether a fault was found; what comes after one is left out. */
extern struct lane_search {
    bool on, found;
    uint32_t deviations;
} lane_search;

struct lane_world {
    /* the scenario */
    bool futex;        /* doorbells: futexes, else eventfds 0 and 1 */
    uint32_t start;    /* first sequence of either lane */
    uint32_t filled;   /* cells in node 0's lane before the run */
    bool flushed;      /* those: the sender owes no ring for them */
    uint32_t messages; /* that node 0 sends and node 1 receives in the run */
    uint32_t bytes;    /* of each */
    uint32_t reads;    /* of `filled`, by a receiver that reads and goes */
    /* the machine */
    void *lane[2]; /* of a device: its memory, NULL */
    struct qn_device *port[2];
    struct qn_doorbell_line line[2];
    struct qn_doorbell doorbell[2];
    struct qn_doorbell_handle ringer[2]; /* [i] rings node i */
    struct qn_qp *qp[2];
    uint32_t received; /* messages that node 1 has */
    uint32_t replies;  /* that node 0 has */
};

size_t lane_memory_bytes(void);

/** Attach node i to the device as an incarnation, beside the other's. */
void lane_attach(struct lane_world *w, uint32_t i, uint64_t self_inc,
                 uint64_t peer_inc);

/** Open the end of node i, which is attached. */
void lane_open(struct lane_world *w, uint32_t i, uint64_t self_inc,
               uint64_t peer_inc);

/** Message number `number`. */
void lane_fill(uint8_t *msg, uint32_t bytes, uint32_t number);

/** For nodes: the next message was received; is it whole and right? */
void lane_take(struct lane_world *w, const uint8_t *msg, size_t len);

/** Before and after each run; ctx is the world. */
void lane_setup(void *ctx);
void lane_teardown(void *ctx);

/** The usual nodes: node 0 sends all and drains, node 1 receives all. */
void lane_sender(void *ctx);
void lane_receiver(void *ctx);

/** Check: both nodes ended. */
const char *lane_nobody_asleep(void *ctx);

/** Allocate the lanes, or the device; the caller frees w->lane[0] and [1]. */
void lane_make(struct lane_world *w);

/** Explore in both memories; it must come out clean and complete. */
void lane_explore_in_both(struct qn_explore_opts o);

/** Explore two nodes in the world; it must come out clean and complete. Of `o`
 *  are used: node, deviations, kills, and check (NULL: everybody ends, unless
 *  somebody was killed, and nothing is missing). */
void lane_explore(struct qn_explore_opts o, struct lane_world *w);

/** The usual nodes. */
void lane_explore_traffic(struct lane_world w, uint32_t deviations,
                          uint32_t kills);

#endif
