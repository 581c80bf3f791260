/*
 * What is ffq's own: the layout, when a mirror word is read, the wrap of
 * positions, and each kind of damage that a peer's memory can show. The
 * contract is tests/conformance's.
 */
#include <stddef.h>

#include "tests/conformance/pair.h"
#include "transports/ffq/ffq.h"

#define CELLS 16u
#define EMPTY 0xffu /* ffq.c */

static uint8_t out[QN_MSG_MAX];
static uint8_t in[QN_MSG_MAX];

static struct qn_ffq_lane *lane_of(const struct pair *p, int i)
{
    return (struct qn_ffq_lane *)(void *)p->lane[i];
}

/* By which end `i` says what it has read. */
static qn_a64 *mirror_of(const struct pair *p, int i)
{
    return (qn_a64 *)(void *)&lane_of(p, i)->slot[CELLS];
}

static void open_at(struct pair *p, uint32_t start)
{
    *p = (struct pair){.t = &qn_ffq, .cells = CELLS, .inc = {11, 22}};
    for (qn_node_t i = 0; i < 2; i++) {
        p->lane[i] = pair_memory(p->t, CELLS);
    }
    for (qn_node_t i = 0; i < 2; i++) {
        const struct qn_qp_opts o = pair_opts(p, i);
        cr_assert_eq(qn_ffq_open_at(&p->end[i], &o, start), QN_OK);
    }
}

static uint64_t word(uint32_t position, uint32_t tag, uint32_t kind,
                     uint32_t len)
{
    return (uint64_t)position << 32 | tag << 16 | kind << 8 | len;
}

Test(ffq, a_lane_is_a_line_its_slots_and_a_mirror_word_for_each)
{
    cr_assert_eq(qn_ffq.lane_bytes(16), 64 + 16 * 72);
    cr_assert_eq(qn_ffq.lane_bytes(1024), 64 + 1024 * 72);
    cr_assert_eq(offsetof(struct qn_ffq_lane, slot), 64);
    cr_assert_eq(offsetof(struct qn_ffq_slot, payload), 8);
}

Test(ffq, an_end_takes_memory_for_the_longest_message_twice)
{
    static const struct {
        uint32_t msg_max;
        size_t most; /* bytes of an end, its alignment included */
    } row[] = {{QN_INPLACE_MAX, 1024 + 128},
               {1000, 1024 + 2 * 1024 + 128},
               {0, 1024 + 2 * QN_MSG_MAX + 128}};
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(row); i++) {
        struct pair p;
        pair_open_limited(&p, &qn_ffq, CELLS, row[i].msg_max, row[i].msg_max);
        cr_assert_leq(pair_end_memory(&p, row[i].msg_max), row[i].most);
        pair_close(&p);
    }
}

static void receive(struct pair *p, uint32_t want)
{
    uint32_t got = 0;
    size_t len;
    cr_assert_eq(qn_qp_try_recv(p->end[1], &got, sizeof got, &len), QN_OK);
    cr_assert_eq(got, want);
}

/* The consumer says "empty" at once, without a flush and slot by slot. */
Test(ffq, each_slot_is_given_back_by_its_position)
{
    struct pair p;
    open_at(&p, 7);
    for (uint32_t i = 0; i < 3 * CELLS; i++) {
        uint32_t position = 7 + i;
        cr_assert_eq(qn_qp_try_send(p.end[0], &i, sizeof i), QN_OK);
        cr_assert_eq(
            qn_load(&lane_of(&p, 0)->slot[position % CELLS].word, QN_ACQUIRE),
            word(position, 1, QN_FRAME_ONLY, 4));
        receive(&p, i);
        cr_assert_eq(qn_load(&mirror_of(&p, 1)[position % CELLS], QN_ACQUIRE),
                     word(position, 1, EMPTY, 0));
    }
    pair_close(&p);
}

/* In the shared form over the word of the slot itself. */
Test(ffq, the_shared_form_says_empty_where_the_slot_said_full)
{
    struct pair p;
    pair_open(&p, &qn_ffq_shared, CELLS);
    cr_assert_eq(p.t->lane_bytes(CELLS), 64 + CELLS * 64);
    for (uint32_t i = 0; i < 3 * CELLS; i++) {
        struct qn_ffq_slot *slot = &lane_of(&p, 0)->slot[i % CELLS];
        cr_assert_eq(qn_qp_try_send(p.end[0], &i, sizeof i), QN_OK);
        cr_assert_eq(qn_load(&slot->word, QN_ACQUIRE),
                     word(i, 1, QN_FRAME_ONLY, 4));
        receive(&p, i);
        cr_assert_eq(qn_load(&slot->word, QN_ACQUIRE), word(i, 1, EMPTY, 0));
    }
    pair_close(&p);
}

