/*
 * Members of a group come and go (paxos/PROTOCOL.md 4.4; utility.c, utility_log.c):
 * the utility log over I indices, where entry i names all voters of index i+1.
 *
 * N seats, of which V0 vote at index 0. Nodes 0 and 1 propose, one ballot each per
 * index: an entry that repeats the voters, or that adds or removes one; of each at
 * most one is in the log. A node may skip entries: a snapshot brings it the newest
 * one. A process may die and start again, RESTARTS times in all, with its record. A
 * node that learns that it is removed ends, and may be started again as well.
 * Messages stay in a set. The value of an entry is its mask, and its proposer.
 *
 * Checked after every step: one entry per index, by whatever majority; a node votes
 * and counts by the mask that the entry below names; `told`, as in
 * utility_record.pml: a chosen entry is in a record or a majority of the voters of
 * its index still has its votes for it. So the removed may end at once.
 *
 * Defects, with the names of paxos/mutant.h
 *     BUG_U_PROPOSERS    the proposer counts by the voters that it wants
 *     BUG_U_OWN_ENTRY    a node that is not a voter votes, and is counted
 *     BUG_U_DIFFERENCE   voters by difference, not by mask, across skipped entries
 *     BUG_U_ALONE        the only voter acts before its record is written
 */
#ifndef N
#define N 3
#endif
#ifndef I
#define I 3
#endif
#ifndef V0
#define V0 3
#endif
#ifndef RESTARTS
#define RESTARTS 1
#endif
#define NB 3                       /* ballots 1 and 2, of nodes 0 and 1 */

byte uln[N], vot[N];               /* entries known; the voters of index uln */
byte vidx[N], bal[N], vbal[N], vval[N];  /* the record: index, promise, vote */
bit  prep[I*NB];
byte promm[I*NB], accm[I*NB];      /* masks: promises, votes */
byte promv[I*NB*N], promb[I*NB*N], accq[I*NB];
byte entry[I], voters[I+1];        /* ghost: chosen; of each index */
bit  trying[N], ended[N];
byte restarts = 0;
#define Q(i,b) ((i)*NB+(b))
#define P(i,b,x) (((i)*NB+(b))*N+(x))
#define MINE(me) ((me)+1)
#define BIT(x) (1 << (x))
#define POP(m) (((m)&1) + (((m)>>1)&1) + (((m)>>2)&1) + (((m)>>3)&1))
#define MAJ(g,v) (2*POP((g)&(v)) > POP(v))
#define MASK(e) ((e) >> 1)
#define VALUE(m,me) (((m) << 1) + (me))
#define V(i) voters[i]
#define GROWS(i) ((MASK(entry[i]) & ~V(i)) != 0)
#define SHRINKS(i) ((V(i) & ~MASK(entry[i])) != 0)
#define ADDED(u) (((u) > 0 && GROWS(0)) || ((u) > 1 && GROWS(1)))
#define REMOVED(u) (((u) > 0 && SHRINKS(0)) || ((u) > 1 && SHRINKS(1)))

#ifdef BUG_U_OWN_ENTRY
#define MAYVOTE(me) true
#define COUNT(g,v) (2*POP(g) > POP(v))
#else
#define MAYVOTE(me) ((vot[me] & BIT(me)) != 0)
#define COUNT(g,v) MAJ(g,v)
#endif
#ifdef BUG_U_PROPOSERS
#define BY(me,b) MASK(accq[Q(uln[me],b)])
#else
#define BY(me,b) vot[me]
#endif
#define BAL(me) (vidx[me] == uln[me] -> bal[me] : 0)
#define OPEN(me) (!ended[me] && uln[me] < I)

inline chosen(i,v) {
  assert(entry[i] == 0 || entry[i] == (v)); entry[i] = v; voters[(i)+1] = MASK(v)
}

/* A vote, or a promise: for the open index, by the prefix. */
inline open_vote(me) {
  assert(vot[me] == V(uln[me]));
  if
  :: vidx[me] < uln[me] -> vidx[me] = uln[me]; bal[me] = 0; vbal[me] = 0; vval[me] = 0
  :: else
  fi
}
inline on_prepare(me,b) {
  open_vote(me);
  bal[me] = b; promm[Q(uln[me],b)] = promm[Q(uln[me],b)] | BIT(me);
  promb[P(uln[me],b,me)] = vbal[me]; promv[P(uln[me],b,me)] = vval[me]
}
inline on_accept(me,b) {
  open_vote(me);
  bal[me] = b; vbal[me] = b; vval[me] = accq[Q(uln[me],b)];
  accm[Q(uln[me],b)] = accm[Q(uln[me],b)] | BIT(me);
  if
  :: MAJ(accm[Q(uln[me],b)], V(uln[me])) -> chosen(uln[me], accq[Q(uln[me],b)])
  :: else
  fi
}

