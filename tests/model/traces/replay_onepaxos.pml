/*
 * A run of the machine, replayed in the model of the agreement core.
 *
 * The actions are those of onepaxos.pml; only its processes are replaced, by
 * one that reads the trace (a file of numbers that check_traces.py makes) and
 * looks for actions that lead to the state that the trace names, step by step.
 * It is a guide and no second model: it chooses actions, and changes nothing of
 * the state itself but where a line below says so.
 *
 * A step of the machine is, in this order,
 *
 *     receive   the action of the message that it took, or nothing: the machine
 *               may ignore any message, as far as safety goes
 *     learn     entries of the utility log, one by one, as many as it knows
 *     fill      slots that it has learned and that are decided. The machine
 *               learns what is appointed, prepared, filled or in a snapshot at
 *               once
 *     seal      the next older leader is asked
 *     adopt     on_prepared, with an answer that it has received
 *     propose   until `next` is where the machine's is; of slots that were
 *               adopted no ACCEPT arrives
 *     freeze
 *     resign    a leader stops, for whatever reason
 *
 * and then the state must be the one recorded. An entry of the utility log is
 * put by its proposer, when the machine begins to propose the entry that is
 * chosen in the end.
 *
 * Messages are in one bag. Order is a matter of the channels, and long answers of
 * the machine leave later than here. What is asked or staged may come again, so
 * only ACCEPT and ACCEPTED are taken out. An assertion of the model is a guard
 * here: where it does not hold, the model does not go on.
 */
#define TRACE
#define PARTS
#ifndef N
#define N 12 /* incarnations */
#endif
#ifndef E
#define E 48
#endif
#define S 2
#define NV 7
#define K 250
#define assert(c) if :: (c) :: else -> c_code { broken(now.pos, __LINE__); }; false fi
#define NEWVALUE v = newvalue[n[me].next]

c_code {
\#include "onepaxos_state.h"
}

int pos;            /* of the trace */
bit live[N];        /* has begun */
byte in_e[N], in_b[N], in_c[N]; /* PREPARED that has arrived; epoch NONE */
byte staged_e[N];   /* STAGED has arrived, for this epoch that it leads, */
int staged_by[N];   /* from these. A late one of an older epoch says nothing */
byte newvalue[2];   /* what the machine proposes */
bit same;

#include "../onepaxos.pml"

/* What a record is. */
#define BEGIN 1
#define STEP  2
#define DIE   3
#define PUT   4
#define STOP  5
/* What was received. */
#define R_NONE     0
#define R_ACCEPT   1
#define R_ACCEPTED 2
#define R_PREPARE  3
#define R_PREPARED 4
#define R_SEAL     5
#define R_SEALED   6
#define R_STAGE_UL 7
#define R_STAGE    8
#define R_STAGED   9
#define R_LEARN    10

#define LEADS(x) (n[x].role == ACTIVE || n[x].role == FROZEN || n[x].role == PREPARING)

/* f, a, b, c: as in the trace. What the machine ignores for want of memory or of
 * entries of the utility log is asked or staged again. */
inline receive() {
  if
  :: in == R_ACCEPT && net??[eval(f),eval(me),ACCEPT,eval(a),eval(b),eval(c),d] ->
     net??eval(f),eval(me),ACCEPT,eval(a),eval(b),eval(c),d; on_accept(me)
  :: in == R_ACCEPTED && net??[eval(f),eval(me),ACCEPTED,eval(a),eval(b),c,d] ->
     net??eval(f),eval(me),ACCEPTED,eval(a),eval(b),c,d; on_accepted(me)
  :: in == R_PREPARE && to_idx >= a && net??[eval(f),eval(me),PREPARE,eval(a),b,c,d] ->
     net?? <eval(f),eval(me),PREPARE,eval(a),b,c,d>; on_prepare(me)
  :: in == R_PREPARED && net??[eval(f),eval(me),PREPARED,eval(a),b,c,d] ->
     net?? <eval(f),eval(me),PREPARED,eval(a),b,c,d>; in_e[me] = a; in_b[me] = b; in_c[me] = c
  :: in == R_SEAL && to_idx >= a && net??[eval(f),eval(me),SEAL,eval(a),eval(b),c,d] ->
     net?? <eval(f),eval(me),SEAL,eval(a),eval(b),c,d>; on_seal(me)
  :: in == R_SEALED && (b < COMPLETE || to_cep == n[me].ep) &&
     net??[eval(f),eval(me),SEALED,eval(a),eval(b),c,d] ->
     net?? <eval(f),eval(me),SEALED,eval(a),eval(b),c,d>; on_sealed(me)
  :: in == R_STAGE_UL && to_idx >= a && net??[eval(f),eval(me),STAGE_UL,eval(a),b,c,d] ->
     net?? <eval(f),eval(me),STAGE_UL,eval(a),b,c,d>; on_stage_ul(me)
  :: in == R_STAGE && to_st_from == a && net??[eval(f),eval(me),STAGE,eval(a),b,c,d] ->
     net?? <eval(f),eval(me),STAGE,eval(a),b,c,d>; on_stage(me)
  :: in == R_STAGED && a == n[me].ep && net??[eval(f),eval(me),STAGED,eval(a),b,c,d] ->
     if :: staged_e[me] != a -> staged_e[me] = a; staged_by[me] = 0 :: else fi;
     staged_by[me] = staged_by[me] | (1 << f)
  :: in == R_LEARN && to_lrn[b] != 0 && n[me].lrn[b] == 0 && lp[me*S+b] != 0 -> on_learn(me, b)
  :: else -> c_code { ignored(Preplay->in); }
  fi;
  a = 0; b = 0; c = 0; d = 0; f = 0
}

