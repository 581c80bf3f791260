/*
 * The memory acceptor (paxos/PROTOCOL.md 5): accept register and utility log in the
 * commons, batches in the ring of the owner's outbox. Steps of
 * memory_leader.c (begin_copy, copy_some, promise; accept; catch_up) and ring.c are split
 * wherever another process may come between.
 *
 * 3 nodes. A life of a node owns one outbox (ring, lo); a new life gets a new one.
 * word (we,wh): epoch and last decided slot, moved by CAS only. The ring that holds
 * slots lo..wh is that of ulA[we] (the owner of the word's epoch).
 * A value names the epoch whose leader made the batch, and the slot (one batch per slot and epoch).
 * Utility log: atomic object per index, read late; a new entry needs 2 live processes.
 * Memory of an outbox lives while its owner lives or a live process maps it.
 * Every read of a ring is: load word, read entry, validate lo. Every decision is:
 * raise lo, write entry, CAS, LEARN to any subset; then apply, publish, expose as anyone.
 * Crash between any two steps, also of two nodes at once (never of all three); restart
 * as a new life without state. Suspicion is a free choice. Memory is sequentially consistent.
 *
 * Knobs: DIRECT     the leader owns the ring (ulA == ulL), no message on the path;
 *                   otherwise the leader sends ACCEPT to another node, the owner
 *        S slots, R ring length, E epochs, MAXCRASH, NO outboxes (3 + restarts), W window
 *        ONCE       a take-over copies up to the hi that it saw first, and begins from
 *                   the top if more was decided; without, it copies what is
 *                   decided meanwhile, learns what it copies, and raises its own lo
 *        NOLEARN    replicas learn from the ring only
 *        AREAD      load word, read, validate in one step (the split is checked in other runs)
 *        NOPUB      apply, publish, expose in one step
 *        EMAP       a new outbox is mapped at once by all who live; NODROP: dead ones stay mapped
 *        RAISE      an owner raises lo at any time over what it has applied
 *        FILL       a decided slot is learned from anywhere: a LEARN, the log of another
 *        GIVEUP     a take-over is given up at any time
 * Defects: BUG_NO_EPOCH BUG_RING_LATE BUG_READ_EARLY BUG_DROP_EARLY BUG_FALSE_SYNC
 *        BUG_LO_FALLS BUG_LO_LATE BUG_NO_VALIDATE BUG_OUT_OF_SYNC BUG_UNMAPPED
 *        BUG_COPY_RAW BUG_COPY_LO BUG_OWN_DROP BUG_EXPOSE_FIRST BUG_LEARN_EARLY BUG_NO_CHECK (not DIRECT) BUG_NO_SKIP.
 *        REACH: an assertion that must fail, to show that the end is reached
 */
#ifndef S
#define S 2
#endif
#ifndef R
#define R 1
#endif
#ifndef E
#define E 3
#endif
#ifndef MAXCRASH
#define MAXCRASH 2
#endif
#ifndef NO
#define NO 5
#endif
#ifndef W
#define W 2
#endif
#define N 3
#define NIL 15

byte we = 0, wh = 0;                      /* accept register */
byte ulL[E], ulA[E], ull = 1;             /* utility log, names are lives (= outboxes) */
byte ri = 0;                              /* read index */
/* outboxes */
byte rg[NO*R], lo[NO], mp[NO];            /* ring, first slot kept, who maps it */
byte own[NO]; bit life[NO]; byte nob = 3;
/* nodes */
bit up[N], ready[N];
byte ob[N], pk[N], app[N], ex[N];
bit act[N]; byte ep[N], nxt[N];           /* leader */
byte opc[N], oe[N], os[N];                /* owner: batch in hand */
byte tpc[N], tg[N], te[N], th[N], tc[N], t0[N], tv[N];  /* take-over */
byte rpc[N], rr[N], rv[N];                /* reading slot app+1 from ring rr */
byte lp[S+1], lv[S+1];                    /* LEARN under way: destinations, value */
byte dec[S+1];                            /* ghost: decided batch */
byte crashes = 0; bit checked = 0;
#ifndef DIRECT
chan ac[N] = [W+1] of { byte, byte, byte };  /* ACCEPT: leader's node, epoch, slot */
#endif

