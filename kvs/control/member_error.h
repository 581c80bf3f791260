#ifndef QN_KVS_CONTROL_MEMBER_ERROR_H
#define QN_KVS_CONTROL_MEMBER_ERROR_H

/**
 * The reasons why no member is added or removed: one list for the supervisor,
 * which finds the reason, and for the replica that tells its client, in a line
 * that says what to do. The numbers travel (kvs/control/control_protocol.h):
 * append new ones at the end.
 */

#include "kvs/control/control_protocol.h"

#define QN_MEMBER_ERROR_MAP(X)                                                 \
    X(PROCESS, "a group with --acceptor process keeps the size that it began " \
               "with")                                                         \
    X(FULL, "no seat is vacant; the group began with too low a "               \
            "--replicas-max")                                                  \
    X(MEMORY, "the machine has not the memory for one more; free some, or "    \
              "lower maxmemory")                                               \
    X(TWICE, "another change is under way; try again after it")                \
    X(UPGRADE, "an upgrade is under way; try again after it")                  \
    X(RECOVERY, "a recovery is under way; try again after it")                 \
    X(LEAVES, "the server is starting or ending")                              \
    X(ALONE, "the supervisor has ended; start quoind again with the same "     \
             "options, then try again")                                        \
    X(ABSENT, "there is no such member; look at quoin member list")            \
    X(ALL, "a replica that has ended is not back yet; wait for it, or remove " \
           "it")                                                               \
    X(SPAWN, "its process cannot be started")                                  \
    X(UNMET, "a member cannot reach it")                                       \
    X(SILENT, "a member does not answer; resume it, or remove it")             \
    X(ENDED, "its process has ended before it could vote; look at the log")    \
    X(LATE, "it was not complete within upgrade-timeout")                      \
    X(REFUSED, "the group refuses it")                                         \
    X(QUORUM, "the voters that live are no majority, or would be none then; "  \
              "wait until others are back, or use --force")                    \
    X(LEAST, "fewer followers than min-replicas-to-write would be left; "      \
             "lower it, or use --force")                                       \
    X(LAST, "it is the last one with a vote")                                  \
    X(NONE_COMPLETE, "no replica is complete that could order it")             \
    X(UNKNOWN, "no answer in time, it may still be done; look at quoin "       \
               "member list")

enum qn_member_error {
    QN_MEMBER_ERROR_NONE,
#define X(name, text) QN_MEMBER_ERROR_##name,
    QN_MEMBER_ERROR_MAP(X)
#undef X
        QN_MEMBER_ERRORS
};

/** The text of a reason, a constant line. A number that is not in the list
 *  gets a line that points to the server's log. Pure, any thread. */
const char *qn_member_error_text(int64_t why);

#define QN_MEMBER_WHY_MAX 224u

/** What an answer that is no success says, in one line: the text, and the
 *  replica and the error that are its reason, if it has them.
 *  @param line  [QN_MEMBER_WHY_MAX] Filled. @return line. Pure. */
const char *qn_member_answer_text(const struct qn_ctl_member_answer *a,
                                  char *line);

#endif
