#ifndef QN_KVS_CONTROL_BOOT_H
#define QN_KVS_CONTROL_BOOT_H

/**
 * What the supervisor hands to a replica process, and what they say to each
 * other afterwards.
 *
 * A replica is forked, named, pinned, and gets a struct qn_boot with its
 * sockets already listening. The two then talk over `control`, a Unix
 * SEQPACKET socket, in messages of one fixed size:
 *
 *     replica                      supervisor
 *     HELLO + outbox descriptor ->            own outbox is made
 *                              <-  PEER + outbox descriptor, one per living
 *                                             node; those that have not come
 *                                             yet are announced later
 *                              <-  PEER_DOWN  one per node that is dead
 *                              <-  GO         that is all for now
 *     READY                    ->             it is complete
 *                              <-  READY      to founders: all are; connections
 *                                             are accepted from here on
 *
 *                              <-  PEER_DOWN  that process has ended
 *                              <-  PEER       the next life of a node
 *     SHUTDOWN                 ->             a client wants all to end
 *
 *                              <-  ROLES      who leads, who accepts?
 *     ROLES                    ->             as far as it knows
 *                              <-  LEAD + node: that one shall lead in place of
 *                                             the present leader; said to all
 *
 *     RECOVER + node           ->             a client wants a group that has
 *                                             stopped to go on from that one
 *                              <-  REFUSED    why not; nothing was done
 *                              <-  RECOVERABLE to it: could it?
 *     RECOVERABLE + error      ->             it could, or why not
 *                              <-  RECOVER    to it: all others have ended
 *     RECOVERED + position     ->             from there it goes on
 *
 *                              <-  DRAIN      accept nothing more, answer what
 *                                             was asked, close
 *     DRAINING + limit         ->             heard; so long it will try
 *     DRAINED + unanswered     ->             nothing of its own is left, or
 *                                             it has given up. It goes on
 *                                             turning: others still need it
 *                                             as leader or acceptor
 *                              <-  STOP       all have drained: exit(0)
 *
 * News of a node come in the order of its incarnations: PEER, PEER_DOWN, PEER,
 * ... A replica that was stalled may not hear of incarnations that began and
 * ended meanwhile (kvs/control/news.h). A new life may also hear of one that is
 * dead and whose memory is still needed (the accept word names it): PEER with
 * its outbox, and PEER_DOWN at once; that may be its own predecessor.
 *
 * A replica that cannot start says FAILED with the reason, logs nothing, and
 * exits 1: the supervisor prints the one line. The end of a process closes its
 * socket; a replica whose supervisor has ended goes on without it, and may be
 * adopted by another (kvs/control/adopt.h).
 *
 * SIGTERM to a replica means the same as DRAIN: it drains, says DRAINED and
 * waits for STOP, which comes at once if only this one is to leave. Without a
 * supervisor it exits when it has drained.
 *
 * Threads: each process uses its end from one thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/node.h"
#include "core/place/outbox.h"
#include "core/place/place.h"
#include "kvs/config/config.h"
#include "kvs/config/topology.h"
#include "kvs/listen/connection_placement.h"

enum qn_boot_kind {
    QN_BOOT_HELLO = 1,
    QN_BOOT_READY,
    QN_BOOT_DRAINING,
    QN_BOOT_DRAINED,
    QN_BOOT_SHUTDOWN,
    QN_BOOT_FAILED,
    QN_BOOT_PEER,
    QN_BOOT_PEER_DOWN,
    QN_BOOT_GO,
    QN_BOOT_LISTEN, /* only when a group is adopted */
    QN_BOOT_DRAIN,
    QN_BOOT_STOP,
    /* Only when a group is adopted (kvs/control/adopt.h). */
    QN_BOOT_ADOPT,
    QN_BOOT_CONFIG,
    QN_BOOT_LOCK,
    QN_BOOT_BELL,
    QN_BOOT_FORMAT,
    /* Only when a group is upgraded (kvs/supervisor/supervisor_upgrade.c). */
    QN_BOOT_ROLES,
    QN_BOOT_LEAD,
    /* Only when a group that has stopped is recovered
       (kvs/supervisor/supervisor_recover.c). */
    QN_BOOT_RECOVER,
    QN_BOOT_RECOVERED,
    QN_BOOT_RECOVERABLE,
    QN_BOOT_REFUSED,
};

/**
 * One message: what its fields mean, by kind; the others are 0.
 *
 *                  node    incarnation    error            value
 *     HELLO        whom    in which life
 *     PEER         whom    in which life                   process id
 *     PEER_DOWN    whom    in which life,
 *                          0: in any so far
 *     LISTEN       whom                                    qn_listen_kind
 *     BELL, LEAD   whom
 *     FAILED                              a QN_E*
 *     DRAINING                                             s, shutdown-timeout
 *     DRAINED                             1: the group     replies not given
 *                                         has stopped
 *     ADOPT                               oldest version   a version
 *     FORMAT       qn_format                               a version
 *     ROLES: asked                                         a token
 *            told  leader  epoch          (below)          in sync: a mask
 *     RECOVER      whom    epoch          client's number  a position that it
 *                                                          must have
 *     RECOVERABLE: asked
 *                  whom    epoch          question's       likewise
 *            told  whom    question's     qn_refusal       what it has
 *     RECOVERED                           a QN_E*          a position
 *     REFUSED      whom                   qn_refusal       client's number
 *
 * The error of ROLES: the acceptor, + QN_BOOT_ACTIVE if it leads itself,
 * + QN_BOOT_TOKEN times the question's token.
 */
