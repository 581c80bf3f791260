#ifndef QN_PAXOS_DRIVER_DRIVER_INTERNAL_H
#define QN_PAXOS_DRIVER_DRIVER_INTERNAL_H

/**
 * The state of a driver, and the functions of its files. README.md of this
 * folder says what each file does.
 *
 * The decisions are in three parts that the driver owns and connects, each a
 * pure struct with unit tests of its own:
 *
 *     positions       how far this node and the peers are, and what to believe
 *     halt            whether the group has halted
 *     dissemination   which node sends broadcasts to which
 *     ring_choice     whether they go over a ring
 *
 * The files driver_*.c read shared memory and channels, ask these parts and the
 * machine, and execute what they answer.
 */

#include "core/base/assert.h"
#include "core/group/group.h"
#include "paxos/dissemination/dissemination.h"
#include "paxos/dissemination/ring_choice.h"
#include "paxos/driver/driver.h"
#include "paxos/driver/flow_control.h"
#include "paxos/driver/positions.h"
#include "paxos/driver/sendq.h"
#include "paxos/halt/halt.h"
#include "paxos/halt/verdict.h"
#include "paxos/log/mempool.h"
#include "paxos/machine/onepaxos.h"
#include "paxos/wire/peer_state.h"

/** T_GAP with the memory acceptor, at most: cores are shared; each replica has
 *  its own. */
#define QN_DRIVER_T_GAP           ((qn_time_t)500 * QN_US)
#define QN_DRIVER_T_GAP_OWN_CORES ((qn_time_t)20 * QN_US)
/** Interval between two looks at a group that cannot go on, at most. */
#define QN_VERDICT_LOOK           ((qn_time_t)10 * QN_MS)
/** An end that is heard of within this time after a change of roles was its
 *  reason. */
#define QN_DRIVER_SOON            ((qn_time_t)100 * QN_MS)

/** An order is asked again; it is given up; the next heir is told to lead. */
#define QN_DRIVER_ORDER_AGAIN ((qn_time_t)10 * QN_MS)
#define QN_DRIVER_ORDER_MAX   ((qn_time_t)5 * QN_S)
#define QN_DRIVER_LEAD_AGAIN  ((qn_time_t)250 * QN_MS)
#define QN_DRIVER_LEAVE_MAX   ((qn_time_t)1 * QN_S) /* for a member's own end */
#define QN_DRIVER_LEAVE_SHUT  ((qn_time_t)100 * QN_MS)

/** Between two lines that say that a ring was left, at least. */
#define QN_DRIVER_RING_TELL ((qn_time_t)10 * QN_S)
/** Rings of ended incarnations that are remembered, at most. The accept
 * register names one; more are kept only while the word's owner is not known
 * here. */
#define QN_DRIVER_GONE      (2 * QN_NODES_MAX)

/** An incarnation with its ring. */
struct qn_driver_incarnation {
    qn_node_t node;
    uint64_t inc;
    bool has_ring; /* memory acceptor, and the ring is mapped */
    struct qn_ring ring;
};

struct qn_driver_peer {
    struct qn_qp *qp; /* NULL: this incarnation has ended */
    struct qn_sendq control, bulk;
    struct qn_joiner joiner;
    bool corrupt; /* a message was malformed: its lane is not read */
    bool refused; /* its next message, which is still in the lane, ... */
    uint64_t refused_step;               /* ... when d->steps was this */
    const struct qn_outbox_state *state; /* shared; its process writes it */
    struct qn_driver_incarnation incarnation; /* the newest incarnation known */
    uint64_t asked;    /* STATE: the peer's newest question */
    uint64_t answered; /* newest question of this node that it has answered */
    bool has_arena;    /* of that one, and it is mapped */
    struct qn_arena arena;
};

