#ifndef QN_KVS_REPLICA_REPLICA_INTERNAL_H
#define QN_KVS_REPLICA_REPLICA_INTERNAL_H

/**
 * What the parts of the replica share:
 *
 *     replica.c          creation, its turn, questions of other modules
 *     replica_queue.c    submissions in, completions out, deferred reads
 *     replica_apply.c    commands of the log, executed
 *     replica_install.c  the state of a snapshot, given and taken
 */

#include "kvs/replica/replica.h"

enum {
    PENDING_MAX = 16384, /* submissions in the ring, a power of two */
    DISCARDS = 4         /* stores being freed */
};

struct pending {
    bool is_deferred_read;
    bool says_ok; /* write: its reply is +OK, unless it is refused */
    uint8_t proto;
    uint64_t seq;            /* write: the driver's sequence */
    qn_time_t since;         /* write: start of the turn it was submitted in */
    uint32_t tick;           /* in which it was submitted */
    qn_slot_t index;         /* deferred read: least position */
    struct qn_cmd_call call; /* deferred read: argv lies in `args` */
    struct qn_slice *args;   /* deferred read: owned block {slices, bytes} */
};

struct qn_replica {
    struct qn_driver *driver; /* given; NULL: not yet */
    struct qn_store *store;
    bool first;         /* the group begins with this incarnation */
    bool submits_first; /* it submits the first command, with `seed` */
    uint64_t seed;
    bool serving;         /* the store may be seen ... */
    qn_slot_t serve_at;   /* ... once this slot is applied */
    uint64_t serve_after; /* ... and reads of this number may be answered; 0 */
    uint64_t covered;     /* own writes up to it lie in a snapshot */
    /* Of each origin, the incarnation and sequence of the last command that
     * apply answered with an error. A function of the log: the same on all
     * replicas at equal positions. */
    struct qn_session refused[QN_NODES_MAX];
    struct qn_buf no_client; /* the reply of a command for which no client here
                             waits: accepts no bytes, but records an error */
    struct qn_store *discard[DISCARDS];
    qn_node_t self;
    uint32_t nodes;
    uint64_t incarnation;    /* of this process */
    struct qn_config config; /* in force */
    uint64_t stamp_ms;       /* of the last applied slot */
    uint64_t random;         /* for RANDOMKEY of deferred reads */

    struct pending *pending; /* [PENDING_MAX] */
    uint32_t head, tail;     /* free-running; head: oldest not applied */
    uint32_t answered;       /* submissions from head on that are answered
                                and not applied yet (or deferred reads among such) */
    uint64_t writes;         /* writes in the ring, not answered */
    uint64_t given_up; /* writes in it that are answered: outcome unknown */
    uint32_t tick;     /* of this replica's own time, in units of
                          QN_COMMIT_TICK */
    qn_time_t tick_at; /* ns; the next tick; QN_TIME_NEVER: no client waits */
    uint64_t deferred_reads_ran; /* since the last command was applied */
    uint64_t growths;            /* splits of the store until then */

    struct qn_buf replies; /* completions not yet taken, back to back */
    size_t *reply_len;     /* [PENDING_MAX] */
    size_t reply_at;       /* start of the next one to take */
    uint32_t reply_head, reply_tail;

    qn_time_t now;      /* start of this turn */
    qn_slot_t last_own; /* slot of the last own write */
    struct qn_replica_writes own;

    struct qn_slice *argv; /* [argv_cap], decoding of applied commands */
    uint32_t argv_cap;

    struct qn_buf head_buf; /* encoding of submitted commands */
    struct qn_slice *parts; /* [part_cap] */
    uint32_t part_cap;

    void (*told)(void *ctx, qn_node_t from, struct qn_slice bytes);
    void (*deferred_read)(void *ctx, struct qn_store *store,
                          struct qn_cmd_call *call);
    void (*take)(void *ctx);
    void (*configured)(void *ctx);
    void *ctx;
};

/* ---- what a log entry is ------------------------------------------------- */

enum entry_kind {
    ENTRY_COMMAND, /* a client's: qn_cmd_encode follows */
    ENTRY_INIT,    /* struct entry_init follows, and the run-time options as
                      the group began (qn_config_runtime_write) */
};

struct entry_init {
    uint64_t seed;
    uint32_t databases;
    uint32_t version;
};

/* ---- replica_queue.c ----------------------------------------------------- */

static inline struct pending *qn_replica_pending_at(struct qn_replica *r,
                                                    uint32_t i)
{
    return &r->pending[i & (PENDING_MAX - 1)];
}

/** The bytes of `replies` from `start` on are the next completion. */
void qn_replica_reply_end(struct qn_replica *r, size_t start);

/** Evaluate the deferred reads that are next to be answered and need no more
 * than `reached`. Writes among them that a snapshot contains are complete, too.
 */
void qn_replica_deferred_reads_run(struct qn_replica *r, qn_slot_t reached);

/** The own write `seq` that the log has brought; NULL if it is answered
 *  already. */
struct pending *qn_replica_own(struct qn_replica *r, uint64_t seq);

/** The own write was executed. If it was not answered already, its reply is
 *  the bytes of `replies` from `start` on. Marks that waited only for it are
 *  evaluated. */
void qn_replica_own_done(struct qn_replica *r, size_t start, qn_slot_t slot);

/** Each turn: answer submissions that have waited for `commit-timeout`. */
void qn_replica_give_up_turn(struct qn_replica *r, qn_slot_t applied);

/** Submit the first command of a group. QN_OK, QN_ENOMEM. */
int qn_replica_submit_init(struct qn_replica *r, uint64_t seed);

/* ---- replica_apply.c ----------------------------------------------------- */

/** Room to decode `need` arguments. @return false: no memory. */
bool qn_replica_argv_grow(struct qn_replica *r, uint32_t need);

/* ---- replica_install.c --------------------------------------------------- */

/** Free blocks of replaced stores, DISCARD_PER_TURN at most. @return true if
 *  there is more to free. */
bool qn_replica_discards_turn(struct qn_replica *r);

/** The state is complete as of `position`, from a snapshot or from the log's
 *  first slot on. Show it once it has caught up with what others have shown
 *  by now. */
void qn_replica_serve_soon(struct qn_replica *r, qn_slot_t position);

#endif
