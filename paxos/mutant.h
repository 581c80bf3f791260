#ifndef QN_PAXOS_MUTANT_H
#define QN_PAXOS_MUTANT_H

/**
 * Defects that the tests must find (positive controls). In the product
 * QN_MUTANT(x) is the constant false; for the tests the folder is compiled a
 * second time with QN_MUTANTS set and chooses one by `qn_mutant`.
 *
 * Tests that find it: PROCESS, MEMORY or BOTH test_paxos_mutants, with that
 * acceptor; UTILITY test_utility_sim; RING test_ring_explore; ARENA
 * test_arena_explore; DECIDE test_decide_explore; FLOW test_flow_mutants,
 * random schedules of slow members; DRIVER test_driver_mutants, the random
 * schedules of real drivers; SPREAD test_driver_ring_mutants, real drivers over
 * rings; SEATS test_driver_seat_mutants, real drivers of which some have no
 * vote; FORCED test_forced_mutants, unit tests that hand
 * over what hardly any schedule reaches. T and M numbers are those of
 * PROTOCOL.md 7 and 5; tests/sim/README.md says what became of those that are
 * not here.
 */

#include <stdbool.h>

#define QN_MUTANT_MAP(X)                                                       \
    X(NO_ADOPT, PROCESS, "T1: PREPARED is not adopted")                        \
    X(NO_PROMISE, PROCESS, "T2: PREPARE promises nothing")                     \
    X(NO_HANDOFF, PROCESS, "T3: the new acceptor begins empty")                \
    X(NO_FREEZE, PROCESS, "T4: the leader goes on while it stages")            \
    X(UNADOPTED, PROCESS, "T5: a leader not adopted replaces the acceptor")    \
    X(NO_UL, BOTH, "T6: an entry counts as chosen when it is proposed")        \
    X(AMNESIA, PROCESS, "T7: an acceptor restarts empty under its name")       \
    X(OLD_SEAL, FORCED, "T8: SEAL copies the log and stops no leader")         \
    X(SKIP_OWN, FORCED, "T9: own entries that are skipped over do not count")  \
    X(STALE_PREPARED, FORCED, "T10: an answer of an older epoch is adopted")   \
    X(EPOCH_CHECK, PROCESS, "T11: what another epoch decided is not learned")  \
    X(PREPARE_NO_UL, FORCED, "T12: PREPARE does not bring the utility log")    \
    X(LATE_STAGE, FORCED, "T13: a STAGE of an older epoch counts")             \
    X(NO_SESSION, BOTH, "T14: a new leader takes what is applied again")       \
    X(NO_FETCH, BOTH, "T15: gaps are never fetched")                           \
    X(U_AMNESIA, UTILITY, "T16: a restarted voter forgets")                    \
    X(STAGE_LOST, FORCED, "T17: STAGE does not bring the utility log")         \
    X(STAGE_MIX, FORCED, "T18: slots of two leaders in one staged set")        \
    X(LEFT_OPEN, FORCED, "an entry of a dead proposer stays open")             \
    X(LEFT_OPEN_LATE, FORCED, "it is finished though its acceptor has ended")  \
    X(STAGE_AGAIN, FORCED, "T18: a whole staged set is cleared by the next")   \
    X(NO_SEAL, PROCESS, "6.2: blocked by one crash and one suspicion")         \
    X(NO_EPOCH, MEMORY, "M1: the accept CAS compares hi alone")                \
    X(STALE_HI, MEMORY, "M3: promised without the hi that was copied")         \
    X(RING_TENURE, RING, "M6: a ring that is used again keeps old entries")    \
    X(RING_LATE, RING, "M8: lo is raised after the write")                     \
    X(RING_NO_LOOK, RING, "M8: no second look: a fence is skipped")            \
    X(ARENA_LATE, ARENA, "arena: that a block has ended is said late")         \
    X(ARENA_NO_LOOK, ARENA, "arena: no second look after the copy")            \
    X(TAKE_BEHIND, MEMORY, "M10: take-over by a node behind the ring")         \
    X(OWNER_DROPS, MEMORY, "M10: the owner drops what it has not applied")     \
    X(LAG_UNHEARD, MEMORY, "take-over: the last position heard is trusted")    \
    X(VERDICT_UNREAD, MEMORY,                                                  \
      "verdict: what lies unread in a lane counts as none")                    \
    X(VERDICT_BEHIND, MEMORY, "verdict: a member behind is not waited for")    \
    X(NO_SECOND_LOOK, FORCED,                                                  \
      "take-over: a joiner during the copy is forgotten")                      \
    X(EQUAL_EPOCH, FORCED,                                                     \
      "take-over: the own epoch in the register is no sign")                   \
    X(TWO_OWNERS, FORCED, "take-over: another node's epoch is taken, too")     \
    X(LEARN_EARLY, MEMORY, "M12: LEARN leaves whatever the CAS says")          \
    X(RING_AFTER, DECIDE, "M2: the ring is written after the CAS")             \
    X(FREED_BY_UL, DRIVER,                                                     \
      "M4: a ring is kept while the utility log names it")                     \
    X(FALSE_SYNC, DRIVER, "M5: in sync before it has caught up")               \
    X(UNMAPPED, DRIVER, "M11: in sync without the mapping")                    \
    X(EXPOSE_EARLY, DRIVER, "M12: exposed before it is published")             \
    X(REUSE_SLOT, BOTH, "leader: one slot is given to two batches")            \
    X(EARLY_DECIDE, PROCESS, "leader: what is proposed counts as decided")     \
    X(NO_SEEN, BOTH, "leader: duplicates get slots of their own")              \
    X(STAMP_BACK, BOTH, "leader: the wall clock is taken as it is")            \
    X(SERVE_EARLY, BOTH, "leader: requests before all adopted is applied")     \
    X(NO_STEP_DOWN, BOTH, "leader: a later epoch changes nothing")             \
    X(ACK_EARLY, PROCESS, "acceptor: ACCEPTED before it is accepted")          \
    X(SEAL_LIES, PROCESS, "SEALED says complete, always")                      \
    X(NO_ORDER, BOTH, "learner: a slot is applied when it comes")              \
    X(TRUNCATE, BOTH, "the log drops what only this node has applied")         \
    X(NO_SESSIONS_KEPT, BOTH, "a snapshot comes without sessions")             \
    X(NO_CREDIT, BOTH, "origin: any number of commands on their way")          \
    X(NO_RESEND, BOTH, "origin: nothing is sent again to a new leader")        \
    X(READ_ALONE, PROCESS, "8.3: the leader answers without the acceptor")     \
    X(READ_FROZEN, FORCED, "8.3: the leader asks while it hands over")         \
    X(READ_ANY_EPOCH, FORCED, "8.3: the acceptor answers a deposed leader")    \
    X(READ_ANY_LIFE, FORCED, "8.3: an answer to a former incarnation counts")  \
    X(FLOW_BLIND, FLOW, "flow: the gate looks at no member")                   \
    X(FLOW_OVERWRITE, MEMORY,                                                  \
      "flow: the ring drops what an awaited one lacks")                        \
    X(FLOW_RETURN, FLOW, "flow: awaited again though its next slot is gone")   \
    X(FLOW_MIN, FLOW, "flow: min-replicas-to-write does not count")            \
    X(FLOW_SLOW, FLOW, "flow: a slow member is awaited all the same")          \
    X(FLOW_NO_PAUSE, FLOW, "flow: a slow member is awaited again at once")     \
    X(FLOW_STAMPS, FLOW, "flow: stamps come as often until the ring is full")  \
    X(FLOW_NON_VOTER, FLOW, "members: min-replicas counts a non-voter")        \
    X(SYNC_NON_VOTER, SEATS, "members: in_sync counts a non-voter")            \
    X(SEAT_EARLY, FORCED, "members: a voter before it is in sync")             \
    X(SEAT_UNMAPPED, FORCED, "members: a voter before it has mapped the ring") \
    X(SEAT_LIVES, FORCED, "members: a removed process becomes a voter again")  \
    X(SEAT_ONCE, FORCED, "members: what was asked is not looked at again")     \
    X(SEAT_STALE, FORCED, "members: an entry about an ended process goes on")  \
    X(SEAT_ROLE, FORCED, "members: a leader is removed in its role")           \
    X(SEAT_MINORITY, FORCED, "members: no majority is left by a change")       \
    X(U_SILENT, UTILITY, "utility: a promise keeps its vote for itself")       \
    X(U_COUNT, UTILITY, "utility: votes are counted over ballots")             \
    X(U_BALLOT, UTILITY, "utility: a vote in spite of a later promise")        \
    X(U_OWN_VALUE, UTILITY, "utility: the own value in spite of votes")        \
    X(U_NOT_MUTE, UTILITY, "T16: a voter without its record votes at once")    \
    X(U_NO_SKIP, FORCED, "utility: a laggard waits for entries none keeps")    \
    X(U_ANY_LIFE, FORCED, "T16: any VOTER entry of its id is its own")         \
    X(U_CAPACITY, UTILITY, "members: a majority of all seats is asked for")    \
    X(U_PROPOSERS, UTILITY, "members: counted by those the proposer wants")    \
    X(U_NON_VOTER, UTILITY, "members: a node that is no voter leads")          \
    X(U_ALONE, UTILITY, "members: the only voter acts before its record")      \
    X(U_OWN_ENTRY, UTILITY, "members: a newcomer votes on its own entry")      \
    X(U_DIFFERENCE, UTILITY, "members: voters by difference, not by mask")     \
    X(U_SEAT_TAKEN, UTILITY,                                                   \
      "members: a seat is taken before its voter ended")                       \
    X(U_LATE_RECORD, UTILITY, "utility: the answer leaves before the record")  \
    X(RING_STAYS, SPREAD, "ring: it is never left")                            \
    X(RING_UNSAID, SPREAD, "ring: LEARN does not say that it goes over one")   \
    X(RING_INNER, SPREAD,                                                      \
      "ring: one that held it up keeps its place in the tree")

enum qn_mutant {
    QN_MUTANT_NONE,
#define X(name, by, text) QN_MUTANT_##name,
    QN_MUTANT_MAP(X)
#undef X
        QN_MUTANT_COUNT
};

#ifdef QN_MUTANTS
extern enum qn_mutant qn_mutant;
#define QN_MUTANT(name) (qn_mutant == QN_MUTANT_##name)
#else
#define QN_MUTANT(name) ((void)QN_MUTANT_##name, false)
#endif

#endif
