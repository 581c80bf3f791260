/*
 * Failing apply: see apply_failure.h.
 *
 * Why the second loss ends the member: the cause lies here, not in the log, as
 * another member has applied the slot. A member that fetched a state again and
 * again would cost the others a snapshot each time, for nothing. It counts as
 * the second one if the slot is the same, or if no slot was applied in between:
 * a service that fails for good fails at another slot each time, because the
 * log goes on meanwhile. An older state than the lost one is never installed
 * (qn_driver_install), so no slot is applied twice.
 */
#include "paxos/apply/apply_failure.h"

#include "core/base/assert.h"
#include "core/base/err.h"

static void end(struct qn_apply_failure *f, int err)
{
    QN_ASSERT(err != QN_OK);
    f->phase = QN_APPLY_ENDED;
    f->ended = err;
    f->donors = 0;
}

static void lose(struct qn_apply_failure *f, qn_slot_t slot)
{
    bool again = f->lost != 0 && (slot <= f->lost || !f->advanced);
    f->phase = QN_APPLY_LOST;
    f->lost = slot;
    f->advanced = false;
    f->donors = 0;
    if (again) {
        end(f, QN_EAPPLY);
    }
}

enum qn_apply_verdict qn_apply_failure_result(struct qn_apply_failure *f,
                                              qn_slot_t slot, int err,
                                              qn_time_t now)
{
    QN_ASSERT(qn_apply_failure_whole(f));
    QN_ASSERT(f->phase == QN_APPLY_OK || slot == f->slot);
    if (err == QN_OK) {
        f->phase = QN_APPLY_OK;
        return QN_APPLY_GO_ON;
    }
    if (f->phase == QN_APPLY_OK) {
        f->since = now;
    }
    f->slot = slot;
    f->error = err;
    if (err == QN_ENOMEM && now - f->since < QN_APPLY_AGAIN_FOR) {
        f->phase = QN_APPLY_SHORT;
        f->again_at = now + QN_APPLY_AGAIN;
        return QN_APPLY_REPEAT;
    }
    lose(f, slot);
    return QN_APPLY_DROP;
}

void qn_apply_failure_slot_end(struct qn_apply_failure *f)
{
    QN_DASSERT(f->phase == QN_APPLY_OK);
    f->advanced = true;
}

void qn_apply_failure_look(struct qn_apply_failure *f,
                           const struct qn_apply_members *m)
{
    if (f->phase != QN_APPLY_LOST && f->phase != QN_APPLY_STOPPED) {
        return;
    }
    uint64_t whole = m->living & ~m->incomplete;
    uint64_t donors = 0;
    for (uint64_t left = whole; left != 0; left &= left - 1) {
        uint32_t i = (uint32_t)__builtin_ctzll(left);
        donors |= (uint64_t)(m->applied[i] >= f->slot) << i;
    }
    f->donors = donors;
    f->phase = whole != 0 ? QN_APPLY_LOST : QN_APPLY_STOPPED;
}

void qn_apply_failure_installed(struct qn_apply_failure *f)
{
    QN_ASSERT(f->phase != QN_APPLY_ENDED);
    f->phase = QN_APPLY_OK;
    f->donors = 0;
}

void qn_apply_failure_gave_up(struct qn_apply_failure *f, int err)
{
    if (f->phase == QN_APPLY_LOST || f->phase == QN_APPLY_STOPPED) {
        end(f, err);
    }
}
