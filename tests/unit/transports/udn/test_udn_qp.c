/*
 * What is the queuepair's own: frames as messages of words, windows, several
 * peers in one queue, deaths, and damage. The contract is tests/conformance's.
 */
#include "core/qp.h"
#include "tests/unit/core/words/words_world.h"
#include "transports/udn/udn_internal.h"

static struct words_world w;
static uint8_t out[QN_MSG_MAX + 600], in[QN_MSG_MAX];

static struct qn_qp *open_end(qn_node_t self, qn_node_t peer, enum qn_lane lane)
{
    struct qn_qp *qp = NULL;
    const struct qn_qp_opts o = {.device = w.node[self],
                                 .lane = lane,
                                 .cells = 16,
                                 .self = self,
                                 .peer = peer,
                                 .self_inc = w.inc[self],
                                 .peer_inc = w.inc[peer],
                                 .doorbell = &w.doorbell[self],
                                 .ringer = &w.ringer[self][peer]};
    int rc = qn_udn.open(&qp, &o);
    cr_assert_eq(rc, QN_OK, "%s", qn_strerror(rc));
    return qp;
}

static void init(void)
{
    world_make(&w, &qn_udn_device);
    for (uint32_t i = 0; i < sizeof out; i++) {
        out[i] = (uint8_t)(i * 7 + i / 251);
    }
}

static void fini(void)
{
    world_free(&w);
}

#define QP_TEST(name)                                                          \
    Test(udn_qp, name, .init = init, .fini = fini, .timeout = 60)

/* Receive while the sender pushes. */
static int pump(struct qn_qp *from, struct qn_qp *to, size_t *len)
{
    int rc = QN_EAGAIN;
    for (uint32_t turn = 0; turn < 3000 && rc == QN_EAGAIN; turn++) {
        (void)qn_qp_flush(from);
        rc = qn_qp_try_recv(to, in, sizeof in, len);
    }
    return rc;
}

QP_TEST(every_size_arrives_whole)
{
    struct qn_qp *a = open_end(0, 1, QN_LANE_DIRECT);
    struct qn_qp *b = open_end(1, 0, QN_LANE_DIRECT);
    for (uint32_t i = 0; i < 600; i++) {
        uint32_t size = i < 590 ? i : (i - 590) * 7281;
        size_t len = 0;
        cr_assert_eq(qn_qp_try_send(a, out + i, size), QN_OK, "%u", size);
        cr_assert_eq(pump(a, b, &len), QN_OK, "%u", size);
        cr_assert(len == size && memcmp(in, out + i, size) == 0, "%u", size);
    }
    qn_qp_close(a);
    qn_qp_close(b);
}

QP_TEST(a_core_has_room_for_a_window_of_full_frames)
{
    struct qn_qp *a = open_end(0, 1, QN_LANE_DIRECT);
    struct qn_qp *b = open_end(1, 0, QN_LANE_DIRECT);
    size_t len;
    cr_assert_eq(qn_qp_room(a), QN_UDN_WINDOW);
    for (uint32_t i = 0; i < QN_UDN_WINDOW; i++) {
        cr_assert_eq(qn_qp_try_send(a, out, QN_UDN_FRAME_BYTES), QN_OK);
    }
    cr_assert_eq(qn_qp_try_send(a, out, 1), QN_EAGAIN);
    cr_assert_eq(qn_qp_room(a), 0);
    for (uint32_t i = 0; i < QN_UDN_WINDOW; i++) {
        cr_assert_eq(qn_qp_try_recv(b, in, sizeof in, &len), QN_OK);
    }
    (void)qn_qp_flush(b);
    cr_assert_geq(qn_qp_room(a), QN_UDN_WINDOW - QN_UDN_WINDOW / 8);
    qn_qp_close(a);
    qn_qp_close(b);
}

