/*
 * The suspicion timeout (suspicion_timeout.h).
 *
 * Calm periods are counted when the timeout is read, not by a timer: reading
 * computes how many have passed since the last change. So a reader changes
 * nothing, and INFO may ask at any time.
 */
#include "paxos/member/detector/suspicion_timeout.h"

#include "core/base/assert.h"
#include "core/base/bits.h"

static void check(const struct qn_suspicion_timeout *t)
{
    QN_ASSERT(t->least > 0);
    QN_ASSERT(t->ns >= t->least);
    QN_ASSERT(t->ns <= qn_suspicion_timeout_most(t));
}

void qn_suspicion_timeout_init(struct qn_suspicion_timeout *t, qn_time_t least)
{
    *t = (struct qn_suspicion_timeout){.least = least, .ns = least};
    check(t);
}

qn_time_t qn_suspicion_timeout_most(const struct qn_suspicion_timeout *t)
{
    return QN_SUSPICION_TIMEOUT_FACTOR * t->least;
}

void qn_suspicion_timeout_least(struct qn_suspicion_timeout *t, qn_time_t least)
{
    t->least = least;
    t->ns = QN_MIN(QN_MAX(t->ns, least), qn_suspicion_timeout_most(t));
    check(t);
}

qn_time_t qn_suspicion_timeout_at(const struct qn_suspicion_timeout *t,
                                  qn_time_t now)
{
    qn_time_t ns = t->ns;
    qn_time_t since = t->changed_at;
    QN_ASSERT(now >= since);
    while (ns > t->least && now - since >= QN_SUSPICION_TIMEOUT_CALM) {
        ns = QN_MAX(ns / 2, t->least);
        since += QN_SUSPICION_TIMEOUT_CALM;
    }
    return ns;
}

static void set(struct qn_suspicion_timeout *t, qn_time_t ns, qn_time_t now)
{
    t->ns = ns;
    t->changed_at = now;
    check(t);
}

void qn_suspicion_timeout_delayed(struct qn_suspicion_timeout *t,
                                  qn_time_t delay, qn_time_t now)
{
    qn_time_t most = qn_suspicion_timeout_most(t);
    if (delay > most) {
        return;
    }
    qn_time_t ns = QN_MIN(2 * delay, most);
    if (ns > qn_suspicion_timeout_at(t, now)) {
        set(t, ns, now);
    }
}

qn_time_t qn_suspicion_timeout_raise(struct qn_suspicion_timeout *t,
                                     qn_time_t now)
{
    qn_time_t ns = 2 * qn_suspicion_timeout_at(t, now);
    set(t, QN_MIN(ns, qn_suspicion_timeout_most(t)), now);
    return t->ns;
}
