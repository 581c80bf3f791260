/*
 * The agreement core (paxos/PROTOCOL.md 6.1 to 6.4): three nodes, one leader and
 * one process acceptor per epoch, both replaced at any time.
 *
 * Actions and fields have the names of the handlers and fields of the machine:
 *
 *     propose                      propose.c        6.1
 *     on_accept on_accepted on_learn  learner.c    6.1
 *     epoch_learn epoch_suffix take check_leader   reconfigure.c    6.2, "learn UL entries"
 *     lead_begin on_prepare on_prepared            leader_change.c     6.2
 *     seal_step on_seal on_sealed recovered        leader_change.c     6.2
 *     freeze stage on_stage on_staged appoint appointed  acceptor_change.c  6.3
 *
 * An epoch is an index of the utility log, which is an atomic object here (its
 * own Paxos: utility.pml); nodes learn its entries one by one, as late as they
 * like. Messages between two nodes are FIFO; LEARN goes its own way, unordered.
 * A crash drops any suffix of each channel from the node and any of its LEARNs.
 * Suspicion is a free choice: no assumption about failure detection is made.
 *
 * Knobs
 *     S  slots, 1 or 2      E  epochs, 0 included      MAXCRASH      K  channel
 *     STAGE_RPC, SEAL_RPC, RPC (both)  these are atomic exchanges: fewer states
 *     PARTS       STAGE comes in two messages, as from acceptor_change.c: the utility
 *                 log, then slots
 *     RESTAGE     a frozen leader may stage once more (its candidate seemed gone)
 *     NOLEARN     no LEARN; agreement is then checked where slots are decided
 *     NOACCEPTED  no ACCEPTED
 *     FILL        a decided slot is learned from anywhere
 *     RESIGN      a leader stops for no reason
 *     BAG         messages in any order; questions come again
 *     NOSTUCK     do not ask that one crash leaves the group recoverable
 *     AGREEONLY   agreement and validity only: see a defect become a disagreement
 *     ANY_EPOCH   ACCEPTED is learned whatever its epoch and the receiver's role
 *     TELL_NEWEST ACCEPTED goes to the leader of the newest epoch that the
 *                 acceptor knows. Each is harmless, both together are a defect
 *
 * Defects, with the names of paxos/mutant.h where they are there, too
 *     BUG_NO_ADOPT     T1   BUG_NO_PROMISE  T2   BUG_NO_HANDOFF  T3
 *     BUG_NO_FREEZE    T4   BUG_UNADOPTED   T5   BUG_NO_UL       T6
 *     BUG_AMNESIA      T7   BUG_OLD_SEAL    T8   BUG_STAGE_LOST  T17
 *     BUG_NO_SEAL           no SEAL at all: blocked
 *     BUG_EARLY_ACCEPTED    ACCEPTED for what is refused
 *     BUG_LATE_STAGE   T18  a STAGE of an older epoch clears the staged set: blocked
 *     BUG_STAGE_MIX    T18  its slots get into the staged set (PARTS)
 *     BUG_STAGE_AGAIN  T18  a second STAGE of one epoch clears it first (RESTAGE): blocked
 */
#ifndef S
#define S 1
#endif
#ifndef E
#define E 3
#endif
#ifndef MAXCRASH
#define MAXCRASH 1
#endif
#ifndef K
#ifdef PARTS
#define K 10
#else
#define K 6
#endif
#endif
#ifndef N
#define N 3
#endif
#ifdef RPC
#define STAGE_RPC
#define SEAL_RPC
#endif
#ifndef NV
#define NV 2 /* client values 1..NV */
#endif
#ifndef NEWVALUE /* values are symmetric: the first one proposed is 1 */
#define NEWVALUE if :: v = 1 :: first -> v = 2 fi; first = 1
#endif
#define COMPLETE 128 /* SEALED: added to its target */
#define NONE 255
#define ASKED 254 /* sk: one question under way; rpc_to: entry chosen */
#define AGAIN 253 /* next: a frozen leader that has staged twice */
#ifdef BUG_NO_FREEZE
#define MAYPROPOSE(me) (n[me].role == ACTIVE || n[me].role == FROZEN)
#else
#define MAYPROPOSE(me) (n[me].role == ACTIVE)
#endif
#ifdef BUG_NO_PROMISE
#define MAYACCEPT(me,e) true
#else
#define MAYACCEPT(me,e) ((e) == n[me].promised)
#endif
#ifdef BUG_NO_UL
#define ULFREE(e) true
#else
#define ULFREE(e) (ullen == (e))
#endif
#ifdef SEAL_RPC
#define SEALABLE(me) (ulL[n[me].sk] == me || n[ulL[n[me].sk]].up)
#else
#define SEALABLE(me) true
#endif
#ifdef AGREEONLY
#define xassert(c) assert(true)
#else
#define xassert(c) assert(c)
#endif

