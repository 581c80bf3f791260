/*
 * The root reminds a peer that sleeps and has missed the last LEARN.
 */
#include "tests/support/test.h"
#include "tests/unit/paxos/driver/driver_world.h"

/* Node 2 sleeps, and the last LEARN to it is lost. No other slot follows that
 * would show the gap. */
static void lose_the_last_learn(bool memory)
{
    struct world *w = world_begin(3, memory);
    world_go_on(w);
    world_rounds(w, 100);
    struct world_member *sleeper = &w->member[2];
    sleeper->stopped = true;
    world_submit_number(w, 0, 7);
    world_rounds(w, 5);
    world_wipe(w, memory ? 0 : 1, 2, QN_LANE_TREE);
    qn_doorbell_arm(&sleeper->doorbell);
    cr_assert(!qn_driver_pending(sleeper->driver));
    world_rounds(w, 80); /* 8 ms */
    bool rung = qn_load(&qn_outbox_doorbell(sleeper->incarnation.outbox)->epoch,
                        QN_SEQ_CST) %
                    2 ==
                0;
    cr_assert(rung, "it sleeps for ever, and lacks a slot");
    qn_doorbell_disarm(&sleeper->doorbell);
    sleeper->stopped = false;
    world_settle(w, 100);
    world_end(w);
}

Test(driver_reminder, a_sleeper_whose_last_learn_was_lost_is_woken_by_memory)
{
    lose_the_last_learn(true);
}

Test(driver_reminder, a_sleeper_whose_last_learn_was_lost_is_woken_by_a_process)
{
    lose_the_last_learn(false);
}

/* A peer that is stopped for a while gets one reminder, not one per look. */
Test(driver_reminder, a_stopped_peer_is_reminded_once)
{
    struct world *w = world_begin(3, true);
    world_go_on(w);
    world_rounds(w, 100);
    w->member[2].stopped = true;
    for (uint32_t i = 0; i < 20; i++) {
        world_submit_number(w, 0, i);
        world_rounds(w, 50); /* 5 ms */
    }
    struct qn_qp *lane = w->member[2].direct[0];
    const void *bytes;
    size_t len;
    uint32_t beats = 0;
    while (qn_qp_peek(lane, &bytes, &len) == QN_OK) {
        struct qn_msg m;
        cr_assert_eq(qn_msg_decode(&m, bytes, len), QN_OK);
        beats += m.kind == QN_MSG_BEAT;
        qn_qp_release(lane);
    }
    cr_assert_eq(beats, 1);
    world_end(w);
}
