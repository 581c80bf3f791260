#ifndef QN_PAXOS_DRIVER_DRIVER_INTERNAL_H
#define QN_PAXOS_DRIVER_DRIVER_INTERNAL_H

/**
 * The state of a driver, and the functions of its parts:
 *
 *     driver.c         the turn, outputs, what callers ask
 *     driver_start.c   create and destroy: the first life and later ones; the
 *                      record
 *     driver_peers.c   lives of the others end and begin; memory that is kept
 *     driver_roles.c   what follows from an entry of the utility log: the tree,
 *                      who is waited for, status
 *     driver_bound.c   positions that others say: the read index, the peers'
 *     driver_send.c    queues, pieces, broadcast
 *     driver_recv.c    direct lanes, the tree
 *     driver_flow.c    whom the leader waits for, told to others
 *     driver_verdict.c memory acceptor: can the group go on?
 *     driver_events.c  what the flight recorder is told
 */

#include "core/group/group.h"
#include "paxos/driver/driver.h"
#include "paxos/driver/sendq.h"
#include "paxos/driver/tempo.h"
#include "paxos/log/pool.h"
#include "paxos/machine/onepaxos.h"
#include "paxos/machine/verdict.h"

/** Look at the peers' positions. */
#define QN_HOLD_LOOK    ((qn_time_t)20 * QN_MS) /* at a joiner, by its giver */
#define QN_BEAT_EVERY   ((qn_time_t)2 * QN_MS)
/** Between two looks at a broadcast that is timed, at most: who looks late
 * cannot tell when it arrived. */
#define QN_REACH_LOOK   QN_MS
/** From one timed broadcast to the next, at least. */
#define QN_REACH_EVERY  ((qn_time_t)10 * QN_MS)
/** Wait for a child, at most. */
#define QN_STALL        ((qn_time_t)2 * QN_MS)
/** T_GAP, memory acceptor: at most. */
#define QN_DRIVER_T_GAP ((qn_time_t)500 * QN_US)
/** So long may a member of the tree stand still with something to learn. */
#define QN_DRIVER_LAG   ((qn_time_t)10 * QN_MS)
/** So long nobody has what the leader lacks, before it says so. */
#define QN_DRIVER_LACKS QN_S
/** From one look at a group that cannot go on to the next, at most. */
#define QN_VERDICT_LOOK ((qn_time_t)10 * QN_MS)
/** A death that is heard of so soon after a change of roles was its reason. */
#define QN_DRIVER_SOON  ((qn_time_t)100 * QN_MS)

/** Rings of ended lives that are remembered, at most. The word names one; more
 *  are kept only while its owner is not known here. */
#define QN_DRIVER_GONE (2 * QN_NODES_MAX)

/** A life with its ring. */
struct qn_driver_life {
    qn_node_t node;
    uint64_t inc;
    bool has_ring; /* memory acceptor, and it is mapped */
    struct qn_ring ring;
};

struct qn_driver_peer {
    struct qn_qp *qp; /* NULL: this life has ended */
    struct qn_sendq control, bulk;
    struct qn_joiner joiner;
    bool corrupt;
    bool refused;          /* its next message, still in the channel, ... */
    uint64_t refused_step; /* ... when d->steps was this */
    qn_slot_t applied, learned; /* as it said last */
    qn_time_t moved_at;         /* `learned` did, or had no reason to */
    const struct qn_outbox_state *state;
    uint64_t late; /* memory acceptor: epoch of the accept word whose owner was
                      known here to have ended when this life came, + 1; 0 */
    struct qn_driver_life life; /* the newest one known */
    bool has_arena;             /* of that life, and it is mapped */
    struct qn_arena arena;
};

/** For whom the log is kept (PROTOCOL.md 3.6). */
struct qn_driver_hold {
    qn_slot_t slot; /* first that it needs; 0: nobody */
    qn_node_t joiner;
    uint64_t inc;
    qn_time_t over_at; /* it has it; 0: not yet */
};

/** What the flight recorder was told last. */
struct qn_driver_noted {
    enum qn_role role;
    bool claimed;
    uint64_t left_behind;
    qn_slot_t applied;
    qn_time_t since; /* own commands wait, and `applied` stands; 0: not so */
};

