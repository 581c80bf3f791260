/*
 * Members come and go (PROTOCOL.md 4.4), as node 0 of eight seats, which leads;
 * nodes 0 to 2 begin the group, and the test is the others. Memory acceptor.
 */
#include <stdlib.h>
#include <string.h>

#include "paxos/machine/onepaxos_internal.h"
#include "tests/support/test.h"
#include "tests/unit/paxos/machine/fixture.h"

enum { SEATS = 8, NEW = 3, INC = 50, SLOTS = 64, BYTES = 1 << 16 };

static struct {
    struct fx f;
    struct qn_pair word;
    struct qn_memory_acceptor shared;
    void *mem;
    qn_slot_t at; /* what the newcomer has applied */
    bool mapped;  /* the ring of node 0; it is empty */
} w;

static const struct qn_ring *ring(void *ctx, qn_node_t node, uint64_t inc)
{
    (void)ctx;
    return w.mapped && node == 0 && inc == 10 ? &w.shared.own : NULL;
}

static bool owner(void *ctx, qn_epoch_t epoch)
{
    (void)ctx;
    (void)epoch;
    return true;
}

static bool position(void *ctx, qn_node_t node, struct qn_position *out)
{
    (void)ctx;
    *out = (struct qn_position){w.at, w.at};
    return node == NEW;
}

static void begin_of(qn_node_t self, uint64_t voters)
{
    const struct qn_ring_opts o = {
        .slots = SLOTS, .capacity = BYTES, .span = BYTES};
    const struct qn_params v = fx_params();
    size_t bytes = qn_ring_bytes(SLOTS, BYTES);
    memset(&w, 0, sizeof w);
    w.mem = aligned_alloc(QN_CACHELINE, bytes);
    memset(w.mem, 0, bytes);
    w.shared = (struct qn_memory_acceptor){.accept_register = &w.word,
                                           .ring = ring,
                                           .owner = owner,
                                           .position = position};
    qn_ring_open(&w.shared.own, w.mem, &o);
    qn_ring_begin(&w.shared.own, 1);
    fx_make_seats(&w.f, self, SEATS, voters, &v, &w.shared);
}

static void begin(void)
{
    begin_of(0, 0x7);
}

static void end(void)
{
    fx_end(&w.f);
    free(w.mem);
    cr_assert_eq(fx_refbufs, 0);
}

#define SEAT(name) Test(seat, name, .init = begin, .fini = end)

/** A process takes the seat, and says that it has mapped the others. */
static void comes(void)
{
    const struct qn_msg m = {.kind = QN_MSG_BEAT};
    fx_up(&w.f, NEW, INC);
    fx_recv(&w.f, NEW, &m);
}

static const struct qn_utility *log_of(void)
{
    return qn_onepaxos_utility(w.f.p);
}

/** Node `from` grants what is asked, in both phases. */
static void grants(qn_node_t from)
{
    for (int phase = 0; phase < 2 && qn_utility_proposing(log_of()); phase++) {
        const struct qn_utility *u = log_of();
        const struct qn_msg m = {.kind = u->phase == QN_UTILITY_PREPARE
                                             ? QN_MSG_U_PROMISE
                                             : QN_MSG_U_ACCEPTED,
                                 .epoch = u->len,
                                 .u = {.bal = u->bal}};
        fx_recv(&w.f, from, &m);
    }
}

/** The change is asked for, and chosen with the vote of node 1. */
static void change(qn_node_t node, bool votes)
{
    cr_assert_eq(fx_seat(&w.f, node, votes, false), QN_OK);
    fx_tick(&w.f);
    grants(1);
    grants(2);
}

static void hears(const struct qn_ul_entry *e)
{
    uint8_t ul[QN_UL_BYTES];
    qn_ul_encode(e, ul);
    const struct qn_msg m = {
        .kind = QN_MSG_U_CHOSEN, .epoch = e->index, .body = {ul, sizeof ul}};
    fx_recv(&w.f, 0, &m);
}

/* ---- a voter more -------------------------------------------------------- */

