/*
 * A period begins with a turn that may work, and ends with the next such turn
 * after a rest, or after QN_THROTTLE_QUANTA portions without rests. CPU time of
 * the thread beyond the portions was other work; a loop that only polls, finds
 * nothing and works again is alone.
 *
 * A period without rests cannot detect other threads on its core: the loop may
 * sleep for other reasons, such as a full window. A period with a rest can, by
 * the time at which the rest ended.
 */
#include "paxos/member/transfer/throttle.h"

static void period_begin(struct qn_throttle *p, qn_time_t now, qn_time_t cpu)
{
    p->from = now;
    p->cpu = cpu;
    p->worked = 0;
    p->portions = 0;
}

void qn_throttle_begin(struct qn_throttle *p, qn_time_t now, qn_time_t cpu)
{
    *p = (struct qn_throttle){.until = now};
    period_begin(p, now, cpu);
}

/* The period is over: did other work need the core? */
static bool was_alone(const struct qn_throttle *p, qn_time_t now, qn_time_t cpu)
{
    qn_time_t others = cpu - p->cpu - p->worked;
    bool late = !p->alone && now - p->until > QN_THROTTLE_LATE;
    return QN_THROTTLE_OTHERS * others < now - p->from && !late;
}

qn_time_t qn_throttle_turn(struct qn_throttle *p, qn_time_t now, qn_time_t cpu)
{
    if (now < p->until) {
        return p->until;
    }
    if (p->portions >= (p->alone ? QN_THROTTLE_QUANTA : 1)) {
        p->alone = was_alone(p, now, cpu);
        period_begin(p, now, cpu);
    }
    return now;
}

qn_time_t qn_throttle_worked(struct qn_throttle *p, qn_time_t now,
                             qn_time_t cpu_ns)
{
    p->worked += cpu_ns;
    p->portions++;
    p->until = p->alone ? now : now + (QN_THROTTLE_PAUSE + 1) * cpu_ns;
    return p->until;
}