struct qn_driver {
    struct qn_driver_opts o;
    struct qn_pool pool; /* of all blobs */
    size_t keep_from;    /* bytes; a service may keep longer batches */
    struct qn_onepaxos *machine;
    struct qn_shared shared;   /* memory acceptor */
    struct qn_uploads uploads; /* of all */
    struct qn_context *context;
    struct qn_tree topology;   /* of the context */
    qn_slot_t reach_slot;      /* root: sent at ..., not yet everywhere; or 0 */
    qn_time_t reach_at, reach; /* when it was; smoothed, 0: not known */
    qn_time_t reach_looked;    /* at it, last */
    struct qn_joiner learn_joiner; /* pieces of LEARN ... */
    qn_node_t learn_from;          /* ... over the lane of this peer */
    struct qn_sendq bcast;
    uint64_t received;      /* bytes, through all lanes */
    uint64_t bcast_dropped; /* LEARNs for which it had no room */
    uint64_t members;       /* of the tree: mask; the leader may be named
                               though he is none (process acceptor) */
    uint64_t announced;     /* that the root has said; 0: as they are */
    qn_node_t parent[2];    /* in the tree, and in the one before; self: root,
                               QN_NODES_MAX: no member */
    bool delivering;        /* inside a delivery of the context, which must not
                               be called then */
    uint64_t children;      /* mask; 0 unless this node is the root */
    uint64_t left_behind;   /* children that are not waited for */
    bool inner;             /* the tree has inner nodes */
    uint64_t lagging;       /* root: members that have left it for now: mask */
    qn_slot_t learned_before;   /* by this node, at the last look */
    struct qn_tempo tempo;      /* of this node while it leads */
    uint64_t awaited;           /* as told last: mask */
    struct qn_driver_hold hold; /* own */
    bool leads;                 /* at the last look */
    qn_time_t stalled_since;    /* 0: the head of bcast does not wait */
    struct qn_driver_peer peer[QN_NODES_MAX];
    struct qn_qp *tree[QN_NODES_MAX];
    struct qn_driver_life gone[QN_DRIVER_GONE]; /* former lives */
    uint32_t gone_count;
    uint64_t touched;   /* peers whose queuepair must be flushed */
    uint64_t transfers; /* peers for which the machine has more */
    uint64_t suspected; /* mask, as the program says */
    qn_time_t now;
    uint64_t wall_ms;
    qn_time_t machine_deadline;
    qn_time_t beat_at;   /* next look at the peers' positions; or NEVER */
    qn_slot_t applied;   /* all of them */
    qn_slot_t exposed;   /* >= applied: at least a part of it is in the state */
    qn_slot_t published; /* <= exposed: the read index was once this high */
    struct qn_ul_entry cfg; /* newest INIT, LEADER or ACCEPTOR entry */
    uint32_t ul_len;        /* entries that were acted upon */
    uint64_t failovers;
    enum qn_driver_reason reason;
    uint64_t ordered; /* epoch whose leader is to be relieved, + 1; 0: none */
    qn_node_t lost;
    uint64_t lost_inc;
    qn_time_t changed_at; /* roles */
    bool memory;          /* memory acceptor; else process acceptor */
    bool again, did, hold_learns, need_snapshot, mute;
    bool more;             /* the machine has more to apply */
    bool held;             /* flow control holds writes; as told last */
    int64_t left;          /* of QN_TURN_WORK, in this turn */
    bool tree_waits;       /* the tree has something to send and no room */
    qn_slot_t said;        /* by those that have ended: learned so far */
    qn_time_t lacks_since; /* nobody has what this leader lacks; 0: not so */
    qn_slot_t lacks_at;    /* and it had learned so far */
    struct qn_verdict verdict;   /* memory acceptor */
    uint64_t born[QN_NODES_MAX]; /* lives of each before this one had ended when
                                    this node's began */
    uint64_t batches, commands;
    uint64_t steps; /* that changed something: what was refused may fit now */
    struct qn_driver_noted noted;
    struct qn_step_out out; /* of the current step; large, so not on stack */
};

static inline uint64_t qn_driver_bit(qn_node_t i)
{
    return (uint64_t)1 << i;
}

/** This node, or a peer whose life has not ended. */
static inline bool qn_driver_lives(const struct qn_driver *d, qn_node_t i)
{
    return i == d->o.self || d->peer[i].qp != NULL;
}