#define VAL(e,s) (1 + (e)*S + (s) - 1)   /* the batch that the leader of epoch e has for slot s */
#define AT(o,s) rg[(o)*R + (s)%R]
#define MAPS(i,o) (mp[o] & (1 << (i)))
#define CUR ulA[we]
#ifdef BUG_UNMAPPED
#define SYNCMAP(i,o) true
#else
#define SYNCMAP(i,o) MAPS(i,o)
#endif
/* what INFO calls in sync */
#define INSYNC(i) (up[i] && ready[i] && SYNCMAP(i,CUR) && app[i] + 1 >= lo[CUR])
#define CANMAP(o) (!MAPS(me,o) && mp[o] != 0 && (life[o] || CUR == (o)))
#define CANDROP(o) (MAPS(me,o) && !life[o] && CUR != (o) && (rpc[me] == 0 || rr[me] != (o)) && (tpc[me] == 0 || ulA[te[me]] != (o)))
#if NO > 4
#define ANY(f) (f(0) || f(1) || f(2) || f(3) || f(4))
#else
#if NO > 3
#define ANY(f) (f(0) || f(1) || f(2) || f(3))
#else
#define ANY(f) (f(0) || f(1) || f(2))
#endif
#endif
#define CANOWN(x) (me != x && up[x] && ready[x] && (ulL[pk[me]] != ob[me] || ulA[pk[me]] != ob[x]))
#define CANSNAP(x) (up[x] && ready[x] && me != x && (!ready[me] || app[x] > app[me]))
#define MAX(a,b) ((a) > (b) -> (a) : (b))
#define NUP (up[0] + up[1] + up[2])

/* every replica in sync can reach every decided slot from its own state and one ring */
inline inv() {
  i = 0;
  do
  :: i < N ->
     if
     :: INSYNC(i) ->
        assert(app[i] <= wh);
        s = app[i] + 1;
        do :: s <= wh -> assert(AT(CUR,s) == dec[s]); s++ :: else -> break od
     :: else
     fi; i++
  :: else -> break
  od; i = 0; s = 0;
  assert(!life[CUR] || INSYNC(own[CUR]));       /* a living owner is in sync */
  assert(ri <= wh)
}

inline gone(o) {                     /* nobody alive maps it: the memory is given back */
  if
  :: !life[o] && mp[o] == 0 -> i = 0; lo[o] = 0; own[o] = 0; do :: i < R -> rg[o*R+i] = 0; i++ :: else -> break od; i = 0
  :: else
  fi
}

inline crash(me) {
  crashes++; up[me] = 0; ready[me] = 0; life[ob[me]] = 0;
  pk[me] = 0; app[me] = 0; ex[me] = 0; act[me] = 0; ep[me] = 0; nxt[me] = 0;
  opc[me] = 0; oe[me] = 0; os[me] = 0; tpc[me] = 0; tg[me] = 0; te[me] = 0; th[me] = 0; tc[me] = 0; t0[me] = 0; tv[me] = 0;
  rpc[me] = 0; rr[me] = 0; rv[me] = 0;
  s = 0; do :: s <= S -> lp[s] = lp[s] & ~(1 << me); s++ :: else -> break od; s = 0;
#ifndef DIRECT
  do :: len(ac[me]) > 0 -> ac[me]?_,_,_ :: else -> break od;
  i = 0; d = 0;
  do
  :: i < N ->                        /* an arbitrary suffix of what it had sent is lost */
     k = len(ac[i]); d = 0;
     do
     :: k > 0 -> ac[i]?a,b,c;
        if :: a == me && !d -> if :: d = 1 :: d = 0 fi :: else fi;
        if :: a == me && d -> skip :: else -> ac[i]!a,b,c fi; k--
     :: else -> break
     od; i++
  :: else -> break
  od; a = 0; b = 0; c = 0; d = 0; k = 0;
#endif
  o = 0;
  do :: o < NO -> mp[o] = mp[o] & ~(1 << me); gone(o); o++ :: else -> break od;
  o = 0; ob[me] = NIL;
  inv()
}

