#ifndef QN_KVS_FRONTEND_CONN_H
#define QN_KVS_FRONTEND_CONN_H

/**
 * A connection of the front end: the socket of a session.
 *
 * The session (kvs/session/session.h) has the state, the requests and the
 * replies. The connection moves its bytes through libuv and does what the state
 * says: it reads a session that wants input, writes what the session replies,
 * and closes one that is finished.
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
#include "kvs/session/session.h"

struct qn_frontend;

struct qn_conn {
    union {
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } uv;
    struct qn_frontend *fe;      /* NULL: libuv has let go of it */
    struct qn_conn *prev, *next; /* all connections */
    bool reading, writing;
    bool admitted; /* counts as a client (kvs/frontend/admit.h) */
    bool no_evict, no_touch;

    struct qn_client_session session;
    struct qn_intake_chunk *input; /* where this turn's bytes are, or NULL */
    size_t input_len;
    struct qn_buf sending; /* being written by libuv */
    uv_write_t write_req;

    uint64_t id; /* unique over all replicas: counter * 64 + node */
    char *name;  /* CLIENT SETNAME, or NULL */
    char *lib_name, *lib_ver;
    char addr[64], laddr[64];
    uint64_t since_ms; /* loop time */
    uint64_t active_ms;
    uint64_t bytes_in, bytes_out;
    struct qn_buf question;  /* asked of all replicas, until answered; see
                                kvs/local/cluster_query.h */
    struct qn_waiter waiter; /* WAIT */
};

static inline struct qn_conn *qn_conn_of(struct qn_client_session *s)
{
    return QN_CONTAINER_OF(s, struct qn_conn, session);
}

static inline bool qn_conn_is_closed(const struct qn_conn *c)
{
    return qn_session_is_closed(&c->session);
}

/** Where the late reply of a connection goes that is blocked for
 *  QN_BLOCKED_REMOTE: once, right before qn_conn_answered. */
struct qn_buf *qn_conn_answer(struct qn_conn *c);

/** Resume a connection blocked for QN_BLOCKED_REMOTE: its reply is written. One
 *  that was closed meanwhile is freed; it must not be used afterwards. */
void qn_conn_answered(struct qn_conn *c);

/** Close now (KILL). Closing twice changes nothing. */
void qn_conn_close(struct qn_conn *c);
/** Close after its replies are written. It is RUN. */
void qn_conn_close_after_reply(struct qn_conn *c);

#endif
