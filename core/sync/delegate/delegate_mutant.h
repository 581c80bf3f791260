#ifndef QN_SYNC_DELEGATE_DELEGATE_MUTANT_H
#define QN_SYNC_DELEGATE_DELEGATE_MUTANT_H

/**
 * Defects of combiners and of `auto` that the tests must find, as
 * paxos/mutant.h. In the product QN_DELEGATE_MUTANT(x) is the constant false;
 * the explorer's tests compile this folder once more with QN_DELEGATE_MUTANTS
 * and choose one. `by`: beginning of the subjects by which threads find it
 * (tests/conformance/sync/sync_mutants.c); where a request is mistaken for
 * another one they must differ.
 */

#include <stdbool.h>

#define QN_DELEGATE_MUTANT_MAP(X)                                              \
    X(LATE_LINK, "delegate",                                                   \
      "a combiner reads a node's link after its client was told")              \
    X(FIRST_NODE, "delegate", "a client leaves with the node that it got")     \
    X(FROM_OUTSIDE, "delegate",                                                \
      "a client changes the backend, outside of any exclusion")                \
    X(BLIND, "delegate",                                                       \
      "an executor does not look at the word in its exclusion")                \
    X(UNLINKED, "ms1/cc_synch",                                                \
      "a combiner's second look takes the tail for its link")

enum qn_delegate_mutant {
    QN_DELEGATE_MUTANT_NONE,
#define X(name, by, text) QN_DELEGATE_MUTANT_##name,
    QN_DELEGATE_MUTANT_MAP(X)
#undef X
        QN_DELEGATE_MUTANT_COUNT
};

#ifdef QN_DELEGATE_MUTANTS
extern enum qn_delegate_mutant qn_delegate_mutant;
#define QN_DELEGATE_MUTANT(name)                                               \
    (qn_delegate_mutant == QN_DELEGATE_MUTANT_##name)
#else
#define QN_DELEGATE_MUTANT(name) ((void)QN_DELEGATE_MUTANT_##name, false)
#endif

#endif
