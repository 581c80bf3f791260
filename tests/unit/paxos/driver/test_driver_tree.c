/*
 * What real drivers believe of each other: the tree that LEARN comes down
 * (PROTOCOL.md 3.4.1), positions and the read index (8.2).
 */
#include <string.h>

#include "core/base/err.h"
#include "core/base/log.h"
#include "core/machine/machine.h"
#include "core/place/outbox.h"
#include "paxos/dissemination/dissemination.h"
#include "paxos/log/batch.h"
#include "paxos/wire/msg.h"
#include "tests/support/test.h"
#include "tests/unit/paxos/driver/driver_world.h"

/* ---- the tree ------------------------------------------------------------ */

/* 0 or 1 is the root; 3 and 4 hang below an inner node. */
static void inner_node_dies(bool memory)
{
    struct world *w = world_make(5, memory);
    w->topology = "binary";
    world_start(w);
    world_go_on(w);
    qn_node_t inner = memory ? 1 : 2;
    world_lose(w, inner);
    world_load(w, 30);
    world_settle(w, 20000);
    uint64_t before = world_status(w, 3).fetches + world_status(w, 4).fetches;
    world_go_on(w);
    cr_assert_eq(world_status(w, 3).fetches + world_status(w, 4).fetches,
                 before, "LEARNs come down another tree");
    world_restart(w, inner);
    world_go_on(w);
    before = 0;
    for (qn_node_t i = 0; i < 5; i++) {
        before += world_status(w, i).fetches;
    }
    world_go_on(w);
    for (qn_node_t i = 0; i < 5; i++) {
        before -= world_status(w, i).fetches;
    }
    cr_assert_eq(before, 0, "it is in the tree again");
    world_end(w);
}

Test(driver_tree, members_below_a_dead_node_get_learns_at_once)
{
    inner_node_dies(true);
    inner_node_dies(false);
}

/* Nodes 0 1 2 | 3 4: what crosses is dear. */
static struct qn_machine *two_groups(void)
{
    struct qn_machine *m = NULL;
    cr_assert_eq(qn_machine_create(&m, 5), QN_OK);
    for (uint32_t i = 0; i < 25; i++) {
        uint32_t u = i / 5, v = i % 5;
        bool cross = (u < 3) != (v < 3);
        m->send[i] = u == v ? 0 : cross ? 400 : 10;
        m->receive[i] = u == v ? 0 : cross ? 500 : 30;
    }
    return m;
}

static qn_node_t parent_of(struct world *w, qn_node_t at, qn_node_t v)
{
    return qn_driver_topology(w->member[at].driver)->parent[v];
}

Test(driver_tree, a_plan_follows_the_root_and_the_living)
{
    struct world *w = world_make(5, true);
    w->costs = two_groups();
    world_start(w);
    world_go_on(w);
    cr_assert_eq(parent_of(w, 0, 3), 0u);
    cr_assert_eq(parent_of(w, 4, 4), 3u, "one crossing");
    cr_assert_gt(world_status(w, 0).broadcast_latency_ns, 0u);
    cr_assert_eq(world_status(w, 1).broadcast_latency_ns, 0u, "it is no root");
    world_lose(w, 3);
    world_go_on(w);
    cr_assert_eq(parent_of(w, 0, 4), 0u);
    world_lose(w, 0);
    world_go_on(w);
    qn_node_t root = world_status(w, 1).leader;
    cr_assert_eq(parent_of(w, 2, 4), root);
    world_restart(w, 0);
    world_restart(w, 3);
    world_go_on(w);
    uint64_t before = world_status(w, 4).fetches;
    world_go_on(w);
    cr_assert_eq(world_status(w, 4).fetches, before);
    world_end(w);
}

/* Only the root has heard of a death: its LEARNs tell the others. */
Test(driver_tree, the_root_says_which_tree_it_is)
{
    struct world *w = world_make(5, true);
    w->topology = "binary";
    world_start(w);
    world_go_on(w);
    world_kill(w, 1);
    world_tell(w, 0, 1);
    for (uint64_t x = 0; x < 20; x++) {
        world_submit_number(w, 0, x);
        world_rounds(w, 1);
    }
    for (qn_node_t i = 2; i < 5; i++) {
        cr_assert_eq(w->member[i].slot, w->member[0].slot, "node %u", i);
    }
    for (qn_node_t i = 2; i < 5; i++) {
        world_tell(w, i, 1);
    }
    world_go_on(w);
    world_end(w);
}

