#ifndef QN_LOADGEN_BENCH_BENCH_SNAPSHOT_H
#define QN_LOADGEN_BENCH_BENCH_SNAPSHOT_H

/** The snapshot part of `quoin bench store`. */

#include <stdbool.h>

#include "kvs/store/store.h"

/** CPU time. */
struct qn_bench_snapshot {
    double write_ns, read_ns; /* per key */
    double chunk_us_max;      /* the longest chunk to write */
    double bytes_per_key;     /* on the way */
};

/**
 * Give a snapshot of a store, chunk by chunk, and make another store of it,
 * which is destroyed again.
 *
 * @param s  Its slots are all <= UINT64_MAX - 1; needs as much memory again.
 * @return false: not enough memory, or (a mistake of ours) not the same store.
 */
bool qn_bench_snapshot(struct qn_store *s, struct qn_bench_snapshot *out);

#endif
