#ifndef QN_PAXOS_MACHINE_MEMORY_ACCEPTOR_H
#define QN_PAXOS_MACHINE_MEMORY_ACCEPTOR_H

/**
 * The memory acceptor without its leader (PROTOCOL.md 5): one register in the
 * commons, and a ring of batches in each outbox.
 *
 *     register {epoch, hi}: slots <= hi are decided, and lie in the ring of the
 *              incarnation that leads `epoch`. It grows, epoch first, so no
 *              value occurs twice; every change is one CAS. PROTOCOL.md calls
 *              it the accept register.
 *
 * All of it outlives any process: every process that maps it can go on from it.
 * The shell of the machine fills this struct, and the machine reads and writes
 * through it.
 *
 * Threads: that of the machine.
 */

#include "core/base/atomic.h"
#include "paxos/log/ring.h"
#include "paxos/machine/utility.h"
#include "paxos/mutant.h"

struct qn_accept_register {
    uint64_t epoch;
    qn_slot_t hi;
};

struct qn_position {
    qn_slot_t applied, learned;
};

struct qn_memory_acceptor {
    struct qn_pair *accept_register; /* shared; in the commons */
    struct qn_ring own; /* in the own outbox; begun at slot 1 by the shell */
    /** The ring of an incarnation, as mapped by this process; NULL: it is not
     *  mapped. Borrowed until the next step. */
    const struct qn_ring *(*ring)(void *ctx, qn_node_t node, uint64_t inc);
    /** This node may move the register (true), or will not any more: true
     *  from the beginning of a take-over, and from init if it leads the group
     *  at first, until it steps down or the machine ends. Called inside a
     *  step, init, install or fini. NULL: the register can always be written.
     */
    void (*claim)(void *ctx, bool writable);
    /** This incarnation is about to move the register to `epoch`, which may
     *  fail, or has that epoch from the beginning. It has claimed the
     *  register. The call may be repeated. What is stored here is visible to
     *  every process that finds the epoch in the register. @return false:
     *  another incarnation owns that epoch, so the register must not be moved
     *  to it. NULL: no check is needed. */
    bool (*owner)(void *ctx, qn_epoch_t epoch);
    /** The incarnation whose `owner` call named `epoch`: asked for an epoch
     *  whose entry is not known here. The utility log does not keep it any
     *  more, because the register has not moved for long; or this node has not
     *  heard of it yet. Filled. @return false: it is not known. NULL: it never
     *  is. */
    bool (*owned_by)(void *ctx, uint64_t epoch, qn_node_t *node, uint64_t *inc);
    /** How far the present incarnation of a peer is now, as it publishes
     *  itself; `out` is filled. @return false: that cannot be read, or is
     *  impossible. NULL: only what BEAT says is known, and that may be old. */
    bool (*position)(void *ctx, qn_node_t node, struct qn_position *out);
    void *ctx;
};

static inline struct qn_accept_register qn_memory_acceptor_load(
    const struct qn_memory_acceptor *s)
{
    struct qn_accept_register w;
    qn_load_pair(s->accept_register, &w.epoch, &w.hi);
    return w;
}

/** Move the register from one value to the next. @return false: it has
 *  another value. */
static inline bool qn_memory_acceptor_move(struct qn_memory_acceptor *s,
                                           struct qn_accept_register from,
                                           struct qn_accept_register to)
{
    QN_ASSERT(to.epoch >= from.epoch); /* it grows, epoch first */
    QN_ASSERT(to.epoch > from.epoch || to.hi > from.hi ||
              QN_MUTANT(EQUAL_EPOCH));
    if (QN_MUTANT(NO_EPOCH)) { /* M1 */
        from.epoch = qn_memory_acceptor_load(s).epoch;
    }
    return qn_cas_pair(s->accept_register, from.epoch, from.hi, to.epoch,
                       to.hi);
}

static inline void qn_memory_acceptor_claim(struct qn_memory_acceptor *s,
                                            bool writable)
{
    if (s->claim != NULL) {
        s->claim(s->ctx, writable);
    }
}

/** @return false: another incarnation owns `epoch`. */
static inline bool qn_memory_acceptor_own(struct qn_memory_acceptor *s,
                                          qn_epoch_t epoch)
{
    return s->owner == NULL || s->owner(s->ctx, epoch) || QN_MUTANT(TWO_OWNERS);
}

/** owner(epoch): by the utility log, and where that has no entry here by what
 *  the owner announced before it moved the register. An epoch of which this
 *  node has not heard is no exception: the only survivor of a group has no peer
 *  to hear of it from. @return false: neither says. */
static inline bool qn_memory_acceptor_owner(const struct qn_memory_acceptor *s,
                                            const struct qn_utility *u,
                                            uint64_t epoch, qn_node_t *node,
                                            uint64_t *inc)
{
    const struct qn_ul_entry *e = epoch < qn_utility_len(u)
                                      ? qn_utility_entry(u, (qn_epoch_t)epoch)
                                      : NULL;
    if (e != NULL) {
        *node = e->leader;
        *inc = e->leader_inc;
        return true;
    }
    return s->owned_by != NULL && s->owned_by(s->ctx, epoch, node, inc);
}

#endif
