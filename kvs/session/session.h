#ifndef QN_KVS_SESSION_SESSION_H
#define QN_KVS_SESSION_SESSION_H

/**
 * The state machine of one client connection, without its socket: bytes in,
 * replies out.
 *
 * A session cuts requests out of the bytes that it is given, and runs them one
 * by one until it needs more bytes or is blocked. It knows no socket, no libuv
 * and no clock; what it needs of the replica it asks through struct
 * qn_session_ops. Its states:
 *
 *          block(reason)                      close_after_replies
 *      RUN ------------> BLOCKED         RUN --------------------> CLOSING
 *          <------------                 any state but CLOSED
 *            unblock                         ---- close ---------> CLOSED
 *
 *   RUN      its requests are run as they come
 *   BLOCKED  its next request waits for what the reason says; its socket is not
 *            read meanwhile, so TCP passes the back-pressure on to the client
 *   CLOSING  no request is run any more; it closes when its replies are sent
 *   CLOSED   the socket is closed; the memory stays while something refers to
 *            it (qn_session_is_referenced)
 *
 * Order. Replies leave in the order of the requests. While a session has
 * submissions pending, its reads are submitted too (deferred reads), and
 * whatever cannot be submitted - local commands, errors - blocks the session
 * until the last completion has come. So there is no queue of replies: a reply
 * is always appended to `out`.
 *
 * (The tag says client session: struct qn_session is that of 1Paxos.)
 *
 * Pure, but for what the operations do. Threads: one, that of the event loop.
 */

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/node.h"
#include "kvs/base/buf.h"
#include "kvs/commands/command.h"
#include "kvs/introspect/info.h"
#include "kvs/resp/resp.h"
#include "kvs/session/in_flight.h"
#include "kvs/session/reply_mode.h"
#include "kvs/session/work_list.h"

enum qn_session_state {
    QN_SESSION_RUN,
    QN_SESSION_BLOCKED,
    QN_SESSION_CLOSING,
    QN_SESSION_CLOSED,
};

/** What the next request of a blocked session waits for. */
enum qn_blocked {
    QN_NOT_BLOCKED,
    QN_BLOCKED_PENDING,      /* its submissions are complete */
    QN_BLOCKED_READ_INDEX,   /* the replica has applied the read index */
    QN_BLOCKED_BACKPRESSURE, /* the replica takes submissions */
    QN_BLOCKED_BUDGET,       /* the next turn: this one has done enough */
    QN_BLOCKED_OUTPUT,       /* the client has read enough of its replies */
    QN_BLOCKED_REMOTE,       /* a late reply: from other replicas, or WAIT */
};

/** Deferred reads of one session, since all of them are answered in one turn;
 *  the next one blocks it. */
#define QN_DEFERRED_READS_MAX 128u

/** Bytes of arguments of one deferred read, 16 more for each argument: the
 *  replica keeps a copy. A longer one blocks the session until its submissions
 *  are complete. So a session keeps 512 KiB at most. */
#define QN_DEFERRED_READ_BYTES_MAX 4096u

struct qn_client_session {
    struct qn_work_link run_link;   /* private; in the turn's run list */
    struct qn_work_link flush_link; /* private; in the turn's flush list */
    enum qn_session_state state;
    enum qn_blocked reason; /* QN_NOT_BLOCKED unless BLOCKED */
    bool eof;      /* the client sends nothing more, or is not read any more */
    bool draining; /* only `drain_left` bytes are still read */
    bool deadline_passed; /* a read has waited for commit-timeout, and there
                             are requests that came with it */
    uint8_t proto;        /* 2 or 3 */
    uint32_t db;
    uint32_t pending;        /* submissions that are not complete */
    uint32_t deferred_reads; /* of these */
    uint32_t blocked_tick;   /* READ_INDEX: since when (ops.tick) */
    qn_slot_t index;         /* the read index for its requests: of this turn,
                                or the one that it is blocked for */
    struct qn_reply_mode mode;
    size_t drain_left; /* bytes */
    size_t sending;    /* bytes of replies that the socket is writing */
    struct qn_buf out; /* replies that were not handed to the socket */
    uint64_t commands; /* requests that have run */
    const struct qn_cmd *last_cmd; /* NULL: none */
    qn_slot_t last_write; /* slot of its last complete write, for WAIT */
    struct qn_resp_reader in;
};

/** How a submission ends. */
enum qn_submit {
    QN_SUBMIT_TAKEN,       /* a completion will come */
    QN_SUBMIT_NO_ROOM,     /* try again when can_submit says so */
    QN_SUBMIT_UNAVAILABLE, /* nothing is started: see unavailable_reason */
    QN_SUBMIT_NO_MEMORY,   /* nothing was started */
};