/** What follows from the utility log. */
struct qn_driver_roles {
    struct qn_ul_entry cfg;       /* newest INIT, LEADER or ACCEPTOR entry */
    uint32_t ul_len;              /* entries that were acted upon */
    uint64_t failovers;           /* changes that this incarnation has seen */
    enum qn_driver_reason reason; /* of the last change */
    qn_node_t lost;               /* the node that lost its role then ... */
    uint64_t lost_inc;            /* ... and its incarnation */
    qn_time_t changed_at;         /* time of the last change */
    uint64_t relieved; /* epoch whose leader is to be relieved, + 1; 0: none */
};

/** A change of the voters that the program has ordered here (driver_change.c).
 */
struct qn_driver_leave {
    qn_node_t node;
    uint64_t inc;           /* 0: none was asked */
    qn_time_t since, asked; /* first and last */
    bool answers, over; /* over: it takes no command, and all own have ended */
};

struct qn_driver_order {
    struct qn_driver_change change;
    enum qn_change_state state;
    int error;         /* PENDING: what it would end with now; else as it has */
    bool seen;         /* its entry was learned: it is done, for ever */
    bool begun;        /* a leader has taken it, or a former one may have */
    bool refused;      /* by the leader, which owes answers to later questions:
                          it is asked no more */
    qn_epoch_t epoch;  /* whose leader is asked ... */
    uint32_t asked;    /* ... newest question ... */
    uint32_t answered; /* ... and the newest that was answered */
    qn_time_t ask_at;  /* the leader, again; or QN_TIME_NEVER */
    qn_time_t until;   /* then it is given up */
    qn_node_t successor; /* leader: that was told last to lead instead ... */
    qn_time_t lead_at;   /* ... and the next one is not before */
    struct qn_driver_leave leave; /* leader: of the member that it removes */
    qn_time_t shut_until; /* the leader is about to remove this node: no own
                             command before; or QN_TIME_NEVER */
};

/** STATE: what this node has said, and is to say (driver_state.c). */
struct qn_driver_talk {
    struct qn_peer_state said;    /* to all, last; not of the questions */
    qn_epoch_t epoch;             /* said with it */
    struct qn_peer_state program; /* with the program's words as noted last */
    qn_time_t say_at;             /* positions not before */
    uint64_t owed;                /* mask: peers that have asked, or are new */
    uint64_t lack;     /* mask: peers that lack the program's words */
    uint64_t asks;     /* mask: peers that are to be asked */
    uint64_t question; /* newest number of one */
    qn_time_t ask_at;  /* those that are waited for, again */
    uint64_t reached;  /* question up to which reads were seen to be answered */
    bool read_wanted;  /* reads wait for a question that is not asked */
    uint64_t round;    /* the question to all peers, of the verdict; 0: none */
    uint32_t round_ul; /* entries of the utility log that were known then */
};

/** What the flight recorder, operators and peers were told last. */
struct qn_driver_noted {
    enum qn_role role;
    bool claimed;
    uint64_t left_behind; /* mask */
    qn_time_t ring_told;  /* a line said that a ring was left; 0: none did */
    bool ring_line;       /* the last line of it said that it is the ring */
    qn_slot_t applied;
    qn_time_t since;  /* own commands wait and `applied` does not grow since
                         then; 0: not so */
    bool leads;       /* at the last look at flow control */
    uint64_t awaited; /* mask */
    bool held;        /* flow control holds writes */
};

/** Applying, and what waits because the service cannot (driver_apply.c). */
struct qn_driver_apply {
    struct qn_apply_failure failure;
    bool suspended;     /* by the program */
    bool none;          /* the service has no state yet */
    qn_time_t check_at; /* a lost state: for members that can give one */
    uint32_t count;     /* of `held`; 0: nothing waits */
    uint32_t next;      /* of these; the others are applied */
    uint32_t done;      /* commands of the next one that are applied */
    struct qn_apply held[QN_OUTS_MAX]; /* each has a reference to its batch */
};

struct qn_driver {
    struct qn_driver_opts o;
    bool memory; /* memory acceptor; else process acceptor */

