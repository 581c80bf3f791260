#ifndef QN_KVS_CONTROL_RECOVERY_ERROR_H
#define QN_KVS_CONTROL_RECOVERY_ERROR_H

/**
 * The reasons why a group is not recovered: one list for the process that finds
 * the reason (the replica that is asked, the chosen replica, the supervisor)
 * and for the process that prints it, in a line that says what to do. The
 * numbers travel (kvs/control/control_protocol.h): append new ones at the end.
 */

#include <stdint.h>

#define QN_RECOVERY_ERROR_AGAIN "; run quoin recover again"

#define QN_RECOVERY_ERROR_MAP(X)                                               \
    X(SINGLE, "a server with one replica needs no recovery")                   \
    X(RUNS, "the group has not stopped: there is nothing to recover")          \
    X(CHANGED, "the group has changed meanwhile" QN_RECOVERY_ERROR_AGAIN)      \
    X(LESS, "it now has less than you agreed to" QN_RECOVERY_ERROR_AGAIN)      \
    X(COMES, "it is getting a snapshot" QN_RECOVERY_ERROR_AGAIN)               \
    X(ABSENT, "it is not complete" QN_RECOVERY_ERROR_AGAIN)                    \
    X(ENDED, "it has ended" QN_RECOVERY_ERROR_AGAIN)                           \
    X(SILENT,                                                                  \
      "it does not answer; resume it, or end it" QN_RECOVERY_ERROR_AGAIN)      \
    X(TWICE, "it is being recovered already; look at INFO's section Quoin")    \
    X(UPGRADE,                                                                 \
      "an upgrade is under way; wait for its end" QN_RECOVERY_ERROR_AGAIN)     \
    X(LEAVES, "the server is starting or ending")                              \
    X(ALONE, "the supervisor has ended; start quoind again with the same "     \
             "options, then recover")                                          \
    X(MEMBERS, "a member is being added or removed" QN_RECOVERY_ERROR_AGAIN)

enum qn_recovery_error {
    QN_RECOVERY_ERROR_NONE,
#define X(name, text) QN_RECOVERY_ERROR_##name,
    QN_RECOVERY_ERROR_MAP(X)
#undef X
        QN_RECOVERY_ERRORS
};

/** The text of a reason, a constant line. A number that is not in the list
 *  gets a line that points to the server's log. Pure, any thread. */
const char *qn_recovery_error_text(int64_t why);

#endif