/** What a request will read. */
struct qn_session_key {
    uint32_t db;
    struct qn_slice key;
};

/** Sessions whose next requests are looked at together, before they run. */
#define QN_SESSION_AHEAD 32u

/** What a session asks of its replica and its server. All run in the loop's
 *  thread and return at once; `ctx` is that of struct qn_session_env. One of
 *  them is called for the usual request. */
struct qn_session_ops {
    /** Is this write answered by run_local, beside the log? Asked only for a
     *  write without keys. */
    bool (*is_local_write)(void *ctx, const struct qn_cmd_call *call);
    /** Run a local command. Its arity was checked, and nothing is pending. The
     *  reply goes to call->reply at once, or the session is blocked for
     *  QN_BLOCKED_REMOTE and replies late. */
    void (*run_local)(void *ctx, struct qn_client_session *s,
                      struct qn_cmd_call *call);
    /** Reads of these n keys, at most QN_SESSION_AHEAD, will run soon: a hint.
     *  There is a store. */
    void (*prefetch)(void *ctx, const struct qn_session_key *keys, uint32_t n);
    /** Run a read on the replica's store, into call->reply. */
    void (*run_read)(void *ctx, struct qn_cmd_call *call);
    /** Submit a write. */
    enum qn_submit (*submit_write)(void *ctx, const struct qn_cmd_call *call);
    /** Submit a read behind the writes of its session. UNAVAILABLE is not used:
     *  a read behind a write that was given up waits until that is answered. */
    enum qn_submit (*submit_read)(void *ctx, const struct qn_cmd_call *call,
                                  qn_slot_t index);
    /** A read waits until `index` is reached. */
    void (*wait_index)(void *ctx, qn_slot_t index);
    /** True if a write would be taken, or refused at once. */
    bool (*can_submit)(void *ctx);
    /** The error reply without its dash. */
    const char *(*unavailable_reason)(void *ctx);
    /** The time for commit-timeout; asked in every turn in which a session
     *  waits, so that it goes on. */
    uint32_t (*tick)(void *ctx);
    /** Has commit-timeout passed since `tick`? */
    bool (*timed_out)(void *ctx, uint32_t tick);
};

/** What all sessions of a front end share. Owned by struct qn_turn
 *  (kvs/session/turn.h). */
struct qn_session_env {
    const struct qn_session_ops *ops; /* kept */
    void *ctx;                        /* of ops; kept */
    /* Of the running turn. */
    int64_t budget; /* requests that may still run, in small ones */
    /* Slots: what must be applied before a read, and what is. By message:
     * numbers of questions (struct qn_read_view, paxos/driver/driver.h). */
    qn_slot_t read_index; /* a read of this turn must wait for it */
    qn_slot_t applied;    /* reads that wait for it, or less, may go on */
    bool has_store;       /* false: commands that need it reply LOADING */
    /* Options. */
    uint64_t output_pause; /* bytes of replies: client-output-pause */
    uint64_t output_limit; /* bytes: client-output-buffer-limit; 0: none */
    uint64_t value_max;    /* bytes: proto-max-bulk-len */
    uint64_t key_max;      /* bytes: max-key-len */

    struct qn_in_flight in_flight;
    struct qn_info_part *part; /* counters; kept */
    struct qn_buf error;       /* the reply to what is refused */
    struct qn_buf scratch;     /* replies that are not sent */
};

/* ---- states -------------------------------------------------------------- */

/** @param limits  Kept; may change between calls. */
void qn_session_init(struct qn_client_session *s,
                     const struct qn_resp_limits *limits);
/** Free its memory. It is CLOSED, or was never opened. */
void qn_session_fini(struct qn_client_session *s);

/** RUN -> BLOCKED for QN_BLOCKED_REMOTE: the local command that runs replies
 *  late. Nothing is pending. */
void qn_session_block_remote(struct qn_client_session *s);
/** BLOCKED for QN_BLOCKED_REMOTE -> RUN: it does not reply late after all. */
void qn_session_unblock_remote(struct qn_client_session *s);
/** RUN -> CLOSING. */
void qn_session_close_after_replies(struct qn_client_session *s);
/** Any state but CLOSED -> CLOSED. */
void qn_session_close(struct qn_client_session *s);

static inline bool qn_session_is_closed(const struct qn_client_session *s)
{
    return s->state == QN_SESSION_CLOSED;
}

/** True while the turn's lists or a submission refer to it. */
static inline bool qn_session_is_referenced(const struct qn_client_session *s)
{
    return s->pending > 0 || s->run_link.listed || s->flush_link.listed;
}

/* ---- bytes in ------------------------------------------------------------ */