/* ---- driver.c ------------------------------------------------------------ */

/** Give an input to the machine and execute what it puts out. Errors are those
 *  of qn_onepaxos_step; then nothing was put out. */
int qn_driver_step(struct qn_driver *d, const struct qn_input *in);

/** Publish before expose: the read index, then the own positions. */
void qn_driver_publish(struct qn_driver *d);

/** Receive all that the tree lanes hold, whatever work is left. */
void qn_driver_tree_drain(struct qn_driver *d);

/* ---- driver_flow.c ------------------------------------------------------- */

/** Leader: tell what flow control has done: members given up and back, held
 *  writes. @return true: the gate is shut, look at the others soon. */
bool qn_driver_flow_look(struct qn_driver *d);

/** Is what this node holds still needed? With the positions. */
void qn_driver_hold_look(struct qn_driver *d);

/* ---- driver_start.c ------------------------------------------------------ */

/** The vote is in the record; then it may be said. */
void qn_driver_persist(struct qn_driver *d, const struct qn_vote *vote);

/* ---- driver_peers.c ------------------------------------------------------ */

/** The ring of a life as mapped here, or NULL; `ctx` is the driver. */
const struct qn_ring *qn_driver_ring(void *ctx, qn_node_t node, uint64_t inc);

/** The arena of a living life as mapped here, or NULL; `ctx` is the driver. */
const struct qn_arena *qn_driver_arena(void *ctx, qn_node_t node, uint64_t inc);

/** Whose ring the word `w` means. @return false: that is not known here. */
bool qn_driver_owner(const struct qn_driver *d, struct qn_word w,
                     qn_node_t *node, uint64_t *inc);

/** Say in the own outbox that the ring which the word names is mapped here. */
void qn_driver_mapped(struct qn_driver *d);

/* ---- driver_roles.c ------------------------------------------------------ */

/** The utility log has grown (or this life begins): who leads, who accepts, the
 *  tree. Before anything that rests on it is sent. */
void qn_driver_roles(struct qn_driver *d);

/** The context, with the first tree. QN_OK, QN_EINVAL (no such topology),
 *  QN_ENOMEM. */
int qn_driver_tree_make(struct qn_driver *d);

/** The tree again, with these members (mask). */
void qn_driver_tree(struct qn_driver *d, uint64_t members);

/** Nodes whose lives have not ended, as far as this node knows. */
uint64_t qn_driver_living(const struct qn_driver *d);

/** The life that the newest entry names as its acceptor lives, as far as this
 *  node knows. */
bool qn_driver_acceptor_lives(const struct qn_driver *d);

/* ---- driver_bound.c ------------------------------------------------------ */

/** Nothing above it is decided; UINT64_MAX: that cannot be said now. */
qn_slot_t qn_driver_bound(const struct qn_driver *d);

/** Where a living peer is now, if that is possible; `ctx` is the driver. */
bool qn_driver_position(void *ctx, qn_node_t node, struct qn_position *out);

/** No entry later than mine names roles: a majority has never voted for one. */
bool qn_driver_newest_epoch(const struct qn_driver *d);

/** Nobody else who is known to live, or who has come since, has learned more
 *  than `position`, or less: who is behind may have what lies above. */
bool qn_driver_all_at(const struct qn_driver *d, qn_slot_t position);

/** Tell the machine the peers' positions. */
void qn_driver_beats_read(struct qn_driver *d);

/** Root: the LEARN of `slot` is on its way. Now and then one is timed. */
void qn_driver_reach_begin(struct qn_driver *d, qn_slot_t slot);

/** Has the one that is timed arrived everywhere? */
void qn_driver_reach_look(struct qn_driver *d);

/* ---- driver_stop.c ------------------------------------------------------- */

/** Is it this node that can say that the group has stopped? Then say so in the
 *  own outbox. At the end of each turn. */
void qn_driver_stop_look(struct qn_driver *d);

/** A peer has ended: how far it had learned, as it said last. */
void qn_driver_stop_note(struct qn_driver *d, qn_node_t peer);

/** The highest position that anybody has said to have learned, or shown. */
qn_slot_t qn_driver_said(const struct qn_driver *d);

/* ---- driver_verdict.c ---------------------------------------------------- */

/** This node receives from that life of a peer; 0: all is received that its
 *  former lives had sent. */