SEAT(vacant_seats_are_not_alive_and_do_not_vote)
{
    cr_assert_eq(fx_status(&w.f).alive, 0x7);
    cr_assert_eq(fx_status(&w.f).voters, 0x7);
    cr_assert_eq(fx_seat(&w.f, NEW, true, false), QN_EAGAIN);
}

SEAT(a_newcomer_becomes_a_voter)
{
    comes();
    cr_assert_eq(fx_status(&w.f).voters, 0x7, "not by coming");
    change(NEW, true);
    cr_assert_eq(fx_status(&w.f).voters, 0xf);
    cr_assert_eq(fx_status(&w.f).role, QN_ACTIVE, "no epoch begins");
    cr_assert_eq(fx_status(&w.f).epoch, 0);
    fx_tick(&w.f);
    cr_assert_not(fx_status(&w.f).changing);
    const struct qn_ul_entry *e = qn_utility_entry(log_of(), 1);
    cr_assert(e->kind == QN_UL_SEAT && e->voter == NEW && e->voter_inc == INC);
}

SEAT(a_newcomer_is_in_sync_before_it_counts)
{
    comes();
    qn_ring_begin(&w.shared.own, 150);
    w.at = 148;
    cr_assert_eq(fx_seat(&w.f, NEW, true, false), QN_EAGAIN);
    cr_assert_eq(fx_seat(&w.f, NEW, true, true), QN_EAGAIN, "forced or not");
    w.at = 149;
    cr_assert_eq(fx_seat(&w.f, NEW, true, false), QN_OK);
}

SEAT(one_that_was_not_heard_has_not_mapped_the_ring)
{
    comes();
    w.f.p->change.heard &= ~QN_BIT(NEW);
    cr_assert_eq(fx_seat(&w.f, NEW, true, false), QN_EAGAIN);
}

SEAT(a_newcomer_that_ends_before_its_entry_ends_the_change)
{
    comes();
    cr_assert_eq(fx_seat(&w.f, NEW, true, false), QN_OK);
    cr_assert(fx_status(&w.f).changing);
    fx_down(&w.f, NEW);
    fx_tick(&w.f);
    cr_assert_not(fx_status(&w.f).changing);
    cr_assert_eq(fx_status(&w.f).changed, QN_EAGAIN, "and why");
    cr_assert_not(qn_utility_proposing(log_of()));
}

/* ---- a voter less -------------------------------------------------------- */

SEAT(a_dead_member_is_removed_without_its_help)
{
    fx_down(&w.f, 2);
    change(2, false);
    cr_assert_eq(fx_status(&w.f).voters, 0x3);
    cr_assert_eq(qn_utility_entry(log_of(), 1)->voter_inc, 12);
}

SEAT(a_leader_is_removed_by_the_next_one_only)
{
    cr_assert_eq(fx_seat(&w.f, 0, false, false), QN_EINVAL);
    cr_assert_eq(fx_seat(&w.f, SEATS, true, false), QN_EINVAL);
}

SEAT(the_last_but_one_leaves_a_leader_that_decides_alone)
{
    change(2, false);
    fx_tick(&w.f);
    change(1, false);
    cr_assert_eq(fx_status(&w.f).voters, 0x1);
    fx_tick(&w.f);
    comes();
    cr_assert_eq(fx_seat(&w.f, NEW, true, false), QN_OK);
    for (int n = 0; n < 4; n++) {
        fx_tick(&w.f);
    }
    cr_assert_eq(fx_status(&w.f).voters, 0x9);
}

/* Of {0, 1, 2} node 1 is dead: without node 2 no majority would be alive. */
SEAT(a_change_after_which_no_majority_lives_needs_force)
{
    fx_down(&w.f, 1);
    cr_assert_eq(fx_seat(&w.f, 2, false, false), QN_ENOQUORUM);
    fx_suspect(&w.f, QN_BIT(2));
    fx_up(&w.f, 1, 20);
    cr_assert_eq(fx_seat(&w.f, 1, false, false), QN_ENOQUORUM, "a stalled one");
    cr_assert_eq(fx_seat(&w.f, 1, false, true), QN_OK);
}

