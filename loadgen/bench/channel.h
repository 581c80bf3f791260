#ifndef QN_LOADGEN_BENCH_CHANNEL_H
#define QN_LOADGEN_BENCH_CHANNEL_H

/**
 * The forms of `quoin bench channel`: ways to send bytes from one core to
 * another, raw forms beside those of the queuepair.
 *
 * Two nodes of a mesh run the same form at the same time, node 0 as the side
 * that requests or sends, node 1 as the side that replies or receives. The raw
 * forms use memory that all nodes share; the queuepairs are those of the direct
 * lane.
 *
 * Each raw message is one line: a sequence and 56 bytes of payload, as in a UMP
 * cell. All forms copy the payload in and out.
 *
 * Threads: a struct qn_channel belongs to its node.
 */

#include "loadgen/bench/mesh.h"

struct qn_raw_lane;

struct qn_channel {
    struct qn_mesh_end *end;
    struct qn_qp *qp;             /* direct lane to the other node */
    struct qn_raw_lane *tx;       /* raw lane; own */
    const struct qn_raw_lane *rx; /* raw lane of the other node */
    uint32_t cells;
    uint64_t sent;     /* raw sequences */
    uint64_t received; /* raw sequences */
    uint64_t checksum; /* checksum of the received bytes: keeps the work from
                          being optimized away */
};

struct qn_channel_form {
    const char *name;
    const char *text; /* description, one line */
    bool round_trip;  /* false: a stream, timed by the receiver */
    uint32_t bytes;   /* payload of one operation */
    uint32_t cells;   /* approximate number of lines per operation */
    int (*run)(struct qn_channel *c, uint64_t count); /* QN_OK or an error */
    const char *ratio_to; /* form for comparison; NULL: none */
};

/** Memory of the raw forms, made before the nodes start. */
struct qn_raw_memory {
    void *memory; /* two raw lanes, by the node that writes it */
    size_t lane_bytes;
};

/** @return QN_OK, QN_ENOMEM. */
int qn_raw_memory_create(struct qn_raw_memory *m, uint32_t cells);
void qn_raw_memory_destroy(struct qn_raw_memory *m);

/** @return the i-th form, NULL past the last. The first is the probe. */
const struct qn_channel_form *qn_channel_form(uint32_t i);

/** Initialize; the other node must do the same. */
void qn_channel_init(struct qn_channel *c, struct qn_mesh_end *end,
                     uint32_t cells, const struct qn_raw_memory *raw);

/** Barrier of both sides that exchanges a byte. Returns QN_OK or an error of
 *  the queuepair; *heard is filled. */
int qn_channel_meet(struct qn_channel *c, uint8_t say, uint8_t *heard);

#endif
