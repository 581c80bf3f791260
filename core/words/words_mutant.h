#ifndef QN_WORDS_MUTANT_H
#define QN_WORDS_MUTANT_H

/**
 * Defects that the tests must find, as paxos/mutant.h. In the product
 * QN_WORDS_MUTANT(x) is the constant false; the explorer's tests compile this
 * folder once more with QN_WORDS_MUTANTS and choose one.
 */

#include <stdbool.h>

#define QN_WORDS_MUTANT_MAP(X)                                                 \
    X(NO_COMPARE, "a reservation does not look whether another came first")    \
    X(FIRST_FIRST, "the first word is published before the others")            \
    X(NO_PAD, "what a dead sender had reserved stays for ever")                \
    X(PAD_LIVING, "a range is padded though a living sender names it")         \
    X(INTENT_LATE, "the intent is written after the reservation")              \
    X(INTENT_EARLY, "the intent is taken back before the words are there")     \
    X(ANY_INCARNATION, "words of any incarnation are delivered")               \
    X(LATE_HEAD, "room is given back before the position is kept")             \
    X(DEAF, "what waits at a dead core is not woken")                          \
    X(NEVER_LIVED, "an end before attach was over is not said")                \
    X(NEVER_NAMED, "what an incarnation that this node never knew had "        \
                   "reserved stays for ever")                                  \
    X(UNWOKEN,                                                                 \
      "a wish for room is cleared by a node that does not know whose "         \
      "it is, and forgotten")

enum qn_words_mutant {
    QN_WORDS_MUTANT_NONE,
#define X(name, text) QN_WORDS_MUTANT_##name,
    QN_WORDS_MUTANT_MAP(X)
#undef X
        QN_WORDS_MUTANT_COUNT
};

#ifdef QN_WORDS_MUTANTS
extern enum qn_words_mutant qn_words_mutant;
#define QN_WORDS_MUTANT(name) (qn_words_mutant == QN_WORDS_MUTANT_##name)
#else
#define QN_WORDS_MUTANT(name) ((void)QN_WORDS_MUTANT_##name, false)
#endif

#endif
