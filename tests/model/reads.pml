/*
 * The read rules (paxos/PROTOCOL.md 8.1, 8.2) on top of an abstract decided log.
 *
 * The log position `dec` is what the acceptor has decided.  Each of 3 replicas
 * applies a prefix (app[i] <= dec), late and independently.  Replica 0 replies
 * to writers.  Two readers issue reads one after the other in real time (R1
 * finishes before R2 starts), at any replicas.  A read returns a position.
 * Linearizability of a register-like log = R2 >= R1 and each read >= every
 * write completed before it started.
 *
 * RULE 1: publish-before-expose.  A replica raises the shared index `ci` to
 *         its new position before the new state can be read or replied from.
 * RULE 2: publish at decision by the acceptor (before any LEARN leaves).
 * RULE 3: (wrong) only the replying replica publishes, just before a reply.
 * RULE 4: (wrong for linearizability) local read, no index.
 * SESS  : rule 4 plus a per-client session floor; only session guarantees are checked.
 */
#ifndef RULE
#define RULE 1
#endif
#ifndef MAXW
#define MAXW 2
#endif
byte dec = 0, ci = 0, app[3], done = 0;   /* done: highest write completed (replied) */
byte last = 0;                            /* highest position returned by a finished read */

proctype acceptor() { do :: atomic { dec < MAXW ->
#if RULE == 2
  ci = (ci < dec+1 -> dec+1 : ci);
#endif
  dec++ } :: dec == MAXW -> break od }

proctype replica(byte me) {
  do
  :: app[me] < dec ->
#if RULE == 1
     atomic { ci = (ci < app[me]+1 -> app[me]+1 : ci) };
#endif
     app[me]++
  :: atomic { me == 0 && done < app[0] ->
#if RULE == 3
     ci = (ci < app[0] -> app[0] : ci);
#endif
     done = app[0] }
  :: app[me] == MAXW && (me != 0 || done == MAXW) -> break
  od
}

proctype reader() {               /* sequence of reads, each at any replica */
  byte k = 0, r, t, res, floor_w, floor_r, sess = 0;
  do
  :: k < 2 ->
     /* invocation and index load in one step, read and response in one step: the
        tightest real-time placement, hence the strongest obligations */
     atomic {
       if :: r = 0 :: r = 1 :: r = 2 fi;
       floor_w = done; floor_r = last;
#if RULE == 4
       t = 0;
#else
       t = ci;
#endif
#ifdef SESS
       t = sess;
#endif
     }
     atomic { app[r] >= t ->
       res = app[r];
#ifdef SESS
       assert(res >= sess); sess = res;
#else
       assert(res >= floor_w); assert(res >= floor_r);
#endif
       last = (last < res -> res : last);
       r = 0; t = 0; res = 0; floor_w = 0; floor_r = 0; k++ }
  :: k == 2 -> break
  od
}
init { atomic { run acceptor(); run replica(0); run replica(1); run replica(2); run reader(); run reader() } }
