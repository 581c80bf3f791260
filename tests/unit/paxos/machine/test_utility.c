/*
 * One end of the utility log: a voter whose record was lost, one that missed
 * more entries than any node keeps, a proposer that waits, and voters that come
 * and go (PROTOCOL.md 4).
 * Node 1 of three; the test is the others.
 */
#include <string.h>

#include "paxos/machine/onepaxos_internal.h"
#include "tests/support/test.h"

#define INC 41u

static struct qn_utility u;
static struct qn_step_out out;
static struct qn_step step = {.now = QN_S, .out = &out};

static struct qn_ul_entry entry(uint32_t index)
{
    return (struct qn_ul_entry){.index = index,
                                .tenure = index,
                                .kind = index == 0 ? QN_UL_INIT : QN_UL_LEADER,
                                .leader = (uint8_t)(index % 3),
                                .leader_inc = 100 + index};
}

static void make(bool non_voting, uint32_t known)
{
    static struct qn_ul_entry log[QN_UL_KEPT];
    for (uint32_t i = 0; i < known; i++) {
        log[i] = entry(i);
    }
    const struct qn_utility_opts o = {.self = 1,
                                      .nodes = 3,
                                      .self_inc = INC,
                                      .alloc = &qn_alloc_malloc,
                                      .log = log,
                                      .count = known,
                                      .non_voting = non_voting,
                                      .pause = QN_MS};
    qn_utility_init(&u, &o);
}

static void end(void)
{
    qn_step_out_release(&out);
}

#define UTILITY(name) Test(utility, name, .fini = end)

/** Entries of a U_CHOSEN. */
static void chosen(const struct qn_ul_entry *e, uint32_t count)
{
    static uint8_t bytes[QN_UL_KEPT * QN_UL_BYTES];
    for (uint32_t i = 0; i < count; i++) {
        qn_ul_encode(&e[i], bytes + (size_t)i * QN_UL_BYTES);
    }
    const struct qn_msg m = {.kind = QN_MSG_U_CHOSEN,
                             .epoch = e[0].index,
                             .body = {bytes, (size_t)count * QN_UL_BYTES}};
    qn_step_out_release(&out);
    qn_utility_on_msg(&u, &step, 0, &m);
}

/** Node 0 asks for a promise at `index`. @return the first output's kind. */
static enum qn_out_kind asked(uint32_t index, uint32_t round)
{
    const struct qn_msg m = {.kind = QN_MSG_U_PREPARE,
                             .epoch = index,
                             .u = {.bal = {round, 0, 100}}};
    qn_step_out_release(&out);
    qn_utility_on_msg(&u, &step, 0, &m);
    return out.count != 0 ? out.out[0].kind : QN_OUT_NEED_SNAPSHOT;
}

static struct qn_ul_entry voter(uint32_t index, uint8_t node, uint64_t inc)
{
    struct qn_ul_entry e = entry(index);
    e.kind = QN_UL_VOTER;
    e.voter = node;
    e.voter_inc = inc;
    return e;
}

/* ---- a vote of its own --------------------------------------------------- */

UTILITY(a_mute_voter_votes_behind_the_entry_that_names_its_life)
{
    make(true, 3);
    cr_assert_eq(asked(3, 1), QN_OUT_NEED_SNAPSHOT, "no answer");
    const struct qn_ul_entry mine = voter(3, 1, INC);
    chosen(&mine, 1);
    cr_assert_eq(asked(4, 1), QN_OUT_PERSIST);
    cr_assert_eq(out.out[0].vote.index, 4);
    cr_assert_eq(out.out[1].msg.kind, QN_MSG_U_PROMISE);
}

UTILITY(an_entry_of_another_life_or_node_gives_it_no_vote)
{
    make(true, 3);
    const struct qn_ul_entry before[] = {voter(3, 1, INC - 1),
                                         voter(4, 2, INC)};
    chosen(before, 2);
    cr_assert_eq(asked(5, 1), QN_OUT_NEED_SNAPSHOT);
    cr_assert(u.non_voting);
}

/* For a later incarnation, if this one is never asked. */
UTILITY(its_record_is_written_anew_at_the_next_tick)
{
    make(true, 3);
    const struct qn_ul_entry mine = voter(3, 1, INC);
    chosen(&mine, 1);
    qn_utility_tick(&u, &step);
    cr_assert_eq(out.count, 1);
    cr_assert_eq(out.out[0].kind, QN_OUT_PERSIST);
    cr_assert_eq(out.out[0].vote.index, 4);
    cr_assert_eq(out.out[0].vote.bal.round, 0);
    qn_step_out_release(&out);
    qn_utility_tick(&u, &step);
    cr_assert_eq(out.count, 0, "once");
}