/* Half a window: without a flush; and what is less with one. */
QP_TEST(a_window_comes_back_by_halves_or_at_a_flush)
{
    struct qn_qp *a = open_end(0, 1, QN_LANE_DIRECT);
    struct qn_qp *b = open_end(1, 0, QN_LANE_DIRECT);
    size_t len;
    for (uint32_t i = 0; i < QN_UDN_WINDOW; i++) {
        cr_assert_eq(qn_qp_try_send(a, &i, sizeof i), QN_OK);
    }
    for (uint32_t i = 1; i < QN_UDN_WINDOW / 2; i++) {
        cr_assert_eq(qn_qp_try_recv(b, in, sizeof in, &len), QN_OK);
    }
    cr_assert_eq(qn_qp_room(a), 0);
    cr_assert_eq(qn_qp_try_recv(b, in, sizeof in, &len), QN_OK);
    cr_assert_eq(qn_qp_room(a), QN_UDN_WINDOW / 2);
    cr_assert_eq(qn_qp_try_recv(b, in, sizeof in, &len), QN_OK);
    cr_assert_eq(qn_qp_try_recv(b, in, sizeof in, &len), QN_OK);
    (void)qn_qp_flush(b);
    cr_assert_eq(qn_qp_room(a), QN_UDN_WINDOW / 2 + 2);
    qn_qp_close(a);
    qn_qp_close(b);
}

/* A reply carries what was given back: no message of its own. */
QP_TEST(a_conversation_needs_no_acknowledgements)
{
    struct qn_qp *a = open_end(0, 1, QN_LANE_DIRECT);
    struct qn_qp *b = open_end(1, 0, QN_LANE_DIRECT);
    size_t len;
    for (uint32_t i = 0; i < 1000; i++) {
        cr_assert_eq(qn_qp_try_send(a, &i, sizeof i), QN_OK);
        (void)qn_qp_flush(a);
        cr_assert_eq(qn_qp_try_recv(b, in, sizeof in, &len), QN_OK);
        cr_assert_eq(qn_qp_try_send(b, &i, sizeof i), QN_OK);
        (void)qn_qp_flush(b);
        cr_assert_eq(qn_qp_try_recv(a, in, sizeof in, &len), QN_OK);
    }
    uint64_t state = qn_load(&port_of(&w, 0)->own->state, QN_RELAXED);
    cr_assert_eq(qn_words_tail(port_of(&w, 0)->shape, state, QN_UDN_QUEUE),
                 2000);
    cr_assert_eq(qn_qp_traffic(a).sent, 2000);
    cr_assert_eq(qn_qp_traffic(a).received, 2000);
    qn_qp_close(a);
    qn_qp_close(b);
}

/* Three peers, both lanes: one that is not read stops none of the others. */
QP_TEST(an_end_that_is_not_read_stops_no_other)
{
    struct qn_qp *end[NODES][QN_LANES], *far[NODES][QN_LANES];
    size_t len;
    for (qn_node_t i = 1; i < NODES; i++) {
        for (enum qn_lane l = 0; l < QN_LANES; l++) {
            end[i][l] = open_end(0, i, l);
            far[i][l] = open_end(i, 0, l);
        }
    }
    while (qn_qp_try_send(far[1][0], out, 56) == QN_OK) {
    }
    for (uint32_t k = 0; k < 200; k++) {
        for (qn_node_t i = 1; i < NODES; i++) {
            for (enum qn_lane l = i == 1; l < QN_LANES; l++) {
                uint32_t word[2] = {i, k};
                cr_assert_eq(qn_qp_try_recv(end[i][l], in, sizeof in, &len),
                             QN_EAGAIN);
                cr_assert_eq(qn_qp_try_send(far[i][l], word, 8), QN_OK);
                cr_assert_eq(qn_qp_try_recv(end[i][l], in, sizeof in, &len),
                             QN_OK);
                cr_assert(len == 8 && memcmp(in, word, 8) == 0);
            }
        }
    }
    for (qn_node_t i = 1; i < NODES; i++) {
        for (enum qn_lane l = 0; l < QN_LANES; l++) {
            qn_qp_close(end[i][l]);
            qn_qp_close(far[i][l]);
        }
    }
}

/* It flushes no more before it sleeps. */
QP_TEST(a_peek_that_makes_room_wakes_the_sender)
{
    struct qn_qp *a = open_end(0, 1, QN_LANE_DIRECT);
    struct qn_qp *b = open_end(1, 0, QN_LANE_DIRECT);
    const void *msg;
    size_t len;
    cr_assert_eq(qn_qp_try_send(a, out, 5000), QN_OK);
    qn_doorbell_arm(&w.doorbell[0]);
    cr_assert(qn_qp_flush(a));
    cr_assert_eq(qn_load(&w.line[0].epoch, QN_RELAXED) % 2, 1);
    cr_assert_eq(qn_qp_peek(b, &msg, &len), QN_EAGAIN);
    cr_assert_eq(qn_load(&w.line[0].epoch, QN_RELAXED) % 2, 0, "rung");
    qn_doorbell_disarm(&w.doorbell[0]);
    qn_qp_close(a);
    qn_qp_close(b);
}

