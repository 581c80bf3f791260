/*
 * The tree barrier of Mellor-Crummey and Scott (1991). Members arrive over a
 * tree in which each has up to four children, each of which raises a flag of
 * its own. (In print they are bytes of one word, so that a member that has
 * looked at it knows of all; but each child then takes the line from the one
 * before it.) They are woken over another tree, of two children each, since a
 * member can tell two at once sooner than the second could tell the third.
 *
 *     flags 0 .. 3   of the arrival: child 4 m + 1 + k of member m raises k
 *     flag 4         of the wake-up: the parent (m - 1) / 2 raises it
 */
#include "core/barrier/barrier_internal.h"

#define ARRIVE 4u /* children in the tree of the arrival */
#define WAKE   2u /* and in that of the wake-up */

static uint32_t child(uint32_t member, uint32_t fan, uint32_t k)
{
    return member * fan + 1 + k;
}

static void mcs_wait(struct qn_barrier_member *me)
{
    const uint32_t m = me->member;
    const uint32_t value = qn_barrier_value(me);
    const uint32_t awaited = QN_BARRIER_MUTANT(MCS_ONE_CHILD) ? 1 : ARRIVE;
    const uint32_t woken = WAKE - QN_BARRIER_MUTANT(MCS_NOT_WOKEN);
    for (uint32_t k = 0; k < awaited && child(m, ARRIVE, k) < me->members;
         k++) {
        qn_barrier_await(me, qn_barrier_flag(me, m, k), value);
    }
    if (m > 0) {
        qn_barrier_raise(
            me, qn_barrier_flag(me, (m - 1) / ARRIVE, (m - 1) % ARRIVE));
        qn_barrier_await(me, qn_barrier_flag(me, m, ARRIVE), value);
    }
    for (uint32_t k = 0; k < woken && child(m, WAKE, k) < me->members; k++) {
        qn_barrier_raise(me, qn_barrier_flag(me, child(m, WAKE, k), ARRIVE));
    }
}

const struct qn_barrier_form qn_barrier_mcs = {.name = "mcs", .wait = mcs_wait};
