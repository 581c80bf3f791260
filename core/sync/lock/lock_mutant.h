#ifndef QN_SYNC_LOCK_LOCK_MUTANT_H
#define QN_SYNC_LOCK_LOCK_MUTANT_H

/**
 * Defects of tas, ttas, mcs and clh that the tests must find, as
 * paxos/mutant.h. In the product QN_LOCK_MUTANT(x) is the constant false; tests
 * compile these sources once more with QN_LOCK_MUTANTS and choose one. Those of
 * HybLock are in core/sync/sync_mutant.h.
 *
 * X(name, the lock that it is of, text). What tas has, ttas has, too.
 */

#include <stdbool.h>

#define QN_LOCK_MUTANT_MAP(X)                                                  \
    X(TAS_NO_WAKE, "tas", "a release wakes no sleeper")                        \
    X(TAS_FORGETS, "tas",                                                      \
      "a sleeper takes the lock as if it were the only "                       \
      "one")                                                                   \
    X(TAS_OVERWRITES, "tas", "a look overwrites that there are sleepers")      \
    X(TTAS_STORES, "ttas", "a lock that looks free is taken by a store")       \
    X(MCS_NO_WAKE, "mcs", "a hand-over wakes no sleeper")                      \
    X(MCS_SILENT_LINK, "mcs", "a link wakes no predecessor that waits for it") \
    X(MCS_LATE, "mcs", "a node is prepared behind the exchange of the tail")   \
    X(MCS_LEAVES, "mcs", "a release with no link yet forgets a successor")     \
    X(MCS_TRY_STORES, "mcs", "a try stores the tail, whatever came since")     \
    X(CLH_NO_WAKE, "clh", "a hand-over wakes no sleeper")                      \
    X(CLH_OWN_NODE, "clh",                                                     \
      "a release keeps the node that its successor "                           \
      "waits for")                                                             \
    X(CLH_NO_VERSION, "clh", "the tail has no version")

enum qn_lock_mutant {
    QN_LOCK_MUTANT_NONE,
#define X(name, of, text) QN_LOCK_MUTANT_##name,
    QN_LOCK_MUTANT_MAP(X)
#undef X
        QN_LOCK_MUTANT_COUNT
};

#ifdef QN_LOCK_MUTANTS
extern enum qn_lock_mutant qn_lock_mutant;
#define QN_LOCK_MUTANT(name) (qn_lock_mutant == QN_LOCK_MUTANT_##name)
#else
#define QN_LOCK_MUTANT(name) ((void)QN_LOCK_MUTANT_##name, false)
#endif

#endif