/* A full core: another user's words lie in it. */
QP_TEST(a_commit_into_a_full_core_is_pushed_later)
{
    struct qn_qp *a = open_end(0, 1, QN_LANE_DIRECT);
    struct qn_qp *b = open_end(1, 0, QN_LANE_DIRECT);
    void *buf;
    size_t len = 0;
    cr_assert_eq(qn_qp_try_reserve(a, 40, &buf), QN_OK);
    memcpy(buf, out, 40);
    cr_assert_eq(send_run(&w, 2, 1, 3, 0, 118), QN_OK);
    qn_qp_commit(a, 40);
    cr_assert(qn_qp_flush(a), "it waits");
    for (uint32_t i = 1; i < QN_UDN_WINDOW; i++) {
        cr_assert_eq(qn_qp_room(a), QN_UDN_WINDOW - i);
        cr_assert_eq(qn_qp_try_send(a, out + i, 1), QN_OK);
    }
    cr_assert_eq(qn_qp_try_send(a, out, 1), QN_EAGAIN);
    cr_assert_eq(qn_qp_room(a), 0);
    cr_assert_eq(receive_run(&w, 1, 3, 0, 118), QN_OK);
    cr_assert_eq(pump(a, b, &len), QN_OK);
    cr_assert(len == 40 && memcmp(in, out, 40) == 0);
    for (uint32_t i = 1; i < QN_UDN_WINDOW; i++) {
        cr_assert_eq(pump(a, b, &len), QN_OK);
        cr_assert(len == 1 && in[0] == out[i]);
    }
    cr_assert(!qn_qp_flush(a));
    (void)qn_qp_flush(b);
    cr_assert_eq(qn_qp_try_send(a, out, 1), QN_OK);
    qn_qp_close(a);
    qn_qp_close(b);
}

/* An end may be called for the last time before its frame has left. */
QP_TEST(other_ends_send_what_waits_for_room)
{
    struct qn_qp *a = open_end(0, 1, QN_LANE_DIRECT);
    struct qn_qp *b = open_end(1, 0, QN_LANE_DIRECT);
    struct qn_qp *other = open_end(0, 2, QN_LANE_TREE);
    size_t len = 0;
    cr_assert_eq(send_run(&w, 2, 1, 3, 0, 118), QN_OK);
    cr_assert_eq(qn_qp_try_send(a, "waits", 5), QN_OK);
    qn_doorbell_arm(&w.doorbell[0]);
    (void)qn_qp_flush(other);
    cr_assert_eq(qn_load(&w.line[0].epoch, QN_RELAXED) % 2, 1);
    cr_assert_eq(receive_run(&w, 1, 3, 0, 118), QN_OK);
    cr_assert_eq(qn_load(&w.line[0].epoch, QN_RELAXED) % 2, 0, "rung");
    qn_doorbell_disarm(&w.doorbell[0]);
    qn_doorbell_arm(&w.doorbell[1]);
    cr_assert_eq(qn_qp_try_recv(other, in, sizeof in, &len), QN_EAGAIN);
    cr_assert_eq(qn_load(&w.line[1].epoch, QN_RELAXED) % 2, 0, "rung");
    qn_doorbell_disarm(&w.doorbell[1]);
    cr_assert_eq(qn_qp_try_recv(b, in, sizeof in, &len), QN_OK);
    cr_assert_eq(len, 5);
    qn_qp_close(a);
    qn_qp_close(b);
    qn_qp_close(other);
}

/* ---- death ---- */

QP_TEST(frames_that_came_before_their_end_was_opened_are_there)
{
    struct qn_qp *a = open_end(0, 1, QN_LANE_TREE);
    size_t len = 0;
    cr_assert_eq(qn_qp_try_send(a, "early", 5), QN_OK);
    struct qn_qp *b = open_end(1, 0, QN_LANE_TREE);
    cr_assert_eq(qn_qp_try_recv(b, in, sizeof in, &len), QN_OK);
    cr_assert_eq(len, 5);
    qn_qp_close(a);
    qn_qp_close(b);
}

