#ifndef QN_LOADGEN_SIMULATE_LOCKS_LOCKS_REPLAY_INTERNAL_H
#define QN_LOADGEN_SIMULATE_LOCKS_LOCKS_REPLAY_INTERNAL_H

/** What the rows share: locks_replay_mesh.c has those of TILE-Gx,
 *  locks_replay_sockets.c those of the Xeon and the Opteron. */

#include "loadgen/simulate/locks/locks_queue.h"
#include "loadgen/simulate/locks/locks_replay.h"
#include "loadgen/simulate/locks/locks_run.h"

struct qn_locks_replay {
    const struct qn_locks_replay_opts *o;
    struct qn_locks_machine machine;
    qn_replay_row_fn *row;
    void *ctx;
    int rc; /* of the first run that failed */
};

/** Rows that share runs. */
struct qn_locks_group {
    const char *ids; /* of its rows, as "L9 L10" */
    bool small;      /* also for tests: few runs */
    void (*rows)(struct qn_locks_replay *r);
};

/** Those groups that were asked for. */
void qn_locks_replay_groups(struct qn_locks_replay *r,
                            const struct qn_locks_group *group, uint32_t count);

/** Run, with seed and jitter of the replay. What is 0 in `o` is usual. */
struct qn_locks_result qn_locks_replay_run(struct qn_locks_replay *r,
                                           struct qn_locks_opts o);

/** The same of a queue or a stack. */
struct qn_locks_queue_result qn_locks_replay_queue(
    struct qn_locks_replay *r, struct qn_locks_queue_opts o);

void qn_locks_replay_row(struct qn_locks_replay *r,
                         const struct qn_replay_claim *c, double got,
                         const char *what, ...)
    __attribute__((format(printf, 4, 5)));

/** How far `got` is from `published`, as a share of that. */
double qn_locks_replay_off(double got, double published);

void qn_locks_replay_mesh(struct qn_locks_replay *r);
void qn_locks_replay_words(struct qn_locks_replay *r); /* of it */
void qn_locks_replay_xeon(struct qn_locks_replay *r);
void qn_locks_replay_opteron(struct qn_locks_replay *r);

/* Queues and stacks of each (locks_replay_queues.c). */
void qn_locks_replay_mesh_queues(struct qn_locks_replay *r);
void qn_locks_replay_xeon_queues(struct qn_locks_replay *r);
void qn_locks_replay_opteron_queues(struct qn_locks_replay *r);

#endif