inline restart(me) {
  up[me] = 1; ob[me] = nob; own[nob] = me; life[nob] = 1; mp[nob] = 1 << me; lo[nob] = 0; nob++;
  pk[me] = 0;
#ifdef EMAP
  o = 0;
  do
  :: o < nob -> if :: o == nob-1 -> mp[o] = (up[0] | (up[1] << 1) | (up[2] << 2))
                   :: else -> if :: mp[o] != 0 -> mp[o] = mp[o] | (1 << me) :: else fi fi; o++
  :: else -> break
  od; o = 0;
#endif
#ifdef BUG_FALSE_SYNC
  ready[me] = 1; app[me] = wh;       /* takes its predecessor's counter for its own */
  inv0[me] = 1;
#endif
}
#ifdef BUG_FALSE_SYNC
bit inv0[N];                         /* counted as in sync, but without state */
#endif

inline decide(s1,v1) {
  assert(dec[s1] == 0);              /* one batch per slot */
  dec[s1] = v1
}

inline tdone(me) { tpc[me] = 0; tv[me] = 0; tg[me] = 0; te[me] = 0; th[me] = 0; tc[me] = 0; t0[me] = 0 }

#ifdef BUG_OUT_OF_SYNC
#define MAYTAKE(me,l) true
#else
#define MAYTAKE(me,l) (app[me] + 1 >= (l))
#endif
#ifdef BUG_NO_SKIP                    /* an entry whose leader never moved the word blocks the next */
#define NEWER(e1) ((e1) == we + 1)
#else
#define NEWER(e1) ((e1) > we)
#endif
#ifdef BUG_OWN_DROP
#define OWNAPP(me,s1) true
#else
#define OWNAPP(me,s1) ((s1) <= R || app[me] + R >= (s1))
#endif
#ifdef BUG_NO_EPOCH
#define EPOCHOK(e1) true
#else
#define EPOCHOK(e1) (we == (e1))
#endif
#ifdef BUG_NO_CHECK
#define FRESH(e1,s1) true
#else
#define FRESH(e1,s1) (we == (e1) && wh + 1 == (s1))
#endif
#ifdef BUG_NO_VALIDATE
#define VALID(o1,s1) true
#else
#define VALID(o1,s1) (lo[o1] <= (s1))
#endif

inline raise_lo(o1,s1) { if :: (s1) > R && lo[o1] < (s1) - R + 1 -> lo[o1] = (s1) - R + 1 :: else fi }

inline put(me) { AT(ob[me],os[me]) = VAL(oe[me],os[me]) }
inline cas(me) {
  if
  :: EPOCHOK(oe[me]) && wh + 1 == os[me] -> wh++; decide(os[me], VAL(oe[me],os[me])); opc[me] = 3
  :: else -> opc[me] = 0; oe[me] = 0; os[me] = 0; if :: ulL[ep[me]] == ob[me] && ulA[ep[me]] == ob[me] -> act[me] = 0 :: else fi
  fi
}

#ifdef ONCE
#define RIDLE(me) true
#define TIDLE(me) true
#else                                 /* a node is one thread */
#define RIDLE(me) (rpc[me] == 0)
#define TIDLE(me) (tpc[me] == 0)
#endif
#ifdef NOPUB
#define exposed(me) ex[me] = app[me]; ri = MAX(ri, app[me])
#else
#define exposed(me) skip
#endif
/* ------------------------------------------------------------ actions -- */

inline learn_entry(me) {
#ifdef BUG_DROP_EARLY
  /* the old owner frees its ring when the utility log, not the word, names another */
  if :: ulA[pk[me]] == ob[me] && ulA[pk[me]+1] != ob[me] && opc[me] == 0 ->
        i = 0; do :: i < R -> rg[ob[me]*R+i] = 0; i++ :: else -> break od; i = 0; inv()
     :: else fi;
#endif
  pk[me]++; act[me] = 0
}