/* The voters of today choose the entry, so force does not help. */
SEAT(a_change_needs_a_majority_that_lives)
{
    comes();
    fx_down(&w.f, 1);
    fx_down(&w.f, 2);
    for (int forced = 0; forced <= 1; forced++) {
        cr_assert_eq(fx_seat(&w.f, 2, false, forced), QN_ENOQUORUM);
        cr_assert_eq(fx_seat(&w.f, NEW, true, forced), QN_ENOQUORUM);
    }
    fx_up(&w.f, 1, 20);
    fx_suspect(&w.f, QN_BIT(1));
    cr_assert_eq(fx_seat(&w.f, NEW, true, false), QN_ENOQUORUM, "it stalls");
    cr_assert_eq(fx_seat(&w.f, NEW, true, true), QN_OK);
}

/* ---- one change at a time ------------------------------------------------ */

SEAT(one_change_at_a_time_and_each_may_be_asked_for_again)
{
    cr_assert_eq(fx_seat(&w.f, 2, false, false), QN_OK);
    cr_assert_eq(fx_seat(&w.f, 2, false, false), QN_OK);
    cr_assert_eq(fx_seat(&w.f, 1, false, false), QN_EBUSY);
    fx_tick(&w.f);
    grants(1);
    fx_tick(&w.f);
    cr_assert_eq(fx_seat(&w.f, 2, false, false), QN_OK, "it is so");
    cr_assert_not(fx_status(&w.f).changing);
    cr_assert_eq(fx_seat(&w.f, 1, false, false), QN_OK);
}

/* Of those that come some have no core of their own. */
SEAT(times_may_change_and_sizes_may_not)
{
    struct qn_params slow = qn_params_default(false);
    struct qn_params *own = &w.f.p->params;
    const uint32_t ring = own->ring;
    slow.ring = 2 * ring;
    qn_onepaxos_times(w.f.p, &slow);
    cr_expect_eq(own->t_lead, slow.t_lead);
    cr_expect_eq(own->t_gap, slow.t_gap);
    cr_expect_eq(own->jitter, slow.jitter);
    cr_expect_eq(own->ring, ring);
    cr_expect_eq(w.f.p->ul.pause, slow.u_backoff, "no shorter than the least");
}

SEAT(a_node_that_does_not_lead_refuses)
{
    qn_store(&w.word.first, 7, QN_SEQ_CST);
    cr_assert_eq(fx_seat(&w.f, 2, false, false), QN_ENOTLEADER,
                 "another one has taken over");
    fx_end(&w.f);
    free(w.mem);
    begin_of(1, 0x7);
    cr_assert_eq(fx_seat(&w.f, 2, false, false), QN_ENOTLEADER);
}

SEAT(an_order_is_forced_by_asking_again)
{
    cr_assert_eq(fx_seat(&w.f, 2, false, false), QN_OK);
    cr_assert_eq(fx_seat(&w.f, 2, false, true), QN_OK);
    const struct qn_voter_change c = {.node = 2, .inc = w.f.p->incarnation[2]};
    cr_assert(qn_onepaxos_changes(w.f.p, &c));
    fx_suspect(&w.f, 0x2); /* the rest is no majority */
    fx_tick(&w.f);
    cr_assert(qn_utility_proposing(log_of()));
    const struct qn_voter_change other = {.node = 2, .inc = c.inc + 1};
    cr_assert_not(qn_onepaxos_changes(w.f.p, &other));
}

Test(seat, with_the_process_acceptor_the_size_stays)
{
    const struct qn_params v = fx_params();
    fx_make(&w.f, 0, 3, &v);
    cr_assert_eq(fx_seat(&w.f, 2, false, false), QN_ENOSYS);
    fx_end(&w.f);
}

/* ---- looked at again ----------------------------------------------------- */

