/*
 * The contract of core/qp.h for ends that die, come back, were stopped in
 * between, or overwrite their memory.
 */
#include "tests/conformance/pair.h"

static uint8_t out[QN_MSG_MAX];
static uint8_t in[QN_MSG_MAX];

/* End 1 ends, and its next incarnation and end 0 open, in this order or in the
 * other. */
static void pair_reborn(struct pair *p, bool survivor_first)
{
    qn_qp_close(p->end[1]);
    qn_device_detach(p->device[1]);
    p->device[1] = NULL;
    pair_down(p, 1);
    qn_qp_close(p->end[0]);
    p->inc[1]++;
    if (p->area != NULL) {
        qn_device_up(p->device[0], 1, p->inc[1]);
    }
    for (qn_node_t i = 0; i < 2; i++) {
        /* Lanes that both write are made anew, an own one is kept. */
        if (has_lanes(p->t) && (i == 1 || !is_isolated(p->t))) {
            free(p->lane[i]);
            p->lane[i] = pair_memory(p->t, p->cells);
        }
    }
    pair_open_end(p, survivor_first ? 0 : 1);
    pair_open_end(p, survivor_first ? 1 : 0);
}

Test(transport, what_a_dead_peer_half_wrote_is_never_seen)
{
    FOR_EACH_TRANSPORT(t)
    {
        struct pair p;
        size_t len = 0;
        pair_open(&p, t, 16);
        cr_assert_eq(qn_qp_try_send(p.end[0], "whole", 5), QN_OK);
        cr_assert_eq(qn_qp_try_send(p.end[0], out, QN_MSG_MAX), QN_OK);
        pair_down(&p, 0);
        cr_assert_eq(qn_qp_try_recv(p.end[1], in, sizeof in, &len), QN_OK);
        cr_assert_eq(len, 5);
        for (int i = 0; i < 3; i++) {
            cr_assert_eq(qn_qp_try_recv(p.end[1], in, sizeof in, &len),
                         QN_EPEERDEAD);
            cr_assert_eq(qn_qp_try_send(p.end[1], "x", 1), QN_EPEERDEAD);
            cr_assert(!qn_qp_flush(p.end[1]));
        }
        pair_close(&p);
    }
}

Test(transport, down_drops_what_is_staged)
{
    FOR_EACH_TRANSPORT(t)
    {
        struct pair p;
        pair_open(&p, t, 16);
        cr_assert_eq(qn_qp_try_send(p.end[0], out, QN_MSG_MAX), QN_OK);
        pair_down(&p, 1);
        cr_assert(!qn_qp_flush(p.end[0]));
        cr_assert_eq(qn_qp_room(p.end[0]), 0);
        pair_close(&p);
    }
}

/* End 1 dies and comes back, with new memory where there are lanes; end 0 lives
 * on, is told of both, and opens its own end again: on the same memory if it
 * alone writes it. In every order of the two openings nothing of the old
 * incarnation arrives, and all of the new one does. */
Test(transport, a_new_life_gets_what_is_sent_to_it_only)
{
    FOR_EACH_TRANSPORT(t)
    {
        for (uint32_t order = 0; order < 2; order++) {
            struct pair p;
            size_t len = 0;
            pair_open(&p, t, 16);
            const uint32_t fresh = qn_qp_room(p.end[0]);
            for (int e = 0; e < 2; e++) { /* the last one stays half sent */
                cr_assert_eq(qn_qp_try_send(p.end[e], "old", 3), QN_OK);
                cr_assert_eq(qn_qp_try_send(p.end[e], "old", 3), QN_OK);
                cr_assert_eq(qn_qp_try_send(p.end[e], out, 5000), QN_OK);
            }
            cr_assert_eq(pair_pump(&p, in, sizeof in, &len), QN_OK);
            pair_reborn(&p, order == 0);
            for (int e = 0; e < 2; e++) {
                cr_assert_eq(qn_qp_try_recv(p.end[e], in, sizeof in, &len),
                             QN_EAGAIN, "%s", t->name);
                cr_assert_eq(qn_qp_room(p.end[e]), fresh, "%s", t->name);
            }
            for (uint32_t i = 0; i < 50; i++) {
                uint32_t size = i * 37;
                pattern(out, size, i);
                cr_assert_eq(qn_qp_try_send(p.end[0], out, size), QN_OK);
                cr_assert_eq(pair_pump(&p, in, sizeof in, &len), QN_OK);
                cr_assert(len == size && pattern_is(in, len, i));
                cr_assert_eq(qn_qp_try_send(p.end[1], &i, 4), QN_OK);
                cr_assert_eq(qn_qp_try_recv(p.end[0], in, 4, &len), QN_OK);
                cr_assert_eq(memcmp(in, &i, 4), 0);
                qn_qp_flush(p.end[0]);
            }
            pair_close(&p);
        }
    }
}