/* An inner node stands still: it leaves the tree, and comes back into it. */
Test(driver_tree, a_stalled_member_leaves_the_tree)
{
    struct world *w = world_make(5, true);
    w->topology = "binary";
    world_start(w);
    world_go_on(w);
    w->member[1].stopped = true; /* 3 and 4 hang below it */
    world_load(w, 600);
    for (uint64_t x = 0; x < 20; x++) {
        world_submit_number(w, 0, x);
        world_rounds(w, 2);
        cr_assert_eq(w->member[3].slot, w->member[0].slot);
        cr_assert_eq(w->member[4].slot, w->member[0].slot);
    }
    w->member[1].stopped = false;
    world_go_on(w);
    world_load(w, 100);
    world_learns_at_once(w);
    world_end(w);
}

/* Of a small group whose other members need no inner node, too. */
Test(driver_tree, a_member_that_resumes_is_in_the_tree_again)
{
    struct world *w = world_make(4, true);
    w->topology = "binary";
    world_start(w);
    world_go_on(w);
    w->member[3].stopped = true; /* it hangs below 1 */
    world_load(w, 600);
    for (uint64_t x = 0; x < 200; x++) {
        world_submit_number(w, 0, x);
        world_rounds(w, 2);
    }
    cr_assert_eq(qn_driver_topology(w->member[0].driver)->n, 3u);
    w->member[3].stopped = false;
    world_go_on(w);
    world_load(w, 100);
    world_settle(w, 20000);
    cr_assert_eq(qn_driver_topology(w->member[0].driver)->n, 4u);
    world_learns_at_once(w);
    world_end(w);
}

/* ---- wild peers ---------------------------------------------------------- */

/* A learner writes over its outbox and the read index, then it dies. */
static void wild_learner(bool memory, int byte)
{
    struct world *w = world_begin(3, memory);
    world_go_on(w);
    struct qn_outbox_state *state =
        qn_outbox_state(w->member[2].incarnation.outbox);
    w->wild = true;
    memset(state, byte, sizeof *state);
    qn_store(&w->read_index, UINT64_C(1) << 40, QN_SEQ_CST);
    w->member[2].stopped = true;
    qn_slot_t slot = w->member[0].slot;
    for (qn_node_t i = 0; i < 2; i++) {
        world_rounds(w, 100);
        cr_assert_eq(qn_driver_read_index(w->member[i].driver), slot,
                     "a reader would wait for ever");
        cr_assert_eq(world_status(w, i).decided_hi, slot);
    }
    world_lose(w, 2);
    world_go_on(w);
    qn_store(&w->read_index, 0, QN_SEQ_CST); /* and if it was made smaller */
    world_rounds(w, 1);
    cr_assert_eq(qn_load(&w->read_index, QN_SEQ_CST), w->member[0].slot);
    world_end(w);
}

Test(driver_tree, a_wild_learner_holds_nobody_up)
{
    wild_learner(true, 0);
    wild_learner(true, 0xee);
    wild_learner(false, 0);
    wild_learner(false, 0xee);
}

/* Its tree lane is read, for it may be the root of tomorrow. A LEARN of a slot
 * that is not decided, of an epoch in which it was nothing. */
static void wild_learn(bool memory, qn_epoch_t epoch)
{
    struct world *w = world_begin(3, memory);
    world_go_on(w);
    static const uint8_t batch[QN_BATCH_HEAD]; /* without commands */
    uint8_t bytes[QN_HEAD_MAX + sizeof batch] = {0};
    qn_slot_t slot = w->member[0].slot;
    const struct qn_msg m = {.kind = QN_MSG_LEARN,
                             .epoch = epoch,
                             .slot = slot + 1,
                             .body = {batch, sizeof batch},
                             .learn = {.hi = slot + 1, .alive = 7}};
    size_t head = qn_msg_head(&m, bytes);
    for (qn_node_t to = 0; to < 2; to++) {
        cr_assert_eq(
            qn_qp_try_send(w->member[2].tree[to], bytes, head + sizeof batch),
            QN_OK);
        world_turn(w, to);
        cr_assert_eq(w->member[to].slot, slot, "a learner has decided");
    }
    world_go_on(w);
    world_end(w);
}

Test(driver_tree, who_was_never_root_decides_nothing)
{
    for (int memory = 0; memory < 2; memory++) {
        wild_learn(memory != 0, 0);
        wild_learn(memory != 0, 1);
    }
}

