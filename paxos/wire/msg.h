#ifndef QN_PAXOS_WIRE_MSG_H
#define QN_PAXOS_WIRE_MSG_H

/**
 * The messages of 1Paxos and their bytes (PROTOCOL.md 3.1).
 *
 *     message = header | [fragment] | fields of the kind | body
 *
 *     header, 16 bytes, little endian:
 *     +------+-------+-----------+-------------+----------------------+
 *     | kind | flags | slot (48) | epoch (32)  | bytes of body (32)   |
 *     +------+-------+-----------+-------------+----------------------+
 *     0      1       2           8             12                    16
 *
 * or, if the message is no fragment, its epoch below 2^16 and its body no
 * longer than 255 bytes, with the flag BRIEF, 11 bytes:
 *     +------+-------+-----------+------------+---------------+
 *     | kind | flags | slot (48) | epoch (16) | bytes of body |
 *     +------+-------+-----------+------------+---------------+
 *     0      1       2           8            10              11
 *
 * Everything before the body is the *head*, at most QN_HEAD_MAX bytes. LEARN is
 * to fit into one cell with a small command, so it has `hi` only if that is not
 * the slot, and `alive` in one byte if none of node 8 and above is in it, or
 * all nodes up to one are (13 bytes of head, up to 38).
 * Flags say how long a head is; one that is longer than it must be is
 * malformed. The body is a string of bytes that is sent from where it lies.
 * What it is depends on the kind:
 *
 *     commands  REQUEST: a command list, references among it (batch.h)
 *     batch     ACCEPT, LEARN, PREPARED, STAGE, SEALED, FILL: one batch, of
 *               slot `slot` (batch.h); may be empty in the last four
 *     UL        PREPARE, SEAL, STAGE with QN_MSG_UL, U_*: entries of the
 *               utility log, QN_UL_BYTES each, by index
 *     bytes     SNAP
 *     state     STATE: what the sender says of itself (peer_state.h)
 *
 * Lists of slots are sent as one message per slot; QN_MSG_LAST marks the end
 * of an answer, and an empty body says that no slot comes with it.
 *
 * `group`, `from` and `to_inc` of the specification are those of the channel
 * that brought the message and are not sent.
 *
 * **Fragments.** A message longer than QN_MSG_MAX travels in fragments. The
 * machine knows whole messages only: the *driver* cuts (qn_msg_cut) and joins
 * (struct qn_joiner), with the helpers below. Each fragment repeats the head,
 * has QN_MSG_FRAGMENT set, and says where its part of the body belongs; `bytes
 * of body` in the header is that of the whole. One message at a time is cut per
 * channel and lane; REQUEST, ACCEPT, LEARN and FILL keep their order among
 * each other, all other kinds may pass between two fragments.
 *
 * Pure, any thread. Decoding accepts any bytes: what is malformed is
 * QN_ECORRUPT, and nothing outside the given bytes is read.
 */

#include <stdbool.h>

#include "core/base/bits.h"
#include "core/node.h"
#include "paxos/log/refbuf.h"

/** Version of all that the nodes of one group send or show each other:
 *  messages, batches, entries of the utility log, records, rings. */
#define QN_MSG_VERSION 10u

