/*
 * The contract of core/qp.h, clause by clause, for every transport in the
 * registry: both ends in one thread, so that each state can be reached on
 * purpose. Here: messages and room for them; test_transport_frames.c has the
 * frames, test_transport_lives.c death, successors and damage, and
 * test_transport_nodes.c the threads and the processes.
 */
#include "tests/conformance/pair.h"

static const uint32_t rings[] = {16, 64, 1024};
#define RINGS (sizeof rings / sizeof rings[0])

static uint8_t out[QN_MSG_MAX + 1];
static uint8_t in[QN_MSG_MAX];

Test(transport, registry_finds_each_by_its_name)
{
    FOR_EACH_TRANSPORT(t)
    {
        cr_assert_eq(qn_transport_find(t->name), t);
    }
    cr_assert_null(qn_transport_find("pigeon"));
    cr_assert_not_null(qn_transport_at(0));
}

Test(transport, nothing_sent_is_nothing_to_receive)
{
    FOR_EACH_TRANSPORT(t)
    {
        struct pair p;
        const void *msg;
        size_t len;
        struct qn_frame f;
        pair_open(&p, t, 16);
        cr_assert_eq(qn_qp_peek(p.end[1], &msg, &len), QN_EAGAIN);
        cr_assert_eq(qn_qp_peek_frame(p.end[1], &f), QN_EAGAIN);
        cr_assert(!qn_qp_flush(p.end[0]));
        pair_close(&p);
    }
}

Test(transport, every_size_arrives_whole_through_every_ring, .timeout = 60)
{
    static const uint32_t some[] = {4095,  4096,  4097, 16384,
                                    65534, 65535, 65536};
    FOR_EACH_TRANSPORT(t)
    {
        for (size_t r = 0; r < rings_of(t, RINGS); r++) {
            struct pair p;
            pair_open(&p, t, rings[r]);
            for (uint32_t i = 0; i < 1200 + 7; i++) {
                uint32_t size = i < 1200 ? i : some[i - 1200];
                size_t len = 0;
                pattern(out, size, i);
                cr_assert_eq(qn_qp_try_send(p.end[0], out, size), QN_OK,
                             "size %u ring %u", size, rings[r]);
                cr_assert_eq(pair_pump(&p, in, sizeof in, &len), QN_OK,
                             "size %u", size);
                cr_assert_eq(len, size);
                cr_assert(pattern_is(in, len, i), "size %u", size);
            }
            pair_close(&p);
        }
    }
}

Test(transport, reserve_and_commit_of_every_size_arrive, .timeout = 60)
{
    FOR_EACH_TRANSPORT(t)
    {
        struct pair p;
        pair_open(&p, t, 16);
        for (uint32_t size = 0; size <= QN_MSG_MAX;
             size += size < 300 ? 1 : 5931) {
            void *buf;
            size_t len = 0;
            cr_assert_eq(qn_qp_try_reserve(p.end[0], size, &buf), QN_OK);
            pattern(buf, size, size);
            qn_qp_commit(p.end[0], size);
            cr_assert_eq(pair_pump(&p, in, sizeof in, &len), QN_OK, "size %u",
                         size);
            cr_assert_eq(len, size);
            cr_assert(pattern_is(in, len, size), "size %u", size);
        }
        pair_close(&p);
    }
}

Test(transport, commit_may_be_shorter_than_reserve)
{
    static const uint32_t cut[] = {0, 1, 55, 56, 57, 108, 109, 900};
    FOR_EACH_TRANSPORT(t)
    {
        struct pair p;
        pair_open(&p, t, 16);
        for (size_t i = 0; i < sizeof cut / sizeof cut[0]; i++) {
            void *buf;
            size_t len = 1;
            cr_assert_eq(qn_qp_try_reserve(p.end[0], 1000, &buf), QN_OK);
            pattern(buf, 1000, 5);
            qn_qp_commit(p.end[0], cut[i]);
            cr_assert_eq(pair_pump(&p, in, sizeof in, &len), QN_OK);
            cr_assert_eq(len, cut[i]);
            cr_assert(pattern_is(in, len, 5));
        }
        pair_close(&p);
    }
}

