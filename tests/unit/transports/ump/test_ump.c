/*
 * What is UMP's own: the layout, the wrap of the sequence, and each kind of
 * damage that a peer's memory can show. The contract is tests/conformance's.
 */
#include <stddef.h>

#include "tests/conformance/pair.h"
#include "transports/ump/ump.h"

#define CELLS 16u
#define FULL  (CELLS - 1) /* what a fresh lane holds: ump.h, Segments */

static uint8_t out[QN_MSG_MAX];
static uint8_t in[QN_MSG_MAX];

static struct qn_ump_lane *lane_of(struct pair *p, int i)
{
    return (struct qn_ump_lane *)(void *)p->lane[i];
}

static void open_at(struct pair *p, uint32_t start)
{
    *p = (struct pair){.t = &qn_ump, .cells = CELLS, .inc = {11, 22}};
    for (qn_node_t i = 0; i < 2; i++) {
        p->lane[i] = pair_memory(p->t, CELLS);
    }
    for (qn_node_t i = 0; i < 2; i++) {
        const struct qn_qp_opts o = pair_opts(p, i);
        cr_assert_eq(qn_ump_open_at(&p->end[i], &o, start), QN_OK);
    }
}

Test(ump, a_lane_is_two_lines_and_its_cells)
{
    cr_assert_eq(qn_ump.lane_bytes(16), 128 + 16 * 64);
    cr_assert_eq(qn_ump.lane_bytes(1024), 128 + 1024 * 64);
    cr_assert_eq(sizeof(struct qn_ump_cell), 64);
    cr_assert_eq(offsetof(struct qn_ump_cell, payload), 8);
}

Test(ump, an_end_takes_memory_for_the_longest_message_twice)
{
    static const struct {
        uint32_t msg_max;
        size_t most; /* bytes of an end, its alignment included */
    } row[] = {{QN_INPLACE_MAX, 1024 + 128},
               {1000, 1024 + 2 * 1024 + 128},
               {0, 1024 + 2 * QN_MSG_MAX + 128}};
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(row); i++) {
        struct pair p;
        pair_open_limited(&p, &qn_ump, CELLS, row[i].msg_max, row[i].msg_max);
        cr_assert_leq(pair_end_memory(&p, row[i].msg_max), row[i].most);
        pair_close(&p);
    }
}

Test(ump, the_sequence_wraps_anywhere_in_a_message)
{
    for (uint32_t before = 0; before < 40; before++) {
        struct pair p;
        open_at(&p, 0u - before);
        for (uint32_t n = 0; n < 6; n++) {
            size_t len = 0;
            int rc = QN_EAGAIN;
            uint32_t size = n % 2 == 0 ? 40 : 900 * n;
            pattern(out, size, n);
            cr_assert_eq(qn_qp_try_send(p.end[0], out, size), QN_OK);
            for (int turn = 0; turn < 1000 && rc == QN_EAGAIN; turn++) {
                rc = qn_qp_try_recv(p.end[1], in, sizeof in, &len);
                (void)qn_qp_flush(p.end[0]);
            }
            cr_assert_eq(rc, QN_OK, "message %u, %u before the wrap", n,
                         before);
            cr_assert(len == size && pattern_is(in, len, n));
        }
        pair_close(&p);
    }
}

Test(ump, a_full_ring_stays_full_across_the_wrap)
{
    struct pair p;
    open_at(&p, UINT32_MAX - 3);
    for (uint32_t i = 0; i < FULL; i++) {
        cr_assert_eq(qn_qp_try_send(p.end[0], &i, sizeof i), QN_OK);
    }
    cr_assert_eq(qn_qp_try_send(p.end[0], "x", 1), QN_EAGAIN);
    for (uint32_t i = 0; i < FULL; i++) {
        uint32_t got = 0;
        size_t len;
        cr_assert_eq(qn_qp_try_recv(p.end[1], &got, sizeof got, &len), QN_OK);
        cr_assert_eq(got, i);
    }
    (void)qn_qp_flush(p.end[1]);
    cr_assert_eq(qn_qp_room(p.end[0]), FULL - 1);
    pair_close(&p);
}

/* A cell that node 0 might write next, as far as its place in the ring goes. */
static uint64_t header(uint32_t sequence, uint32_t kind, uint32_t len)
{
    return (uint64_t)sequence << 32 | (uint64_t)1 << 16 | kind << 8 | len;
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

Test(ump, a_cell_that_breaks_the_grammar_ends_the_queuepair)
{
    static const struct {
        uint32_t kind, len;
    } bad[] = {
        {QN_FRAME_ONLY, 57},
        {QN_FRAME_ONLY, 255},
        {QN_FRAME_FIRST, 53},
        {QN_FRAME_MORE, 10},
        {QN_FRAME_LAST, 10},
        {QN_FRAME_ABORT, 0},
        {QN_FRAME_ABORT, 56},
        {5, 0},
        {255, 10},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct pair p;
        open_at(&p, 0);
        struct qn_ump_lane *l = lane_of(&p, 0);
        memset(l->cell[0].payload, 0xff, sizeof l->cell[0].payload);
        qn_store(&l->cell[0].header, header(0, bad[i].kind, bad[i].len),
                 QN_RELEASE);
        expect_corrupt(&p);
        pair_close(&p);
    }
}

Test(ump, a_message_that_does_not_add_up_ends_the_queuepair)
{
    static const struct {
        uint32_t total, kind, len;
    } bad[] = {
        {100, QN_FRAME_LAST, 47},
        {100, QN_FRAME_LAST, 49},
        {100, QN_FRAME_MORE, 49},
        {100, QN_FRAME_FIRST, 48},
        {100, QN_FRAME_ONLY, 48},
        {100, QN_FRAME_ABORT, 1},
        {QN_MSG_MAX + 1, QN_FRAME_MORE, 56},
        {51, QN_FRAME_MORE, 1},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct pair p;
        open_at(&p, 0);
        struct qn_ump_lane *l = lane_of(&p, 0);
        qn_copy_out(l->cell[0].payload, &bad[i].total, 4);
        qn_store(&l->cell[0].header, header(0, QN_FRAME_FIRST, 52), QN_RELEASE);
        qn_store(&l->cell[1].header, header(1, bad[i].kind, bad[i].len),
                 QN_RELEASE);
        expect_corrupt(&p);
        pair_close(&p);
    }
}

Test(ump, a_cell_of_another_generation_or_round_is_not_there)
{
    static const uint64_t other[] = {
        (uint64_t)2 << 16 | 5,                         /* generation 2 */
        (uint64_t)CELLS << 32 | (uint64_t)1 << 16 | 5, /* one round on */
        (uint64_t)UINT32_MAX << 32 | (uint64_t)1 << 16 | 5, 0};
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++) {
        struct pair p;
        const void *msg;
        size_t len;
        open_at(&p, 0);
        qn_store(&lane_of(&p, 0)->cell[0].header, other[i], QN_RELEASE);
        cr_assert_eq(qn_qp_peek(p.end[1], &msg, &len), QN_EAGAIN);
        pair_close(&p);
    }
}

