/*
 * One index of the utility log (paxos/PROTOCOL.md 4; utility.c): Paxos over three
 * voters. An index is begun only when the one below it is known, so agreement on
 * one is agreement on the log; what lies below a vote is utility_record.pml.
 *
 * Two of the three nodes propose, each with ballots of its own. A message is sent
 * into a set and stays there: it may come late, in any order, or never. Actions
 * have the names of the handlers: begin_ballot, on_prepare (vote_prepare),
 * begin_accept, on_accept (vote_accept), chosen.
 *
 * Knobs
 *     R0 R1   ballots of the two proposers
 *     CRASH   one voter stops at any step
 *     TRACE   nothing runs: the actions are those of traces/replay_utility.pml
 * Defects, with the names of paxos/mutant.h
 *     BUG_U_SILENT    a promise does not say what was voted before
 *     BUG_U_COUNT     votes are counted over ballots
 *     BUG_U_AMNESIA   T16: a voter restarts without its record (with CRASH)
 */
#ifndef R0
#define R0 2
#endif
#ifndef R1
#define R1 2
#endif
#ifndef VALUES
#define VALUES 2               /* that are proposed, from 1 */
#endif
#if R0 > R1
#define NB (2*R0+1)
#else
#define NB (2*R1+1)            /* ballots 1..NB-1: 2*round + which + 1 */
#endif

bit prep[NB];                  /* U_PREPARE(b) */
bit prom[3*NB];                /* U_PROMISE(voter, b): what was voted before, and its ballot */
byte promv[3*NB], promb[3*NB];
byte accq[NB];                 /* U_ACCEPT(b, value) */
bit accd[3*NB];                /* U_ACCEPTED(voter, b) */
byte bal[3], vbal[3], vval[3]; /* the record of each voter */
bit up[3]; byte crashes = 0;
byte entry = 0;                /* ghost */
#define P(x,b) ((x)*NB+(b))

inline on_prepare(me) {
  bal[me] = b; prom[P(me,b)] = 1; promb[P(me,b)] = vbal[me];
#ifndef BUG_U_SILENT
  promv[P(me,b)] = vval[me]
#endif
}

inline on_accept(me) {
  bal[me] = b; vbal[me] = b; vval[me] = accq[b]; accd[P(me,b)] = 1
}

#ifndef TRACE
proctype voter(byte me) {
  byte b;
  do
  :: atomic { up[me] -> b = 1;
       do :: b < NB-1 -> b++ :: break od;
       if
       :: prep[b] && b > bal[me] -> on_prepare(me)
       :: prep[b] && b == bal[me] && vbal[me] < b -> skip   /* asked again: the same answer */
       :: accq[b] != 0 && b >= bal[me] && !accd[P(me,b)] -> on_accept(me)
       :: else
       fi; b = 0 }
#ifdef CRASH
  :: atomic { up[me] && crashes == 0 -> crashes++; up[me] = 0;
#ifdef BUG_U_AMNESIA
       up[me] = 1; bal[me] = 0; vbal[me] = 0; vval[me] = 0
#endif
     }
#endif
  od
}
#endif

/* The value of the highest ballot that some majority of promises tells of. */
inline begin_accept() {
  hb = 0; hv = 0; cnt = 0; i = 0;
  do
  :: i < 3 && prom[P(i,b)] ->
     if
     :: if :: promb[P(i,b)] > hb -> hb = promb[P(i,b)]; hv = promv[P(i,b)] :: else fi; cnt++
     :: cnt + prom[P(1,b)]*(i<1) + prom[P(2,b)]*(i<2) >= 2 -> skip
     fi; i++
  :: i < 3 && !prom[P(i,b)] -> i++
  :: i == 3 -> break
  od;
  if :: hv != 0 -> accq[b] = hv :: else -> accq[b] = val fi;
  i = 0; hb = 0; hv = 0; cnt = 0
}

#ifndef TRACE
proctype proposer(byte which; byte val; byte rounds) {
  byte r = 0, b, i, hb, hv, cnt;
  do
  :: r < rounds ->
     atomic { b = 2*r + which + 1; prep[b] = 1 };            /* begin_ballot */
     if
     :: atomic { prom[P(0,b)] + prom[P(1,b)] + prom[P(2,b)] >= 2 -> begin_accept() }
     :: skip                                                 /* lost: a higher ballot */
     fi;
     r++
  :: else -> break
  od
}
#endif

inline chosen(v) { assert(v >= 1 && v <= VALUES); assert(entry == 0 || entry == v); entry = v }

#ifndef TRACE
proctype learner() {           /* ghost: sees every answer */
  byte b, c;
  do
#ifdef BUG_U_COUNT
  :: atomic { b = 1;
       do :: b < NB-1 -> b++ :: break od;
       c = 1;
       do :: c < NB-1 -> c++ :: break od;
       if
       :: accd[P(0,b)] && accd[P(1,c)] -> chosen(accq[c])
       :: accd[P(0,b)] && accd[P(2,c)] -> chosen(accq[c])
       :: accd[P(1,b)] && accd[P(2,c)] -> chosen(accq[c])
       :: accd[P(1,b)] && accd[P(0,c)] -> chosen(accq[c])
       :: else
       fi; b = 0; c = 0 }
#else
  :: atomic { b = 1;
       do :: b < NB-1 -> b++ :: break od;
       if
       :: accd[P(0,b)] + accd[P(1,b)] + accd[P(2,b)] >= 2 -> chosen(accq[b])
       :: else
       fi; b = 0 }
#endif
  od
}

init { atomic { up[0] = 1; up[1] = 1; up[2] = 1;
  run voter(0); run voter(1); run voter(2);
  run proposer(0, 1, R0); run proposer(1, 2, R1); run learner() } }
#endif
