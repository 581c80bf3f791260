/*
 * Edges of the machine: bounds reached, memory missing (test_catch_up.c has
 * gaps). Node 0 leads, node 1 accepts, node 2 is neither; node 1 is everybody's
 * parent.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"
#include "tests/unit/paxos/machine/fixture.h"

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
    cr_assert_eq(fx_refbufs, 0);
}

#define EDGE(name) Test(onepaxos, name, .init = setup, .fini = teardown)
#define TEXT(...)                                                              \
    (const char *const[])                                                      \
    {                                                                          \
        __VA_ARGS__                                                            \
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
    struct qn_refbuf *own;
    for (uint64_t i = 0; i < 3; i++) { /* QUEUE is 12 */
        struct qn_msg m =
            fx_request(1 + 4 * i, TEXT("1", "2", "3", "4"), 4, &own);
        cr_assert_eq(fx_recv(&a, 2, &m), QN_OK);
        qn_refbuf_unref(own);
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
    qn_refbuf_unref(own);
}

EDGE(a_request_larger_than_any_queue_is_corrupt)
{
    const char *text[13];
    struct qn_refbuf *own;
    for (int i = 0; i < 13; i++) {
        text[i] = "x";
    }
    struct qn_msg m = fx_request(1, text, 13, &own);
    cr_assert_eq(fx_recv(&a, 2, &m), QN_ECORRUPT);
    qn_refbuf_unref(own);
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
    fx_learn_slot(&c, 65, 65);
    cr_assert_eq(fx_status(&c).log_bytes, 0u);
    cr_assert_eq(fx_status(&c).decided_hi, 65u);
    fx_learn_slot(&c, 64, 64);
    cr_assert_neq(fx_status(&c).log_bytes, 0u);
    fx_learn_slot(&c, (UINT64_C(1) << 48) - 1, 1);
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
        fx_learn_slot(&c, s, 40);
        cr_assert_leq(fx_status(&c).log_bytes, 300u);
    }
    /* Room is made before a batch comes, not after it. */
    cr_assert_leq(qn_onepaxos_kept(a.p).log.most, 300u);
    cr_assert_leq(qn_onepaxos_kept(b.p).log.most, 300u);
    cr_assert_leq(qn_onepaxos_kept(c.p).log.most, 300u);
    teardown();
}

/* Alone, it decides what it proposes at once. */
Test(onepaxos, a_leader_does_not_run_ahead_of_what_it_has_applied)
{
    struct qn_params v = fx_params();
    struct fx one;
    v.batch_commands = 1;
    v.ahead_bytes = 200;
    v.queue = 64;
    fx_make(&one, 0, 1, &v);
    qn_onepaxos_set_apply_budget(one.p, 0);
    for (int i = 0; i < 20; i++) {
        cr_assert_eq(fx_submit(&one, "a command of forty bytes, more or less"),
                     QN_OK);
    }
    fx_tick(&one);
    qn_slot_t some = fx_status(&one).learned_hi;
    cr_assert(some > 1 && some < 5, "%llu slots", (unsigned long long)some);
    fx_tick(&one);
    cr_assert_eq(fx_status(&one).learned_hi, some);
    for (int i = 0; i < 40; i++) {
        qn_onepaxos_set_apply_budget(one.p, 1);
        fx_tick(&one);
        qn_slot_t ahead = fx_status(&one).learned_hi - one.slots;
        cr_assert_leq(ahead, some);
    }
    cr_assert_eq(one.slots, 20);
    fx_end(&one);
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
    struct qn_refbuf *x = qn_batch_create(&qn_alloc_malloc, 0);
    for (uint64_t seq = 1; seq <= 150; seq++) {
        struct qn_command_run g = {
            0, 10, seq, 1, {(const uint8_t *)"\x02x", 2}};
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
    qn_refbuf_unref(x);
    teardown();
}

/* -------------------------------------------------------------- memory -- */

/* 1: no incarnation comes twice. */
Test(onepaxos, an_incarnation_that_is_not_newer_is_our_own_mistake,
     .init = setup, .signal = SIGABRT)
{
    fx_up(&a, 1, 11);
}

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
    struct qn_refbuf *own;
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
    qn_refbuf_unref(own);
}

EDGE(accept_without_memory_can_be_given_again)
{
    struct qn_refbuf *x = fx_slot_batch(1);
    struct qn_msg m = fx_accept(1, x);
    b.memory_left = 0;
    cr_assert_eq(fx_recv(&b, 0, &m), QN_ENOMEM);
    cr_assert_eq(b.out.count, 0u);
    b.memory_left = INT64_MAX;
    cr_assert_eq(fx_recv(&b, 0, &m), QN_OK);
    cr_assert_eq(b.applied_count, 1u);
    qn_refbuf_unref(x);
}

