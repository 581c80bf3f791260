#ifndef QN_KVS_CONTROL_CONTROL_PROTOCOL_H
#define QN_KVS_CONTROL_CONTROL_PROTOCOL_H

/**
 * The messages between the supervisor and its replica processes, as values and
 * as bytes. Sockets are in kvs/control/control_channel.h.
 *
 *     replica                      supervisor
 *     HELLO + outbox descriptor ->            own outbox is made
 *                              <-  PEER_UP + outbox descriptor, one per living
 *                                             node; the others are announced
 *                                             when they come
 *                              <-  PEER_DOWN  one per node that is dead
 *                              <-  START      that is all for now
 *     READY                    ->             the replica is complete
 *                              <-  READY      to the first members: all are;
 *                                             accept connections from here on
 *
 *                              <-  PEER_DOWN  that process has ended
 *                              <-  PEER_UP    the next incarnation of a node
 *
 *                              <-  ROLES_QUERY   which replica leads, which
 *     ROLES                    ->             accepts, as far as it knows
 *                              <-  LEAD       to all: that node takes over from
 *                                             the present leader
 *
 *     RECOVER                  ->             a client wants a group that has
 *                                             stopped to continue from one node
 *                              <-  RECOVER_REFUSED  why not; nothing was done
 *                              <-  RECOVER_QUERY  to the chosen node: can it?
 *     RECOVERABLE              ->             it can, or why not
 *                              <-  RECOVER_ORDER  to it: all others have ended
 *     RECOVERED                ->             the position it continues at
 *
 *     PEER_MET                 ->             to each PEER_UP: it is mapped and
 *                                             has lanes, or why not. A newcomer
 *                                             gets START when all have said so
 *                                             that no signal has stopped.
 *                                             If not, PEER_UP comes again
 *     MEMBER_LIST              ->             a client wants to know the
 *                                             members
 *                              <-  MEMBER_SEAT    one per seat that is taken
 *     MEMBER_ADD               ->             a client wants one member more
 *     MEMBER_REMOVE            ->             a client wants one member less
 *                              <-  VOTER_CHANGE   to one replica: order it of
 *                                             the leader
 *     VOTER_CHANGED            ->             what has become of the order
 *                              <-  MEMBER_ANSWER  that is all; done, or why not
 *     VOTERS                   ->             when they change as far as it
 *                                             knows, and to an adopter before
 *                                             START
 *
 *                              <-  DRAIN      accept nothing more, answer what
 *                                             was asked, close
 *     DRAINING                 ->             received; the time it will take
 *     DRAINED                  ->             it owes no reply any more, or has
 *                                             given up. It keeps running: the
 *                                             others need it as leader or
 *                                             acceptor
 *                              <-  STOP       all have drained: exit(0)
 *
 * Messages about a node come in the order of its incarnations: PEER_UP,
 * PEER_DOWN, PEER_UP, ... A replica that was stalled may miss incarnations that
 * began and ended meanwhile (kvs/control/control_backlog.h). A new replica may
 * also be told of a dead incarnation whose memory is still needed (the accept
 * register names it): PEER_UP with its outbox, and PEER_DOWN at once. That may
 * be its own predecessor.
 *
 * A replica that cannot start sends FAILED with the reason, logs nothing, and
 * exits 1: the supervisor prints the line. The end of a process closes its
 * socket. A replica whose supervisor has ended continues without it, and may be
 * adopted by another (kvs/control/adopt.h; ADOPT, FORMAT, CONFIG, LOCK, LISTEN,
 * DOORBELL and RECORD belong to that hand-over).
 *
 * SIGTERM to a replica means the same as DRAIN: it drains, sends DRAINED and
 * waits for STOP, which comes at once if only this replica leaves. Without a
 * supervisor it exits when it has drained.
 *
 * On the wire each message has QN_CONTROL_BYTES bytes, little-endian: the kind
 * in the first four, its fields at places of their own, 0 elsewhere. One table
 * (control_protocol.c) says for each kind where its fields lie, which values
 * they may have, in which directions it travels, and in which of them a
 * descriptor comes along. Decoding checks all of that, so a receiver need not
 * check a message again.
 *
 * Pure, any thread, wait-free.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/node.h"
#include "kvs/listen/listen.h"

/** The kinds. Their numbers travel between builds: a number is never given to
 *  another kind. No build has ever sent 5. */