/* Of {0, 1, 2} node 2 is to go; before it is proposed, node 1 stalls. */
SEAT(a_change_that_was_fine_when_it_was_asked_for_is_checked_again)
{
    for (int forced = 0; forced <= 1; forced++) {
        fx_suspect(&w.f, 0);
        cr_assert_eq(fx_seat(&w.f, 2, false, forced), QN_OK);
        cr_assert_eq(fx_status(&w.f).changed, QN_EBUSY);
        fx_suspect(&w.f, QN_BIT(1));
        fx_tick(&w.f);
        cr_assert_eq(fx_status(&w.f).changing, forced);
        cr_assert_eq(fx_status(&w.f).changed, forced ? QN_EBUSY : QN_ENOQUORUM);
        cr_assert_eq(qn_utility_proposing(log_of()), forced);
    }
    grants(1);
    fx_tick(&w.f);
    cr_assert_eq(fx_status(&w.f).voters, 0x3);
    cr_assert_eq(fx_status(&w.f).changed, QN_OK);
}

SEAT(a_change_that_is_proposed_is_waited_for)
{
    cr_assert_eq(fx_seat(&w.f, 2, false, false), QN_OK);
    fx_tick(&w.f);
    fx_suspect(&w.f, QN_BIT(1));
    fx_tick(&w.f);
    cr_assert_eq(fx_status(&w.f).changed, QN_EBUSY);
    grants(1);
    fx_tick(&w.f);
    cr_assert_eq(fx_status(&w.f).changed, QN_OK);
}

SEAT(a_leader_that_is_deposed_does_not_know_how_it_ends)
{
    cr_assert_eq(fx_seat(&w.f, 2, false, false), QN_OK);
    qn_store(&w.word.first, 7, QN_SEQ_CST);
    fx_tick(&w.f);
    cr_assert_not(fx_status(&w.f).changing);
    cr_assert_eq(fx_status(&w.f).changed, QN_ENOTLEADER);
}

/* It does nothing else, and nothing else wakes it. */
SEAT(an_idle_leader_is_woken_by_what_was_asked)
{
    fx_tick(&w.f);
    cr_assert_gt(w.f.out.deadline, w.f.now);
    cr_assert_eq(fx_seat(&w.f, 2, false, false), QN_OK);
    cr_assert_leq(w.f.out.deadline, w.f.now, "to propose it");
    fx_tick(&w.f);
    cr_assert_gt(w.f.out.deadline, w.f.now, "it waits for votes");
    grants(1);
    cr_assert_leq(w.f.out.deadline, w.f.now, "to see that it is done");
    fx_tick(&w.f);
    cr_assert_gt(w.f.out.deadline, w.f.now);
}

/* ---- incarnations -------------------------------------------------------- */

SEAT(a_removed_process_is_no_newcomer_until_it_has_ended)
{
    change(2, false);
    fx_tick(&w.f);
    cr_assert_eq(fx_seat(&w.f, 2, true, false), QN_EBUSY);
    fx_down(&w.f, 2);
    cr_assert_eq(fx_seat(&w.f, 2, true, false), QN_EBUSY, "or its successor");
    fx_up(&w.f, 2, 77);
    fx_recv(&w.f, 2, &(struct qn_msg){.kind = QN_MSG_BEAT});
    cr_assert_eq(fx_seat(&w.f, 2, true, false), QN_OK);
}

SEAT(a_snapshot_says_which_incarnations_were_removed)
{
    struct qn_resume r;
    const struct qn_resume more = {.position = 2,
                                   .ended = {[1] = 30, [2] = 11}};
    cr_assert(qn_onepaxos_resume(w.f.p, &r));
    cr_assert_eq(r.ended[2], 0);
    change(2, false);
    cr_assert(qn_onepaxos_resume(w.f.p, &r));
    cr_assert_eq(r.ended[2], 12);
    qn_onepaxos_install(w.f.p, &more, w.f.now);
    cr_assert(qn_onepaxos_resume(w.f.p, &r));
    cr_assert_eq(r.ended[1], 30);
    cr_assert_eq(r.ended[2], 12, "what is known here is not taken back");
}