/* Node 1 ends and comes back. Its successor sends before node 0 is told. */
QP_TEST(nothing_of_another_incarnation_arrives)
{
    struct qn_qp *a = open_end(0, 1, QN_LANE_DIRECT);
    struct qn_qp *b = open_end(1, 0, QN_LANE_DIRECT);
    size_t len = 0;
    for (uint32_t i = 0; i < 5; i++) {
        cr_assert_eq(qn_qp_try_send(a, "old", 3), QN_OK);
        cr_assert_eq(qn_qp_try_send(b, "old", 3), QN_OK);
    }
    qn_qp_close(b);
    world_successor(&w, 1);
    b = open_end(1, 0, QN_LANE_DIRECT);
    cr_assert_eq(qn_qp_try_recv(b, in, sizeof in, &len), QN_EAGAIN);
    cr_assert_eq(qn_qp_try_send(b, "new1", 4), QN_OK);
    for (uint32_t i = 0; i < 5; i++) {
        cr_assert_eq(qn_qp_try_recv(a, in, sizeof in, &len), QN_OK);
        cr_assert_eq(len, 3);
    }
    cr_assert_eq(qn_qp_try_recv(a, in, sizeof in, &len), QN_EAGAIN);
    qn_device_down(w.node[0], 1);
    qn_qp_down(a);
    cr_assert_eq(qn_qp_try_recv(a, in, sizeof in, &len), QN_EPEERDEAD);
    qn_qp_close(a);
    a = open_end(0, 1, QN_LANE_DIRECT);
    cr_assert_eq(qn_qp_room(a), QN_UDN_WINDOW);
    cr_assert_eq(qn_qp_try_recv(a, in, sizeof in, &len), QN_OK);
    cr_assert_eq(len, 4);
    cr_assert_eq(qn_qp_try_send(a, "new22", 5), QN_OK);
    cr_assert_eq(qn_qp_try_recv(b, in, sizeof in, &len), QN_OK);
    cr_assert_eq(len, 5);
    qn_qp_close(a);
    qn_qp_close(b);
}

QP_TEST(an_end_that_was_not_told_sees_nothing_of_the_successor)
{
    struct qn_qp *a = open_end(0, 1, QN_LANE_DIRECT);
    struct qn_qp *b = open_end(1, 0, QN_LANE_DIRECT);
    size_t len = 0;
    qn_qp_close(b);
    world_successor(&w, 1);
    qn_device_down(w.node[0], 1);
    qn_device_up(w.node[0], 1, w.inc[1]);
    b = open_end(1, 0, QN_LANE_DIRECT);
    cr_assert_eq(qn_qp_try_send(b, "new", 3), QN_OK);
    cr_assert_eq(qn_qp_try_recv(a, in, sizeof in, &len), QN_EPEERDEAD);
    cr_assert_eq(qn_qp_try_send(a, "old", 3), QN_EPEERDEAD);
    cr_assert_eq(qn_qp_room(a), 0);
    qn_qp_close(a);
    qn_qp_close(b);
}

/* What the dead had sent lies behind a range of a living sender. */
QP_TEST(what_arrived_whole_is_received_after_down)
{
    struct qn_qp *a = open_end(0, 1, QN_LANE_DIRECT);
    struct qn_qp *b = open_end(1, 0, QN_LANE_DIRECT);
    const struct qn_words_target to = {0, QN_UDN_QUEUE};
    size_t len = 0;
    uint64_t ack = QN_UDN_KIND_ACK;
    uint32_t at = only_reserve(&w, 2, 0, QN_UDN_QUEUE, 1);
    cr_assert_eq(qn_qp_try_send(b, "whole", 5), QN_OK);
    cr_assert_eq(qn_qp_try_send(b, out, 5000), QN_OK);
    qn_qp_down(a);
    qn_device_down(w.node[0], 1);
    cr_assert_eq(qn_qp_try_recv(a, in, sizeof in, &len), QN_EAGAIN);
    qn_words_publish(port_of(&w, 2), to, at, &ack, 1);
    cr_assert_eq(qn_qp_try_recv(a, in, sizeof in, &len), QN_OK);
    cr_assert_eq(len, 5);
    cr_assert_eq(qn_qp_try_recv(a, in, sizeof in, &len), QN_EPEERDEAD);
    qn_qp_close(a);
    qn_qp_close(b);
}

QP_TEST(a_sender_at_a_full_core_learns_from_the_device)
{
    struct qn_qp *a = open_end(0, 1, QN_LANE_DIRECT);
    cr_assert_eq(qn_qp_try_send(a, out, 5000), QN_OK);
    cr_assert(qn_qp_flush(a));
    qn_device_down(w.node[2], 1);
    cr_assert_eq(qn_qp_try_send(a, out, 1), QN_EPEERDEAD);
    cr_assert(!qn_qp_flush(a));
    qn_qp_close(a);
}

