#ifndef QN_LOADGEN_SIMULATE_LOCKS_LOCKS_RUN_H
#define QN_LOADGEN_SIMULATE_LOCKS_LOCKS_RUN_H

/**
 * Threads that want the same counter, on a simulated machine: under a lock, by
 * delegation, or by an atomic operation. The sources of core/sync run as they
 * are; those that wait look on, as programs in print do.
 *
 * One run at a time, one thread.
 */

#include "core/sync/delegate/delegate.h"
#include "loadgen/simulate/locks/locks_machine.h"

#define QN_LOCKS_FETCH_ADD "fetch_add"
#define QN_LOCKS_HOMES     64u

struct qn_locks_opts {
    const struct qn_locks_machine *machine;
    const char *backend; /* of core/sync/delegate, a lock of core/sync/lock,
                            or QN_LOCKS_FETCH_ADD */
    uint32_t threads;    /* that call; a server is one more */
    uint32_t pause;      /* empty turns of a loop between two calls, at most;
                            drawn at random */
    uint32_t increments; /* of an array of 64, eight to a line; 0: an empty
                            critical section */
    uint32_t batch;      /* 0: the default of core/sync */
    struct qn_server_opts server;
    uint64_t warm_ns, run_ns; /* virtual; 0: 20 us, 100 us */
    uint32_t homes; /* lines that are touched before all others, at most
                       QN_LOCKS_HOMES: where lines have homes, these follow
                       from the order of the first touches */
    uint64_t seed;
    double jitter; /* as of qn_timed_run */
};

struct qn_locks_result {
    double mops;            /* million operations per second */
    double latency_ns;      /* mean, of a call */
    double most_over_least; /* operations of a thread, most over least */
    double stalled;         /* share of the time of the node that served most in
                               which it waited for lines, fences and devices */
    double combined;        /* operations of others, per batch */
    double cas;             /* compare-and-swaps per operation */
    bool wrong;             /* a result came twice or out of order, or a node
                               that should run has ended */
};

/** @return QN_OK; QN_EINVAL: no such backend, or fewer threads are there;
 *  QN_ENOMEM. */
int qn_locks_run(struct qn_locks_result *out, const struct qn_locks_opts *o);

#endif
