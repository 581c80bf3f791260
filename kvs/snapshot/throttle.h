#ifndef QN_KVS_SNAPSHOT_THROTTLE_H
#define QN_KVS_SNAPSHOT_THROTTLE_H

/**
 * How much of a loop's time goes to work that no client waits for: all that is
 * left over where nobody else wants any, a third where somebody does.
 *
 * Work comes in portions, one a turn. While the loop has other things to do,
 * each portion is followed by a rest of QN_THROTTLE_PAUSE times the CPU time
 * that it took. Who else wants the core is seen from the loop itself, over a
 * period (of one portion and its rest, or of QN_THROTTLE_QUANTA without rests):
 * other work of this thread in more than a tenth of it; or a rest that ended
 * late, since another thread had the core.
 *
 * Pure: times are arguments. One thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/base/clock.h"

#define QN_THROTTLE_PAUSE  2u
#define QN_THROTTLE_QUANTA 8u
#define QN_THROTTLE_OTHERS 10u /* one in so many */
#define QN_THROTTLE_LATE   (200 * QN_US)

/** Private. */
struct qn_throttle {
    qn_time_t from;   /* this period began */
    qn_time_t cpu;    /* the thread's CPU clock then */
    qn_time_t worked; /* CPU time of the portions since */
    uint32_t portions;
    bool alone;      /* in the last period nobody else wanted the core */
    qn_time_t until; /* rest until then */
};

/** The work begins. At first others are thought to want the core. */
void qn_throttle_begin(struct qn_throttle *p, qn_time_t now, qn_time_t cpu);

/**
 * May a portion be done in this turn?
 *
 * @param now  When the turn began. @param cpu  The thread's CPU clock.
 * @return <= now: yes; else when.
 */
qn_time_t qn_throttle_turn(struct qn_throttle *p, qn_time_t now, qn_time_t cpu);

/** Nobody else wants the core: a portion may be a whole turn's work. */
static inline bool qn_throttle_alone(const struct qn_throttle *p)
{
    return p->alone;
}

/** A portion was done in the turn that began at `now`; it took `cpu_ns`.
 *  @return when to come again. */
qn_time_t qn_throttle_worked(struct qn_throttle *p, qn_time_t now,
                             qn_time_t cpu_ns);

#endif
