#ifndef QN_PAXOS_MACHINE_SHARED_H
#define QN_PAXOS_MACHINE_SHARED_H

/**
 * What the memory acceptor consists of, besides the leader (PROTOCOL.md 5): a
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
#include "paxos/log/ring.h"
#include "paxos/machine/utility.h"
#include "paxos/mutant.h"

struct qn_word {
    uint64_t epoch;
    qn_slot_t hi;
};

struct qn_position {
    qn_slot_t applied, learned;
};

struct qn_shared {
    struct qn_pair *word; /* shared; in the commons */
    struct qn_ring own;   /* in the own outbox; begun at slot 1 by the shell */
    /** The ring of a life, as mapped by this process; NULL: it is not. Borrowed
     *  until the next step. */
    const struct qn_ring *(*ring)(void *ctx, qn_node_t node, uint64_t inc);
    /** This node is about to move the word, or will not any more: true from the
     *  beginning of a take-over, and from init if it leads the group at first,
     *  until it steps down or the machine ends. In turns, inside a step, init,
     *  install or fini. NULL: the word can always be written. */
    void (*claim)(void *ctx, bool writable);
    /** This life is about to move the word to `epoch`, which it may fail to; or
     *  has it from the beginning. Claimed. It may be said more than once. What
     *  is stored here is visible to whoever finds the epoch in the word.
     *  @return false: another life owns that epoch, so the word must not be
     *  moved to it. NULL: nobody needs it. */
    bool (*owner)(void *ctx, qn_epoch_t epoch);
    /** Whose `owner` said `epoch`: asked for one that the utility log does not
     *  keep any more, as the word has not moved for long. Filled. @return
     *  false: it is not known. NULL: it never is. */
    bool (*owned_by)(void *ctx, uint64_t epoch, qn_node_t *node, uint64_t *inc);
    /** How far the present life of a peer is now, as it says itself; `out` is
     *  filled. @return false: that cannot be read, or is impossible. NULL: only
     *  what BEAT says is known, and it may be old. */
    bool (*position)(void *ctx, qn_node_t node, struct qn_position *out);
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
    if (QN_MUTANT(NO_EPOCH)) { /* M1 */
        from.epoch = qn_shared_word(s).epoch;
    }
    return qn_cas_pair(s->word, from.epoch, from.hi, to.epoch, to.hi);
}

static inline void qn_shared_claim(struct qn_shared *s, bool writable)
{
    if (s->claim != NULL) {
        s->claim(s->ctx, writable);
    }
}

/** @return false: another life owns `epoch`. */
static inline bool qn_shared_own(struct qn_shared *s, qn_epoch_t epoch)
{
    return s->owner == NULL || s->owner(s->ctx, epoch) || QN_MUTANT(TWO_OWNERS);
}

/** owner(epoch), as far as this node knows. @return false: it does not. */
static inline bool qn_shared_owner(const struct qn_shared *s,
                                   const struct qn_utility *u, uint64_t epoch,
                                   qn_node_t *node, uint64_t *inc)
{
    const struct qn_ul_entry *e = epoch < qn_utility_len(u)
                                      ? qn_utility_entry(u, (qn_epoch_t)epoch)
                                      : NULL;
    if (e != NULL) {
        *node = e->leader;
        *inc = e->leader_inc;
        return true;
    }
    return epoch < qn_utility_len(u) && s->owned_by != NULL &&
           s->owned_by(s->ctx, epoch, node, inc);
}

#endif
