#ifndef QN_PAXOS_GROUP_IDLE_YIELD_H
#define QN_PAXOS_GROUP_IDLE_YIELD_H

/**
 * How a member that rests lets other threads of its core go first.
 *
 * One that is busy keeps the core for a tick. So where a command waits for this
 * member, a yield that took long is the last one for a while: it is guarded
 * (qn_member_yield, core/wait/spin.h). Else a long one costs nothing, and is
 * plain (qn_park_yield): the leader, whose core this is, decides undisturbed
 * meanwhile.
 *
 * Pure. Any thread.
 */

#include <stdbool.h>
#include <stdint.h>

enum qn_idle_yield { QN_IDLE_YIELD_PLAIN, QN_IDLE_YIELD_GUARDED };

/**
 * @param has_role   It leads or accepts: nothing is decided without it.
 * @param proposals  Its own that are under way.
 * @param barriers   Its own that wait, likewise.
 */
static inline enum qn_idle_yield qn_idle_yield_of(bool has_role,
                                                  uint64_t proposals,
                                                  uint64_t barriers)
{
    return has_role || proposals != 0 || barriers != 0 ? QN_IDLE_YIELD_GUARDED
                                                       : QN_IDLE_YIELD_PLAIN;
}

#endif
