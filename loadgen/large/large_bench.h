#ifndef QN_LOADGEN_LARGE_BENCH_H
#define QN_LOADGEN_LARGE_BENCH_H

/**
 * One group of members that runs rows of large collectives in turns, beside
 * as many concurrent copies by memcpy from the root's memory, and the times
 * that its root has measured. Each row's last result is checked.
 */

#include <stdbool.h>

#include "core/base/clock.h"
#include "core/coll/large/large.h"

#define QN_LARGE_ROWS_MAX  640u
#define QN_LARGE_TURNS_MAX 100u
#define QN_LARGE_ROW_NS    (20 * QN_MS) /* of a row in a turn, about */

struct qn_large_row {
    const char *name;                       /* of the variant, or "memcpy" */
    const struct qn_large_variant *variant; /* NULL: memcpy */
    uint64_t bytes;                         /* a multiple of 4 */
};

struct qn_large_bench_opts {
    uint32_t members;
    const uint32_t *core; /* [members] CPU of each; kept, as all here */
    const struct qn_large_place *place; /* [members] */
    const struct qn_large_row *row;
    uint32_t rows;
    uint32_t turns;
    double seconds; /* of all turns, about, if two turns take no longer */
    double late;    /* part of the time that the last member sleeps, between
                       operations; below 1 */
    bool processes, push, quick;
    struct qn_backoff_opts backoff;
};

/** Lies in memory that is shared with children. */
struct qn_large_times {
    uint32_t turns;
    qn_a32 wrong; /* results */
    /* By the late member. */
    uint32_t sleeps;
    qn_time_t slept, ran;                             /* ran: with sleeps */
    double ns[QN_LARGE_TURNS_MAX][QN_LARGE_ROWS_MAX]; /* per operation */
};

/** @param t  Filled. @return QN_OK; QN_ENOMEM; QN_EIO: a member failed. */
int qn_large_bench_run(struct qn_large_times *t,
                       const struct qn_large_bench_opts *o);

#endif