/* What only the two incarnations in a lane tell: the stopped one of them wakes
 * between the openings. */
Test(transport, nothing_of_another_life_is_delivered)
{
    FOR_EACH_TRANSPORT(t)
    {
        if (!is_isolated(t)) {
            continue;
        }
        for (int order = 0; order < 2; order++) {
            struct pair p;
            size_t len = 0;
            pair_open(&p, t, 16);
            const uint32_t fresh = qn_qp_room(p.end[0]);
            for (int i = 0; i < 9; i++) {
                cr_assert_eq(qn_qp_try_send(p.end[0], "old", 3), QN_OK);
                cr_assert_eq(qn_qp_try_send(p.end[1], "old", 3), QN_OK);
            }
            cr_assert_eq(qn_qp_try_recv(p.end[1], in, sizeof in, &len), QN_OK);
            qn_qp_flush(p.end[1]);
            struct qn_qp *stopped = p.end[1];
            uint8_t *old_memory = p.lane[1];
            p.lane[1] = pair_memory(t, 16);
            p.inc[1] = 23;
            for (int k = 0; k < 2; k++) {
                if (k == order) {
                    qn_qp_close(p.end[0]);
                    pair_open_end(&p, 0);
                } else {
                    pair_open_end(&p, 1);
                }
                /* The stopped one wakes in between, and does its worst. */
                (void)qn_qp_try_send(stopped, "ghost", 5);
                (void)qn_qp_flush(stopped);
                if (k == 0 && order == 1) {
                    cr_assert_eq(qn_qp_try_recv(p.end[1], in, sizeof in, &len),
                                 QN_EAGAIN,
                                 "end 0 has not opened toward this life");
                }
            }
            cr_assert_eq(qn_qp_try_recv(p.end[1], in, sizeof in, &len),
                         QN_EAGAIN);
            cr_assert_eq(qn_qp_try_recv(p.end[0], in, sizeof in, &len),
                         QN_EAGAIN);
            for (int e = 0; e < 2; e++) {
                uint32_t room = qn_qp_room(p.end[e]);
                cr_assert_eq(room, fresh, "no stale acknowledgement counts");
                cr_assert_eq(qn_qp_try_send(p.end[e], "new", 3), QN_OK);
                cr_assert_neq(qn_qp_try_recv(stopped, in, sizeof in, &len),
                              QN_OK);
                cr_assert_eq(qn_qp_try_recv(p.end[1 - e], in, sizeof in, &len),
                             QN_OK);
                cr_assert(len == 3 && memcmp(in, "new", 3) == 0);
            }
            qn_qp_close(stopped);
            free(old_memory);
            pair_close(&p);
        }
    }
}

/* Both nodes die; node 1's memory is the old one seen by a new incarnation of
 * 0. */