/* The entry that removed it is kept no more: the snapshot knows of it. */
SEAT(a_leader_from_a_snapshot_adds_no_removed_incarnation)
{
    const struct qn_params v = fx_params();
    const struct qn_resume r = {.ended = {[NEW] = INC}};
    fx_end(&w.f);
    fx_make_resumed(&w.f, 0, SEATS, 0x7, &v, &w.shared, &r);
    comes();
    cr_assert_eq(fx_seat(&w.f, NEW, true, false), QN_EBUSY);
    fx_up(&w.f, NEW, INC + 1);
    fx_recv(&w.f, NEW, &(struct qn_msg){.kind = QN_MSG_BEAT});
    cr_assert_eq(fx_seat(&w.f, NEW, true, false), QN_OK);
}

SEAT(an_order_may_name_the_incarnation)
{
    const struct qn_voter_change gone = {.node = 2, .inc = 11};
    const struct qn_voter_change later = {.node = 2, .inc = 13};
    const struct qn_voter_change present = {.node = 2, .inc = 12};
    cr_assert_eq(fx_seat_of(&w.f, gone), QN_ESTALE);
    cr_assert_eq(fx_seat_of(&w.f, later), QN_EAGAIN, "not known yet");
    cr_assert_eq(fx_seat_of(&w.f, present), QN_OK);
    cr_assert_eq(fx_seat_of(&w.f, later), QN_EBUSY, "another change");
    fx_up(&w.f, 2, 13);
    fx_tick(&w.f);
    cr_assert_eq(fx_status(&w.f).changed, QN_ESTALE, "it came meanwhile");
    cr_assert_eq(fx_status(&w.f).voters, 0x7);
}

/** Of node 1, to the ballot under way. */
static struct qn_msg promise_of(void)
{
    return (struct qn_msg){.kind = QN_MSG_U_PROMISE,
                           .epoch = log_of()->len,
                           .u = {.bal = log_of()->bal}};
}

/* Its vote would be ended, and the process that has it now would be left. */
SEAT(a_removal_of_one_that_begins_again_is_dropped_before_it_is_voted_on)
{
    cr_assert_eq(fx_seat(&w.f, 2, false, false), QN_OK);
    fx_tick(&w.f);
    const struct qn_msg promise = promise_of();
    fx_up(&w.f, 2, 77);
    fx_tick(&w.f);
    cr_assert_not(fx_status(&w.f).changing);
    cr_assert_eq(fx_status(&w.f).changed, QN_ESTALE);
    cr_assert_not(qn_utility_proposing(log_of()));
    fx_recv(&w.f, 1, &promise);
    cr_assert_eq(fx_count(&w.f, QN_MSG_U_ACCEPT), 0, "late");
    change(2, false);
    cr_assert_eq(fx_status(&w.f).voters, 0x3);
    cr_assert_eq(qn_utility_entry(log_of(), 1)->voter_inc, 77);
}

SEAT(an_addition_of_one_that_ends_is_dropped_before_it_is_voted_on)
{
    comes();
    cr_assert_eq(fx_seat(&w.f, NEW, true, false), QN_OK);
    fx_tick(&w.f);
    fx_down(&w.f, NEW);
    fx_tick(&w.f);
    cr_assert_eq(fx_status(&w.f).changed, QN_EAGAIN);
    cr_assert_not(qn_utility_proposing(log_of()));
}

/* A voter may have voted for it. */
SEAT(an_entry_that_is_put_to_the_vote_is_waited_for)
{
    cr_assert_eq(fx_seat(&w.f, 2, false, false), QN_OK);
    fx_tick(&w.f);
    const struct qn_msg promise = promise_of();
    fx_recv(&w.f, 1, &promise);
    cr_assert_eq(log_of()->phase, QN_UTILITY_ACCEPT);
    fx_up(&w.f, 2, 77);
    fx_tick(&w.f);
    cr_assert_eq(fx_status(&w.f).changed, QN_EBUSY);
    const struct qn_msg reject = {
        .kind = QN_MSG_U_REJECT,
        .epoch = log_of()->len,
        .u = {.bal = {.round = 9, .node = 1, .inc = 11}}};
    fx_recv(&w.f, 1, &reject); /* a new ballot, for the same entry */
    fx_later(&w.f, QN_S);
    cr_assert_eq(log_of()->phase, QN_UTILITY_PREPARE);
    cr_assert_eq(fx_status(&w.f).changed, QN_EBUSY);
    grants(1);
    fx_tick(&w.f);
    cr_assert_eq(fx_status(&w.f).changed, QN_OK);
    cr_assert_eq(fx_status(&w.f).voters, 0x3);
}