#define CANPROPOSE(me) (up[me] && ready[me] && pk[me] + 1 == ull && ulL[pk[me]] != ob[me])
inline propose(me) { ulL[ull] = ob[me]; ulA[ull] = ob[me]; ull++ }

#define CANBEGIN(me) (up[me] && ready[me] && tpc[me] == 0 && opc[me] == 0 && RIDLE(me) && NEWER(pk[me]) && \
                      ulA[pk[me]] == ob[me] && CUR != ob[me] && MAPS(me,CUR) && MAYTAKE(me, lo[CUR]))
inline begin_copy(me) {
  tg[me] = pk[me]; te[me] = we; th[me] = wh;
  t0[me] = MAX(lo[CUR], 1);
#ifdef BUG_LO_FALLS
  lo[ob[me]] = t0[me];
#else
  t0[me] = MAX(t0[me], lo[ob[me]]);
  lo[ob[me]] = MAX(lo[ob[me]], (lo[CUR] == 0 && lo[ob[me]] == 0 -> 0 : t0[me]));
#endif
  if :: MAYTAKE(me, lo[ob[me]]) -> tc[me] = t0[me]; tpc[me] = 1
     :: else -> tdone(me) fi;
  inv()
}

inline copy_read(me) { tv[me] = AT(ulA[te[me]],tc[me]); tpc[me] = 3 }
inline copy_some(me) {
  if
  :: VALID(ulA[te[me]],tc[me]) ->
#if !defined(ONCE) && !defined(BUG_COPY_LO)
     raise_lo(ob[me], tc[me]);
#endif
     AT(ob[me],tc[me]) = tv[me];
#ifndef ONCE
     if :: tc[me] == app[me] + 1 -> app[me]++; assert(dec[app[me]] == tv[me]); exposed(me) :: else fi;
#endif
     tv[me] = 0; tc[me]++; tpc[me] = 1
  :: else -> tdone(me)                                         /* moved on while I copied: again */
  fi; inv()
}

inline promise(me) {                 /* CAS (te,th) -> (tg,th) */
  if
#ifdef BUG_READ_EARLY
  :: we == te[me] ->                   /* M3 */
#else
  :: we == te[me] && wh == th[me] ->
#endif
     assert(tg[me] > we);                                      /* the word only grows: no ABA */
     we = tg[me];
#ifdef DIRECT
     act[me] = (pk[me] == tg[me] -> 1 : 0); ep[me] = tg[me]; nxt[me] = wh + 1;
#endif
     tdone(me); inv()
#if !defined(ONCE) && !defined(BUG_COPY_RAW)
  :: we == te[me] && wh != th[me] && ulA[te[me]] != ob[me] -> th[me] = wh; tpc[me] = 1  /* copy that, too */
#endif
  :: else -> tdone(me)
  fi
}

#define CANKEEP(me) (up[me] && ready[me] && tpc[me] == 0 && opc[me] == 0 && NEWER(pk[me]) && ulA[pk[me]] == CUR && \
                     (ulA[pk[me]] == ob[me] || ulL[pk[me]] == ob[me]) && MAYTAKE(me, lo[CUR]))
inline keep_ring(me) { tg[me] = pk[me]; te[me] = we; th[me] = wh; tpc[me] = 2 }

#define CANACCEPT(me) (up[me] && act[me] && opc[me] == 0 && tpc[me] == 0 && nxt[me] <= S && OWNAPP(me,nxt[me]))
inline accept(me) {
  oe[me] = ep[me]; os[me] = nxt[me]; nxt[me]++;
#ifndef BUG_LO_LATE
  raise_lo(ob[me], os[me]);
#endif
  opc[me] = 1; inv()
}

