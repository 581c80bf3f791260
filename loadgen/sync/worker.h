#ifndef QN_LOADGEN_SYNC_WORKER_H
#define QN_LOADGEN_SYNC_WORKER_H

/**
 * What the threads of a round do (round.h), wherever they run: on this machine
 * or on a simulated one. The host pauses between operations, and says
 * when a round is over:
 *
 *     qn_sync_workers_create(&all, &o);
 *     rc = qn_sync_worker_join(w);                each thread
 *     while (...) {
 *         ... qn_sync_worker_pause(w) turns ...
 *         qn_sync_worker_operate(w);
 *     }
 *     qn_sync_worker_leave(w);
 *     qn_sync_workers_check(all, &out);           one, behind all others
 *     qn_sync_workers_destroy(all);
 *
 * Threads: a worker belongs to one thread; create, check and destroy run alone.
 */

#include "loadgen/sync/round.h"

/** Fields are private but for those with a comment. */
struct qn_sync_worker {
    alignas(QN_CACHELINE) const struct qn_sync_round_opts *o;
    struct qn_subject *s;
    uint32_t index; /* of the thread */
    uint64_t seed;
    uint64_t operations; /* all of them */
    uint64_t before;     /* those that do not count; written by its runner */
    struct qn_histogram *ns; /* where operations are timed; NULL: they are not;
                                written by its runner */
    struct qn_histogram *owned;
    qn_time_t (*now)(void);     /* written by its runner, if there is `ns` */
    uint64_t failed;            /* puts without room, takes of nothing */
    uint64_t put_sum, take_sum; /* of values */
    bool wrong;                 /* an order */
    bool joined;                /* qn_sync_worker_join has succeeded */
    bool holds;                 /* it has put a value, and takes one next */
    int rc;                     /* of the join */
    uint64_t last;              /* result of an addition, + 1 */
    uint32_t
        taken[QN_SYNC_ROUND_THREADS_MAX]; /* number of each thread's last */
    struct qn_subject_stats stats;
    struct qn_subject_client client;
};

struct qn_sync_workers {
    const struct qn_sync_round_opts *o; /* borrowed */
    struct qn_subject *s;               /* owned */
    void *memory;                       /* of the workers; owned */
    struct qn_sync_worker *worker;      /* [o->threads] in it */
};

/** Make a subject and a worker for each thread.
 *  @param all  Filled. @return QN_OK; errors of qn_subject_create. */
int qn_sync_workers_create(struct qn_sync_workers *all,
                           const struct qn_sync_round_opts *o);

/** Adds the times of operations to o->ns. Of one that was not created, too. */
void qn_sync_workers_destroy(struct qn_sync_workers *all);

/** @return as qn_subject_join. */
int qn_sync_worker_join(struct qn_sync_worker *w);

/** How long to pause in front of the next operation: turns of a loop. */
uint64_t qn_sync_worker_pause(struct qn_sync_worker *w);

/** One operation: an addition, or a put or a take in turn. */
void qn_sync_worker_operate(struct qn_sync_worker *w);

/** Leave, if it has joined. */
void qn_sync_worker_leave(struct qn_sync_worker *w);

/** Is all as it should be? All workers have left, a server serves.
 *  @param by   Of the thread that calls; on this machine of any.
 *  @param out  Filled, but for the time.
 *  @return as qn_sync_round_run. */
int qn_sync_workers_check(struct qn_sync_workers *all,
                          struct qn_sync_worker *by, struct qn_sync_round *out);

#endif
