#ifndef QN_BARRIER_BARRIER_INTERNAL_H
#define QN_BARRIER_BARRIER_INTERNAL_H

/**
 * The memory of a barrier, and how its forms wait.
 *
 *     line 0   what it is                constant once formatted
 *     line 1   arrivals                  all members (central)
 *     lines    a seat of each member     its place in the tree is constant
 *     lines    `flags` of each member    one thread raises, one waits, each
 *
 * A flag has a line of its own, so that it moves twice an episode: a line of
 * flags that several raise is taken from one to the next before it is seen.
 *
 * Forms wait for words that only grow, by steps of QN_BARRIER_STEP, and wrap: a
 * counter of arrivals, or a flag that is raised to the number of the episode. A
 * wait is over when its word has reached a value; the lowest bit says that
 * members sleep on the word, or are about to. So nothing is set back between
 * two episodes, and a member that is an episode ahead harms none.
 */

#include "core/barrier/barrier.h"
#include "core/barrier/barrier_mutant.h"

#define QN_BARRIER_PARKED 1u
#define QN_BARRIER_STEP   2u
#define QN_BARRIER_FLAGS  5u /* of a member, at least: those of mcs */

struct qn_barrier_seat {
    alignas(QN_CACHELINE) qn_a32 taken; /* by a member that has joined */
    qn_a32 episode; /* of the last one that left; written before `taken` */
    /* tree; constant once formatted */
    qn_a32 parent;   /* of the root: itself */
    qn_a32 children; /* in the order in which they are told: */
    qn_a32 first;
    qn_a32 last;
    qn_a32 next;   /* of a child: its sibling that is told next, */
    qn_a32 before; /* or was told before it */
};

struct qn_barrier_flag {
    alignas(QN_CACHELINE) qn_a32 raised; /* to the number of an episode */
};

struct qn_barrier_memory {
    alignas(QN_CACHELINE) qn_a32 says; /* version and form */
    qn_a32 members;
    qn_a32 own_cores;
    qn_a32 shared_cores; /* there are more members than cores */
    alignas(QN_CACHELINE) qn_a32 arrived; /* central */
    struct qn_barrier_seat seat[];        /* [members]; behind them: flags */
};

/** Flags of each member of a barrier of that many: one for each round of
 *  dissemination. */
static inline uint32_t qn_barrier_flags(uint32_t members)
{
    uint32_t rounds = 0;
    while (UINT32_C(1) << rounds < members) {
        rounds++;
    }
    return rounds > QN_BARRIER_FLAGS ? rounds : QN_BARRIER_FLAGS;
}

/** Flag k of a member. */
static inline qn_a32 *qn_barrier_flag(const struct qn_barrier_member *me,
                                      uint32_t member, uint32_t k)
{
    struct qn_barrier_flag *all = (void *)&me->memory->seat[me->members];
    return &all[member * me->flags + k].raised;
}

/** The word has reached `end`: it is never more than two episodes away. */
static inline bool qn_barrier_reached(uint32_t word, uint32_t end)
{
    return (int32_t)(word - end) >= 0;
}

/** Wait until the word has reached `end`. acquire -> what raised it. */
void qn_barrier_await(struct qn_barrier_member *me, qn_a32 *word, uint32_t end);

/** Raise a flag to the caller's episode, and wake the member that sleeps on it.
 * release -> qn_barrier_await. */
void qn_barrier_raise(struct qn_barrier_member *me, qn_a32 *flag);

/** What a flag is raised to. */
static inline uint32_t qn_barrier_value(const struct qn_barrier_member *me)
{
    return me->episode * QN_BARRIER_STEP;
}

extern const struct qn_barrier_form qn_barrier_central;
extern const struct qn_barrier_form qn_barrier_dissemination;
extern const struct qn_barrier_form qn_barrier_mcs;
extern const struct qn_barrier_form qn_barrier_tree;

#endif
