/*
 * Orders to change the voters while leaders end or are replaced, and what they
 * and the member that was asked say to each other (PROTOCOL.md 4.4).
 */
#include "paxos/driver/driver_internal.h"
#include "tests/support/test.h"
#include "tests/unit/paxos/driver/change/change_world.h"

/* The leader ends before it has answered, or with its entry under way. */
Test(driver_change_leader, an_order_outlives_the_leader)
{
    for (uint32_t rounds = 0; rounds < 8; rounds++) {
        struct world *w = change_voters(3);
        world_restart(w, 3);
        world_go_on(w);
        cr_assert_eq(world_order_of(w, 1, 3, true), QN_OK);
        world_rounds(w, rounds);
        world_lose(w, 0);
        world_ordered(w, 1, 15);
        world_go_on(w);
        world_end(w);
    }
}

/* Until the leader has said yes. */
static void begins(struct world *w, qn_node_t at)
{
    for (int r = 0; r < 20000 && !w->member[at].driver->order.begun; r++) {
        world_rounds(w, 1);
    }
    cr_assert(w->member[at].driver->order.begun);
}

/* The entry is proposed, and a majority would not be left any more. */
Test(driver_change_leader, what_the_leader_has_begun_it_refuses_no_more)
{
    struct world *w = change_voters(3);
    world_restart(w, 3);
    world_go_on(w);
    w->member[1].stopped = w->member[2].stopped = true; /* none is chosen */
    cr_assert_eq(world_order_of(w, 3, 2, false), QN_OK);
    begins(w, 3);
    world_suspect(w, 2);
    world_rounds(w, 1000);
    cr_assert_eq(world_status(w, 3).change, QN_CHANGE_PENDING, "%s",
                 qn_strerror(world_status(w, 3).change_error));
    world_suspect(w, 0);
    w->member[1].stopped = w->member[2].stopped = false;
    world_ordered(w, 3, 3);
    world_lose(w, 2);
    world_go_on(w);
    world_end(w);
}

/* The leader has taken an order, or may have, and ends; the next one refuses
 * it. */
static void refused_later(bool taken)
{
    struct world *w = change_voters(3);
    world_restart(w, 3);
    world_go_on(w);
    w->member[1].stopped = w->member[2].stopped = true;
    w->member[0].stopped = !taken;
    cr_assert_eq(world_order_of(w, 3, 2, false), QN_OK);
    if (taken) {
        begins(w, 3);
    }
    world_rounds(w, 10);
    world_lose(w, 0);
    w->member[1].stopped = w->member[2].stopped = false;
    world_rounds(w, 3000);
    cr_assert_eq(world_status(w, 3).voters, 7);
    change_unknown(w, 3, QN_ENOQUORUM);
    struct qn_driver_change c = world_change(w, 2, false);
    change_refused(w, 3, &c,
                   QN_ENOQUORUM); /* the same leader alone was asked */
    world_restart(w, 0);
    world_go_on(w);
    world_end(w);
}

Test(driver_change_leader,
     what_a_former_leader_may_have_begun_no_later_one_takes_back)
{
    refused_later(true);
    refused_later(false);
}

/* It is not the newest that the leader has answered. */
Test(driver_change_leader, an_answer_to_a_former_order_ends_no_later_one)
{
    struct world *w = change_voters(3);
    world_lose(w, 2);
    world_go_on(w);
    struct qn_driver_change c = world_change(w, 1, false);
    w->member[0].stopped = true;
    cr_assert_eq(world_order(w, 1, &c), QN_OK);
    change_waits(w, QN_DRIVER_ORDER_MAX + QN_S);
    change_unknown(w, 1, QN_ETIMEDOUT);
    c.forced = true;
    cr_assert_eq(world_order(w, 1, &c), QN_OK);
    world_rounds(w, 1);
    w->member[0].stopped = false;
    world_ordered(w, 1, 5);
    world_lose(w, 1);
    world_restart(w, 2);
    world_go_on(w);
    world_end(w);
}

/* The order is refused, and then forced, before all was answered. */
Test(driver_change_leader, an_order_may_be_forced_while_it_is_pending)
{
    struct world *w = change_voters(3);
    world_lose(w, 2);
    world_go_on(w);
    struct qn_driver_change c = world_change(w, 1, false);
    w->member[0].stopped = true;
    cr_assert_eq(world_order(w, 1, &c), QN_OK);
    change_waits(w, 100 * QN_MS);
    c.forced = true;
    cr_assert_eq(world_order(w, 1, &c), QN_OK);
    w->member[0].stopped = false;
    world_ordered(w, 1, 5);
    world_end(w);
}

