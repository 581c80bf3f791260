/*
 * Gaps: who asks for what it did not hear, who answers, and what is forgotten.
 * Node 0 leads, node 1 accepts, node 2 is neither; node 1 is everybody's
 * parent.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"
#include "tests/unit/paxos/machine/fixture.h"

static struct fx a, b, c; /* leader, acceptor, third */

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

#define EDGE(name) Test(fetch, name, .init = setup, .fini = teardown)

static void fill_nothing(struct fx *f, qn_node_t from, qn_slot_t log_lo,
                         qn_slot_t hi)
{
    struct qn_msg m = {.kind = QN_MSG_FILL,
                       .flags = QN_MSG_LAST,
                       .fill = {.log_lo = log_lo, .hi = hi}};
    fx_recv(f, from, &m);
}

static int fetch(struct fx *f, qn_node_t from, qn_slot_t first, qn_slot_t last)
{
    struct qn_msg m = {
        .kind = QN_MSG_FETCH, .slot = first, .fetch = {.last = last}};
    return fx_recv(f, from, &m);
}

/* ---------------------------------------------------------------- gaps -- */

EDGE(a_gap_is_fetched_after_t_gap_and_not_before)
{
    const qn_time_t t_gap = fx_params().t_gap;
    fx_learn_slot(&c, 3, 3);
    cr_assert_eq(c.out.deadline, c.now + t_gap);
    fx_later(&c, t_gap - 1);
    cr_assert_eq(fx_count(&c, QN_MSG_FETCH), 0u);
    fx_later(&c, 1);
    cr_assert_eq(fx_to(&c, QN_MSG_FETCH, 0), 1u);
    const struct qn_msg *m = fx_sent(&c, QN_MSG_FETCH, 0);
    cr_assert(m->slot == 1 && m->fetch.last == 2); /* the hole only */
    fx_fill_slot(&c, 1, 1, 3, false);
    cr_assert_eq(c.applied_count, 1u);
    fx_fill_slot(&c, 1, 2, 3, true);
    cr_assert_eq(c.applied_count, 3u);
    fx_later(&c, QN_S);
    cr_assert_eq(fx_count(&c, QN_MSG_FETCH), 0u);
    cr_assert_eq(c.out.deadline, QN_TIME_NEVER);
}

EDGE(a_gap_that_closes_by_itself_is_not_fetched)
{
    fx_learn_slot(&c, 2, 2);
    fx_learn_slot(&c, 1, 2);
    fx_later(&c, QN_S);
    cr_assert_eq(fx_count(&c, QN_MSG_FETCH), 0u);
}

/* T15: the last LEARN of all was lost; nothing but BEAT tells. */
EDGE(a_beat_tells_of_what_was_missed)
{
    fx_beat(&c, 1, 0, 2);
    cr_assert_eq(fx_status(&c).decided_hi, 2u);
    fx_later(&c, fx_params().t_gap);
    cr_assert_eq(fx_sent(&c, QN_MSG_FETCH, 0)->fetch.last, 2u);
    fx_fill_slot(&c, 1, 1, 2, false);
    fx_fill_slot(&c, 1, 2, 2, true);
    cr_assert_eq(c.applied_count, 2u);
}

EDGE(a_beat_message_is_a_beat)
{
    struct qn_msg m = {.kind = QN_MSG_BEAT,
                       .beat = {.applied = 1, .learned = 2, .decided = 5}};
    cr_assert_eq(fx_recv(&c, 0, &m), QN_OK);
    cr_assert_eq(fx_status(&c).decided_hi, 5u);
}

/* One that lacked it may have it by now; nobody says so unasked. */
EDGE(when_all_lack_it_each_is_asked_in_turn)
{
    uint64_t asked = 0;
    fx_beat(&c, 1, 0, 2);
    for (uint32_t n = 0; n < 10; n++) {
        fx_later(&c, fx_params().t_gap);
        qn_node_t peer = fx_to(&c, QN_MSG_FETCH, 0);
        asked |= n < 2 ? 0 : UINT64_C(1) << peer; /* both have said it then */
        fill_nothing(&c, peer, 1, 0);
    }
    cr_assert_eq(asked, 3u);
}