struct qn_boot_event {
    uint32_t kind; /* enum qn_boot_kind */
    qn_node_t node;
    uint64_t incarnation;
    int64_t error;
    uint64_t value;
};

#define QN_BOOT_ACTIVE 256
#define QN_BOOT_TOKEN  65536

/** A replica's birth certificate. Descriptors are open until the process
 *  ends; the struct and what it points to live as long. */
struct qn_boot {
    const struct qn_config *config; /* kept; checked, nothing left automatic */
    qn_node_t self;
    uint32_t nodes;
    uint64_t incarnation; /* own life, never 0 */
    bool first;           /* a founder of the group; else a later life */
    int control;          /* blocking; see qn_boot_next_event */
    int listen_shared[QN_NODES_MAX]; /* listening. TCP: one each, with
                                  SO_REUSEPORT; Unix: one in all places */
    /* Unix socket, connections placed near (kvs/listen/fd_passing.h): */
    int pass_from[QN_NODES_MAX]; /* of each; -1: none */
    int pass_to[QN_NODES_MAX];
    int listen_own;                /* the replica's own port or PATH.self; -1 */
    int lock;                      /* of the address; -1: it has none */
    int commons_fd;                /* qn_commons_map */
    int doorbell_fd[QN_NODES_MAX]; /* eventfd of each node, non-blocking */
    struct qn_place place;         /* where this process is pinned */
    struct qn_connection_placement placement; /* of new connections */
    int numa_node[QN_NODES_MAX]; /* of each node, for qn_outbox_opts; -1 */
    bool own_cores;              /* no two nodes share a core */
    const struct qn_topology *topology; /* how writes are broadcast */
    qn_time_t spin;                     /* ns to look before parking; 0: none */
    uint32_t tcp_port; /* really bound, shared; 0: Unix socket */
    uint32_t own_port; /* really bound, own; 0: none */
};

/**
 * Give the own outbox away and hear of the others. Blocks until GO.
 *
 * @param own    Borrowed.
 * @param like   What `own` was made with: the others have its shape.
 * @param heard  Called for each PEER, with the mapped outbox (taken: the callee
 *               destroys it) and its descriptor (borrowed), and for each
 *               PEER_DOWN, with NULL. An error ends the exchange.
 * @return QN_OK; QN_EPEERDEAD the supervisor has ended; QN_EABORTED told to
 *         end; QN_ECORRUPT; else as qn_outbox_map and `heard`.
 */
int qn_boot_exchange(const struct qn_boot *b, const struct qn_outbox *own,
                     const struct qn_outbox_opts *like,
                     int (*heard)(void *ctx, const struct qn_boot_event *e,
                                  struct qn_outbox *peer, int fd),
                     void *ctx);

/** Map the outbox that came with a PEER. `fd` borrowed. @return QN_OK;
 *  QN_ECORRUPT if it is nobody else's; else as qn_outbox_map. */
int qn_boot_map(const struct qn_boot *b, const struct qn_boot_event *e, int fd,
                const struct qn_outbox_opts *like, struct qn_outbox **out);

/** Tell the supervisor READY, DRAINING or SHUTDOWN; `value` as in
 *  struct qn_boot_event, else 0. Never blocks. QN_OK, or QN_EPEERDEAD: it has
 *  ended, which is no reason to end too. */
int qn_boot_notify(const struct qn_boot *b, enum qn_boot_kind kind,
                   uint64_t value);

/** Likewise DRAINED. */
int qn_boot_drained(const struct qn_boot *b, uint64_t unanswered,
                    bool group_stopped);

/** Tell the supervisor why this replica cannot start. */
void qn_boot_failed(const struct qn_boot *b, int err);

/** The next message, without blocking. *fd filled: a descriptor to close, or
 *  -1. QN_OK; QN_EAGAIN: none; QN_EPEERDEAD: the supervisor has ended, look no
 *  more; QN_ECORRUPT. */
int qn_boot_next_event(const struct qn_boot *b, struct qn_boot_event *e,
                       int *fd);

/** The messages themselves, for both ends. `fd` -1: none. Never blocks.
 *  QN_OK; QN_EAGAIN: no room; QN_EPEERDEAD; QN_EIO. */
int qn_boot_send(int control, const struct qn_boot_event *e, int fd);

/** Receive one. *fd filled: a descriptor to close (close-on-exec), or -1.
 *  `wait`: block for it. QN_OK; QN_EAGAIN; QN_EPEERDEAD; QN_ECORRUPT. */
int qn_boot_recv(int control, struct qn_boot_event *e, int *fd, bool wait);

#endif
