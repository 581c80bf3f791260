#ifndef QN_TESTS_SIM_UMP_WORLD_H
#define QN_TESTS_SIM_UMP_WORLD_H

/**
 * Two nodes and the UMP channel between them, for the schedule explorer: what
 * test_ump_*.c share. A scenario is a struct ump_world with its first part
 * filled; node 0 sends, node 1 receives, unless a test brings its own nodes.
 *
 * A failure prints the choices; QN_SIM_REPLAY with that text runs them alone.
 */

#include "core/qp.h"
#include "core/sim/explore/explore.h"
#include "transports/ump/ump.h"

#define UMP_CELLS       16u
#define UMP_FULL        (UMP_CELLS - 1) /* what a fresh lane holds */
#define UMP_MESSAGE_MAX 2048u

/* Deviations to leave out: a sanitizer makes each run twenty times slower, and
 * has seen all code after a few. */
#ifdef __SANITIZE_ADDRESS__
#define UMP_LESS 1u
#else
#define UMP_LESS 0u
#endif

struct ump_world {
    /* the scenario */
    bool futex;        /* doorbells: futexes, else eventfds 0 and 1 */
    uint32_t start;    /* first sequence of either lane */
    uint32_t filled;   /* cells in node 0's lane before the run */
    uint32_t messages; /* that node 0 sends and node 1 receives in the run */
    uint32_t bytes;    /* of each */
    /* the machine */
    struct qn_ump_lane *lane[2];
    struct qn_doorbell_line line[2];
    struct qn_doorbell doorbell[2];
    struct qn_doorbell_handle ringer[2]; /* [i] rings node i */
    struct qn_qp *qp[2];
    uint32_t received; /* messages that node 1 has */
    uint32_t replies;  /* that node 0 has */
};

size_t ump_lane_bytes(void);

/** Message number `number`. */
void ump_fill(uint8_t *msg, uint32_t bytes, uint32_t number);

/** For nodes: the next message was received; is it whole and right? */
void ump_take(struct ump_world *w, const uint8_t *msg, size_t len);

/** Before and after each run; ctx is the world. */
void ump_setup(void *ctx);
void ump_teardown(void *ctx);

/** The usual nodes: node 0 sends all and drains, node 1 receives all. */
void ump_sender(void *ctx);
void ump_receiver(void *ctx);

/** Check: both nodes ended. */
const char *ump_nobody_asleep(void *ctx);

/** Allocate the lanes; the caller frees w->lane[0] and [1]. */
void ump_make(struct ump_world *w);

/** Explore two nodes in the world; it must come out clean and complete. Of `o`
 *  are used: node, deviations, kills, and check (NULL: everybody ends, unless
 *  somebody was killed, and nothing is missing). */
void ump_explore(struct qn_explore_opts o, struct ump_world *w);

/** The usual nodes. */
void ump_explore_traffic(struct ump_world w, uint32_t deviations,
                         uint32_t kills);

#endif
