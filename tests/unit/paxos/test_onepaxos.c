/*
 * Edges of the machine: bounds reached, memory missing, gaps, truncation.
 * Node 0 leads, node 1 accepts, node 2 is neither; node 1 is everybody's
 * parent.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"
#include "tests/unit/paxos/fixture.h"

static struct fx a, b, c; /* leader, acceptor, third */

static void setup_with(const struct qn_params *v)
{
    fx_make(&a, 0, 3, v);
    fx_make(&b, 1, 3, v);
    fx_make(&c, 2, 3, v);
}

static void setup(void)
{
    struct qn_params v = fx_params();
    setup_with(&v);
}

static void teardown(void)
{
    fx_end(&a);
    fx_end(&b);
    fx_end(&c);
    cr_assert_eq(fx_blobs, 0);
}

#define EDGE(name) Test(onepaxos, name, .init = setup, .fini = teardown)
#define TEXT(...)                                                              \
    (const char *const[])                                                      \
    {                                                                          \
        __VA_ARGS__                                                            \
    }

/* Slot s = one command of node 0, "s", sequence s. */
static struct qn_blob *slot_batch(qn_slot_t s)
{
    return fx_batch(0, s, TEXT("x"), 1);
}

static void learn(struct fx *f, qn_slot_t s, qn_slot_t hi)
{
    struct qn_blob *x = slot_batch(s);
    struct qn_msg m = fx_learn(s, x, hi);
    fx_recv(f, 1, &m);
    qn_blob_unref(x);
}

static void fill(struct fx *f, qn_node_t from, qn_slot_t s, qn_slot_t hi,
                 bool last)
{
    struct qn_blob *x = slot_batch(s);
    struct qn_msg m = fx_accept(s, x);
    m.kind = QN_MSG_FILL;
    m.flags = last ? QN_MSG_LAST : 0;
    m.fill.log_lo = 1;
    m.fill.hi = hi;
    fx_recv(f, from, &m);
    qn_blob_unref(x);
}

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

/* -------------------------------------------------------------- bounds -- */

Test(onepaxos, options_out_of_range_have_no_size)
{
    uint64_t inc[QN_NODES_MAX];
    for (uint32_t i = 0; i < QN_NODES_MAX; i++) {
        inc[i] = 1;
    }
    const struct qn_onepaxos_opts good = {.nodes = 3,
                                          .incarnation = inc,
                                          .alloc = &qn_alloc_malloc,
                                          .params = qn_params_default(false)};
    struct qn_onepaxos_opts o = good;
    cr_assert_neq(qn_onepaxos_size(&o), 0u);
    cr_assert_eq((o.nodes = 0, qn_onepaxos_size(&o)), 0u);
    cr_assert_neq((o.nodes = 64, qn_onepaxos_size(&o)), 0u);
    cr_assert_eq((o.nodes = 65, qn_onepaxos_size(&o)), 0u);
    o = good;
    cr_assert_eq((o.self = 3, qn_onepaxos_size(&o)), 0u);
    o = good;
    cr_assert_eq((o.params.ring = 100, qn_onepaxos_size(&o)), 0u);
    o = good;
    cr_assert_eq((o.params.window = 0, qn_onepaxos_size(&o)), 0u);
    inc[2] = 0;
    o = good;
    cr_assert_eq(qn_onepaxos_size(&o), 0u);
}

EDGE(what_finds_no_room_in_the_queue_is_sent_again_when_there_is)
{
    struct qn_blob *own;
    for (uint64_t i = 0; i < 3; i++) { /* QUEUE is 12 */
        struct qn_msg m =
            fx_request(1 + 4 * i, TEXT("1", "2", "3", "4"), 4, &own);
        cr_assert_eq(fx_recv(&a, 2, &m), QN_OK);
        qn_blob_unref(own);
    }
    struct qn_msg m = fx_request(13, TEXT("13"), 1, &own);
    cr_assert_eq(fx_recv(&a, 2, &m), QN_OK); /* nothing behind it waits */
    cr_assert_eq(a.out.count, 0u);
    cr_assert_eq(fx_status(&a).queued, 12u);
    fx_tick(&a);
    cr_assert_eq(fx_count(&a, QN_MSG_ACCEPT), 3u);
    fx_tick(&a);
    cr_assert_eq(fx_to(&a, QN_MSG_REDIRECT, 0), 2u);
    cr_assert_eq(fx_recv(&a, 2, &m), QN_OK); /* the same one again */
    cr_assert_eq(fx_status(&a).queued, 1u);
    qn_blob_unref(own);
}

