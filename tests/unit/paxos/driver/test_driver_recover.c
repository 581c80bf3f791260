/*
 * Forced recovery through real drivers (PROTOCOL.md 9): one of a group that has
 * stopped goes on from what it has learned, whatever else it has heard.
 */
#include "core/place/outbox.h"
#include "tests/support/test.h"
#include "tests/unit/paxos/driver/driver_world.h"

/* A command of node 0 is decided; its LEARN is lost for node 2. */
static void decide(struct world *w, uint64_t x)
{
    world_submit_number(w, 0, x);
    world_turn(w, 0);
    world_turn(w, 1);
    world_wipe(w, 1, 2, QN_LANE_TREE);
    world_turn(w, 0);
}

/* What the world has seen of the others is void: node `left` has it all. */
static void forget(struct world *w, qn_node_t left)
{
    struct world_member *m = &w->member[left];
    w->history_count = m->count;
    w->shown = m->slot;
    for (uint32_t k = 0; k < WORLD_READS; k++) {
        m->floor[k].slot = QN_MIN(m->floor[k].slot, m->slot);
    }
}

static void lose_both(struct world *w)
{
    world_kill(w, 0);
    world_kill(w, 1);
    world_tell(w, 2, 0);
    world_tell(w, 2, 1);
}

/* It has been recovered: new incarnations take what it has, and all go on. */
static void others_return(struct world *w)
{
    world_restart(w, 0);
    world_restart(w, 1);
    world_settle(w, 20000);
    world_go_on(w);
    cr_assert_not(qn_driver_halted(w->member[0].driver));
}

/* What others have decided and shown binds nobody any more. */
Test(driver_recover, one_goes_on_from_what_it_learned)
{
    struct world *w = world_begin(3, false);
    world_go_on(w);
    qn_slot_t had = world_status(w, 2).learned;
    decide(w, 1);
    decide(w, 2);
    world_turn(w, 2);
    cr_assert_eq(world_status(w, 2).learned, had);
    cr_assert(w->messages || qn_load(&w->read_index, QN_SEQ_CST) == had + 2);
    lose_both(w);
    if (!w->messages) { /* there it was not told */
        cr_assert_eq(world_status(w, 2).highest_announced, had + 2);
    }
    forget(w, 2);
    cr_assert_eq(qn_driver_recover(w->member[2].driver, w->now), QN_OK);
    cr_assert(w->messages || qn_load(&w->read_index, QN_SEQ_CST) == had);
    cr_assert_eq(world_status(w, 2).highest_announced, had);
    world_restart(w, 0);
    world_settle(w, 20000);
    world_go_on(w);
    cr_assert(world_status(w, 2).served);
    world_restart(w, 1);
    world_settle(w, 20000);
    world_go_on(w);
    world_lose(w, 2); /* the new incarnation has all of it */
    world_settle(w, 20000);
    world_go_on(w);
    world_end(w);
}

/* The others began again before the order: they are ended once more. */
Test(driver_recover, who_came_meanwhile_begins_again)
{
    struct world *w = world_begin(3, false);
    world_go_on(w);
    lose_both(w);
    world_restart(w, 0);
    world_restart(w, 1);
    world_rounds(w, 5000);
    cr_assert(qn_driver_halted(w->member[2].driver));
    cr_assert_eq(qn_driver_recover(w->member[2].driver, w->now), QN_EBUSY);
    lose_both(w);
    forget(w, 2);
    cr_assert_eq(qn_driver_recover(w->member[2].driver, w->now), QN_OK);
    cr_assert_eq(qn_driver_recover(w->member[2].driver, w->now), QN_OK);
    others_return(w);
    world_end(w);
}

static void lead_by(struct world *w, qn_node_t i)
{
    for (uint32_t r = 0; world_status(w, i).leader != i; r++) {
        cr_assert_lt(r, 5000u);
        world_rounds(w, 1);
    }
}

/* Node 2 is elected, stands still before its PREPARE arrives, and is relieved
 * by node 0, of which it hears nothing. The acceptor has adopted that one, and
 * ends: all that node 2 knows is dead. */
static struct world *leads_without_knowing_the_next(void)
{
    struct world *w = world_begin(3, false);
    world_go_on(w);
    world_lose(w, 0);
    lead_by(w, 2);
    cr_assert_eq(world_status(w, 2).role, QN_PREPARING);
    w->member[2].stopped = true;
    world_wipe(w, 2, 1, QN_LANE_DIRECT);
    world_restart(w, 0);
    for (uint32_t r = 0; world_status(w, 0).role != QN_ACTIVE; r++) {
        cr_assert_lt(r, 20000u);
        qn_driver_suspect(w->member[0].driver, 1 << 2, w->now);
        world_rounds(w, 1);
    }
    w->member[0].stopped = true;
    world_wipe(w, 0, 2, QN_LANE_DIRECT);
    world_wipe(w, 1, 2, QN_LANE_DIRECT);
    world_lose(w, 1);
    w->member[2].stopped = false;
    return w;
}

static void never_stopped(struct world *w)
{
    for (uint32_t r = 0; r < 100; r++) {
        world_rounds(w, 1);
        cr_assert_not(qn_driver_halted(w->member[2].driver), "%u", r);
    }
}