UTILITY(a_mute_voter_proposes_and_does_not_count_itself)
{
    make(true, 3);
    const struct qn_ul_entry roles = entry(2);
    qn_utility_propose_voter(&u, &step, &roles);
    cr_assert_eq(out.count, 1, "no PERSIST");
    cr_assert_eq(out.out[0].msg.kind, QN_MSG_U_PREPARE);
    cr_assert(qn_utility_proposing_voter(&u));
    for (qn_node_t from = 0; from < 3; from += 2) {
        cr_assert_eq(u.phase, QN_UTILITY_PREPARE);
        const struct qn_msg yes = {
            .kind = QN_MSG_U_PROMISE, .epoch = 3, .u = {.bal = u.bal}};
        qn_step_out_release(&out);
        qn_utility_on_msg(&u, &step, from, &yes);
    }
    cr_assert_eq(u.phase, QN_UTILITY_ACCEPT);
    cr_assert_eq(u.granted, 0);
    cr_assert(u.value.kind == QN_UL_VOTER && u.value.voter == 1);
    cr_assert_eq(u.value.leader_inc, roles.leader_inc, "the roles stay");
}

/* ---- more entries than anybody keeps ------------------------------------- */

/** Entries first .. last, in messages of at most `each`. */
static void choose_all(uint32_t first, uint32_t last, uint32_t each)
{
    static struct qn_ul_entry e[QN_UL_KEPT];
    while (first <= last) {
        uint32_t n = QN_MIN(each, last - first + 1);
        for (uint32_t i = 0; i < n; i++) {
            e[i] = entry(first + i);
        }
        chosen(e, n);
        first += n;
    }
}

UTILITY(the_newest_entries_are_kept_and_told)
{
    make(false, 1);
    choose_all(1, 1000, 1);
    cr_assert_eq(qn_utility_len(&u), 1001);
    cr_assert_null(qn_utility_entry(&u, 1000 - QN_UL_KEPT));
    cr_assert_not_null(qn_utility_entry(&u, 1001 - QN_UL_KEPT));
    struct qn_refbuf *b = qn_utility_suffix(&u, 5);
    cr_assert_eq(b->len, QN_UL_KEPT * QN_UL_BYTES);
    qn_refbuf_unref(b);
}

/* Some of the entries that lack are no reason to skip any: they will come. */
UTILITY(a_gap_that_somebody_can_fill_is_not_skipped)
{
    make(false, 3);
    choose_all(10, 10, 1);
    choose_all(4, QN_UL_KEPT, QN_UL_KEPT - 1);
    cr_assert_eq(qn_utility_len(&u), 3);
}

UTILITY(who_missed_more_than_is_kept_goes_on_behind_it)
{
    make(false, 3);
    struct qn_ul_entry want = entry(3);
    qn_utility_propose(&u, &step, &want);
    choose_all(500, 499 + QN_UL_KEPT, QN_UL_KEPT);
    cr_assert_eq(qn_utility_len(&u), 500 + QN_UL_KEPT);
    cr_assert(!qn_utility_proposing(&u), "its index is chosen");
    cr_assert_eq(asked(500 + QN_UL_KEPT, 1), QN_OUT_PERSIST);
    cr_assert_eq(out.out[0].vote.index, 500 + QN_UL_KEPT);
}

/* ---- patience ------------------------------------------------------------ */

static void says(qn_node_t from, uint8_t kind, const struct qn_ballot *bal)
{
    const struct qn_msg m = {.kind = kind, .epoch = 3, .u = {.bal = *bal}};
    qn_step_out_release(&out);
    qn_utility_on_msg(&u, &step, from, &m);
}

/** It waits until it asks again. @return what. */
static const struct qn_out *patience_ends(void)
{
    qn_step_out_release(&out);
    step.now = qn_utility_deadline(&u);
    qn_utility_tick(&u, &step);
    return &out.out[0];
}

