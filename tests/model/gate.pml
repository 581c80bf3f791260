/*
 * The leader's gate: who is waited for before the next batch is decided, and what
 * the ring keeps (paxos/PROTOCOL.md, flow control).
 *
 * A leader and two followers, who take its place when it dies: roles are numbered,
 * not nodes, so a take-over renames. Slots have no numbers: the model keeps the
 * sizes of those in the ring, and how many of them each follower has applied. So
 * the number of slots, deaths and joins is not bounded, and the search is whole.
 * The load never ends. The leader applies what it decides at once.
 *
 * A byte here is a sixteenth of lag_bytes or more. TICK is one lag-timeout; it may
 * come at any time, as may the 100 ms of STILL: who progresses at the floor is one
 * that does so in each interval between two TICKs.
 *
 *   decide, stamp     leader: gate, ring, slot           apply, still    members
 *   tick              leader: windows of lag-timeout     again           leader
 *   cut, chunk, install, give_up, dies, starts           joiners, and deaths
 *
 * Knobs: R bytes of the ring, LAG and IDLE the two marks, FLOOR, BIG the size of a
 *        large batch (1 is that of others), CHUNKS of a snapshot, MIN
 *        (min-replicas-to-write), HELD: lag-timeouts without a chance to decide,
 *        counted since the last death
 *        NOJOIN     who is dead, or fell out of the ring, stays away; ONE: so does
 *                   the first follower
 *        SLOW       the leader may give up one that shuts the gate, at any time, if it
 *                   waits for the other too: it is awaited again when its pause is
 *                   over, which may be at any time, and it lacks no more than LAG
 * Defects: BUG_NOT_LOOKED BUG_MARK_GROWS BUG_OVERWRITE BUG_OVERWRITE_HOLD
 *        BUG_HOLD_STAYS BUG_MIN_IGNORED BUG_RETURN_LATE BUG_RING_NOT_COUNTED
 *        BUG_SLOW_MIN BUG_NEW_LEADER BUG_AT_ONCE BUG_MARK_FOLLOWS (tests/model/README.md)
 */
#ifndef R
#define R 4
#endif
#ifndef LAG
#define LAG 1
#endif
#ifndef IDLE
#define IDLE 3
#endif
#ifndef FLOOR
#define FLOOR 2
#endif
#ifndef BIG
#define BIG 2
#endif
#ifndef CHUNKS
#define CHUNKS 1
#endif
#ifndef MIN
#define MIN 0
#endif
#ifndef HELD
#define HELD 10
#endif

#define DEAD 0
#define JOINS 1                /* has no next slot in the ring, perhaps a hold */
#define IN 2                   /* its next slot is in the ring */

/* leader */
bit leads = 1;
byte n = 0, used = 0, sz[R];   /* the ring: slots, their bytes */
bit awaited[2];
bit ret[2], odd[2]; byte mark[2];  /* returned: its mark until it is at LAG */
byte age[2], prog[2];          /* of the window: TICKs, bytes applied */
bit stamped;                   /* since the gate was shut; MIN > 0: since the last TICK */
/* members */
byte st[2];
byte pos[2], lacks[2];         /* of IN, or of a hold: slots before its next, bytes from there */
bit fresh[2];                  /* applied something within 100 ms */
byte moved[2];                 /* bytes applied since it ceased to be awaited */
#ifdef SLOW
bit pause[2];                  /* it ceased as one that is slow */
#define PAUSES(x) pause[x]
#else
#define PAUSES(x) false
#endif
/* joiners */
bit hold[2], by_peer[2];       /* the donor: the leader, or the other follower */
byte chunks[2], idle[2];
/* ghosts */
bit floor[2], behind[2];       /* progresses at the floor; lacked something all the interval */
byte did[2];                   /* bytes applied in this interval */
bit whole = 1;                 /* nobody died since all were awaited */
byte held = 0;
byte i = 0, k = 0;

#define OTHER(x) (1 - (x))
#define MAX(a,b) ((a) > (b) -> (a) : (b))
#define AT_LEAST(a,b) ((a) < (b) -> (b) : (a))

