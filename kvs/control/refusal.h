#ifndef QN_KVS_CONTROL_REFUSAL_H
#define QN_KVS_CONTROL_REFUSAL_H

/**
 * Why a group is not recovered: one list for who finds it (the replica that is
 * asked, the chosen one, the supervisor) and for who says it, in one line that
 * says what to do. The numbers travel (kvs/control/boot.h): new ones at the
 * end.
 */

#include <stdint.h>

#define QN_REFUSAL_AGAIN "; run quoin recover again"

#define QN_REFUSAL_MAP(X)                                                      \
    X(SINGLE, "a server with one replica needs no recovery")                   \
    X(RUNS, "the group has not stopped: there is nothing to recover")          \
    X(CHANGED, "the group has changed meanwhile" QN_REFUSAL_AGAIN)             \
    X(LESS, "it has less by now than was agreed to" QN_REFUSAL_AGAIN)          \
    X(COMES, "it is getting a snapshot" QN_REFUSAL_AGAIN)                      \
    X(ABSENT, "it is not complete" QN_REFUSAL_AGAIN)                           \
    X(ENDED, "it has ended" QN_REFUSAL_AGAIN)                                  \
    X(SILENT, "it does not answer; let it go on, or end it" QN_REFUSAL_AGAIN)  \
    X(TWICE, "it is being recovered already; look at INFO's section Quoin")    \
    X(UPGRADE, "an upgrade is going on; wait for its end" QN_REFUSAL_AGAIN)    \
    X(LEAVES, "the server is starting or ending")                              \
    X(ALONE, "the supervisor has ended; start quoind again with the same "     \
             "options, then recover")

enum qn_refusal {
    QN_REFUSAL_NONE,
#define X(name, text) QN_REFUSAL_##name,
    QN_REFUSAL_MAP(X)
#undef X
        QN_REFUSALS
};

/** A constant line; of what is in no list: that it is not known why. */
const char *qn_refusal_text(int64_t why);

#endif
