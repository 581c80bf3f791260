#ifndef QN_PAXOS_HALT_HALT_H
#define QN_PAXOS_HALT_HALT_H

/**
 * The verdict that the group has halted: nothing is decided any more, until an
 * operator recovers it by force.
 *
 * Process acceptor (PROTOCOL.md 6.5): leader and acceptor were lost together.
 * Only the leader of the newest epoch can know that no log is left for it. It
 * writes a word in its outbox, and the others read it there:
 *
 *     0                 nothing to say
 *     epoch + 1         `epoch` can never begin: no living node has the log
 *     LOG_INCOMPLETE    with epoch + 1: the leader knows how far the lost ones
 *                       had decided, but its log has a gap, and no living peer
 *                       can fill it
 *     BY_FORCE          this node goes on by force, until a leader serves
 *
 * Memory acceptor (PROTOCOL.md 5.7): every node finds the verdict for itself
 * (paxos/halt/verdict.h) from what all say in their outboxes. Here is what
 * that needs beside: which incarnation was there when, and since when the group
 * waits.
 *
 * A wrong verdict would be worse than a late one; but it decides nothing.
 *
 * Pure: the caller reads shared memory and the clock. One thread. O(nodes).
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/base/clock.h"
#include "core/node.h"
#include "paxos/halt/verdict.h"

/** In the word, with epoch + 1. No epoch is as great. */
#define QN_HALT_LOG_INCOMPLETE (UINT64_C(1) << 63)
/** The word of a node that goes on by force. */
#define QN_HALT_BY_FORCE       UINT64_MAX
/** How long no peer has what is lacking, before that is said. */
#define QN_DRIVER_LACKS        QN_S

/** Fields private; zeroed by qn_halt_init. */
struct qn_halt {
    qn_node_t self;
    uint32_t nodes;
    qn_slot_t highest_announced; /* that an ended peer said it had learned */
    qn_time_t lacks_since;       /* when it began; 0: nothing is lacking */
    qn_slot_t lacks_at;          /* what was learned then; process acceptor */
    struct qn_verdict verdict;   /* memory acceptor, as of the last turn */
    uint64_t born[QN_NODES_MAX]; /* incarnations of each node below this one
                                    had ended when this node's began */
    uint64_t late[QN_NODES_MAX]; /* epoch of the accept register whose owner was
                                    known to have ended when this incarnation
                                    of the peer came, + 1; 0: none */
};

void qn_halt_init(struct qn_halt *h, qn_node_t self, uint32_t nodes);

/** As this node begins: `inc` is the incarnation of `node` that it knows, and
 *  `ended` says whether that one had ended. */
void qn_halt_born(struct qn_halt *h, qn_node_t node, uint64_t inc, bool ended);

/** An incarnation of `peer` comes. @param bereft  Epoch of the accept register
 * + 1 if the word's owner is known to have ended; else 0. */
void qn_halt_peer_up(struct qn_halt *h, qn_node_t peer, uint64_t bereft);

/* ---- process acceptor ---------------------------------------------------- */

/** What a node sees at the end of a turn. */
struct qn_halt_facts {
    bool served;        /* the leader of the epoch takes requests; then only
                           `word` counts */
    bool leads;         /* this incarnation leads the epoch */
    bool lost;          /* the machine: no log is left (qn_onepaxos_lost) */
    bool lacks;         /* the machine: the log has a gap (qn_onepaxos_lacks),
                           all that is learned is applied, and all living peers
                           have learned exactly as much */
    bool by_force;      /* a living node, or this one, goes on by force */
    bool no_later_vote; /* qn_positions_no_later_vote, after the ends of the
                           lost ones were heard of */
    uint64_t epoch;     /* newest one known here */
    qn_slot_t learned;  /* by this node */
    uint64_t word;      /* as this node has written it */
};

/** @return the word from now on. It is new if it differs from v->word; the
 *  group has halted, as far as this node can tell, if it is then neither 0 nor
 *  BY_FORCE. */
uint64_t qn_halt_word(struct qn_halt *h, const struct qn_halt_facts *v,
                      qn_time_t now);

enum qn_halt_reason {
    QN_HALT_REASON_NONE, /* the group goes on, as far as the word says */
    QN_HALT_REASON_LOST, /* no log is left */
    QN_HALT_REASON_GAP   /* the log is incomplete */
};

/** What the word of the leader of `epoch` says about that epoch. */
enum qn_halt_reason qn_halt_read(uint64_t word, uint64_t epoch);

/* ---- memory acceptor ----------------------------------------------------- */

/** Had that incarnation ended, if the newest one known of its node is `newest`,
 *  which `lives` or not? */
bool qn_halt_has_ended(uint64_t inc, uint64_t newest, bool lives);

/**
 * Has `member` heard of all ends that are known here, and received what was
 * sent before? It receives from no incarnation that is not known to live.
 *
 * @param hears   [nodes] incarnation of each that the member receives from, as
 *                it says; 0: none. Loaded before what it has learned.
 * @param newest  [nodes] newest incarnation of each that is known here.
 * @param living  Mask: those which have not ended.
 */
bool qn_halt_has_heard(const struct qn_halt *h, qn_node_t member,
                       const uint64_t *hears, const uint64_t *newest,
                       uint64_t living);

/** This node has never received from that incarnation of `owner`. */
bool qn_halt_born_late(const struct qn_halt *h, qn_node_t owner, uint64_t inc);

/** That incarnation of `member` came after the end of the word's owner in
 *  `epoch`. @param said  What it says itself: epoch + 1 or another number. */
bool qn_halt_is_late(const struct qn_halt *h, qn_node_t member, uint64_t said,
                     uint64_t epoch);

/** With that verdict nothing is decided any more. */
bool qn_halt_verdict_halts(const struct qn_verdict *v);

/** The verdict of this turn. DAMAGED stays, whatever comes later: it is not
 *  known what was decided since. @return true: the group has halted just now.
 */
bool qn_halt_take(struct qn_halt *h, const struct qn_verdict *v, qn_time_t now);

/** Mask of members that may have what is lacking, and have not said so for
 *  QN_DRIVER_LACKS. A take-over looks like that for a moment. */
uint64_t qn_halt_waits_for(const struct qn_halt *h, qn_time_t now);

/* ---- for people ---------------------------------------------------------- */

/** A peer that has ended had said that it learned `position`; garbage is
 *  ignored. */
void qn_halt_note(struct qn_halt *h, qn_slot_t position);

/**
 * The highest position of which it is known that some node had learned it.
 *
 * @param decided  As this node's machine knows.
 * @param index    The read index; garbage is ignored.
 * @param halted   The verdict: then hi of the lost ring counts, too.
 */
qn_slot_t qn_halt_highest(const struct qn_halt *h, qn_slot_t decided,
                          qn_slot_t index, bool halted);

/** This node goes on by force: what was known of the old group is void. */
void qn_halt_recovered(struct qn_halt *h);

#endif