Test(transport, a_forgotten_reserve_leaves_no_trace)
{
    FOR_EACH_TRANSPORT(t)
    {
        struct pair p;
        void *buf;
        size_t len = 0;
        pair_open(&p, t, 16);
        cr_assert_eq(qn_qp_try_reserve(p.end[0], 30, &buf), QN_OK);
        memset(buf, 0xff, 30);
        cr_assert_eq(qn_qp_try_reserve(p.end[0], 3000, &buf), QN_OK);
        memset(buf, 0xff, 3000);
        cr_assert_eq(qn_qp_try_recv(p.end[1], in, sizeof in, &len), QN_EAGAIN);
        cr_assert_eq(qn_qp_try_send(p.end[0], "x", 1), QN_OK);
        cr_assert_eq(pair_pump(&p, in, sizeof in, &len), QN_OK);
        cr_assert_eq(len, 1);
        cr_assert_eq(in[0], 'x');
        pair_close(&p);
    }
}

Test(transport, longer_than_the_limit_is_refused)
{
    FOR_EACH_TRANSPORT(t)
    {
        struct pair p;
        void *buf;
        pair_open(&p, t, 16);
        cr_assert_eq(qn_qp_try_send(p.end[0], out, QN_MSG_MAX + 1),
                     QN_EMSGSIZE);
        cr_assert_eq(qn_qp_try_reserve(p.end[0], QN_MSG_MAX + 1, &buf),
                     QN_EMSGSIZE);
        pair_close(&p);
    }
}

/* Limits at and beside the sizes of cells and lines; 16 cells are less than the
 * longest of the messages. */
static const uint32_t limits[] = {
    QN_INPLACE_MAX, 57, 63, 64, 65, 108, 1000, 1024, 5000, QN_MSG_MAX};

Test(transport, a_message_of_the_agreed_length_passes_and_no_longer_one)
{
    FOR_EACH_TRANSPORT(t)
    {
        for (uint32_t i = 0; i < QN_ARRAY_COUNT(limits); i++) {
            struct pair p;
            void *buf;
            size_t len = 0;
            uint32_t most = limits[i];
            pair_open_limited(&p, t, 16, most, most);
            cr_assert_eq(qn_qp_try_send(p.end[0], out, most + 1), QN_EMSGSIZE);
            cr_assert_eq(qn_qp_try_reserve(p.end[0], most + 1, &buf),
                         QN_EMSGSIZE);
            for (uint32_t n = 0; n < 3; n++) {
                pattern(out, most, n);
                cr_assert_eq(qn_qp_try_send(p.end[0], out, most), QN_OK);
                cr_assert_eq(pair_pump(&p, in, sizeof in, &len), QN_OK);
                cr_assert_eq(len, most);
                cr_assert(pattern_is(in, most, n), "limit %u", most);
            }
            cr_assert_eq(qn_qp_try_reserve(p.end[0], most, &buf), QN_OK);
            pattern(buf, most, 9);
            qn_qp_commit(p.end[0], most);
            cr_assert_eq(pair_pump(&p, in, sizeof in, &len), QN_OK);
            cr_assert(len == most && pattern_is(in, most, 9));
            pair_close(&p);
        }
    }
}

/* A peer that does not keep to what was agreed would write behind our memory:
 * by messages and by frames. */
Test(transport, a_message_longer_than_agreed_is_damage)
{
    FOR_EACH_TRANSPORT(t)
    {
        for (uint32_t view = 0; view < 2; view++) {
            struct pair p;
            struct qn_frame f;
            const void *msg;
            size_t len;
            pair_open_limited(&p, t, 64, 0, 300);
            cr_assert_eq(qn_qp_try_send(p.end[0], out, 300), QN_OK);
            cr_assert_eq(qn_qp_try_send(p.end[0], out, 301), QN_OK);
            qn_qp_flush(p.end[0]);
            cr_assert_eq(pair_pump(&p, in, sizeof in, &len), QN_OK);
            cr_assert_eq(len, 300);
            int rc = view == 0 ? qn_qp_peek(p.end[1], &msg, &len)
                               : qn_qp_peek_frame(p.end[1], &f);
            cr_assert_eq(rc, QN_ECORRUPT);
            pair_close(&p);
        }
    }
}

Test(transport, too_small_a_buffer_keeps_the_message)
{
    FOR_EACH_TRANSPORT(t)
    {
        struct pair p;
        size_t len = 0;
        pair_open(&p, t, 16);
        for (uint32_t size = 2; size < 300; size += 297 / 3) {
            pattern(out, size, size);
            cr_assert_eq(qn_qp_try_send(p.end[0], out, size), QN_OK);
            cr_assert_eq(qn_qp_try_recv(p.end[1], in, size - 1, &len),
                         QN_EMSGSIZE);
            cr_assert_eq(qn_qp_try_recv(p.end[1], in, size, &len), QN_OK);
            cr_assert(pattern_is(in, size, size));
        }
        pair_close(&p);
    }
}

