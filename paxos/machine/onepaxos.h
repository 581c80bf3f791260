#ifndef QN_PAXOS_MACHINE_ONEPAXOS_H
#define QN_PAXOS_MACHINE_ONEPAXOS_H

/**
 * 1Paxos: one node's part of the agreement, as a state machine without IO
 * (PROTOCOL.md; sections are cited in the sources).
 *
 * The leader numbers slots and sends ACCEPT to the one active acceptor, whose
 * accept is the decision; it says ACCEPTED to the leader and broadcasts LEARN
 * to the others, and every node applies the slots in order. At first node 0
 * leads and node 1 accepts (node 0 does both in a group of one: same code, no
 * messages); the utility log names the present leader and acceptor.
 *
 * A turn of the shell around it:
 *
 *     for each message:   step(RECV)          cheap; nothing is proposed yet
 *     for each fragment:  step(FRAGMENT)      it says that more will come
 *     for each command:   step(SUBMIT)        likewise
 *     now and then:       step(BEAT)          what peers have applied
 *     at the end:         step(TICK)          requests leave, slots are filled
 *     while out.again:    step(TICK)
 *     peers with room in out.transfers:       step(ROOM)
 *     sleep until a message or out.deadline
 *
 * After each step the outputs are executed in order, before the next step.
 *
 * Threads: one thread per machine. Nothing blocks, reads a clock, does IO or
 * allocates; except batches and requests, through opts.alloc.
 */

#include <stdbool.h>

#include "core/base/clock.h"
#include "paxos/log/batch.h"
#include "paxos/log/uploads.h"
#include "paxos/machine/memory_acceptor.h"
#include "paxos/machine/params.h"
#include "paxos/machine/utility.h"
#include "paxos/wire/msg.h"

struct qn_onepaxos;

/** Progress of an origin in the log. */
struct qn_session {
    uint64_t inc;  /* incarnation; 0: none yet */
    uint64_t last; /* sequence */
};

/** What a snapshot holds beside the application's state and the utility log. */
struct qn_resume {
    qn_slot_t position; /* the state has exactly the slots <= it */
    uint64_t stamp_ms;  /* not less than any stamp in them */
    struct qn_session session[QN_NODES_MAX]; /* as of it */
    uint64_t ended[QN_NODES_MAX]; /* newest incarnation of each seat whose vote
                                     is known to have ended; 0: none. Whatever
                                     the position, it is so for ever */
};

struct qn_onepaxos_opts {
    qn_node_t self;              /* < nodes */
    uint32_t nodes;              /* 1 .. QN_NODES_MAX */
    const uint64_t *incarnation; /* [nodes], borrowed: copied. 0: a vacant seat
                                    (memory acceptor), no voter */
    uint64_t voters;  /* mask: they begin the group, node 0 among them; 0: all.
                         Later ones are named by entries */
    qn_node_t parent; /* the node that sends LEARN to this node: asked first
                         when some are missing; self: ask the acceptor */
    const struct qn_alloc *alloc; /* kept */
    struct qn_params params;
    uint64_t seed; /* of pauses */
    /* Memory acceptor (PROTOCOL.md 5), kept; its register is {0, 0} when
     * the group begins. NULL: process acceptor. */
    struct qn_memory_acceptor *memory;
    const struct qn_uploads *uploads; /* kept: long commands stay in their
                                 origin's arena until a slot is filled. NULL:
                                 they travel in requests */
    /* For an incarnation after the first of its group; all zero for the
     * first. */
    const struct qn_ul_entry *ul; /* [ul_count] borrowed: what survived
                                     with the record, and more from a
                                     snapshot; may be none. NULL: entry 0 */
    uint32_t ul_count;
    const struct qn_vote *vote; /* borrowed: the record; NULL: none */
    bool non_voting; /* the record is lost: do not vote until a VOTER entry
                  names this incarnation */
    const struct qn_resume *resume; /* borrowed: of the snapshot */
};