mtype = { ACCEPT, ACCEPTED, PREPARE, PREPARED, STAGE_UL, STAGE, STAGED, SEAL, SEALED };
#ifdef TRACE /* from, to: a bag of all messages (traces/replay.pml) */
chan net = [K] of { byte, byte, mtype, byte, byte, byte, byte };
#else
chan q[N*N] = [K] of { mtype, byte, byte, byte, byte };
#define CH(f,t) q[(f)*N+(t)]
#endif

/* The utility log: leader, acceptor, tenure of each epoch. An ACCEPTOR entry is
 * one whose tenure is its own index; its `from` is the index before. */
byte ulL[E], ulA[E], ulT[E];
byte ullen = 1;

#define FOLLOWER  0
#define PREPARING 1
#define ACTIVE    2
#define FROZEN    3
typedef Node {
  bit  up;
  byte idx;                     /* cfg.index: newest entry known */
  /* leader */
  byte role, ep, cep, next, sk;
  byte log[S];                  /* its slots, P and L: what SEALED and STAGE say */
#ifdef STAGE_RPC
  byte rpc_to;                  /* candidate that has answered */
#endif
  /* acceptor */
  bit  on;                      /* active (a keyword here) */
  byte tenure, promised;
  byte acc[S];
  /* candidate */
  byte st_from;                 /* whole set of this epoch */
  byte staged[S];
  /* learner */
  byte lrn[S];
};
Node n[N];
byte lp[N*S];                   /* LEARNs under way: bit v set <=> LEARN(slot, v) */
byte decided[S];                /* ghost */
byte crashes = 0;
bit checked = 0;
bit first = 0;

#ifdef TRACE
inline send(p_f,p_t,p_m,p_1,p_2,p_3,p_4) {
  if
  :: n[p_t].up && !net??[eval(p_f),eval(p_t),p_m,eval(p_1),eval(p_2),eval(p_3),eval(p_4)] ->
     net!p_f,p_t,p_m,p_1,p_2,p_3,p_4
  :: else
  fi
}
#else
#ifdef BAG
#define SENT(f,t,m,x1,x2,x3,x4) (CH(f,t)??[m,eval(x1),eval(x2),eval(x3),eval(x4)])
#else
#define SENT(f,t,m,x1,x2,x3,x4) false
#endif
inline send(p_f,p_t,p_m,p_1,p_2,p_3,p_4) {
  if
  :: n[p_t].up && !SENT(p_f,p_t,p_m,p_1,p_2,p_3,p_4) -> assert(len(CH(p_f,p_t)) < K); CH(p_f,p_t)!p_m,p_1,p_2,p_3,p_4
  :: else
  fi
}

/* Section 1: crash-stop. A next life is another node (T7 is what happens else). */
inline crash(me) {
  n[me].up = 0; crashes++;
  i = 0;
  do
  :: i < N ->
     do :: len(CH(i,me)) > 0 -> CH(i,me)?_,_,_,_,_ :: else -> break od;
     if
     :: skip                                   /* all that was sent arrives */
     :: len(CH(me,i)) > 0 ->                   /* or a suffix is lost */
        k = len(CH(me,i)); j = 0;
        do :: j < k-1 -> j++ :: break od;
        x = 0;
        do
        :: x < k -> CH(me,i)?t,a,b,c,d;
                    if :: x < j -> CH(me,i)!t,a,b,c,d :: else fi; x++
        :: else -> break
        od
     fi;
     i++
  :: else -> break
  od;
  i = 0;
  do
  :: i < N*S -> if :: n[me].on -> lp[i] = 0 :: skip fi; i++
  :: else -> break
  od;
#ifdef BUG_AMNESIA
  if
  :: n[me].on -> n[me].up = 1; n[me].role = FOLLOWER;
     i = 0; do :: i < S -> n[me].acc[i] = 0; n[me].lrn[i] = 0; n[me].log[i]=0; i++ :: else -> break od
  :: skip
  fi;
#endif
  i = 0; j = 0; k = 0; x = 0; a = 0; b = 0; c = 0; d = 0; t = 0
}
#endif