/* The later leader, without node 2, whose lane from it is broken. */
static void goes_on_by_the_later(struct world *w)
{
    w->member[0].stopped = false;
    world_lose(w, 2);
    world_settle(w, 20000);
    world_go_on(w);
    cr_assert(world_status(w, 0).served);
    world_end(w);
}

/* A majority has voted for a leader that it does not know. */
Test(driver_recover, a_later_leader_that_is_not_known_may_go_on)
{
    struct world *w = leads_without_knowing_the_next();
    never_stopped(w);
    cr_assert_eq(world_status(w, 2).leader, 2);
    world_restart(w, 1);
    never_stopped(w);
    goes_on_by_the_later(w);
}

/* An incarnation that is heard of before it begins has not read its record:
 * what the lives before it have voted for is not known. */
Test(driver_recover, a_life_that_has_not_begun_says_nothing_of_votes)
{
    struct world *w = leads_without_knowing_the_next();
    world_come(w, 1);
    never_stopped(w);
    cr_assert_eq(world_status(w, 2).leader, 2);
    world_arrive(w, 1);
    never_stopped(w);
    goes_on_by_the_later(w);
}

/* Node 2 is a new incarnation without a snapshot when it is elected. The
 * acceptor answers with what it keeps, and ends. */
static struct world *lacks_what_was_dropped(uint32_t nodes)
{
    struct world *w = world_make(nodes, false);
    w->snapshots_by_hand = true;
    world_start(w);
    world_go_on(w);
    world_lose(w, 2);
    world_go_on(w);
    world_restart(w, 2);
    world_rounds(w, 200);
    cr_assert(w->member[2].need_snapshot);
    world_lose(w, 0);
    lead_by(w, 2);
    world_rounds(w, 200);
    cr_assert_gt(world_status(w, 2).decided_hi, world_status(w, 2).learned);
    world_lose(w, 1);
    world_restart(w, 0);
    world_restart(w, 1);
    return w;
}

Test(driver_recover, a_leader_that_lacks_what_nobody_has_says_so)
{
    struct world *w = lacks_what_was_dropped(3);
    qn_slot_t decided = world_status(w, 2).decided_hi;
    world_rounds(w, 9000);
    cr_assert_not(qn_driver_halted(w->member[2].driver), "too soon");
    world_rounds(w, 5000);
    for (qn_node_t i = 0; i < 3; i++) {
        cr_assert(qn_driver_halted(w->member[i].driver), "node %u", i);
        cr_assert(qn_driver_log_incomplete(w->member[i].driver), "node %u", i);
    }
    cr_assert_eq(world_status(w, 2).highest_announced, decided);
    cr_assert_eq(qn_driver_recoverable(w->member[2].driver), QN_OK);
    lose_both(w);
    forget(w, 2);
    cr_assert_eq(qn_driver_recover(w->member[2].driver, w->now), QN_OK);
    w->member[2].need_snapshot = w->snapshots_by_hand = false;
    others_return(w);
    world_end(w);
}

/* One who has it stands still for long. He gives a snapshot later. */
Test(driver_recover, who_has_what_the_leader_lacks_is_waited_for)
{
    struct world *w = lacks_what_was_dropped(4);
    w->member[3].stopped = true;
    world_rounds(w, 30000);
    for (qn_node_t i = 0; i < 3; i++) {
        cr_assert_not(qn_driver_halted(w->member[i].driver), "node %u", i);
    }
    w->member[3].stopped = w->snapshots_by_hand = false;
    world_settle(w, 40000);
    world_go_on(w);
    world_end(w);
}

/* Later lives may be elected before it leads; they find the same two dead. */
Test(driver_recover, nobody_takes_it_for_stopped_again)
{
    struct world *w = world_begin(3, false);
    world_go_on(w);
    lose_both(w);
    world_rounds(w, 2000);
    forget(w, 2);
    cr_assert_eq(qn_driver_recover(w->member[2].driver, w->now), QN_OK);
    world_restart(w, 0);
    world_restart(w, 1);
    w->member[2].stopped = true; /* it has no turn for a while */
    for (uint32_t r = 0; r < 3000; r++) {
        world_suspect(w, 1 << 2);
        world_rounds(w, 1);
        cr_assert_not(qn_driver_halted(w->member[0].driver));
        cr_assert_not(qn_driver_halted(w->member[1].driver));
    }
    w->member[2].stopped = false;
    world_suspect(w, 0);
    world_settle(w, 20000);
    world_go_on(w);
    world_lose(w, 2); /* its word has ended with it */
    world_settle(w, 20000);
    world_go_on(w);
    world_end(w);
}

/* A leader that is complete, or an acceptor, needs a majority and no force. */
Test(driver_recover, who_can_go_on_is_not_forced)
{
    for (qn_node_t left = 0; left < 2; left++) {
        struct world *w = world_begin(3, false);
        world_go_on(w);
        world_lose(w, 1 - left);
        world_lose(w, 2);
        cr_assert_eq(qn_driver_recover(w->member[left].driver, w->now),
                     QN_EBUSY);
        world_restart(w, 2);
        world_settle(w, 20000);
        world_go_on(w);
        world_end(w);
    }
}

Test(driver_recover, who_can_take_over_needs_no_force)
{
    struct world *w = world_begin(3, true);
    world_go_on(w);
    lose_both(w);
    cr_assert_eq(qn_driver_recover(w->member[2].driver, w->now), QN_EBUSY);
    world_restart(w, 0);
    world_go_on(w);
    world_end(w);
}
