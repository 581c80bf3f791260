#ifndef QN_KVS_SERVER_SERVER_H
#define QN_KVS_SERVER_SERVER_H

/**
 * One replica process: everything it is made of, wired to a libuv loop.
 *
 * Made from a struct qn_replica_spec by qn_replica_main, which returns when the
 * replica is told to stop. Local commands find here what they answer from.
 */

#include <uv.h>

#include "core/base/rate_limit.h"
#include "kvs/control/control_channel.h"
#include "kvs/frontend/frontend.h"
#include "kvs/frontend/loop_deadline.h"
#include "kvs/frontend/wait_queue.h"
#include "kvs/introspect/fanout_query.h"
#include "kvs/replica/replica.h"
#include "kvs/resources/trim.h"
#include "kvs/server/events.h"
#include "kvs/server/machine/adoptee.h"
#include "kvs/server/machine/drain.h"
#include "kvs/server/machine/member_requests.h"
#include "kvs/server/machine/members.h"
#include "kvs/server/machine/recovery_request.h"
#include "kvs/server/machine/role_log.h"
#include "kvs/server/machine/startup.h"
#include "kvs/server/machine/voter_order.h"
#include "kvs/server/server_accept.h"
#include "kvs/snapshot/snapshot_content.h"
#include "paxos/member/member.h"

union qn_listener {
    uv_stream_t stream;
    uv_tcp_t tcp;
    uv_pipe_t pipe;
};

/** The commands that a replica answers itself (kvs/local/local_commands.h): the
 * server is made with them and does not know them. */
struct qn_server_local {
    bool (*takes)(const struct qn_cmd_call *call); /* see qn_frontend_ops */
    void (*run)(struct qn_conn *c, struct qn_cmd_call *call);
    int (*init)(struct qn_server *s); /* the front end is there */
};

/** The event loop and what hangs on it. */
struct qn_server_handles {
    uv_loop_t loop;
    uv_poll_t doorbell_poll;
    uv_poll_t control_poll;
    uv_poll_t adopt_poll; /* active: the adoptee listens */
    uv_prepare_t prepare;
    uv_check_t check;
    uv_idle_t idle;                /* active: the loop does not block */
    struct qn_loop_deadline alarm; /* the next turn, at the latest */
    uv_signal_t terminate;
    union qn_listener listener[2]; /* the shared address, the replica's own */
    int listeners;
};

/** Owns the parts and connects them. Each part decides by itself, knows no
 *  other part, and has its own tests; a server_<part>.c is its shell. */
struct qn_server {
    /* Given. */
    const struct qn_replica_spec *boot;
    const struct qn_server_local *local;
    const struct qn_transport *transport; /* the configured one */

    /* Parts that are pure. */
    struct qn_startup startup;           /* kvs/main/replica_main.c */
    struct qn_drain drain;               /* server_drain.c */
    struct qn_adoptee adoptee;           /* server_adopt.c */
    struct qn_recovery_request recovery; /* server_recover.c */
    struct qn_role_log role_log;         /* server_replica.c, server_stop.c */
    struct qn_members members;           /* server_members.c */
    struct qn_voter_order order;         /* likewise */
    struct qn_member_requests requests;  /* server_order.c */
    struct qn_wait_queue waits;          /* server_wait.c */
    struct qn_trim trim;                 /* server_trim.c */

    /* Parts that own descriptors or memory. */
    struct qn_member *member; /* of the group; server_peers.c */
    int adopt_fd; /* where adopters come to; -1: cannot be adopted */
    struct qn_server_accept accept;
    struct qn_server_events events;
    struct qn_replica *replica;
    struct qn_frontend frontend;
    struct qn_fanout *ask;               /* questions between replicas */
    struct qn_snapshot_content *content; /* of snapshots from and to them */

    uint64_t seats_client; /* whose list of members comes; 0: none does */
    struct qn_buf seats_text;

