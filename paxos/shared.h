#ifndef QN_PAXOS_SHARED_H
#define QN_PAXOS_SHARED_H

/**
 * What the memory acceptor consists of, besides the leader (PROTOCOL.md 11): a
 * word in the commons, and a ring of batches in each outbox.
 *
 *     word   {epoch, hi}: slots <= hi are decided, and lie in the ring of the
 *            life that leads `epoch`. It grows, epoch first, so no value comes
 *            twice; every change is one CAS.
 *
 * All of it outlives any process: who maps it can go on from it. The machine
 * looks at it through this struct, which its shell fills.
 *
 * Threads: that of the machine.
 */

#include "core/base/atomic.h"
#include "paxos/ring.h"

struct qn_word {
    uint64_t epoch;
    qn_slot_t hi;
};

struct qn_shared {
    struct qn_pair *word; /* shared; in the commons */
    struct qn_ring own;   /* in the own outbox */
    /** The ring of a life, as mapped by this process; NULL: it is not. Borrowed
     *  until the next step. */
    const struct qn_ring *(*ring)(void *ctx, qn_node_t node, uint64_t inc);
    void *ctx;
};

static inline struct qn_word qn_shared_word(const struct qn_shared *s)
{
    struct qn_word w;
    qn_load_pair(s->word, &w.epoch, &w.hi);
    return w;
}

/** From one value of the word to the next. @return false: it has another. */
static inline bool qn_shared_move(struct qn_shared *s, struct qn_word from,
                                  struct qn_word to)
{
    return qn_cas_pair(s->word, from.epoch, from.hi, to.epoch, to.hi);
}

#endif
