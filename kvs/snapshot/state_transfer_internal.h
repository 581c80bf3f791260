#ifndef QN_KVS_SNAPSHOT_STATE_TRANSFER_INTERNAL_H
#define QN_KVS_SNAPSHOT_STATE_TRANSFER_INTERNAL_H

/** What the two ends of a state transfer share: messages and state. */

#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/err.h"
#include "core/base/log.h"
#include "core/base/rate_limit.h"
#include "kvs/snapshot/state_transfer.h"
#include "kvs/snapshot/throttle.h"

/* First bytes; kvs/introspect/fanout_query.c has others. */
enum {
    REJOIN_WANT = 16, /* arg: least position */
    REJOIN_STOP,      /* joiner: send no more */
    REJOIN_TAKEN,     /* arg: chunks taken so far */
    REJOIN_REFUSE,    /* arg: enum state_transfer_why */
    REJOIN_CHUNK,     /* a chunk follows */
};

enum state_transfer_why {
    REJOIN_LOADING, /* the donor has no complete store itself */
    REJOIN_BUSY,    /* it serves another joiner */
    REJOIN_BEHIND,  /* it has not reached the position */
    REJOIN_AGAIN,   /* its cut was given up */
    REJOIN_MEMORY,  /* it has no memory for a cut */
    REJOIN_LATE,    /* the joiner has taken nothing for too long */
    REJOIN_WHYS
};

struct state_transfer_head {
    uint8_t kind;
    uint8_t zero[3];
    uint32_t attempt; /* the joiner's number */
    uint64_t arg;
};

struct state_transfer_chunk { /* as it is sent */
    struct state_transfer_head head;
    uint8_t bytes[QN_SNAPSHOT_CHUNK];
};

/** The donor's end. */
struct state_transfer_donation {
    enum { GIFT_NONE, GIFT_WANTED, GIFT_UNDER_WAY } state;
    qn_node_t to;
    uint32_t attempt;
    qn_slot_t least;
    uint64_t sent, taken; /* chunks */
    qn_time_t heard;
    bool late; /* silent for too long at the last look */
    struct qn_snapshot_meta meta;
    struct qn_snapshot_writer writer;
    struct state_transfer_chunk chunk;
    size_t chunk_len; /* made and not sent; 0: none */
    bool stood_back;  /* the channel was full in the last turn */
    uint64_t keys;    /* made so far */
    uint64_t held_max;
    bool hurries; /* it makes no rests */
    struct qn_throttle pace;
    uint64_t given, anew;
    struct qn_rate_limit seldom;
};

enum state_transfer_phase {
    REJOIN_IDLE,
    REJOIN_ASK,     /* ask the next donor, not before `at` */
    REJOIN_READ,    /* wait for chunks and read them */
    REJOIN_INSTALL, /* all of it is there */
};

/** The joiner's end. */
struct state_transfer_join {
    enum state_transfer_phase phase;
    qn_time_t at;
    qn_time_t pause; /* before all donors are asked again */
    uint64_t failed; /* attempts of this join */
    qn_slot_t least;
    qn_node_t donor; /* the last one asked; nodes: none */
    uint64_t tried;  /* mask of donors that failed */
    uint32_t attempt;
    qn_time_t heard, began;
    bool late;
    uint64_t read;  /* chunks */
    uint64_t taken; /* as the donor was told */
    struct qn_snapshot_reader reader;
    struct qn_snapshot_meta meta;
    struct qn_store *store;
    /* Received and not read: */
    struct state_transfer_slot {
        size_t len;
        uint8_t bytes[QN_SNAPSHOT_CHUNK];
    } queue[QN_STATE_TRANSFER_QUEUE];
    uint32_t head, tail;
    uint64_t joined;
    struct qn_rate_limit seldom; /* why attempts failed */
};

struct qn_state_transfer {
    struct qn_state_transfer_opts o;
    uint64_t down; /* mask of nodes that are down; self too */
    struct state_transfer_donation donation;
    struct state_transfer_join join;
};

static inline int state_transfer_send(struct qn_state_transfer *r, qn_node_t to,
                                      uint8_t kind, uint32_t attempt,
                                      uint64_t arg)
{
    const struct state_transfer_head h = {
        .kind = kind, .attempt = attempt, .arg = arg};
    return r->o.ops.tell(r->o.ops.ctx, to,
                         (struct qn_slice){(const uint8_t *)&h, sizeof h});
}

/** True if the peer is silent since `heard`, at the second look only: between
 *  two turns this node itself may have been stalled, with messages waiting. */
static inline bool state_transfer_silent(qn_time_t heard, qn_time_t now,
                                         bool *late)
{
    bool again = *late;
    *late = now - heard >= QN_STATE_TRANSFER_SILENCE && now > heard;
    return again && *late;
}

/* state_transfer_donor.c */
void state_transfer_donor_told(struct qn_state_transfer *r, qn_node_t from,
                               const struct state_transfer_head *h,
                               qn_time_t now);
void state_transfer_donor_end(struct qn_state_transfer *r);
qn_time_t state_transfer_donor_turn(struct qn_state_transfer *r, qn_time_t now);

/* state_transfer.c */
void state_transfer_joiner_told(struct qn_state_transfer *r, qn_node_t from,
                                const struct state_transfer_head *h,
                                struct qn_slice chunk, qn_time_t now);

#endif
