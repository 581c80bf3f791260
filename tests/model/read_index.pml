/*
 * The read index by message (paxos/PROTOCOL.md 8.3) on top of the changes of
 * roles (6.2, 6.3), without what they copy: a log is a number of slots.
 *
 * Two acceptors, A and B; three leaders, L0 .. L2, one per epoch in the order in
 * which they are appointed. An epoch is given out by the utility log (`epochs`,
 * the newest; `lead[e]`, `at[e]`: its leader's number is e, its acceptor is
 * at[e]). A leader hears of later epochs whenever it likes, or never.
 *
 *     adopt     a leader is adopted by the acceptor of its epoch (PREPARE)
 *     seal      a leader that is not adopted takes the log of the one before it,
 *               which then leads no more; its log is complete
 *     freeze    a leader with a complete log stops, to appoint the other acceptor
 *     appoint   the entry is chosen: a new epoch of the same leader; the other
 *               acceptor begins with its log, all of which is decided now
 *     accept    the acceptor accepts the next slot that was proposed in the
 *               promised epoch: decided, and visible at once
 *
 * A reader asks any leader. The floor of its question is all that is decided by
 * then: any of it may have been acknowledged or read. The question may be late
 * at the leader, and at the acceptor; the answer may not be below the floor.
 *
 * BUG_ALONE      the leader answers, and asks no acceptor
 * BUG_FROZEN     a leader that has frozen its log asks its acceptor, too
 * BUG_ANY_EPOCH  the acceptor answers whatever it has promised
 * BUG_ACTIVE     any acceptor that was ever active answers any node: no leader
 *                is asked
 */
#ifndef S
#define S 2 /* slots decided */
#endif
#ifndef E
#define E 4 /* epochs */
#endif
#define NONE 255
#if defined(BUG_ANY_EPOCH) || defined(BUG_ACTIVE)
#define PROMISED true
#else
#define PROMISED (promised[at[e]] == e)
#endif
#ifdef BUG_FROZEN
#define FORWARDS (role[l] == ACTIVE || role[l] == FROZEN)
#else
#define FORWARDS (role[l] == ACTIVE)
#endif

mtype = { FOLLOWER, PREPARING, ACTIVE, FROZEN };
byte epochs = 0;            /* newest epoch */
byte at[E];                 /* its acceptor */
byte node[E];               /* its leader */
mtype role[3];              /* of each node as a leader */
byte ep[3];                 /* epoch that it leads */
bool complete[3];           /* its log is */
byte next[3];               /* slots in its log, proposed or decided */
bool acts[2];              /* an acceptor: it was appointed */
byte promised[2];
byte hi[2];                 /* slots that the acceptor has accepted */
byte decided = 0;

inline on_accept(l) { /* its acceptor takes the next slot that it has proposed */
  atomic { role[l] == ACTIVE && acts[at[ep[l]]] && promised[at[ep[l]]] == ep[l] &&
           hi[at[ep[l]]] < S ->
    hi[at[ep[l]]]++;
    next[l] = (next[l] < hi[at[ep[l]]] -> hi[at[ep[l]]] : next[l]);
    decided = (decided < hi[at[ep[l]]] -> hi[at[ep[l]]] : decided) }
}

/* A proposal that lies in the channel to its acceptor: it is in the leader's
 * log, and may be accepted after the leader has frozen it. */
inline propose(l) {
  atomic { role[l] == ACTIVE && next[l] < S -> next[l]++ }
}
inline late_accept(l) {
  atomic { (role[l] == FROZEN || role[l] == FOLLOWER) && ep[l] != NONE &&
           acts[at[ep[l]]] && promised[at[ep[l]]] == ep[l] && hi[at[ep[l]]] < next[l] ->
    hi[at[ep[l]]]++;
    decided = (decided < hi[at[ep[l]]] -> hi[at[ep[l]]] : decided) }
}

