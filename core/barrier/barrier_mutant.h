#ifndef QN_BARRIER_BARRIER_MUTANT_H
#define QN_BARRIER_BARRIER_MUTANT_H

/**
 * Defects of barriers that the tests must find, as
 * core/sync/lock/lock_mutant.h. In the product QN_BARRIER_MUTANT(x) is the
 * constant false.
 *
 * X(name, the form that it is of, text).
 */

#include <stdbool.h>

#define QN_BARRIER_MUTANT_MAP(X)                                               \
    X(CENTRAL_SENSE, "central", "an episode ends where the one before it did") \
    X(CENTRAL_NO_WAKE, "central", "the last arrival wakes no sleeper")         \
    X(CENTRAL_TAKES_BACK_LATE, "central",                                      \
      "the bit of the sleepers is taken back behind the wake-up")              \
    X(AWAIT_STORES, "central", "a sleeper says so by a store")                 \
    X(FLAG_NO_WAKE, "dissemination", "a flag that is raised wakes no sleeper") \
    X(DISSEMINATION_SET_BACK, "dissemination",                                 \
      "a flag has no episode: it is set, and set back")                        \
    X(DISSEMINATION_ROUND_LESS, "dissemination", "the last round is left out") \
    X(MCS_ONE_CHILD, "mcs", "a node waits for its first child only")           \
    X(MCS_NOT_WOKEN, "mcs", "a node does not wake its second child")           \
    X(TREE_ONE_CHILD, "tree", "a node waits for its first child only")         \
    X(TREE_NOT_TOLD, "tree", "a node does not wait for its parent")

enum qn_barrier_mutant {
    QN_BARRIER_MUTANT_NONE,
#define X(name, of, text) QN_BARRIER_MUTANT_##name,
    QN_BARRIER_MUTANT_MAP(X)
#undef X
        QN_BARRIER_MUTANT_COUNT
};

#ifdef QN_BARRIER_MUTANTS
extern enum qn_barrier_mutant qn_barrier_mutant;
#define QN_BARRIER_MUTANT(name) (qn_barrier_mutant == QN_BARRIER_MUTANT_##name)
#else
#define QN_BARRIER_MUTANT(name) ((void)QN_BARRIER_MUTANT_##name, false)
#endif

#endif