EDGE(a_request_larger_than_any_queue_is_corrupt)
{
    const char *text[13];
    struct qn_blob *own;
    for (int i = 0; i < 13; i++) {
        text[i] = "x";
    }
    struct qn_msg m = fx_request(1, text, 13, &own);
    cr_assert_eq(fx_recv(&a, 2, &m), QN_ECORRUPT);
    qn_blob_unref(own);
}

EDGE(the_ring_wraps_many_times)
{
    for (qn_slot_t s = 1; s <= 300; s++) { /* RING is 64 */
        fx_submit(&a, "x");
        fx_tick(&a);
        fx_recv(&b, 0, fx_sent(&a, QN_MSG_ACCEPT, 0));
        fx_recv(&a, 1, fx_sent(&b, QN_MSG_ACCEPTED, 0));
        fx_recv(&c, 1, fx_sent(&b, QN_MSG_LEARN, 0));
        cr_assert_eq(fx_status(&c).applied, s);
    }
    /* Nobody said what it has applied: the ring alone bounds the log. */
    cr_assert_eq(fx_status(&b).log_lo, 300u - 63);
    cr_assert_eq(a.slots, 300u);
}

EDGE(a_learn_beyond_the_ring_is_forgotten)
{
    learn(&c, 65, 65);
    cr_assert_eq(fx_status(&c).log_bytes, 0u);
    cr_assert_eq(fx_status(&c).decided_hi, 65u);
    learn(&c, 64, 64);
    cr_assert_neq(fx_status(&c).log_bytes, 0u);
    learn(&c, (UINT64_C(1) << 48) - 1, 1);
}

Test(onepaxos, log_bytes_bound_what_a_laggard_keeps_waiting)
{
    struct qn_params v = fx_params();
    v.log_bytes = 300;
    setup_with(&v);
    for (int i = 0; i < 20; i++) {
        fx_submit(&a, "a command of forty bytes, more or less 4");
        fx_tick(&a);
        fx_recv(&b, 0, fx_sent(&a, QN_MSG_ACCEPT, 0));
        fx_recv(&a, 1, fx_sent(&b, QN_MSG_ACCEPTED, 0));
        fx_tick(&b); /* c has applied nothing: bytes bound the log */
        cr_assert_leq(fx_status(&b).log_bytes, 300u);
    }
    cr_assert_gt(fx_status(&b).log_lo, 10u);
    cr_assert_eq(b.slots, 20u);
    for (qn_slot_t s = 40; s > 1; s--) { /* above a gap: at most LOG_BYTES */
        learn(&c, s, 40);
        cr_assert_leq(fx_status(&c).log_bytes, 300u);
    }
    teardown();
}

Test(onepaxos, window_bytes_bound_what_is_in_flight)
{
    struct qn_params v = fx_params();
    v.batch_commands = 1;
    v.window_bytes = 150;
    setup_with(&v);
    for (int i = 0; i < 4; i++) {
        fx_submit(&a, "a command of forty bytes, more or less 4");
    }
    fx_tick(&a);
    cr_assert_eq(fx_count(&a, QN_MSG_ACCEPT), 2u);
    fx_recv(&b, 0, fx_sent(&a, QN_MSG_ACCEPT, 0));
    fx_recv(&a, 1, fx_sent(&b, QN_MSG_ACCEPTED, 0));
    fx_tick(&a);
    cr_assert_eq(fx_count(&a, QN_MSG_ACCEPT), 1u);
    teardown();
}

Test(onepaxos, one_oversized_command_is_in_flight_alone)
{
    struct qn_params v = fx_params();
    v.queue_bytes = 300; /* 100 for each origin */
    v.window_bytes = 100;
    setup_with(&v);
    char *text = calloc(1, 5001);
    memset(text, 'x', 5000);
    cr_assert_eq(fx_submit(&a, text), QN_OK);
    cr_assert_eq(fx_submit(&a, "y"), QN_EAGAIN);
    fx_tick(&a);
    cr_assert_eq(fx_count(&a, QN_MSG_ACCEPT), 1u);
    fx_recv(&b, 0, fx_sent(&a, QN_MSG_ACCEPT, 0));
    fx_recv(&a, 1, fx_sent(&b, QN_MSG_ACCEPTED, 0));
    cr_assert_eq(fx_submit(&a, "y"), QN_OK);
    cr_assert_eq(fx_submit(&a, text), QN_OK); /* passes the limit, once */
    cr_assert_eq(fx_submit(&a, "z"), QN_EAGAIN);
    free(text);
    teardown();
}

