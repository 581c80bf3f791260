#ifndef QN_LOADGEN_CLIENT_STATS_SINK_H
#define QN_LOADGEN_CLIENT_STATS_SINK_H

/**
 * Collects the statistics of the threads of a load: each thread hands in its
 * own once per interval and at the end. A mutex is cheap enough at that rate.
 *
 * Any number of threads hand in, one takes.
 */

#include "core/base/clock.h"
#include "loadgen/client/stats.h"

#include <stdbool.h>
#include <stdint.h>

struct qn_stats_sink;

/** @param threads  Number of threads that will hand in, >= 1.
 *  @return QN_OK or QN_ENOMEM. */
int qn_stats_sink_create(struct qn_stats_sink **out, uint32_t threads);

/** NULL is accepted. No other thread may use the sink any more. */
void qn_stats_sink_destroy(struct qn_stats_sink *c);

/**
 * Add the statistics of one thread since its last call. The first call of a
 * thread, with empty statistics, says when the thread began.
 *
 * @param stats     Added, then cleared.
 * @param now       End of the interval.
 * @param finished  This is the last call of the thread.
 */
void qn_stats_sink_hand_in(struct qn_stats_sink *c, struct qn_stats *stats,
                           qn_time_t now, bool finished);

/** Wait for a point in time or until all threads have finished. @return true
 *  in the second case. */
bool qn_stats_sink_wait(struct qn_stats_sink *c, qn_time_t until);

/** Statistics handed in since the last take. */
struct qn_stats_sink_recent {
    struct qn_stats stats; /* `waiting`: the sum at the latest hand-ins */
    qn_time_t first;       /* time of the first hand-in; 0 without any */
    qn_time_t last;
};

/** @param recent  Filled. Must be all zero or filled by an earlier call: only
 * the used part of its megabytes is touched. */
void qn_stats_sink_take(struct qn_stats_sink *c,
                        struct qn_stats_sink_recent *recent);

/** Total of all hand-ins. Only after all threads have finished. */
const struct qn_stats *qn_stats_sink_total(const struct qn_stats_sink *c);

#endif
