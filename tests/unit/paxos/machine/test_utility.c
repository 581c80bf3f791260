/*
 * One end of the utility log: a voter whose record was lost, one that missed
 * more entries than anybody keeps, and a proposer that waits (PROTOCOL.md 4).
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