    /* What decides. */
    struct qn_onepaxos *machine;
    struct qn_positions positions;
    struct qn_halt halt;
    struct qn_dissemination dissemination;
    struct qn_ring_choice ring_choice; /* of this node while it is the root */
    uint32_t ring_said;   /* arity that the LEARN says which leaves now, or left
                           last */
    qn_slot_t shape_slot; /* newest slot whose LEARN has said the shape of the
                             tree to this node in its epoch */
    struct qn_flow_control flow_control; /* of this node while it leads */
    struct qn_driver_roles roles;
    struct qn_driver_noted noted;
    struct qn_driver_talk talk;
    struct qn_driver_order order;
    struct qn_outbox_state *told; /* [nodes] what peers have said in STATE;
                                     NULL: their outboxes are read */
    qn_a64 own_index;             /* the read index, if no node shares one */
    qn_time_t machine_deadline;   /* ns; or QN_TIME_NEVER */
    uint64_t serves; /* memory acceptor: epoch + 1 in which the accept register
                        was seen since an incarnation ended or began; 0 */
    qn_time_t register_at; /* ns; then the register is looked at, although its
                              owner lives */
    bool need_snapshot, non_voting, hold_learns;
    uint64_t suspected; /* mask, as the program says */

    /* Channels. */
    uint64_t living; /* mask: this node, and peers that have a queuepair */
    struct qn_driver_peer peer[QN_NODES_MAX];
    struct qn_qp *tree[QN_NODES_MAX];
    struct qn_context *context;    /* NULL: the group has one node */
    struct qn_joiner learn_joiner; /* fragments of LEARN ... */
    qn_node_t learn_from;          /* ... over the lane of this peer */
    struct qn_sendq bcast;         /* LEARNs that wait for children */
    uint64_t bcast_dropped;        /* LEARNs for which it had no room */
    int failed;         /* QN_ENOMEM: a message was lost on its way out */
    uint64_t touched;   /* mask: queuepairs to flush */
    uint64_t transfers; /* mask: the machine has more for them */
    bool tree_waits;    /* the tree has something to send and no room */
    uint64_t received;  /* bytes, through all lanes */

    /* Memory. */
    struct qn_mempool pool; /* of all refbufs */
    size_t keep_from;       /* bytes; a service may keep longer batches */
    struct qn_memory_acceptor shared;                  /* memory acceptor */
    struct qn_uploads uploads;                         /* of all */
    struct qn_driver_incarnation gone[QN_DRIVER_GONE]; /* former incarnations */
    uint32_t gone_count;

    struct qn_driver_apply apply;

    /* The turn. */
    qn_time_t now; /* never falls */
    uint64_t wall_ms;
    int64_t left;   /* of QN_TURN_WORK, in this turn; may be negative */
    bool again;     /* the machine has more to do without any input */
    bool did;       /* something was received or done */
    bool more;      /* the machine has more to apply */
    uint64_t steps; /* that changed something: what was refused may fit now */
    uint64_t batches, commands; /* applied so far */
    struct qn_step_out out; /* of the current step; large, so not on stack */
};

static inline uint64_t qn_driver_bit(qn_node_t i)
{
    QN_DASSERT(i < QN_NODES_MAX);
    return (uint64_t)1 << i;
}

/** Mask of all nodes of the group. */
static inline uint64_t qn_driver_group(const struct qn_driver *d)
{
    return UINT64_MAX >> (QN_NODES_MAX - d->o.nodes);
}

/** This node, or a peer that has not ended. */
static inline bool qn_driver_lives(const struct qn_driver *d, qn_node_t i)
{
    return (d->living & qn_driver_bit(i)) != 0;
}

/** Mask: the peers that live. */
static inline uint64_t qn_driver_peers(const struct qn_driver *d)
{
    return d->living & ~qn_driver_bit(d->o.self);
}

/** The time of a call. Callers take it from one clock, but a call from inside a
 *  turn may have a later time than the calls after it. Here it never falls. */
static inline void qn_driver_time(struct qn_driver *d, qn_time_t now)
{
    d->now = QN_MAX(d->now, now);
}

/* ---- driver.c ------------------------------------------------------------ */

/** Give an input to the machine and execute what it puts out. Errors are those
 *  of qn_onepaxos_step; then nothing was put out. */