/* A majority of promises: the highest vote among them, or what it likes best. */
inline begin_accept(me) {
  x = 0; y = 0; v = 0;
  do
  :: x < N ->
     if
     :: (promm[Q(uln[me],MINE(me))] & BIT(x)) && promb[P(uln[me],MINE(me),x)] > y ->
        y = promb[P(uln[me],MINE(me),x)]; v = promv[P(uln[me],MINE(me),x)]
     :: else
     fi; x++
  :: else -> break
  od;
  if
  :: y > 0
  :: y == 0 -> v = VALUE(vot[me], me)
  :: y == 0 && !ADDED(uln[me]) && vot[me] != BIT(N)-1 ->
     x = 0; do :: vot[me] & BIT(x) -> x++ :: else -> break od;
     v = VALUE(vot[me] | BIT(x), me)
  :: y == 0 && !REMOVED(uln[me]) && (vot[me] & ~BIT(me)) != 0 ->
     x = 0;
     do
     :: x < N && (vot[me] & BIT(x)) && x != me -> break
     :: x < N-1 && ((vot[me] & ~BIT(me)) >> (x+1)) != 0 -> x++
     od;
     v = VALUE(vot[me] & ~BIT(x), me)
  fi;
  accq[Q(uln[me],MINE(me))] = v;
  x = 0; y = 0; v = 0
}

/* Entry `to` - 1 is the newest that it learns; those between are skipped. */
inline learn(me,to) {
#ifdef BUG_U_DIFFERENCE
  vot[me] = vot[me] ^ (MASK(entry[to-1]) ^ V(to-1));
#else
  vot[me] = MASK(entry[to-1]);
#endif
  if
  :: uln[me] + 1 == to && (V(to-1) & BIT(me)) && !(MASK(entry[to-1]) & BIT(me)) -> ended[me] = 1
  :: else
  fi;
  uln[me] = to; trying[me] = 0
}

inline restart(me) {
  trying[me] = 0; ended[me] = 0;
  uln[me] = vidx[me];              /* the entries below the vote come back with it */
  vot[me] = V(vidx[me])
}

#define KNOWS(x,i) ((!ended[x] && uln[x] > (i)) || vidx[x] > (i))
#define HAS(x,i) ((vidx[x] == (i) && vbal[x] != 0 && vval[x] == entry[i]) << (x))
#if N == 4
#define ANY(i) (KNOWS(0,i) || KNOWS(1,i) || KNOWS(2,i) || KNOWS(3,i))
#define HAVE(i) (HAS(0,i) | HAS(1,i) | HAS(2,i) | HAS(3,i))
#else
#define ANY(i) (KNOWS(0,i) || KNOWS(1,i) || KNOWS(2,i))
#define HAVE(i) (HAS(0,i) | HAS(1,i) | HAS(2,i))
#endif
inline told() {
  x = 0;
  do
  :: x < I -> assert(entry[x] == 0 || ANY(x) || MAJ(HAVE(x), V(x))); x++
  :: else -> break
  od; x = 0
}

proctype node(byte me) {
  byte x, y, v;
end:
  do
  :: atomic { OPEN(me) && entry[uln[me]] != 0 -> learn(me, uln[me]+1); told() }
  :: atomic { OPEN(me) && uln[me]+2 <= I && entry[uln[me]+1] != 0 -> learn(me, uln[me]+2) }
  :: atomic { OPEN(me) && MAYVOTE(me) && prep[Q(uln[me],1)] && BAL(me) < 1 -> on_prepare(me,1) }
  :: atomic { OPEN(me) && MAYVOTE(me) && prep[Q(uln[me],2)] && BAL(me) < 2 -> on_prepare(me,2) }
  :: atomic { OPEN(me) && MAYVOTE(me) && accq[Q(uln[me],1)] != 0 && BAL(me) <= 1 &&
              !(accm[Q(uln[me],1)] & BIT(me)) -> on_accept(me,1); told() }
  :: atomic { OPEN(me) && MAYVOTE(me) && accq[Q(uln[me],2)] != 0 && BAL(me) <= 2 &&
              !(accm[Q(uln[me],2)] & BIT(me)) -> on_accept(me,2); told() }
  /* begin_ballot: by a voter, once per index */
  :: atomic { me < 2 && OPEN(me) && (vot[me] & BIT(me)) && !trying[me] && !prep[Q(uln[me],MINE(me))] ->
              prep[Q(uln[me],MINE(me))] = 1; trying[me] = 1 }
  :: atomic { me < 2 && OPEN(me) && trying[me] && accq[Q(uln[me],MINE(me))] == 0 &&
              COUNT(promm[Q(uln[me],MINE(me))], vot[me]) -> begin_accept(me) }
  /* the proposer finds that its value is chosen */
  :: atomic { me < 2 && OPEN(me) && trying[me] && accq[Q(uln[me],MINE(me))] != 0 &&
              COUNT(accm[Q(uln[me],MINE(me))], BY(me,MINE(me))) && entry[uln[me]] != accq[Q(uln[me],MINE(me))] ->
              chosen(uln[me], accq[Q(uln[me],MINE(me))]) }
#ifdef BUG_U_ALONE
  :: atomic { me < 2 && OPEN(me) && trying[me] && vot[me] == BIT(me) && accq[Q(uln[me],MINE(me))] != 0 ->
              chosen(uln[me], accq[Q(uln[me],MINE(me))]); learn(me, uln[me]+1); told() }
#endif
  :: atomic { restarts < RESTARTS -> restarts++; restart(me); told() }
  od
}

init { atomic {
  byte k = 0;
  voters[0] = V0;
  do :: k < N -> vot[k] = V0; k++ :: else -> break od; k = 0;
  run node(0); run node(1); run node(2)
#if N == 4
  ; run node(3)
#endif
} }
