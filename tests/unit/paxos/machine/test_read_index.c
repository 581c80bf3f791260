/*
 * The read index by message (PROTOCOL.md 8.3): the origin's part alone, then
 * the messages. Node 0 leads, node 1 accepts, node 2 is neither.
 */
#include "paxos/machine/read_index.h"

#include "tests/support/test.h"
#include "tests/unit/paxos/machine/fixture.h"

/* ---- the origin's part --------------------------------------------------- */

Test(read_index, an_answer_serves_all_reads_up_to_its_number)
{
    struct qn_read_index r = {0};
    cr_assert_eq(qn_read_index_ask(&r), 1u);
    cr_assert_eq(qn_read_index_ask(&r), 2u);
    cr_assert_eq(qn_read_index_ask(&r), 3u);
    qn_read_index_answer(&r, 2, 10, 10);
    cr_expect_eq(qn_read_index_reached(&r, 10), 2u);
    cr_expect(qn_read_index_waits(&r), "number 3 has no answer");
    qn_read_index_answer(&r, 3, 10, 10);
    cr_expect_eq(qn_read_index_reached(&r, 10), 3u);
    cr_expect_not(qn_read_index_waits(&r));
}

Test(read_index, a_read_waits_until_the_slot_is_applied)
{
    struct qn_read_index r = {0};
    (void)qn_read_index_ask(&r);
    qn_read_index_answer(&r, 1, 10, 9);
    cr_expect_eq(qn_read_index_reached(&r, 9), 0u);
    cr_expect_eq(qn_read_index_reached(&r, 10), 1u);
    cr_expect_eq(qn_read_index_reached(&r, 10), 1u, "it stays");
}

/* An answer to an older question, which was asked again meanwhile; one that
 * comes twice; one to a question that nobody has asked. */
Test(read_index, what_is_not_the_answer_to_an_open_question_says_nothing)
{
    struct qn_read_index r = {0};
    (void)qn_read_index_ask(&r);
    (void)qn_read_index_ask(&r);
    qn_read_index_answer(&r, 3, 1, 5);
    cr_expect_eq(qn_read_index_reached(&r, 5), 0u, "never asked");
    qn_read_index_answer(&r, 2, 8, 5);
    qn_read_index_answer(&r, 2, 1, 5);
    qn_read_index_answer(&r, 1, 1, 5);
    cr_expect_eq(qn_read_index_reached(&r, 7), 0u);
    cr_expect_eq(qn_read_index_reached(&r, 8), 2u);
    qn_read_index_answer(&r, 0, 1, 8);
    cr_expect_eq(qn_read_index_reached(&r, 8), 2u);
}

/* However fast answers come, the oldest one's slot is enough. */
Test(read_index, readers_do_not_starve_behind_newer_answers)
{
    struct qn_read_index r = {0};
    for (uint64_t n = 1; n <= 100; n++) {
        cr_assert_eq(qn_read_index_ask(&r), n);
        qn_read_index_answer(&r, n, 10 * n, 5);
    }
    cr_expect_eq(qn_read_index_reached(&r, 9), 0u);
    cr_expect_eq(qn_read_index_reached(&r, 10), 1u);
    cr_expect_eq(qn_read_index_reached(&r, 999), 1u);
    cr_expect_eq(qn_read_index_reached(&r, 1000), 100u);
}

/* Slots above what is applied may be lost: nobody waits for them. */
Test(read_index, by_force_the_open_answers_are_void)
{
    struct qn_read_index r = {0};
    for (uint64_t n = 1; n <= 3; n++) {
        (void)qn_read_index_ask(&r);
        qn_read_index_answer(&r, n, 10 * n, 10);
    }
    cr_assert_eq(qn_read_index_reached(&r, 10), 1u);
    qn_read_index_void(&r);
    cr_expect(qn_read_index_waits(&r));
    cr_expect(qn_read_index_due(&r, 0, 0));
    qn_read_index_answer(&r, 3, 12, 12);
    cr_expect_eq(qn_read_index_reached(&r, 12), 3u);
}

Test(read_index, a_question_is_sent_once_to_each_leader_and_then_now_and_then)
{
    struct qn_read_index r = {0};
    cr_expect_not(qn_read_index_due(&r, 0, 0), "nothing waits");
    (void)qn_read_index_ask(&r);
    cr_assert(qn_read_index_due(&r, 0, 0));
    qn_read_index_sent(&r, 0, 100);
    cr_expect_not(qn_read_index_due(&r, 0, 99));
    cr_expect(qn_read_index_due(&r, 0, 100));
    cr_expect(qn_read_index_due(&r, 4, 99), "another leader");
    (void)qn_read_index_ask(&r);
    cr_expect(qn_read_index_due(&r, 0, 1), "a new question");
    qn_read_index_sent(&r, 0, 100);
    qn_read_index_answer(&r, 2, 1, 1);
    cr_expect_not(qn_read_index_due(&r, 4, 1000), "answered");
}