enum qn_control_kind {
    QN_CTL_INVALID = 0, /* never sent: what a damaged message decodes to */
    QN_CTL_HELLO = 1,
    QN_CTL_READY = 2,
    QN_CTL_DRAINING = 3,
    QN_CTL_DRAINED = 4,
    QN_CTL_FAILED = 6,
    QN_CTL_PEER_UP = 7,
    QN_CTL_PEER_DOWN = 8,
    QN_CTL_START = 9,
    QN_CTL_LISTEN = 10,
    QN_CTL_DRAIN = 11,
    QN_CTL_STOP = 12,
    QN_CTL_ADOPT = 13,
    QN_CTL_CONFIG = 14,
    QN_CTL_LOCK = 15,
    QN_CTL_DOORBELL = 16,
    QN_CTL_FORMAT = 17,
    QN_CTL_ROLES_QUERY = 18,
    QN_CTL_LEAD = 19,
    QN_CTL_RECOVER = 20,
    QN_CTL_RECOVERED = 21,
    QN_CTL_RECOVER_QUERY = 22,
    QN_CTL_RECOVER_REFUSED = 23,
    QN_CTL_ROLES = 24,
    QN_CTL_RECOVERABLE = 25,
    QN_CTL_RECOVER_ORDER = 26,
    QN_CTL_RECORD = 27,
    QN_CTL_MEMBER_LIST = 28,
    QN_CTL_MEMBER_ADD = 29,
    QN_CTL_MEMBER_REMOVE = 30,
    QN_CTL_MEMBER_SEAT = 31,
    QN_CTL_MEMBER_ANSWER = 32,
    QN_CTL_PEER_MET = 33,
    QN_CTL_VOTER_CHANGE = 34,
    QN_CTL_VOTER_CHANGED = 35,
    QN_CTL_VOTERS = 36,
    QN_CTL_KINDS
};

/** Description of a refused message. `fault` is a constant: the name of a
 *  field whose value is out of range, or one of QN_CTL_FAULT_*. */
struct qn_ctl_invalid {
    uint32_t type; /* the kind's number as received; 0: it had none */
    const char *fault;
};

#define QN_CTL_FAULT_LENGTH    "length"
#define QN_CTL_FAULT_TYPE      "type"
#define QN_CTL_FAULT_DIRECTION "direction"
#define QN_CTL_FAULT_NO_DESCRIPTOR                                             \
    "no descriptor; is this process at its limit of open files?"
#define QN_CTL_FAULT_DESCRIPTOR "unexpected descriptor"
#define QN_CTL_FAULT_RESERVED   "reserved bytes"

/** The sender introduces itself; with its outbox. */
struct qn_ctl_hello {
    qn_node_t node;
    uint64_t incarnation; /* not 0 */
};

/** An incarnation of a node has begun; with its outbox. */
struct qn_ctl_peer_up {
    qn_node_t node;
    uint64_t incarnation; /* not 0 */
    uint32_t pid;         /* 0: unknown, an earlier incarnation */
};

struct qn_ctl_peer_down {
    qn_node_t node;
    uint64_t incarnation; /* 0: any that the receiver knows */
};

struct qn_ctl_draining {
    uint32_t timeout_s; /* shutdown-timeout: the longest time it drains */
};

struct qn_ctl_drained {
    bool group_stopped;      /* as this replica sees it */
    uint64_t unsent_replies; /* replies that were given up */
};

/** The sender cannot start, or a supervisor cannot hand over. */
struct qn_ctl_failed {
    int64_t error; /* QN_E* */
};

/**
 * The hand-over begins; the bytes of this message and of FAILED never change,
 * so that builds of any two versions can refuse each other with a clear
 * message.
 *
 * An adopter or heir names the versions that it speaks. The other side answers
 * with one version in `newest`, `oldest` 0; a replica adds the descriptor of
 * the commons. No value is refused here: see qn_adopt_version.
 */
struct qn_ctl_adopt {
    uint32_t node;        /* of a replica that answers; else not used */
    uint64_t incarnation; /* likewise */
    uint64_t oldest;
    uint64_t newest;
};

/** A version that the group speaks (kvs/control/formats.h). */
struct qn_ctl_format {
    uint32_t format; /* enum qn_format, of this or a later build */
    uint32_t version;
};