/* A lane that is full looks at the next slot's line of mirror words only. */
Test(ffq, a_full_lane_looks_at_one_line_of_mirror_words)
{
    struct pair p;
    open_at(&p, 0);
    for (uint32_t i = 0; i < CELLS; i++) {
        cr_assert_eq(qn_qp_try_send(p.end[0], &i, sizeof i), QN_OK);
    }
    for (uint32_t i = 0; i < CELLS; i++) {
        receive(&p, i);
    }
    cr_assert_eq(qn_qp_try_send(p.end[0], "x", 1), QN_OK);
    for (uint32_t i = 0; i < CELLS; i++) { /* too late for the first line */
        qn_store(&mirror_of(&p, 1)[i], 0, QN_RELEASE);
    }
    for (uint32_t i = 1; i < 8; i++) {
        cr_assert_eq(qn_qp_try_send(p.end[0], "x", 1), QN_OK, "slot %u", i);
    }
    cr_assert_eq(qn_qp_try_send(p.end[0], "x", 1), QN_EAGAIN);
    pair_close(&p);
}

/* "Empty" of another lap, of another opening, or noise, is not "empty". */
Test(ffq, a_word_of_another_lap_or_opening_frees_nothing)
{
    const uint64_t other[] = {
        0,
        1,
        word(0, 2, EMPTY, 0),
        word(0, 0, EMPTY, 0),
        word(CELLS, 1, EMPTY, 0),
        word(0u - CELLS, 1, EMPTY, 0),
        word(1, 1, EMPTY, 0),
        word(0, 1, QN_FRAME_ONLY, 0),
        word(0, 1, EMPTY, 1),
        UINT64_MAX,
    };
    struct pair p;
    open_at(&p, 0);
    while (qn_qp_try_send(p.end[0], "x", 1) == QN_OK) {
    }
    for (size_t i = 0; i < QN_ARRAY_COUNT(other); i++) {
        qn_store(&mirror_of(&p, 1)[0], other[i], QN_RELEASE);
        cr_assert_eq(qn_qp_try_send(p.end[0], "x", 1), QN_EAGAIN, "%zu", i);
        cr_assert_eq(qn_qp_room(p.end[0]), 0);
    }
    qn_store(&mirror_of(&p, 1)[0], word(0, 1, EMPTY, 0), QN_RELEASE);
    cr_assert_eq(qn_qp_try_send(p.end[0], "x", 1), QN_OK);
    pair_close(&p);
}

Test(ffq, a_slot_of_another_lap_or_opening_is_empty)
{
    const uint64_t other[] = {0,
                              word(0, 2, QN_FRAME_ONLY, 5),
                              word(0, 0, QN_FRAME_ONLY, 5),
                              word(CELLS, 1, QN_FRAME_ONLY, 5),
                              word(0u - CELLS, 1, QN_FRAME_ONLY, 5),
                              UINT64_MAX};
    for (size_t i = 0; i < QN_ARRAY_COUNT(other); i++) {
        struct pair p;
        const void *msg;
        size_t len;
        open_at(&p, 0);
        qn_store(&lane_of(&p, 0)->slot[0].word, other[i], QN_RELEASE);
        cr_assert_eq(qn_qp_peek(p.end[1], &msg, &len), QN_EAGAIN, "%zu", i);
        pair_close(&p);
    }
}

Test(ffq, positions_wrap_anywhere_in_a_message)
{
    for (uint32_t before = 0; before < 40; before++) {
        struct pair p;
        open_at(&p, 0u - before);
        for (uint32_t n = 0; n < 6; n++) {
            size_t len = 0;
            uint32_t size = n % 2 == 0 ? 40 : 900 * n;
            pattern(out, size, n);
            cr_assert_eq(qn_qp_try_send(p.end[0], out, size), QN_OK);
            cr_assert_eq(pair_pump(&p, in, sizeof in, &len), QN_OK,
                         "message %u, %u before the wrap", n, before);
            cr_assert(len == size && pattern_is(in, len, n));
        }
        pair_close(&p);
    }
}

Test(ffq, a_full_lane_stays_full_across_the_wrap)
{
    struct pair p;
    open_at(&p, UINT32_MAX - 3);
    for (uint32_t i = 0; i < CELLS; i++) {
        cr_assert_eq(qn_qp_try_send(p.end[0], &i, sizeof i), QN_OK);
    }
    cr_assert_eq(qn_qp_try_send(p.end[0], "x", 1), QN_EAGAIN);
    for (uint32_t i = 0; i < CELLS; i++) {
        receive(&p, i);
    }
    cr_assert_eq(qn_qp_room(p.end[0]), CELLS);
    pair_close(&p);
}

