#ifndef QN_KVS_SESSION_TURN_H
#define QN_KVS_SESSION_TURN_H

/**
 * What a front end does in one turn: which sessions run, which flush, how much
 * of each kind, and whether the next turn is due at once. Without sockets.
 *
 * A session is in the run list when it may have a request to run, in the flush
 * list when it may have replies to write or is to close. A turn takes both
 * lists as they are; what is added meanwhile belongs to the next turn. What a
 * turn may do is bounded (QN_TURN_*), and the rest of a list stays in front. So
 * no session waits for the flood of another one.
 *
 *     ... completions: qn_turn_complete
 *     qn_turn_begin_inputs(t, read_index, applied, has_store);
 *     while ((s = qn_turn_next_input(t)) != NULL) {
 *         qn_session_run(&t->env, s), qn_session_save_partial_input(...)
 *         qn_turn_ran(t, s);
 *     }
 *     ... the replica sends what was submitted; further completions
 *     qn_turn_begin_outputs(t);
 *     while ((s = qn_turn_next_output(t)) != NULL) { write its replies }
 *     qn_turn_end(t, applied);
 *
 * Keys that several sessions read are looked up in memory that is rarely in a
 * cache. So those of a batch's next QN_SESSION_AHEAD are asked for together,
 * before the first one runs.
 *
 * Linearizability. The read index is passed once per turn, and was loaded after
 * the last byte of the turn had been received. So what was acknowledged or read
 * before a request of this turn was sent lies at or below it.
 *
 * Pure, but for the operations of the sessions. Threads: one.
 */

#include "kvs/session/session.h"

/**
 * What one turn may do of each kind, so that no turn is long; the rest follows
 * in the next one, which comes at once. About 1 us each, writes 4 us.
 */
#define QN_TURN_READS    256u /* sockets read; 16 KiB count as one more */
#define QN_TURN_REQUESTS 512u /* of few arguments and short replies */
#define QN_TURN_WRITES   64u  /* sockets written; 16 KiB count as one more */
#define QN_TURN_BYTES    16384u

enum qn_turn_phase {
    QN_TURN_PHASE_SOCKETS, /* between the turns: sockets are read */
    QN_TURN_PHASE_INPUTS,
    QN_TURN_PHASE_OUTPUTS,
};

struct qn_turn {
    enum qn_turn_phase phase;
    struct qn_session_env env;
    struct qn_work_list run_list, flush_list;
    struct qn_work_list batch; /* taken of one of them; else empty */
    uint32_t ahead;            /* of the batch, whose keys were looked at */
    int64_t reads_left;        /* of this turn, until the next one begins */
    int64_t writes_left;
    bool again; /* the next turn is due at once */
};

/** `t` all zero. @param ops, ctx, part  Kept; as in struct qn_session_env.
 *  @return QN_OK, QN_ENOMEM. */
int qn_turn_init(struct qn_turn *t, const struct qn_session_ops *ops, void *ctx,
                 struct qn_info_part *part);
/** All sessions are CLOSED: let go of one reference to one. @return that one,
 *  which may have others; NULL: there is none left. */
struct qn_client_session *qn_turn_release(struct qn_turn *t);
/** Free its memory. Nothing is left to release. */
void qn_turn_fini(struct qn_turn *t);

/* ---- the sockets, before the turn ---------------------------------------- */

/** True if one more socket may be read before the turn. */
static inline bool qn_turn_may_read(const struct qn_turn *t)
{
    return t->reads_left > 0;
}

/** A socket was read: n bytes. */
static inline void qn_turn_count_read(struct qn_turn *t, size_t n)
{
    t->reads_left -= 1 + (int64_t)(n / QN_TURN_BYTES);
}

/** It may have a request to run: look at it in this turn or the next. */
static inline void qn_turn_run_later(struct qn_turn *t,
                                     struct qn_client_session *s)
{
    if (!qn_session_is_closed(s)) {
        qn_work_list_add(&t->run_list, &s->run_link);
    }
}

/** It may have replies to write, or is to close. */
static inline void qn_turn_flush_later(struct qn_turn *t,
                                       struct qn_client_session *s)
{
    if (!qn_session_is_closed(s)) {
        qn_work_list_add(&t->flush_list, &s->flush_link);
    }
}

/** The socket has taken replies of it. */
void qn_turn_sent(struct qn_turn *t, struct qn_client_session *s);

/** It has its late reply (qn_session_late_reply_done): it goes on. */
void qn_turn_late_reply_done(struct qn_turn *t, struct qn_client_session *s);

/* ---- the turn ------------------------------------------------------------ */

/** The sessions of the run list may run. @param applied  Slots up to it are
 *  applied. @param has_store  False: commands that need it reply LOADING. */
void qn_turn_begin_inputs(struct qn_turn *t, qn_slot_t read_index,
                          qn_slot_t applied, bool has_store);

/**
 * The next session to look at.
 *
 * @return NULL: none, or the budget is spent. It is RUN; or CLOSING, and then
 *         has nothing to run; or CLOSED, and may be freed if nothing refers to
 *         it any more.
 */
struct qn_client_session *qn_turn_next_input(struct qn_turn *t);

/** It has run: look at it again if it is blocked without an event to come. */
static inline void qn_turn_ran(struct qn_turn *t, struct qn_client_session *s)
{
    if (qn_session_polls(s)) {
        qn_turn_run_later(t, s);
    }
    if (qn_session_has_output(s)) {
        qn_turn_flush_later(t, s);
    }
}

/** The oldest submission is complete: as qn_session_complete. */
struct qn_client_session *qn_turn_complete(struct qn_turn *t,
                                           struct qn_slice reply,
                                           qn_slot_t last_slot);
/** Run a deferred read: as qn_session_run_deferred. */
struct qn_client_session *qn_turn_run_deferred(struct qn_turn *t,
                                               struct qn_store *store,
                                               struct qn_cmd_call *call);

/** The sessions of the flush list may write. */
void qn_turn_begin_outputs(struct qn_turn *t);

/** The next session to flush. @return NULL: none, or the turn has written
 *  enough. It may be CLOSED, as in qn_turn_next_input. */
struct qn_client_session *qn_turn_next_output(struct qn_turn *t);

/** The turn ends. Finds out whether a session can go on at once: the flush may
 *  have made room, or completed what a request waits for, and no event follows
 *  from that. @param applied  Now. */
void qn_turn_end(struct qn_turn *t, qn_slot_t applied);

#endif