Test(transport, a_new_life_ignores_a_lane_meant_for_the_old_one)
{
    FOR_EACH_TRANSPORT(t)
    {
        if (!is_isolated(t)) {
            continue;
        }
        struct pair p;
        size_t len = 0;
        pair_open(&p, t, 16);
        const uint32_t fresh = qn_qp_room(p.end[0]);
        for (int i = 0; i < 3; i++) {
            cr_assert_eq(qn_qp_try_send(p.end[0], "old", 3), QN_OK);
            cr_assert_eq(qn_qp_try_recv(p.end[1], in, sizeof in, &len), QN_OK);
            cr_assert_eq(qn_qp_try_send(p.end[1], "old", 3), QN_OK);
        }
        qn_qp_flush(p.end[1]);
        qn_qp_close(p.end[0]);
        uint8_t *old = p.lane[0];
        p.lane[0] = pair_memory(t, 16);
        p.inc[0] = 12;
        pair_open_end(&p, 0);
        cr_assert_eq(qn_qp_try_recv(p.end[0], in, sizeof in, &len), QN_EAGAIN);
        for (uint32_t i = 0; i < fresh; i++) {
            cr_assert_eq(qn_qp_try_send(p.end[0], "x", 1), QN_OK);
        }
        cr_assert_eq(qn_qp_try_send(p.end[0], "x", 1), QN_EAGAIN,
                     "acknowledgements of the old life free no cell");
        pair_close(&p);
        free(old);
    }
}

Test(transport, open_refuses_what_cannot_work)
{
    FOR_EACH_TRANSPORT(t)
    {
        struct pair p;
        struct qn_qp *qp = NULL;
        pair_open(&p, t, 16);
        const struct qn_qp_opts good = pair_opts(&p, 0);
        struct qn_qp_opts bad[] = {good, good, good, good, good, good,
                                   good, good, good, good, good};
        if (has_lanes(t)) {
            bad[0].cells = 15;
            bad[1].cells = 8;
            bad[2].cells = 131072;
            bad[7].tx = NULL;
            bad[8].rx = NULL;
        } else {
            bad[0].device = bad[1].device = bad[2].device = NULL;
            bad[7].device = bad[8].device = NULL;
        }
        bad[3].self = QN_MEMBERS_MAX;
        bad[4].peer = QN_MEMBERS_MAX;
        bad[5].self_inc = 0;
        bad[6].peer_inc = 0;
        bad[9].msg_max = QN_INPLACE_MAX - 1;
        bad[10].msg_max = QN_MSG_MAX + 1;
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
            cr_assert_eq(t->open(&qp, &bad[i]), QN_EINVAL, "%s, case %zu",
                         t->name, i);
        }
        cr_assert_null(qp);
        struct qn_qp_opts last = good;
        if (has_lanes(t)) {
            last.self = last.peer = QN_MEMBERS_MAX - 1;
        }
        last.msg_max = QN_INPLACE_MAX;
        cr_assert_eq(t->open(&qp, &last), QN_OK);
        qn_qp_close(qp);
        qn_qp_close(NULL);
        pair_close(&p);
    }
}

/* Noise over the whole lane of a peer, at every stage of a conversation. */
Test(transport, a_peer_that_overwrites_its_memory_harms_only_itself,
     .timeout = 60)
{
    FOR_EACH_TRANSPORT(t)
    {
        if (!is_isolated(t)) {
            continue;
        }
        uint32_t rng = 99;
        for (uint32_t round = 0; round < 400; round++) {
            struct pair p;
            size_t len = 0;
            pair_open(&p, t, 16);
            size_t bytes = t->lane_bytes(16);
            for (uint32_t i = 0; i < round % 40; i++) {
                (void)qn_qp_try_send(p.end[0], out, (i * 31) % 400);
                (void)qn_qp_try_send(p.end[1], out, (i * 17) % 400);
                (void)qn_qp_try_recv(p.end[0], in, sizeof in, &len);
                (void)qn_qp_try_recv(p.end[1], in, sizeof in, &len);
            }
            for (uint32_t i = 0; i < 50; i++) {
                rng = rng * 1664525u + 1013904223u;
                size_t from = round % 3 == 0 ? 0 : (rng >> 4) % bytes;
                size_t n = round % 3 == 0 ? bytes : 1 + (rng >> 20) % 16;
                if (from + n > bytes) {
                    n = bytes - from;
                }
                for (size_t b = 0; b < n; b++) {
                    rng = rng * 1664525u + 1013904223u;
                    p.lane[0][from + b] = (uint8_t)(rng >> 24);
                }
                (void)qn_qp_try_recv(p.end[1], in, sizeof in, &len);
                (void)qn_qp_try_send(p.end[1], out, (i * 61) % 3000);
                (void)qn_qp_flush(p.end[1]);
                (void)qn_qp_room(p.end[1]);
            }
            pair_close(&p);
        }
    }
}