int qn_driver_step(struct qn_driver *d, const struct qn_input *in);

/** Publish before reply: the read index, then the own positions. */
void qn_driver_publish(struct qn_driver *d);

/** Receive all that the tree lanes hold, though no work is left. */
void qn_driver_tree_drain(struct qn_driver *d);

/* ---- driver_start.c ------------------------------------------------------ */

/** Write the vote into the vote record; then it may be sent. */
void qn_driver_persist(struct qn_driver *d, const struct qn_vote *vote);

/* ---- driver_peers.c ------------------------------------------------------ */

/** The ring of an incarnation as mapped here, or NULL; `ctx` is the driver. */
const struct qn_ring *qn_driver_ring(void *ctx, qn_node_t node, uint64_t inc);

/** The arena of a living incarnation as mapped here, or NULL; `ctx` is the
 *  driver. */
const struct qn_arena *qn_driver_arena(void *ctx, qn_node_t node, uint64_t inc);

/** The owner of the ring that the accept register `w` means. @return false: it
 * is not known here. */
bool qn_driver_owner(const struct qn_driver *d, struct qn_accept_register w,
                     qn_node_t *node, uint64_t *inc);

/** Say in the own outbox that the ring that the accept register names is mapped
 *  here. */
void qn_driver_mapped(struct qn_driver *d);

/* ---- driver_roles.c ------------------------------------------------------ */

/** The utility log has grown, or this incarnation begins: act upon the newest
 *  entry, before anything that rests on it is sent. */
void qn_driver_roles(struct qn_driver *d);

/** The context, with the first tree. QN_OK, QN_EINVAL (no such topology),
 *  QN_ENOMEM. */
int qn_driver_tree_make(struct qn_driver *d);

/** The tree again, with these members (mask); a ring stays one. */
void qn_driver_tree(struct qn_driver *d, uint64_t members);

/** The root of this node's epoch has announced another shape. */
void qn_driver_tree_announced(struct qn_driver *d);

/** The root looks whether broadcasts are to go over the ring. One that a member
 *  holds up is left at once; for a member that is late and not suspected,
 * behind the LEARN of which a part has left, or it would be lost. Any other
 * change is said first, in a LEARN that still goes the old way, and made behind
 * it: so no member misses one. */
void qn_driver_ring_look(struct qn_driver *d);

/** The LEARN that begins to leave says what was chosen; it has left. */
void qn_driver_ring_say(struct qn_driver *d);
void qn_driver_ring_was_said(struct qn_driver *d);

/** The root was chosen, or a peer is new: it may lack what is learned here. */
void qn_driver_ring_expect(struct qn_driver *d);

/** Mask of nodes that have not ended, as far as this node knows. */
uint64_t qn_driver_living(const struct qn_driver *d);

/** The incarnation that the newest entry names as the acceptor lives, as far as
 *  this node knows. */
bool qn_driver_acceptor_lives(const struct qn_driver *d);

/** Mask of those `voters` with which nothing that was decided is lost, if all
 *  others end. */
uint64_t qn_driver_in_sync(const struct qn_driver *d, uint64_t voters);

/* ---- driver_change.c ----------------------------------------------------- */

/** An order is pending, and the entries from that index on are new. */
bool qn_driver_leads(const struct qn_driver *d);
/** Leader: the next voter in sync is to lead instead, unless one was told so
 *  less than QN_DRIVER_LEAD_AGAIN before. */
void qn_driver_hand_over(struct qn_driver *d);
void qn_driver_order_learn(struct qn_driver *d, uint32_t from);

/** An order is pending, and its time has come: is it done? Else the leader is
 *  asked. */
void qn_driver_order_look(struct qn_driver *d);

/** ORDER or TAKEN of a peer. @return false: it cannot be of this group. */
bool qn_driver_order_take(struct qn_driver *d, qn_node_t from,
                          const struct qn_msg *m);

/* ---- driver_positions.c -------------------------------------------------- */

