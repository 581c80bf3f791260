/*
 * Words between nodes that are all well, in one thread: order, room, the two
 * kinds of device, what is refused, and what is damaged.
 */
#include "tests/unit/core/words/words_world.h"

static struct words_world w;

static void make_shared(void)
{
    world_make(&w, &qn_words_shared);
}

static void make_split(void)
{
    world_make(&w, &qn_words_split);
}

static void fini(void)
{
    world_free(&w);
}

#define SHARED_TEST(name) Test(words, name, .init = make_shared, .fini = fini)
#define SPLIT_TEST(name)  Test(words, name, .init = make_split, .fini = fini)

SHARED_TEST(nothing_sent_is_nothing_to_receive)
{
    cr_assert_eq(receive_run(&w, 0, 0, 0, 1), QN_EAGAIN);
    cr_assert(qn_words_empty(w.node[0], 0));
}

SHARED_TEST(messages_of_each_size_arrive_in_order)
{
    for (uint32_t n = 1; n <= QN_WORDS_SHARED_MAX; n++) {
        cr_assert_eq(send_run(&w, 1, 0, n % 4, n * 1000, n), QN_OK, "%u", n);
        cr_assert(!qn_words_empty(w.node[0], n % 4));
        cr_assert_eq(receive_run(&w, 0, n % 4, n * 1000, n), QN_OK, "%u", n);
        cr_assert(qn_words_empty(w.node[0], n % 4));
    }
}

SHARED_TEST(a_receive_takes_words_of_several_messages_or_a_part_of_one)
{
    cr_assert_eq(send_run(&w, 1, 0, 2, 10, 3), QN_OK);
    cr_assert_eq(send_run(&w, 2, 0, 2, 13, 2), QN_OK);
    cr_assert_eq(receive_run(&w, 0, 2, 10, 1), QN_OK);
    cr_assert_eq(receive_run(&w, 0, 2, 11, 3), QN_OK);
    cr_assert_eq(receive_run(&w, 0, 2, 14, 2), QN_EAGAIN);
    cr_assert_eq(receive_run(&w, 0, 2, 14, 1), QN_OK);
}

SHARED_TEST(queues_do_not_mix)
{
    for (uint32_t q = 0; q < 4; q++) {
        cr_assert_eq(send_run(&w, 1, 0, q, q * 10, 2), QN_OK);
    }
    for (uint32_t q = 4; q-- > 0;) {
        cr_assert_eq(receive_run(&w, 0, q, q * 10, 2), QN_OK);
        cr_assert(qn_words_empty(w.node[0], q));
    }
}

SHARED_TEST(a_node_sends_to_itself)
{
    cr_assert_eq(send_run(&w, 3, 3, 1, 7, 5), QN_OK);
    cr_assert_eq(receive_run(&w, 3, 1, 7, 5), QN_OK);
}

/* The tails have 14 bits: both wraps, of slots and of positions. */
SHARED_TEST(positions_wrap)
{
    uint64_t sent = 0;
    while (sent < 3u << 14) {
        uint32_t n = 1 + (uint32_t)(sent * 7 % 113);
        cr_assert_eq(send_run(&w, 1, 0, 3, sent, n), QN_OK, "%lu", sent);
        cr_assert_eq(receive_run(&w, 0, 3, sent, n), QN_OK, "%lu", sent);
        sent += n;
    }
    cr_assert_eq(qn_words_room(w.node[1], (struct qn_words_target){0, 3}),
                 QN_WORDS_SHARED_MAX);
}

SPLIT_TEST(positions_of_a_split_one_wrap)
{
    uint64_t sent = 0;
    while (sent < 5u << 11) {
        uint32_t n = 1 + (uint32_t)(sent * 7 % 29);
        for (uint32_t q = 0; q < 4; q++) {
            cr_assert_eq(send_run(&w, 1, 0, q, sent, n), QN_OK, "%lu", sent);
        }
        for (uint32_t q = 0; q < 4; q++) {
            cr_assert_eq(receive_run(&w, 0, q, sent, n), QN_OK, "%lu", sent);
        }
        sent += n;
    }
}

