/*
 * Groups with vacant seats, and processes that take them (PROTOCOL.md 4.4).
 * Memory acceptor.
 */
#include "paxos/driver/driver_internal.h"
#include "paxos/driver/vote_record.h"
#include "tests/support/test.h"
#include "tests/unit/paxos/driver/driver_world.h"

/* ---- vacant seats -------------------------------------------------------- */

Test(driver_seats, the_creator_alone_decides_at_once)
{
    struct world *w = world_seats(8, 1);
    struct qn_driver_status st = world_status(w, 0);
    cr_assert_eq(st.role, QN_ACTIVE);
    cr_assert_eq(st.alive, 1);
    cr_assert_eq(st.voters, 1);
    cr_assert_eq(st.in_sync, 1);
    cr_assert(st.is_voter);
    world_submit_number(w, 0, 5);
    world_rounds(w, 1);
    cr_assert(world_settled(w));
    world_go_on(w);
    world_end(w);
}

Test(driver_seats, vacant_seats_are_as_dead_nodes)
{
    struct world *w = world_seats(8, 7);
    cr_assert_eq(world_status(w, 0).alive, 7);
    cr_assert_eq(world_status(w, 2).in_sync, 7);
    world_go_on(w);
    world_lose(w, 0);
    world_go_on(w);
    cr_assert_neq(world_status(w, 1).leader, 0);
    world_restart(w, 0);
    world_go_on(w);
    world_end(w);
}

Test(driver_seats, all_seats_as_voters_are_the_group_as_it_ever_was)
{
    struct world *w = world_seats(3, 7);
    struct qn_ul_entry e;
    cr_assert_eq(qn_driver_ul(w->member[1].driver, &e, 1), 1);
    cr_assert_eq(e.voters, 0, "the entry of a group of a fixed size");
    cr_assert_eq(world_status(w, 0).voters, 7);
    world_go_on(w);
    world_end(w);
}

Test(driver_seats, voters_are_of_the_group_and_node_0_is_one)
{
    struct world *w = world_seats(3, 1);
    struct qn_driver_opts o = w->member[0].driver->o;
    struct qn_driver *d = NULL;
    o.voters = 6;
    cr_assert_eq(qn_driver_create(&d, &o), QN_EINVAL);
    o.voters = 9;
    cr_assert_eq(qn_driver_create(&d, &o), QN_EINVAL);
    o.voters = 1;
    o.self = 1; /* the group does not begin with it */
    cr_assert_eq(qn_driver_create(&d, &o), QN_EINVAL);
    cr_assert_null(d);
    world_end(w);
}

Test(driver_seats, with_the_process_acceptor_all_are_voters)
{
    struct world *w = world_begin(3, false);
    struct qn_driver_opts o = w->member[0].driver->o;
    struct qn_driver *d = NULL;
    o.voters = 3;
    cr_assert_eq(qn_driver_create(&d, &o), QN_ENOSYS);
    cr_assert_null(d);
    world_end(w);
}

/* Commands that are taken at once. */
static uint32_t credit_of(struct world *w, qn_node_t i)
{
    uint32_t n = 0;
    while (world_submit(w, i, &n, sizeof n)) {
        n++;
    }
    cr_assert_not(qn_driver_room(w->member[i].driver));
    world_settle(w, 20000);
    return n;
}

static uint64_t credit_bytes(const struct world *w, qn_node_t i)
{
    struct qn_driver_kept k;
    qn_driver_kept(w->member[i].driver, &k);
    return k.requests.max;
}

Test(driver_seats, credit_follows_the_members_that_live)
{
    struct world *w = world_seats(8, 1);
    const struct qn_params v = qn_params_default(true);
    cr_assert_eq(credit_of(w, 0), v.queue);
    cr_assert_eq(credit_bytes(w, 0), v.queue_bytes);
    for (qn_node_t i = 1; i < 4; i++) {
        world_restart(w, i);
        world_go_on(w);
    }
    for (qn_node_t i = 0; i < 4; i++) {
        cr_assert_eq(credit_of(w, i), v.queue / 4);
        cr_assert_eq(credit_bytes(w, i), v.queue_bytes / 4);
    }
    world_lose(w, 3);
    world_lose(w, 2);
    cr_assert_eq(credit_of(w, 1), v.queue / 2);
    world_restart(w, 2);
    cr_assert_eq(credit_bytes(w, 0), v.queue_bytes / 3);
    world_go_on(w);
    world_end(w);
}

/* Members that have not heard of a newcomer may have more on their way than the
 * leader's queue has room for: they send it again. */
Test(driver_seats, more_than_the_queue_holds_is_sent_again)
{
    struct world *w = world_seats(8, 1);
    const struct qn_params v = qn_params_default(true);
    uint32_t n = 0;
    world_restart(w, 1);
    world_go_on(w);
    w->member[0].stopped = true; /* it leads */
    while (world_submit(w, 1, &n, sizeof n)) {
        world_rounds(w, n++ % 64 == 0);
    }
    cr_assert_eq(n, v.queue / 2);
    for (qn_node_t i = 2; i < 8; i++) {
        uint32_t more = 0;
        world_restart(w, i);
        while (world_submit(w, i, &more, sizeof more)) {
            more++;
        }
        n += more;
    }
    cr_assert_gt(n, v.queue);
    w->member[0].stopped = false;
    world_settle(w, 20000);
    world_end(w);
}