EDGE(a_command_above_the_limit_is_refused)
{
    struct qn_slice part = {(const uint8_t *)"", (size_t)QN_COMMAND_MAX + 1};
    struct qn_slice two[2] = {{part.data, QN_COMMAND_MAX}, {part.data, 1}};
    struct qn_input in = {.kind = QN_IN_SUBMIT, .submit = {&part, 1}};
    cr_assert_eq(qn_onepaxos_step(a.p, &in, 0, 0, &a.out), QN_EMSGSIZE);
    in.submit.parts = two;
    in.submit.count = 2;
    cr_assert_eq(qn_onepaxos_step(a.p, &in, 0, 0, &a.out), QN_EMSGSIZE);
    cr_assert_eq(fx_status(&a).seq, 0u);
}

/* More groups than outputs: apply goes on where it stopped. */
Test(onepaxos, apply_continues_in_the_next_step)
{
    struct qn_params v = qn_params_default(true);
    setup_with(&v);
    struct qn_blob *x = qn_batch_create(&qn_alloc_malloc, 0);
    for (uint64_t seq = 1; seq <= 150; seq++) {
        struct qn_group g = {0, 10, seq, 1, {(const uint8_t *)"\x02x", 2}};
        cr_assert_eq(qn_batch_add(&x, &g), QN_OK);
    }
    struct qn_msg m = fx_learn(1, x, 1);
    fx_recv(&c, 1, &m);
    cr_assert(c.out.again);
    cr_assert_lt(c.applied_count, 64u);
    cr_assert_eq(fx_status(&c).applied, 0u);
    while (c.out.again) {
        fx_tick(&c);
    }
    cr_assert_eq(c.applied_count, 150u);
    cr_assert_eq(c.slots, 1u);
    for (uint32_t i = 0; i < 150; i++) {
        cr_assert_eq(c.applied[i].seq, i + 1);
    }
    qn_blob_unref(x);
    teardown();
}

/* ---------------------------------------------------------------- gaps -- */

EDGE(a_gap_is_fetched_after_t_gap_and_not_before)
{
    const qn_time_t t_gap = fx_params().t_gap;
    learn(&c, 3, 3);
    cr_assert_eq(c.out.deadline, c.now + t_gap);
    fx_later(&c, t_gap - 1);
    cr_assert_eq(fx_count(&c, QN_MSG_FETCH), 0u);
    fx_later(&c, 1);
    cr_assert_eq(fx_to(&c, QN_MSG_FETCH, 0), 1u);
    const struct qn_msg *m = fx_sent(&c, QN_MSG_FETCH, 0);
    cr_assert(m->slot == 1 && m->fetch.last == 2); /* the hole only */
    fill(&c, 1, 1, 3, false);
    cr_assert_eq(c.applied_count, 1u);
    fill(&c, 1, 2, 3, true);
    cr_assert_eq(c.applied_count, 3u);
    fx_later(&c, QN_S);
    cr_assert_eq(fx_count(&c, QN_MSG_FETCH), 0u);
    cr_assert_eq(c.out.deadline, QN_TIME_NEVER);
}

EDGE(a_gap_that_closes_by_itself_is_not_fetched)
{
    learn(&c, 2, 2);
    learn(&c, 1, 2);
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
    fill(&c, 1, 1, 2, false);
    fill(&c, 1, 2, 2, true);
    cr_assert_eq(c.applied_count, 2u);
}

EDGE(a_beat_message_is_a_beat)
{
    struct qn_msg m = {.kind = QN_MSG_BEAT,
                       .beat = {.applied = 1, .learned = 2, .decided = 5}};
    cr_assert_eq(fx_recv(&c, 0, &m), QN_OK);
    cr_assert_eq(fx_status(&c).decided_hi, 5u);
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
    fill(&c, 1, 1, 2, true);
    fx_tick(&c);
    cr_assert_eq(fx_to(&c, QN_MSG_FETCH, 0), 1u); /* it answers: stay */
}

/* A batch that takes longer than T_FETCH to come is not asked for again while
 * its pieces come; those of other messages are no answer. */