/* Its service is behind, and the leader cannot know that. */
Test(driver_change_leader, another_heir_is_told_if_the_first_does_not_lead)
{
    struct world *w = change_voters(3);
    world_go_on(w);
    cr_assert(world_suspend_apply(w, 1, true));
    cr_assert_eq(world_order_of(w, 0, 0, false), QN_OK);
    world_ordered(w, 0, 6);
    cr_assert_eq(world_status(w, 2).leader, 2);
    cr_assert(world_suspend_apply(w, 1, false));
    world_lose(w, 0);
    world_go_on(w);
    world_end(w);
}

/* Node 1 has asked, and takes no turn until the voters are these. */
static void asks_and_stops(struct world *w, qn_node_t node, bool votes,
                           uint64_t then)
{
    cr_assert_eq(world_order_of(w, 1, node, votes), QN_OK);
    begins(w, 1);
    w->member[1].stopped = true;
    for (int r = 0; r < 5000 && world_status(w, 2).voters != then; r++) {
        world_rounds(w, 1);
    }
    cr_assert_eq(world_status(w, 2).voters, then);
}

/* It resumes: its order is done, and is not asked again. */
static void done_though(struct world *w, uint64_t voters)
{
    uint32_t entries = w->member[2].driver->roles.ul_len;
    w->member[1].stopped = false;
    world_ordered(w, 1, voters);
    world_rounds(w, 1000);
    cr_assert_eq(w->member[2].driver->roles.ul_len, entries);
    world_go_on(w);
    world_end(w);
}

Test(driver_change_leader, a_voter_that_came_and_went_is_not_ordered_again)
{
    struct world *w = change_voters(3);
    world_restart(w, 3);
    world_go_on(w);
    asks_and_stops(w, 3, true, 15);
    cr_assert_eq(world_order_of(w, 2, 3, false), QN_OK);
    world_ordered(w, 2, 7);
    world_lose(w, 3);
    done_though(w, 7);
}

Test(driver_change_leader, a_voter_that_went_is_gone_though_its_seat_is_taken)
{
    struct world *w = change_voters(4);
    asks_and_stops(w, 3, false, 7);
    world_rounds(w, 20);
    world_lose(w, 3);
    world_restart(w, 3);
    world_rounds(w, 1000);
    cr_assert_eq(world_order_of(w, 2, 3, true), QN_OK);
    world_ordered(w, 2, 15);
    done_though(w, 15);
}

Test(driver_change_leader,
     the_entry_of_another_incarnation_does_not_end_an_order)
{
    struct world *w = change_voters(3);
    world_restart(w, 3);
    world_go_on(w);
    struct qn_driver_change c = world_change(w, 3, true);
    c.inc += 100;
    cr_assert_eq(world_order(w, 1, &c), QN_OK);
    w->member[1].stopped = true;
    cr_assert_eq(world_order_of(w, 2, 3, true), QN_OK);
    world_ordered(w, 2, 15);
    cr_assert_eq(world_order_of(w, 2, 3, false), QN_OK);
    world_ordered(w, 2, 7);
    w->member[1].stopped = false;
    world_rounds(w, 1000);
    cr_assert_eq(world_status(w, 1).change, QN_CHANGE_PENDING);
    world_end(w);
}

/* Its entry may be one that no member keeps. */
Test(driver_change_leader,
     with_entries_skipped_the_outcome_of_an_order_is_unknown)
{
    struct world *w = change_voters(3);
    struct qn_driver_change c = {.node = 3, .inc = 300, .votes = true};
    struct qn_driver *d = w->member[1].driver;
    cr_assert_eq(world_order(w, 1, &c), QN_OK);
    qn_driver_order_learn(d, 0);
    cr_assert_not(d->order.begun);
    ((struct qn_utility *)qn_onepaxos_utility(d->machine))->lo++;
    qn_driver_order_learn(d, 0);
    cr_assert(d->order.begun);
    change_waits(w, QN_DRIVER_ORDER_MAX + QN_S);
    change_unknown(w, 1, QN_EAGAIN);
    world_end(w);
}

Test(driver_change_leader, nothing_of_an_order_is_left_when_its_member_ends)
{
    struct world *w = change_voters(3);
    struct qn_driver_change c = {.node = 3, .inc = 300, .votes = true};
    cr_assert_eq(world_order(w, 1, &c), QN_OK);
    world_rounds(w, 200);
    world_lose(w, 1);
    w->lives = 299;
    world_restart(w, 3);
    world_go_on(w);
    change_waits(w, QN_S);
    cr_assert_eq(world_status(w, 0).voters, 7);
    world_becomes_voter(w, 3);
    world_end(w);
}

