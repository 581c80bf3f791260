#ifndef QN_PAXOS_MEMBER_TRANSFER_STATE_TRANSFER_INTERNAL_H
#define QN_PAXOS_MEMBER_TRANSFER_STATE_TRANSFER_INTERNAL_H

/** What the two ends of a state transfer share: messages and state. */

#include <assert.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/base/log.h"
#include "core/base/rate_limit.h"
#include "paxos/member/transfer/state_transfer.h"
#include "paxos/member/transfer/throttle.h"

/* First bytes; users have others. */
enum {
    TRANSFER_WANT = 16, /* arg: least position */
    TRANSFER_STOP,      /* joiner: send no more */
    TRANSFER_TAKEN,     /* arg: chunks taken so far */
    TRANSFER_REFUSE,    /* arg: enum state_transfer_why */
    TRANSFER_CHUNK,     /* a chunk follows */
    TRANSFER_KEEP,      /* donor: it goes on. arg: ns that one call may take */
    TRANSFER_KINDS
};

enum state_transfer_why {
    TRANSFER_LOADING, /* the donor has no complete state itself */
    TRANSFER_BUSY,    /* it serves another joiner */
    TRANSFER_BEHIND,  /* it has not reached the position */
    TRANSFER_AGAIN,   /* its cut was given up */
    TRANSFER_MEMORY,  /* it has no memory for a cut */
    TRANSFER_LATE,    /* the joiner has taken nothing for too long */
    TRANSFER_FAILED,  /* a callback of the donor failed */
    TRANSFER_LEADS,   /* it may not suspend applying */
    TRANSFER_WHYS
};

struct state_transfer_head {
    uint8_t kind;
    uint8_t alone; /* WANT: no other member can give a state */
    uint8_t zero[2];
    uint32_t attempt; /* the joiner's number */
    uint64_t arg;
};

struct state_transfer_chunk { /* as it is sent */
    struct state_transfer_head head;
    uint8_t bytes[QN_STATE_TRANSFER_CHUNK];
};

/** The donor's end. */
struct state_transfer_donation {
    enum { GIFT_NONE, GIFT_WANTED, GIFT_UNDER_WAY } state;
    qn_node_t to;
    uint32_t attempt;
    bool alone; /* no other member can give a state, says the joiner */
    qn_slot_t least;
    uint64_t sent, taken; /* chunks */
    qn_time_t heard; /* of the joiner, or when it had nothing to say last */
    bool late;       /* silent for too long at the last look */
    qn_time_t told;  /* when the joiner has heard something last */
    bool announced;  /* it knows how long a call may take */
    struct qn_library_state library;
    struct qn_state_transfer_progress progress;
    uint32_t made;    /* chunks: the number of the next one */
    uint64_t content; /* bytes that `next` has given */
    bool ended;       /* END was made */
    struct state_transfer_chunk chunk;
    size_t chunk_len;      /* made and not sent; 0: none */
    qn_time_t short_since; /* `next` lacks memory; 0: no */
    bool stood_back;       /* the channel was full in the last turn */
    bool hurries;          /* it makes no rests */
    struct qn_throttle pace;
    uint64_t given, anew;
    int error; /* the last of a callback */
    struct qn_rate_limit seldom;
};

enum state_transfer_phase {
    TRANSFER_IDLE,
    TRANSFER_ASK,     /* ask the next donor, not before `at` */
    TRANSFER_READ,    /* wait for chunks and read them */
    TRANSFER_INSTALL, /* all of it is there */
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
    uint64_t empty;  /* those that had no complete state, in this round */
    uint32_t attempt;
    qn_time_t heard, began;
    qn_time_t patience; /* with the donor's silence, ns */
    bool late;
    qn_time_t came; /* the last chunk */
    bool tired;     /* it was long ago at the last look */
    uint64_t read;  /* chunks */
    uint64_t taken; /* as the donor was told */
    struct qn_chunk_reader reader;
    struct qn_library_state library;
    bool known;            /* `library` is that of this snapshot */
    bool building;         /* `read` was called */
    bool checked;          /* the chunk at `head` was: */
    struct qn_slice part;  /* its content */
    qn_time_t short_since; /* `read` or `finish` lacks memory; 0: no */
    /* Received and not read: */
    struct state_transfer_slot {
        size_t len;
        uint8_t bytes[QN_STATE_TRANSFER_CHUNK];
    } queue[QN_STATE_TRANSFER_QUEUE];
    uint32_t head, tail;
    uint64_t joined;
    int error;            /* the last of a callback, since an install ... */
    qn_node_t error_node; /* ... at this member */
    bool round_failed;    /* there was one in this round of donors */
    uint32_t rounds;      /* in sequence, that had one */
    bool gave_up;
    struct qn_rate_limit seldom; /* why attempts failed */
};

struct qn_state_transfer {
    struct qn_state_transfer_opts o;
    uint64_t down; /* mask of nodes that are down; self too */
    struct state_transfer_donation donation;
    struct state_transfer_join join;
};

static_assert(sizeof(struct qn_state_transfer) <= QN_STATE_TRANSFER_BYTES,
              "what the header says");

static inline int state_transfer_send(struct qn_state_transfer *r, qn_node_t to,
                                      uint8_t kind, uint32_t attempt,
                                      uint64_t arg)
{
    const struct state_transfer_head h = {
        .kind = kind, .attempt = attempt, .arg = arg};
    return r->o.ops.tell(r->o.ops.ctx, to,
                         (struct qn_slice){(const uint8_t *)&h, sizeof h});
}

/** Is there a state to give, and to serve from? */
static inline bool state_transfer_complete(const struct qn_state_transfer *r)
{
    return r->o.user.complete(r->o.user.ctx) &&
           (r->o.ops.whole == NULL || r->o.ops.whole(r->o.ops.ctx));
}

/** True if `most` is over since the peer was heard, at the second look only:
 *  between two turns this node itself may have been stalled, with messages
 *  waiting. */
static inline bool state_transfer_silent(qn_time_t heard, qn_time_t most,
                                         qn_time_t now, bool *late)
{
    bool again = *late;
    *late = now - heard >= most && now > heard;
    return again && *late;
}

/** A callback lacks memory and changed nothing: is it to be called again? Yes
 *  for QN_STATE_TRANSFER_SILENCE. @param since  Set at the first time; 0 before
 *  and after. */
static inline bool state_transfer_again(qn_time_t *since, qn_time_t now)
{
    *since = *since == 0 ? QN_MAX(now, (qn_time_t)1) : *since;
    return now - *since < QN_STATE_TRANSFER_SILENCE;
}

/* state_transfer_donor.c */
void state_transfer_donor_told(struct qn_state_transfer *r, qn_node_t from,
                               const struct state_transfer_head *h,
                               qn_time_t now);
void state_transfer_donor_end(struct qn_state_transfer *r);
/** The state is about to be replaced: a cut of it is given up. */
void state_transfer_donor_replaced(struct qn_state_transfer *r);
qn_time_t state_transfer_donor_turn(struct qn_state_transfer *r, qn_time_t now);

/* state_transfer.c */
void state_transfer_joiner_told(struct qn_state_transfer *r, qn_node_t from,
                                const struct state_transfer_head *h,
                                struct qn_slice chunk, qn_time_t now);

#endif