#ifdef BUG_MARK_GROWS
#define MARK(x) (ret[x] -> R : (fresh[x] -> LAG : IDLE))
#else
#define MARK(x) (ret[x] -> mark[x] : (fresh[x] -> LAG : IDLE))
#endif
#ifdef BUG_NOT_LOOKED
#define LOOKED(x) (awaited[x] && x == 0)
#else
#define LOOKED(x) awaited[x]
#endif
#define SHUTS(x,z) (LOOKED(x) && lacks[x] != 0 && lacks[x] + (z) > MARK(x))
#ifdef BUG_OVERWRITE
#define KEEPS(x) hold[x]
#else
#ifdef BUG_OVERWRITE_HOLD
#define KEEPS(x) LOOKED(x)
#else
#define KEEPS(x) (LOOKED(x) || hold[x])
#endif
#endif
#define FULL(x,z) (KEEPS(x) && lacks[x] + (z) > R)
#define ROOM(z) (!FULL(0,z) && !FULL(1,z))
#define OPEN(z) (leads && !SHUTS(0,z) && !SHUTS(1,z) && ROOM(z))
#ifdef BUG_RING_NOT_COUNTED
#define STOPS(x) SHUTS(x,1)
#else
#define STOPS(x) (SHUTS(x,1) || (awaited[x] && FULL(x,1)))   /* all others wait for it */
#endif
#ifdef BUG_AT_ONCE
#define ENOUGH 1               /* to be awaited again: any byte */
#define ALLOWED 0              /* of its mark, above what it lacks then */
#else
#define ENOUGH FLOOR
#define ALLOWED (FLOOR / 2)
#endif
#define READS(x) (st[x] == IN || hold[x])
#ifdef BUG_MIN_IGNORED
#define MAY_CEASE(x) true
#else
#define MAY_CEASE(x) (awaited[OTHER(x)] >= MIN)
#endif

/* After each step: windows begin and end, and the ring forgets what all have. */
inline forget(x) {
  age[x] = 0; prog[x] = 0
}

inline settle() {
  do
  :: n > 0 && (!READS(0) || pos[0] > 0) && (!READS(1) || pos[1] > 0) -> drop()
  :: else -> break
  od;
  k = 0;
  do
  :: k < 2 ->
     if
     :: !awaited[k] || lacks[k] == 0 -> forget(k)
     :: awaited[k] && STOPS(k) && age[k] == 0 -> age[k] = 1; prog[k] = 0
     :: else
     fi;
     if
     :: awaited[k] -> moved[k] = 0
     :: else -> ret[k] = 0; mark[k] = 0; odd[k] = 0
     fi;
     if
     :: st[k] == IN && lacks[k] == 0 ->
        behind[k] = 0; did[k] = 0;
        fresh[k] = 1;          /* STILL may come once it lacks something */
        floor[k] = (awaited[k] -> 1 : floor[k])  /* the leader has seen that it came back */
     :: else
     fi;
     k++
  :: else -> break
  od;
  if
  :: OPEN(1) || !leads -> held = 0; stamped = 0
  :: else
  fi;
#if MIN > 0
  if
  :: awaited[0] && awaited[1] -> whole = 1
  :: else
  fi;
#endif
  i = 0; k = 0
}

/* The ring's first slot is given up. */
inline drop() {
  k = 0;
  do
  :: k < 2 ->
     if
     :: READS(k) && pos[k] > 0 -> pos[k]--
     :: READS(k) && pos[k] == 0 ->
        assert(!hold[k]);                  /* else no join would ever end */
        assert(!floor[k]);                 /* who progresses needs no snapshot */
        st[k] = JOINS; lacks[k] = 0; fresh[k] = 0; did[k] = 0; behind[k] = 0
     :: else
     fi;
     k++
  :: else -> break
  od;
  used = used - sz[0]; n--; i = 0;
  do
  :: i < n -> sz[i] = sz[i + 1]; i++
  :: else -> break
  od;
  sz[n] = 0
}

inline put(z) {
  do
  :: used + z > R -> drop()
  :: else -> break
  od;
  sz[n] = z; n++; used = used + z;
  k = 0;
  do
  :: k < 2 ->
     if
     :: READS(k) -> lacks[k] = lacks[k] + z
     :: else -> pos[k] = 0
     fi;
     k++
  :: else -> break
  od
}

/* Whoever is awaited lacks no more than IDLE, what it lacked when it returned, or
 * one large batch. */
inline decide(z) {
  put(z);
  assert(!awaited[0] || lacks[0] <= IDLE || lacks[0] <= mark[0] || lacks[0] == z);
  assert(!awaited[1] || lacks[1] <= IDLE || lacks[1] <= mark[1] || lacks[1] == z)
}

inline returns(x) {
  if
  :: lacks[x] + ALLOWED > LAG -> ret[x] = 1; mark[x] = lacks[x] + ALLOWED; odd[x] = 0
  :: else -> ret[x] = 0; mark[x] = 0; odd[x] = 0
  fi
}