/* ---------------------------------------------------------- decisions -- */

/* Section 7: I1, validity, one value in one slot. */
inline decide(s,v) {
  assert(v >= 1 && v <= NV);
  assert(decided[s] == 0 || decided[s] == v);
  decided[s] = v;
  i = 0;
  do :: i < S -> xassert(i == s || decided[i] != v); i++ :: else -> break od;
  i = 0
}

#ifdef NOACCEPTED
#define NOTTOLD(i,leader) true
#else
#define NOTTOLD(i,leader) (i != leader)
#endif
/* 6.1: LEARN to all but the leader, who is told by ACCEPTED. */
inline tell(me,s,v,leader) {
#ifndef NOLEARN
  assert(n[me].lrn[s] == 0 || n[me].lrn[s] == v);
  n[me].lrn[s] = v;
  i = 0;
  do
  :: i < N ->
     if
     :: i != me && n[i].up && n[i].lrn[s] != v && NOTTOLD(i,leader) -> lp[i*S+s] = lp[i*S+s] | (1 << v)
     :: else
     fi; i++
  :: else -> break
  od; i = 0
#else
  skip
#endif
}

/* ------------------------------------------- reconfigure.c: entries learned -- */

/* 6.3: what was staged is decided now, if it is this entry's set. */
inline appointed(me) {
  n[me].on = 1; n[me].tenure = n[me].idx; n[me].promised = n[me].idx;
#ifdef BUG_NO_HANDOFF
  n[me].acc[0] = 0; n[me].acc[S-1] = 0;
#else
  xassert(n[me].acc[0] == 0 || n[me].acc[0] == n[me].staged[0]);
  xassert(n[me].acc[S-1] == 0 || n[me].acc[S-1] == n[me].staged[S-1]);
  n[me].acc[0] = n[me].staged[0]; n[me].acc[S-1] = n[me].staged[S-1];
  if :: n[me].acc[0] != 0 -> decide(0, n[me].acc[0]) :: else fi;
  if :: S > 1 && n[me].acc[S-1] != 0 -> decide(S-1, n[me].acc[S-1]) :: else fi;
#endif
  n[me].st_from = NONE; n[me].staged[0] = 0; n[me].staged[S-1] = 0
}

/* One entry, for what it means for ever (T9: also if it is skipped over). */
inline take(me) {
  n[me].idx++;
  if
  :: ulL[n[me].idx] == me ->
     n[me].ep = n[me].idx;
     if :: ulT[n[me].idx] == n[me].idx -> n[me].cep = n[me].idx :: else fi
  :: else
  fi;
  if
  :: ulA[n[me].idx] == me && ulT[n[me].idx] == n[me].idx && n[me].st_from == n[me].idx - 1 -> appointed(me)
  :: else
  fi
}

/* Entries that came with a message, whose last one names another leader. */
inline epoch_suffix(me, p_e) {
  do
  :: n[me].idx < p_e -> take(me); n[me].role = FOLLOWER
  :: else -> break
  od
}

/* One entry at a time, at any time: a node may act for an epoch that is over. */
inline epoch_learn(me) {
  take(me);
  if
  :: ulL[n[me].idx] == me -> lead_begin(me)
  :: else -> n[me].role = FOLLOWER
  fi
}

/* 6.2: who is neither leader nor acceptor of the last entry proposes itself. */
inline check_leader(me) {
  ulL[ullen] = me; ulA[ullen] = ulA[n[me].idx]; ulT[ullen] = ulT[n[me].idx]; ullen++
}

/* ------------------------------------------------ propose.c, learner.c -- */