enum qn_input_kind {
    QN_IN_RECV,     /* a whole message from a peer */
    QN_IN_FRAGMENT, /* a part of one has arrived, more will follow: the sender
                       is alive */
    QN_IN_TICK,     /* end of a turn, or the deadline has come */
    QN_IN_SUBMIT,   /* a command of this node */
    QN_IN_STAMP,    /* this node wants a slot with a stamp, though it has no
                       command (time passes in the log) */
    QN_IN_BEAT,     /* what a peer has applied and learned. With this node as
                       the peer: how far slots are decided */
    QN_IN_ROOM,     /* channels to these peers have room for one batch more */
    QN_IN_SUSPECT,  /* peers that seem to be stalled, as of now */
    QN_IN_DOWN,     /* a peer's incarnation has ended for certain */
    QN_IN_UP,   /* its next incarnation has begun; before anything that it sends
                 */
    QN_IN_LEAD, /* the leader of the epoch lives, but this node is to replace
                   it: the supervisor is about to end it */
    QN_IN_RECOVER, /* the group has stopped, all other incarnations have ended,
                      and an operator wants it to go on from what is learned
                      here */
    QN_IN_GO, /* nothing new: apply more, after qn_onepaxos_set_apply_budget */
    QN_IN_READ, /* process acceptor: reads have come that need an index by
                   message, or still wait for one */
    QN_IN_SEAT, /* leader, memory acceptor: a node is to vote from the next
                   entry on, or to be a member no more */
};

/** What is asked of a seat (PROTOCOL.md 4.4). */
struct qn_voter_change {
    qn_node_t node;
    bool votes;   /* it is to vote, or to be a member no more */
    bool forced;  /* though no majority of the voters would live then */
    uint64_t inc; /* of this incarnation; 0: of the newest one known here */
};

struct qn_input {
    enum qn_input_kind kind;
    union {
        struct {
            qn_node_t from;
            const struct qn_msg *msg; /* borrowed; copied if it has no refbuf,
                                         else referred to */
        } recv;
        struct {
            qn_node_t from;
            uint8_t kind; /* of the message: enum qn_msg_kind */
            qn_slot_t slot;
        } fragment;
        struct {
            const struct qn_slice *parts; /* [count] borrowed, copied */
            uint32_t count;
        } submit;
        struct {
            qn_node_t peer;
            qn_slot_t applied, learned; /* never fall */
            qn_slot_t decided; /* all <= it are known to be decided; 0: none */
            uint64_t read;     /* bytes of batches that it has read */
            struct qn_flow_hold hold; /* what it, or this node, asks to keep for
                                    a joiner */
        } beat;
        struct {
            uint64_t peers; /* mask of nodes */
        } room;
        struct {
            uint64_t peers; /* mask of nodes, none beyond the group; the others
                               are trusted again */
        } suspect;
        struct {
            qn_node_t peer;
        } down;
        struct {
            qn_node_t peer;
            uint64_t inc; /* of the new incarnation, above all former ones of
                             the node */
        } up;
        struct {
            bool fresh; /* reads have come since the last question: they have
                           the number qn_onepaxos_read_number */
        } read;
        struct qn_voter_change seat;
    };
};

enum qn_out_kind {
    QN_OUT_SEND,          /* msg to node `to`, on the direct lane */
    QN_OUT_SEND_ALL,      /* msg to all others, on their direct lanes */
    QN_OUT_BCAST,         /* msg to all but this node and `to`, the leader,
                             along the tree */
    QN_OUT_PERSIST,       /* vote, and the entries below it, must outlive the
                             process before any later output is executed */
    QN_OUT_APPLY,         /* a run of decided commands, or a slot's end */
    QN_OUT_NEED_SNAPSHOT, /* no peer can give slot apply.slot, and one has
                             dropped it: only a snapshot is sure to help. Once,
                             until learned_hi moves again */
};

/** Commands to apply, duplicates already taken out (exactly once, in the order
 *  of each origin). A slot comes as one or more of these; the last one has
 *  `last` set, and then everything <= slot is applied. */
struct qn_apply {
    qn_slot_t slot;
    uint64_t stamp_ms;         /* never falls */
    struct qn_command_run run; /* walk run.commands with qn_commands_next;
                              count may be 0 (with last only) */
    bool mine;                 /* submitted by this node in this incarnation */
    bool last;
    struct qn_refbuf *refbuf; /* holds the bytes: one reference */
};

