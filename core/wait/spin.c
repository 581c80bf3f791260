#include "core/wait/spin.h"

#include <sched.h>

#include "core/base/assert.h"
#include "core/base/atomic.h"

qn_time_t qn_bell_spin_budget(const struct qn_spin_opts *o)
{
    QN_ASSERT(o->nodes > 0);
    bool own = o->nodes <= o->cores;
    bool paid =
        o->quota_milli == 0 || (uint64_t)o->nodes * 1000 <= o->quota_milli;
    return own && paid ? QN_SPIN_BUDGET : 0;
}

void qn_spin_init(struct qn_spin *s, qn_time_t budget)
{
    *s = (struct qn_spin){.budget = budget, .since = QN_TIME_NEVER};
}

void qn_spin_reset(struct qn_spin *s)
{
    s->since = QN_TIME_NEVER;
}

bool qn_spin_again(struct qn_spin *s, qn_time_t now)
{
    if (s->budget == 0) {
        return false;
    }
    if (s->since == QN_TIME_NEVER) {
        s->since = now;
    }
    if (now - s->since >= s->budget) {
        s->since = QN_TIME_NEVER;
        return false;
    }
    qn_pause();
    return true;
}

void qn_spin_yield(void)
{
    (void)sched_yield(); /* cannot fail on Linux */
}