inline propose(me) {
  if
  :: n[me].log[n[me].next] != 0 -> v = n[me].log[n[me].next]
  :: else ->
     NEWVALUE;
     i = 0;                                /* the leader's filter (3.4) */
     do :: i < S -> if :: n[me].log[i] == v -> v = 0; break :: else fi; i++ :: else -> break od;
     i = 0
  fi;
  if
  :: v != 0 ->
     n[me].log[n[me].next] = v;
     send(me, ulA[n[me].ep], ACCEPT, n[me].ep, n[me].next, v, 0);
     n[me].next++; v = 0
  :: else
  fi
}

#ifdef TELL_NEWEST
#define TELLS ulL[n[me].idx]
#else
#define TELLS f
#endif
inline accepted(me, p_e, p_s) {
#ifndef NOACCEPTED
  if
  :: TELLS != me -> send(me, TELLS, ACCEPTED, p_e, p_s, 0, 0)
  :: else
  fi
#else
  skip
#endif
}

/* 6.1: equality with promised; slot order; nothing accepted is overwritten. */
inline on_accept(me) {               /* a: epoch, b: slot, c: value */
  if
  :: n[me].on && MAYACCEPT(me,a) ->
     xassert(b == 0 || n[me].acc[0] != 0);
     xassert(n[me].acc[b] == 0 || n[me].acc[b] == c);
     decide(b,c);
     n[me].acc[b] = c;
     tell(me, b, c, f);
     accepted(me, a, b)
  :: else ->
#ifdef BUG_EARLY_ACCEPTED
     accepted(me, a, b)
#else
     skip                            /* NACK: it only makes a leader step down */
#endif
  fi
}

/* 6.1: (epoch, slot) names the batch, because an epoch has one leader. */
#ifdef ANY_EPOCH
#define MINE(me,e) true
#else
#define MINE(me,e) ((n[me].role == ACTIVE || n[me].role == FROZEN) && (e) == n[me].ep)
#endif
inline on_accepted(me) {             /* a: epoch, b: slot */
  if
  :: MINE(me,a) && n[me].log[b] != 0 ->
     assert(n[me].lrn[b] == 0 || n[me].lrn[b] == n[me].log[b]);
     assert(decided[b] == n[me].log[b]);
     n[me].lrn[b] = n[me].log[b]
  :: else
  fi
}

/* 3.3: no epoch check, an accept is final. */
inline on_learn(me, s) {
  v = 1;
  do :: !(lp[me*S+s] & (1 << v)) -> v++ :: else -> break od;
  assert(n[me].lrn[s] == 0 || n[me].lrn[s] == v);
  assert(decided[s] == v);
  n[me].lrn[s] = v; lp[me*S+s] = lp[me*S+s] & ~(1 << v);
  v = 0
}

/* ------------------------------------------------------------- leader_change.c -- */

inline lead_begin(me) {
  n[me].role = PREPARING; n[me].sk = n[me].ep - 1; n[me].next = 0;
  send(me, ulA[n[me].ep], PREPARE, n[me].ep, ulT[n[me].ep], 0, 0)
}

inline on_prepare(me) {              /* a: epoch, b: its tenure */
  epoch_suffix(me, a);               /* may appoint me */
  if
  :: n[me].on && a >= n[me].promised && n[me].tenure == b ->
     n[me].promised = a;
     send(me, f, PREPARED, a, n[me].acc[0], n[me].acc[S-1], 0)
  :: else
  fi
}

inline on_prepared(me) {             /* a: epoch, b, c: slots */
  if
  :: n[me].role == PREPARING && a == n[me].ep ->
     n[me].role = ACTIVE; n[me].next = 0; n[me].cep = n[me].ep; n[me].sk = NONE;
#ifdef BUG_NO_ADOPT
     n[me].log[0] = n[me].lrn[0]; n[me].log[S-1] = n[me].lrn[S-1]
#else
     /* T10: a stale answer may lack what was learned here, but contradicts nothing */
     xassert(n[me].lrn[0] == 0 || b == 0 || n[me].lrn[0] == b);
     xassert(n[me].lrn[S-1] == 0 || c == 0 || n[me].lrn[S-1] == c);
     n[me].log[0] = (b == 0 -> n[me].lrn[0] : b);
     n[me].log[S-1] = (c == 0 -> n[me].lrn[S-1] : c);
     /* I4: unless a newer epoch exists */
     xassert(ullen - 1 != n[me].ep || decided[0] == 0 || n[me].log[0] == decided[0]);
     xassert(ullen - 1 != n[me].ep || decided[S-1] == 0 || n[me].log[S-1] == decided[S-1])
#endif
  :: else
  fi
}

