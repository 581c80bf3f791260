/*
 * Sleep and wake-up: a receiver that sleeps is woken, whatever the order.
 */
#include "tests/sim/explore/ump_world.h"
#include "tests/support/test.h"

UMP_SCENARIO(a_receiver_that_sleeps_is_woken)
{
    for (int futex = 0; futex <= 1; futex++) {
        ump_explore_traffic(
            (struct ump_world){.futex = futex, .messages = 1, .bytes = 8}, 5,
            0);
        ump_explore_traffic(
            (struct ump_world){.futex = futex, .messages = 2, .bytes = 56}, 4,
            0);
    }
}

static void asks(void *ctx)
{
    struct ump_world *w = ctx;
    uint8_t msg[8];
    size_t len;
    for (uint32_t n = 0; n < w->messages; n++) {
        ump_fill(msg, w->bytes, n);
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
    struct ump_world *w = ctx;
    uint8_t msg[8];
    size_t len;
    for (uint32_t n = 0; n < w->messages; n++) {
        if (qn_qp_recv(w->qp[1], msg, sizeof msg, &len, QN_TIME_NEVER) !=
            QN_OK) {
            qn_sim_fail("recv");
        }
        ump_take(w, msg, len);
        if (qn_qp_send(w->qp[1], msg, len, QN_TIME_NEVER) != QN_OK) {
            qn_sim_fail("answer");
        }
    }
}

UMP_SCENARIO(a_conversation_of_sleepers_goes_on)
{
    for (int futex = 0; futex <= 1; futex++) {
        struct ump_world w = {.futex = futex, .messages = 2, .bytes = 8};
        ump_explore(
            (struct qn_explore_opts){.node = {asks, answers}, .deviations = 3},
            &w);
    }
}
