#ifndef QN_PAXOS_MEMBER_TRANSFER_THROTTLE_H
#define QN_PAXOS_MEMBER_TRANSFER_THROTTLE_H

/**
 * How much of a loop's time goes to background work that no client waits for:
 * all idle time if nothing else needs the core, a third of the time otherwise.
 *
 * Work comes in portions, one per turn. While the loop has other work, each
 * portion is followed by a rest of QN_THROTTLE_PAUSE times the CPU time that it
 * took. The loop itself detects other need of the core, over a period (of one
 * portion and its rest, or of QN_THROTTLE_QUANTA portions without rests):
 * either this thread did other work in more than a tenth of the period, or a
 * rest ended late because another thread had the core.
 *
 * Pure, wait-free: times are arguments. One thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/base/clock.h"

#define QN_THROTTLE_PAUSE  2u
#define QN_THROTTLE_QUANTA 8u
#define QN_THROTTLE_OTHERS 10u /* other work: one part in ten */
#define QN_THROTTLE_LATE   (200 * QN_US)

/** Private. */
struct qn_throttle {
    qn_time_t from;   /* this period began */
    qn_time_t cpu;    /* the thread's CPU clock then */
    qn_time_t worked; /* CPU time of the portions since */
    uint32_t portions;
    bool alone;      /* in the last period nothing else needed the core */
    qn_time_t until; /* rest until then */
};

/** The work begins. At first other work is assumed to need the core. */
void qn_throttle_begin(struct qn_throttle *p, qn_time_t now, qn_time_t cpu);

/**
 * When may the next portion be done?
 *
 * @param now  When the turn began, ns.
 * @param cpu  The thread's CPU clock, ns.
 * @return <= now: in this turn; else the time, ns.
 */
qn_time_t qn_throttle_turn(struct qn_throttle *p, qn_time_t now, qn_time_t cpu);

/** True if nothing else needs the core: a portion may be a whole turn's work.
 */
static inline bool qn_throttle_alone(const struct qn_throttle *p)
{
    return p->alone;
}

/** A portion was done in the turn that began at `now`; it took `cpu_ns`.
 *  @return the time of the next portion, ns. */
qn_time_t qn_throttle_worked(struct qn_throttle *p, qn_time_t now,
                             qn_time_t cpu_ns);

#endif