EDGE(a_silent_peer_is_given_up_for_the_next)
{
    const struct qn_params v = fx_params();
    fx_beat(&c, 1, 0, 2);
    fx_later(&c, v.t_gap);
    cr_assert_eq(fx_to(&c, QN_MSG_FETCH, 0), 1u); /* parent */
    fx_later(&c, v.t_fetch - 1);
    cr_assert_eq(fx_count(&c, QN_MSG_FETCH), 0u);
    fx_later(&c, 1);
    cr_assert_eq(fx_to(&c, QN_MSG_FETCH, 0), 0u); /* anyone else */
    fx_later(&c, v.t_fetch);
    cr_assert_eq(fx_to(&c, QN_MSG_FETCH, 0), 1u);
    fx_fill_slot(&c, 1, 1, 2, true);
    fx_tick(&c);
    cr_assert_eq(fx_to(&c, QN_MSG_FETCH, 0), 1u); /* it answers: stay */
}

/* A batch that takes longer than T_FETCH to come is not asked for again while
 * its pieces come; those of other messages are no answer. */
EDGE(fragments_of_a_fill_are_signs_of_life)
{
    const struct qn_params v = fx_params();
    fx_beat(&c, 1, 0, 2);
    fx_later(&c, v.t_gap);
    cr_assert_eq(fx_to(&c, QN_MSG_FETCH, 0), 1u);
    for (int i = 0; i < 10; i++) {
        fx_later(&c, v.t_fetch - 1);
        cr_assert_eq(fx_count(&c, QN_MSG_FETCH), 0u, "round %d", i);
        fx_fragment(&c, 1, QN_MSG_FILL, 1);
        fx_fragment(&c, 0, QN_MSG_FILL, 1);
        cr_assert_eq(c.out.deadline, c.now + v.t_fetch);
    }
    fx_later(&c, v.t_fetch - 1);
    fx_fragment(&c, 1, QN_MSG_ACCEPT, 1);
    fx_fragment(&c, 0, QN_MSG_FILL, 1);
    fx_later(&c, 1); /* silent since the last piece of its own */
    cr_assert_eq(fx_to(&c, QN_MSG_FETCH, 0), 0u);
}

/* The acceptor says that it has accepted a slot before all of it is here. */
EDGE(a_learn_that_comes_in_fragments_is_no_gap)
{
    const struct qn_params v = fx_params();
    fx_beat(&c, 1, 0, 2);
    for (int i = 0; i < 10; i++) {
        fx_later(&c, v.t_gap - 1);
        cr_assert_eq(fx_count(&c, QN_MSG_FETCH), 0u, "round %d", i);
        fx_fragment(&c, 1, QN_MSG_LEARN, 1);
    }
    fx_later(&c, v.t_gap - 1);
    fx_fragment(&c, 1, QN_MSG_LEARN, 2); /* slot 1 was lost */
    fx_later(&c, 1);
    cr_assert_eq(fx_count(&c, QN_MSG_FETCH), 1u);
}

EDGE(a_dead_peer_is_not_asked)
{
    fx_down(&c, 1);
    fx_beat(&c, 0, 0, 2);
    fx_later(&c, fx_params().t_gap);
    cr_assert_eq(fx_to(&c, QN_MSG_FETCH, 0), 0u);
    fx_down(&c, 0);
    fx_later(&c, QN_S);
    cr_assert_eq(fx_count(&c, QN_MSG_FETCH), 0u);
}

EDGE(a_hole_longer_than_one_fetch_is_fetched_on)
{
    struct qn_params v = fx_params();
    v.ring = 4096;
    fx_end(&c);
    fx_make(&c, 2, 3, &v);
    fx_beat(&c, 1, 0, 3000);
    fx_later(&c, v.t_gap);
    cr_assert_eq(fx_sent(&c, QN_MSG_FETCH, 0)->fetch.last, 1024u);
    for (qn_slot_t s = 1; s <= 1024; s++) {
        fx_fill_slot(&c, 1, s, 3000, s == 1024);
    }
    fx_tick(&c); /* at once */
    cr_assert_eq(fx_sent(&c, QN_MSG_FETCH, 0)->slot, 1025u);
    cr_assert_eq(fx_sent(&c, QN_MSG_FETCH, 0)->fetch.last, 2048u);
}

EDGE(a_peer_that_is_behind_too_sends_the_learner_elsewhere)
{
    const struct qn_params v = fx_params();
    fx_learn_slot(&c, 3, 3);
    fx_later(&c, v.t_gap);
    fill_nothing(&c, 1, 1, 0);
    fx_tick(&c);
    cr_assert_eq(fx_count(&c, QN_MSG_FETCH), 0u); /* no hot loop */
    fx_later(&c, v.t_gap);
    cr_assert_eq(fx_count(&c, QN_MSG_FETCH), 1u);
    cr_assert(!fx_status(&c).need_snapshot);
}

