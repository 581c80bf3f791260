/*
 * The process acceptor (PROTOCOL.md 6.1): an accepted slot is a learned slot
 * of its own node's log. Equality with `promised`, not order, decides who may
 * propose: an epoch has one leader, so no other proposal number is needed. A
 * slot is decided by the store below and by nothing else; what follows (LEARN)
 * only tells it.
 */
#include "paxos/machine/acceptor.h"

static enum qn_accept process_accept(struct qn_acceptor *a, qn_epoch_t epoch,
                                     qn_slot_t slot, struct qn_blob *batch)
{
    if (!a->active || epoch != a->promised) {
        return QN_ACCEPT_REFUSED;
    }
    const struct qn_slice bytes = {batch->bytes, batch->len};
    bool kept = slot >= a->log->lo;
    struct qn_log_entry *e = kept ? qn_log_at(a->log, slot) : NULL;
    if (slot <= a->hi) {
        /* No accepted slot is overwritten by another batch. */
        QN_ASSERT(!kept || qn_entry_is(e, bytes));
        return QN_ACCEPT_AGAIN;
    }
    QN_ASSERT(slot == a->hi + 1);
    QN_ASSERT(kept);
    if (e->state == QN_SLOT_LEARNED) {
        QN_ASSERT(
            qn_entry_is(e, bytes)); /* a replaced acceptor, a late ACCEPT */
    } else {
        qn_log_put(a->log, slot, qn_blob_ref(batch), QN_SLOT_LEARNED);
    }
    a->hi = slot;
    return QN_ACCEPT_DONE;
}

static bool process_promise(struct qn_acceptor *a, qn_epoch_t epoch,
                            qn_epoch_t tenure, qn_slot_t *hi)
{
    if (!a->active || epoch < a->promised || tenure != a->tenure) {
        return false;
    }
    a->promised = epoch;
    *hi = a->hi;
    return true;
}

static const struct qn_acceptor_ops process_ops = {
    .accept = process_accept,
    .promise = process_promise,
};

void qn_acceptor_process_init(struct qn_acceptor *a, struct qn_log *log)
{
    *a = (struct qn_acceptor){.ops = &process_ops, .log = log};
}