/* On its direct lane it may say anything: what decides is believed of nobody
 * who was not asked, or has no role in the epoch. */
static void wild_says(bool memory, uint8_t kind, qn_slot_t ahead)
{
    struct world *w = world_begin(3, memory);
    world_go_on(w);
    static const uint8_t batch[QN_BATCH_HEAD]; /* without commands */
    uint8_t bytes[QN_HEAD_MAX + sizeof batch] = {0};
    qn_slot_t slot = w->member[0].slot;
    struct qn_msg m = {
        .kind = kind, .slot = slot + ahead, .body = {batch, sizeof batch}};
    switch (kind) {
    case QN_MSG_PREPARED:
        m.flags = QN_MSG_LAST;
        m.prepared.hi = slot + ahead;
        break;
    case QN_MSG_LEARN:
        m.learn.hi = slot + ahead;
        break;
    case QN_MSG_FILL:
        m.flags = QN_MSG_LAST;
        m.fill.hi = slot + ahead;
        break;
    case QN_MSG_BEAT:
        m.beat.applied = m.beat.learned = m.beat.decided = slot + ahead;
        m.body.len = 0;
        break;
    default:
        m.body.len = 0;
    }
    size_t head = qn_msg_head(&m, bytes);
    w->member[2].stopped = true;
    for (qn_node_t to = 0; to < 2; to++) {
        cr_assert_eq(
            qn_qp_try_send(w->member[2].direct[to], bytes, head + m.body.len),
            QN_OK);
        world_turn(w, to);
        cr_assert_eq(w->member[to].slot, slot, "a learner has decided");
        cr_assert_eq(world_status(w, to).decided_hi, slot);
    }
    world_lose(w, 2);
    world_go_on(w);
    world_end(w);
}

Test(driver_tree, who_was_not_asked_decides_nothing)
{
    static const uint8_t kinds[] = {QN_MSG_LEARN, QN_MSG_FILL, QN_MSG_ACCEPTED,
                                    QN_MSG_PREPARED, QN_MSG_BEAT};
    for (size_t k = 0; k < sizeof kinds; k++) {
        for (int memory = 0; memory < 2; memory++) {
            wild_says(memory != 0, kinds[k], 1);
            wild_says(memory != 0, kinds[k], 1000);
        }
    }
}

/* An entry of the utility log that names nodes outside the group, where a plan
 * knows no such node. */
static void wild_entry(bool memory)
{
    struct world *w = world_make(5, memory);
    w->costs = two_groups();
    world_start(w);
    world_go_on(w);
    const struct qn_ul_entry e = {.index = 1,
                                  .tenure = 1,
                                  .kind = QN_UL_LEADER,
                                  .leader = memory ? 7 : 0,
                                  .acceptor = 7,
                                  .leader_inc = 9,
                                  .acceptor_inc = 9};
    uint8_t bytes[QN_HEAD_MAX + QN_UL_BYTES];
    uint8_t ul[QN_UL_BYTES];
    qn_ul_encode(&e, ul);
    const struct qn_msg m = {
        .kind = QN_MSG_U_CHOSEN, .epoch = 1, .body = {ul, sizeof ul}};
    size_t head = qn_msg_head(&m, bytes);
    memcpy(bytes + head, ul, sizeof ul);
    w->member[4].stopped = true;
    for (qn_node_t to = 0; to < 4; to++) {
        cr_assert_eq(
            qn_qp_try_send(w->member[4].direct[to], bytes, head + sizeof ul),
            QN_OK);
        (void)qn_qp_flush(w->member[4].direct[to]);
        world_turn(w, to);
        cr_assert_eq(world_status(w, to).epoch, 0u, "node %u learned it", to);
    }
    world_lose(w, 4);
    world_go_on(w);
    world_end(w);
}

Test(driver_tree, an_entry_that_names_a_stranger_is_not_learned)
{
    wild_entry(true);
    wild_entry(false);
}

/* Process acceptor: the bound is that of the newest acceptor, also while this
 * node has not heard of it. */
