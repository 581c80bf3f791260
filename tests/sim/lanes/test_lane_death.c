/*
 * Death in front of every operation: what is received is whole and in order.
 */
#include "tests/sim/lanes/lane_world.h"
#include "tests/support/test.h"

/* Killed anywhere, either end: what is received is whole and in order, and a
 * survivor that is told of it ends. */
LANE_SCENARIO(death_in_front_of_every_operation_tears_nothing)
{
    for (int futex = 0; futex <= 1; futex++) {
        lane_explore_traffic(
            (struct lane_world){.futex = futex, .messages = 2, .bytes = 120}, 2,
            2);
        lane_explore_traffic((struct lane_world){.futex = futex,
                                                 .filled = lane_kind.full,
                                                 .messages = 1,
                                                 .bytes = 8},
                             1, 1);
    }
}

/* After the sender's death: nothing half is delivered from what it left. */
static const char *left_whole(void *ctx)
{
    struct lane_world *w = ctx;
    uint8_t msg[LANE_MESSAGE_MAX];
    size_t len;
    int rc;
    if (qn_sim_end_of(1) == QN_SIM_KILLED) {
        return NULL;
    }
    if (w->port[1] != NULL) {
        qn_device_down(w->port[1], 0);
    }
    qn_qp_down(w->qp[1]);
    while ((rc = qn_qp_try_recv(w->qp[1], msg, sizeof msg, &len)) == QN_OK) {
        uint8_t want[LANE_MESSAGE_MAX];
        lane_fill(want, w->bytes, w->received++);
        if (len != w->bytes || memcmp(msg, want, len) != 0) {
            return "torn after death";
        }
    }
    if (qn_sim_end_of(0) == QN_SIM_DONE &&
        w->received != w->filled + w->messages) {
        return "the sender ended, and messages are missing";
    }
    return rc == QN_EPEERDEAD ? NULL : "not told of the death";
}

static void idle(void *ctx)
{
    (void)ctx;
}

LANE_SCENARIO(what_the_dead_left_is_whole_or_nothing)
{
    struct lane_world w = {.messages = 3, .bytes = 150};
    lane_explore((struct qn_explore_opts){.node = {lane_sender, idle},
                                          .check = left_whole,
                                          .deviations = 2,
                                          .kills = 1},
                 &w);
}
