/*
 * A successor takes the group over from this supervisor (`quoind --upgrade`;
 * kvs/control/adopt.h).
 *
 * It comes, is told what the group speaks and what its options are, and judges
 * whether it can go on with that. Nothing has changed until it takes the group.
 * From then on everything is as if this supervisor had died: it ends without
 * touching a replica, a socket or a path, and the successor adopts the group.
 *
 * During a recovery, and while a member is added or removed, there is no
 * hand-over. The supervisor does not wait for its replicas to be
 * complete: one that it is still introducing ends with it, and is started by
 * the successor.
 */
#include "core/base/assert.h"
#include "kvs/supervision/supervision_internal.h"

static void reply(const struct qn_sv_step *x, enum qn_supervision_do kind)
{
    qn_supervision_do(x->out, &(struct qn_supervision_action){.kind = kind});
}

/* With something of which only this process knows how far it has come. */
static bool is_busy(const struct qn_supervision *s)
{
    return qn_sv_recovers(s) || qn_sv_member_changes(s);
}

void qn_sv_on_successor_asks(const struct qn_sv_step *x)
{
    const struct qn_supervision *s = x->s;
    const bool busy = !s->served || s->draining || is_busy(s);
    reply(x, busy ? QN_DO_REFUSE_SUCCESSOR : QN_DO_ANSWER_SUCCESSOR);
}

void qn_sv_on_successor_takes(const struct qn_sv_step *x)
{
    struct qn_supervision *s = x->s;
    if (is_busy(s)) { /* begun since the successor asked */
        reply(x, QN_DO_HANG_UP_SUCCESSOR);
    } else if (s->served && !s->draining) {
        QN_ASSERT(!s->handed_over);
        s->handed_over = true;
        reply(x, QN_DO_HAND_OVER);
        qn_sv_finish(x, QN_SUPERVISOR_DRAINED);
    }
}
