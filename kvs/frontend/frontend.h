#ifndef QN_KVS_FRONTEND_FRONTEND_H
#define QN_KVS_FRONTEND_FRONTEND_H

/**
 * The front end: connections of one replica on a libuv loop.
 *
 * It reads sockets, cuts requests, answers what it can (local commands, reads
 * of the own replica) and submits the rest. It runs in turns, and all work of
 * a turn is done in one place, qn_frontend_run(), after the sockets were read:
 *
 *     read sockets   (libuv callbacks only keep the bytes)
 *     index = load(read_index)         once, after the turn's last byte
 *     replica turn                     receive, apply
 *     completions -> connections
 *     run inputs                       reads are served if applied >= index
 *     flush channels, write replies
 *
 * Threads: one, the loop's.
 */

#include <uv.h>

#include "kvs/commands/cmd_latency_sample.h"
#include "kvs/frontend/conn.h"
#include "kvs/frontend/loop_stats.h"
#include "kvs/introspect/info.h"
#include "kvs/replica/replica.h"
#include "kvs/session/turn.h"

/** What the front end asks of the server around it. `ctx` is that of struct
 *  qn_frontend_opts. All run in the loop's thread and return at once. */
struct qn_frontend_ops {
    /** Is this write, which has no keys, answered by run_local? All commands
     *  that are neither writes nor reads are. */
    bool (*takes)(const struct qn_cmd_call *call);
    /** Run it; its arity was checked, and nothing is pending on the connection.
     *  The reply goes to call->reply at once. Or the connection is blocked
     *  (qn_session_block_remote), and it comes later, by qn_conn_answer. */
    void (*run_local)(struct qn_conn *c, struct qn_cmd_call *call);
    /** Clients that the other replicas serve, each at most `most`. */
    uint64_t (*clients_elsewhere)(void *ctx, uint64_t most);
    /** Publish how many clients this replica serves. */
    void (*publish_clients)(void *ctx, uint64_t clients);
};

struct qn_frontend_opts {
    uv_loop_t *loop;            /* kept */
    struct qn_replica *replica; /* kept */
    qn_node_t self;
    uint32_t nodes;
    bool linearizable;
    struct qn_frontend_ops ops;
    void *ctx; /* of ops; kept */
};

/** Rates are differences over about a second. */
struct qn_rates {
    qn_time_t since; /* ns, start of the running interval */
    uint64_t commands, bytes_in, bytes_out; /* counts at that time */
};

struct qn_frontend {
    struct qn_frontend_opts o;
    struct qn_conn *all;     /* list */
    struct qn_turn turn;     /* which of them run and flush, and how much */
    struct qn_intake intake; /* where sockets are read into */
    struct qn_resp_limits limits;
    uint64_t clients; /* open connections */
    uint64_t
        admitted; /* of these, those that are served (kvs/frontend/admit.h) */
    uint64_t next_id;
    uint64_t random;
    bool draining;
    uint64_t turns;
    struct qn_loop_stats loop_stats; /* how long they are */
    /* Counters of this replica as INFO wants them; the levels among them, and
     * the times of commands, are filled in when a client asks
     * (kvs/local/info_command.c). */
    struct qn_info_part part;
    struct qn_cmd_latency_sample
        clock; /* what was done here, submitting included */
    struct qn_rates rates;
    qn_time_t dropped_at;    /* ns, of the last line about a dropped client */
    uint64_t dropped_unsaid; /* since then */
};

int qn_frontend_init(struct qn_frontend *fe, const struct qn_frontend_opts *o);
/** Close all connections, whatever they wait for. The loop is to run once more
 *  before fini, so that libuv lets go of them. */
void qn_frontend_close_all(struct qn_frontend *fe);
/** Close all before they are answered. @return replies that are not given. */
uint64_t qn_frontend_give_up(struct qn_frontend *fe);
void qn_frontend_fini(struct qn_frontend *fe);

/** Completions are taken as they come, not only at the end of the turn. */
void qn_frontend_completions(struct qn_frontend *fe);
/** The same, then run the deferred read that is next, into its session's
 *  replies. */
void qn_frontend_deferred_read(struct qn_frontend *fe, struct qn_store *store,
                               struct qn_cmd_call *call);

/** The configuration has changed: take over the limits. */
void qn_frontend_configured(struct qn_frontend *fe);

/** A listening socket has a connection to accept (uv_connection_cb). */
void qn_frontend_accept(struct qn_frontend *fe, uv_stream_t *listener,
                        bool is_unix);

/** A connection that was accepted already: `fd` is taken. */
void qn_frontend_take(struct qn_frontend *fe, int fd, bool is_unix);

/** The loop has woken up: the turn begins, unless it has begun. */
void qn_frontend_wake(struct qn_frontend *fe);

/** One turn. */
void qn_frontend_run(struct qn_frontend *fe, qn_time_t now, uint64_t wall_ms);

/** True if the next turn is due at once. To be asked right before the loop may
 *  block: libuv also calls back (written, closed) between a turn and then. */
bool qn_frontend_again(const struct qn_frontend *fe);

/** By id; NULL: gone. */
struct qn_conn *qn_frontend_find(struct qn_frontend *fe, uint64_t id);

/** Bring the rates in `part` up to date. */
void qn_frontend_rates(struct qn_frontend *fe, qn_time_t now);

/** Read what has come by now and nothing more; close each connection once it is
 *  answered. */
void qn_frontend_drain(struct qn_frontend *fe);
/** True when drained: no connection is left. */
bool qn_frontend_drained(const struct qn_frontend *fe);

#endif