/* What the machine does beside: RAISE, since its ring is counted in bytes; FILL; GIVEUP. */
#define CANRAISE(me) (up[me] && MAX(lo[ob[me]], 1) <= app[me] && opc[me] == 0)
inline raise_own_lo(me) { lo[ob[me]] = MAX(lo[ob[me]], 1) + 1; inv() }
#define CANFILL(me) (up[me] && ready[me] && app[me] < wh && app[me] == ex[me] && rpc[me] == 0)
inline fill(me) { app[me]++; exposed(me); inv() }
#define CANGIVEUP(me) (up[me] && tpc[me] != 0)

#ifndef TRACE
proctype node(byte me) {
  byte i, s, o, k, a, b, c; bit d;
  do
  :: atomic { up[me] && crashes < MAXCRASH && NUP > 1 -> crash(me) }
  :: atomic { !up[me] && nob < NO && !checked -> restart(me) }

  /* ---- outboxes of others ---- */
#ifndef EMAP
  :: atomic { up[me] && !checked && ANY(CANMAP) ->
       if
       :: CANMAP(0) -> o = 0 :: CANMAP(1) -> o = 1 :: CANMAP(2) -> o = 2
#if NO > 3
       :: CANMAP(3) -> o = 3
#endif
#if NO > 4
       :: CANMAP(4) -> o = 4
#endif
       fi;
       mp[o] = mp[o] | (1 << me); o = 0 }
#endif
#ifndef NODROP
  /* dead owner, the word names another ring, I am not reading it: give it up */
  :: atomic { up[me] && !checked && ANY(CANDROP) ->
       if
       :: CANDROP(0) -> o = 0 :: CANDROP(1) -> o = 1 :: CANDROP(2) -> o = 2
#if NO > 3
       :: CANDROP(3) -> o = 3
#endif
#if NO > 4
       :: CANDROP(4) -> o = 4
#endif
       fi;
       mp[o] = mp[o] & ~(1 << me); gone(o); o = 0; inv() }
#endif

  /* ---- utility log ---- */
  :: atomic { up[me] && pk[me] + 1 < ull -> learn_entry(me) }
#ifdef DIRECT
  :: atomic { CANPROPOSE(me) && ull < E && NUP >= 2 -> propose(me) }
#else
  :: atomic { up[me] && ready[me] && pk[me] + 1 == ull && ull < E && NUP >= 2 && (CANOWN(0) || CANOWN(1) || CANOWN(2)) ->
       if
       :: CANOWN(0) -> ulA[ull] = ob[0]
       :: CANOWN(1) -> ulA[ull] = ob[1]
       :: CANOWN(2) -> ulA[ull] = ob[2]
       fi;
       ulL[ull] = ob[me]; ull++ }
#endif

  /* ---- take-over of the word for the newest epoch known ---- */
  /* begin_copy: load word; raise my lo; copy what the old ring keeps from here on */
  :: atomic { CANBEGIN(me) -> begin_copy(me) }
#ifdef BUG_COPY_RAW
  /* straight into my ring, validated at the end: a reader of my former tenure can meet a torn copy */
  :: atomic { up[me] && tpc[me] == 1 && tc[me] <= th[me] ->
       AT(ob[me],tc[me]) = AT(ulA[te[me]],tc[me]); tc[me]++; inv() }
  :: atomic { up[me] && tpc[me] == 1 && tc[me] > th[me] ->
       if :: VALID(ulA[te[me]],t0[me]) -> tpc[me] = 2 :: else -> tdone(me) fi }
#else
  /* copy_some: slot by slot; read, validate, only then store */
  :: atomic { up[me] && tpc[me] == 1 && tc[me] <= th[me] -> copy_read(me) }
  :: atomic { up[me] && tpc[me] == 3 && (tc[me] <= app[me] || app[me] == ex[me]) -> copy_some(me) }
  :: atomic { up[me] && tpc[me] == 1 && tc[me] > th[me] -> tpc[me] = 2 }
#endif
  :: atomic { up[me] && tpc[me] == 2 -> promise(me) }
  /* the word's ring is already mine (owner again under a newer epoch), or I lead with the same owner */
  :: atomic { CANKEEP(me) -> keep_ring(me) }

#ifdef DIRECT
  /* ---- leader = owner: accept, step by step ---- */
  :: atomic { CANACCEPT(me) -> accept(me) }
#else
  /* ---- leader ---- */
  :: atomic { up[me] && !act[me] && ulL[pk[me]] == ob[me] && we == pk[me] && (ep[me] != pk[me] || nxt[me] == 0) ->
       act[me] = 1; ep[me] = pk[me]; nxt[me] = wh + 1 }
  :: atomic { up[me] && act[me] && nxt[me] <= S && nxt[me] <= wh + W && up[own[ulA[ep[me]]]] &&
              ob[own[ulA[ep[me]]]] == ulA[ep[me]] && len(ac[own[ulA[ep[me]]]]) <= W ->
       ac[own[ulA[ep[me]]]]!me,ep[me],nxt[me]; nxt[me]++ }
  /* ---- owner: ACCEPT, FIFO per sender ---- */
  :: atomic { up[me] && opc[me] == 0 && tpc[me] == 0 && len(ac[me]) > 0 ->
       if
       :: ac[me]??[0,b,c] -> ac[me]??0,b,c
       :: ac[me]??[1,b,c] -> ac[me]??1,b,c
       :: ac[me]??[2,b,c] -> ac[me]??2,b,c
       fi;
       if
       :: ulA[b] == ob[me] && FRESH(b,c) && OWNAPP(me,c) ->
          oe[me] = b; os[me] = c;
#ifndef BUG_LO_LATE
          raise_lo(ob[me], c);
#endif
          opc[me] = 1; inv()
       :: else                                                 /* refused */
       fi; b = 0; c = 0 }
#endif
  :: atomic { up[me] && opc[me] == 1 ->
#ifdef BUG_RING_LATE
       cas(me); if :: opc[me] == 3 -> opc[me] = 2 :: else fi; inv()
#else
#ifdef BUG_LEARN_EARLY
       lp[os[me]] = 7 & ~(1 << me); lv[os[me]] = VAL(oe[me],os[me]);
#endif
       put(me); opc[me] = 2; inv()
#endif
       }
  :: atomic { up[me] && opc[me] == 2 ->
#ifdef BUG_LO_LATE
       raise_lo(ob[me], os[me]);
#endif
#ifdef BUG_RING_LATE
       put(me); opc[me] = 3;
#else
       cas(me);
#endif
       inv() }
  /* LEARN to any subset of the others */
  :: atomic { up[me] && opc[me] == 3 ->
#ifndef NOLEARN
       i = 0;
       do
       :: i < N -> if :: i != me && up[i] && ready[i] && app[i] < os[me] -> lp[os[me]] = lp[os[me]] | (1 << i); lv[os[me]] = VAL(oe[me],os[me]) :: skip fi; i++
       :: else -> break
       od; i = 0;
#endif
       opc[me] = 0; oe[me] = 0; os[me] = 0 }

  /* ---- replica ---- */
  /* catch_up: load word, read from the ring, validate, apply */
#ifdef AREAD
  :: atomic { up[me] && ready[me] && app[me] == ex[me] && wh > app[me] && pk[me] >= we &&
              MAPS(me,CUR) && lo[CUR] <= app[me] + 1 -> app[me]++; assert(dec[app[me]] == AT(CUR,app[me])); exposed(me); inv() }
#else
  :: atomic { up[me] && ready[me] && app[me] == ex[me] && rpc[me] == 0 && TIDLE(me) && wh > app[me] && pk[me] >= we &&
              MAPS(me,CUR) && lo[CUR] <= app[me] + 1 -> rr[me] = CUR; rpc[me] = 1 }
  :: atomic { up[me] && rpc[me] == 1 -> rv[me] = AT(rr[me],app[me]+1); rpc[me] = 2 }
  :: atomic { up[me] && rpc[me] == 2 ->
       if
       :: VALID(rr[me],app[me]+1) -> app[me]++; assert(dec[app[me]] == rv[me]); exposed(me)   /* no disagreement */
       :: else
       fi; rpc[me] = 0; rr[me] = 0; rv[me] = 0; inv() }
#endif
#ifdef RAISE
  :: atomic { CANRAISE(me) -> raise_own_lo(me) }
#endif
#ifdef FILL
  :: atomic { CANFILL(me) -> fill(me) }
#endif
#ifdef GIVEUP
  :: atomic { CANGIVEUP(me) -> tdone(me) }
#endif
  /* from LEARN */
#ifndef NOLEARN
  :: atomic { up[me] && ready[me] && app[me] == ex[me] && rpc[me] == 0 && app[me] < S && (lp[app[me]+1] & (1 << me)) ->
       app[me]++; lp[app[me]] = lp[app[me]] & ~(1 << me);
       assert(dec[app[me]] == lv[app[me]]); exposed(me); inv() }
#endif
  /* publish, then expose (reply, reads) */
#ifndef NOPUB
  :: atomic { up[me] && app[me] > ex[me] && ri < app[me] -> ri = app[me]; inv() }
  :: atomic { up[me] && app[me] > ex[me] &&
#ifdef BUG_EXPOSE_FIRST
              true ->
#else
              ri >= app[me] ->
#endif
       ex[me] = app[me]; assert(ri >= ex[me]) }                /* a read that starts now waits for it */
#endif
  /* snapshot from any live replica with state: a joiner, or one that fell out of sync */
  :: atomic { up[me] && !INSYNC(me) && rpc[me] == 0 && tpc[me] == 0 && opc[me] == 0 && !checked &&
              (CANSNAP(0) || CANSNAP(1) || CANSNAP(2)) ->
       if :: CANSNAP(0) -> a = 0 :: CANSNAP(1) -> a = 1 :: CANSNAP(2) -> a = 2 fi;
       app[me] = app[a]; ready[me] = 1; a = 0; exposed(me);
       s = 0; do :: s <= app[me] -> lp[s] = lp[s] & ~(1 << me); s++ :: else -> break od; s = 0;
       inv() }
#ifdef BUG_FALSE_SYNC
  :: atomic { up[me] && inv0[me] ->                            /* its state is asked for */
       if
       :: NUP > 1 -> inv0[me] = 0                              /* got the snapshot at last */
       :: else -> assert(lo[CUR] <= 1); inv0[me] = 0           /* alone: what the ring has dropped is lost */
       fi }
#endif
  :: checked -> break
  od
}

