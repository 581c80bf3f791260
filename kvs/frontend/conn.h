#ifndef QN_KVS_FRONTEND_CONN_H
#define QN_KVS_FRONTEND_CONN_H

/**
 * A connection of the front end.
 *
 * It is in one of these states:
 *   open      its requests are executed as they come; behind its own pending
 *             writes, reads become marks
 *   held      its next request waits for something (enum qn_hold); its socket
 *             is not read meanwhile
 *   closing   nothing is read any more; it goes when its replies are written
 *
 * A closed connection is freed when nothing refers to it any more: libuv, the
 * lists of the turn, submissions that are not complete, WAIT.
 *
 * Threads: one, the loop's.
 */

#include <uv.h>

#include "core/base/clock.h"
#include "core/node.h"
#include "kvs/base/buf.h"
#include "kvs/commands/command.h"
#include "kvs/frontend/intake.h"
#include "kvs/frontend/wait_queue.h"
#include "kvs/resp/resp.h"

/** Why a connection's next request waits. */
enum qn_hold {
    QN_HOLD_NONE,
    QN_HOLD_BEHIND, /* until its pending submissions are complete */
    QN_HOLD_INDEX,  /* until this replica has applied the read index */
    QN_HOLD_ROOM,   /* until the replica takes submissions again */
    QN_HOLD_TURN,   /* until the next turn: this one has done enough */
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
    bool admitted; /* counts as a client (kvs/frontend/admit.h) */
    bool closing;  /* close once everything is written */
    bool eof;      /* the peer sends nothing more, or is not heard any more */
    uint8_t proto; /* 2 or 3 */
    enum qn_hold hold;
    qn_slot_t index;    /* QN_HOLD_INDEX: what it waits for */
    uint32_t hold_tick; /* QN_HOLD_INDEX: since when (qn_replica_tick) */
    bool overdue; /* a request has, for commit-timeout; and there are still
                     bytes that came with it */
    uint32_t db;
    uint32_t pending;                            /* submissions not complete */
    uint32_t marks;                              /* reads among them */
    bool reply_off, reply_skip, reply_skip_next; /* CLIENT REPLY */
    bool no_evict, no_touch;

    struct qn_intake_chunk *input; /* where this turn's bytes are, or NULL */
    size_t input_len;
    size_t last_bytes; /* draining: so many are still read of the socket */
    struct qn_resp_reader in;
    struct qn_buf out;     /* replies not yet handed to the socket */
    struct qn_buf sending; /* being written by libuv */
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
                                      kvs/local/cluster_query.h */
    size_t answer_at;        /* where a late reply began; SIZE_MAX: none yet */
    bool answer_mute;        /* CLIENT REPLY OFF or SKIP for a late reply */
    qn_slot_t last_write;    /* slot of its last complete write, for WAIT */
    struct qn_waiter waiter; /* WAIT */
};

/** Where the reply of a connection held for QN_HOLD_ANSWER goes: once, right
 *  before qn_conn_answered. */
struct qn_buf *qn_conn_answer(struct qn_conn *c);

/** Resume a connection held for QN_HOLD_ANSWER, its reply being written. One
 *  that was closed meanwhile is let go; it must not be used afterwards. */
void qn_conn_answered(struct qn_conn *c);

/** Close now (KILL) or after its replies are written. */
void qn_conn_close(struct qn_conn *c);
void qn_conn_close_after_reply(struct qn_conn *c);

#endif