/* The answers are on their way for longer than it waits, in both phases. */
UTILITY(a_ballot_that_nobody_refuses_ends_however_late_the_answers_come)
{
    make(false, 3);
    const struct qn_ul_entry want = entry(3);
    qn_utility_propose(&u, &step, &want);
    const struct qn_ballot first = u.bal;
    for (int i = 0; i < 10; i++) {
        const struct qn_out *o = patience_ends();
        cr_assert_eq(out.count, 2, "both others");
        cr_assert_eq(o->msg.kind, QN_MSG_U_PREPARE);
        cr_assert_eq(qn_ballot_compare(&o->msg.u.bal, &first), 0);
    }
    says(2, QN_MSG_U_PROMISE, &first);
    cr_assert_eq(u.phase, QN_UTILITY_ACCEPT);
    for (int i = 0; i < 10; i++) {
        cr_assert_eq(patience_ends()->msg.kind, QN_MSG_U_ACCEPT);
    }
    says(2, QN_MSG_U_ACCEPTED, &first);
    cr_assert_eq(qn_utility_len(&u), 4);
}

UTILITY(who_has_answered_is_not_asked_again)
{
    make(true, 3); /* so that one answer is no majority */
    const struct qn_ul_entry roles = entry(2);
    qn_utility_propose_voter(&u, &step, &roles);
    says(2, QN_MSG_U_PROMISE, &u.bal);
    cr_assert_eq(patience_ends()->to, 0);
    cr_assert_eq(out.count, 1);
}

UTILITY(a_ballot_that_is_refused_is_followed_by_a_higher_one)
{
    make(false, 3);
    const struct qn_ul_entry want = entry(3);
    qn_utility_propose(&u, &step, &want);
    const struct qn_ballot theirs = {.round = 7, .node = 2, .inc = 102};
    says(2, QN_MSG_U_REJECT, &theirs);
    cr_assert_eq(out.count, 0, "it pauses");
    cr_assert_eq(patience_ends()->msg.u.bal.round, 8);
}

/* ---- voters that come and go --------------------------------------------- */

/** Entry `index` as node `node` becomes a voter or is none any more. */
static struct qn_ul_entry seat(uint32_t index, uint8_t node, uint64_t inc,
                               uint64_t voters)
{
    struct qn_ul_entry e = voter(index, node, inc);
    e.kind = QN_UL_SEAT;
    e.leader = 0;
    e.voters = voters;
    return e;
}

/** Node 1 of five seats, of which `voters` vote; entry 0 is known. */
static void make_seats(uint64_t voters, bool non_voting,
                       const struct qn_vote *vote)
{
    const struct qn_ul_entry first = {.kind = QN_UL_INIT, .voters = voters};
    const struct qn_utility_opts o = {.self = 1,
                                      .nodes = 5,
                                      .self_inc = INC,
                                      .alloc = &qn_alloc_malloc,
                                      .log = &first,
                                      .count = 1,
                                      .vote = vote,
                                      .non_voting = non_voting,
                                      .pause = QN_MS};
    qn_utility_init(&u, &o);
}

static void answer(qn_node_t from, uint8_t kind)
{
    const struct qn_msg m = {.kind = kind, .epoch = u.len, .u = {.bal = u.bal}};
    qn_step_out_release(&out);
    qn_utility_on_msg(&u, &step, from, &m);
}

static const struct qn_ul_entry by_me = {
    .kind = QN_UL_LEADER, .leader = 1, .acceptor = 1};

UTILITY(a_majority_is_one_of_the_voters_and_not_of_the_seats)
{
    make_seats(0x7, false, NULL);
    qn_utility_propose(&u, &step, &by_me);
    cr_assert_eq(u.want.voters, 0x7, "they stay");
    answer(4, QN_MSG_U_PROMISE);
    answer(3, QN_MSG_U_PROMISE);
    cr_assert_eq(u.phase, QN_UTILITY_PREPARE, "none of them votes");
    answer(2, QN_MSG_U_PROMISE);
    cr_assert_eq(u.phase, QN_UTILITY_ACCEPT, "two of three");
    answer(0, QN_MSG_U_ACCEPTED);
    cr_assert_eq(qn_utility_len(&u), 2);
}

