#ifndef QN_PAXOS_MUTANT_H
#define QN_PAXOS_MUTANT_H

/**
 * Defects that the simulator must find (positive controls). In the product
 * QN_MUTANT(x) is the constant false; tests/sim compiles the machine a second
 * time with QN_MUTANTS set and chooses one by `qn_mutant`.
 */

#include <stdbool.h>

enum qn_mutant {
    QN_MUTANT_NONE,
    QN_MUTANT_REUSE_SLOT,   /* leader: one slot is given to two batches */
    QN_MUTANT_EARLY_DECIDE, /* leader: what is proposed counts as decided */
    QN_MUTANT_NO_SEEN,      /* leader: duplicates get slots of their own */
    QN_MUTANT_STAMP_BACK,   /* leader: the wall clock is taken as it is */
    QN_MUTANT_NO_ORDER,     /* learner: a slot is applied when it comes */
    QN_MUTANT_NO_FETCH,     /* learner: gaps are never fetched */
    QN_MUTANT_TRUNCATE,     /* the log drops what only this node has applied */
    QN_MUTANT_NO_CREDIT,    /* origin: any number of commands on their way */
    QN_MUTANT_U_SILENT,     /* utility: a promise keeps its vote for itself */
    QN_MUTANT_U_COUNT,      /* utility: votes are counted over ballots */
    QN_MUTANT_U_AMNESIA,    /* utility: a restarted voter forgets (T16) */
    QN_MUTANT_NO_ADOPT,     /* T1: PREPARED is not adopted */
    QN_MUTANT_NO_PROMISE,   /* T2: PREPARE promises nothing */
    QN_MUTANT_NO_HANDOFF,   /* T3: the new acceptor begins empty */
    QN_MUTANT_NO_FREEZE,    /* T4: the leader goes on while it stages */
    QN_MUTANT_UNADOPTED,    /* T5: a leader not adopted replaces the acceptor */
    QN_MUTANT_NO_SEAL,      /* 3.4: blocked by one crash and one suspicion */
    QN_MUTANT_STALE_HI,     /* M3: promised without the hi that was copied */
    QN_MUTANT_TAKE_BEHIND,  /* M10: take-over by a node behind the ring */
    QN_MUTANT_RING_LATE,    /* M8: lo is raised after the write */
    QN_MUTANT_RING_NO_LOOK, /* M8: no second look at lo */
    QN_MUTANT_RING_TENURE, /* M6: a ring that is used again keeps old entries */
    QN_MUTANT_COUNT
};

#ifdef QN_MUTANTS
extern enum qn_mutant qn_mutant;
#define QN_MUTANT(name) (qn_mutant == QN_MUTANT_##name)
#else
#define QN_MUTANT(name) ((void)QN_MUTANT_##name, false)
#endif

#endif
