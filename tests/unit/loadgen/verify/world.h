#ifndef QN_TESTS_UNIT_LOADGEN_VERIFY_WORLD_H
#define QN_TESTS_UNIT_LOADGEN_VERIFY_WORLD_H

/**
 * What the tests of the verifier compare with: a store that is linearizable by
 * construction, ways to spoil its history, and a judge too simple to be wrong.
 */

#include "loadgen/base/random.h"
#include "loadgen/verify/history/history.h"

struct world_opts {
    uint32_t ops;        /* records to make */
    uint32_t clients;    /* that many overlap at most, pipelines aside */
    uint32_t unknown;    /* percent of operations without an answer */
    uint32_t gap_max;    /* ns that a client pauses */
    uint32_t length_max; /* ns that an operation takes */
    uint32_t weight[QN_RECORD_KIND_COUNT];
    int64_t values; /* 0: each value is written once; n: one of 0..n-1 */
    int64_t steps;  /* increments are of 1..n; below 0: of either sign */
};

enum { WORLD_COUNT = 9 };

/** One of the worlds that the tests use: what is asked of a key. A few clients
 *  and some operations without an answer; change what you like. */
struct world_opts world_opts(size_t world, uint32_t ops);
const char *world_name(size_t world);

/** Print records on stderr. */
void world_show(const struct qn_record *records, uint32_t n);

/** Records of one key: each operation happens at one instant between its
 *  request and its answer; one without an answer at any time after, or never.
 *  @param out  [opts->ops] Filled. */
void world_good(uint64_t *seed, const struct world_opts *opts,
                struct qn_record *out);

/** Change one thing: an answer, a value, a time. The result may be good. */
void world_spoil(uint64_t *seed, struct qn_record *records, uint32_t n);

/** Try all orders. n up to 8 or so. */
bool world_linearizable(const struct qn_record *records, uint32_t n);

#endif
