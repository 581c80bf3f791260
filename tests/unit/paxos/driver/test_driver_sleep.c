/*
 * Going to sleep: who waits is rung, and what may be taken later is looked at.
 */
#include <stdlib.h>

#include "tests/support/test.h"
#include "tests/unit/paxos/driver/driver_group.h"

/* A doorbell of the futex kind is turned back to even by who rings it. */
static bool was_rung(uint32_t i)
{
    return qn_load(&qn_outbox_doorbell(node[i].own)->epoch, QN_SEQ_CST) % 2 ==
           0;
}

/* The acceptor waits for a child without room, to which it has sent nothing
 * since its last flush: that one must ring it when it has made room. */
Test(driver_sleep, a_child_that_was_waited_for_rings)
{
    group_start(3);
    bool waits = false;
    for (uint64_t x = 0; x < 64 && !waits; x++) { /* node 2 stands still */
        submit_number(0, x);
        one_turn(0);
        waits = one_turn(1);
        one_turn(0);
    }
    cr_assert(waits, "64 LEARNs of 2 cells do not fill 64 cells");
    cr_assert(one_turn(1), "still nobody has made room");
    qn_doorbell_arm(&node[1].doorbell);
    cr_assert(!qn_driver_pending(node[1].driver));
    one_turn(2);
    cr_assert(was_rung(1), "it sleeps, with room for what it has to send");
    qn_doorbell_disarm(&node[1].doorbell);
    rounds(50);
    check_equal_logs(node[0].logged);
    group_stop();
}

/* While the gate is shut by what a giver holds for its joiner, nothing happens
 * anywhere. The giver lets go all the same, soon after the joiner has what it
 * needs. */
Test(driver_sleep, an_idle_giver_lets_go_of_what_it_holds)
{
    group_start(3);
    submit_number(0, 1);
    rounds(100);
    qn_slot_t position = qn_driver_applied(node[2].driver);
    const struct qn_outbox_state *s = qn_outbox_state(node[1].own);
    rounds(2000);
    qn_driver_hold(node[1].driver, 2, position, QN_HOLD_DONE);
    cr_assert_eq(qn_load(&s->hold_slot, QN_ACQUIRE), position + 1);
    rounds(10);
    cr_assert_eq(qn_load(&s->hold_slot, QN_ACQUIRE), position + 1,
                 "the leader has not heard of the joiner yet");
    rounds(2000);
    cr_assert_eq(qn_load(&s->hold_slot, QN_ACQUIRE), 0);
    group_stop();
}

static int big_until_failure; /* allocations that still succeed; 0: never */

/* Batches come from here (core/base/alloc.h). */
void *__wrap_realloc(void *p, size_t bytes);
void *__real_realloc(void *p, size_t bytes);

void *__wrap_realloc(void *p, size_t bytes)
{
    if (bytes >= 7000 && big_until_failure != 0 && --big_until_failure == 0) {
        return NULL;
    }
    return __real_realloc(p, bytes);
}

/* The acceptor has no memory for a batch and leaves its ACCEPT in the channel.
 * If the machine has moved in the same turn it may be taken now, so the node
 * must not sleep; and if nothing has moved, not spin. */
static void refuse_an_accept(bool something_moves)
{
    static uint8_t big[7000]; /* one piece, not joined */
    group_start(3);
    cr_assert(submit(0, big, sizeof big));
    one_turn(0);
    big_until_failure = 1;
    for (uint64_t x = 0; x < 200 && big_until_failure != 0; x++) {
        one_turn(0);
        if (something_moves) {
            submit_number(1, x);
        }
        one_turn(1);
    }
    cr_assert_eq(big_until_failure, 0, "the ACCEPT has not come");
    cr_assert_eq(qn_driver_pending(node[1].driver), something_moves);
    rounds(100);
    cr_assert_eq(node[0].mine, 1, "the command was lost");
    check_equal_logs(node[0].logged);
    group_stop();
}

Test(driver_sleep, a_refused_accept_is_looked_at_when_the_machine_has_moved)
{
    refuse_an_accept(true);
}

Test(driver_sleep, a_refused_accept_lets_its_node_sleep_meanwhile)
{
    refuse_an_accept(false);
}
