/*
 * Sleep and wake-up: a receiver that sleeps is woken, whatever the order.
 */
#include "tests/sim/lanes/lane_world.h"
#include "tests/support/test.h"

LANE_SCENARIO(a_receiver_that_sleeps_is_woken)
{
    for (int futex = 0; futex <= 1; futex++) {
        lane_explore_traffic(
            (struct lane_world){.futex = futex, .messages = 1, .bytes = 8}, 5,
            0);
        lane_explore_traffic(
            (struct lane_world){.futex = futex, .messages = 2, .bytes = 56}, 4,
            0);
    }
}

static void asks(void *ctx)
{
    struct lane_world *w = ctx;
    uint8_t msg[8];
    size_t len;
    for (uint32_t n = 0; n < w->messages; n++) {
        lane_fill(msg, w->bytes, n);
        if (qn_qp_send(w->qp[0], msg, w->bytes, QN_TIME_NEVER) != QN_OK ||
            qn_qp_recv(w->qp[0], msg, sizeof msg, &len, QN_TIME_NEVER) !=
                QN_OK) {
            qn_sim_fail("ask");
        }
        w->replies++;
    }
}

static void answers(void *ctx)
{
    struct lane_world *w = ctx;
    uint8_t msg[8];
    size_t len;
    for (uint32_t n = 0; n < w->messages; n++) {
        if (qn_qp_recv(w->qp[1], msg, sizeof msg, &len, QN_TIME_NEVER) !=
            QN_OK) {
            qn_sim_fail("recv");
        }
        lane_take(w, msg, len);
        if (qn_qp_send(w->qp[1], msg, len, QN_TIME_NEVER) != QN_OK) {
            qn_sim_fail("answer");
        }
    }
}

LANE_SCENARIO(a_conversation_of_sleepers_goes_on)
{
    for (int futex = 0; futex <= 1; futex++) {
        struct lane_world w = {.futex = futex, .messages = 2, .bytes = 8};
        lane_explore(
            (struct qn_explore_opts){.node = {asks, answers}, .deviations = 3},
            &w);
    }
}