/* My log is complete though nobody adopted me. */
inline recovered(me) { n[me].cep = n[me].ep; n[me].sk = NONE }

inline seal_older(me, p_t) {
  if :: p_t > 0 -> n[me].sk = p_t - 1 :: else -> n[me].sk = NONE fi
}

#ifdef BUG_OLD_SEAL
#define SEAL_LEARN(f,e) skip
#else
#define SEAL_LEARN(f,e) epoch_suffix(f, e)
#endif
#define NEVER_ADOPTED(x,t) (n[x].cep == NONE || n[x].cep < (t))

inline seal_step(me) {
  if
  :: ulL[n[me].sk] == me ->          /* I led that epoch myself */
     if
     :: n[me].cep == n[me].sk -> recovered(me)
     :: else -> seal_older(me, n[me].sk)
     fi
  :: else ->
#ifdef SEAL_RPC
     f = ulL[n[me].sk];
     if
     :: n[f].up ->
        SEAL_LEARN(f, n[me].ep);
        if
        :: n[f].cep == n[me].sk ->
           n[me].log[0] = n[f].log[0]; n[me].log[S-1] = n[f].log[S-1]; recovered(me)
        :: NEVER_ADOPTED(f, n[me].sk) -> seal_older(me, n[me].sk)
        :: else
        fi
     :: else
     fi; f = 0
#else
     send(me, ulL[n[me].sk], SEAL, n[me].ep, n[me].sk, 0, 0);
     n[me].sk = ASKED
#endif
  fi
}

inline on_seal(me) {                 /* a: asker's epoch, b: target */
  SEAL_LEARN(me, a);
  if
  :: n[me].cep == b && ulL[b] == me -> send(me, f, SEALED, a, b+COMPLETE, n[me].log[0], n[me].log[S-1])
  :: NEVER_ADOPTED(me, b) -> send(me, f, SEALED, a, b, 0, 0)
  :: else                            /* a stale question */
  fi
}

inline on_sealed(me) {               /* a: epoch, b: target, + COMPLETE; c, d: slots */
  if
  :: n[me].role == PREPARING && a == n[me].ep && n[me].cep != n[me].ep ->
     if
     :: b >= COMPLETE -> n[me].log[0] = c; n[me].log[S-1] = d; recovered(me)
     :: else -> seal_older(me, b)
     fi
  :: else
  fi
}

/* ---------------------------------------------------------- acceptor_change.c -- */

inline stage(me) {
#ifdef STAGE_RPC
  n[me].rpc_to = NONE
#else
  i = 0;
  do
  :: i < N ->
     if
     :: i != me ->
#ifdef PARTS
        send(me, i, STAGE_UL, n[me].ep, 0, 0, 0);
#endif
        send(me, i, STAGE, n[me].ep, n[me].log[0], n[me].log[S-1], 0)
     :: else
     fi; i++
  :: else -> break
  od; i = 0
#endif
}

inline freeze(me) { n[me].role = FROZEN; stage(me) }

#ifdef BUG_STAGE_LOST
#define STAGE_LEARN(f,e) skip
#define STALE(me,e) ((e) < n[me].idx)
#else
#define STAGE_LEARN(f,e) epoch_suffix(f, e)
#define STALE(me,e) ((e) != n[me].idx)
#endif
#define KEPT(me,e) (n[me].st_from == (e))  /* whole already: an epoch has one frozen log */

inline forget_staged(me) { n[me].st_from = NONE; n[me].staged[0] = 0; n[me].staged[S-1] = 0 }

/* The first part: the utility log, then room for the set. */
inline on_stage_ul(me) {             /* a: epoch of the frozen leader */
  STAGE_LEARN(me, a);
  if
#ifndef BUG_LATE_STAGE
  :: STALE(me,a)                     /* never touch what a later leader staged */
#endif
#ifndef BUG_STAGE_AGAIN
  :: KEPT(me,a)
#endif
  :: else -> forget_staged(me)
  fi
}

