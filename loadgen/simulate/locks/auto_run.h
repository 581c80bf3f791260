#ifndef QN_LOADGEN_SIMULATE_LOCKS_AUTO_RUN_H
#define QN_LOADGEN_SIMULATE_LOCKS_AUTO_RUN_H

/**
 * Threads that share data by delegation, on a simulated machine, under a load
 * that may change: how fast is `auto`, and how fast is each backend that it
 * chooses from? The sources of core/sync run as they ship.
 *
 * One run at a time, one thread.
 */

#include "loadgen/simulate/locks/locks_machine.h"

enum qn_auto_load {
    QN_AUTO_LOAD_COUNTER,
    QN_AUTO_LOAD_QUEUE,    /* ms1: a thread puts a value, then takes one */
    QN_AUTO_LOAD_INTEGERS, /* a counter, and increments of QN_AUTO_INTEGERS of
                              64 more */
};

#define QN_AUTO_LOADS    3u
#define QN_AUTO_INTEGERS 15u

/** A run has `phases` of `every` operations each; in odd ones only
 *  `threads[1]` threads call. */
struct qn_auto_run_opts {
    const struct qn_locks_machine *machine;
    const char *backend; /* of core/sync/delegate: no server, no words */
    enum qn_auto_load load;
    uint32_t threads[2];
    uint32_t phases;
    uint32_t every; /* operations */
    uint32_t skip;  /* at the begin of each phase: they do not count */
    uint32_t pause; /* empty turns of a loop between two calls, at most */
    uint64_t seed;
    double jitter; /* each price is up to this part more */
};

enum qn_auto_rate {
    QN_AUTO_EVEN, /* in even phases */
    QN_AUTO_ODD,
    QN_AUTO_ALL,
    QN_AUTO_RATES,
};

struct qn_auto_run_result {
    double mops[QN_AUTO_RATES]; /* million operations per second */
    uint64_t changes;           /* of the backend */
    bool wrong; /* a count is not what it should be, or a thread has ended */
};

/** @return QN_OK; QN_EINVAL: no such backend, or fewer threads are there;
 *  QN_ENOMEM. */
int qn_auto_run(struct qn_auto_run_result *out,
                const struct qn_auto_run_opts *o);

#endif
