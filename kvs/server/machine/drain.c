/* See drain.h. */
#include "kvs/server/machine/drain.h"

#include "core/base/assert.h"

static void check(const struct qn_drain *d)
{
    QN_ASSERT(d->draining || !d->drained);
    QN_ASSERT(d->drained || d->unanswered == 0);
    QN_ASSERT(d->draining || d->give_up_at == 0);
}

void qn_drain_request_shutdown(struct qn_drain *d)
{
    d->shutdown_requested |= !d->draining;
}

unsigned qn_drain_begin(struct qn_drain *d, qn_time_t limit, qn_time_t now)
{
    if (d->draining) {
        return d->drained ? QN_DRAIN_TELL : 0;
    }
    d->draining = true;
    d->give_up_at = now + limit;
    check(d);
    return QN_DRAIN_CLOSE;
}

static unsigned finish(struct qn_drain *d, uint64_t unanswered)
{
    QN_ASSERT(d->draining);
    QN_ASSERT(!d->drained);
    d->drained = true;
    d->unanswered = unanswered;
    check(d);
    return QN_DRAIN_TELL;
}

unsigned qn_drain_turn(struct qn_drain *d, bool answered, qn_time_t now)
{
    if (answered) {
        return finish(d, 0);
    }
    return now >= d->give_up_at ? QN_DRAIN_GIVE_UP : 0;
}

unsigned qn_drain_gave_up(struct qn_drain *d, uint64_t unanswered)
{
    return finish(d, unanswered);
}

unsigned qn_drain_stop(struct qn_drain *d)
{
    d->stopping = true;
    return QN_DRAIN_LEAVE_LOOP;
}

unsigned qn_drain_told(struct qn_drain *d, bool told)
{
    QN_ASSERT(d->drained);
    if (told) {
        return 0;
    }
    return (d->unanswered > 0 ? QN_DRAIN_LOG : 0u) | qn_drain_stop(d);
}

unsigned qn_drain_supervisor_lost(struct qn_drain *d)
{
    check(d);
    return d->drained ? qn_drain_stop(d) : 0;
}
