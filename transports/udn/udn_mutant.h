#ifndef QN_TRANSPORTS_UDN_MUTANT_H
#define QN_TRANSPORTS_UDN_MUTANT_H

/**
 * Defects that the tests must find, as paxos/mutant.h. In the product
 * QN_UDN_MUTANT(x) is the constant false; the explorer's tests compile this
 * folder once more with QN_UDN_MUTANTS and choose one.
 */

#include <stdbool.h>

#define QN_UDN_MUTANT_MAP(X)                                                   \
    X(NO_REST, "a peek that finds nothing does not ring for what was told")    \
    X(NO_WANT, "a flush does not say that frames wait for room")               \
    X(MUTE, "a flush does not tell how many frames were given back")           \
    X(OLD_FRAMES, "a next incarnation's lane goes on with frames of the "      \
                  "former")

enum qn_udn_mutant {
    QN_UDN_MUTANT_NONE,
#define X(name, text) QN_UDN_MUTANT_##name,
    QN_UDN_MUTANT_MAP(X)
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
