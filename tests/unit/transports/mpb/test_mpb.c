/*
 * The queuepair over message buffers: what is its own. The contract of
 * core/qp.h is tests/conformance.
 */
#include <pthread.h>

#include "tests/unit/transports/mpb/mpb_world.h"
#include "transports/mpb/mpb_internal.h"

static struct mpb_world w;
static struct qn_qp *end[2];
static uint8_t out[QN_MSG_MAX];
static uint8_t in[QN_MSG_MAX];

static void open_both(uint32_t nodes, bool strict, uint64_t seed,
                      uint32_t start)
{
    mpb_open_world(&w, nodes, strict, seed);
    end[0] = mpb_open_qp(&w, 0, 1, start);
    end[1] = mpb_open_qp(&w, 1, 0, start);
}

static void close_both(void)
{
    for (qn_node_t i = 0; i < 2; i++) {
        qn_qp_close(end[i]);
        if (w.node[i] != NULL) {
            cr_assert_null(qn_mpb_fault(w.node[i]));
        }
    }
    mpb_close_world(&w);
}

static void fill(uint32_t len, uint32_t number)
{
    for (uint32_t i = 0; i < len; i++) {
        out[i] = (uint8_t)(number * 31 + i * 7);
    }
}

/* One message from end `from`, by turns of both. */
static void pass(uint32_t from, uint32_t len, uint32_t number)
{
    size_t got = 0;
    int rc = QN_EAGAIN;
    fill(len, number);
    cr_assert_eq(qn_qp_try_send(end[from], out, len), QN_OK);
    for (int turn = 0; turn < 3000 && rc == QN_EAGAIN; turn++) {
        qn_qp_flush(end[from]);
        rc = qn_qp_try_recv(end[1 - from], in, sizeof in, &got);
        qn_qp_flush(end[1 - from]);
    }
    cr_assert_eq(rc, QN_OK);
    cr_assert_eq(got, len);
    cr_assert_eq(memcmp(in, out, len), 0);
}

Test(mpb, every_length_passes_both_ways_on_every_chip)
{
    static const uint32_t nodes[] = {2, 5, 48};
    for (uint32_t i = 0; i < 6; i++) {
        open_both(nodes[i / 2], i % 2 != 0, i, 0);
        for (uint32_t len = 0; len < 400; len++) {
            pass(len % 2, len, len);
        }
        pass(0, QN_MSG_MAX, 1);
        pass(1, QN_MSG_MAX - 1, 2);
        close_both();
    }
}

Test(mpb, indices_wrap)
{
    open_both(3, true, 1, UINT32_MAX - 5);
    for (uint32_t i = 0; i < 100; i++) {
        pass(i % 2, i * 5, i);
    }
    close_both();
}

/* All that fits, and not more. */
Test(mpb, a_full_chunk_says_again_and_loses_nothing)
{
    static const uint32_t nodes[] = {2, 3, 9, 48};
    for (uint32_t n = 0; n < 4; n++) {
        struct qn_mpb_layout l;
        uint32_t sent = 0;
        size_t len;
        open_both(nodes[n], true, n, 0);
        cr_assert(qn_mpb_layout(&l, nodes[n], 1));
        cr_assert_eq(qn_qp_room(end[0]), l.cells);
        while (qn_qp_try_send(end[0], &sent, sizeof sent) == QN_OK) {
            sent++;
        }
        cr_assert_eq(sent, l.cells);
        for (uint32_t i = 0; i < sent; i++) {
            uint32_t got;
            cr_assert_eq(qn_qp_try_recv(end[1], &got, sizeof got, &len), QN_OK);
            cr_assert_eq(got, i);
        }
        qn_qp_flush(end[1]);
        cr_assert_eq(qn_qp_room(end[0]), l.cells);
        close_both();
    }
}

Test(mpb, open_refuses_what_cannot_work)
{
    mpb_open_world(&w, 3, false, 1);
    struct qn_qp *qp = NULL;
    const struct qn_qp_opts good = {.device = w.node[0],
                                    .self = 0,
                                    .peer = 1,
                                    .self_inc = 10,
                                    .peer_inc = 11};
    struct qn_qp_opts bad[] = {good, good, good, good, good,
                               good, good, good, good, good};
    bad[0].device = NULL;
    bad[1].self = 1;
    bad[2].peer = 0;
    bad[3].peer = 3;
    bad[4].lane = QN_LANE_TREE;
    bad[5].self_inc = 0;
    bad[6].peer_inc = 0;
    bad[7].msg_max = QN_INPLACE_MAX - 1;
    bad[8].msg_max = QN_MSG_MAX + 1;
    bad[9].tx = in;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cr_assert_eq(qn_mpb.open(&qp, &bad[i]), QN_EINVAL, "case %zu", i);
    }
    cr_assert_null(qp);
    cr_assert_eq(qn_mpb.open(&qp, &good), QN_OK);
    qn_qp_close(qp);
    mpb_close_world(&w);
}