enum qn_msg_kind {
    QN_MSG_REQUEST = 1, /* origin -> leader; slot = first sequence. No body:
                           asks for a stamp */
    QN_MSG_REDIRECT,    /* any -> origin: send what is unapplied to `leader` */
    QN_MSG_ACCEPT,      /* leader -> acceptor: epoch, slot, batch */
    QN_MSG_LEARN,       /* acceptor -> all others: slot, batch, decided_hi */
    QN_MSG_NACK,        /* acceptor -> leader: epoch = promised */
    QN_MSG_PREPARE,     /* leader -> acceptor: epoch, slot = first, UL */
    QN_MSG_PREPARED,    /* acceptor -> leader: entries >= first */
    QN_MSG_STAGE,       /* leader -> candidate: epoch = from; entries, UL */
    QN_MSG_STAGED,      /* candidate -> leader: epoch = from; QN_MSG_OK */
    QN_MSG_SEAL,        /* new leader -> older leader: slot = first, UL */
    QN_MSG_SEALED,      /* older leader -> new leader: QN_MSG_OK = complete */
    QN_MSG_FETCH,       /* learner -> any: slot = first, last */
    QN_MSG_FILL,        /* answer: entries first..last that are learned */
    QN_MSG_SNAP_REQ,    /* joiner -> any */
    QN_MSG_SNAP,        /* answer: slot = position; parts in order */
    QN_MSG_BEAT,        /* all -> all, between hosts: epoch */
    QN_MSG_U_PREPARE,   /* utility, section 4; epoch = index everywhere */
    QN_MSG_U_PROMISE,   /* body: the value voted for, or none */
    QN_MSG_U_REJECT,
    QN_MSG_U_ACCEPT, /* body: the value */
    QN_MSG_U_ACCEPTED,
    QN_MSG_U_CHOSEN, /* body: entries from index `epoch` on */
    QN_MSG_U_NEED,   /* the sender knows entries below `epoch` only */
    QN_MSG_ACCEPTED, /* acceptor -> leader: its ACCEPT of epoch, slot is
                        accepted; the leader has the batch */
    QN_MSG_STATE,    /* any -> any, where outboxes are not read: epoch = newest
                        known; body: the sender's state. For the driver */
    QN_MSG_READ_INDEX, /* origin -> leader -> acceptor: epoch of the leader */
    QN_MSG_READ_AT,    /* acceptor -> origin: epoch, slot = acc_hi */
    QN_MSG_ORDER,      /* member -> leader: add or remove a voter; leader ->
                          all: that node is to lead instead. For the driver */
    QN_MSG_TAKEN, /* leader -> member: what became of its order; likewise */
    QN_MSG_KINDS,
    /* No messages: the codec says QN_ECORRUPT to each of these numbers. */
    QN_MSG_ASK = 34, /* in use, outside the codec: first byte of what the driver
                      sends for its service (qn_driver_send_peer_message), and
                      takes off the direct lane before it decodes */
    QN_MSG_ANSWER,   /* reserved */
};

enum qn_msg_flag {
    QN_MSG_LAST = 1u << 0,     /* end of a list */
    QN_MSG_UL = 1u << 1,       /* STAGE: the body is UL entries */
    QN_MSG_OK = 1u << 2,       /* STAGED: staged; SEALED: complete */
    QN_MSG_FRAGMENT = 1u << 3, /* part of a longer message */
    /* In the bytes only: the codec sets and takes them. */
    QN_MSG_AHEAD = 1u << 4, /* LEARN: hi is there; else it is the slot */
    QN_MSG_MANY = 1u << 5,  /* LEARN: alive has 8 bytes; else one */
    QN_MSG_BRIEF = 1u << 6, /* the header has 11 bytes */
    QN_MSG_FIRST = 1u << 7, /* LEARN: alive are the first nodes, this many */
};

enum qn_order {
    QN_ORDER_ADD,    /* the node is to vote */
    QN_ORDER_REMOVE, /* it is to be a member no more */
    QN_ORDER_LEAD,   /* it is to lead */
    QN_ORDERS,
};

enum qn_snap_part {
    QN_SNAP_STATE,    /* the application's bytes */
    QN_SNAP_SESSIONS, /* the session table (onepaxos.h) */
    QN_SNAP_UL,       /* UL entries of the current tenure on */
    QN_SNAP_PARTS,
};

/** A ballot of the utility log; ordered by round, node, inc. */
struct qn_ballot {
    uint32_t round; /* 0: none */
    uint8_t node;
    uint64_t inc;
};

