/*
 * The memory acceptor (PROTOCOL.md 5, the direct form): who leads accepts by
 * itself. The word in the commons decides, by one CAS; the ring in the own
 * outbox keeps what was decided, and is written before.
 *
 *     accept    ring[s] = batch;  CAS word (ep, s-1) -> (ep, s)
 *     promise   CAS word (e, h) -> (ep, h): what was decided as of (e, h) lies
 *               in the own ring (takeover.c)
 *
 * The word never has one value twice, so a CAS that succeeds says that nothing
 * was decided in between; and one of a deposed leader fails, however late.
 */
#include "paxos/machine/acceptor.h"

static enum qn_accept memory_accept(struct qn_acceptor *a, qn_epoch_t epoch,
                                    qn_slot_t slot, struct qn_blob *batch)
{
    const struct qn_word from = {epoch, slot - 1};
    const struct qn_word to = {epoch, slot};
    const struct qn_slice bytes = {batch->bytes, batch->len};
    if (!QN_MUTANT(RING_AFTER)) {
        qn_ring_write(&a->shared->own, slot, epoch, bytes);
    }
    if (!qn_shared_move(a->shared, from, to) && !QN_MUTANT(LEARN_EARLY)) {
        return QN_ACCEPT_REFUSED;
    }
    if (QN_MUTANT(RING_AFTER)) { /* M2 */
        qn_ring_write(&a->shared->own, slot, epoch, bytes);
    }
    a->hi = slot;
    return QN_ACCEPT_DONE;
}

static bool memory_promise(struct qn_acceptor *a, qn_epoch_t epoch,
                           qn_epoch_t tenure, qn_slot_t *hi)
{
    const struct qn_word to = {epoch, a->copied.hi};
    if (!qn_shared_own(a->shared, epoch) ||
        !qn_shared_move(a->shared, a->copied, to)) {
        return false;
    }
    QN_ASSERT(epoch > a->promised); /* never falls */
    a->promised = epoch;
    a->tenure = tenure;
    *hi = a->hi = to.hi;
    return true;
}

static const struct qn_acceptor_ops memory_ops = {
    .accept = memory_accept,
    .promise = memory_promise,
};

void qn_acceptor_memory_init(struct qn_acceptor *a, struct qn_shared *shared)
{
    *a = (struct qn_acceptor){.ops = &memory_ops, .shared = shared};
}