/* 3.1, Slow learners: when nobody can give the slot and one has dropped it,
 * a snapshot is needed, until somebody gives it after all. */
EDGE(when_nobody_keeps_the_slot_a_snapshot_is_needed)
{
    const struct qn_params v = fx_params();
    fx_beat(&c, 1, 0, 50);
    bool told = false;
    for (int i = 0; i < 8 && !told; i++) {
        fx_later(&c, v.t_gap);
        qn_node_t peer = fx_to(&c, QN_MSG_FETCH, 0);
        fill_nothing(&c, peer, peer == 1 ? 40 : 1, peer == 1 ? 50 : 0);
        told = c.out.count != 0;
    }
    cr_assert_eq(c.out.out[0].kind, QN_OUT_NEED_SNAPSHOT);
    cr_assert_eq(c.out.out[0].apply.slot, 1u);
    cr_assert(fx_status(&c).need_snapshot);
    fx_later(&c, v.t_gap);
    cr_assert_eq(fx_count(&c, QN_MSG_FETCH), 0u); /* slower now */
    fx_later(&c, v.t_fetch);
    fill_nothing(&c, fx_to(&c, QN_MSG_FETCH, 0), 40, 50);
    cr_assert_eq(c.out.count, 0u); /* said once */
    fx_later(&c, v.t_fetch);
    fx_fill_slot(&c, fx_to(&c, QN_MSG_FETCH, 0), 1, 50, true);
    cr_assert(!fx_status(&c).need_snapshot);
}

/* One of those who might have it stands still. */
EDGE(who_stands_still_does_not_keep_a_snapshot_away)
{
    const struct qn_params v = fx_params();
    fx_beat(&c, 1, 0, 50);
    fx_later(&c, v.t_gap);
    cr_assert_eq(fx_to(&c, QN_MSG_FETCH, 0), 1u);
    fill_nothing(&c, 1, 40, 50);
    fx_later(&c, v.t_gap);
    cr_assert_eq(fx_to(&c, QN_MSG_FETCH, 0), 0u);
    fx_later(&c, v.t_fetch - 1);
    cr_assert(!fx_status(&c).need_snapshot);
    fx_later(&c, 1);
    cr_assert(fx_status(&c).need_snapshot);
    fx_fill_slot(&c, 0, 1, 50, true);
    cr_assert(!fx_status(&c).need_snapshot, "it had it after all");
}

EDGE(peers_that_are_all_behind_need_no_snapshot)
{
    fx_beat(&c, 1, 0, 50);
    for (int i = 0; i < 8; i++) {
        fx_later(&c, fx_params().t_gap);
        fill_nothing(&c, fx_to(&c, QN_MSG_FETCH, 0), 1, 0);
    }
    cr_assert(!fx_status(&c).need_snapshot);
}

/* A FILL decides. So it is an answer: who was not asked, or has said LAST, says
 * nothing, and slots that nobody trusted has called decided are not filled. */
EDGE(what_was_not_asked_for_is_not_believed)
{
    fx_fill_slot(&c, 1, 1, 1, true);
    cr_assert_eq(fx_status(&c).learned_hi, 0u, "nobody was asked");
    fx_learn_slot(&c, 3, 3);
    fx_later(&c, fx_params().t_gap);
    cr_assert_eq(fx_to(&c, QN_MSG_FETCH, 0), 1u);
    fx_fill_slot(&c, 0, 1, 3, true);
    cr_assert_eq(fx_status(&c).learned_hi, 0u, "another was asked");
    fx_fill_slot(&c, 1, 1, 3, true);
    cr_assert_eq(fx_status(&c).learned_hi, 1u);
    fx_fill_slot(&c, 1, 2, 3, true);
    cr_assert_eq(fx_status(&c).learned_hi, 1u, "it had said LAST");
}