inline keep_staged(me) {             /* b, c: slots */
#ifdef PARTS
  if :: n[me].staged[0] == 0 -> n[me].staged[0] = b :: else fi;
  if :: n[me].staged[S-1] == 0 -> n[me].staged[S-1] = c :: else fi
#else
  n[me].staged[0] = b; n[me].staged[S-1] = c
#endif
}

inline on_stage(me) {                /* a: epoch of the frozen leader; b, c: slots */
#ifndef PARTS
  on_stage_ul(me);
#endif
#ifdef BUG_STAGE_MIX
  if :: STALE(me,a) -> keep_staged(me) :: else fi;
#endif
  if
  :: !STALE(me,a) ->
     if :: !KEPT(me,a) -> keep_staged(me); n[me].st_from = a :: else fi;
     send(me, f, STAGED, a, 0, 0, 0)
  :: else
  fi
}

/* The ACCEPTOR entry: leader p_me, acceptor p_n, tenure and index p_e. */
inline appoint(p_me, p_e, p_n) {
  ulL[p_e] = p_me; ulA[p_e] = p_n; ulT[p_e] = p_e;
  if :: ullen == p_e -> ullen++ :: else fi;
#ifdef STAGE_RPC
  n[p_me].rpc_to = ASKED
#endif
}

inline on_staged(me) {               /* a: epoch */
  if
  :: n[me].role == FROZEN && a == n[me].ep && n[me].idx == n[me].ep && ULFREE(a + 1) -> appoint(me, a + 1, f)
  :: else
  fi
}

#ifdef STAGE_RPC
#define CANSTAGE(me,c) (n[me].up && n[me].role == FROZEN && n[me].rpc_to == NONE && c != me && n[c].up && \
                        (n[c].st_from == NONE || n[me].ep > n[c].st_from) && n[me].ep >= n[c].idx)
inline stage_at(p_me, p_c) {
  STAGE_LEARN(p_c, n[p_me].ep);
  n[p_c].st_from = n[p_me].ep; n[p_c].staged[0] = n[p_me].log[0]; n[p_c].staged[S-1] = n[p_me].log[S-1];
  n[p_me].rpc_to = p_c
}
#endif

inline begin_group() {
  do :: i < N -> n[i].up = 1; n[i].cep = NONE; n[i].sk = NONE; n[i].st_from = NONE; i++ :: else -> break od;
  i = 0;
  ulL[0] = 0; ulA[0] = 1; ulT[0] = 0;
  n[0].role = ACTIVE; n[0].ep = 0; n[0].cep = 0;
  n[1].on = 1; n[1].tenure = 0; n[1].promised = 0
}

#ifndef TRACE
/* Of what comes from f. A question may be there again. */
inline any_order(me) {
#ifdef BAG
  do
  :: x < len(CH(f,me)) -> CH(f,me)!t,a,b,c,d; CH(f,me)?t,a,b,c,d; x++
  :: break
  od; x = 0;
  if
  :: (t == PREPARE || t == SEAL || t == STAGE_UL || t == STAGE) && len(CH(f,me)) < K - 3 -> CH(f,me)!t,a,b,c,d
  :: true
  fi
#else
  skip
#endif
}