/* ---- messages ------------------------------------------------------------ */

static void hears(struct world *w, qn_node_t at, qn_node_t from, uint8_t kind,
                  uint8_t what, qn_node_t node)
{
    const struct qn_msg m = {.kind = kind,
                             .epoch = (qn_epoch_t)world_status(w, at).epoch,
                             .order = {.inc = w->member[node % 8].inc,
                                       .node = (uint8_t)node,
                                       .what = what}};
    qn_driver_send(w->member[from].driver, at, &m);
    qn_driver_flush(w->member[from].driver, w->now);
    world_rounds(w, 100);
}

Test(driver_change_leader, only_the_leader_says_which_other_node_leads)
{
    struct world *w = change_voters(3);
    uint64_t epoch = world_status(w, 1).epoch;
    hears(w, 1, 2, QN_MSG_ORDER, QN_ORDER_LEAD, 1);
    cr_assert_eq(world_status(w, 1).epoch, epoch);
    hears(w, 1, 0, QN_MSG_ORDER, QN_ORDER_LEAD, 1);
    cr_assert_gt(world_status(w, 1).epoch, epoch);
    cr_assert_eq(world_status(w, 1).leader, 1);
    world_go_on(w);
    world_end(w);
}

Test(driver_change_leader, an_answer_counts_from_the_leader_to_its_own_question)
{
    struct world *w = change_voters(3);
    struct qn_driver_change c = {.node = 3, .inc = 300, .votes = true};
    cr_assert_eq(world_order(w, 1, &c), QN_OK);
    w->member[3].inc = 300;      /* as the messages say */
    w->member[0].stopped = true; /* it answers by hand */
    change_waits(w, 9 * QN_DRIVER_ORDER_AGAIN);
    const struct qn_driver_order *o = &w->member[1].driver->order;
    uint32_t asked = o->asked;
    cr_assert_gt(asked, o->answered + 2);
    struct qn_msg m = {.kind = QN_MSG_TAKEN,
                       .order = {.inc = 300,
                                 .number = asked,
                                 .node = 3,
                                 .what = QN_ORDER_ADD,
                                 .error = (uint32_t)-QN_ENOQUORUM}};
    cr_assert(qn_driver_order_take(w->member[1].driver, 2, &m));
    m.order.inc = 299;
    cr_assert(qn_driver_order_take(w->member[1].driver, 0, &m));
    m.order.inc = 300;
    m.order.what = QN_ORDER_REMOVE;
    cr_assert(qn_driver_order_take(w->member[1].driver, 0, &m));
    cr_assert_eq(world_status(w, 1).change, QN_CHANGE_PENDING);
    m.order.what = QN_ORDER_ADD;
    m.order.number = asked + 1; /* was not asked */
    cr_assert(qn_driver_order_take(w->member[1].driver, 0, &m));
    m.order.number = o->answered; /* was answered */
    cr_assert(qn_driver_order_take(w->member[1].driver, 0, &m));
    for (uint32_t n = o->answered + 1; n != asked; n++) {
        m.order.number = n; /* a later one may be taken */
        cr_assert(qn_driver_order_take(w->member[1].driver, 0, &m));
        cr_assert_eq(world_status(w, 1).change, QN_CHANGE_PENDING);
    }
    change_waits(w, 3 * QN_DRIVER_ORDER_AGAIN);
    cr_assert_eq(o->asked, asked, "it is asked no more");
    m.order.number = asked;
    cr_assert(qn_driver_order_take(w->member[1].driver, 0, &m));
    cr_assert_eq(world_status(w, 1).change, QN_CHANGE_REFUSED);
    cr_assert_eq(world_status(w, 1).change_error, QN_ENOQUORUM);
    cr_assert_eq(world_order(w, 1, &c), QN_OK);
    change_waits(w, 9 * QN_DRIVER_ORDER_AGAIN);
    m.order.number = o->asked; /* the answers before it are lost */
    cr_assert(qn_driver_order_take(w->member[1].driver, 0, &m));
    change_unknown(w, 1, QN_ENOQUORUM);
    w->member[0].stopped = false;
    w->member[3].inc = 0;
    world_end(w);
}

Test(driver_change_leader, an_order_about_no_node_of_the_group_is_malformed)
{
    struct world *w = world_seats(3, 7);
    hears(w, 1, 2, QN_MSG_ORDER, QN_ORDER_ADD, 7);
    cr_assert(w->member[1].driver->peer[2].corrupt);
    cr_assert_not(w->member[0].driver->peer[2].corrupt);
    world_end(w);
}