/* ---- what is refused, and damage ---- */

QP_TEST(open_refuses_what_cannot_work)
{
    struct qn_qp *qp = NULL;
    struct words_world split;
    world_make(&split, &qn_words_split);
    const struct qn_qp_opts good = {.device = w.node[0],
                                    .peer = 1,
                                    .self_inc = w.inc[0],
                                    .peer_inc = w.inc[1]};
    struct qn_qp_opts bad[] = {good, good, good, good, good,
                               good, good, good, good};
    bad[0].device = NULL;
    bad[1].device = split.node[0];
    bad[2].self = 1;
    bad[3].peer = NODES;
    bad[4].peer = 0;
    bad[5].lane = QN_LANES;
    bad[6].self_inc = w.inc[0] + 1;
    bad[7].peer_inc = 0;
    bad[8].msg_max = QN_INPLACE_MAX - 1;
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(bad); i++) {
        cr_assert_eq(qn_udn.open(&qp, &bad[i]), QN_EINVAL, "%u", i);
    }
    cr_assert_null(qp);
    world_free(&split);
}

/* A message of words that is no frame, from node 1. */
QP_TEST(what_is_no_frame_ends_the_queuepair_of_its_sender)
{
    struct bad {
        uint64_t words[8];
        uint32_t n;
    };
    static const struct bad bad[] = {
        {{5}, 1},                                   /* no such kind */
        {{QN_FRAME_MORE | 8 << 4, 0}, 2},           /* inside no message */
        {{QN_FRAME_ONLY | 57 << 4}, 8},             /* too long */
        {{QN_FRAME_ONLY | 8 << 4}, 1},              /* shorter than it says */
        {{QN_FRAME_ONLY, 0}, 2},                    /* longer */
        {{QN_FRAME_ONLY | UINT64_C(1) << 43}, 1},   /* out of sequence */
        {{QN_UDN_KIND_ACK | UINT64_C(1) << 27}, 1}, /* more than was sent */
        {{QN_UDN_KIND_ACK, 0}, 2},
        {{QN_FRAME_FIRST | 8 << 4 | 7 << 10, 0}, 2},   /* more than the total */
        {{QN_FRAME_FIRST | UINT64_C(65537) << 10}, 1}, /* above msg_max */
    };
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(bad); i++) {
        struct qn_qp *a = open_end(0, 1, QN_LANE_DIRECT);
        struct qn_qp *other = open_end(0, 2, QN_LANE_DIRECT);
        struct qn_qp *well = open_end(2, 0, QN_LANE_DIRECT);
        size_t len;
        cr_assert_eq(qn_words_try_send(w.node[1],
                                       (struct qn_words_target){0, 0},
                                       bad[i].words, bad[i].n),
                     QN_OK);
        cr_assert_eq(qn_qp_try_recv(a, in, sizeof in, &len), QN_ECORRUPT, "%u",
                     i);
        cr_assert_eq(qn_qp_try_send(a, "x", 1), QN_ECORRUPT);
        cr_assert_eq(qn_qp_room(a), 0);
        cr_assert(!qn_qp_flush(a));
        cr_assert_eq(qn_qp_try_send(well, "x", 1), QN_OK);
        cr_assert_eq(qn_qp_try_recv(other, in, sizeof in, &len), QN_OK);
        qn_qp_close(a);
        qn_qp_close(other);
        qn_qp_close(well);
        fini();
        init();
    }
}

QP_TEST(a_peer_that_sends_more_than_a_window_ends_its_queuepair)
{
    struct qn_qp *a = open_end(0, 1, QN_LANE_DIRECT);
    size_t len;
    for (uint64_t i = 0; i <= QN_UDN_WINDOW; i++) {
        const uint64_t head = QN_FRAME_ONLY | i << 43;
        cr_assert_eq(qn_words_try_send(
                         w.node[1], (struct qn_words_target){0, 0}, &head, 1),
                     QN_OK);
    }
    cr_assert_eq(qn_qp_try_recv(a, in, sizeof in, &len), QN_OK);
    cr_assert_eq(qn_qp_try_recv(a, in, sizeof in, &len), QN_ECORRUPT);
    qn_qp_close(a);
}
