#ifndef QN_KVS_FRONTEND_FRONTEND_INTERNAL_H
#define QN_KVS_FRONTEND_FRONTEND_INTERNAL_H

/**
 * What the parts of the front end share:
 *
 *     frontend.c     the turn, completions, the list of all connections
 *     accept.c       new connections
 *     conn.c         the socket of a session
 *     session_ops.c  what a session asks of the replica and of the server
 */

#include "kvs/frontend/frontend.h"

/* ---- conn.c -------------------------------------------------------------- */

/** Free a closed connection, unless something still refers to it. */
void qn_conn_free_if_done(struct qn_conn *c);

/** Read its socket, or not. May close it. */
void qn_conn_reading(struct qn_conn *c, bool on);

/** Of its socket only what has come by now is still read; then as if the peer
 *  had closed its sending side. */
void qn_conn_drain(struct qn_conn *c);

/** Run its requests, and read its socket or not, as the state says then. */
void qn_conn_run(struct qn_conn *c);

/** Write its replies; close it when that was the last thing. */
void qn_conn_flush(struct qn_conn *c);

/* ---- session_ops.c ------------------------------------------------------- */

/** Their `ctx` is a struct qn_frontend. */
extern const struct qn_session_ops qn_frontend_session_ops;

#endif
