#ifndef QN_LOADGEN_SIMULATE_BENCH_RUN_H
#define QN_LOADGEN_SIMULATE_BENCH_RUN_H

/**
 * The programs of `quoin bench` (loadgen/operation) on the timed machine: the
 * same sources, the same results, in virtual time. One thread, one call at a
 * time; allocates.
 */

#include "core/sim/timed/timed.h"
#include "loadgen/operation/operation.h"

struct qn_bench_run_opts {
    enum qn_collective op;
    const struct qn_transport *transport;
    const struct qn_tree *tree;         /* over the nodes 0 .. n-1, n > 1 */
    const struct qn_diamond_ring *ring; /* as in operation.h */
    struct qn_prices *prices;           /* for n nodes */
    uint32_t size;                      /* bytes of a message */
    uint32_t window;                    /* operations, of the throughput part */
    uint32_t sources;                   /* ack: as in operation.h */
    uint64_t count;                     /* operations of each part, at least */
    uint64_t until_ns;                  /* the run is cut off then */
    uint64_t seed;
    double jitter;
    const struct qn_sim_fault *fault; /* [faults] */
    uint32_t faults;
};

struct qn_bench_run {
    struct qn_operation_result result;
    bool incomplete; /* a node was killed, or the time was over */
    struct qn_timed_result run;
};

/** @return QN_OK; QN_EINVAL, QN_ENOMEM. */
int qn_bench_run_do(struct qn_bench_run *m, const struct qn_bench_run_opts *o);

void qn_bench_run_free(struct qn_bench_run *m);

#endif
