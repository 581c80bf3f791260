/*
 * Acknowledgement and room: a sender that waits for room sleeps until there is
 * some and no longer, and the sequence wraps.
 */
#include "tests/sim/lanes/lane_world.h"
#include "tests/support/test.h"

LANE_SCENARIO(a_sender_that_waits_for_room_is_woken)
{
    for (int futex = 0; futex <= 1; futex++) {
        lane_explore_traffic((struct lane_world){.futex = futex,
                                                 .filled = lane_kind.full,
                                                 .messages = 1,
                                                 .bytes = 8},
                             2, 0);
    }
}

/* Reads what is there and goes on to other things. */
static void reads_and_goes(void *ctx)
{
    struct lane_world *w = ctx;
    uint8_t msg[LANE_MESSAGE_MAX];
    size_t len;
    for (uint32_t n = 0; n < w->reads; n++) {
        if (qn_qp_try_recv(w->qp[1], msg, sizeof msg, &len) != QN_OK) {
            qn_sim_fail("recv");
        }
        lane_take(w, msg, len);
    }
    (void)qn_qp_flush(w->qp[1]);
}

static const char *sender_done(void *ctx)
{
    (void)ctx;
    return qn_sim_end_of(0) == QN_SIM_DONE ? NULL
                                           : "the sender sleeps for ever";
}

static void explore_room(uint32_t reads, bool flushed)
{
    for (int futex = 0; futex <= 1; futex++) {
        struct lane_world w = {.futex = futex,
                               .filled = lane_kind.full,
                               .messages = 1,
                               .bytes = 8,
                               .reads = reads,
                               .flushed = flushed};
        lane_explore(
            (struct qn_explore_opts){.node = {lane_sender, reads_and_goes},
                                     .check = sender_done,
                                     .deviations = 2},
            &w);
    }
}

LANE_SCENARIO(a_flush_alone_tells_of_room)
{
    explore_room(lane_kind.full, false);
}

/* One run of cells: few acknowledgements, so that in C11 the sender may find
 * the oldest of them. And with nothing to ring for, want and ack are alone: no
 * fence of the doorbell orders them. */
LANE_SCENARIO(a_flush_of_little_tells_of_room)
{
    explore_room(2, false);
    explore_room(2, true);
}

/* The receiver may consume the ring in its last look before it sleeps. */
LANE_SCENARIO(a_message_longer_than_the_ring_gets_through)
{
    for (int futex = 0; futex <= 1; futex++) {
        lane_explore_traffic((struct lane_world){.futex = futex,
                                                 .filled = lane_kind.full - 4,
                                                 .messages = 1,
                                                 .bytes = 56},
                             3, 0);
        lane_explore_traffic(
            (struct lane_world){.futex = futex, .messages = 3, .bytes = 400}, 2,
            0);
        lane_explore_traffic(
            (struct lane_world){.futex = futex, .messages = 1, .bytes = 1000},
            2, 0);
    }
}

LANE_SCENARIO(the_sequence_wraps)
{
    lane_explore_traffic((struct lane_world){.start = UINT32_MAX - 1,
                                             .messages = 3,
                                             .bytes = 100},
                         2, 0);
    lane_explore_traffic((struct lane_world){.start = UINT32_MAX - 7,
                                             .filled = lane_kind.full,
                                             .messages = 1,
                                             .bytes = 8},
                         1, 0);
}

/* A fresh lane and, when that was read, as much as it has room for again. */
#define TWO_LANES (52 + 56 * (lane_kind.full + lane_kind.again - 1))

/* The flush before sleep pushes what was staged into room that just came: what
 * waits for room then is the next message, which was not tried since. */
LANE_SCENARIO(a_sender_behind_a_staged_message_is_woken)
{
    for (int futex = 0; futex <= 1; futex++) {
        lane_explore_traffic((struct lane_world){.futex = futex,
                                                 .messages = 2,
                                                 .bytes = TWO_LANES},
                             1 + LANE_LESS, 0);
    }
}

/* Asks for room before it sends, as the driver does for its children. One with
 * a context flushes twice: the context does, and so does the node itself. Its
 * second flush pushes into the room that the first one found. */
static void looks_for_room(struct lane_world *w, uint32_t flushes)
{
    struct qn_qp *qp = w->qp[0];
    uint8_t msg[LANE_MESSAGE_MAX];
    for (uint32_t n = 0; n < w->messages; n++) {
        while (qn_qp_room(qp) == 0) {
            qn_doorbell_arm(&w->doorbell[0]);
            for (uint32_t i = 0; i < flushes; i++) {
                (void)qn_qp_flush(qp);
            }
            if (qn_qp_room(qp) == 0) {
                (void)qn_doorbell_wait(&w->doorbell[0], QN_TIME_NEVER);
            }
            qn_doorbell_disarm(&w->doorbell[0]);
        }
        lane_fill(msg, w->bytes, n);
        if (qn_qp_try_send(qp, msg, w->bytes) != QN_OK) {
            qn_sim_fail("room, but refused");
        }
    }
    if (qn_qp_drain(qp, QN_TIME_NEVER) != QN_OK) {
        qn_sim_fail("drain");
    }
}

static void flushes_once(void *ctx)
{
    looks_for_room(ctx, 1);
}

static void flushes_twice(void *ctx)
{
    looks_for_room(ctx, 2);
}

LANE_SCENARIO(who_looks_for_room_behind_a_staged_message_is_woken)
{
    for (int futex = 0; futex <= 1; futex++) {
        struct lane_world w = {
            .futex = futex, .messages = 2, .bytes = TWO_LANES};
        lane_explore(
            (struct qn_explore_opts){
                .node = {futex ? flushes_twice : flushes_once, lane_receiver},
                .deviations = 1 + LANE_LESS},
            &w);
    }
}
