/*
 * What a voter of the utility log must not forget (paxos/PROTOCOL.md 4.1;
 * utility.c, PERSIST): its vote AND the entries below it.
 *
 * Three nodes, I indices, one after the other: a node votes at index `uln` only,
 * the first that it does not know; at the last one it only promises. Nodes 0 and 1 propose, one ballot each per
 * index. A node's process may die and start again, RESTARTS times in all, two of
 * them at one instant: it keeps its record and nothing else. Messages stay in a
 * set, as in utility.pml; U_CHOSEN is the ghost `entry`, which any node may learn
 * or never hear of.
 *
 * Checked after every step: one entry per index, and `told`: an entry that is
 * chosen is known to a living node, or a majority still has its votes for that
 * index and can find it again. So nothing is lost if no message is left.
 *
 * Defects
 *     BUG_RECORD_VOTE_ONLY   the record is the vote alone; a restarted node
 *                            waits until it knows the entries below: blocked
 *     BUG_RECORD_VOID        the same, but it takes a record for a later index
 *                            for void, and votes: two entries for one index
 *     BUG_U_AMNESIA          T16: nothing is kept
 */
#ifndef I
#define I 2
#endif
#ifndef RESTARTS
#define RESTARTS 2
#endif
#define N 3
#define NB 3                       /* ballots 1 and 2, of nodes 0 and 1 */

byte uln[N];                       /* entries known */
byte vidx[N], bal[N], vbal[N], vval[N];  /* the record: index, promise, vote */
bit  prep[I*NB], prom[I*NB*N], accd[I*NB*N];
byte promv[I*NB*N], promb[I*NB*N], accq[I*NB];
byte entry[I];                     /* ghost: chosen */
bit  trying[N];                    /* proposer: a ballot begun in this life */
byte restarts = 0;
#define Q(i,b) ((i)*NB+(b))
#define P(i,b,x) (((i)*NB+(b))*N+(x))
#define MINE(me) ((me)+1)          /* its ballot and its value */
#define CHOSEN(i,b) (accd[P(i,b,0)] + accd[P(i,b,1)] + accd[P(i,b,2)] >= 2)

#ifdef BUG_RECORD_VOID
#define MAYVOTE(me) true
#define ISVOID(me) (vidx[me] > uln[me])
#else
#define MAYVOTE(me) (vidx[me] <= uln[me])
#define ISVOID(me) false
#endif
#define BAL(me) (vidx[me] == uln[me] -> bal[me] : 0)

/* The record for the index that is open now. */
inline open_vote(me) {
  if
  :: vidx[me] < uln[me] || ISVOID(me) -> vidx[me] = uln[me]; bal[me] = 0; vbal[me] = 0; vval[me] = 0
  :: else
  fi
}
inline on_prepare(me,b) {
  open_vote(me);
  bal[me] = b; prom[P(uln[me],b,me)] = 1;
  promb[P(uln[me],b,me)] = vbal[me]; promv[P(uln[me],b,me)] = vval[me]
}

inline on_accept(me,b) {
  open_vote(me);
  bal[me] = b; vbal[me] = b; vval[me] = accq[Q(uln[me],b)]; accd[P(uln[me],b,me)] = 1;
  if
  :: CHOSEN(uln[me],b) ->
     assert(entry[uln[me]] == 0 || entry[uln[me]] == accq[Q(uln[me],b)]);
     entry[uln[me]] = accq[Q(uln[me],b)]
  :: else
  fi
}

inline begin_accept(me) {          /* any majority of the promises */
  x = 0; y = 0; c = 0;
  do
  :: x < N ->
     if
     :: prom[P(uln[me],MINE(me),x)] && c < 2 ->
        c++;
        if :: promb[P(uln[me],MINE(me),x)] > y -> y = promb[P(uln[me],MINE(me),x)]; v = promv[P(uln[me],MINE(me),x)] :: else fi
     :: x == 0 || !prom[P(uln[me],MINE(me),x)] || c == 2 -> skip
     :: x == 1 && c == 1 && prom[P(uln[me],MINE(me),2)] -> skip
     fi; x++
  :: else -> break
  od;
  if
  :: c < 2                         /* that was no majority: never mind */
  :: else -> accq[Q(uln[me],MINE(me))] = (y > 0 -> v : MINE(me)); skip
  fi;
  x = 0; y = 0; c = 0; v = 0
}

inline restart(me) {
  trying[me] = 0;
#if defined(BUG_RECORD_VOTE_ONLY) || defined(BUG_RECORD_VOID)
  uln[me] = 0
#else
#ifdef BUG_U_AMNESIA
  uln[me] = 0; vidx[me] = 0; bal[me] = 0; vbal[me] = 0; vval[me] = 0
#else
  uln[me] = vidx[me]               /* the entries below the vote come back with it */
#endif
#endif
}

/* Section 4: a chosen entry can be had although no message is left. */
#define KNOWS(x,i) (uln[x] > (i))
#define HAS(x,i) (vidx[x] == (i) && uln[x] == (i) && vbal[x] != 0)
inline told() {
  x = 0;
  do
  :: x < I ->
     assert(entry[x] == 0 || KNOWS(0,x) || KNOWS(1,x) || KNOWS(2,x) || HAS(0,x) + HAS(1,x) + HAS(2,x) >= 2); x++
  :: else -> break
  od; x = 0
}

proctype node(byte me) {
  byte x, y, v, c;
end:
  do
  :: atomic { uln[me] < I && entry[uln[me]] != 0 -> uln[me]++; trying[me] = 0; told() }
  :: atomic { uln[me] < I && MAYVOTE(me) && prep[Q(uln[me],1)] && BAL(me) < 1 -> on_prepare(me,1); told() }
  :: atomic { uln[me] < I && MAYVOTE(me) && prep[Q(uln[me],2)] && BAL(me) < 2 -> on_prepare(me,2); told() }
  :: atomic { uln[me] < I && MAYVOTE(me) && accq[Q(uln[me],1)] != 0 && BAL(me) <= 1 && !accd[P(uln[me],1,me)] -> on_accept(me,1); told() }
  :: atomic { uln[me] < I && MAYVOTE(me) && accq[Q(uln[me],2)] != 0 && BAL(me) <= 2 && !accd[P(uln[me],2,me)] -> on_accept(me,2); told() }
  /* begin_ballot: once per index, ballots are never used twice */
  :: atomic { me < 2 && uln[me] < I && !trying[me] && !prep[Q(uln[me],MINE(me))] -> prep[Q(uln[me],MINE(me))] = 1; trying[me] = 1 }
  :: atomic { me < 2 && uln[me] + 1 < I && trying[me] && accq[Q(uln[me],MINE(me))] == 0 &&
              prom[P(uln[me],MINE(me),0)] + prom[P(uln[me],MINE(me),1)] + prom[P(uln[me],MINE(me),2)] >= 2 -> begin_accept(me) }
  :: atomic { restarts < RESTARTS -> restarts++; restart(me); told() }
  :: atomic { me < 2 && restarts + 1 < RESTARTS -> restarts = restarts + 2; restart(me); restart(2); told() }
  od
}

init { atomic { run node(0); run node(1); run node(2) } }