/* A leader that hands over stages its log at a node that has just begun, too. */
inline restage() {
  do
  :: k < N -> if :: n[k].up && n[k].role == FROZEN && n[k].idx == n[k].ep -> stage(k) :: else fi; k++
  :: else -> break
  od;
  k = 0
}

inline learn() {
  do
  :: n[me].idx < to_idx && n[me].idx + 1 < ullen -> epoch_learn(me)
  :: else -> break
  od
}

inline fill(p_s) {
  if
  :: to_lrn[p_s] != 0 && n[me].lrn[p_s] == 0 -> decided[p_s] != 0; n[me].lrn[p_s] = decided[p_s]; lp[me*S+p_s] = 0
  :: else
  fi
}

inline seal() {
  do
  :: n[me].role == PREPARING && n[me].cep != n[me].ep && n[me].sk < n[me].ep &&
     n[me].sk >= ulT[n[me].ep] -> seal_step(me)
  :: else -> break
  od
}

#define ADOPTABLE (n[me].role == PREPARING && in_e[me] == n[me].ep)

inline adopt() {
  if
  :: ADOPTABLE && (to_role == ACTIVE || to_role == FROZEN) ->
     a = in_e[me]; b = in_b[me]; c = in_c[me]; on_prepared(me); a = 0; b = 0; c = 0
  :: !(ADOPTABLE && to_role == ACTIVE)
  fi
}

inline propose_all() {
  do
  :: n[me].role == ACTIVE && to_role == ACTIVE && n[me].next < to_next -> propose(me)
  :: else -> break
  od
}

inline freeze_if() {
  if
  :: to_role == FROZEN && n[me].role != FROZEN ->
     n[me].cep == n[me].ep && (n[me].role == ACTIVE || n[me].role == PREPARING) &&
     n[me].idx == n[me].ep && ulL[n[me].idx] == me;
     freeze(me)
  :: else
  fi
}

inline resign() {
  if
  :: to_role == FOLLOWER && LEADS(me) -> n[me].role = FOLLOWER
  :: else
  fi
}

#define WHERE(p_what) c_code { at(now.pos, p_what); };

inline compare() {
  c_code { now.same = (unsigned) compare_node(now.pos); };
  same
}

inline put() {                       /* a: epoch, f: its acceptor, b: of kind ACCEPTOR */
  ullen == a;
  if
  :: b == 0 -> n[me].up && n[me].idx + 1 == ullen && ulL[n[me].idx] != me && ulA[n[me].idx] != me;
     check_leader(me)
  :: else -> n[me].up && staged_e[me] == n[me].ep && (staged_by[me] & (1 << f)) != 0;
     a = n[me].ep; on_staged(me)
  fi;
  c_code { now.same = (unsigned) compare_entry(now.pos); };
  same
}

active proctype replay() {
  byte i, j, k, x, a, b, c, d, f, v; mtype t;
  byte me, what, in, to_idx, to_role, to_cep, to_st_from, to_next, to_lrn[2];
  atomic {
    begin_group();
    do :: i < N -> if :: i >= 3 -> n[i].up = 0 :: else fi; in_e[i] = NONE; staged_e[i] = NONE; i++ :: else -> break od;
    i = 0;
    c_code { open_trace(); }
  };
  do
  :: atomic {
       c_code {
         const struct record *r = record_at(now.pos);
         Preplay->what = r->what; Preplay->me = r->me; Preplay->in = r->in; Preplay->f = r->from;
         Preplay->a = r->a; Preplay->b = r->b; Preplay->c = r->c;
         Preplay->to_idx = r->state[F_IDX]; Preplay->to_role = r->state[F_ROLE];
         Preplay->to_cep = r->state[F_CEP]; Preplay->to_st_from = r->state[F_ST_FROM]; Preplay->to_next = r->state[F_NEXT];
         Preplay->to_lrn[0] = r->state[F_LRN]; Preplay->to_lrn[1] = r->state[F_LRN + 1];
         now.newvalue[0] = r->state[F_PROPOSED]; now.newvalue[1] = r->state[F_PROPOSED + 1];
       };
       if
       :: what == STOP -> c_code { accepted(now.pos); }
       :: what == DIE -> n[me].up = 0
       :: what == PUT -> WHERE("the proposer of the entry") put()
       :: what == BEGIN || what == STEP ->
          if
          :: what == BEGIN -> WHERE("an incarnation begins twice") !live[me]; live[me] = 1; n[me].up = 1; restage()
          :: else -> WHERE("an incarnation that has ended makes a step") n[me].up
          fi;
          WHERE("the action of the message") receive();
          WHERE("the entries that it learns") learn();
          WHERE("a slot that is learned and not decided") fill(0); fill(1);
          WHERE("the leader that is to be sealed") seal();
          WHERE("the adoption of what was prepared") adopt();
          WHERE("the proposal") propose_all();
          WHERE("the end of its proposals") freeze_if();
          resign();
          WHERE("the state") compare()
       fi;
       what = 0; in = 0; me = 0; to_idx = 0; to_role = 0; to_cep = 0; to_st_from = 0; to_next = 0; to_lrn[0] = 0; to_lrn[1] = 0;
       newvalue[0] = 0; newvalue[1] = 0; same = 0; a = 0; b = 0; c = 0; d = 0; f = 0; v = 0;
       pos++
     }
  od
}