/* ---- room ---- */

SHARED_TEST(a_core_has_room_for_118_words_of_all_queues_together)
{
    const struct qn_words_target to = {0, 3};
    for (uint32_t i = 0; i < 118; i++) {
        cr_assert_eq(qn_words_room(w.node[1], to), 118 - i);
        cr_assert_eq(send_run(&w, 1, 0, i % 4, i, 1), QN_OK, "%u", i);
    }
    cr_assert_eq(qn_words_room(w.node[1], to), 0);
    for (uint32_t q = 0; q < 4; q++) {
        cr_assert_eq(send_run(&w, 2, 0, q, 0, 1), QN_EAGAIN);
    }
    cr_assert_eq(send_run(&w, 2, 1, 0, 0, 118), QN_OK, "another core");
    cr_assert_eq(receive_run(&w, 0, 0, 0, 1), QN_OK);
    cr_assert_eq(send_run(&w, 2, 0, 3, 0, 2), QN_EAGAIN);
    cr_assert_eq(send_run(&w, 2, 0, 3, 0, 1), QN_OK);
}

SHARED_TEST(words_that_were_looked_at_still_take_room)
{
    cr_assert_eq(send_run(&w, 1, 0, 0, 0, 100), QN_OK);
    cr_assert(!qn_words_empty(w.node[0], 0));
    cr_assert_eq(receive_run(&w, 0, 0, 0, 101), QN_EAGAIN);
    cr_assert_eq(send_run(&w, 1, 0, 1, 0, 19), QN_EAGAIN);
    cr_assert_eq(send_run(&w, 1, 0, 1, 0, 18), QN_OK);
}

SPLIT_TEST(each_queue_of_a_split_one_has_room_for_29_words)
{
    for (uint32_t i = 0; i < 29; i++) {
        cr_assert_eq(send_run(&w, 1, 0, 2, i, 1), QN_OK, "%u", i);
    }
    cr_assert_eq(send_run(&w, 1, 0, 2, 29, 1), QN_EAGAIN);
    for (uint32_t q = 0; q < 4; q += q == 1 ? 2 : 1) {
        cr_assert_eq(send_run(&w, 1, 0, q, 0, 29), QN_OK, "not stopped");
        cr_assert_eq(receive_run(&w, 0, q, 0, 29), QN_OK);
    }
    cr_assert_eq(receive_run(&w, 0, 2, 0, 29), QN_OK);
    cr_assert_eq(send_run(&w, 1, 0, 2, 29, 29), QN_OK);
}

SHARED_TEST(a_message_of_no_words_or_too_many_is_refused)
{
    cr_assert_eq(send_run(&w, 1, 0, 0, 0, 0), QN_EMSGSIZE);
    cr_assert_eq(send_run(&w, 1, 0, 0, 0, 119), QN_EMSGSIZE);
    cr_assert_eq(receive_run(&w, 0, 0, 0, 0), QN_EMSGSIZE);
    cr_assert_eq(receive_run(&w, 0, 0, 0, 119), QN_EMSGSIZE);
}

SPLIT_TEST(a_split_one_refuses_messages_of_more_than_29_words)
{
    cr_assert_eq(send_run(&w, 1, 0, 0, 0, 30), QN_EMSGSIZE);
    cr_assert_eq(receive_run(&w, 0, 0, 0, 30), QN_EMSGSIZE);
}

SHARED_TEST(a_send_or_receive_that_waits_ends_at_its_deadline)
{
    uint64_t word = 0;
    const qn_time_t soon = qn_clock_now() + 2 * QN_MS;
    cr_assert_eq(qn_words_receive(w.node[0], 0, &word, 1, soon), QN_ETIMEDOUT);
    cr_assert_eq(send_run(&w, 1, 0, 0, 0, 118), QN_OK);
    cr_assert_eq(qn_words_send(w.node[1], (struct qn_words_target){0, 0}, &word,
                               1, soon),
                 QN_ETIMEDOUT);
}

/* ---- the device ---- */

