/*
 * Three nodes: two senders and a receiver that sleeps for both on its one
 * doorbell.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/lanes/lane_world.h"
#include "tests/support/test.h"

#define SENDERS 2u

static struct {
    void *out[SENDERS], *back[SENDERS];
    struct qn_doorbell_line line;
    struct qn_doorbell doorbell;
    struct qn_doorbell_handle ringer[SENDERS];
    struct qn_qp *from[SENDERS], *to[SENDERS]; /* ends: receiver's, sender's */
    uint32_t messages;
    uint32_t received[SENDERS];
} three;

static void open_pair(uint32_t i)
{
    qn_doorbell_handle_init(&three.ringer[i], &three.line, 0);
    memset(three.out[i], 0, lane_memory_bytes());
    memset(three.back[i], 0, lane_memory_bytes());
    const struct qn_qp_opts sender = {.tx = three.out[i],
                                      .rx = three.back[i],
                                      .cells = LANE_CELLS,
                                      .msg_max = LANE_MESSAGE_MAX,
                                      .self = 1 + i,
                                      .peer = 0,
                                      .self_inc = 11 + i,
                                      .peer_inc = 10,
                                      .ringer = &three.ringer[i]};
    const struct qn_qp_opts receiver = {.tx = three.back[i],
                                        .rx = three.out[i],
                                        .cells = LANE_CELLS,
                                        .msg_max = LANE_MESSAGE_MAX,
                                        .self = 0,
                                        .peer = 1 + i,
                                        .self_inc = 10,
                                        .peer_inc = 11 + i,
                                        .doorbell = &three.doorbell};
    if (lane_kind.transport->open(&three.to[i], &sender) != QN_OK ||
        lane_kind.transport->open(&three.from[i], &receiver) != QN_OK) {
        abort();
    }
    three.received[i] = 0;
}

static void three_setup(void *ctx)
{
    (void)ctx;
    memset(&three.line, 0, sizeof three.line);
    qn_doorbell_init(&three.doorbell, &three.line, 0);
    for (uint32_t i = 0; i < SENDERS; i++) {
        open_pair(i);
    }
}

static void three_teardown(void *ctx)
{
    (void)ctx;
    for (uint32_t i = 0; i < SENDERS; i++) {
        qn_qp_close(three.to[i]);
        qn_qp_close(three.from[i]);
    }
}

static void send_as(uint32_t i)
{
    for (uint32_t n = 1; n <= three.messages; n++) {
        uint32_t msg[2] = {i, n};
        if (qn_qp_try_send(three.to[i], msg, sizeof msg) != QN_OK) {
            qn_sim_fail("send");
        }
        (void)qn_qp_flush(three.to[i]);
    }
}

static void first_sender(void *ctx)
{
    (void)ctx;
    send_as(0);
}

static void second_sender(void *ctx)
{
    (void)ctx;
    send_as(1);
}

static bool look(void)
{
    bool any = false;
    for (uint32_t i = 0; i < SENDERS; i++) {
        uint32_t msg[2];
        size_t len;
        while (qn_qp_try_recv(three.from[i], msg, sizeof msg, &len) == QN_OK) {
            any = true;
            if (msg[0] != i || msg[1] != ++three.received[i]) {
                qn_sim_fail("torn, lost or doubled message");
            }
        }
    }
    return any;
}

/* As the loop of a replica: declare sleep, flush, look once more, block. */
static void receiver_of_both(void *ctx)
{
    (void)ctx;
    while (three.received[0] + three.received[1] < SENDERS * three.messages) {
        qn_doorbell_arm(&three.doorbell);
        (void)qn_qp_flush(three.from[0]);
        (void)qn_qp_flush(three.from[1]);
        if (!look()) {
            (void)qn_doorbell_wait(&three.doorbell, QN_TIME_NEVER);
        }
        qn_doorbell_disarm(&three.doorbell);
    }
}

static const char *all_end(void *ctx)
{
    (void)ctx;
    return qn_sim_end_of(0) == QN_SIM_DONE ? NULL
                                           : "the receiver sleeps for ever";
}

LANE_SCENARIO(two_senders_wake_one_receiver)
{
    for (uint32_t i = 0; i < SENDERS; i++) {
        three.out[i] = aligned_alloc(QN_CACHELINE, lane_memory_bytes());
        three.back[i] = aligned_alloc(QN_CACHELINE, lane_memory_bytes());
    }
    three.messages = 1;
    lane_explore_in_both((struct qn_explore_opts){
        .nodes = 3,
        .node = {receiver_of_both, first_sender, second_sender},
        .setup = three_setup,
        .check = all_end,
        .teardown = three_teardown,
        .deviations = 2});
    for (uint32_t i = 0; i < SENDERS; i++) {
        free(three.out[i]);
        free(three.back[i]);
    }
}