struct qn_out {
    enum qn_out_kind kind;
    qn_node_t to; /* SEND */
    union {
        struct qn_msg msg;   /* body is msg.refbuf's; msg.refbuf holds one
                                reference, NULL with an empty body */
        struct qn_vote vote; /* PERSIST */
        struct qn_apply apply;
    };
};

#define QN_OUTS_MAX 64u

struct qn_step_out {
    uint32_t count;
    bool again;         /* more to do without any input: TICK at once */
    bool apply_pending; /* the apply budget is used up, and more is learned */
    uint64_t transfers; /* peers for which something waits for ROOM */
    qn_time_t deadline; /* ns; TICK then at the latest; or QN_TIME_NEVER */
    uint64_t seq;       /* SUBMIT: the sequence that was given */
    struct qn_out out[QN_OUTS_MAX]; /* [count] */
};

/** Bytes and alignment (that of max_align_t) that init needs. 0: opts are out
 *  of range. About 16 bytes per slot of the ring, touched as used. */
size_t qn_onepaxos_size(const struct qn_onepaxos_opts *o);

/** @param mem  [qn_onepaxos_size] ZEROED (calloc or fresh pages); kept.
 *  @return the machine, at mem; never NULL. */
struct qn_onepaxos *qn_onepaxos_init(void *mem,
                                     const struct qn_onepaxos_opts *o);

/** Give back all references. The memory stays the caller's. */
void qn_onepaxos_fini(struct qn_onepaxos *p);

/**
 * Take one input.
 *
 * @param now      ns, monotonic.
 * @param wall_ms  Wall clock, for stamps.
 * @param out      Filled. Each output with a refbuf holds one reference: drop
 *                 them with qn_step_out_release when the outputs have been
 *                 executed; take one of your own for what waits to be sent.
 * @return QN_OK: taken. Otherwise nothing has changed and out is empty:
 *   QN_EAGAIN    SUBMIT: this origin's credit is used up. Submit it later.
 *   QN_ENOMEM    no memory. RECV: an ACCEPT; give it again later, and nothing
 *                behind it in its channel before. (Other messages without
 *                memory are taken and forgotten: they come again.)
 *   QN_EMSGSIZE  SUBMIT: longer than QN_COMMAND_MAX.
 *   QN_ECORRUPT  RECV: a field is out of range. The peer is faulty.
 *   QN_EBUSY     RECOVER: another node lives, or no force is needed; memory
 *                acceptor: or not all that is learned is applied.
 *   QN_ENOSYS    RECV: this version does not handle this kind of message.
 *                SEAT: process acceptor.
 *   QN_EREMOVED  SUBMIT, SEAT: this incarnation is no member any more.
 *   QN_ENOTLEADER  SEAT: ask the leader.
 *   QN_EBUSY     SEAT: another change is under way; or the incarnation that was
 *                removed from this seat has not ended.
 *   QN_EINVAL    SEAT: this node, which leads, cannot be removed: another node
 *                must lead before. Or there is no such node.
 *   QN_EAGAIN    SEAT: the newcomer is not in sync yet, not alive, or not known
 *                here; or this node is about to lead.
 *   QN_ESTALE    SEAT: the seat has a later incarnation.
 *   QN_ENOQUORUM SEAT: less than a majority of the voters lives, now or then.
 *                SEAT that is taken may still come to nothing, and the status
 *                says why (`changed`). It may be asked again at any time; what
 *                is so already is taken and does nothing.
 *
 * Same state and same input give the same output, byte for byte. O(outputs +
 * bytes of the input).
 */
int qn_onepaxos_step(struct qn_onepaxos *p, const struct qn_input *in,
                     qn_time_t now, uint64_t wall_ms, struct qn_step_out *out);

/**
 * The application's state is now that of a snapshot, at a later position than
 * `applied` unless the former state was lost: go on behind it.
 */
void qn_onepaxos_install(struct qn_onepaxos *p, const struct qn_resume *r,
                         qn_time_t now);

/** A snapshot that is not installed: which incarnations were removed is so for
 *  ever, as its giver knew it. */
void qn_onepaxos_discard(struct qn_onepaxos *p, const struct qn_resume *r);

