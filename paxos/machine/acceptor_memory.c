/*
 * The memory acceptor (PROTOCOL.md 5, the direct form): the leader accepts by
 * itself. The accept register in the commons decides, by one CAS. The ring in
 * the leader's own outbox keeps what was decided, and is written before the
 * CAS.
 *
 *     accept    ring[s] = batch;  CAS register (ep, s-1) -> (ep, s)
 *     promise   CAS register (e, h) -> (ep, h): what was decided as of (e, h)
 *               lies in the own ring (memory_leader.c)
 *
 * The register never has the same value twice. So a CAS that succeeds shows
 * that nothing was decided in between, and a CAS of a deposed leader fails,
 * however late it comes.
 */
#include "paxos/machine/acceptor.h"

static enum qn_accept memory_accept(struct qn_acceptor *a, qn_epoch_t epoch,
                                    qn_slot_t slot, struct qn_refbuf *batch)
{
    QN_ASSERT(epoch == a->promised); /* equality: an epoch has one leader */
    QN_ASSERT(slot == a->hi + 1);    /* in order */
    const struct qn_accept_register from = {epoch, slot - 1};
    const struct qn_accept_register to = {epoch, slot};
    const struct qn_slice bytes = {batch->bytes, batch->len};
    if (!QN_MUTANT(RING_AFTER)) {
        qn_ring_write(&a->memory->own, slot, epoch, bytes);
    }
    if (!qn_memory_acceptor_move(a->memory, from, to) &&
        !QN_MUTANT(LEARN_EARLY)) {
        return QN_ACCEPT_REFUSED;
    }
    if (QN_MUTANT(RING_AFTER)) { /* M2 */
        qn_ring_write(&a->memory->own, slot, epoch, bytes);
    }
    a->hi = slot;
    return QN_ACCEPT_DONE;
}

static bool memory_promise(struct qn_acceptor *a, qn_epoch_t epoch,
                           qn_epoch_t tenure, qn_slot_t *hi)
{
    QN_ASSERT(a->copied.epoch < epoch || QN_MUTANT(EQUAL_EPOCH));
    const struct qn_accept_register to = {epoch, a->copied.hi};
    if (!qn_memory_acceptor_own(a->memory, epoch) ||
        !qn_memory_acceptor_move(a->memory, a->copied, to)) {
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

void qn_acceptor_memory_init(struct qn_acceptor *a,
                             struct qn_memory_acceptor *memory)
{
    *a = (struct qn_acceptor){.ops = &memory_ops, .memory = memory};
}
