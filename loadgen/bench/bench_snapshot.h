#ifndef QN_LOADGEN_BENCH_BENCH_SNAPSHOT_H
#define QN_LOADGEN_BENCH_BENCH_SNAPSHOT_H

/** The snapshot part of `quoin bench store`. */

#include <stdbool.h>

#include "kvs/store/store.h"

/** Results; times are CPU time. */
struct qn_bench_snapshot {
    double write_ns, read_ns; /* per key */
    double chunk_us_max;      /* longest time to write a chunk */
    double bytes_per_key;     /* size on the channel */
};

/**
 * Write a snapshot of a store, chunk by chunk, and build another store from it,
 * which is then destroyed.
 *
 * @param s  All its slots are <= UINT64_MAX - 1; needs the same memory again.
 * @return false: not enough memory, or (a bug) the stores differ.
 */
bool qn_bench_snapshot(struct qn_store *s, struct qn_bench_snapshot *out);

#endif