inline suspect_leader(l) { /* LEADER is chosen: a new epoch at the same acceptor */
  atomic { epochs + 1 < E && node[epochs] != l && role[l] == FOLLOWER ->
    epochs++;
    at[epochs] = at[epochs - 1]; node[epochs] = l;
    role[l] = PREPARING; ep[l] = epochs; complete[l] = false }
}

inline on_prepare(l) { /* promise and adoption in one step */
  atomic { role[l] == PREPARING && acts[at[ep[l]]] && promised[at[ep[l]]] <= ep[l] ->
    promised[at[ep[l]]] = ep[l];
    next[l] = hi[at[ep[l]]];
    complete[l] = true; role[l] = ACTIVE }
}

/* The leader of the epoch before, in the same tenure, is stopped for good. Its
 * log is complete, and becomes this one's. */
inline on_seal(l) {
  atomic { role[l] == PREPARING && !complete[l] && ep[l] > 0 && at[ep[l] - 1] == at[ep[l]] &&
           ep[node[ep[l] - 1]] == ep[l] - 1 && complete[node[ep[l] - 1]] ->
    o = node[ep[l] - 1];
    role[o] = FOLLOWER;
    next[l] = next[o];
    complete[l] = true; o = 0 }
}

inline freeze(l) {
  atomic { (role[l] == ACTIVE || role[l] == PREPARING) && complete[l] && epochs + 1 < E ->
    role[l] = FROZEN }
}

inline on_staged(l) { /* ACCEPTOR is chosen: only if no later epoch was */
  atomic { role[l] == FROZEN && epochs == ep[l] && epochs + 1 < E ->
    epochs++;
    at[epochs] = 1 - at[epochs - 1]; node[epochs] = l;
    acts[at[epochs]] = true;
    promised[at[epochs]] = epochs;
    hi[at[epochs]] = next[l];
    decided = (decided < next[l] -> next[l] : decided) }
}

/* The leader learns of its own hand-over, at any time after it. */
inline appointed(l) {
  atomic { role[l] == FROZEN && epochs > ep[l] && node[ep[l] + 1] == l ->
    ep[l]++; role[l] = PREPARING }
}

/* A leader learns that a later one was appointed, whenever it likes. */
inline deposed(l) {
  atomic { role[l] != FOLLOWER && epochs > ep[l] && node[epochs] != l -> role[l] = FOLLOWER }
}

proctype leader(byte l) {
  byte o;
end:
  do
  :: on_accept(l)
  :: propose(l)
  :: late_accept(l)
  :: suspect_leader(l)
  :: on_prepare(l)
  :: on_seal(l)
  :: freeze(l)
  :: on_staged(l)
  :: appointed(l)
  :: deposed(l)
  od
}

proctype reader() {
  byte l, floor, e, answer;
  /* It asks: all that is decided may have been seen. */
  atomic { if :: l = 0 :: l = 1 :: l = 2 fi; floor = decided }
  /* READ_INDEX at the leader, late. Or it is lost. */
  if
  :: atomic { FORWARDS -> e = ep[l] }
#ifdef BUG_ACTIVE
  :: atomic { true -> if :: e = 0 :: e = epochs fi }
#endif
  :: true -> goto done
  fi;
#ifdef BUG_ALONE
  answer = next[l];
  assert(answer >= floor);
#endif
  /* READ_INDEX at its acceptor, late; READ_AT. Or it is lost. */
  if
  :: atomic { acts[at[e]] && PROMISED -> answer = hi[at[e]]; assert(answer >= floor) }
  :: true
  fi;
done:
  l = 0; floor = 0; e = 0; answer = 0
}

init {
  atomic {
    role[0] = ACTIVE; role[1] = FOLLOWER; role[2] = FOLLOWER;
    ep[0] = 0; ep[1] = NONE; ep[2] = NONE;
    complete[0] = true;
    acts[0] = true;
    run leader(0); run leader(1); run leader(2); run reader()
  }
}