inline apply(x) {
#ifndef BUG_MARK_FOLLOWS
  if
  :: awaited[x] && !fresh[x] && !ret[x] -> returns(x)
  :: else
  fi;
#endif
  k = sz[pos[x]]; pos[x]++; lacks[x] = lacks[x] - k; fresh[x] = 1;
  prog[x] = (prog[x] + k > FLOOR || age[x] == 0 -> (age[x] == 0 -> 0 : FLOOR) : prog[x] + k);
  did[x] = (behind[x] -> (did[x] + k > FLOOR -> FLOOR : did[x] + k) : 0);
  moved[x] = (awaited[x] -> 0 : (moved[x] + k > FLOOR -> FLOOR : moved[x] + k));
  if
#ifdef BUG_MARK_FOLLOWS
  :: ret[x] -> mark[x] = (lacks[x] < mark[x] -> lacks[x] : mark[x])
#else
  :: ret[x] -> mark[x] = mark[x] - (k + odd[x]) / 2; odd[x] = (k + odd[x]) % 2
#endif
  :: else
  fi;
  if
  :: ret[x] && mark[x] <= LAG -> ret[x] = 0; mark[x] = 0; odd[x] = 0
  :: else
  fi
}

/* The leader sees that it has applied something. */
inline again(x) {
  moved[x] = 0; awaited[x] = 1; returns(x)
}

inline end_hold(x) {
  hold[x] = 0; by_peer[x] = 0; chunks[x] = 0; idle[x] = 0;
  if
  :: st[x] != IN -> pos[x] = 0; lacks[x] = 0
  :: else
  fi
}

/* A lag-timeout has passed. */
inline tick() {
  k = 0;
  do
  :: k < 2 ->
     if
     :: st[k] == IN && behind[k] && did[k] < FLOOR -> floor[k] = 0
     :: else
     fi;
     did[k] = 0; behind[k] = (st[k] == IN && lacks[k] > 0);
     if
     :: leads && age[k] == 1 -> age[k] = 2
     :: leads && age[k] == 2 && prog[k] < FLOOR && MAY_CEASE(k) ->
        awaited[k] = 0; forget(k)
     :: leads && age[k] == 2 && prog[k] >= FLOOR -> forget(k)
     :: else
     fi;
     if
#ifdef BUG_HOLD_STAYS
     :: hold[k] && st[k] == DEAD
#endif
     :: hold[k] && idle[k] == 2 -> end_hold(k)
     :: hold[k] && idle[k] < 2 -> idle[k]++
     :: else
     fi;
     k++
  :: else -> break
  od;
#if MIN > 0
  stamped = 0;
#endif
#if MIN == 0
  held = (leads && !OPEN(1) -> held + 1 : 0);
  assert(held <= HELD)                     /* writes are never held for ever */
#endif
}

inline cut(x, peer) {
  hold[x] = 1; by_peer[x] = peer;
  if
  :: peer -> pos[x] = pos[OTHER(x)]; lacks[x] = lacks[OTHER(x)]
  :: else -> pos[x] = n; lacks[x] = 0
  fi
}

#ifdef SLOW
/* It shuts the gate, and the other is so much faster. */
inline slow(x) {
  awaited[x] = 0; pause[x] = 1; floor[x] = 0; forget(x)
}

/* Its pause is over, and it has caught up. */
inline resume(x) {
  pause[x] = 0; again(x)
}

/* It has its snapshot; that does not end its pause. */
inline install_slow(x) {
  st[x] = IN; end_hold(x); fresh[x] = 1; floor[x] = 0; did[x] = 0; behind[x] = 0
}
#ifdef BUG_SLOW_MIN
#define MAY_SLOW(x) true
#else
#define MAY_SLOW(x) (MAY_CEASE(x) && awaited[OTHER(x)])
#endif
#endif

inline install(x) {
  st[x] = IN; end_hold(x); awaited[x] = 1; fresh[x] = 1; returns(x);
  floor[x] = 1; did[x] = 0; behind[x] = 0
}

inline dies(x) {
  st[x] = DEAD; awaited[x] = 0; whole = 0; held = 0;
#ifdef SLOW
  pause[x] = 0;
#endif
  fresh[x] = 0; moved[x] = 0; floor[x] = 0; behind[x] = 0; did[x] = 0;
#ifdef BUG_HOLD_STAYS
  if :: hold[x] :: else -> pos[x] = 0; lacks[x] = 0 fi;
#else
  end_hold(x); pos[x] = 0; lacks[x] = 0;
#endif
  if
  :: hold[OTHER(x)] && by_peer[OTHER(x)] -> end_hold(OTHER(x))
  :: else
  fi
}

