/*
 * A barrier over any tree (Smelt's, over shared lines instead of queuepairs):
 * members tell their parents when all below them have entered, and the root
 * releases all in the way that they came. The tree is planned for the machine
 * (core/barrier/selection), so that few transfers cross from socket to socket.
 *
 *     flag 0   a member raises its own: its parent waits for it
 *     flag 1   its parent raises it
 *
 * The child that is told first has most below it, so it is awaited last.
 */
#include "core/barrier/barrier_internal.h"
#include "core/base/bits.h"

enum { UP, DOWN };

static void tree_wait(struct qn_barrier_member *me)
{
    struct qn_barrier_seat *seat = me->memory->seat;
    const uint32_t value = qn_barrier_value(me);
    const uint32_t awaited = QN_BARRIER_MUTANT(TREE_ONE_CHILD)
                                 ? QN_MIN(1, me->children)
                                 : me->children;
    uint32_t c = me->last_child;
    for (uint32_t k = 1; k <= awaited; k++) {
        qn_barrier_await(me, qn_barrier_flag(me, c, UP), value);
        /* relaxed: constant since before the member joined. */
        c = k < awaited ? qn_load(&seat[c].before, QN_RELAXED) : c;
    }
    if (me->parent != me->member) {
        qn_barrier_raise(me, qn_barrier_flag(me, me->member, UP));
        if (!QN_BARRIER_MUTANT(TREE_NOT_TOLD)) {
            qn_barrier_await(me, qn_barrier_flag(me, me->member, DOWN), value);
        }
    }
    c = me->first_child;
    for (uint32_t k = 1; k <= me->children; k++) {
        qn_barrier_raise(me, qn_barrier_flag(me, c, DOWN));
        /* relaxed: as above. */
        c = k < me->children ? qn_load(&seat[c].next, QN_RELAXED) : c;
    }
}

const struct qn_barrier_form qn_barrier_tree = {.name = "tree",
                                                .wait = tree_wait};