    struct qn_server_handles uv;
    bool turn_wanted; /* the loop must not block before the next turn */

    /* For people. */
    struct qn_rate_limit lags; /* lines about lagging behind */
    char run_id[41];           /* hexadecimal, the same on all replicas */
    char reason[64];           /* room for INFO */
    uint64_t growths;          /* splits of the store until the last turn */
    uint64_t seed;             /* of everything random */
    qn_time_t started;         /* ns */
    uint64_t started_wall_ms;
};

/** What a replica does, in its outbox for people to see. */
enum qn_server_phase {
    QN_SERVER_STARTING,
    QN_SERVER_SERVING,
    QN_SERVER_DRAINING,
    QN_SERVER_ENDED,
};

void qn_server_phase_set(struct qn_server *s, enum qn_server_phase phase);

/** Begin to drain: accept nothing more, answer what was asked, close; for
 *  `shutdown-timeout` at most. Once more does no harm. */
void qn_server_drain(struct qn_server *s);

/** A turn of draining: tell when nothing is left, or give up when the time is
 *  over. @return when to look again; QN_TIME_NEVER: nothing to look for. */
qn_time_t qn_server_drain_turn(struct qn_server *s, qn_time_t now);

/** Bytes that store and log use; O(1). */
uint64_t qn_server_used_memory(struct qn_server *s);

/** Once a turn: after some idle time, give free memory back to the system; that
 *  may take about 10 ms. @return when to come again; QN_TIME_NEVER. */
qn_time_t qn_server_trim_turn(struct qn_server *s, qn_time_t now);

/** The supervisor has ended: a drained replica stops. */
void qn_server_drain_alone(struct qn_server *s);

/** Leave the loop. */
void qn_server_stop(struct qn_server *s);

/** Give back, in reverse order, whatever was made of `s`; also after a start
 *  that failed halfway. Its loop is initialized and does not run. */
void qn_server_fini(struct qn_server *s);

/* Peers (kvs/server/server_peers.c). */

/** True if the memory acceptor decides. */
bool qn_server_by_memory(const struct qn_server *s);

/** True if replicas read each other's memory for agreement: outboxes, the read
 *  index, liveness words. False: messages only (PROTOCOL.md 3.7), and the
 *  supervisor tells of deaths. */
bool qn_server_shares(const struct qn_server *s);

/** Make this replica's member, and meet the others. */
int qn_server_peers_meet(struct qn_server *s);

/** The supervisor says that a peer has ended, or begun. `fd` borrowed. */
void qn_server_peer_down(struct qn_server *s, const struct qn_ctl_peer_down *e);
void qn_server_peer_up(struct qn_server *s, const struct qn_ctl_peer_up *e,
                       int fd);

/* The members of the group (kvs/server/server_members.c). */

/** Mask of the voters, as this replica knows them; those that began the group
 *  until it knows more. */
uint64_t qn_server_voters(const struct qn_server *s);

/** Mask of the seats that are taken: voters, and present replicas without a
 *  vote; this one among them. */
uint64_t qn_server_members(const struct qn_server *s);

/** Has each of these (mask) a core of its own? */
bool qn_server_own_cores(const struct qn_server *s, uint64_t members);

/** Once a turn: follow what has changed. @return when to come again, at the
 *  latest; QN_TIME_NEVER. */
qn_time_t qn_server_members_turn(struct qn_server *s, qn_time_t now);

/** Tell the supervisor which replicas vote, if this one knows.
 *  @return QN_OK, also if it does not; as qn_control_send. */
int qn_server_voters_tell(struct qn_server *s);

/** The supervisor orders a change of the voters; VOTER_CHANGED answers. */
void qn_server_voter_change(struct qn_server *s,
                            const struct qn_ctl_voter_change *e);

/* Members that an operator adds and removes (kvs/server/server_order.c). */

/** QUOIN MEMBER LIST | ADD [FORCE] | REMOVE replica [FORCE]: the supervisor
 * does it; the connection is held until it has answered. */