/* ---- many changes -------------------------------------------------------- */

/** Until nothing is proposed any more. */
static void settle(void)
{
    for (int n = 0; n < 8; n++) {
        fx_tick(&w.f);
        grants(1);
    }
    cr_assert_eq(fx_status(&w.f).role, QN_ACTIVE);
    cr_assert_not(fx_status(&w.f).changing);
}

/* An entry that names roles is kept all the time: the leader begins epochs of
 * its own. */
SEAT(a_thousand_changes_under_one_leader)
{
    qn_epoch_t epochs = 0;
    for (uint64_t n = 0; n < 500; n++) {
        cr_assert_eq(fx_seat(&w.f, 2, false, false), QN_OK);
        settle();
        cr_assert_eq(fx_status(&w.f).voters, 0x3);
        fx_up(&w.f, 2, 100 + n);
        fx_recv(&w.f, 2, &(struct qn_msg){.kind = QN_MSG_BEAT});
        w.f.p->peer[2].applied = w.f.p->applied;
        cr_assert_eq(fx_seat(&w.f, 2, true, false), QN_OK);
        settle();
        cr_assert_eq(fx_status(&w.f).voters, 0x7);
        cr_assert_eq(fx_status(&w.f).leader, 0);
        cr_assert_leq(log_of()->len - w.f.p->cfg.index, QN_UL_KEPT / 2 + 1);
        epochs = fx_status(&w.f).epoch;
    }
    cr_assert_eq(log_of()->len, 1 + 1000 + 1000 / (QN_UL_KEPT / 2));
    cr_assert_gt(epochs, 900);
}

/* What is asked for meanwhile is taken, and comes later. */
SEAT(a_change_waits_for_an_epoch_of_its_leader)
{
    for (uint32_t n = 1; n <= QN_UL_KEPT / 2; n++) {
        change(2, n % 2 == 0);
        fx_tick(&w.f);
        fx_up(&w.f, 2, 100 + n);
        fx_recv(&w.f, 2, &(struct qn_msg){.kind = QN_MSG_BEAT});
        w.f.p->peer[2].applied = 1;
    }
    cr_assert_eq(fx_seat(&w.f, 2, false, false), QN_OK);
    fx_tick(&w.f);
    cr_assert_eq(log_of()->want.kind, QN_UL_LEADER, "first");
    grants(1);
    cr_assert_eq(fx_status(&w.f).role, QN_PREPARING);
    cr_assert_eq(fx_seat(&w.f, 1, false, false), QN_EBUSY);
    cr_assert(fx_status(&w.f).changing);
    settle();
    cr_assert_eq(fx_status(&w.f).voters, 0x3);
    cr_assert_eq(fx_status(&w.f).epoch, 1 + QN_UL_KEPT / 2);
}

/* ---- a lost record ------------------------------------------------------- */

/** The record of node 1 is lost: it is mute. */
static void lost(void)
{
    w.f.p->ul.non_voting = true;
    w.f.p->ul.since = 11;
}

/* Two of three voters agree, of eight seats. */
Test(seat, a_voter_is_given_a_vote_again_by_a_majority_of_the_voters)
{
    begin_of(1, 0x7);
    lost();
    fx_tick(&w.f);
    cr_assert_eq(log_of()->want.kind, QN_UL_VOTER);
    grants(0);
    cr_assert(qn_utility_proposing(log_of()));
    grants(2);
    cr_assert(qn_utility_proposing(log_of()), "both, in both phases");
    grants(0);
    cr_assert_eq(log_of()->len, 2);
    cr_assert_not(log_of()->non_voting);
    end();
}