EDGE(pieces_of_a_fill_are_signs_of_life)
{
    const struct qn_params v = fx_params();
    fx_beat(&c, 1, 0, 2);
    fx_later(&c, v.t_gap);
    cr_assert_eq(fx_to(&c, QN_MSG_FETCH, 0), 1u);
    for (int i = 0; i < 10; i++) {
        fx_later(&c, v.t_fetch - 1);
        cr_assert_eq(fx_count(&c, QN_MSG_FETCH), 0u, "round %d", i);
        fx_piece(&c, 1, QN_MSG_FILL, 1);
        fx_piece(&c, 0, QN_MSG_FILL, 1);
        cr_assert_eq(c.out.deadline, c.now + v.t_fetch);
    }
    fx_later(&c, v.t_fetch - 1);
    fx_piece(&c, 1, QN_MSG_ACCEPT, 1);
    fx_piece(&c, 0, QN_MSG_FILL, 1);
    fx_later(&c, 1); /* silent since the last piece of its own */
    cr_assert_eq(fx_to(&c, QN_MSG_FETCH, 0), 0u);
}

/* The acceptor says that it has accepted a slot before all of it is here. */
EDGE(a_learn_that_comes_in_pieces_is_no_gap)
{
    const struct qn_params v = fx_params();
    fx_beat(&c, 1, 0, 2);
    for (int i = 0; i < 10; i++) {
        fx_later(&c, v.t_gap - 1);
        cr_assert_eq(fx_count(&c, QN_MSG_FETCH), 0u, "round %d", i);
        fx_piece(&c, 1, QN_MSG_LEARN, 1);
    }
    fx_later(&c, v.t_gap - 1);
    fx_piece(&c, 1, QN_MSG_LEARN, 2); /* slot 1 was lost */
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
        fill(&c, 1, s, 3000, s == 1024);
    }
    fx_tick(&c); /* at once */
    cr_assert_eq(fx_sent(&c, QN_MSG_FETCH, 0)->slot, 1025u);
    cr_assert_eq(fx_sent(&c, QN_MSG_FETCH, 0)->fetch.last, 2048u);
}