void qn_driver_hears(struct qn_driver *d, qn_node_t peer, uint64_t inc);

/** Epoch of the accept word if its owner's life has ended, as known here, + 1;
 *  else 0. */
uint64_t qn_driver_bereft(const struct qn_driver *d);

/** Memory acceptor: find the verdict. At the end of each turn. */
void qn_driver_verdict_look(struct qn_driver *d);

/** Memory acceptor: as qn_driver_recoverable, qn_driver_recover. */
int qn_driver_verdict_recoverable(const struct qn_driver *d);
int qn_driver_verdict_recover(struct qn_driver *d);

/* ---- driver_send.c ------------------------------------------------------- */

/** Send to one peer, at once if possible, else from its queue. */
void qn_driver_send(struct qn_driver *d, qn_node_t to, const struct qn_msg *m);

/** Send a LEARN down the tree. It is forgotten if this node is not (any more)
 *  the root: who is, tells what was decided. */
void qn_driver_bcast(struct qn_driver *d, const struct qn_msg *whole);

/** Bytes of LEARNs that may wait for children. */
size_t qn_driver_bcast_max(const struct qn_driver *d);

/** Send what is queued; to a peer with an empty queue and room, the next slot
 *  of what it has asked for. @return true if there may be more of that. */
bool qn_driver_queues_send(struct qn_driver *d);

/** Send queued broadcasts as far as the children have room. */
void qn_driver_bcast_send(struct qn_driver *d);

/** @return true while something waits for room in the tree. */
bool qn_driver_tree_flush(struct qn_driver *d);

/** Something waits for room: is there some now? Asks the peers to ring for
 *  what is still missing. */
bool qn_driver_room_came(struct qn_driver *d);

/** Say in the own outbox that slots <= slot are learned. */
void qn_driver_learned(struct qn_driver *d, qn_slot_t slot);

/* ---- driver_recv.c ------------------------------------------------------- */

/** Read the direct lane of a peer that has not ended. @return true: as much as
 *  one turn may; there may be more. */
bool qn_driver_receive(struct qn_driver *d, qn_node_t from);

/** A message came down the tree; `ctx` is the driver. */
void qn_driver_deliver(void *ctx, const void *bytes, size_t len);

/* ---- driver_events.c ----------------------------------------------------- */

/** Messages that are noted: those of elections and take-overs, and FETCH. */
#define QN_DRIVER_NOTABLE                                                      \
    (~(UINT64_C(1) << QN_MSG_REQUEST | UINT64_C(1) << QN_MSG_ACCEPT |          \
       UINT64_C(1) << QN_MSG_LEARN | UINT64_C(1) << QN_MSG_ACCEPTED |          \
       UINT64_C(1) << QN_MSG_FILL | UINT64_C(1) << QN_MSG_SNAP |               \
       UINT64_C(1) << QN_MSG_BEAT))

static inline bool qn_driver_notable(const struct qn_msg *m)
{
    return (QN_DRIVER_NOTABLE >> m->kind & 1) != 0;
}

/** Note an event: whom it concerns, a position, what `a` is
 * (paxos/driver/event.h). */
void qn_driver_note(struct qn_driver *d, enum qn_event_kind kind,
                    qn_node_t node, qn_slot_t slot, uint64_t a);

/** SENT or GOT. */
void qn_driver_note_msg(struct qn_driver *d, enum qn_event_kind kind,
                        qn_node_t peer, const struct qn_msg *m);

void qn_driver_note_vote(struct qn_driver *d, const struct qn_vote *v);

/** Memory acceptor: this node may write the word; or it may no more. */
void qn_driver_note_claim(struct qn_driver *d, bool claimed);

/** Memory acceptor: all is copied, the word is about to be moved to `epoch`. */
void qn_driver_note_copied(struct qn_driver *d, qn_epoch_t epoch);

/** d->cfg has changed. */
void qn_driver_note_epoch(struct qn_driver *d);

/** d->suspected has changed from `before`. */
void qn_driver_note_suspects(struct qn_driver *d, uint64_t before);

/** The machine's role differs from d->noted.role. */
void qn_driver_note_role(struct qn_driver *d, enum qn_role role);

/** The end of a turn: children left behind or back, pauses. */
void qn_driver_note_turn(struct qn_driver *d);

#endif
