#ifndef QN_KVS_FRONTEND_LOOP_STATS_H
#define QN_KVS_FRONTEND_LOOP_STATS_H

/**
 * How long the turns of a replica's loop are.
 *
 * A turn begins when the loop wakes up, with the first callback of a socket or
 * the doorbell, and ends when the loop goes back to its poll. The owner passes
 * both moments and the borders between the parts of a turn; this module reads
 * no monotonic clock of its own.
 *
 * What counts is work: a core that the scheduler gave to another thread in the
 * middle of a turn does not make the turn longer. The thread's CPU clock knows
 * that, but reading it is a system call (0.5 us, twenty times the monotonic
 * clock). So it is read only at the end of turns longer than
 * QN_LOOP_STATS_LONG, and at the beginning of a turn if its last reading is
 * older than QN_LOOP_STATS_STALE. A long turn's work is then at most the CPU
 * time since that reading: too much by the work of QN_LOOP_STATS_STALE at most,
 * never too little.
 *
 * One thread. No allocation.
 */

#include <stdbool.h>

#include "core/base/clock.h"
#include "core/base/histogram.h"

#define QN_LOOP_STATS_LONG  (200 * QN_US)
#define QN_LOOP_STATS_STALE (200 * QN_US)

enum qn_loop_stats_part {
    QN_LOOP_STATS_SOCKETS, /* reading, accepting */
    QN_LOOP_STATS_APPLY,   /* receiving from the peers, applying */
    QN_LOOP_STATS_ANSWERS, /* requests, sending to the peers, writing replies */
    QN_LOOP_STATS_PARTS
};

struct qn_loop_stats {
    qn_time_t (*cpu)(void);               /* ns, the thread's CPU clock */
    struct qn_histogram work;             /* ns, one value per turn */
    qn_time_t parts[QN_LOOP_STATS_PARTS]; /* ns of the longest turn by its work;
                                        wall time */
    qn_time_t growth_max; /* ns, of turns in which the table grew */
    qn_time_t wall_max;   /* ns, of all, preempted or not */

    /* The running turn. */
    qn_time_t began;  /* 0: none */
    qn_time_t border; /* between the last two parts */
    qn_time_t part[QN_LOOP_STATS_PARTS];
    qn_time_t cpu_at;    /* the CPU clock ... */
    qn_time_t cpu_since; /* ... as of then; 0: never read */
};

/** `m` all zero. @param cpu  NULL: qn_clock_cpu. */
void qn_loop_stats_init(struct qn_loop_stats *m, qn_time_t (*cpu)(void));

/** A turn begins, unless one is running. `now` > 0. */
void qn_loop_stats_begin(struct qn_loop_stats *m, qn_time_t now);

/** True if a turn is running. */
static inline bool qn_loop_stats_runs(const struct qn_loop_stats *m)
{
    return m->began != 0;
}

/** What was done since the last border belongs to `part`. */
void qn_loop_stats_part(struct qn_loop_stats *m, enum qn_loop_stats_part part,
                        qn_time_t now);

/** The turn ends, if one is running; what was done since the last border was
 *  answering. `grew`: the table grew in it. */
void qn_loop_stats_end(struct qn_loop_stats *m, qn_time_t now, bool grew);

/** Forget all turns but the running one. */
void qn_loop_stats_reset(struct qn_loop_stats *m);

#endif