Test(ump, an_acknowledgement_beyond_what_was_sent_ends_the_queuepair)
{
    static const uint64_t bad[] = {
        (uint64_t)1 << 32 | (CELLS + 1), (uint64_t)1 << 32 | UINT32_MAX,
        (uint64_t)2 << 32 | 3, /* of another generation */
        3};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct pair p;
        open_at(&p, 0);
        while (qn_qp_try_send(p.end[0], "x", 1) == QN_OK) {
        }
        qn_store(&lane_of(&p, 1)->ack.read, bad[i], QN_RELEASE);
        cr_assert_eq(qn_qp_try_send(p.end[0], "x", 1), QN_ECORRUPT);
        pair_close(&p);
    }
}

static bool touched(const struct qn_ump_lane *l, uint32_t segment)
{
    const struct qn_ump_cell *first = &l->cell[segment * (CELLS / 8)];
    return qn_load(&first->header, QN_RELAXED) != 0;
}

static void send_and_receive(struct pair *p, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t got = 0;
        size_t len;
        cr_assert_eq(qn_qp_try_send(p->end[0], &i, sizeof i), QN_OK);
        cr_assert_eq(qn_qp_try_recv(p->end[1], &got, sizeof got, &len), QN_OK);
        cr_assert_eq(got, i);
    }
}

Test(ump, a_receiver_that_keeps_up_sees_two_segments)
{
    struct pair p;
    open_at(&p, 0);
    send_and_receive(&p, 1000);
    for (uint32_t i = 0; i < 8; i++) {
        cr_assert_eq(touched(lane_of(&p, 0), i), i < 2, "segment %u", i);
    }
    pair_close(&p);
}

/* A segment that is not written again in 2^32 cells would show its old ones. */
Test(ump, which_segments_they_are_drifts_through_the_lane)
{
    for (uint32_t era = 1; era < 20; era++) {
        struct pair p;
        open_at(&p, era << QN_UMP_DRIFT_SHIFT);
        send_and_receive(&p, 100);
        cr_assert(touched(lane_of(&p, 0), era % 8), "era %u", era);
        pair_close(&p);
    }
}

Test(ump, a_run_that_leads_astray_leads_to_nothing)
{
    for (uint32_t next = 0; next < QN_UMP_SEGMENTS_MAX; next++) {
        struct pair p;
        const void *msg;
        size_t len;
        open_at(&p, 0);
        struct qn_ump_lane *l = lane_of(&p, 0);
        for (uint32_t i = 0; i < 2; i++) {
            qn_store(&l->cell[i].header,
                     header(i, QN_FRAME_ONLY, 5) | next << QN_UMP_NEXT_SHIFT,
                     QN_RELEASE);
            cr_assert_eq(qn_qp_peek(p.end[1], &msg, &len), QN_OK);
            qn_qp_release(p.end[1]);
        }
        cr_assert_eq(qn_qp_peek(p.end[1], &msg, &len), QN_EAGAIN);
        pair_close(&p);
    }
}

/* 65535 openings of one lane: the generation comes round and skips 0. */
Test(ump, the_generation_wraps_past_zero, .timeout = 20)
{
    struct pair p;
    size_t len;
    open_at(&p, 0);
    struct qn_ump_lane *l = lane_of(&p, 0);
    qn_store(&l->control.generation, 0xffff, QN_SEQ_CST);
    for (uint64_t life = 100; life < 103; life++) {
        qn_qp_close(p.end[0]);
        qn_qp_close(p.end[1]);
        p.inc[1] = life;
        pair_open_end(&p, 0);
        pair_open_end(&p, 1);
        cr_assert_eq(qn_load(&l->control.generation, QN_RELAXED), life - 99);
        cr_assert_eq(qn_qp_try_send(p.end[0], "x", 1), QN_OK);
        cr_assert_eq(qn_qp_try_recv(p.end[1], in, sizeof in, &len), QN_OK);
    }
    pair_close(&p);
}

Test(ump, mixing_the_two_views_within_a_message_is_our_own_mistake,
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

Test(ump, releasing_what_was_not_peeked_is_our_own_mistake, .signal = SIGABRT)
{
    struct pair p;
    open_at(&p, 0);
    qn_qp_release(p.end[1]);
}