/* ---- newcomers ----------------------------------------------------------- */

/* It applies and proposes, and does not count. */
Test(driver_seats, a_newcomer_is_a_member_without_a_vote)
{
    struct world *w = world_seats(8, 1);
    world_go_on(w);
    world_restart(w, 5);
    cr_assert(world_status(w, 5).non_voting);
    world_go_on(w);
    struct qn_driver_status st = world_status(w, 5);
    cr_assert_eq(st.voters, 1);
    cr_assert_not(st.is_voter);
    cr_assert(st.non_voting, "no entry names it");
    cr_assert_eq(st.in_sync, 1, "it does not count");
    cr_assert_eq(world_status(w, 0).in_sync, 1);
    cr_assert_eq(world_status(w, 0).voting, 1);
    cr_assert_eq(world_status(w, 0).alive, 0x21);
    world_lose(w, 5);
    world_go_on(w);
    world_end(w);
}

Test(driver_seats, a_newcomer_becomes_a_voter_and_leads_later)
{
    struct world *w = world_seats(8, 1);
    world_go_on(w);
    for (qn_node_t i = 1; i < 4; i++) {
        world_restart(w, i);
        world_go_on(w);
        world_becomes_voter(w, i);
    }
    cr_assert_eq(world_status(w, 0).in_sync, 0xf);
    cr_assert_eq(world_status(w, 0).voting, 0xf);
    world_lose(w, 0);
    world_go_on(w);
    cr_assert_eq(world_status(w, 3).voting, 0xe);
    world_lose(w, world_status(w, 3).leader);
    world_rounds(w, 2000);
    cr_assert_eq(__builtin_popcountll(world_status(w, 3).alive), 2);
    world_restart(w, 0);
    world_go_on(w);
    world_end(w);
}

/* It is told to no peer before its record says so: one that is lost at any
 * moment leaves a record with which the next one votes when an entry names it.
 */
Test(driver_seats, a_newcomer_says_in_its_record_that_it_has_never_voted)
{
    struct world *w = world_seats(4, 1);
    struct qn_ul_entry log[QN_UL_KEPT];
    struct qn_vote vote;
    uint32_t count = 1;
    world_go_on(w);
    world_come(w, 2);
    world_arrive(w, 2);
    cr_assert_eq(qn_vote_record_read(w->member[2].vote_record,
                                     QN_VOTE_RECORD_BYTES, &vote, log,
                                     QN_UL_KEPT, &count),
                 QN_OK);
    cr_assert_eq(vote.since, w->member[2].inc);
    cr_assert_eq(vote.index, 0);
    cr_assert_eq(count, 0);
    world_end(w);
}

static uint64_t voted_of(const struct world *w, qn_node_t i)
{
    return qn_load(&qn_outbox_state(w->member[i].incarnation.outbox)->voted,
                   QN_RELAXED);
}

/* With an entry that it has not heard of. It is one of two voters then, so that
 * no further entry could give it a vote. */
Test(driver_seats, the_vote_of_a_newcomer_that_ends_is_its_successors)
{
    struct world *w = world_seats(4, 1);
    world_go_on(w);
    world_restart(w, 2);
    world_go_on(w);
    w->member[2].stopped = true;
    cr_assert_eq(world_order_of(w, 0, 2, true), QN_OK);
    world_rounds(w, 100);
    cr_assert_eq(world_status(w, 0).voters, 5);
    world_lose(w, 2);
    world_restart(w, 2);
    cr_assert(world_status(w, 2).non_voting, "it knows no entry");
    cr_assert_eq(voted_of(w, 2), UINT64_MAX, "what it has voted is not known");
    world_go_on(w);
    world_rounds(w, 100);
    cr_assert_not(world_status(w, 2).non_voting);
    cr_assert_eq(world_status(w, 2).voters, 5);
    cr_assert_neq(voted_of(w, 2), UINT64_MAX);
    world_restart(w, 3); /* the two of them agree */
    world_go_on(w);
    world_becomes_voter(w, 3);
    world_lose(w, 0);
    world_go_on(w);
    world_end(w);
}

/* And never before an entry names it, however often it begins. */
Test(driver_seats, the_successor_of_a_newcomer_has_no_vote_either)
{
    struct world *w = world_seats(4, 1);
    world_go_on(w);
    for (uint32_t life = 0; life < 3; life++) {
        world_restart(w, 1);
        world_go_on(w);
        cr_assert(world_status(w, 1).non_voting);
        cr_assert_eq(voted_of(w, 1), UINT64_MAX);
        world_lose(w, 1);
    }
    world_restart(w, 1);
    world_go_on(w);
    world_becomes_voter(w, 1);
    world_go_on(w);
    world_end(w);
}
