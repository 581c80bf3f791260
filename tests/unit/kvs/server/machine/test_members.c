#include "kvs/server/machine/members.h"

#include "tests/support/test.h"

static struct qn_members m;
static struct qn_members_view v;

/* Replica 1 of three that began a group of more seats. */
static void setup(void)
{
    m = (struct qn_members){0};
    v = (struct qn_members_view){.founders = 7, .present = 7};
}

#define CASE(name) Test(members, name, .init = setup)

/* A turn, without what is told. */
static unsigned turn(void)
{
    const unsigned actions = qn_members_turn(&m, &v);
    qn_members_told(&m);
    return actions & ~(unsigned)QN_MEMBERS_TELL;
}

CASE(before_an_entry_is_known_those_that_began_the_group_vote)
{
    cr_expect_eq(qn_members_voters(&v), 7);
    cr_expect_eq(turn(), QN_MEMBERS_SEATS | QN_MEMBERS_VOTERS);
    cr_expect_eq(m.voters, 7);
    cr_expect_eq(turn(), 0);
    v.voters = 7;
    cr_expect_eq(turn(), 0, "the first entry says the same");
}

CASE(a_voter_that_has_ended_keeps_its_seat)
{
    v.voters = 7;
    (void)turn();
    v.present = 3;
    cr_expect_eq(turn(), 0);
    cr_expect_eq(qn_members_all(&v), 7);
}

CASE(a_newcomer_takes_its_seat_when_it_is_present_and_votes_later)
{
    v.voters = 7;
    (void)turn();
    v.present |= 1u << 5;
    cr_expect_eq(turn(), QN_MEMBERS_SEATS);
    cr_expect_eq(m.voters, 7);
    v.voters |= 1u << 5;
    cr_expect_eq(turn(), QN_MEMBERS_VOTERS);
}

CASE(a_newcomer_that_ends_leaves_its_seat_vacant)
{
    v.voters = 7;
    v.present |= 1u << 5;
    (void)turn();
    v.present &= ~(1u << 5);
    cr_expect_eq(turn(), QN_MEMBERS_SEATS);
    cr_expect_eq(qn_members_all(&v), 7);
}

CASE(a_removed_peer_keeps_its_seat_until_it_has_ended)
{
    v.voters = 7;
    (void)turn();
    v.voters = 6;
    cr_expect_eq(turn(), QN_MEMBERS_VOTERS);
    cr_expect_eq(qn_members_all(&v), 7);
    v.present = 6;
    cr_expect_eq(turn(), QN_MEMBERS_SEATS);
    cr_expect_eq(qn_members_all(&v), 6);
}

CASE(a_removed_replica_leaves_once)
{
    v.voters = 7;
    (void)turn();
    v.voters = 5;
    v.removed = true;
    cr_expect_eq(turn(), QN_MEMBERS_VOTERS | QN_MEMBERS_LEAVE);
    cr_expect_eq(turn(), 0);
    cr_expect(m.removed);
}

/* It was stalled, and no entry is left that it could have missed. */
CASE(a_removed_replica_may_be_the_last_to_know)
{
    v.removed = true;
    cr_expect_eq(turn(),
                 QN_MEMBERS_SEATS | QN_MEMBERS_VOTERS | QN_MEMBERS_LEAVE);
}

CASE(the_supervisor_is_told_what_the_log_says_until_it_has_heard_it)
{
    cr_expect_eq(qn_members_turn(&m, &v) & QN_MEMBERS_TELL, 0);
    v.voters = 7;
    cr_expect_eq(qn_members_turn(&m, &v), QN_MEMBERS_TELL);
    cr_expect_eq(qn_members_turn(&m, &v), QN_MEMBERS_TELL, "no room there");
    qn_members_told(&m);
    cr_expect_eq(qn_members_turn(&m, &v), 0);
    v.voters = 5;
    cr_expect_eq(qn_members_turn(&m, &v), QN_MEMBERS_VOTERS | QN_MEMBERS_TELL);
    cr_expect_eq(m.known, 5);
}

Test(members, no_replica_is_removed_and_then_not, .init = setup,
     .signal = SIGABRT)
{
    v.removed = true;
    (void)turn();
    v.removed = false;
    (void)turn();
}