/** A decoded message. What the machine sends has the same form. */
struct qn_msg {
    uint8_t kind;  /* enum qn_msg_kind */
    uint8_t flags; /* enum qn_msg_flag */
    qn_epoch_t epoch;
    qn_slot_t slot; /* <= QN_SLOT_MAX */
    uint32_t total; /* bytes of the whole body; == body.len but in a fragment */
    uint32_t offset; /* FRAGMENT: where body belongs in the whole one */
    union {
        struct {
            uint64_t leader_inc;
            uint8_t leader; /* NACK: a hint */
        } redirect, nack;
        struct {
            uint64_t hi; /* decided_hi: all slots <= it are decided */
            uint64_t
                alive;    /* mask of nodes that the acceptor takes for alive */
            uint8_t tree; /* arity of the ring that it goes over; 0: the tree */
        } learn;
        struct {
            uint64_t log_lo; /* first slot that the sender keeps */
            uint64_t hi;     /* PREPARED: acc_hi; FILL: learned_hi */
        } prepared, fill;
        struct {
            uint64_t base; /* entries are those of (base, hi] */
            uint64_t hi;
        } stage;
        struct {
            uint64_t have; /* learned_hi of the candidate */
        } staged;
        struct {
            uint32_t target; /* epoch that is asked about */
        } seal;
        struct {
            uint64_t log_lo, hi;
            uint32_t target;
        } sealed;
        struct {
            uint64_t last; /* slot, >= first */
        } fetch;
        struct {
            uint64_t offset; /* of the body in its part */
            uint8_t part;    /* enum qn_snap_part */
        } snap;
        struct {
            uint64_t applied, learned, decided; /* slots */
            uint32_t ul_len;                    /* UL entries known */
        } beat;
        struct {
            uint64_t number; /* of the question (paxos/machine/read_index.h) */
            uint64_t inc;    /* of its origin */
            uint8_t origin;  /* node */
        } read_index;
        struct {
            uint64_t number;
            uint64_t inc;
        } read_at;
        struct {
            uint64_t inc;    /* of the node */
            uint32_t number; /* of the question, which its answer repeats; may
                                wrap. 0: to lead */
            uint8_t node;    /* that the order is about */
            uint8_t what;    /* enum qn_order */
            uint8_t forced;  /* ORDER: 0 or 1 */
            uint32_t error;  /* TAKEN: 0, or the negated error
                                (core/base/err.h) */
        } order;
        struct {
            struct qn_ballot bal;  /* U_REJECT: the promised one */
            struct qn_ballot vbal; /* U_PROMISE: that of the body */
        } u;
    };
    struct qn_slice body; /* borrowed; of `refbuf` if that is set */
    struct qn_refbuf
        *refbuf; /* NULL, or a refbuf whose whole content is the body.
                In a decoded message NULL. In an input borrowed;
                in an output one reference (onepaxos.h) */
};

#define QN_HEADER_BYTES 16u
#define QN_HEADER_BRIEF 11u
#define QN_SLOT_MAX     ((UINT64_C(1) << 48) - 1)
#define QN_HEAD_MAX     48u /* header, fragment offset, longest fields */

/** Bytes of the head of m. */
size_t qn_msg_head_size(const struct qn_msg *m);

/**
 * Encode everything before the body. What is sent is head | m->body.
 * m->total is not looked at unless QN_MSG_FRAGMENT is set.
 *
 * @param head  [QN_HEAD_MAX] filled.
 * @return its bytes, as qn_msg_head_size.
 */
size_t qn_msg_head(const struct qn_msg *m, uint8_t *head);

/**
 * Decode one message (or fragment) of `len` bytes. m->body borrows from `p`.
 * The shape of the body is checked unless this is a fragment.
 *
 * @return QN_OK; QN_ECORRUPT: not a message, *m is undefined.
 */
int qn_msg_decode(struct qn_msg *m, const void *p, size_t len);

/** Check the shape of m's whole body (as qn_msg_decode does). For a message
 *  that was joined from fragments. @return QN_OK or QN_ECORRUPT. */
int qn_msg_check_body(const struct qn_msg *m);

/** Name of a kind, "ACCEPT" or "?". Constant. */
const char *qn_msg_name(uint8_t kind);