/** Nothing above it is decided; UINT64_MAX: that cannot be said now. */
qn_slot_t qn_driver_bound(const struct qn_driver *d);

/** Where a living peer is now; `ctx` is the driver. @return false: it has
 *  ended, or what it says is not possible. */
bool qn_driver_position(void *ctx, qn_node_t node, struct qn_position *out);

/** No later entry than those known here names roles: a majority has never voted
 *  for one. */
bool qn_driver_newest_epoch(const struct qn_driver *d);

/** All living peers have learned exactly the slots <= position, and none of
 *  them has begun anew since this node has heard of it. (A peer that has
 *  learned less may have what lies above, behind a gap.) */
bool qn_driver_all_at(const struct qn_driver *d, qn_slot_t position);

/** Tell the machine the peers' positions. */
void qn_driver_positions_read(struct qn_driver *d);

/** This node is the root, and a peer may have missed a LEARN that it sent:
 *  another look at the positions tells. */
bool qn_driver_may_remind(const struct qn_driver *d);

/** Is the log that this node holds for a joiner still needed? Called with the
 *  positions. */
void qn_driver_hold_look(struct qn_driver *d);

/** Which members are left out of a tree in which they hold up others. */
void qn_driver_laggards_find(struct qn_driver *d);

/* ---- driver_state.c ------------------------------------------------------ */

/** If no outboxes are read: memory for what is said instead. QN_OK, QN_EINVAL
 *  (other memory of other nodes is given), QN_ENOMEM. */
int qn_driver_state_begin(struct qn_driver *d);

/** A new incarnation of a peer has said nothing yet, and is told first. */
void qn_driver_state_forget(struct qn_driver *d, qn_node_t peer);

/** At the end of each turn in which no outboxes are read. */
void qn_driver_state_say(struct qn_driver *d);

/** As qn_driver_read_view. */
struct qn_read_view qn_driver_state_view(struct qn_driver *d);

/** A peer has said its state. Void if outboxes are read. */
void qn_driver_state_take(struct qn_driver *d, qn_node_t from,
                          const struct qn_msg *m);

/**
 * While `wanted`: have all living peers said their state since it is wanted,
 * since the last incarnation has ended or begun, and since the last entry of
 * the utility log was learned? If not they are asked. Where outboxes are read:
 * `wanted`, for there each look is of now.
 */
bool qn_driver_state_asked(struct qn_driver *d, bool wanted);

/** Mask: this node, and the peers that have answered that question. */
uint64_t qn_driver_state_fresh(const struct qn_driver *d);

/* ---- driver_halt.c ------------------------------------------------------- */

/** Has the group halted, as far as this node can tell? With a process acceptor
 *  the node that can tell says so in its outbox. At the end of each turn. */
void qn_driver_halt_look(struct qn_driver *d);

/** A peer has ended: how far it had learned, as it said last. */
void qn_driver_halt_note(struct qn_driver *d, qn_node_t peer);

/** The highest position that any node has said to have learned, or shown. */
qn_slot_t qn_driver_highest_announced(const struct qn_driver *d);

/** This node receives from that incarnation of a peer; 0: all is received that
 *  its former incarnations had sent. */
void qn_driver_hears(struct qn_driver *d, qn_node_t peer, uint64_t inc);

/** Epoch of the accept register + 1 if the incarnation that owns it has ended,
 * as known here; else 0. */
uint64_t qn_driver_bereft(const struct qn_driver *d);

/* ---- driver_send.c ------------------------------------------------------- */

/** Send to one peer, at once if possible, else from its queue. */
void qn_driver_send(struct qn_driver *d, qn_node_t to, const struct qn_msg *m);

/** Send a LEARN down the tree. It is forgotten if this node is not the root, or
 *  not any more: the present root tells what was decided. */
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

/** Root: has the broadcast that is timed arrived everywhere? */
void qn_driver_latency_probe_look(struct qn_driver *d);

/* ---- driver_recv.c ------------------------------------------------------- */

/** Read the direct lane of a peer that has not ended. @return true: as much was
 *  read as one turn may; there may be more. */