#define QN_CTL_FORMATS_MAX QN_NODES_MAX /* formats of any build */

/** With a descriptor: a listening socket, or one for passed connections. */
struct qn_ctl_listen {
    qn_node_t node;
    enum qn_listen_kind kind;
};

/** With a descriptor: the doorbell of a node, an eventfd. */
struct qn_ctl_doorbell {
    qn_node_t node;
};

struct qn_ctl_roles_query {
    uint32_t token; /* the answer repeats it */
};

struct qn_ctl_roles {
    uint32_t token;
    uint64_t epoch;
    qn_node_t leader;
    qn_node_t acceptor;
    bool active;      /* the sender itself leads */
    uint64_t in_sync; /* mask of nodes */
};

struct qn_ctl_lead {
    qn_node_t node;
};

struct qn_ctl_recover {
    qn_node_t node;    /* from which the group shall continue */
    uint64_t epoch;    /* that the client means */
    uint64_t client;   /* number of a connection of the sender */
    uint64_t position; /* that the node must have; as a client gave it */
};

struct qn_ctl_recover_query {
    uint64_t epoch;
    uint64_t question; /* the answer repeats it */
    uint64_t position; /* that the receiver must have */
};

struct qn_ctl_recoverable {
    uint64_t question;
    uint32_t refusal;  /* enum qn_recovery_error, of this or a later build */
    uint64_t position; /* that the sender has */
};

struct qn_ctl_recovered {
    int64_t error;     /* QN_OK or QN_E* */
    uint64_t position; /* from which the sender continues */
};

struct qn_ctl_recover_refused {
    qn_node_t node;   /* as in RECOVER */
    uint64_t client;  /* as in RECOVER */
    uint32_t refusal; /* enum qn_recovery_error, of this or a later build */
};

/** A client of the sender wants to know the members: a SEAT for each comes
 *  back, and an ANSWER at the end. */
struct qn_ctl_member_list {
    uint64_t client; /* number of a connection of the sender */
};

/** A client of the sender wants one more member, in any vacant seat. */
struct qn_ctl_member_add {
    bool forced;        /* as in struct qn_driver_change */
    uint64_t client;    /* as in MEMBER_LIST */
    uint64_t maxmemory; /* in force, bytes; 0: no limit */
};

/** A client of the sender wants a member less. */
struct qn_ctl_member_remove {
    qn_node_t node;
    bool forced;
    uint64_t client;
};

enum qn_member_seat_state {
    QN_SEAT_STARTING, /* not complete yet */
    QN_SEAT_SERVING,
    QN_SEAT_DRAINED,
    QN_SEAT_ENDED, /* no process; one is started, or was not to be */
};

/** A seat that is taken. */
struct qn_ctl_member_seat {
    qn_node_t node;
    enum qn_member_seat_state state;
    bool votes;
    uint64_t client;      /* as in MEMBER_LIST */
    uint64_t incarnation; /* present or last; 0: none is known */
    uint32_t pid;         /* 0: no process */
};

/** How a LIST, ADD or REMOVE has ended; one for each. */
struct qn_ctl_member_answer {
    qn_node_t node;  /* ADD: the newcomer's seat; REMOVE: as there */
    qn_node_t peer;  /* why: a replica that is its reason */
    uint32_t why;    /* enum qn_member_error, of this or a later build */
    uint32_t fits;   /* why: not enough memory. The largest maxmemory, MiB,
                        with which there is enough; 0: not known */
    uint64_t client; /* as in LIST, ADD, REMOVE */
    int64_t error;   /* why: QN_E*, or QN_OK: no error is its reason */
};

/** The answer to each PEER_UP: may that incarnation start? */
struct qn_ctl_peer_met {
    qn_node_t node;
    uint64_t incarnation; /* not 0 */
    int64_t error;        /* QN_OK: it has lanes here, and is mapped; QN_EAGAIN:
                             it is absent here, having no lanes for this one */
};

/** An order to change the voters (qn_driver_change); VOTER_CHANGED answers. */
struct qn_ctl_voter_change {
    qn_node_t node;
    bool votes, forced;
    uint32_t number;      /* of the order; the answer repeats it */
    uint64_t incarnation; /* of the node; not 0 */
};

enum qn_voter_outcome {
    QN_VOTER_OK,      /* it is so */
    QN_VOTER_REFUSED, /* it has not begun */
    QN_VOTER_UNKNOWN, /* it may still be done */
};