proctype monitor() {
  byte l, a;
  timeout ->
  d_step {
    l = ulL[ull-1]; a = ulA[ull-1];
    if
    :: INSYNC(0) || INSYNC(1) || INSYNC(2) ->
       /* everyone who is back has everything, also what was only published */
       assert(!up[0] || (app[0] == wh && ex[0] == wh));
       assert(!up[1] || (app[1] == wh && ex[1] == wh));
       assert(!up[2] || (app[2] == wh && ex[2] == wh));
       assert(INSYNC(0) + INSYNC(1) + INSYNC(2) == NUP);
       /* leader and owner of the last entry, if alive, are in office */
       assert(!life[l] || !life[a] || (we == ull-1 && act[own[l]] && ep[own[l]] == we));
       /* with a majority back the configuration can still change */
       assert(NUP < 2 || ull == E)
    :: else
    fi;
#ifdef REACH                         /* not vacuous: this must fail */
    assert(!(wh == S && we == E-1 && crashes == MAXCRASH && nob == NO && INSYNC(0) && INSYNC(1) && INSYNC(2)));
#endif
    checked = 1
  }
}

#endif

inline begin_group() {
  do :: i < N -> up[i] = 1; ready[i] = 1; ob[i] = i; own[i] = i; life[i] = 1; mp[i] = 7; i++ :: else -> break od;
#ifdef DIRECT
  ulL[0] = 0; ulA[0] = 0; act[0] = 1; nxt[0] = 1;
#else
  ulL[0] = 0; ulA[0] = 1; act[0] = 1; nxt[0] = 1;
#endif
  i = 0
}

#ifndef TRACE
init {
  atomic {
    byte i = 0;
    begin_group();
    run node(0); run node(1); run node(2); run monitor()
  }
}
#endif