EDGE(learn_without_memory_is_fetched_later)
{
    c.memory_left = 0;
    fx_learn_slot(&c, 1, 1);
    cr_assert_eq(c.applied_count, 0u);
    c.memory_left = INT64_MAX;
    fx_later(&c, fx_params().t_gap);
    cr_assert_eq(fx_count(&c, QN_MSG_FETCH), 1u);
    fx_fill_slot(&c, 1, 1, 1, true);
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
        struct qn_refbuf *x =
            qn_refbuf_create(&qn_alloc_malloc, sizeof big + 9);
        const struct qn_slice part = {big, sizeof big};
        cr_assert_eq(qn_commands_add(&x, &part, 1), QN_OK);
        struct qn_command_run g = {0, 10, s, 1, {x->bytes, x->len}};
        struct qn_refbuf *y = qn_batch_create(&qn_alloc_malloc, 0);
        cr_assert_eq(qn_batch_add(&y, &g), QN_OK);
        struct qn_msg m = fx_learn(s, y, s);
        fx_recv(&c, 1, &m);
        qn_refbuf_unref(y);
        qn_refbuf_unref(x);
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
    qn_onepaxos_set_apply_budget(c.p, 0);
    for (qn_slot_t s = 1; s <= 9; s++) {
        fx_learn_slot(&c, s, s);
        cr_assert(c.out.apply_pending);
        cr_assert(!c.out.again, "TICK would not help");
    }
    cr_assert_eq(fx_status(&c).learned_hi, 9u);
    cr_assert_eq(c.slots, 0u);
    qn_onepaxos_set_apply_budget(c.p, 3);
    fx_go(&c);
    cr_assert_eq(c.slots, 3u);
    cr_assert(c.out.apply_pending);
    fx_tick(&c);
    cr_assert_eq(c.slots, 3u, "what was allowed is used up");
    qn_onepaxos_set_apply_budget(c.p, UINT64_MAX);
    fx_go(&c);
    cr_assert_eq(c.slots, 9u);
    cr_assert(!c.out.apply_pending);
}

/* What waits goes into the next slot; nobody is asked to tick before it. */
EDGE(a_slowed_leader_fills_a_slot_in_each_gap)
{
    qn_onepaxos_set_propose_interval(a.p, 5 * QN_MS);
    fx_submit(&a, "1");
    fx_tick(&a);
    cr_assert_eq(fx_count(&a, QN_MSG_ACCEPT), 1);
    fx_submit(&a, "2");
    fx_later(&a, 9 * QN_MS); /* 4 late */
    cr_assert_eq(fx_count(&a, QN_MSG_ACCEPT), 1);
    fx_submit(&a, "3");
    fx_submit(&a, "4");
    fx_tick(&a);
    cr_assert_eq(fx_count(&a, QN_MSG_ACCEPT), 0);
    cr_assert(!a.out.again);
    cr_assert_eq(a.out.deadline, a.now + QN_MS);
    fx_later(&a, QN_MS);
    cr_assert_eq(fx_count(&a, QN_MSG_ACCEPT), 1);
    cr_assert_eq(qn_batch_count(fx_sent(&a, QN_MSG_ACCEPT, 0)->body), 2);
}

EDGE(a_leader_that_is_slowed_no_more_goes_on_at_once)
{
    qn_onepaxos_set_propose_interval(a.p, QN_S);
    for (int i = 0; i < 2; i++) {
        fx_submit(&a, "x");
        fx_tick(&a);
    }
    cr_assert_eq(fx_count(&a, QN_MSG_ACCEPT), 0);
    qn_onepaxos_set_propose_interval(a.p, 0);
    fx_tick(&a);
    cr_assert_eq(fx_count(&a, QN_MSG_ACCEPT), 1);
}

/* A slot that was begun is finished, and one without commands counts. */
EDGE(what_is_allowed_is_counted_by_slots)
{
    struct qn_refbuf *x = fx_batch(0, 1, TEXT("a", "b", "c"), 3);
    struct qn_refbuf *y = qn_batch_create(&qn_alloc_malloc, 0);
    struct qn_msg m = fx_learn(1, x, 1);
    qn_onepaxos_set_apply_budget(c.p, 2);
    fx_recv(&c, 1, &m);
    cr_assert_eq(c.applied_count, 3u);
    m = fx_learn(2, y, 2);
    fx_recv(&c, 1, &m);
    cr_assert_eq(c.slots, 1u);
    cr_assert(c.out.apply_pending);
    qn_onepaxos_set_apply_budget(c.p, 1);
    fx_go(&c);
    cr_assert_eq(c.slots, 2u);
    m = fx_learn(3, y, 3);
    fx_recv(&c, 1, &m);
    cr_assert_eq(c.slots, 2u);
    qn_refbuf_unref(x);
    qn_refbuf_unref(y);
}

/* ---------------------------------------------------------- the machine -- */

