#ifndef QN_LOADGEN_BENCH_CHANNEL_H
#define QN_LOADGEN_BENCH_CHANNEL_H

/**
 * What `quoin bench channel` runs: forms of sending bytes from one core to
 * another, the raw ones beside the queuepair's.
 *
 * Two nodes of a mesh run the same form at the same time, node 0 as the side
 * that asks or sends, node 1 as the side that answers or receives. The raw
 * forms work on the memory of the tree lane, so that both kinds have the same
 * placement; the queuepairs are those of the direct lane.
 *
 * Each raw message is one line: a sequence and 56 bytes of payload, as in a
 * UMP cell. All forms copy the payload in and out.
 *
 * Threads: a struct qn_channel belongs to its node.
 */

#include "loadgen/bench/mesh.h"

struct qn_raw_lane;

struct qn_channel {
    struct qn_mesh_end *end;
    struct qn_qp *qp;             /* direct lane to the other node */
    struct qn_raw_lane *tx;       /* raw lane; own */
    const struct qn_raw_lane *rx; /* raw lane; the other's */
    uint32_t cells;
    uint64_t sent;     /* raw sequences */
    uint64_t received; /* raw sequences */
    uint64_t checksum; /* of what was received: keeps the work from going */
};

struct qn_channel_form {
    const char *name;
    const char *text; /* what it is, a line for people */
    bool round_trip;  /* else a stream, timed by the receiver */
    uint32_t bytes;   /* payload of one operation */
    uint32_t cells;   /* about how many lines one operation takes */
    int (*run)(struct qn_channel *c, uint64_t count); /* QN_OK or an error */
    const char *ratio_to; /* form it is compared with; NULL: none */
};

/** @return the i-th form, NULL past the last. The first is the probe. */
const struct qn_channel_form *qn_channel_form(uint32_t i);

/** Prepare; the other node does the same. */
void qn_channel_init(struct qn_channel *c, struct qn_mesh_end *end,
                     uint32_t cells);

/** Both sides meet here and exchange a word. QN_OK or what the queuepair
 *  said; *heard filled. */
int qn_channel_meet(struct qn_channel *c, uint8_t say, uint8_t *heard);

#endif