EDGE(a_peer_that_is_behind_too_sends_the_learner_elsewhere)
{
    const struct qn_params v = fx_params();
    learn(&c, 3, 3);
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
    fill(&c, 0, 1, 50, true);
    cr_assert(!fx_status(&c).need_snapshot);
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

/* ---------------------------------------------------------------- FILL -- */

static void decide(qn_slot_t n)
{
    for (qn_slot_t s = 1; s <= n; s++) {
        struct qn_blob *x = slot_batch(s);
        struct qn_msg m = fx_accept(s, x);
        cr_assert_eq(fx_recv(&b, 0, &m), QN_OK);
        qn_blob_unref(x);
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

/* 3.7: P slots are not decided and MUST NOT be given out. */
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
    learn(&c, 2, 2);
    fx_beat(&c, 0, 2, 2);
    fx_beat(&c, 1, 2, 2);
    fx_tick(&c);
    cr_assert_eq(fx_status(&c).log_lo, 1u);
    learn(&c, 1, 2);
    cr_assert_eq(c.applied_count, 2u);
}

/* -------------------------------------------------------------- memory -- */

EDGE(submit_without_memory_starts_nothing)
{
    c.memory_left = 0;
    cr_assert_eq(fx_submit(&c, "x"), QN_ENOMEM);
    cr_assert_eq(fx_status(&c).seq, 0u);
    c.memory_left = INT64_MAX;
    cr_assert_eq(fx_submit(&c, "x"), QN_OK);
    cr_assert_eq(c.out.seq, 1u);
}

EDGE(request_without_memory_is_sent_again)
{
    struct qn_blob *own;
    struct qn_msg m = fx_request(1, TEXT("x"), 1, &own);
    a.memory_left = 0;
    cr_assert_eq(fx_recv(&a, 2, &m), QN_OK);
    cr_assert_eq(fx_status(&a).queued, 0u);
    a.memory_left = INT64_MAX;
    fx_tick(&a);
    cr_assert_eq(a.out.count, 0u); /* not at once */
    fx_later(&a, fx_params().t_gap);
    cr_assert_eq(fx_to(&a, QN_MSG_REDIRECT, 0), 2u);
    cr_assert_eq(fx_recv(&a, 2, &m), QN_OK);
    cr_assert_eq(fx_status(&a).queued, 1u);
    qn_blob_unref(own);
}

EDGE(accept_without_memory_can_be_given_again)
{
    struct qn_blob *x = slot_batch(1);
    struct qn_msg m = fx_accept(1, x);
    b.memory_left = 0;
    cr_assert_eq(fx_recv(&b, 0, &m), QN_ENOMEM);
    cr_assert_eq(b.out.count, 0u);
    b.memory_left = INT64_MAX;
    cr_assert_eq(fx_recv(&b, 0, &m), QN_OK);
    cr_assert_eq(b.applied_count, 1u);
    qn_blob_unref(x);
}

EDGE(learn_without_memory_is_fetched_later)
{
    c.memory_left = 0;
    learn(&c, 1, 1);
    cr_assert_eq(c.applied_count, 0u);
    c.memory_left = INT64_MAX;
    fx_later(&c, fx_params().t_gap);
    cr_assert_eq(fx_count(&c, QN_MSG_FETCH), 1u);
    fill(&c, 1, 1, 1, true);
    cr_assert_eq(c.applied_count, 1u);
}

/* The leader's own commands and its stamps wait until there is memory. */
EDGE(the_leader_without_memory_tries_again_at_its_deadline)
{
    fx_submit(&a, "x");
    a.memory_left = 0;
    fx_tick(&a);
    cr_assert_eq(fx_count(&a, QN_MSG_ACCEPT), 0u);
    cr_assert(!a.out.again);
    cr_assert_eq(a.out.deadline, a.now + fx_params().t_gap);
    a.memory_left = INT64_MAX;
    fx_later(&a, fx_params().t_gap);
    cr_assert_eq(fx_count(&a, QN_MSG_ACCEPT), 1u);
    fx_stamp(&a);
    a.memory_left = 0;
    fx_tick(&a);
    cr_assert_eq(fx_count(&a, QN_MSG_ACCEPT), 0u);
    a.memory_left = INT64_MAX;
    fx_later(&a, fx_params().t_gap);
    cr_assert_eq(fx_count(&a, QN_MSG_ACCEPT), 1u);
}

/* When a laggard is back, what was kept for it goes in steps. */
EDGE(a_step_drops_a_bounded_number_of_bytes)
{
    static uint8_t big[100 << 10];
    struct qn_params v = fx_params();
    v.log_bytes = UINT64_MAX;
    teardown();
    setup_with(&v);
    for (qn_slot_t s = 1; s <= 20; s++) {
        struct qn_blob *x = qn_blob_create(&qn_alloc_malloc, sizeof big + 9);
        const struct qn_slice part = {big, sizeof big};
        cr_assert_eq(qn_commands_add(&x, &part, 1), QN_OK);
        struct qn_group g = {0, 10, s, 1, {x->bytes, x->len}};
        struct qn_blob *y = qn_batch_create(&qn_alloc_malloc, 0);
        cr_assert_eq(qn_batch_add(&y, &g), QN_OK);
        struct qn_msg m = fx_learn(s, y, s);
        fx_recv(&c, 1, &m);
        qn_blob_unref(y);
        qn_blob_unref(x);
    }
    fx_tick(&c);
    cr_assert_eq(fx_status(&c).log_lo, 1u, "nobody has said it applied them");
    fx_beat(&c, 0, 20, 20);
    fx_beat(&c, 1, 20, 20);
    fx_tick(&c);
    cr_assert_gt(fx_status(&c).log_lo, 1u);
    cr_assert_leq(fx_status(&c).log_lo, 1u + (512u << 10) / sizeof big + 1);
    for (uint32_t i = 0; i < 20; i++) {
        fx_tick(&c);
    }
    cr_assert_eq(fx_status(&c).log_lo, 21u);
}

/* The shell bounds what is put out; what is learned waits in the log. */
EDGE(no_more_is_applied_than_allowed)
{
    qn_onepaxos_allow(c.p, 0);
    for (qn_slot_t s = 1; s <= 9; s++) {
        learn(&c, s, s);
        cr_assert(c.out.held);
        cr_assert(!c.out.again, "TICK would not help");
    }
    cr_assert_eq(fx_status(&c).learned_hi, 9u);
    cr_assert_eq(c.slots, 0u);
    qn_onepaxos_allow(c.p, 3);
    fx_go(&c);
    cr_assert_eq(c.slots, 3u);
    cr_assert(c.out.held);
    fx_tick(&c);
    cr_assert_eq(c.slots, 3u, "what was allowed is used up");
    qn_onepaxos_allow(c.p, UINT64_MAX);
    fx_go(&c);
    cr_assert_eq(c.slots, 9u);
    cr_assert(!c.out.held);
}

/* A slot that was begun is finished, and one without commands counts. */
EDGE(what_is_allowed_is_counted_by_slots)
{
    struct qn_blob *x = fx_batch(0, 1, TEXT("a", "b", "c"), 3);
    struct qn_blob *y = qn_batch_create(&qn_alloc_malloc, 0);
    struct qn_msg m = fx_learn(1, x, 1);
    qn_onepaxos_allow(c.p, 2);
    fx_recv(&c, 1, &m);
    cr_assert_eq(c.applied_count, 3u);
    m = fx_learn(2, y, 2);
    fx_recv(&c, 1, &m);
    cr_assert_eq(c.slots, 1u);
    cr_assert(c.out.held);
    qn_onepaxos_allow(c.p, 1);
    fx_go(&c);
    cr_assert_eq(c.slots, 2u);
    m = fx_learn(3, y, 3);
    fx_recv(&c, 1, &m);
    cr_assert_eq(c.slots, 2u);
    qn_blob_unref(x);
    qn_blob_unref(y);
}

/* ---------------------------------------------------------- the machine -- */

/* A batch that came in a blob is referred to, not copied. */
EDGE(a_joined_message_is_not_copied)
{
    struct qn_blob *x = slot_batch(1);
    struct qn_msg m = fx_learn(1, x, 1);
    m.blob = x;
    fx_recv(&c, 1, &m);
    cr_assert_eq(c.out.out[0].apply.blob, x);
    qn_blob_unref(x);
}

EDGE(deadline_is_now_while_a_turn_is_pending)
{
    cr_assert_eq(fx_submit(&c, "x"), QN_OK);
    cr_assert_eq(c.out.deadline, c.now);
    fx_tick(&c);
    cr_assert_eq(c.out.deadline, QN_TIME_NEVER);
    cr_assert(!c.out.again);
}

static void same_outputs(const struct fx *x, const struct fx *y)
{
    cr_assert_eq(x->out.count, y->out.count);
    cr_assert_eq(x->out.deadline, y->out.deadline);
    for (uint32_t i = 0; i < x->out.count; i++) {
        const struct qn_out *p = &x->out.out[i], *q = &y->out.out[i];
        cr_assert(p->kind == q->kind);
        if (p->kind != QN_OUT_SEND) {
            continue;
        }
        uint8_t one[QN_HEAD_MAX], two[QN_HEAD_MAX];
        size_t n = qn_msg_head(&p->msg, one);
        cr_assert_eq(n, qn_msg_head(&q->msg, two));
        cr_assert_arr_eq(one, two, n);
        cr_assert_eq(p->msg.body.len, q->msg.body.len);
        cr_assert(p->msg.body.len == 0 ||
                  memcmp(p->msg.body.data, q->msg.body.data, p->msg.body.len) ==
                      0);
    }
}

/* Same state and same input give the same output, byte for byte. */
EDGE(the_machine_is_deterministic)
{
    struct fx twin;
    struct qn_params v = fx_params();
    fx_make(&twin, 0, 3, &v);
    for (int i = 0; i < 40; i++) {
        cr_assert_eq(fx_submit(&a, "x"), fx_submit(&twin, "x"));
        same_outputs(&a, &twin);
        fx_tick(&a);
        fx_tick(&twin);
        same_outputs(&a, &twin);
        if (fx_count(&a, QN_MSG_ACCEPT) != 0) {
            cr_assert_eq(fx_recv(&b, 0, fx_sent(&a, QN_MSG_ACCEPT, 0)), QN_OK);
        }
        if (fx_count(&b, QN_MSG_ACCEPTED) != 0 && i % 3 != 0) {
            fx_recv(&a, 1, fx_sent(&b, QN_MSG_ACCEPTED, 0));
            fx_recv(&twin, 1, fx_sent(&b, QN_MSG_ACCEPTED, 0));
            same_outputs(&a, &twin);
        }
    }
    fx_end(&twin);
}

/* The leader's own requests wait for its queue without keeping it awake. */
EDGE(own_requests_wait_for_a_full_queue_without_spinning)
{
    struct qn_blob *own;
    for (uint64_t i = 0; i < 7; i++) { /* WINDOW 4, QUEUE 12 */
        struct qn_msg m =
            fx_request(1 + 4 * i, TEXT("1", "2", "3", "4"), 4, &own);
        cr_assert_eq(fx_recv(&a, 2, &m), QN_OK);
        fx_tick(&a);
        qn_blob_unref(own);
    }
    cr_assert_eq(fx_submit(&a, "x"), QN_OK);
    fx_tick(&a);
    cr_assert(!a.out.again);
    cr_assert_eq(a.out.deadline, QN_TIME_NEVER);
}
