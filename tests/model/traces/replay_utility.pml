/*
 * One index of the utility log of a run of the machine, replayed in utility.pml.
 * See replay_onepaxos.pml: the actions are the model's, this only chooses among
 * them.
 *
 * Records are what left the machine, in that order: a voter's record, then the
 * answer that rests on it. A message that is sent again changes nothing.
 *
 *     U_PREPARE   begin_ballot
 *     the record  on_accept, if it says that the vote is of the promised ballot,
 *                 else on_prepare; or nothing new: it was asked again
 *     U_PROMISE   has been promised, and says what was voted before
 *     U_ACCEPT    begin_accept with the promises that the proposer has taken; the
 *                 others are put aside meanwhile
 *     U_ACCEPTED  has been voted
 *     U_CHOSEN    the first one: chosen; then it names the same value
 */
#define TRACE
#ifndef R0
#define R0 16  /* rounds of two proposers: 32 ballots */
#endif
#define R1 1
#define VALUES 7
#define assert(c) if :: (c) :: else -> c_code { broken(now.pos, __LINE__); }; false fi

c_code {
\#include "utility_state.h"
}

int pos;          /* of the trace */
bit same;

#include "../utility.pml"

/* What a record is. */
#define PREPARE  1
#define RECORD   2
#define PROMISE  3
#define ACCEPT   4
#define ACCEPTED 5
#define CHOSEN   6
#define STOP     7

#define WHERE(p_what) c_code { at(now.pos, p_what); };
#define VOTED(p_b) (accd[P(0,p_b)] + accd[P(1,p_b)] + accd[P(2,p_b)])

inline record() {
  if
  :: to_bal == bal[me] && to_vbal == vbal[me]
  :: else ->
     if
     :: to_vbal == to_bal -> WHERE("the vote") accq[b] != 0 && b >= bal[me]; on_accept(me)
     :: else -> WHERE("the promise") prep[b] && b > bal[me]; on_prepare(me)
     fi
  fi;
  WHERE("the record") c_code { now.same = (unsigned) compare_node(now.pos); }; same
}

/* Of a ballot in which it has voted since, the machine says so; the proposer
 * waits for votes then. */
inline promise() {
  WHERE("a promise that is not recorded") prom[P(me,b)];
  if
  :: c != b ->
     c_code { now.same = (unsigned) compare_value(now.pos, "ballot voted in", Preplay->c, now.promb[Preplay->me * NB + Preplay->b]); };
     same;
     c_code { now.same = (unsigned) compare_value(now.pos, "value voted for", Preplay->v, now.promv[Preplay->me * NB + Preplay->b]); };
     same
  :: else
  fi
}

inline put_aside() {
  i = 0;
  do
  :: i < 3 -> kept[i] = prom[P(i,b)]; prom[P(i,b)] = prom[P(i,b)] && (c & (1 << i)) != 0; i++
  :: else -> break
  od
}

inline put_back() {
  i = 0;
  do :: i < 3 -> prom[P(i,b)] = kept[i]; kept[i] = 0; i++ :: else -> break od;
  i = 0
}

inline ask_for_votes() {
  if
  :: accq[b] == 0 ->
     put_aside();
     WHERE("the promises of a majority") prom[P(0,b)] + prom[P(1,b)] + prom[P(2,b)] >= 2;
     val = v; begin_accept();
     put_back()
  :: else
  fi;
  WHERE("the value to be voted for")
  c_code { now.same = (unsigned) compare_value(now.pos, "value", Preplay->v, now.accq[Preplay->b]); };
  same
}

inline learn() {
  if
  :: entry == 0 ->
     b = 1;
     do
     :: b < NB && (VOTED(b) < 2 || accq[b] != v) -> b++
     :: else -> break
     od;
     WHERE("the votes of a majority") b < NB;
     chosen(accq[b])
  :: else
  fi;
  WHERE("the entry")
  c_code { now.same = (unsigned) compare_value(now.pos, "entry", Preplay->v, now.entry); };
  same
}

active proctype replay() {
  byte i, hb, hv, cnt, val;
  byte me, what, b, v, c, to_bal, to_vbal;
  bit kept[3];
  atomic {
    up[0] = 1; up[1] = 1; up[2] = 1;
    c_code { open_trace(); }
  };
  do
  :: atomic {
       c_code {
         const struct record *r = record_at(now.pos);
         Preplay->what = r->what; Preplay->me = r->me;
         Preplay->b = r->a; Preplay->v = r->b; Preplay->c = r->c;
         Preplay->to_bal = r->state[F_BAL]; Preplay->to_vbal = r->state[F_VBAL];
       };
       if
       :: what == STOP -> c_code { accepted(now.pos); }
       :: what == PREPARE -> prep[b] = 1
       :: what == RECORD -> record()
       :: what == PROMISE -> promise()
       :: what == ACCEPT -> ask_for_votes()
       :: what == ACCEPTED -> WHERE("a vote that is not recorded") accd[P(me,b)]
       :: what == CHOSEN -> learn()
       fi;
       what = 0; me = 0; b = 0; v = 0; c = 0; to_bal = 0; to_vbal = 0; same = 0;
       i = 0; hb = 0; hv = 0; cnt = 0; val = 0;
       pos++
     }
  od
}