Test(words, a_device_has_two_to_72_cores)
{
    struct qn_device_opts o = {.nodes = 72, .lanes = 2};
    size_t bytes = qn_words_shared.bytes(&o);
    cr_assert_gt(bytes, 72 * 4 * 128 * 16);
    cr_assert_lt(bytes, 72 * 9000);
    cr_assert_eq(bytes % 4096, 0);
    o.nodes = 73;
    cr_assert_eq(qn_words_shared.bytes(&o), 0);
    o.nodes = 1;
    cr_assert_eq(qn_words_split.bytes(&o), 0);
    o = (struct qn_device_opts){.nodes = 2, .lanes = QN_LANES + 1};
    cr_assert_eq(qn_words_shared.bytes(&o), 0);
}

SHARED_TEST(attach_refuses_what_cannot_work)
{
    struct qn_device *d = NULL;
    struct qn_device_opts other = w.opts;
    const struct qn_device_attach_opts good = {
        .memory = w.memory, .opts = &w.opts, .self = 1, .incarnation = w.inc};
    struct qn_device_attach_opts o = good;
    o.self = NODES;
    cr_assert_eq(w.type->attach(&d, &o), QN_EINVAL);
    o = good;
    o.memory = w.memory + 8;
    cr_assert_eq(w.type->attach(&d, &o), QN_EINVAL);
    o = good;
    w.inc[1] = 0;
    cr_assert_eq(w.type->attach(&d, &o), QN_EINVAL);
    w.inc[1] = UINT64_C(1) << 63;
    cr_assert_eq(w.type->attach(&d, &o), QN_EINVAL);
    w.inc[1] = 12;
    other.nodes = NODES - 1;
    o.opts = &other;
    cr_assert_eq(w.type->attach(&d, &o), QN_ECORRUPT);
    cr_assert_eq(qn_words_split.attach(&d, &good), QN_ECORRUPT);
    memset(w.memory, 0, 8);
    cr_assert_eq(w.type->attach(&d, &good), QN_ECORRUPT);
    cr_assert_null(d);
}

/* ---- damage: each value that is read is checked ---- */

SHARED_TEST(a_header_that_cannot_be_ends_the_receiver)
{
    static const uint64_t bad[] = {
        (UINT64_C(1) << 60) | 1 << 21,             /* no words */
        (UINT64_C(1) << 60) | 4 << 21 | 1 << 14,   /* no such sender */
        (UINT64_C(1) << 60) | 1 << 21 | 119 << 14, /* more than there is room */
    };
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(bad); i++) {
        uint64_t word;
        struct qn_words_port *p = port_of(&w, 0);
        qn_store(&p->own->slot[0][0].header, bad[i], QN_RELAXED);
        cr_assert_eq(qn_words_try_receive(w.node[0], 0, &word, 1), QN_ECORRUPT,
                     "%u", i);
        cr_assert_eq(qn_words_try_receive(w.node[0], 1, &word, 1), QN_ECORRUPT);
        cr_assert_eq(send_run(&w, 0, 1, 0, 0, 1), QN_ECORRUPT);
        p->corrupt = false;
    }
}

SHARED_TEST(a_state_that_cannot_be_ends_the_sender)
{
    qn_store(&port_of(&w, 0)->own->state, UINT64_C(119) << 56, QN_RELAXED);
    cr_assert_eq(send_run(&w, 1, 0, 0, 0, 1), QN_ECORRUPT);
    cr_assert_eq(qn_words_room(w.node[1], (struct qn_words_target){0, 0}), 0);
}

SHARED_TEST(a_state_that_cannot_be_ends_an_attach)
{
    struct qn_device *d = NULL;
    const struct qn_device_attach_opts o = {
        .memory = w.memory, .opts = &w.opts, .self = 1, .incarnation = w.inc};
    qn_store(&port_of(&w, 1)->own->state, 119, QN_RELAXED);
    cr_assert_eq(w.type->attach(&d, &o), QN_ECORRUPT);
    /* Not too much for one queue, but for all. */
    qn_store(&port_of(&w, 1)->own->state, 60 | 60 << 14, QN_RELAXED);
    cr_assert_eq(w.type->attach(&d, &o), QN_ECORRUPT);
    cr_assert_null(d);
}