Test(driver_tree, a_true_read_index_is_never_cut)
{
    struct world *w = world_begin(5, false);
    world_go_on(w);
    w->member[4].stopped = true; /* it hears of nothing */
    w->member[1].stopped = true;
    world_suspect(w, 2);
    world_load(w, 30);
    world_settle(w, 20000);
    cr_assert_neq(world_status(w, 0).acceptor, 1);
    qn_slot_t slot = w->member[0].slot;
    cr_assert_eq(qn_driver_read_index(w->member[4].driver), slot);
    cr_assert_lt(w->member[4].slot, slot);
    cr_assert_eq(qn_driver_read_index(w->member[1].driver), slot,
                 "its own position is none of the newest acceptor");
    w->member[1].stopped = w->member[4].stopped = false;
    world_suspect(w, 0);
    world_go_on(w);
    world_end(w);
}

/* A wild store makes it too small, and who reads first lags behind: it knows
 * only what it has shown itself, less than others have. */
Test(driver_tree, a_read_index_that_was_made_smaller_hides_nothing)
{
    for (int memory = 0; memory < 2; memory++) {
        struct world *w = world_begin(3, memory != 0);
        world_go_on(w);
        w->member[2].stopped = true;
        world_load(w, 10);
        world_rounds(w, 100);
        qn_slot_t slot = w->member[0].slot;
        cr_assert_lt(w->member[2].slot, slot);
        w->wild = true;
        qn_store(&w->read_index, 0, QN_SEQ_CST);
        cr_assert_eq(qn_driver_read_index(w->member[2].driver), slot,
                     "before its turn");
        if (memory == 0) { /* the acceptor's own word is gone, too */
            qn_node_t a = world_status(w, 2).acceptor;
            qn_a64 *said =
                &qn_outbox_state(w->member[a].incarnation.outbox)->learned;
            uint64_t was = qn_load(said, QN_SEQ_CST);
            qn_store(said, 0, QN_SEQ_CST);
            cr_assert_eq(qn_driver_read_index(w->member[2].driver), slot);
            qn_store(said, was, QN_SEQ_CST);
        }
        w->member[2].stopped = false;
        qn_driver_hold_learns(w->member[2].driver, true);
        world_turn(w, 2);
        cr_assert_eq(qn_load(&w->read_index, QN_SEQ_CST), slot,
                     "and published in it");
        qn_driver_hold_learns(w->member[2].driver, false);
        world_go_on(w);
        world_end(w);
    }
}

/* And while it believes in an acceptor that has ended and come back: the new
 * life's vote is nowhere where this node looks. */
Test(driver_tree, a_read_index_is_not_cut_by_who_has_slept_through_a_life)
{
    struct world *w = world_begin(3, false);
    world_go_on(w);
    w->member[2].stopped = w->member[2].deaf = true;
    world_lose(w, 1);
    world_restart(w, 1);
    cr_assert(world_install(w, 1, 0));
    for (uint64_t x = 0; x < 9; x++) {
        world_submit_number(w, 0, x);
    }
    world_settle(w, 20000); /* each turn checks what node 2 would find */
    cr_assert_gt(world_status(w, 0).epoch, 0);
    cr_assert_lt(w->member[2].slot, w->member[0].slot);
    cr_assert_eq(qn_driver_read_index(w->member[2].driver), w->member[0].slot);
    w->member[2].stopped = w->member[2].deaf = false;
    world_hear(w, 2, 1);
    world_suspect(w, 0);
    world_go_on(w);
    world_end(w);
}

/* An acceptor that is appointed and has not heard of it says nothing yet. */
Test(driver_tree, an_appointed_acceptor_bounds_nothing_before_it_knows)
{
    struct world *w = world_begin(5, false);
    world_go_on(w);
    for (qn_node_t i = 2; i < 5; i++) {
        qn_driver_hold_learns(w->member[i].driver, true);
    }
    for (uint64_t x = 0; x < 9; x++) {
        world_submit_number(w, 0, x);
        world_rounds(w, 2);
    }
    w->member[1].stopped = true;
    world_suspect(w, 2);
    for (uint32_t r = 0; r < 2000 && world_status(w, 0).epoch == 0; r++) {
        world_rounds(w, 1); /* checks everybody's read index */
    }
    cr_assert_neq(world_status(w, 0).epoch, 0);
    world_rounds(w, 10);
    for (qn_node_t i = 2; i < 5; i++) {
        qn_driver_hold_learns(w->member[i].driver, false);
    }
    w->member[1].stopped = false;
    world_suspect(w, 0);
    world_go_on(w);
    world_end(w);
}

/* ---- the root reminds a peer that sleeps and has missed the last LEARN -----
 */

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