/**
 * The application has lost its state: what was put out as APPLY may not be in
 * it. The shell keeps it suspended (qn_onepaxos_suspend_apply) until it
 * installs a snapshot, and gives none.
 *
 * @return the least position of that snapshot; it may be `applied` itself.
 */
qn_slot_t qn_onepaxos_lose_state(struct qn_onepaxos *p);

/**
 * Entries of the utility log that came with a snapshot; acted upon in the next
 * step.
 *
 * @param ul  [count >= 1] borrowed.
 * @return QN_OK; QN_EINVAL: not consecutive, or one disagrees with a known one,
 *         or cannot be of this group (a node outside it); then nothing has
 *         changed.
 */
int qn_onepaxos_adopt(struct qn_onepaxos *p, const struct qn_ul_entry *ul,
                      uint32_t count);

/** For a snapshot of the application's state as of `applied`. @return false:
 *  it is in the middle of a slot; after the next step perhaps. */
bool qn_onepaxos_resume(const struct qn_onepaxos *p, struct qn_resume *out);

/** All slots <= it are decided and known here. */
qn_slot_t qn_onepaxos_learned(const struct qn_onepaxos *p);

/** SEAT was asked like that, forced or not, and taken, and has not ended. */
bool qn_onepaxos_changes(const struct qn_onepaxos *p,
                         const struct qn_voter_change *c);

/** A majority of these voters lives, as this node knows. @param suspected_too
 *  Those that are suspected count as living. */
bool qn_onepaxos_decides(const struct qn_onepaxos *p, uint64_t voters,
                         bool suspected_too);

/** The utility log (for a snapshot, for PERSIST). */
const struct qn_utility *qn_onepaxos_utility(const struct qn_onepaxos *p);

/** Put out at most about `commands` more as APPLY, so that a shell can bound
 *  the work of its turn; a slot that was begun is put out to its end. Steps
 *  say `apply_pending` while there is more. Nothing else changes: accepting,
 *  learning and answering other nodes go on. Without any call there is no
 *  bound. */
void qn_onepaxos_set_apply_budget(struct qn_onepaxos *p, uint64_t commands);

/** Memory is short: drop the older half of the log, in bytes, of what is
 * applied here, whatever others may lack. As if LOG_BYTES were that small: they
 * read a ring, or get a snapshot. Not inside a step. @return false: there was
 *  nothing. */
bool qn_onepaxos_forget(struct qn_onepaxos *p);

/** While `suspended`: put out nothing as APPLY, begin no proposal of this node
 * as leader (PROTOCOL.md 3.5). Nothing else changes; the shell asks for a step
 *  when it is over. */
void qn_onepaxos_suspend_apply(struct qn_onepaxos *p, bool suspended);

/** While this node leads, leave at least `interval` ns from one slot to the
 *  next. 0, as at first: fill slots as fast as possible. Batches grow
 *  meanwhile, and requests wait in their channels. */
void qn_onepaxos_set_propose_interval(struct qn_onepaxos *p,
                                      qn_time_t interval);

/** True if a SUBMIT, of any size, would not be answered QN_EAGAIN. */
bool qn_onepaxos_room(const struct qn_onepaxos *p);

/** True if each own command was applied here, or none was submitted. */
bool qn_onepaxos_rests(const struct qn_onepaxos *p);

/** Drop the references that the outputs hold; count becomes 0. */
void qn_step_out_release(struct qn_step_out *out);

enum qn_role { QN_FOLLOWER, QN_PREPARING, QN_ACTIVE, QN_HANDING_OVER };

