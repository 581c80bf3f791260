#ifndef QN_LOADGEN_CLIENT_COLLECT_H
#define QN_LOADGEN_CLIENT_COLLECT_H

/**
 * Where the threads of a load hand in what they have seen: once per interval
 * and at the end. A mutex is cheap enough for that.
 *
 * Any number of threads hand in, one takes.
 */

#include "core/base/clock.h"
#include "loadgen/client/stats.h"

#include <stdbool.h>
#include <stdint.h>

struct qn_collect;

/** @param threads  How many will finish, >= 1.
 *  @return QN_OK or QN_ENOMEM. */
int qn_collect_create(struct qn_collect **out, uint32_t threads);

/** NULL is accepted. No other thread may use it any more. */
void qn_collect_destroy(struct qn_collect *c);

/**
 * Add what one thread has seen since it last did so. A thread's first call,
 * with nothing in it, tells when it began.
 *
 * @param stats     Added, then emptied.
 * @param now       Until when.
 * @param finished  It was the thread's last.
 */
void qn_collect_hand_in(struct qn_collect *c, struct qn_stats *stats,
                        qn_time_t now, bool finished);

/** Wait for a point in time or until all threads have finished. @return true
 *  in the second case. */
bool qn_collect_wait(struct qn_collect *c, qn_time_t until);

/** What was handed in since the last call. */
struct qn_collect_recent {
    struct qn_stats stats; /* `waiting` is of now */
    qn_time_t first;       /* of all hand-ins so far; 0 without any */
    qn_time_t last;
};

/** @param recent  Filled; all zero, or filled by the last call: only what is
 *                 used of its megabytes is touched. */
void qn_collect_take(struct qn_collect *c, struct qn_collect_recent *recent);

/** All that was ever handed in. Only when all threads have finished. */
const struct qn_stats *qn_collect_total(const struct qn_collect *c);

#endif
