#ifndef QN_LOADGEN_SIMULATE_LOCKS_LOCKS_QUEUE_H
#define QN_LOADGEN_SIMULATE_LOCKS_LOCKS_QUEUE_H

/**
 * Threads that share a queue or a stack on a simulated machine: each puts a
 * value in, takes one out, and so on. The sources of core/sync/object run as
 * they are; those that wait look on, as programs in print do.
 *
 * One run at a time, one thread.
 */

#include "core/sync/object/collection.h"
#include "loadgen/simulate/locks/locks_machine.h"

struct qn_locks_queue_opts {
    const struct qn_locks_machine *machine;
    const char *type;    /* of core/sync/object */
    const char *backend; /* of core/sync/delegate, or a lock; NULL: `type` is
                            not made of delegates */
    uint32_t threads;    /* that put and take; each delegate with a server has
                            one more thread */
    uint32_t pause;      /* empty turns of a loop between two operations, at
                            most; drawn at random */
    struct qn_server_opts server;
    bool only_operations_use_data; /* of delegates of ms1 and list */
    uint64_t turn_ns;              /* lcrq_numa: its pause; 0: its default */
    uint64_t warm_ns, run_ns;      /* virtual; 0: 20 us, 100 us */
    uint64_t seed;
    double jitter; /* as of qn_timed_run */
};

struct qn_locks_queue_result {
    double mops;            /* million puts and takes per second */
    double most_over_least; /* of a thread's operations; 0: one has none */
    bool wrong; /* nothing was found where something is, values of one thread
                   came in the wrong order, or a node that should run has ended
                 */
};

/** @return QN_OK; QN_EINVAL: no such type or backend, the two do not fit, or
 *  fewer threads are there; QN_ENOMEM. */
int qn_locks_queue_run(struct qn_locks_queue_result *out,
                       const struct qn_locks_queue_opts *o);

#endif