EDGE(who_is_neither_parent_nor_acceptor_does_not_say_what_is_decided)
{
    const struct qn_params v = fx_params();
    fx_beat(&c, 1, 0, 1);
    fx_later(&c, v.t_gap);
    fx_later(&c, v.t_fetch); /* node 1 is silent */
    cr_assert_eq(fx_to(&c, QN_MSG_FETCH, 0), 0u);
    fx_fill_slot(&c, 0, 2, 9, false);
    cr_assert_eq(fx_status(&c).decided_hi, 1u);
    fx_fill_slot(&c, 0, 1, 9, true);
    cr_assert_eq(fx_status(&c).learned_hi, 1u, "slot 2 was not known");
    fx_beat(&c, 1, 0, 2);
    fx_later(&c, v.t_gap);
    fx_fill_slot(&c, 1, 2, 9, true);
    cr_assert_eq(fx_status(&c).decided_hi, 9u, "the acceptor is believed");
}

/* ---------------------------------------------------------------- FILL -- */

static void decide(qn_slot_t n)
{
    for (qn_slot_t s = 1; s <= n; s++) {
        struct qn_refbuf *x = fx_slot_batch(s);
        struct qn_msg m = fx_accept(s, x);
        cr_assert_eq(fx_recv(&b, 0, &m), QN_OK);
        qn_refbuf_unref(x);
    }
}

EDGE(fill_gives_one_slot_per_step_and_peer_with_room)
{
    decide(3);
    fetch(&b, 0, 1, 2);
    fetch(&b, 2, 2, 3);
    cr_assert_eq(b.out.transfers, 5u);
    cr_assert_eq(fx_count(&b, QN_MSG_FILL), 0u);
    fx_room(&b, 1u << 2);
    cr_assert_eq(fx_count(&b, QN_MSG_FILL), 1u);
    cr_assert_eq(fx_to(&b, QN_MSG_FILL, 0), 2u);
    cr_assert_eq(fx_sent(&b, QN_MSG_FILL, 0)->slot, 2u);
    cr_assert_eq(fx_sent(&b, QN_MSG_FILL, 0)->flags, 0);
    fx_room(&b, ~UINT64_C(0));
    cr_assert_eq(fx_count(&b, QN_MSG_FILL), 2u);
    cr_assert_eq(fx_sent(&b, QN_MSG_FILL, 1)->flags, QN_MSG_LAST);
    cr_assert_eq(b.out.transfers, 1u);
    fx_room(&b, ~UINT64_C(0));
    cr_assert_eq(b.out.transfers, 0u);
    fx_room(&b, ~UINT64_C(0));
    cr_assert_eq(b.out.count, 0u);
}

EDGE(fill_ends_where_learning_ends)
{
    decide(2);
    fetch(&b, 2, 1, 100);
    fx_room(&b, 4);
    fx_room(&b, 4);
    cr_assert_eq(fx_sent(&b, QN_MSG_FILL, 0)->flags, QN_MSG_LAST);
    cr_assert_eq(fx_sent(&b, QN_MSG_FILL, 0)->fill.hi, 2u);
    fetch(&b, 2, 3, 100); /* nothing to give: said at once */
    cr_assert_eq(fx_sent(&b, QN_MSG_FILL, 0)->flags, QN_MSG_LAST);
    cr_assert_eq(fx_sent(&b, QN_MSG_FILL, 0)->body.len, 0u);
}

/* 3.4: P slots are not decided and MUST NOT be given out. */
EDGE(what_is_only_proposed_is_never_given_out)
{
    fx_submit(&a, "x");
    fx_tick(&a);
    fetch(&a, 2, 1, 1);
    cr_assert_eq(fx_sent(&a, QN_MSG_FILL, 0)->body.len, 0u);
    cr_assert_eq(a.out.transfers, 0u);
}

EDGE(below_log_lo_fill_says_so)
{
    decide(5);
    fx_beat(&b, 0, 3, 3);
    fx_beat(&b, 2, 4, 4);
    fx_tick(&b);
    cr_assert_eq(fx_status(&b).log_lo, 4u);
    fetch(&b, 2, 3, 5);
    const struct qn_msg *m = fx_sent(&b, QN_MSG_FILL, 0);
    cr_assert(m->body.len == 0 && m->fill.log_lo == 4);
    cr_assert_eq(m->flags, QN_MSG_LAST);
}

EDGE(a_slot_dropped_during_a_transfer_ends_it)
{
    decide(5);
    fetch(&b, 2, 1, 5);
    fx_room(&b, 4);
    fx_beat(&b, 0, 3, 3);
    fx_beat(&b, 2, 3, 3);
    fx_tick(&b);
    fx_room(&b, 4);
    const struct qn_msg *m = fx_sent(&b, QN_MSG_FILL, 0);
    cr_assert(m->body.len == 0 && m->flags == QN_MSG_LAST);
    cr_assert_eq(b.out.transfers, 0u);
}

