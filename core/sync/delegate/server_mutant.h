#ifndef QN_SYNC_DELEGATE_SERVER_MUTANT_H
#define QN_SYNC_DELEGATE_SERVER_MUTANT_H

/**
 * Defects that the tests must find, as paxos/mutant.h. In the product
 * QN_SERVER_MUTANT(x) is the constant false; the explorer's tests compile the
 * servers once more with QN_SERVER_MUTANTS and choose one.
 */

#include <stdbool.h>

#define QN_SERVER_MUTANT_MAP(X)                                                \
    X(FORGET_LATE, "a server looks at its own slots only: a request to where " \
                   "the former one was is forgotten")                          \
    X(NO_LAST_FENCE, "a server sleeps or leaves without a fence")              \
    X(NO_LAST_WAKE, "a server leaves and wakes none")                          \
    X(TWO_SERVERS, "a second server is not refused")

enum qn_server_mutant {
    QN_SERVER_MUTANT_NONE,
#define X(name, text) QN_SERVER_MUTANT_##name,
    QN_SERVER_MUTANT_MAP(X)
#undef X
        QN_SERVER_MUTANT_COUNT
};

#ifdef QN_SERVER_MUTANTS
extern enum qn_server_mutant qn_server_mutant;
#define QN_SERVER_MUTANT(name) (qn_server_mutant == QN_SERVER_MUTANT_##name)
#else
#define QN_SERVER_MUTANT(name) ((void)QN_SERVER_MUTANT_##name, false)
#endif

#endif
