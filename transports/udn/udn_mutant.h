#ifndef QN_TRANSPORTS_UDN_MUTANT_H
#define QN_TRANSPORTS_UDN_MUTANT_H

/**
 * Defects that the tests must find, as paxos/mutant.h. In the product
 * QN_UDN_MUTANT(x) is the constant false; the explorer's tests compile this
 * folder once more with QN_UDN_MUTANTS and choose one.
 */

#include <stdbool.h>

/* Of the words. */
#define QN_UDN_WORDS_MUTANT_MAP(X)                                             \
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

/* Of the queuepair over them. */
#define QN_UDN_QP_MUTANT_MAP(X)                                                \
    X(NO_REST, "a peek that finds nothing does not ring for what was told")    \
    X(NO_WANT, "a flush does not say that frames wait for room")               \
    X(MUTE, "a flush does not tell how many frames were given back")           \
    X(OLD_FRAMES, "a next incarnation's lane goes on with frames of the "      \
                  "former")

enum qn_udn_mutant {
    QN_UDN_MUTANT_NONE,
#define X(name, text) QN_UDN_MUTANT_##name,
    QN_UDN_WORDS_MUTANT_MAP(X) QN_UDN_QP_MUTANT_MAP(X)
#undef X
        QN_UDN_MUTANT_COUNT
};

#ifdef QN_UDN_MUTANTS
extern enum qn_udn_mutant qn_udn_mutant;
#define QN_UDN_MUTANT(name) (qn_udn_mutant == QN_UDN_MUTANT_##name)
#else
#define QN_UDN_MUTANT(name) ((void)QN_UDN_MUTANT_##name, false)
#endif

#endif
