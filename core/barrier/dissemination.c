/*
 * The dissemination barrier (Hensgen, Finkel and Manber 1988). In round r each
 * member raises a flag of the member that is 2^r further on, and waits for its
 * own of that round: behind the round it knows that 2^(r + 1) members have
 * entered. After log2(n) rounds, rounded up, it knows it of all.
 *
 * In print the flags are bits, with a sense and two sets of them by parity,
 * since a member may be an episode ahead of the one whose flag it raises. Here
 * a flag holds the episode, so one set does: a wait takes a later one, too.
 */
#include "core/barrier/barrier_internal.h"

static void dissemination_wait(struct qn_barrier_member *me)
{
    const bool less = QN_BARRIER_MUTANT(DISSEMINATION_ROUND_LESS);
    uint32_t round = 0;
    for (uint32_t far = 1; far < me->members; far *= 2, round++) {
        const uint32_t to = me->member + far;
        const uint32_t around = to < me->members ? to : to - me->members;
        qn_a32 *own = qn_barrier_flag(me, me->member, round);
        if (less && far * 2 >= me->members) {
            return;
        }
        qn_barrier_raise(me, qn_barrier_flag(me, around, round));
        if (QN_BARRIER_MUTANT(DISSEMINATION_SET_BACK)) {
            qn_barrier_await(me, own, QN_BARRIER_STEP);
            qn_store(own, 0, QN_SEQ_CST);
            continue;
        }
        qn_barrier_await(me, own, qn_barrier_value(me));
    }
}

const struct qn_barrier_form qn_barrier_dissemination = {
    .name = "dissemination", .wait = dissemination_wait};
