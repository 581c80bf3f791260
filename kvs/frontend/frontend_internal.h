#ifndef QN_KVS_FRONTEND_FRONTEND_INTERNAL_H
#define QN_KVS_FRONTEND_FRONTEND_INTERNAL_H

/**
 * What the parts of the front end share:
 *
 *     frontend.c  the turn, its lists, completions, accepting
 *     conn.c      a connection: life, reading, writing, holding
 *     request.c   requests: found, submitted or answered
 */

#include "kvs/frontend/frontend.h"

/* ---- frontend.c ---------------------------------------------------------- */

/** It may have a request to run: look at it in this turn or the next. */
void qn_frontend_ready(struct qn_conn *c);

/** It may have something to write, or to close, at the end of the turn. */
void qn_frontend_dirty(struct qn_conn *c);

/** `cmd` was submitted for the connection; a completion is to come. */
void qn_frontend_expect(struct qn_conn *c, const struct qn_cmd *cmd);

/** A reply that nobody gets: empty, bounded like that of a client. */
struct qn_buf *qn_frontend_scratch(struct qn_frontend *fe);

/* ---- conn.c -------------------------------------------------------------- */

/** Free a closed connection, unless something still refers to it. */
void qn_conn_free_if_done(struct qn_conn *c);

/** Read its socket, or not. May close it. */
void qn_conn_reading(struct qn_conn *c, bool on);
/** Of its socket only what has come by now is still read; then as if the peer
 *  had closed its sending side. */
void qn_conn_drain(struct qn_conn *c);

/** The turn's bytes become the reader's own; the intake gets its room back.
 *  @return QN_OK, or why the reader could not keep them. */
int qn_conn_settle(struct qn_conn *c);

/** Bytes of replies that the socket has not taken. */
size_t qn_conn_unsent(const struct qn_conn *c);

/** Bound its replies by client-output-buffer-limit: what it was, or what is
 *  being sent, has changed. */
void qn_conn_bound(struct qn_conn *c);

/** Close it now, because it asks for more than it may have; say so, once a
 *  second at most. */
void qn_conn_drop(struct qn_conn *c, const char *why);

/** Write its replies; close it when that was the last thing. */
void qn_conn_flush(struct qn_conn *c);

/** Run no request until what the next one waits for has come. `index` is that
 *  of QN_HOLD_INDEX. */
void qn_conn_hold(struct qn_conn *c, enum qn_hold why, qn_slot_t index);

/** Is what the connection waited for there? */
bool qn_conn_hold_over(struct qn_conn *c);

/* ---- request.c ----------------------------------------------------------- */

/** Run the requests of one connection until it holds or needs more bytes. Reads
 *  are served once `index` is applied. May close it. */
void qn_request_run_all(struct qn_conn *c, qn_slot_t index);

/** Count what a reply says: errors; hits and misses of reads of one key. `cmd`
 *  is NULL for a request that is no command. */
void qn_request_note(struct qn_frontend *fe, const struct qn_cmd *cmd,
                     struct qn_slice reply);

/** The reply that begins at `start`; nothing if its memory was lacking. */
static inline struct qn_slice qn_request_reply(const struct qn_buf *b,
                                               size_t start)
{
    return b->oom ? (struct qn_slice){0}
                  : (struct qn_slice){b->data + start, b->len - start};
}

#endif