/* ---- incarnations ---- */

Test(mpb, what_a_dead_peer_sent_whole_arrives)
{
    size_t len;
    open_both(2, true, 4, 0);
    cr_assert_eq(qn_qp_try_send(end[0], "whole", 5), QN_OK);
    cr_assert_eq(qn_qp_try_send(end[0], out, QN_MSG_MAX), QN_OK);
    qn_qp_close(end[0]);
    end[0] = NULL;
    mpb_end(&w, 0);
    qn_qp_down(end[1]);
    cr_assert_eq(qn_qp_try_recv(end[1], in, sizeof in, &len), QN_OK);
    cr_assert_eq(len, 5);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(qn_qp_try_recv(end[1], in, sizeof in, &len), QN_EPEERDEAD);
        cr_assert_eq(qn_qp_try_send(end[1], "x", 1), QN_EPEERDEAD);
        cr_assert(!qn_qp_flush(end[1]));
    }
    close_both();
}

/* By then its successor may have opened, whose flags are in the same line. */
Test(mpb, an_end_that_was_told_down_stores_nothing_at_its_peer)
{
    open_both(2, false, 4, 0);
    const struct qn_mpb_end *there =
        (const struct qn_mpb_end *)(const void *)end[0];
    const uint64_t foreign = UINT64_C(0x5555555500000001);
    size_t len;
    for (uint32_t i = 0; i < QN_MPB_CELLS_MAX; i++) {
        cr_assert_eq(qn_qp_try_send(end[0], "x", 1), QN_OK);
        cr_assert_eq(qn_qp_try_send(end[1], "x", 1), QN_OK);
    }
    cr_assert_eq(qn_qp_try_send(end[1], "x", 1), QN_EAGAIN);
    qn_qp_flush(end[1]); /* it wants room */
    qn_qp_down(end[1]);
    for (uint32_t word = 0; word < QN_MPB_LINE_WORDS; word++) {
        qn_mpb_store(mpb_core(&w, 0), 0, there->flag_here, word, foreign);
    }
    for (uint32_t i = 0; i < QN_MPB_CELLS_MAX; i++) {
        cr_assert_eq(qn_qp_try_recv(end[1], in, sizeof in, &len), QN_OK);
        qn_qp_flush(end[1]);
    }
    cr_assert_eq(qn_qp_try_recv(end[1], in, sizeof in, &len), QN_EPEERDEAD);
    for (uint32_t word = 0; word < QN_MPB_LINE_WORDS; word++) {
        cr_assert_eq(qn_mpb_load(mpb_core(&w, 0), 0, there->flag_here, word),
                     foreign, "word %u", word);
    }
    close_both();
}

/* End 1 dies in the middle of traffic and comes back; end 0 opens again before
 * or after it. */
Test(mpb, nothing_of_another_incarnation_is_delivered)
{
    for (uint32_t order = 0; order < 40; order++) {
        size_t len;
        open_both(2, order >= 2, order, 0);
        for (int i = 0; i < 3; i++) {
            cr_assert_eq(qn_qp_try_send(end[0], "old", 3), QN_OK);
            cr_assert_eq(qn_qp_try_send(end[1], "old", 3), QN_OK);
        }
        cr_assert_eq(qn_qp_try_recv(end[1], in, sizeof in, &len), QN_OK);
        qn_qp_close(end[1]);
        mpb_end(&w, 1);
        w.incarnation[1] = 23;
        for (uint32_t k = 0; k < 2; k++) {
            if (k == order % 2) {
                qn_qp_close(end[0]);
                qn_device_up(w.node[0], 1, 23);
                end[0] = mpb_open_qp(&w, 0, 1, 0);
            } else {
                mpb_attach(&w, 1);
                end[1] = mpb_open_qp(&w, 1, 0, 0);
                cr_assert_eq(qn_qp_try_recv(end[1], in, sizeof in, &len),
                             QN_EAGAIN);
            }
        }
        for (qn_node_t e = 0; e < 2; e++) {
            cr_assert_eq(qn_qp_try_recv(end[e], in, sizeof in, &len),
                         QN_EAGAIN);
            cr_assert_eq(qn_qp_room(end[e]), QN_MPB_CELLS_MAX);
        }
        pass(0, 3, 1);
        pass(1, 300, 2);
        close_both();
    }
}

/* ---- damage ---- */

