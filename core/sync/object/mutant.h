#ifndef QN_SYNC_OBJECT_MUTANT_H
#define QN_SYNC_OBJECT_MUTANT_H

/**
 * Defects that the tests must find (positive controls). In the product
 * QN_OBJECT_MUTANT(x) is the constant false; for the tests the folder is
 * compiled a second time with QN_MUTANTS set and chooses one by
 * `qn_object_mutant`.
 *
 * X(name, what finds it, text): the objects in which test_object_mutants, every
 * schedule within bounds, finds it.
 */

#include <stdbool.h>

#define QN_OBJECT_MUTANT_MAP(X)                                                \
    X(COUNTER_LOST, COUNTER, "an addition is a load and a store")              \
    X(COUNTER_LATE, COUNTER, "the result is loaded behind the addition")       \
    X(COUNTER_EARLY, COUNTER, "the result is loaded in front of it")           \
    X(LCRQ_ONE_LOOK, LCRQ, "a ring with a successor is left at once")          \
    X(LCRQ_UNSAFE, LCRQ, "an unsafe cell is used, whatever the head is")       \
    X(LCRQ_NO_PIN, LCRQ, "a ring is used again, though a client reads it")     \
    X(LCRQ_ONE_PIN, LCRQ, "pins are looked at in front of a claim only")       \
    X(LCRQ_OPEN, LCRQ, "a ring that has a successor is not closed")            \
    X(TREIBER_NO_TAG, TREIBER, "the top's tag stays the same")                 \
    X(TREIBER_LATE, TREIBER, "a value is stored behind its node's push")       \
    X(TREIBER_KEPT, TREIBER, "a node that was popped is not given back")       \
    X(MS_EARLY, MS, "a node is linked in front of its value")                  \
    X(MS_REUSED, MS, "an enqueue takes the head, which is not free")           \
    X(MS_ALONE, MS, "an enqueue runs without its delegate")                    \
    X(LIST_KEPT, LIST, "a node that was popped is not given back")             \
    X(LIST_PEEK, LIST, "a pop leaves the value")                               \
    X(LIST_BELOW, LIST, "a push puts its value below the top")

enum qn_object_mutant {
    QN_OBJECT_MUTANT_NONE,
#define X(name, by, text) QN_OBJECT_MUTANT_##name,
    QN_OBJECT_MUTANT_MAP(X)
#undef X
        QN_OBJECT_MUTANT_COUNT
};

#ifdef QN_MUTANTS
extern enum qn_object_mutant qn_object_mutant;
#define QN_OBJECT_MUTANT(name) (qn_object_mutant == QN_OBJECT_MUTANT_##name)
#else
#define QN_OBJECT_MUTANT(name) ((void)QN_OBJECT_MUTANT_##name, false)
#endif

#endif
