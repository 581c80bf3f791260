#ifndef QN_PAXOS_DRIVER_POSITIONS_H
#define QN_PAXOS_DRIVER_POSITIONS_H

/**
 * Positions in the log: how far this node is, how far the peers say they are,
 * and what of that is believed (PROTOCOL.md 3.6, 8.2).
 *
 * A position of a peer is a word that the peer wrote in its own outbox; the
 * read index is a word that every replica writes. A process that has run wild
 * can write anything there. So each position is checked before it is used:
 *
 *     own    published <= visible_slot         what readers may have seen is in
 *            applied <= visible_slot           the read index; at most one slot
 *            visible_slot <= applied + 1       is applied in part
 *     peers  applied <= learned <= bound       or the claim is not taken
 *            neither falls within an incarnation
 *
 * The bound is the highest position that can be decided as far as this node can
 * tell; PROTOCOL.md 8.2 proves that it never cuts a true read index.
 *
 * Pure: the caller reads shared memory and the clock and passes numbers, masks
 * of nodes and times; the functions change the struct and return decisions. No
 * allocation. One thread. All O(nodes) or O(1).
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/base/clock.h"
#include "core/node.h"
#include "paxos/machine/memory_acceptor.h"

/** As a bound: nothing bounds the log now. */
#define QN_POSITIONS_UNBOUNDED UINT64_MAX

/** Interval between two looks at the peers' positions while something
 *  happens. */
#define QN_HEARTBEAT_INTERVAL ((qn_time_t)2 * QN_MS)
/** From one look at the read index to the next, at least, in turns that apply
 *  nothing. */
#define QN_INDEX_LOOK         ((qn_time_t)100 * QN_US)
/** Likewise, of a donor at its joiner, though nothing else happens. */
#define QN_HOLD_LOOK          ((qn_time_t)20 * QN_MS)
/** After a joiner has applied the snapshot's position, how long its log is
 *  still kept: the leader reads the same positions, and must have read that
 *  one before the hold is over. */
#define QN_HOLD_REST          ((qn_time_t)100 * QN_MS)
/** How long a member of the tree may make no progress while it has something to
 *  learn. */
#define QN_DRIVER_LAG         ((qn_time_t)10 * QN_MS)

/** What a peer's present incarnation said last, and was believed. */
struct qn_peer_position {
    qn_slot_t applied, learned; /* never fall within an incarnation */
    qn_time_t moved_at; /* last time that `learned` grew, or had no reason to */
    qn_slot_t looked;   /* `learned` at the last look for those to remind */
    qn_slot_t reminded; /* 1 + `learned` when it was reminded last; 0: never */
};

/** The floor of the log while this node gives a snapshot: slots from `slot` on
 *  are kept for the joiner (PROTOCOL.md 3.6). */
struct qn_log_hold {
    qn_slot_t slot; /* first slot that the joiner needs; 0: nothing is held */
    qn_node_t joiner;
    uint64_t inc;      /* incarnation of the joiner */
    qn_time_t over_at; /* when the hold ends: the joiner has all; 0: not yet */
};

/** Fields private; zeroed by qn_positions_init. */
struct qn_positions {
    qn_node_t self;
    uint32_t nodes;
    qn_slot_t applied;         /* slots <= it are applied here */
    qn_slot_t visible_slot;    /* a reader may see commands of slots <= it */
    qn_slot_t published;       /* the read index was this high at least once */
    qn_time_t index_looked_at; /* at the read index, to publish or check it */
    struct qn_peer_position peer[QN_NODES_MAX];
    qn_slot_t learned_before; /* by this node, at the last look for laggards */
    uint64_t lagging;         /* mask: left out of the tree for now */
    struct qn_log_hold hold;
    qn_time_t heartbeat_at; /* next look at the peers' positions; or NEVER */
};

void qn_positions_init(struct qn_positions *p, qn_node_t self, uint32_t nodes,
                       qn_time_t now);

/** A new incarnation of `peer` begins: it has said nothing yet. */
void qn_positions_peer_up(struct qn_positions *p, qn_node_t peer,
                          qn_time_t now);

/** The incarnation of `peer` has ended. What it said last stays known. */
void qn_positions_peer_down(struct qn_positions *p, qn_node_t peer);

/** A new epoch: no member of its tree lags yet. */
void qn_positions_forgive(struct qn_positions *p);

/* ---- own ----------------------------------------------------------------- */

/** Commands of `slot`, which is applied + 1, are about to be applied: from now
 *  on a reader may see a part of it. */
void qn_positions_slot_begin(struct qn_positions *p, qn_slot_t slot);

/** The last command of `slot` is applied. */
void qn_positions_slot_end(struct qn_positions *p, qn_slot_t slot);

/** The state is now that of `slot`, whatever was applied before: a snapshot was
 *  installed, or the group was recovered by force. Not inside a slot. */
void qn_positions_jump(struct qn_positions *p, qn_slot_t slot);

/** Likewise for a state that was lost, also inside a slot. */
void qn_positions_replace(struct qn_positions *p, qn_slot_t slot);

/** Must the read index be looked at now? Yes, if something is visible that was
 *  not published; else every QN_INDEX_LOOK, so that a stray write is found. */
bool qn_positions_index_due(const struct qn_positions *p, qn_time_t now);

/** The read index is now at least visible_slot. */
void qn_positions_published(struct qn_positions *p, qn_time_t now);