/* Noise over all that a peer writes here, and over its own buffer. */
Test(mpb, a_peer_that_overwrites_memory_harms_only_the_traffic, .timeout = 60)
{
    uint32_t rng = 99;
    uint32_t corrupt = 0;
    for (uint32_t round = 0; round < 300; round++) {
        size_t len = 0;
        open_both(3, false, 1, 0);
        uint8_t *memory = (uint8_t *)mpb_core(&w, 0)->chip->core;
        for (uint32_t i = 0; i < round % 40; i++) {
            (void)qn_qp_try_send(end[0], out, (i * 31) % 400);
            (void)qn_qp_try_recv(end[1], in, sizeof in, &len);
        }
        for (uint32_t i = 0; i < 60; i++) {
            for (uint32_t b = 0; b < 1 + round % 64; b++) {
                rng = rng * 1664525u + 1013904223u;
                memory[(rng >> 8) % (2 * sizeof(struct qn_mpb_core))] =
                    (uint8_t)rng;
            }
            corrupt +=
                qn_qp_try_recv(end[1], in, sizeof in, &len) == QN_ECORRUPT;
            (void)qn_qp_try_send(end[1], out, (i * 61) % 3000);
            (void)qn_qp_flush(end[1]);
            (void)qn_qp_try_send(end[0], out, (i * 61) % 300);
        }
        close_both();
    }
    cr_assert_gt(corrupt, 0);
}

static void expect_corrupt(void)
{
    size_t len;
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(qn_qp_try_recv(end[1], in, sizeof in, &len), QN_ECORRUPT);
        cr_assert_eq(qn_qp_try_send(end[1], "x", 1), QN_ECORRUPT);
    }
    cr_assert_eq(qn_qp_room(end[1]), 0);
    cr_assert(!qn_qp_flush(end[1]));
}

Test(mpb, more_cells_than_there_are_is_damage)
{
    open_both(2, false, 1, 0);
    struct qn_mpb *m = mpb_core(&w, 0);
    uint64_t tag = (uint32_t)qn_mpb_load(m, 1, 0, 0);
    qn_mpb_store(m, 1, 0, 0, (uint64_t)(QN_MPB_CELLS_MAX + 1) << 32 | tag);
    expect_corrupt();
    close_both();
}

Test(mpb, more_read_than_sent_is_damage)
{
    open_both(2, false, 1, 0);
    struct qn_mpb *m = mpb_core(&w, 0);
    uint64_t tag = (uint32_t)qn_mpb_load(m, 1, 0, 1);
    for (uint32_t i = 0; i < QN_MPB_CELLS_MAX; i++) {
        cr_assert_eq(qn_qp_try_send(end[1], "x", 1), QN_OK);
    }
    qn_mpb_store(m, 1, 0, 1, (uint64_t)(QN_MPB_CELLS_MAX + 1) << 32 | tag);
    cr_assert_eq(qn_qp_try_send(end[1], "x", 1), QN_ECORRUPT);
    expect_corrupt();
    close_both();
}

Test(mpb, a_cell_of_another_index_or_length_is_damage)
{
    static const uint64_t heads[] = {UINT64_C(1) << 32 | 5, 57, 5 << 8,
                                     QN_FRAME_MORE << 8 | 5,
                                     QN_FRAME_ABORT << 8};
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        struct qn_mpb_layout l;
        open_both(2, false, 1, 0);
        cr_assert(qn_mpb_layout(&l, 2, 1));
        cr_assert_eq(qn_qp_try_send(end[0], "hello", 5), QN_OK);
        qn_mpb_store(mpb_core(&w, 0), 0, l.chunk, 0, heads[i]);
        expect_corrupt();
        close_both();
    }
}

/* ---- threads ---- */

#define MESSAGES 100000u

static uint32_t length_of(uint32_t i)
{
    return i % 1000 == 999 ? 5000 : i * 2654435761u >> 27;
}

static void *send_all(void *arg)
{
    uint8_t msg[5000];
    (void)arg;
    for (uint32_t i = 0; i < MESSAGES; i++) {
        memset(msg, (int)(i % 251), sizeof msg);
        if (qn_qp_send(end[0], msg, length_of(i), QN_TIME_NEVER) != QN_OK) {
            return arg;
        }
    }
    return qn_qp_drain(end[0], QN_TIME_NEVER) == QN_OK ? NULL : arg;
}

static void run_threads(bool strict, uint64_t seed)
{
    pthread_t sender;
    void *failed;
    open_both(2, strict, seed, 0);
    cr_assert_eq(pthread_create(&sender, NULL, send_all, end), 0);
    for (uint32_t i = 0; i < MESSAGES; i++) {
        size_t len = 0;
        cr_assert_eq(qn_qp_recv(end[1], in, sizeof in, &len, QN_TIME_NEVER),
                     QN_OK);
        cr_assert_eq(len, length_of(i));
        for (size_t b = 0; b < len; b++) {
            cr_assert_eq(in[b], i % 251);
        }
    }
    cr_assert_eq(pthread_join(sender, &failed), 0);
    cr_assert_null(failed);
    close_both();
}

Test(mpb_threads, a_hundred_thousand_messages, .timeout = 120)
{
    run_threads(false, 0);
}

Test(mpb_threads, a_hundred_thousand_on_a_strict_chip, .timeout = 120)
{
    run_threads(true, 2);
}
