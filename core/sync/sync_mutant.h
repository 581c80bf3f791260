#ifndef QN_SYNC_MUTANT_H
#define QN_SYNC_MUTANT_H

/**
 * Defects of locks and delegation over words that the tests must find, as
 * paxos/mutant.h. In the product QN_SYNC_MUTANT(x) is the constant false; the
 * explorer's tests compile these sources once more with QN_SYNC_MUTANTS and
 * choose one.
 */

#include <stdbool.h>

/* X(name, beginning of the subjects by which threads find it
 * (tests/conformance/sync/sync_mutants.c), text). NULL: no defect, a form. */
#define QN_SYNC_MUTANT_MAP(X)                                                  \
    X(NO_OBJECT, "lock/lock",                                                  \
      "a wait takes what is for another object: HybLock as printed")           \
    X(ONE_NODE, "hyb_comb/hyb_comb",                                           \
      "a thread has one node of HybComb for all objects")                      \
    X(NO_WAIT, "hyb_comb",                                                     \
      "a combiner of HybComb does not wait for the one before")                \
    X(WEAK_OPENING, "hyb_comb", "a node is open before its owner is visible")  \
    X(FORGET_LATE, "mp_server",                                                \
      "a stop of MP-Server forgets a request that is on its way")              \
    X(LATE_RELEASE, NULL,                                                      \
      "HybComb that orders its owner by the opening, and not by a fence when " \
      "it takes the node over")                                                \
    X(EXCHANGE, NULL, "HybComb that registers by exchange at once")

enum qn_sync_mutant {
    QN_SYNC_MUTANT_NONE,
#define X(name, by, text) QN_SYNC_MUTANT_##name,
    QN_SYNC_MUTANT_MAP(X)
#undef X
        QN_SYNC_MUTANT_COUNT
};

#ifdef QN_SYNC_MUTANTS
extern enum qn_sync_mutant qn_sync_mutant;
extern void *qn_sync_one_node; /* that memory */
#define QN_SYNC_MUTANT(name) (qn_sync_mutant == QN_SYNC_MUTANT_##name)
#define QN_SYNC_NODES(own)                                                     \
    (QN_SYNC_MUTANT(ONE_NODE) ? qn_sync_one_node : (void *)(own))
#else
#define QN_SYNC_MUTANT(name) ((void)QN_SYNC_MUTANT_##name, false)
#define QN_SYNC_NODES(own)   (own)
#endif

#endif