UTILITY(the_entry_that_adds_a_voter_is_chosen_by_those_before_it)
{
    make_seats(0x7, false, NULL);
    const struct qn_ul_entry roles = {.kind = QN_UL_INIT};
    qn_utility_propose_seat(&u, &step, &roles, 4, 77);
    cr_assert_eq(u.want.voters, 0x17);
    answer(4, QN_MSG_U_PROMISE);
    cr_assert_eq(u.phase, QN_UTILITY_PREPARE);
    answer(0, QN_MSG_U_PROMISE);
    answer(0, QN_MSG_U_ACCEPTED);
    cr_assert_eq(qn_utility_voters(&u), 0x17);
    qn_utility_propose(&u, &step, &by_me);
    answer(4, QN_MSG_U_PROMISE);
    cr_assert_eq(u.phase, QN_UTILITY_PREPARE, "two of four");
    answer(2, QN_MSG_U_PROMISE);
    cr_assert_eq(u.phase, QN_UTILITY_ACCEPT);
}

UTILITY(a_newcomer_votes_behind_its_own_entry)
{
    make_seats(0x1, true, NULL);
    cr_assert_eq(asked(1, 1), QN_OUT_NEED_SNAPSHOT, "no answer");
    const struct qn_ul_entry mine = seat(1, 1, INC, 0x3);
    chosen(&mine, 1);
    cr_assert_eq(asked(2, 1), QN_OUT_PERSIST);
    cr_assert_eq(out.out[0].vote.since, 0);
}

/* The newcomer has ended before it wrote that its vote has begun. */
UTILITY(the_next_process_of_a_newcomers_seat_votes_behind_its_entry)
{
    const struct qn_vote record = {.index = 1, .since = INC - 3};
    make_seats(0x1, false, &record);
    cr_assert(u.non_voting);
    const struct qn_ul_entry former = seat(1, 1, INC - 4, 0x3);
    chosen(&former, 1);
    cr_assert(u.non_voting, "that one may have voted");
    make_seats(0x1, false, &record);
    const struct qn_ul_entry newcomer = seat(1, 1, INC - 2, 0x3);
    chosen(&newcomer, 1);
    cr_assert_not(u.non_voting, "none since the record has");
}

UTILITY(a_node_that_is_no_voter_gives_no_vote_and_asks_for_none)
{
    const struct qn_ul_entry roles = {.kind = QN_UL_INIT};
    make_seats(0x5, true, NULL);
    cr_assert_eq(asked(1, 1), QN_OUT_NEED_SNAPSHOT);
    cr_assert_not(qn_utility_removed(&u), "it was none");
    cr_assert_not(qn_utility_may_propose(&u));
    cr_assert_not(qn_utility_propose(&u, &step, &by_me));
    cr_assert_not(qn_utility_propose_voter(&u, &step, &roles));
    cr_assert_not(qn_utility_propose_seat(&u, &step, &roles, 1, INC));
    cr_assert_not(qn_utility_proposing(&u));
    cr_assert_eq(out.count, 0);
}

UTILITY(a_voter_proposes_no_leader_without_a_vote)
{
    const struct qn_ul_entry other = {.kind = QN_UL_LEADER, .leader = 3};
    const struct qn_ul_entry accepts = {
        .kind = QN_UL_LEADER, .leader = 1, .acceptor = 3};
    const struct qn_ul_entry roles = {
        .kind = QN_UL_INIT, .leader = 2, .acceptor = 2};
    make_seats(0x7, false, NULL);
    cr_assert(qn_utility_may_propose(&u));
    cr_assert_not(qn_utility_propose(&u, &step, &other));
    cr_assert_not(qn_utility_propose(&u, &step, &accepts));
    cr_assert_not(qn_utility_propose_seat(&u, &step, &roles, 2, 7),
                  "nor is one removed in its role");
    cr_assert_not(qn_utility_proposing(&u));
    cr_assert(qn_utility_propose_seat(&u, &step, &roles, 0, 7));
}

/* It lags behind by all that is kept, or comes: no entry is known yet. */
UTILITY(a_node_that_knows_nothing_proposes_as_a_question)
{
    make(false, 0);
    cr_assert(qn_utility_propose(&u, &step, &by_me));
    cr_assert_eq(out.out[0].msg.kind, QN_MSG_U_PREPARE);
    answer(0, QN_MSG_U_PROMISE);
    answer(2, QN_MSG_U_PROMISE);
    cr_assert_eq(u.phase, QN_UTILITY_PREPARE, "there are no voters");
}

