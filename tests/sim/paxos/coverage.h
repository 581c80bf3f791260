#ifndef QN_TESTS_SIM_COVERAGE_H
#define QN_TESTS_SIM_COVERAGE_H

/**
 * What a range of schedules has reached: each handler, by message and input,
 * each change of role, and each row of PROTOCOL.md 6.4 and of what can happen
 * to the memory acceptor (5). A schedule that meets none of these proves
 * nothing about it, so a run over the CI budget fails if a count is zero.
 *
 * Counted by cluster.c at each step and by fault_oracle.c at each change of
 * leader or acceptor; plain numbers, so tables of several processes can be
 * added.
 */

#include <stdio.h>

#include "paxos/machine/onepaxos.h"

#define COVERAGE_INPUTS  (QN_IN_SEAT + 1u)
#define COVERAGE_OUTPUTS (QN_OUT_NEED_SNAPSHOT + 1u)
#define COVERAGE_ROLES   (QN_HANDING_OVER + 1u)
#define COVERAGE_NODES   8u /* 3 .. 7; seats 1 .. 7 */

/* In the order of 6.4, then of 5. */
#define COVERAGE_ROW_MAP(X)                                                    \
    X(ACCEPTOR_DIES, "acceptor dies")                                          \
    X(LEADER_DIES, "leader dies")                                              \
    X(APPOINTED_LEADER_DIES,                                                   \
      "acceptor dies, then leader after ACCEPTOR was chosen")                  \
    X(STOP_UNCHOSEN,                                                           \
      "acceptor dies, then leader before ACCEPTOR was chosen: stop")           \
    X(STOP_UNADOPTED, "leader dies, then acceptor before adoption: stop")      \
    X(SEALED, "leader slow and deposed, acceptor dies before adoption")        \
    X(BOTH_SUSPECTED, "both suspected at once: one entry wins")                \
    X(CANDIDATE_DIES, "candidate dies after it was appointed")                 \
    X(NEW_LEADER_DIES, "new leader dies before adoption, acceptor alive")      \
    X(STOP_NEW_LEADER, "new leader dies before adoption, acceptor dead: stop") \
    X(LEFT_OPEN, "what a dead proposer has left open is finished")             \
    X(BY_PREPARE, "staged set activated by the next leader's PREPARE (T12)")   \
    X(WORD_OWNER_DIES, "memory: leader dies, another takes over")              \
    X(WORD_OWNER_SLOW, "memory: leader deposed while it lives")                \
    X(WORD_OWNER_RETURNS, "memory: a deposed leader takes over again")         \
    X(WORD_SKIPPED, "memory: new leader dies before it moved the word")        \
    X(WORD_CAS_LOST, "memory: CAS of a deposed leader fails")                  \
    X(WORD_LAGGARD, "memory: take-over beside one that lags behind the ring")  \
    X(WORD_ALL_BUT_ONE, "memory: only one is left alive")                      \
    X(STOP_WORD, "memory: the last one in sync dies: stop")                    \
    X(RECOVERED, "a group that has stopped goes on by force")                  \
    X(DIED_BETWEEN, "a node dies between two outputs of a step")               \
    X(PULLED, "a command is pulled from its origin's arena")                   \
    X(PULL_LATE, "its origin has ended: it is dropped")                        \
    X(READ_ANSWERED, "a question for the read index is answered")              \
    X(RECORD_LOST, "a node's record is damaged when it dies")                  \
    X(VOTES_AGAIN, "a node whose record was damaged is given a vote")          \
    X(SEAT_ADDED, "members: a newcomer becomes a voter")                       \
    X(SEAT_REMOVED, "members: a voter is removed")                             \
    X(SEAT_AGAIN,                                                              \
      "members: a removed seat votes again, by a later incarnation")           \
    X(SEAT_LATE, "members: a removed process lives on, and hears of it late")  \
    X(SEAT_LONE, "members: all voters but one are dead, of 3 or more")         \
    X(SEAT_REPEATED, "members: an order is repeated while it is carried out")  \
    X(SEAT_BUSY, "members: a second order meanwhile is refused")               \
    X(SEAT_REFUSED,                                                            \
      "members: an order that would leave no majority is refused")             \
    X(SEAT_FORCED, "members: it is forced")                                    \
    X(SEAT_DROPPED, "members: an entry about one that ended is dropped")

enum coverage_row {
#define X(name, text) COVERAGE_##name,
    COVERAGE_ROW_MAP(X)
#undef X
        COVERAGE_ROWS,
    COVERAGE_NO_ROW = COVERAGE_ROWS,
};

/** [2]: process acceptor, memory acceptor. */
struct coverage {
    uint64_t runs[2][COVERAGE_NODES];
    uint64_t seats[COVERAGE_NODES]; /* runs in which members come and go */
    uint64_t input[2][COVERAGE_INPUTS];
    uint64_t message[2][QN_MSG_KINDS];
    uint64_t output[2][COVERAGE_OUTPUTS];
    uint64_t role[2][COVERAGE_ROLES][COVERAGE_ROLES]; /* from, to */
    uint64_t held_back[2]; /* turns of a slowed leader that could fill a slot */
    uint64_t squeezed[2];  /* turns of a leader in which one that it found slow
                              was in its pause */
    uint64_t row[COVERAGE_ROWS];
};

void coverage_add(struct coverage *sum, const struct coverage *x);

/** The table. @return how many of the counts that must not be zero are; each
 *  is marked. */
uint32_t coverage_print(const struct coverage *c, FILE *to);

#endif
