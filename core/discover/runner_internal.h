#ifndef QN_CORE_DISCOVER_RUNNER_INTERNAL_H
#define QN_CORE_DISCOVER_RUNNER_INTERNAL_H

/** What the runner consists of: steps and passes (runner.c), the threads
 *  (runner_thread.c), the results (runner_result.c). */

#include <pthread.h>

#include "core/discover/pair_run_internal.h"
#include "core/discover/runner.h"

#define QN_RUNNER_CELLS QN_CELLS_DEFAULT

/** A pair of cores. Filled by the thread of its lower core in a pair_run, and
 * by the caller's thread between steps. */
struct qn_runner_pair {
    uint32_t rounds;
    bool stable;
};

struct qn_runner;

/** A thread and its core. */
struct qn_runner_worker {
    alignas(QN_CACHELINE) qn_a64 arrived; /* at which pair_run */
    struct qn_runner *r;
    uint32_t core;
    uint32_t partner;
    uint64_t pair_run; /* number of the step it has to do; done: `did` */
    uint64_t did;
    struct qn_lane_memory *lane_memory;
    pthread_t thread;
};

struct qn_runner {
    struct qn_machine *m;
    const struct qn_runner_opts *opts;
    size_t lane_memory_bytes;
    uint32_t pairs;
    uint32_t rounds_max;
    struct qn_runner_pair *pair;     /* [pairs] */
    struct qn_round *round;          /* [pairs * rounds_max] */
    double *scratch;                 /* [rounds_max] */
    struct qn_runner_worker *worker; /* [m->n] */
    uint32_t started;                /* threads */
    /* under the lock */
    pthread_mutex_t lock;
    pthread_cond_t go;
    pthread_cond_t done;
    uint64_t step;
    uint32_t busy; /* threads in the step, or beginning */
    int status;    /* first error of a thread */
    bool quit;
    /* by the caller's thread */
    qn_a32 stop; /* set there, read by all */
    bool cancelled;
    bool only_unstable;
    uint64_t pair_runs;
    qn_time_t begin;
    double limit_s; /* from `begin`, when to leave whatever is missing */
    double part;    /* that progress has shown */
    qn_time_t shown;
};

/** Place of the pair a < b among all. */
static inline size_t qn_runner_index(const struct qn_runner *r, uint32_t a,
                                     uint32_t b)
{
    size_t n = r->m->n;
    return (size_t)a * (2 * n - a - 1) / 2 + (b - a - 1);
}

/** The thread of a core: arg is its struct qn_runner_worker. It reports once
 *  when it has begun and once after each step that it is in. */
void *qn_runner_live(void *arg);

/** What the rounds of pair i say; it has some. */
void qn_runner_judge(struct qn_runner *r, size_t i, struct qn_measured *out);

/** Fill costs and facts of r->m from all rounds; `ticks` of the cycle counter
 *  have passed since r->begin. @return QN_OK, QN_ENOMEM, QN_ETIMEDOUT: a pair
 *  has no round. */
int qn_runner_finish(struct qn_runner *r, struct qn_runner_report *rep,
                     uint64_t ticks);

#endif