Test(transport, peek_shows_the_same_message_until_release)
{
    FOR_EACH_TRANSPORT(t)
    {
        struct pair p;
        pair_open(&p, t, 16);
        for (uint32_t size = 10; size <= 500; size += 490) {
            const void *msg;
            size_t len = 0;
            pattern(out, size, size);
            cr_assert_eq(qn_qp_try_send(p.end[0], out, size), QN_OK);
            for (int i = 0; i < 3; i++) {
                cr_assert_eq(qn_qp_peek(p.end[1], &msg, &len), QN_OK);
                cr_assert_eq(len, size);
                cr_assert(pattern_is(msg, len, size));
            }
            qn_qp_release(p.end[1]);
            cr_assert_eq(qn_qp_peek(p.end[1], &msg, &len), QN_EAGAIN);
        }
        pair_close(&p);
    }
}

Test(transport, a_full_ring_says_again_and_loses_nothing)
{
    FOR_EACH_TRANSPORT(t)
    {
        for (size_t r = 0; r < rings_of(t, RINGS); r++) {
            struct pair p;
            pair_open(&p, t, rings[r]);
            uint32_t sent = 0;
            const uint32_t room = qn_qp_room(p.end[0]);
            const uint32_t cells = has_lanes(t) ? rings[r] : room;
            cr_assert_gt(cells, 0);
            cr_assert_geq(room, cells - cells / 8);
            while (qn_qp_try_send(p.end[0], &sent, sizeof sent) == QN_OK) {
                sent++;
            }
            cr_assert_eq(sent, room, "what was promised fits");
            cr_assert_eq(qn_qp_room(p.end[0]), 0);
            for (uint32_t i = 0; i < sent; i++) {
                uint32_t got = 0;
                size_t len = 0;
                cr_assert_eq(qn_qp_try_recv(p.end[1], &got, sizeof got, &len),
                             QN_OK);
                cr_assert_eq(got, i);
            }
            /* Lazy, but not beyond a flush. */
            qn_qp_flush(p.end[1]);
            cr_assert_geq(qn_qp_room(p.end[0]), cells - cells / 8);
            cr_assert_eq(qn_qp_try_send(p.end[0], "x", 1), QN_OK);
            pair_close(&p);
        }
    }
}

Test(transport, unflushed_acknowledgements_still_make_room)
{
    FOR_EACH_TRANSPORT(t)
    {
        struct pair p;
        size_t len;
        pair_open(&p, t, 16);
        for (uint32_t i = 0; i < 1000; i++) {
            uint32_t got;
            while (qn_qp_try_send(p.end[0], &i, sizeof i) == QN_EAGAIN) {
                cr_assert_eq(qn_qp_try_recv(p.end[1], &got, 4, &len), QN_OK);
            }
        }
        pair_close(&p);
    }
}

Test(transport, a_staged_message_goes_first_and_blocks_the_others)
{
    FOR_EACH_TRANSPORT(t)
    {
        struct pair p;
        void *buf;
        size_t len = 0;
        pair_open(&p, t, 16);
        pattern(out, QN_MSG_MAX, 1);
        cr_assert_eq(qn_qp_try_send(p.end[0], out, QN_MSG_MAX), QN_OK);
        cr_assert_eq(qn_qp_try_send(p.end[0], "x", 1), QN_EAGAIN);
        cr_assert_eq(qn_qp_try_reserve(p.end[0], 1, &buf), QN_EAGAIN);
        cr_assert_eq(qn_qp_room(p.end[0]), 0);
        cr_assert(qn_qp_flush(p.end[0]), "cells are staged");
        cr_assert_eq(pair_pump(&p, in, sizeof in, &len), QN_OK);
        cr_assert_eq(len, QN_MSG_MAX);
        cr_assert(pattern_is(in, len, 1));
        cr_assert(!qn_qp_flush(p.end[0]));
        cr_assert_eq(qn_qp_try_send(p.end[0], "x", 1), QN_OK);
        cr_assert_eq(pair_pump(&p, in, sizeof in, &len), QN_OK);
        cr_assert_eq(len, 1);
        pair_close(&p);
    }
}