/* A batch that came in a refbuf is referred to, not copied. */
EDGE(a_joined_message_is_not_copied)
{
    struct qn_refbuf *x = fx_slot_batch(1);
    struct qn_msg m = fx_learn(1, x, 1);
    m.refbuf = x;
    fx_recv(&c, 1, &m);
    cr_assert_eq(c.out.out[0].apply.refbuf, x);
    qn_refbuf_unref(x);
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
    struct qn_refbuf *own;
    for (uint64_t i = 0; i < 7; i++) { /* WINDOW 4, QUEUE 12 */
        struct qn_msg m =
            fx_request(1 + 4 * i, TEXT("1", "2", "3", "4"), 4, &own);
        cr_assert_eq(fx_recv(&a, 2, &m), QN_OK);
        fx_tick(&a);
        qn_refbuf_unref(own);
    }
    cr_assert_eq(fx_submit(&a, "x"), QN_OK);
    fx_tick(&a);
    cr_assert(!a.out.again);
    cr_assert_eq(a.out.deadline, QN_TIME_NEVER);
}

/* ------------------------------------------------------- memory acceptor -- */

#define FIRST_KEPT 300u

static struct qn_ring dead_ring;

static const struct qn_ring *ring_of(void *ctx, qn_node_t node, uint64_t inc)
{
    (void)ctx;
    return node == 2 && inc == 7 ? &dead_ring : NULL;
}

static bool owned_by(void *ctx, uint64_t epoch, qn_node_t *node, uint64_t *inc)
{
    (void)ctx;
    *node = 2;
    *inc = 7;
    return epoch == 3;
}

static void ring_make(struct qn_ring *r, void *mem)
{
    const struct qn_ring_opts o = {.slots = 64, .capacity = 4096};
    memset(mem, 0, qn_ring_bytes(64, 4096));
    qn_ring_open(r, mem, &o);
    qn_ring_begin(r, 1);
}

/* The word has stood at epoch 3 for more entries than are kept: whoever led
 * since ended before it had moved it. Whose ring holds the slots is known all
 * the same, and a follower reads them. */
Test(onepaxos, the_owner_of_the_word_outlives_its_entry)
{
    struct qn_ul_entry ul[QN_UL_KEPT];
    uint64_t inc[3] = {20, 11,
                       12}; /* a later incarnation: slots are those of 10 */
    size_t bytes = qn_align_up(qn_ring_bytes(64, 4096), QN_CACHELINE);
    void *mem[2];
    static struct qn_pair word = {3, 2};
    struct qn_memory_acceptor shared = {
        .accept_register = &word, .ring = ring_of, .owned_by = owned_by};
    for (uint32_t i = 0; i < QN_UL_KEPT; i++) {
        ul[i] = (struct qn_ul_entry){.index = FIRST_KEPT + i,
                                     .tenure = FIRST_KEPT + i,
                                     .kind = QN_UL_LEADER,
                                     .leader = 1,
                                     .leader_inc = 11,
                                     .acceptor = 1,
                                     .acceptor_inc = 11};
    }
    for (int i = 0; i < 2; i++) {
        mem[i] = aligned_alloc(QN_CACHELINE, bytes);
        ring_make(i == 0 ? &shared.own : &dead_ring, mem[i]);
    }
    for (qn_slot_t s = 1; s <= 2; s++) {
        struct qn_refbuf *x = fx_slot_batch(s);
        const struct qn_ring_need all = {.own = 1, .all = 1};
        cr_assert_eq(qn_ring_reserve(&dead_ring, x->len, all), QN_OK);
        qn_ring_write(&dead_ring, s, 3, (struct qn_slice){x->bytes, x->len});
        qn_refbuf_unref(x);
    }
    struct fx f = {.alloc = qn_alloc_malloc, .now = QN_S};
    struct qn_onepaxos_opts o = {.nodes = 3,
                                 .incarnation = inc,
                                 .parent = 1,
                                 .alloc = &f.alloc,
                                 .params = fx_params(),
                                 .memory = &shared,
                                 .ul = ul,
                                 .ul_count = QN_UL_KEPT};
    f.p = qn_onepaxos_init(calloc(1, qn_onepaxos_size(&o)), &o);
    fx_beat(&f, 1, 2, 2); /* slots are decided */
    for (int i = 0; i < 10; i++) {
        fx_later(&f, 10 * QN_MS);
    }
    cr_assert_eq(f.slots, 2);
    fx_end(&f);
    free(mem[0]);
    free(mem[1]);
}

/* An old acceptor has learned the slot of a late ACCEPT from its successor. It
 * compares the two, so it does not make room for it where none is needed. */
Test(onepaxos, a_late_accept_does_not_drop_the_slot_that_it_names)
{
    struct qn_params v = fx_params();
    struct qn_refbuf *batch = fx_slot_batch(1);
    v.log_bytes = 2 * batch->len - 1; /* one, and not two */
    setup_with(&v);
    struct qn_msg learned = fx_learn(1, batch, 1);
    fx_recv(&b, 2, &learned);
    cr_assert_eq(b.slots, 1u, "it is not applied");
    struct qn_msg m = fx_accept(1, batch);
    cr_assert_eq(fx_recv(&b, 0, &m), QN_OK);
    cr_expect_eq(fx_count(&b, QN_MSG_ACCEPTED), 1u);
    qn_refbuf_unref(batch);
    teardown();
}