/* ---- messages ------------------------------------------------------------ */

static struct fx a, b, c; /* leader, acceptor, origin */

static void setup(void)
{
    struct qn_params v = fx_params();
    fx_make(&a, 0, 3, &v);
    fx_make(&b, 1, 3, &v);
    fx_make(&c, 2, 3, &v);
}

static void teardown(void)
{
    fx_end(&a);
    fx_end(&b);
    fx_end(&c);
    cr_assert_eq(fx_refbufs, 0);
}

#define MESSAGES(name) Test(read_at, name, .init = setup, .fini = teardown)

/* Slots up to `hi` are accepted, and nobody but the acceptor knows. */
static void accept_some(qn_slot_t hi)
{
    for (qn_slot_t s = 1; s <= hi; s++) {
        struct qn_refbuf *batch = fx_slot_batch(s);
        struct qn_msg m = fx_accept(s, batch);
        cr_assert_eq(fx_recv(&b, 0, &m), QN_OK);
        qn_refbuf_unref(batch);
    }
}

/* The question of c as its leader sends it on. */
static struct qn_msg forwarded(void)
{
    fx_read(&c, true);
    cr_assert_eq(fx_count(&c, QN_MSG_READ_INDEX), 1u);
    cr_assert_eq(fx_to(&c, QN_MSG_READ_INDEX, 0), 0u);
    cr_assert_eq(fx_recv(&a, 2, fx_sent(&c, QN_MSG_READ_INDEX, 0)), QN_OK);
    cr_assert_eq(fx_to(&a, QN_MSG_READ_INDEX, 0), 1u);
    return *fx_sent(&a, QN_MSG_READ_INDEX, 0);
}

MESSAGES(the_question_goes_by_the_leader_and_the_answer_comes_from_the_acceptor)
{
    accept_some(5);
    cr_assert_eq(qn_onepaxos_read_number(c.p), 1u);
    struct qn_msg m = forwarded();
    cr_assert_eq(qn_onepaxos_read_number(c.p), 2u);
    cr_assert_eq(fx_recv(&b, 0, &m), QN_OK);
    cr_assert_eq(fx_to(&b, QN_MSG_READ_AT, 0), 2u);
    cr_assert_eq(fx_sent(&b, QN_MSG_READ_AT, 0)->slot, 5u);
    cr_assert_eq(fx_recv(&c, 1, fx_sent(&b, QN_MSG_READ_AT, 0)), QN_OK);
    cr_expect_not(qn_onepaxos_read_waits(c.p));
    for (qn_slot_t s = 1; s <= 4; s++) {
        fx_learn_slot(&c, s, 4);
    }
    cr_expect_eq(qn_onepaxos_read_reached(c.p), 0u, "a slot is missing");
    fx_learn_slot(&c, 5, 5);
    cr_expect_eq(qn_onepaxos_read_reached(c.p), 1u);
}

/* The slot is decided: a node that has not heard of it fetches it. */
MESSAGES(an_answer_shows_what_is_missing)
{
    accept_some(3);
    struct qn_msg m = forwarded();
    fx_recv(&b, 0, &m);
    fx_recv(&c, 1, fx_sent(&b, QN_MSG_READ_AT, 0));
    cr_assert_eq(fx_status(&c).decided_hi, 3u);
    fx_later(&c, QN_MS);
    cr_assert_eq(fx_count(&c, QN_MSG_FETCH), 1u);
}

MESSAGES(reads_of_one_turn_are_one_question)
{
    fx_read(&c, true);
    fx_read(&c, false);
    cr_expect_eq(fx_count(&c, QN_MSG_READ_INDEX), 0u, "it is on its way");
    fx_read(&c, true);
    cr_expect_eq(fx_count(&c, QN_MSG_READ_INDEX), 1u);
    cr_expect_eq(fx_sent(&c, QN_MSG_READ_INDEX, 0)->read_index.number, 2u);
    c.now += 10 * QN_MS;
    fx_read(&c, false);
    cr_expect_eq(fx_count(&c, QN_MSG_READ_INDEX), 1u, "T_READ is over");
    cr_expect_eq(fx_sent(&c, QN_MSG_READ_INDEX, 0)->read_index.number, 2u);
}