/** True if its socket is to be read. */
static inline bool qn_session_wants_input(const struct qn_client_session *s)
{
    return s->state == QN_SESSION_RUN && !s->eof && !s->out.oom;
}

/**
 * n bytes of the client have come.
 *
 * @param bytes  If the reader holds bytes of its own (qn_resp_holds), the room
 *               that it gave. Else borrowed until
 *               qn_session_save_partial_input.
 */
void qn_session_feed(struct qn_client_session *s, const uint8_t *bytes,
                     size_t n);
/** The borrowed bytes go away: the session keeps the requests that it has not
 *  run. @return QN_OK; QN_ENOMEM: close it. */
int qn_session_save_partial_input(struct qn_session_env *env,
                                  struct qn_client_session *s);
/** The client sends nothing more; it may still read. What it has sent is
 *  answered, then the session closes. */
void qn_session_eof(struct qn_client_session *s);
/** Only `bytes` more are still read, what has come by now. */
void qn_session_drain(struct qn_client_session *s, size_t bytes);

/* ---- requests ------------------------------------------------------------ */

/** True if the session may run: it is RUN, or what it is blocked for is there.
 *  Changes nothing. */
bool qn_session_can_resume(const struct qn_session_env *env,
                           const struct qn_client_session *s);
/** BLOCKED -> RUN if what it waits for is there. A session that is RUN takes
 *  the read index of this turn. @return false: it stays blocked. */
bool qn_session_resume(struct qn_session_env *env, struct qn_client_session *s);
/** Run its requests until it is blocked, closes, or needs more bytes.
 *  @return QN_OK; otherwise close it now: QN_ENOMEM; QN_EPERM, a cross-protocol
 *          request. */
int qn_session_run(struct qn_session_env *env, struct qn_client_session *s);

/** The key that its next request reads.
 *  @return false: none, or the request is not whole; *key is untouched. */
bool qn_session_next_key(struct qn_client_session *s,
                         struct qn_session_key *key);

/** True if no event resumes it, so it must be looked at in each turn. */
static inline bool qn_session_polls(const struct qn_client_session *s)
{
    return s->reason == QN_BLOCKED_READ_INDEX ||
           s->reason == QN_BLOCKED_BACKPRESSURE ||
           s->reason == QN_BLOCKED_BUDGET;
}

/** Replies that are made and not sent count as one, and each whole request that
 *  has not run, or replies late, as one more; submissions not counted. Uses up
 *  the input. */
uint64_t qn_session_unanswered(struct qn_client_session *s);

/* ---- completions --------------------------------------------------------- */

/**
 * The oldest submission is complete.
 *
 * @param reply      Empty: its memory was lacking; so `out` is too.
 * @param last_slot  The slot of the write, if it is one.
 * @return its session, which may be CLOSED; NULL: there is no submission, the
 *         completion belongs to no session.
 */
struct qn_client_session *qn_session_complete(struct qn_session_env *env,
                                              struct qn_slice reply,
                                              qn_slot_t last_slot);

/** The oldest submission is this deferred read: run it now on `store`.
 *  @return its session, which may be CLOSED. */
struct qn_client_session *qn_session_run_deferred(struct qn_session_env *env,
                                                  struct qn_store *store,
                                                  struct qn_cmd_call *call);

/* ---- late replies -------------------------------------------------------- */

/** Where the late reply goes; once, right before qn_session_late_reply_done. */
struct qn_buf *qn_session_late_reply(struct qn_session_env *env,
                                     struct qn_client_session *s);
/** BLOCKED for QN_BLOCKED_REMOTE -> RUN: the late reply is written. */
void qn_session_late_reply_done(struct qn_session_env *env,
                                struct qn_client_session *s);

/* ---- replies out --------------------------------------------------------- */

/** Bytes of replies that the socket has not taken. */
static inline size_t qn_session_unsent(const struct qn_client_session *s)
{
    return s->out.len + s->sending;
}

/** True if `out` or the state asks for a flush. */
static inline bool qn_session_has_output(const struct qn_client_session *s)
{
    return s->out.len > 0 || s->out.oom || s->state == QN_SESSION_CLOSING;
}

/** True if all is answered and sent, and the session only waits for its end. */
static inline bool qn_session_is_finished(const struct qn_client_session *s)
{
    return s->state == QN_SESSION_CLOSING && s->pending == 0 &&
           qn_session_unsent(s) == 0;
}

/** The socket writes `bytes` bytes of earlier replies; 0: none. Bounds `out` by
 *  what is left of client-output-buffer-limit. */
void qn_session_set_sending(struct qn_session_env *env,
                            struct qn_client_session *s, size_t bytes);

#endif