Test(seat, a_newcomer_without_a_record_waits_for_its_entry)
{
    const struct qn_ul_entry former = {.index = 1,
                                       .kind = QN_UL_SEAT,
                                       .leader_inc = 10,
                                       .acceptor_inc = 10,
                                       .voter = 1,
                                       .voter_inc = 5,
                                       .voters = 0x5};
    begin_of(1, 0x7);
    hears(&former);
    lost();
    for (int n = 0; n < 20; n++) {
        fx_later(&w.f, QN_S);
        cr_assert_not(qn_utility_proposing(log_of()));
    }
    end();
}

/* ---- the removed --------------------------------------------------------- */

Test(seat, a_removed_node_takes_nothing_new_and_does_not_lead)
{
    begin_of(1, 0x7);
    const struct qn_ul_entry gone = {.index = 1,
                                     .kind = QN_UL_SEAT,
                                     .leader_inc = 10,
                                     .acceptor_inc = 10,
                                     .voter = 1,
                                     .voter_inc = 11,
                                     .voters = 0x5};
    cr_assert_eq(fx_submit(&w.f, "x"), QN_OK);
    hears(&gone);
    cr_assert(fx_status(&w.f).removed);
    cr_assert_eq(fx_submit(&w.f, "y"), QN_EREMOVED);
    cr_assert_eq(fx_seat(&w.f, 2, false, false), QN_EREMOVED);
    fx_down(&w.f, 0);
    for (int n = 0; n < 20; n++) {
        fx_later(&w.f, QN_S);
        cr_assert_not(qn_utility_proposing(log_of()));
    }
    end();
}

/* It may have missed the entry, and nothing else tells it: it may wait for what
 * was queued. There may be no memory at first. */
SEAT(a_removed_node_hears_of_it_once_and_is_ignored)
{
    struct qn_refbuf *own;
    const char *const text[] = {"x"};
    const struct qn_msg m = fx_request(1, text, 1, &own);
    change(2, false);
    w.f.memory_left = 0;
    fx_tick(&w.f);
    cr_assert_eq(fx_count(&w.f, QN_MSG_U_CHOSEN), 0);
    w.f.memory_left = INT64_MAX;
    fx_tick(&w.f);
    cr_assert_eq(fx_count(&w.f, QN_MSG_U_CHOSEN), 1);
    cr_assert_eq(fx_to(&w.f, QN_MSG_U_CHOSEN, 0), 2);
    cr_assert_eq(fx_sent(&w.f, QN_MSG_U_CHOSEN, 0)->body.len, 2 * QN_UL_BYTES);
    fx_tick(&w.f);
    cr_assert_eq(fx_count(&w.f, QN_MSG_U_CHOSEN), 0);
    cr_assert_eq(fx_recv(&w.f, 2, &m), QN_OK);
    cr_assert_eq(fx_count(&w.f, QN_MSG_U_CHOSEN), 0);
    fx_tick(&w.f);
    cr_assert_eq(fx_status(&w.f).next, 1, "no slot is filled");
    fx_up(&w.f, 2, 77); /* another process takes the seat */
    cr_assert_eq(fx_recv(&w.f, 2, &m), QN_OK);
    fx_tick(&w.f);
    cr_assert_eq(fx_status(&w.f).next, 2);
    qn_refbuf_unref(own);
}

/* Node 0 has ended, and nodes 1 and 2 have its ring mapped. */
Test(seat, a_node_that_does_not_vote_does_not_lead)
{
    const struct qn_ul_entry former = {.index = 1,
                                       .kind = QN_UL_SEAT,
                                       .leader_inc = 10,
                                       .acceptor_inc = 10,
                                       .voter = 2,
                                       .voter_inc = 11,
                                       .voters = 0x3};
    for (int votes = 1; votes >= 0; votes--) {
        begin_of(2, 0x7);
        w.mapped = true;
        if (!votes) {
            hears(&former);
            cr_assert_not(fx_status(&w.f).removed, "that was another one");
        }
        fx_down(&w.f, 0);
        fx_tick(&w.f);
        fx_later(&w.f, QN_S);
        cr_assert_eq(qn_utility_proposing(log_of()), votes);
        end();
    }
}
