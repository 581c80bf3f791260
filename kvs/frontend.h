#ifndef QN_KVS_FRONTEND_H
#define QN_KVS_FRONTEND_H

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
 * A connection is in one of these states:
 *   open      its requests are executed as they come; behind its own pending
 *             writes, reads become marks
 *   held      its next request waits for something (enum qn_hold); its socket
 *             is not read meanwhile
 *   closing   nothing is read any more; it goes when its replies are written
 *
 * Threads: one, the loop's.
 */

#include <uv.h>

#include "kvs/info.h"
#include "kvs/replica.h"
#include "kvs/resp.h"

/** Why a connection's next request waits. */
enum qn_hold {
    QN_HOLD_NONE,
    QN_HOLD_BEHIND, /* until its pending submissions are complete */
    QN_HOLD_INDEX,  /* until this replica has applied the read index */
    QN_HOLD_ROOM,   /* until the replica takes submissions again */
    QN_HOLD_OUTPUT, /* until the peer has read its replies */
    QN_HOLD_ANSWER, /* until other replicas have answered, or WAIT is over */
};

struct qn_frontend;

struct qn_conn {
    union {
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } uv;
    struct qn_frontend *fe;
    struct qn_conn *prev, *next;             /* all connections */
    struct qn_conn *ready_next, *dirty_next; /* this turn's lists */
    bool in_ready, in_dirty, reading, writing, closed;
    bool closing;  /* close once everything is written */
    bool eof;      /* the peer sends nothing more */
    uint8_t proto; /* 2 or 3 */
    enum qn_hold hold;
    qn_slot_t index; /* QN_HOLD_INDEX: what it waits for */
    uint32_t db;
    uint32_t pending;                            /* submissions not complete */
    bool reply_off, reply_skip, reply_skip_next; /* CLIENT REPLY */
    bool no_evict, no_touch;

    uint8_t *input; /* pooled buffer of this turn, or NULL */
    size_t input_len;
    struct qn_resp_reader in;
    struct qn_slice *held_argv; /* the request that waits, a block of its own */
    uint32_t held_argc;         /* 0: no request is kept */
    struct qn_buf out;          /* replies not yet handed to the socket */
    struct qn_buf sending;      /* being written by libuv */
    uv_write_t write_req;

    uint64_t id; /* unique over all replicas: counter * 64 + node */
    char *name;  /* CLIENT SETNAME, or NULL */
    char *lib_name, *lib_ver;
    char addr[64], laddr[64];
    uint64_t since_ms; /* loop time */
    uint64_t active_ms;
    uint64_t commands, bytes_in, bytes_out;
    const struct qn_cmd *last_cmd; /* or NULL */
    struct qn_buf question;        /* asked of all replicas, until answered; see
                                      kvs/wide.h */
    size_t answer_at;     /* where a late reply began; SIZE_MAX: none yet */
    bool answer_mute;     /* CLIENT REPLY OFF or SKIP for a late reply */
    qn_slot_t last_write; /* slot of its last complete write, for WAIT */
    struct qn_conn *wait_next; /* WAIT: list of the server */
    bool waiting;              /* in that list */
    int64_t wait_want;         /* replicas */
    qn_time_t wait_until;      /* ns, or QN_TIME_NEVER */
};

struct qn_frontend_opts {
    uv_loop_t *loop;            /* kept */
    struct qn_replica *replica; /* kept */
    qn_node_t self;
    uint32_t nodes;
    bool linearizable;
    struct qn_server *server; /* what local commands need to know */
};

/** Rates are differences over about a second. */
struct qn_rates {
    qn_time_t since; /* ns, start of the running interval */
    uint64_t commands, bytes_in, bytes_out; /* counts at that time */
};

struct qn_frontend {
    struct qn_frontend_opts o;
    struct qn_conn *all;           /* list */
    struct qn_conn *ready, *dirty; /* this turn's lists */
    struct qn_conn **ready_end;
    struct qn_fifo_entry *fifo;    /* who gets the next completion */
    uint32_t fifo_head, fifo_tail; /* free-running */
    uint8_t **pool;                /* free input buffers */
    uint32_t pool_count, pool_cap;
    struct qn_buf scratch; /* replies nobody wants */
    struct qn_buf error;   /* reply to what is no command */
    struct qn_resp_limits limits;
    uint64_t clients; /* open connections */
    uint64_t held;    /* connections with hold != NONE */
    uint64_t next_id;
    uint64_t random;
    bool draining;
    bool again;           /* something can go on at once */
    uint32_t clients_max; /* this replica's share of maxclients */
    uint64_t turns;
    /* Counters of this replica as INFO wants them; the levels among them are
     * filled in when somebody asks (kvs/wide.c). Times of commands are
     * estimates: one request in 64 is timed, and counts for 64. */
    struct qn_info_part part;
    struct qn_rates rates;
};

int qn_frontend_init(struct qn_frontend *fe, const struct qn_frontend_opts *o);
/** Close all connections, whatever they wait for. The loop is to run once more
 *  before fini, so that libuv lets go of them. */
void qn_frontend_close_all(struct qn_frontend *fe);
void qn_frontend_fini(struct qn_frontend *fe);

/** The configuration has changed: take over the limits. */
void qn_frontend_configured(struct qn_frontend *fe);

/** A listening socket has a connection to accept (uv_connection_cb). */
void qn_frontend_accept(struct qn_frontend *fe, uv_stream_t *listener,
                        bool is_unix);

/** One turn. */
void qn_frontend_run(struct qn_frontend *fe, qn_time_t now, uint64_t wall_ms);

/** True if the next turn is due at once. To be asked right before the loop may
 *  block: libuv also calls back (written, closed) between a turn and then. */
bool qn_frontend_again(const struct qn_frontend *fe);

/** Where the reply of a connection held for QN_HOLD_ANSWER goes: once, right
 *  before qn_conn_answered. */
struct qn_buf *qn_conn_answer(struct qn_conn *c);

/** Resume a connection held for QN_HOLD_ANSWER, its reply being written. One
 *  that was closed meanwhile is let go; it must not be used afterwards. */
void qn_conn_answered(struct qn_conn *c);

/** Close now (KILL) or after its replies are written. */
void qn_conn_close(struct qn_conn *c);
void qn_conn_close_after_reply(struct qn_conn *c);

/** By id; NULL: gone. */
struct qn_conn *qn_frontend_find(struct qn_frontend *fe, uint64_t id);

/** Bring the rates in `part` up to date. */
void qn_frontend_rates(struct qn_frontend *fe, qn_time_t now);

/** Stop reading; close each connection once its pending work is answered. */
void qn_frontend_drain(struct qn_frontend *fe);
/** True when drained: no connection is left. */
bool qn_frontend_drained(const struct qn_frontend *fe);

#endif