/* "Any try call" pushes: without a single flush of the sender. */
Test(transport, try_calls_push_what_is_staged)
{
    FOR_EACH_TRANSPORT(t)
    {
        struct pair p;
        size_t len = 0;
        int rc = QN_EAGAIN;
        pair_open(&p, t, 16);
        pattern(out, 5000, 1);
        cr_assert_eq(qn_qp_try_send(p.end[0], out, 5000), QN_OK);
        for (int i = 0; i < 1000 && rc == QN_EAGAIN; i++) {
            rc = qn_qp_try_recv(p.end[1], in, sizeof in, &len);
            (void)qn_qp_try_send(p.end[0], "x", 1);
        }
        cr_assert_eq(rc, QN_OK);
        cr_assert(len == 5000 && pattern_is(in, len, 1));
        pair_close(&p);
    }
}

Test(transport, a_full_lane_does_not_stop_the_other)
{
    FOR_EACH_TRANSPORT(t)
    {
        if (!has_lanes_apart(t)) {
            continue;
        }
        struct pair direct;
        struct pair tree;
        size_t len;
        pair_open(&direct, t, 16);
        pair_open_tree(&tree, &direct);
        while (qn_qp_try_send(direct.end[0], out, 56) == QN_OK) {
        }
        cr_assert_eq(qn_qp_try_send(tree.end[0], "t", 1), QN_OK);
        cr_assert_eq(qn_qp_try_recv(tree.end[1], in, sizeof in, &len), QN_OK);
        cr_assert_eq(in[0], 't');
        pair_close(&tree);
        pair_close(&direct);
    }
}

Test(transport, both_directions_at_once)
{
    FOR_EACH_TRANSPORT(t)
    {
        struct pair p;
        uint32_t got[2] = {0, 0};
        uint32_t sent[2] = {0, 0};
        pair_open(&p, t, 16);
        for (int turn = 0; turn < 100000 && got[0] + got[1] < 400; turn++) {
            for (int e = 0; e < 2; e++) {
                size_t len = 0;
                uint32_t size = (sent[e] * 37) % 700;
                pattern(out, size, sent[e]);
                sent[e] += qn_qp_try_send(p.end[e], out, size) == QN_OK;
                if (qn_qp_try_recv(p.end[e], in, sizeof in, &len) == QN_OK) {
                    cr_assert_eq(len, (got[e] * 37) % 700);
                    cr_assert(pattern_is(in, len, got[e]));
                    got[e]++;
                }
            }
        }
        cr_assert_geq(got[0] + got[1], 400);
        pair_close(&p);
    }
}

/* All that was sent was received. A message has at least one unit. */
static void counts_agree(const struct pair *p, uint32_t messages)
{
    struct qn_qp_traffic a = qn_qp_traffic(p->end[0]);
    struct qn_qp_traffic b = qn_qp_traffic(p->end[1]);
    cr_assert_eq(a.sent, b.received, "%s", p->t->name);
    cr_assert_eq(b.sent, a.received, "%s", p->t->name);
    cr_assert_geq(a.sent, messages, "%s", p->t->name);
    cr_assert_eq(p->end[0]->ops, p->t->ops, "%s", p->t->name);
    cr_assert_neq(p->t->ops->unit, NULL, "%s", p->t->name);
}

/* Random sizes and random turns of both ends, against a counter as model. */
Test(transport, random_traffic_is_fifo_and_whole, .timeout = 60)
{
    FOR_EACH_TRANSPORT(t)
    {
        uint32_t rng = 12345;
        for (uint32_t seed = 0; seed < 30; seed++) {
            struct pair p;
            uint32_t sent = 0;
            uint32_t got = 0;
            uint32_t size_of[4000];
            pair_open(&p, t, rings[seed % rings_of(t, RINGS)]);
            for (uint32_t i = 0; i < 4000; i++) {
                rng = rng * 1664525u + 1013904223u;
                uint32_t dice = rng >> 24;
                size_t len = 0;
                if (dice < 100) {
                    uint32_t size = dice < 90 ? dice : (rng >> 8) % 9000;
                    pattern(out, size, sent);
                    size_of[sent] = size;
                    sent += qn_qp_try_send(p.end[0], out, size) == QN_OK;
                } else if (dice < 220) {
                    if (qn_qp_try_recv(p.end[1], in, sizeof in, &len) ==
                        QN_OK) {
                        cr_assert_lt(got, sent);
                        cr_assert_eq(len, size_of[got]);
                        cr_assert(pattern_is(in, len, got));
                        got++;
                    }
                } else {
                    qn_qp_flush(p.end[dice & 1]);
                }
            }
            cr_assert_gt(got, 100);
            for (; got < sent; got++) {
                size_t len = 0;
                cr_assert_eq(pair_pump(&p, in, sizeof in, &len), QN_OK);
                cr_assert_eq(len, size_of[got]);
            }
            counts_agree(&p, sent);
            pair_close(&p);
        }
    }
}
