#ifndef QN_LOADGEN_SYNC_ROUND_H
#define QN_LOADGEN_SYNC_ROUND_H

/**
 * One round of `quoin bench lock|delegate|queue|stack`: threads operate on one
 * new subject for a while, each with a random pause between operations, and
 * what they have seen is checked.
 *
 * On a counter each operation is an addition; on a queue or a stack puts and
 * takes alternate, so there is always something to take, and never more than
 * one value per thread.
 *
 * Threads: the caller's, which sleeps, one per worker, and a server's.
 */

#include "core/base/clock.h"
#include "core/base/histogram.h"
#include "core/place/place.h"
#include "loadgen/sync/subject.h"

#define QN_SYNC_ROUND_THREADS_MAX 255u

struct qn_sync_round_opts {
    struct qn_subject_name subject;
    struct qn_subject_opts o;       /* but for clients and capacity */
    const struct qn_places *places; /* borrowed; NULL: threads run anywhere */
    uint32_t threads;               /* 1 .. QN_SYNC_ROUND_THREADS_MAX */
    uint32_t pause_max;             /* turns of a loop; a pause is random */
    qn_time_t duration;             /* ns */
    uint64_t seed;                  /* of the pauses */
    struct qn_histogram *ns;        /* each operation is timed; NULL: none is */
};

/** What a round has given; sums over all threads. */
struct qn_sync_round {
    uint64_t elapsed_ns;
    uint64_t operations, least, most; /* in all; of one thread */
    uint64_t failed;                  /* puts and takes that found no room or
                                         nothing, which must not happen */
    struct qn_subject_stats stats;
};

/**
 * Run a round.
 *
 * @param out  Filled.
 * @return QN_OK; QN_ECORRUPT: an operation is lost, was done twice, or two of
 *         one thread are in the wrong order. As qn_subject_create; QN_EAGAIN:
 *         a thread could not be made.
 */
int qn_sync_round_run(const struct qn_sync_round_opts *o,
                      struct qn_sync_round *out);

#endif