EDGE(a_dead_peer_gets_no_more)
{
    decide(2);
    fetch(&b, 2, 1, 2);
    fx_down(&b, 2);
    cr_assert_eq(b.out.transfers, 0u);
}

/* ---------------------------------------------------------- truncation -- */

EDGE(slots_are_kept_until_all_alive_have_applied_them)
{
    decide(5);
    fx_tick(&b);
    cr_assert_eq(fx_status(&b).log_lo, 1u);
    fx_beat(&b, 0, 5, 5);
    fx_tick(&b);
    cr_assert_eq(fx_status(&b).log_lo, 1u);
    fx_down(&b, 2);
    fx_tick(&b);
    cr_assert_eq(fx_status(&b).log_lo, 6u);
    cr_assert_eq(fx_status(&b).log_bytes, 0u);
}

EDGE(what_is_not_applied_here_is_kept_whatever_others_say)
{
    fx_learn_slot(&c, 2, 2);
    fx_beat(&c, 0, 2, 2);
    fx_beat(&c, 1, 2, 2);
    fx_tick(&c);
    cr_assert_eq(fx_status(&c).log_lo, 1u);
    fx_learn_slot(&c, 1, 2);
    cr_assert_eq(c.applied_count, 2u);
}

static int recover(void)
{
    static struct qn_step_out out;
    const struct qn_input in = {.kind = QN_IN_RECOVER};
    int err = qn_onepaxos_step(c.p, &in, c.now, c.wall_ms, &out);
    qn_step_out_release(&out);
    return err;
}

/* PROTOCOL.md 9: what lies behind a gap is decided anew. */
Test(catch_up, after_a_recovery_nothing_is_known_behind_a_gap)
{
    struct qn_params v = fx_params();
    fx_make(&c, 2, 3, &v);
    fx_learn_slot(&c, 1, 1);
    uint64_t bytes = fx_status(&c).log_bytes;
    fx_learn_slot(&c, 3, 3);
    cr_assert_eq(fx_status(&c).decided_hi, 3u);
    fx_down(&c, 0);
    cr_assert_eq(recover(), QN_EBUSY); /* node 1 lives */
    fx_down(&c, 1);
    cr_assert_eq(recover(), QN_OK);
    cr_assert_eq(fx_status(&c).decided_hi, 1u);
    cr_assert_eq(fx_status(&c).log_bytes, bytes);
    fx_later(&c, QN_S);
    cr_assert_eq(fx_count(&c, QN_MSG_FETCH), 0u);
    fx_end(&c);
    cr_assert_eq(fx_refbufs, 0);
}

/* Again when it leads. Nobody else lives in between, so what comes then is
 * handed over by force: a word of the acceptor that was. */
Test(catch_up, after_a_recovery_a_leader_begins_with_nothing_behind_a_gap)
{
    struct qn_params v = fx_params();
    const struct qn_ul_entry e = {.index = 1,
                                  .kind = QN_UL_LEADER,
                                  .leader = 2,
                                  .leader_inc = 12,
                                  .acceptor = 1,
                                  .acceptor_inc = 11};
    uint8_t ul[QN_UL_BYTES];
    qn_ul_encode(&e, ul);
    const struct qn_msg chosen = {
        .kind = QN_MSG_U_CHOSEN, .epoch = 1, .body = {ul, sizeof ul}};
    fx_make(&c, 2, 3, &v);
    fx_learn_slot(&c, 1, 1);
    fx_down(&c, 0);
    fx_down(&c, 1);
    cr_assert_eq(recover(), QN_OK);
    fx_tick(&c); /* slot 1 is dropped: all who live have applied it */
    uint64_t bytes = fx_status(&c).log_bytes;
    fx_learn_slot(&c, 3, 3);
    cr_assert_eq(fx_status(&c).decided_hi, 3u);
    fx_recv(&c, 0, &chosen);
    fx_tick(&c);
    cr_assert_eq(fx_status(&c).leader, 2);
    cr_assert_eq(fx_status(&c).decided_hi, 1u);
    cr_assert_eq(fx_status(&c).next, 2u);
    cr_assert_eq(fx_status(&c).log_bytes, bytes);
    fx_end(&c);
    cr_assert_eq(fx_refbufs, 0);
}