/* Fragments. */

/**
 * Cut the next fragment, of at most `max` bytes head included, off `whole`.
 * What a LEARN says of the tree may be put into it later: there is room.
 * Call with *offset = 0 first and until it returns false.
 *
 *     uint32_t at = 0;
 *     while (room && qn_msg_cut(&msg, QN_MSG_MAX, &at, &fragment)) { send }
 *
 * @param offset  In: bytes of the body cut so far; out: with this fragment.
 * @param fragment   Filled; its body borrows from whole's. A message that fits
 *                as it is, is its own only fragment, without QN_MSG_FRAGMENT.
 * @return false: nothing was left.
 */
bool qn_msg_cut(const struct qn_msg *whole, size_t max, uint32_t *offset,
                struct qn_msg *fragment);

/** A whole message, or the last fragment of one. */
static inline bool qn_msg_ends(const struct qn_msg *m)
{
    return (m->flags & QN_MSG_FRAGMENT) == 0 ||
           m->offset + m->body.len == m->total;
}

/** Joins the fragments of one channel and lane. Zero it to begin. */
struct qn_joiner {
    struct qn_refbuf *refbuf; /* bytes so far; NULL: nothing begun */
    uint32_t total;           /* expected */
    uint8_t kind;
    qn_slot_t slot;
    bool whole; /* refbuf is the body of the message given out last */
};

/**
 * Take a decoded message. A whole one passes untouched. A fragment is added;
 * the last one turns *m into the whole message, with `refbuf` set (borrowed
 * until the next call with this joiner). A fragment that does not continue what
 * was begun (fragments were lost: broadcast) drops it.
 *
 * @return QN_OK: *m is whole; QN_EAGAIN: more fragments to come, or dropped;
 *         QN_ENOMEM: not taken, give it again or drop the channel's message;
 *         QN_ECORRUPT: the joined body is malformed, dropped.
 */
int qn_joiner_take(struct qn_joiner *j, const struct qn_alloc *a,
                   struct qn_msg *m);

/** Drop what was begun; the joiner may be used again. */
void qn_joiner_reset(struct qn_joiner *j);

/* Entries of the utility log. */

enum qn_ul_kind {
    QN_UL_INIT,
    QN_UL_LEADER,
    QN_UL_ACCEPTOR,
    QN_UL_VOTER, /* another incarnation of a voter votes */
    QN_UL_SEAT   /* a node becomes a voter, or is none any more */
};

struct qn_ul_entry {
    uint32_t index;
    uint32_t tenure;  /* index of the entry that appointed the acceptor */
    uint32_t from;    /* ACCEPTOR: epoch whose leader handed off */
    uint8_t kind;     /* enum qn_ul_kind */
    uint8_t leader;   /* nodes */
    uint8_t acceptor; /* != leader (process acceptor, nodes > 1) */
    uint8_t voter;    /* VOTER: the node whose vote moves ... */
    uint64_t leader_inc;
    uint64_t acceptor_inc;
    uint64_t voter_inc; /* ... to this incarnation. SEAT: the node, and the
                           incarnation whose vote begins or ends */
    uint64_t voters;    /* mask: the nodes that vote on the next entry, the
                           leader among them; 0: all nodes of the group */
};

#define QN_UL_BYTES 48u

/** It names roles, and so begins an epoch. */
static inline bool qn_ul_begins_epoch(const struct qn_ul_entry *e)
{
    return e->kind < QN_UL_VOTER;
}

void qn_ul_encode(const struct qn_ul_entry *e, uint8_t *to);

/** Entry number `i` of a UL body. @return QN_OK; QN_ENOENT beyond the end;
 *  QN_ECORRUPT: a field is out of range. */
int qn_ul_decode(struct qn_ul_entry *e, struct qn_slice body, uint32_t i);

/** Every node that `e` names is below `nodes`. The codec does not know the
 *  group: what takes entries from a peer checks this. */
bool qn_ul_within(const struct qn_ul_entry *e, uint32_t nodes);

#endif