bool qn_driver_receive(struct qn_driver *d, qn_node_t from);

/** A message came down the tree; `ctx` is the driver. */
void qn_driver_deliver(void *ctx, const void *bytes, size_t len);

/* ---- driver_events.c ----------------------------------------------------- */

/** Messages that are noted: those of elections and take-overs, and FETCH. */
#define QN_DRIVER_NOTABLE                                                      \
    (~(UINT64_C(1) << QN_MSG_REQUEST | UINT64_C(1) << QN_MSG_ACCEPT |          \
       UINT64_C(1) << QN_MSG_LEARN | UINT64_C(1) << QN_MSG_ACCEPTED |          \
       UINT64_C(1) << QN_MSG_FILL | UINT64_C(1) << QN_MSG_SNAP |               \
       UINT64_C(1) << QN_MSG_BEAT | UINT64_C(1) << QN_MSG_STATE |              \
       UINT64_C(1) << QN_MSG_READ_INDEX | UINT64_C(1) << QN_MSG_READ_AT))

static inline bool qn_driver_notable(const struct qn_msg *m)
{
    return (QN_DRIVER_NOTABLE >> m->kind & 1) != 0;
}

/** Note an event: the node that it concerns, a position, and `a`, which means
 *  what paxos/driver/event.h says. */
void qn_driver_note(struct qn_driver *d, enum qn_event_kind kind,
                    qn_node_t node, qn_slot_t slot, uint64_t a);

/** SENT or GOT. */
void qn_driver_note_msg(struct qn_driver *d, enum qn_event_kind kind,
                        qn_node_t peer, const struct qn_msg *m);

void qn_driver_note_vote(struct qn_driver *d, const struct qn_vote *v);

/** Memory acceptor: this node may write the accept register, or may not any
 * more.
 */
void qn_driver_note_claim(struct qn_driver *d, bool claimed);

/** Memory acceptor: all is copied, and the accept register is about to be moved
 * to `epoch`. */
void qn_driver_note_copied(struct qn_driver *d, qn_epoch_t epoch);

/** d->roles.cfg has changed. */
void qn_driver_note_epoch(struct qn_driver *d);

/** Broadcasts of this root go over the other one of ring and tree from now on.
 *  @param arity  Of the ring; 0: the tree. */
void qn_driver_note_ring(struct qn_driver *d, uint32_t arity);

/** In each turn of a root: a line, if one is due. */
void qn_driver_ring_tell(struct qn_driver *d, bool ring);

/** d->suspected has changed from `before`. */
void qn_driver_note_suspects(struct qn_driver *d, uint64_t before);

/** The machine's role differs from d->noted.role. */
void qn_driver_note_role(struct qn_driver *d, enum qn_role role);

/** The end of a turn: children left behind or back, pauses. */
void qn_driver_note_turn(struct qn_driver *d);

/** Leader: tell operators and peers what flow control has done: members given
 * up and awaited again, held writes. @return true: the gate is shut; look at
 * the positions soon. */
bool qn_driver_flow_look(struct qn_driver *d);

/* ---- driver_apply.c ------------------------------------------------------ */

/** Give it to the service, or keep it, or drop it. */
void qn_driver_apply(struct qn_driver *d, const struct qn_apply *a);
/** Does anything wait, or is the state lost? Then, once a turn: try again, or
 *  ask for a state. */
bool qn_driver_apply_waits(const struct qn_driver *d);
void qn_driver_apply_again(struct qn_driver *d);
qn_time_t qn_driver_apply_deadline(const struct qn_driver *d);
/** Mask of living nodes, this one included, that say that their state is lost.
 */
uint64_t qn_driver_lost_states(const struct qn_driver *d);
/** A snapshot has replaced the state. Nothing waits. */
void qn_driver_apply_installed(struct qn_driver *d);
/** Give back what waits. */
void qn_driver_apply_release(struct qn_driver *d);
/** driver.c: no peer can give slot `slot` any more: tell the service. */
void qn_driver_ask_snapshot(struct qn_driver *d, qn_slot_t slot);

#endif
