#ifndef QN_TESTS_UNIT_LOADGEN_VERIFY_WORLD_H
#define QN_TESTS_UNIT_LOADGEN_VERIFY_WORLD_H

/**
 * Support for the tests of the verifier: a store that is linearizable by
 * construction, ways to corrupt its history, and a reference checker too simple
 * to be wrong.
 */

#include "loadgen/base/random.h"
#include "loadgen/verify/history/history.h"

struct world_opts {
    uint32_t ops;        /* number of records */
    uint32_t clients;    /* at most this many overlap, pipelines aside */
    uint32_t unknown;    /* percent of operations without a reply */
    uint32_t gap_max;    /* pause of a client, ns */
    uint32_t length_max; /* duration of an operation, ns */
    uint32_t weight[QN_RECORD_KIND_COUNT];
    int64_t values; /* 0: each value is written once; n: values are 0..n-1 */
    int64_t steps;  /* increments are 1..n; below 0: of either sign */
};

enum { WORLD_COUNT = 9 };

/** One of the models of the tests: the operations on a key. A few clients and
 *  some operations without a reply; the fields may be changed. */
struct world_opts world_opts(size_t world, uint32_t ops);
const char *world_name(size_t world);

/** Prints records on stderr. */
void world_show(const struct qn_record *records, uint32_t n);

/** Records of one key: each operation takes effect at one instant between its
 *  request and its reply; one without a reply at any later time, or never.
 *  @param out  [opts->ops] Filled. */
void world_good(uint64_t *seed, const struct world_opts *opts,
                struct qn_record *out);

/** Changes one thing: a result, a value, a time. The history may remain
 *  correct. */
void world_spoil(uint64_t *seed, struct qn_record *records, uint32_t n);

/** Tries all orders. n up to about 8. */
bool world_linearizable(const struct qn_record *records, uint32_t n);

#endif