inline leader_dies() {
  leads = 0;
  /* What was acknowledged is in the ring from the next slot of whoever is IN. */
  assert(st[0] != JOINS || !awaited[0]);
  assert(st[1] != JOINS || !awaited[1]);
  assert(MIN == 0 || !whole || st[0] == IN || st[1] == IN);
  k = 0;
  do
  :: k < 2 ->
     if :: hold[k] && !by_peer[k] -> end_hold(k) :: else fi;
     awaited[k] = 0; forget(k);
#ifdef SLOW
     pause[k] = 0;
#endif
     k++
  :: else -> break
  od
}

/* It copies and learns all that is decided, and leaves its place to the dead one. */
inline takes_over(x) {
  if
  :: hold[OTHER(x)] && by_peer[OTHER(x)] -> by_peer[OTHER(x)] = 0
  :: else
  fi;
  dies(x); leads = 1;
#ifndef BUG_NEW_LEADER
  if
  :: st[OTHER(x)] == IN -> awaited[OTHER(x)] = 1; returns(OTHER(x))
  :: else
  fi
#endif
}

#ifdef BUG_RETURN_LATE
#define STILL_IN(x) (st[x] != DEAD && !hold[x])
#else
#define STILL_IN(x) (st[x] == IN)
#endif
#ifdef NOJOIN
#define STARTS(x) false
#define CUTS(x) false
#else
#ifdef ONE
#define MAY_JOIN(x) (x == 1)
#else
#define MAY_JOIN(x) true
#endif
#define STARTS(x) (MAY_JOIN(x) && st[x] == DEAD && !hold[x])
#define CUTS(x) (MAY_JOIN(x) && st[x] == JOINS && !hold[x])
#endif
#define STAMP (leads && !OPEN(1) && !stamped && ROOM(1))

active proctype group() {
  d_step { k = 0;
    do
    :: k < 2 -> st[k] = IN; awaited[k] = 1; fresh[k] = 1; floor[k] = 1; k++
    :: else -> break
    od; k = 0 }
end:
  do
  :: d_step { OPEN(1) -> decide(1); settle() }
  :: d_step { OPEN(BIG) -> decide(BIG); settle() }
  :: d_step { STAMP -> stamped = 1; put(1); settle() }
  :: d_step { leads -> tick(); settle() }
  :: d_step { leads -> leader_dies(); settle() }
  :: d_step { !leads && st[0] == IN -> takes_over(0); settle() }
  :: d_step { !leads && st[1] == IN -> takes_over(1); settle() }
#define MEMBER(x) \
  :: d_step { st[x] == IN && lacks[x] > 0 -> apply(x); settle() } \
  :: d_step { fresh[x] && lacks[x] > 0 -> fresh[x] = 0; settle() } \
  :: d_step { leads && moved[x] >= ENOUGH && STILL_IN(x) && !PAUSES(x) -> again(x); settle() } \
  :: d_step { st[x] != DEAD -> dies(x); settle() } \
  :: d_step { STARTS(x) -> st[x] = JOINS; settle() } \
  :: d_step { leads && CUTS(x) && (!hold[OTHER(x)] || by_peer[OTHER(x)]) -> cut(x, 0); settle() } \
  :: d_step { CUTS(x) && st[OTHER(x)] == IN -> cut(x, 1); settle() } \
  :: d_step { st[x] == JOINS && hold[x] && chunks[x] < CHUNKS -> chunks[x]++; idle[x] = 0; settle() } \
  :: d_step { leads && st[x] == JOINS && hold[x] && chunks[x] == CHUNKS && !PAUSES(x) -> install(x); settle() }
#ifdef SLOW
#define SQUEEZED(x) \
  :: d_step { leads && awaited[x] && STOPS(x) && MAY_SLOW(x) -> slow(x); settle() } \
  :: d_step { leads && pause[x] && st[x] == IN && lacks[x] <= LAG -> resume(x); settle() } \
  :: d_step { leads && pause[x] && hold[x] -> end_hold(x); settle() } \
  :: d_step { leads && pause[x] && st[x] == JOINS && hold[x] && chunks[x] == CHUNKS -> install_slow(x); settle() }
#else
#define SQUEEZED(x)
#endif
  MEMBER(0)
  MEMBER(1)
  SQUEEZED(0)
  SQUEEZED(1)
  od
}