struct qn_onepaxos_status {
    enum qn_role role;
    qn_epoch_t epoch;
    uint32_t ul_len; /* entries of the utility log known */
    qn_node_t leader, acceptor;
    qn_slot_t applied;    /* all <= it were put out as APPLY */
    qn_slot_t learned_hi; /* all <= it are decided and known here */
    qn_slot_t decided_hi; /* all <= it are known to be decided */
    qn_slot_t log_lo;     /* first slot kept */
    qn_slot_t next;       /* leader: next free slot */
    uint64_t log_bytes;   /* bytes of the batches kept */
    uint64_t alive;       /* mask of nodes believed alive */
    uint64_t voters;      /* mask: of the next entry of the utility log */
    bool changing;        /* leader: voters are about to change */
    int changed;  /* how the last SEAT that was taken has ended: QN_EBUSY: it is
                     `changing`; QN_OK: as asked, or there was none; an error of
                     SEAT: it has not begun, and why; but QN_ENOTLEADER: it may
                     yet come, `voters` will show it when a leader is known */
    bool removed; /* this incarnation is no member any more: for ever */
    uint64_t seq; /* last sequence given to a command of this node */
    uint64_t unapplied; /* own commands given a sequence, not yet applied */
    uint64_t queued;    /* leader: commands waiting for a slot */
    uint64_t fetches;   /* FETCH sent so far */
    bool need_snapshot; /* see QN_OUT_NEED_SNAPSHOT; may pass */
    bool lost; /* PREPARING: no node is left that could give this node the log
                  of its tenure, and none ever will be, unless a later epoch has
                  begun that is not known here */
};

void qn_onepaxos_status(const struct qn_onepaxos *p,
                        struct qn_onepaxos_status *st);

/** The read index by message (paxos/machine/read_index.h): the number of reads
 *  that come before the next question; up to which number they may be answered
 *  from what is put out to apply; whether any question waits for its answer;
 *  and when it is asked again (ns; only while one waits). */
uint64_t qn_onepaxos_read_number(const struct qn_onepaxos *p);
uint64_t qn_onepaxos_read_reached(struct qn_onepaxos *p);
bool qn_onepaxos_read_waits(const struct qn_onepaxos *p);
qn_time_t qn_onepaxos_read_again_at(const struct qn_onepaxos *p);

/** True if the leader of the newest epoch known has said that it takes
 *  requests. */
bool qn_onepaxos_served(const struct qn_onepaxos *p);

/** As in the status. */
bool qn_onepaxos_lost(const struct qn_onepaxos *p);

/** PREPARING: acceptor and former leader are lost likewise, and this node
 *  knows how far they had decided, but lacks a part of that. The group goes
 *  on if another node has that part. */
bool qn_onepaxos_lacks(const struct qn_onepaxos *p);

/** Process acceptor: this node can neither go on as a complete leader nor as
 *  the acceptor. RECOVER needs this, and the end of all other incarnations. */
bool qn_onepaxos_needs_force(const struct qn_onepaxos *p);

/** Memory acceptor: `w`, which was loaded just now, is no value that a leader
 *  can have stored: its hi is below what this node has learned, or epoch or hi
 *  is out of range. The memory was overwritten, and nothing can be decided any
 *  more. */
bool qn_onepaxos_damaged(const struct qn_onepaxos *p,
                         struct qn_accept_register w);

/** Bytes that a queue keeps: now, the most ever, and its bound, which one item
 * may pass. */
struct qn_bytes_kept {
    uint64_t now, most, max;
};

/** What a node keeps: batches of its log, own requests not yet applied. */
struct qn_onepaxos_kept {
    struct qn_bytes_kept log, requests;
};
struct qn_onepaxos_kept qn_onepaxos_kept(const struct qn_onepaxos *p);

/** Bytes of batches that were read of rings so far, also of one that is not
 *  whole yet. */
uint64_t qn_onepaxos_read(const struct qn_onepaxos *p);

/** Bytes of the slots above `slot` that are learned; of those that are not
 *  remembered any more, none. */
uint64_t qn_onepaxos_bytes_above(const struct qn_onepaxos *p, qn_slot_t slot);

/** Change the limits of flow control from the next step on, whichever node
 *  leads then (qn_flow_change). */
void qn_onepaxos_limits(struct qn_onepaxos *p, qn_time_t timeout,
                        uint32_t min_awaited);

/** Take the times of `v` from the next step on; nothing else of it. A deadline
 *  that is set stays. */
void qn_onepaxos_times(struct qn_onepaxos *p, const struct qn_params *v);

/** Flow control of this node while it leads; of no meaning otherwise. Borrowed,
 *  until the next step. */
const struct qn_flow *qn_onepaxos_flow(const struct qn_onepaxos *p);

enum qn_role qn_onepaxos_role(const struct qn_onepaxos *p);
uint64_t qn_onepaxos_unapplied(const struct qn_onepaxos *p);

#endif