/* 65535 openings of one lane: the tag comes round and skips 0. */
Test(ffq, the_tag_wraps_past_zero)
{
    struct pair p;
    size_t len;
    open_at(&p, 0);
    struct qn_ffq_lane *l = lane_of(&p, 0);
    qn_store(&l->control.tag, 0xffff, QN_SEQ_CST);
    for (uint64_t life = 100; life < 103; life++) {
        qn_qp_close(p.end[0]);
        qn_qp_close(p.end[1]);
        p.inc[1] = life;
        pair_open_end(&p, 0);
        pair_open_end(&p, 1);
        cr_assert_eq(qn_load(&l->control.tag, QN_RELAXED), life - 99);
        cr_assert_eq(qn_qp_try_send(p.end[0], "x", 1), QN_OK);
        cr_assert_eq(qn_qp_try_recv(p.end[1], in, sizeof in, &len), QN_OK);
    }
    pair_close(&p);
}

static void expect_corrupt(struct pair *p)
{
    const void *msg;
    size_t len;
    void *buf;
    struct qn_frame f;
    cr_assert_eq(qn_qp_peek(p->end[1], &msg, &len), QN_ECORRUPT);
    cr_assert_eq(qn_qp_peek_frame(p->end[1], &f), QN_ECORRUPT);
    cr_assert_eq(qn_qp_try_send(p->end[1], "x", 1), QN_ECORRUPT);
    cr_assert_eq(qn_qp_try_reserve(p->end[1], 1, &buf), QN_ECORRUPT);
    cr_assert_eq(qn_qp_room(p->end[1]), 0);
    cr_assert(!qn_qp_flush(p->end[1]));
}

Test(ffq, frames_that_form_no_message_end_the_queuepair)
{
    static const struct {
        uint32_t total, kind[2], len[2];
    } bad[] = {
        {0, {QN_FRAME_ONLY}, {57}},
        {0, {QN_FRAME_ONLY}, {255}},
        {100, {QN_FRAME_FIRST}, {53}},
        {0, {QN_FRAME_MORE}, {10}},
        {0, {QN_FRAME_ABORT}, {0}},
        {0, {EMPTY}, {0}},
        {100, {QN_FRAME_FIRST, QN_FRAME_LAST}, {52, 47}},
        {100, {QN_FRAME_FIRST, QN_FRAME_MORE}, {52, 49}},
        {100, {QN_FRAME_FIRST, QN_FRAME_FIRST}, {52, 48}},
        {QN_MSG_MAX + 1, {QN_FRAME_FIRST, QN_FRAME_MORE}, {52, 56}},
        {51, {QN_FRAME_FIRST, QN_FRAME_MORE}, {52, 1}},
    };
    for (size_t i = 0; i < QN_ARRAY_COUNT(bad); i++) {
        struct pair p;
        open_at(&p, 0);
        struct qn_ffq_slot *slot = lane_of(&p, 0)->slot;
        qn_copy_out(slot[0].payload, &bad[i].total, 4);
        for (uint32_t k = 0; k < 2; k++) {
            qn_store(&slot[k].word, word(k, 1, bad[i].kind[k], bad[i].len[k]),
                     QN_RELEASE);
        }
        expect_corrupt(&p);
        pair_close(&p);
    }
}

Test(ffq, a_tag_of_no_opening_ends_the_queuepair)
{
    static const uint32_t tag[] = {0, 0x10000, UINT32_MAX};
    for (size_t i = 0; i < QN_ARRAY_COUNT(tag); i++) {
        struct pair p;
        open_at(&p, 0);
        qn_store(&lane_of(&p, 0)->control.tag, tag[i], QN_SEQ_CST);
        expect_corrupt(&p);
        pair_close(&p);
    }
}

Test(ffq, mixing_the_two_views_within_a_message_is_our_own_mistake,
     .signal = SIGABRT)
{
    struct pair p;
    struct qn_frame f;
    const void *msg;
    size_t len;
    open_at(&p, 0);
    cr_assert_eq(qn_qp_try_send(p.end[0], out, 300), QN_OK);
    cr_assert_eq(qn_qp_peek_frame(p.end[1], &f), QN_OK);
    qn_qp_release_frame(p.end[1]);
    (void)qn_qp_peek(p.end[1], &msg, &len);
}

Test(ffq, releasing_what_was_not_peeked_is_our_own_mistake, .signal = SIGABRT)
{
    struct pair p;
    open_at(&p, 0);
    qn_qp_release(p.end[1]);
}