/* Leader and acceptor read, too. The acceptor is asked in any case. */
MESSAGES(leader_and_acceptor_ask_likewise)
{
    accept_some(2);
    fx_read(&a, true);
    cr_assert_eq(fx_to(&a, QN_MSG_READ_INDEX, 0), 1u);
    fx_recv(&b, 0, fx_sent(&a, QN_MSG_READ_INDEX, 0));
    cr_assert_eq(fx_to(&b, QN_MSG_READ_AT, 0), 0u);
    fx_recv(&a, 1, fx_sent(&b, QN_MSG_READ_AT, 0));
    cr_expect_not(qn_onepaxos_read_waits(a.p));
    cr_expect_eq(qn_onepaxos_read_reached(a.p), 0u, "it has applied nothing");

    fx_read(&b, true);
    cr_assert_eq(fx_to(&b, QN_MSG_READ_INDEX, 0), 0u);
    fx_recv(&a, 1, fx_sent(&b, QN_MSG_READ_INDEX, 0));
    fx_recv(&b, 0, fx_sent(&a, QN_MSG_READ_INDEX, 0));
    cr_expect_eq(fx_count(&b, QN_MSG_READ_AT), 0u, "it need not tell itself");
    cr_expect_eq(qn_onepaxos_read_reached(b.p), 1u);
}

/* The leader waits for the acceptor, too: it is the one that replaces it. */
MESSAGES(a_leader_that_is_asked_asks_in_its_own_name)
{
    (void)forwarded();
    cr_expect_eq(fx_count(&a, QN_MSG_READ_INDEX), 2u);
    cr_expect_eq(fx_sent(&a, QN_MSG_READ_INDEX, 1)->read_index.origin, 0u);
    cr_expect(qn_onepaxos_read_waits(a.p));
    fx_read(&c, true);
    fx_recv(&a, 2, fx_sent(&c, QN_MSG_READ_INDEX, 0));
    cr_expect_eq(fx_count(&a, QN_MSG_READ_INDEX), 1u, "once is enough");
}

/* Of another epoch than the promised one, and what no leader has sent. */
MESSAGES(the_acceptor_answers_the_leader_it_has_promised_only)
{
    struct qn_msg m = forwarded();
    m.epoch++;
    fx_recv(&b, 0, &m);
    cr_expect_eq(fx_count(&b, QN_MSG_READ_AT), 0u, "another epoch");
    m.epoch--;
    m.read_index.origin = 0;
    m.read_index.inc = 10;
    fx_recv(&b, 2, &m);
    cr_expect_eq(fx_count(&b, QN_MSG_READ_AT), 0u, "node 2 leads nothing");
    fx_recv(&b, 0, &m);
    cr_expect_eq(fx_count(&b, QN_MSG_READ_AT), 1u);
}

/* The acceptor is lost, and another is about to be appointed: a later leader
 * may be adopted there, and decide, before this one hears of it. */
MESSAGES(a_leader_that_has_frozen_its_log_asks_nobody)
{
    fx_down(&a, 1);
    fx_tick(&a);
    cr_assert_eq(fx_status(&a).role, QN_HANDING_OVER);
    fx_read(&c, true);
    fx_recv(&a, 2, fx_sent(&c, QN_MSG_READ_INDEX, 0));
    cr_expect_eq(fx_count(&a, QN_MSG_READ_INDEX), 0u);
    fx_read(&a, true);
    cr_expect_eq(fx_count(&a, QN_MSG_READ_INDEX), 0u);
    cr_expect(qn_onepaxos_read_waits(a.p));
}

MESSAGES(who_neither_leads_nor_accepts_is_asked_in_vain)
{
    fx_read(&a, true);
    struct qn_msg m = *fx_sent(&a, QN_MSG_READ_INDEX, 0);
    fx_recv(&c, 0, &m);
    cr_expect_eq(c.out.count, 0u);
}

/* What was asked for a former incarnation is no answer to this one. */
MESSAGES(an_answer_to_another_incarnation_is_void)
{
    struct qn_msg m = {.kind = QN_MSG_READ_AT, .slot = 0};
    fx_read(&c, true);
    m.read_at.number = 1;
    m.read_at.inc = 11; /* its own is 12 */
    fx_recv(&c, 1, &m);
    cr_expect(qn_onepaxos_read_waits(c.p));
    m.read_at.inc = 12;
    fx_recv(&c, 0, &m);
    cr_expect(qn_onepaxos_read_waits(c.p), "node 0 does not accept");
    m.epoch = 9;
    fx_recv(&c, 1, &m);
    cr_expect(qn_onepaxos_read_waits(c.p), "an epoch that is not known");
    m.epoch = 0;
    fx_recv(&c, 1, &m);
    cr_expect_not(qn_onepaxos_read_waits(c.p));
}

MESSAGES(the_acceptor_answers_no_former_incarnation)
{
    struct qn_msg m = forwarded();
    fx_up(&b, 2, 20);
    fx_recv(&b, 0, &m);
    cr_expect_eq(fx_count(&b, QN_MSG_READ_AT), 0u);
}
