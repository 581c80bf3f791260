#include "core/wait/spin.h"

#include "core/base/assert.h"
#include "core/base/atomic.h"
#include "core/base/bits.h"
#include "core/base/mark.h"
#include "core/wait/park.h"

#define PAUSES_MOST 4u /* doublings */

qn_time_t qn_doorbell_spin_budget(const struct qn_spin_opts *o)
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
    qn_looks_until(s->since + s->budget);
    qn_pause();
    return true;
}

void qn_spin_yield_not(struct qn_yield *y, qn_time_t now)
{
    y->from = now + (QN_YIELD_PAUSE << y->pauses);
    y->pauses = QN_MIN(y->pauses + 1, PAUSES_MOST);
}

bool qn_spin_yield(struct qn_yield *y, qn_time_t now)
{
    if (now < y->from) {
        return false;
    }
    qn_park_yield();
    qn_time_t then = qn_clock_now();
    if (then > now + QN_YIELD_LONG) {
        qn_spin_yield_not(y, then);
    } else {
        y->pauses = 0;
    }
    return true;
}
