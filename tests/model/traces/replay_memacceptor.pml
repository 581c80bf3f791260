/*
 * A run of the machine with the memory acceptor, replayed in memacceptor.pml, in its
 * direct form. See replay_onepaxos.pml: the actions are the model's, this only
 * chooses among them.
 *
 * A step of the machine is, in this order,
 *
 *     learn     entries of the utility log
 *     fill      slots that it has learned and that are decided (FILL)
 *     give up   a take-over for an older epoch, of an older register, or of a ring
 *               in which a slot could not be read (GIVEUP)
 *     raise     lo of its ring (RAISE)
 *     copy      begin_copy, then slots as far as the machine has come
 *     promise   if the machine leads now
 *     accept    as many slots as the register has moved
 *     resign    a leader stops, for whatever reason
 *
 * The model's app is what the machine has learned. Its ring has place for both slots,
 * so that lo is raised by RAISE only.
 */
#define TRACE
#define DIRECT
#define NOLEARN
#define AREAD
#define NOPUB
#define EMAP
#define NODROP
#define S 2
#define R 2
#ifndef NO
#define NO 12 /* incarnations */
#endif
#ifndef E
#define E 48
#endif
#define assert(c) if :: (c) :: else -> c_code { broken(now.pos, __LINE__); }; false fi

c_code {
\#include "memacceptor_state.h"
}

int pos;          /* of the trace */
byte bid[S+1];    /* number of the batch that is decided */
bit same;

#include "../memacceptor.pml"

#define BEGIN 1
#define STEP  2
#define DIE   3
#define PUT   4
#define STOP  5

#define WHERE(p_what) c_code { at(now.pos, p_what); };

inline learn() {
  do
  :: pk[me] < to_idx && pk[me] + 1 < ull -> learn_entry(me)
  :: else -> break
  od
}

inline fill_all() {
  do
  :: app[me] < to_app && app[me] < wh -> CANFILL(me); fill(me)
  :: else -> break
  od
}

inline raise() {
  do
  :: MAX(lo[ob[me]], 1) < to_lo -> CANRAISE(me); raise_own_lo(me)
  :: else -> break
  od
}

#define TAKES (pk[me] > we && ulA[pk[me]] == ob[me])

/* A take-over has begun when the machine copies, or leads already. */
inline take_over() {
  if
  :: tpc[me] != 0 && (tg[me] != pk[me] || te[me] != we || (!to_copy && !to_act)) -> tdone(me)
  :: else
  fi;
  if
  :: TAKES && tpc[me] == 0 && (to_copy || to_act) && CUR != ob[me] -> raise(); CANBEGIN(me); begin_copy(me)
  :: TAKES && tpc[me] == 0 && to_act && CUR == ob[me] -> CANKEEP(me); keep_ring(me)
  :: else
  fi;
  do
  :: tpc[me] == 1 && tc[me] < to_tc && tc[me] <= th[me] -> copy_read(me)
  :: tpc[me] == 3 -> copy_some(me)
  :: tpc[me] == 1 && tc[me] < to_tc && tc[me] > th[me] -> wh != th[me]; tpc[me] = 2
  :: tpc[me] == 1 && tc[me] >= to_tc && to_act && TAKES -> tc[me] > th[me]; tpc[me] = 2
  :: tpc[me] == 2 -> promise(me)
  :: else -> break
  od
}

inline accept_all() {
  do
  :: wh < to_wh ->
     CANACCEPT(me); accept(me); put(me); bid[os[me]] = bids[os[me] - 1]; cas(me);
     opc[me] == 3; opc[me] = 0; oe[me] = 0; os[me] = 0;
     fill_all()
  :: else -> break
  od
}

/* The next incarnation of a node has the state of a snapshot of another. */
inline join() {
  restart(me);
  if
  :: app[0] >= to_app && up[0] && ready[0]
  :: app[1] >= to_app && up[1] && ready[1]
  :: app[2] >= to_app && up[2] && ready[2]
  fi;
  ready[me] = 1; app[me] = to_app; exposed(me); inv()
}

active proctype replay() {
  byte i, s, o, k, a, b, c; bit d;
  byte me, what, to_idx, to_act, to_wh, to_app, to_lo, to_copy, to_tc, bids[2];
  atomic {
    begin_group();
    c_code { open_trace(); }
  };
  do
  :: atomic {
       c_code {
         const struct record *r = record_at(now.pos);
         Preplay->what = r->what; Preplay->me = r->me; Preplay->a = r->a;
         Preplay->to_idx = r->state[F_IDX]; Preplay->to_act = r->state[F_ACT]; Preplay->to_wh = r->state[F_WH];
         Preplay->to_app = r->state[F_APP]; Preplay->to_lo = r->state[F_LO];
         Preplay->to_copy = r->state[F_COPY]; Preplay->to_tc = r->state[F_TC];
         Preplay->bids[0] = r->state[F_RING]; Preplay->bids[1] = r->state[F_RING + 1];
       };
       if
       :: what == STOP -> c_code { accepted(now.pos); }
       :: what == DIE -> WHERE("the end of an incarnation") crash(me); crashes = 0
       :: what == PUT -> WHERE("the proposer of the entry") ull == a; CANPROPOSE(me); propose(me);
          c_code { now.same = (unsigned) compare_entry(now.pos); }; same
       :: what == BEGIN || what == STEP ->
          if
          :: what == BEGIN && pos > 2 -> WHERE("an incarnation begins twice") !up[me]; join()
          :: what == BEGIN && pos <= 2
          :: else -> WHERE("an incarnation that has ended makes a step") up[me]
          fi;
          WHERE("the entries that it learns") learn();
          WHERE("a slot that is learned and not decided") fill_all();
          WHERE("the take-over") take_over();
          WHERE("the decision") accept_all();
          WHERE("lo of the ring") raise();
          if :: !to_act && act[me] -> act[me] = 0 :: else fi;
          WHERE("the state") c_code { now.same = (unsigned) compare_node(now.pos); }; same
       fi;
       what = 0; me = 0; a = 0; to_idx = 0; to_act = 0; to_wh = 0; to_app = 0; to_lo = 0; to_copy = 0; to_tc = 0;
       bids[0] = 0; bids[1] = 0; same = 0;
       pos++
     }
  od
}