UTILITY(an_entry_that_ends_its_vote_removes_an_incarnation)
{
    make_seats(0x7, false, NULL);
    qn_utility_propose(&u, &step, &by_me);
    const struct qn_ul_entry gone = seat(1, 1, INC, 0x5);
    chosen(&gone, 1);
    cr_assert(qn_utility_removed(&u));
    cr_assert_not(qn_utility_proposing(&u));
    cr_assert_eq(asked(2, 1), QN_OUT_NEED_SNAPSHOT);
    const struct qn_ul_entry next = seat(2, 1, INC + 1, 0x7);
    chosen(&next, 1);
    cr_assert(qn_utility_removed(&u), "for ever: its seat is another's");
    cr_assert_eq(asked(3, 1), QN_OUT_NEED_SNAPSHOT);
}

UTILITY(the_end_of_a_former_incarnation_of_the_seat_removes_no_later_one)
{
    make_seats(0x7, false, NULL);
    const struct qn_ul_entry gone = seat(1, 1, INC - 1, 0x5);
    chosen(&gone, 1);
    cr_assert_not(qn_utility_removed(&u));
    cr_assert_eq(asked(2, 1), QN_OUT_NEED_SNAPSHOT, "it is no voter");
}

/* The entry that removed it lies in what no node keeps any more. */
UTILITY(a_voter_that_skips_its_removal_is_removed)
{
    static struct qn_ul_entry e[QN_UL_KEPT];
    for (uint32_t i = 0; i < QN_UL_KEPT; i++) {
        e[i] = seat(500 + i, 2, 7, i % 2 == 0 ? 0x1 : 0x5);
    }
    make_seats(0x7, false, NULL);
    chosen(e, QN_UL_KEPT);
    cr_assert_eq(qn_utility_voters(&u), 0x5, "the mask, whatever lay between");
    cr_assert(qn_utility_removed(&u), "though it has never voted");
}

/* So the next process of its seat knows that it is a newcomer, whatever it
 * skips then. */
UTILITY(a_removed_incarnation_writes_its_record)
{
    for (int mute = 0; mute <= 1; mute++) {
        make_seats(0x7, mute, NULL);
        const struct qn_ul_entry gone = seat(1, 1, INC, 0x5);
        chosen(&gone, 1);
        qn_utility_tick(&u, &step);
        cr_assert_eq(out.count, 1);
        cr_assert_eq(out.out[0].kind, QN_OUT_PERSIST);
        cr_assert_eq(out.out[0].vote.index, 2);
        cr_assert_eq(out.out[0].vote.bal.round, 0);
        cr_assert_eq(out.out[0].vote.since, mute ? INC : 0,
                     "what was unknown stays so");
        qn_step_out_release(&out);
        qn_utility_tick(&u, &step);
        cr_assert_eq(out.count, 0, "once");
    }
}

UTILITY(no_vote_for_an_entry_that_names_two_voters_more)
{
    make_seats(0x7, false, NULL);
    struct qn_ul_entry e = seat(1, 3, 7, 0x1f);
    uint8_t bytes[QN_UL_BYTES];
    struct qn_msg m = {.kind = QN_MSG_U_ACCEPT,
                       .epoch = 1,
                       .u = {.bal = {1, 0, 100}},
                       .body = {bytes, sizeof bytes}};
    qn_ul_encode(&e, bytes);
    qn_utility_on_msg(&u, &step, 0, &m);
    cr_assert_eq(out.count, 0);
    e.voters = 0xf;
    qn_ul_encode(&e, bytes);
    qn_utility_on_msg(&u, &step, 0, &m);
    cr_assert_eq(out.count, 2);
    cr_assert_eq(out.out[1].msg.kind, QN_MSG_U_ACCEPTED);
}

/* No other node would know of an entry that is acted upon. */
UTILITY(the_only_voter_writes_its_record_before_it_goes_on)
{
    const struct qn_ul_entry first = {
        .kind = QN_UL_INIT, .leader = 1, .voters = 0x2};
    const struct qn_utility_opts o = {.self = 1,
                                      .nodes = 5,
                                      .self_inc = INC,
                                      .alloc = &qn_alloc_malloc,
                                      .log = &first,
                                      .count = 1,
                                      .pause = QN_MS};
    qn_utility_init(&u, &o);
    qn_utility_propose(&u, &step, &by_me);
    for (int phase = 0; phase < 2; phase++) {
        cr_assert_eq(qn_utility_len(&u), 1);
        cr_assert_eq(out.out[out.count - 1].kind, QN_OUT_PERSIST);
        cr_assert_leq(qn_utility_deadline(&u), step.now, "at once");
        qn_step_out_release(&out);
        qn_utility_tick(&u, &step);
    }
    cr_assert_eq(qn_utility_len(&u), 2);
}