/** What a value of the read index means to this node. */
enum qn_index_check {
    QN_INDEX_APPLIED, /* it is applied here: true or not, no reader waits */
    QN_INDEX_LOW,     /* below what is visible here: publish, before replies */
    QN_INDEX_LOWERED, /* below what this node published: a stray write */
    QN_INDEX_AHEAD    /* a reader would wait for it: check it by the bound */
};
enum qn_index_check qn_positions_index_check(const struct qn_positions *p,
                                             qn_slot_t index);

/* ---- the bound ----------------------------------------------------------- */

/** What is known of the acceptor, and so of what can be decided. */
struct qn_bound_facts {
    bool memory;        /* memory acceptor; then only `accepted` counts */
    bool lives;         /* the acceptor of the newest epoch known here */
    bool no_later_vote; /* qn_positions_no_later_vote */
    bool knows_tenure;  /* the acceptor knows the epoch that appointed it */
    qn_slot_t accepted; /* all that it says it has accepted */
};

/** Nothing above the result is decided; or QN_POSITIONS_UNBOUNDED. */
qn_slot_t qn_positions_bound(const struct qn_positions *p,
                             const struct qn_bound_facts *f);

/**
 * A majority of the voters has never voted for an entry of the utility log that
 * is not known here.
 *
 * @param voters   Mask: of the entry behind those that are known here.
 * @param voted    [nodes] newest index each node may have voted for; only
 *                 those in `present` are read.
 * @param present  Mask: nodes whose newest incarnation wrote voted[i].
 * @param ul_len   Entries of the utility log that are known here.
 */
bool qn_positions_no_later_vote(const struct qn_positions *p, uint64_t voters,
                                const uint64_t *voted, uint64_t present,
                                uint32_t ul_len);

/**
 * Every living peer has learned exactly the slots <= position, so none has what
 * lies above, and none lacks what lies below.
 *
 * @param learned  [nodes] of each; only those in `present` are read.
 * @param living   Mask: nodes that are not known to have ended; self is
 *                 ignored.
 * @param present  Mask: as above. A living peer that is not present may have a
 *                 newer incarnation: then the answer is false.
 */
bool qn_positions_all_at(const struct qn_positions *p, const qn_slot_t *learned,
                         uint64_t living, uint64_t present, qn_slot_t position);

/* ---- peers --------------------------------------------------------------- */

/** Is the claim possible? It does not fall, its parts agree, and it is not
 *  above the bound nor above QN_SLOT_MAX. */
bool qn_positions_credible(const struct qn_positions *p, qn_node_t peer,
                           const struct qn_position *claim, qn_slot_t bound);

/** Take a credible claim. */
void qn_positions_take(struct qn_positions *p, qn_node_t peer,
                       const struct qn_position *claim, qn_time_t now);

/**
 * Root of a tree with inner nodes: which members hold up the nodes below them?
 * A peer lags that has made no progress for QN_DRIVER_LAG while it lacks what
 * this node had learned at the look before; it stops lagging when it has
 * learned that. One that is suspected lags so long. To be called at each look
 * at positions.
 *
 * @param learned    By this node, and told whole. Never falls.
 * @param peers      Mask of living peers.
 * @param suspected  Mask.
 * @param judge      False: this node is not such a root; nothing is changed but
 *                   what it had learned.
 * @return the mask `lagging`.
 */
uint64_t qn_positions_laggards(struct qn_positions *p, qn_slot_t learned,
                               uint64_t peers, uint64_t suspected, bool judge,
                               qn_time_t now);

/** These peers lag from now on: a look may find that they do no more. */
void qn_positions_lag(struct qn_positions *p, uint64_t peers);

/**
 * A LEARN that is lost shows in the positions, and a peer that sleeps looks at
 * none. Peers that lack what this node had learned at the look before, and have
 * learned nothing since that look, are to be reminded; each once, until it has
 * learned something. (So one that is stopped has one reminder unread at most.
 * One is enough, whatever is decided later.) To be called at each look, in
 * front of qn_positions_laggards.
 *
 * @param peers  Mask: living ones.
 * @return mask: peers to remind now.
 */
uint64_t qn_positions_remind(struct qn_positions *p, uint64_t peers);

/** Does any of `peers` lack some of what this node has learned, and was not
 *  reminded? Then another look is needed. */
bool qn_positions_may_remind(const struct qn_positions *p, uint64_t peers,
                             qn_slot_t learned);

/* ---- the hold ------------------------------------------------------------ */

/** Keep the log behind `position` for this incarnation of `joiner`. Replaces
 *  the hold before. */
void qn_positions_hold(struct qn_positions *p, qn_node_t joiner, uint64_t inc,
                       qn_slot_t position);

/**
 * Is the hold over? Yes, when the joiner has ended, and QN_HOLD_REST after it
 * has applied the snapshot's position.
 *
 * @param lives  The joiner's incarnation has not ended.
 * @return true: the caller ends it (qn_positions_hold_end).
 */
bool qn_positions_hold_over(struct qn_positions *p, bool lives, qn_time_t now);

void qn_positions_hold_end(struct qn_positions *p);

/* ---- when to look -------------------------------------------------------- */

/** Look at `at` if no look is planned. */
void qn_positions_look_once(struct qn_positions *p, qn_time_t at);

/** Look at `at` or earlier. */
void qn_positions_look_by(struct qn_positions *p, qn_time_t at);

/** Is it time to look? If so, no further look is planned. */
bool qn_positions_look_due(struct qn_positions *p, qn_time_t now);

#endif