proctype node(byte me) {
  byte i, j, k, x, a, b, c, d, f, v; mtype t;
  do
  :: atomic { n[me].up && crashes < MAXCRASH -> crash(me) }
  :: atomic { n[me].up && n[me].idx + 1 < ullen -> epoch_learn(me) }
  :: atomic { n[me].up && n[me].idx + 1 == ullen && ullen < E &&
              ulL[n[me].idx] != me && ulA[n[me].idx] != me -> check_leader(me) }
  :: atomic { n[me].up && n[me].next < S && len(CH(me,ulA[n[me].ep])) < K-3 && MAYPROPOSE(me) -> propose(me) }
  :: atomic { n[me].up && n[me].ep + 1 < E && n[me].cep == n[me].ep &&
              (n[me].role == ACTIVE || n[me].role == PREPARING) &&
              n[me].idx == n[me].ep && ulL[n[me].idx] == me -> freeze(me) }
#ifdef RESTAGE
  /* its candidate seemed to be gone: all are staged again, once */
  :: atomic { n[me].up && n[me].role == FROZEN && n[me].idx == n[me].ep && n[me].next != AGAIN &&
              len(CH(me,(me+1)%N)) < K-3 && len(CH(me,(me+2)%N)) < K-3 -> n[me].next = AGAIN; stage(me) }
#endif
#ifdef BUG_UNADOPTED
  :: atomic { n[me].up && n[me].ep + 1 < E && n[me].role == PREPARING && n[me].idx == n[me].ep ->
       n[me].log[0] = n[me].lrn[0]; n[me].log[S-1] = n[me].lrn[S-1];
       n[me].cep = n[me].ep; freeze(me) }
#endif
#ifdef STAGE_RPC
  :: atomic { CANSTAGE(me,0) -> stage_at(me,0) }
  :: atomic { CANSTAGE(me,1) -> stage_at(me,1) }
  :: atomic { CANSTAGE(me,2) -> stage_at(me,2) }
  :: atomic { n[me].up && n[me].role == FROZEN && n[me].rpc_to < N && n[me].idx == n[me].ep && ULFREE(n[me].ep + 1) ->
       appoint(me, n[me].ep + 1, n[me].rpc_to) }
#endif
#ifndef BUG_NO_SEAL
  :: atomic { n[me].up && n[me].role == PREPARING && n[me].cep != n[me].ep && n[me].sk < n[me].ep &&
              n[me].sk >= ulT[n[me].ep] && SEALABLE(me) -> seal_step(me) }
#endif
  :: atomic { n[me].up && len(CH(0,me)) + len(CH(1,me)) + len(CH(2,me)) > 0 ->
       if
       :: CH(0,me)?t,a,b,c,d -> f = 0
       :: CH(1,me)?t,a,b,c,d -> f = 1
       :: CH(2,me)?t,a,b,c,d -> f = 2
       fi;
       any_order(me);
       if
       :: t == ACCEPT   -> on_accept(me)
#ifndef NOACCEPTED
       :: t == ACCEPTED -> on_accepted(me)
#endif
       :: t == PREPARE  -> on_prepare(me)
       :: t == PREPARED -> on_prepared(me)
#ifndef STAGE_RPC
#ifdef PARTS
       :: t == STAGE_UL -> on_stage_ul(me)
#endif
       :: t == STAGE    -> on_stage(me)
       :: t == STAGED   -> on_staged(me)
#endif
#ifndef SEAL_RPC
       :: t == SEAL     -> on_seal(me)
       :: t == SEALED   -> on_sealed(me)
#endif
       fi;
       t = 0; a = 0; b = 0; c = 0; d = 0; f = 0 }
#ifndef NOLEARN
  :: atomic { n[me].up && lp[me*S] != 0 -> on_learn(me, 0) }
#if S > 1
  :: atomic { n[me].up && lp[me*S+S-1] != 0 -> on_learn(me, S-1) }
#endif
#endif
#ifdef FILL
  :: atomic { n[me].up && decided[0] != 0 && n[me].lrn[0] == 0 -> n[me].lrn[0] = decided[0] }
#if S > 1
  :: atomic { n[me].up && decided[S-1] != 0 && n[me].lrn[S-1] == 0 -> n[me].lrn[S-1] = decided[S-1] }
#endif
#endif
#ifdef RESIGN
  :: atomic { n[me].up && n[me].role != FOLLOWER -> n[me].role = FOLLOWER }
#endif
  :: checked -> break
  od
}

/* At rest (nothing can move any more): is everything there, can it go on? */
proctype monitor() {
  byte l, a, s;
  timeout ->
  d_step {
    l = ulL[ullen-1]; a = ulA[ullen-1];
    if
    :: n[l].up ->
#ifndef NOSTUCK
       assert(n[l].role != PREPARING || n[l].cep == n[l].ep);
#endif
       if
       :: n[l].role == ACTIVE && n[a].up ->
          s = 0;
          do
          :: s < S -> xassert(decided[s] == 0 || n[a].acc[s] == decided[s]);
                      xassert(decided[s] == 0 || n[l].log[s] == decided[s]); s++
          :: else -> break
          od
       :: else
       fi
    :: else
    fi;
    checked = 1
  }
}

init {
  atomic {
    byte i = 0;
    begin_group();
    run node(0); run node(1); run node(2); run monitor()
  }
}
#endif