/** The voters as the sender knows them. More entries are a later state. */
struct qn_ctl_voters {
    uint32_t entries; /* of the utility log that the sender knows */
    uint64_t voters;  /* mask: of the next one; 0: it knows no entry */
};

/** The last message of an order. The sender knows what it says: the voters of
 *  an OK are after the change. */
struct qn_ctl_voter_changed {
    enum qn_voter_outcome outcome;
    uint32_t number;
    uint32_t entries; /* as in VOTERS */
    uint64_t voters;  /* as in VOTERS */
    int64_t error;    /* REFUSED, UNKNOWN: why (qn_driver_change) */
};

/** READY, START, DRAIN, STOP and RECOVER_ORDER have no fields. CONFIG (the
 *  options as text, kvs/control/adopt.h) and LOCK (of the address) have none
 *  but their descriptor. */
struct qn_control_msg {
    enum qn_control_kind kind;
    union {
        struct qn_ctl_invalid invalid;
        struct qn_ctl_hello hello;
        struct qn_ctl_peer_up peer_up;
        struct qn_ctl_peer_down peer_down;
        struct qn_ctl_draining draining;
        struct qn_ctl_drained drained;
        struct qn_ctl_failed failed;
        struct qn_ctl_adopt adopt;
        struct qn_ctl_format format;
        struct qn_ctl_listen listen;
        struct qn_ctl_doorbell doorbell;
        struct qn_ctl_roles_query roles_query;
        struct qn_ctl_roles roles;
        struct qn_ctl_lead lead;
        struct qn_ctl_recover recover;
        struct qn_ctl_recover_query recover_query;
        struct qn_ctl_recoverable recoverable;
        struct qn_ctl_recovered recovered;
        struct qn_ctl_recover_refused recover_refused;
        struct qn_ctl_member_list member_list;
        struct qn_ctl_member_add member_add;
        struct qn_ctl_member_remove member_remove;
        struct qn_ctl_member_seat member_seat;
        struct qn_ctl_member_answer member_answer;
        struct qn_ctl_peer_met peer_met;
        struct qn_ctl_voter_change voter_change;
        struct qn_ctl_voter_changed voter_changed;
        struct qn_ctl_voters voters;
    } u;
};

enum qn_control_direction {
    QN_CTL_TO_REPLICA,    /* from its supervisor or from an adopter */
    QN_CTL_TO_SUPERVISOR, /* from a replica, also one that is adopted */
    QN_CTL_TO_HEIR,       /* from the supervisor that the heir follows */
    QN_CTL_FROM_HEIR,
    QN_CTL_DIRECTIONS
};

/** A receiver's knowledge of its end. */
struct qn_control_link {
    enum qn_control_direction direction;
    uint32_t nodes; /* of the group, 1..QN_NODES_MAX; QN_NODES_MAX: unknown */
};

#define QN_CONTROL_BYTES     32u
#define QN_CONTROL_FAULT_MAX 96u /* of qn_control_fault_text */

/**
 * Write a message. Asserts that it is of a known kind and that its fields are
 * in range (for QN_NODES_MAX nodes).
 *
 * @param bytes  [QN_CONTROL_BYTES] Filled.
 */
void qn_control_encode(const struct qn_control_msg *m, uint8_t *bytes);

/**
 * Read a message and check all of it.
 *
 * @param bytes    [len] Borrowed.
 * @param with_fd  A descriptor came along.
 * @param m        Filled.
 * @return QN_OK; QN_ECORRUPT: m->kind is QN_CTL_INVALID, m->u.invalid says why.
 */
int qn_control_decode(const uint8_t *bytes, size_t len, bool with_fd,
                      const struct qn_control_link *link,
                      struct qn_control_msg *m);

/** True if a message of this kind may be sent with a descriptor (or without
 *  one) in some direction. For assertions of senders. */
bool qn_control_may_send(enum qn_control_kind kind, bool with_fd);

/** "PEER_UP"; "?" of a number that is no kind. */
const char *qn_control_name(uint32_t type);

/** Describe the fault of an invalid message, for a line of the log.
 *  @param text  [QN_CONTROL_FAULT_MAX] Filled. @return text. */
const char *qn_control_fault_text(const struct qn_control_msg *m, char *text);

#endif