void qn_quoin_member(struct qn_conn *c, struct qn_cmd_call *call);

/** The supervisor names a seat, and has answered; has ended; and this replica
 *  is a member no more. */
void qn_server_member_seat(struct qn_server *s,
                           const struct qn_ctl_member_seat *e);
void qn_server_member_answer(struct qn_server *s,
                             const struct qn_ctl_member_answer *e);
void qn_server_member_alone(struct qn_server *s);
void qn_server_member_left(struct qn_server *s);

/* Replica and front end (kvs/server/server_replica.c). */

/** Make them, on what the peers have given. */
int qn_server_replica_make(struct qn_server *s);

/** Log that the group has stopped, or waits, if that is for this replica to
 *  say. (kvs/server/server_stop.c) */
void qn_server_stop_turn(struct qn_server *s);

/** Once a turn: log that this replica has become the leader, or that the group
 *  has stopped. */
void qn_server_roles_turn(struct qn_server *s);

/** Tell the supervisor which replicas are leader and acceptor; `token` is its
 *  question's. */
void qn_server_roles_tell(struct qn_server *s, uint32_t token);

/* A group that has stopped (kvs/server/server_recover.c). */

/** QUOIN RECOVER epoch replica position: ask the supervisor to have it go on,
 *  and hold the connection until that is refused, or goes on here. */
void qn_quoin_recover(struct qn_conn *c, struct qn_cmd_call *call);

/** The supervisor asks whether this replica could, in that epoch and with all
 *  up to that position. */
void qn_server_recoverable(struct qn_server *s,
                           const struct qn_ctl_recover_query *e);

/** The supervisor says that all other replicas have ended: go on from here. */
void qn_server_recover(struct qn_server *s);

/** The supervisor says why not; and it has ended, which is a refusal too. */
void qn_server_refused(struct qn_server *s,
                       const struct qn_ctl_recover_refused *e);
void qn_server_recover_alone(struct qn_server *s);

/** Why leader or acceptor changed last: "replica 0 had ended"; "": they never
 *  did. @return text [cap]. */
const char *qn_server_reason(const struct qn_driver_status *d, char *text,
                             size_t cap);

/* A new supervisor (kvs/server/server_adopt.c). */

/** Open the socket for adopters, before any process knows of this replica. */
void qn_server_adopt_open(struct qn_server *s);

/** The loop is there. */
int qn_server_adopt_begin(struct qn_server *s);

/** The supervisor, or an adopter, has hung up: wait for the next one. */
void qn_server_adopt_wait(struct qn_server *s);

/** An adopter sends ADOPT, or START. */
void qn_server_adopt_event(struct qn_server *s, const struct qn_control_msg *e);

void qn_server_adopt_fini(struct qn_server *s);

/** Hear the supervisor, from now on (kvs/server/server_control.c). */
void qn_server_control_start(struct qn_server *s);

/* Its clients, as all replicas count them (kvs/server/server_clients.c); `ctx`
 * is the struct qn_server. */

/** Clients that the other living replicas serve. A figure above `most` was
 *  overwritten by a faulty process and counts as 0. */
uint64_t qn_server_clients_elsewhere(void *ctx, uint64_t most);

/** Publish how many clients this replica serves. */
void qn_server_clients_publish(void *ctx, uint64_t clients);

/* WAIT (kvs/server/server_wait.c). */

/** Answer `c` once `want` other replicas have applied its last write, or
 *  after `ms` (0: without limit). Holds the connection. */
void qn_server_wait(struct qn_wait_queue *q, struct qn_conn *c, int64_t want,
                    uint64_t ms);

/** Once a turn: answer those for which it is over. @return when to come again;
 *  QN_TIME_NEVER: no connection waits. */
qn_time_t qn_server_wait_turn(struct qn_wait_queue *q,
                              const struct qn_driver *driver, uint32_t nodes,
                              bool draining, qn_time_t now);

#endif
