/*
 * Lives: a node that comes back, and one that only slept, in every order.
 */
#include <stdlib.h>

#include "tests/sim/lanes/lane_world.h"
#include "tests/support/test.h"

/* Node 1 was life 11 and comes back as life 12 on new memory, while node 0
 * opens its old lane again: in every order, only what life 10 sent to life 12
 * arrives, and life 11, which only slept, gets nothing of it. */
static void *new_lane;
static void *again_lane; /* of node 0: its old one if it alone writes it */
static struct qn_qp *new_end;
static struct qn_qp *again;

static void lives_setup(void *ctx)
{
    lane_setup(ctx); /* `filled` old messages lie in node 0's lane */
    memset(new_lane, 0, 2 * lane_memory_bytes());
    again_lane = ((struct lane_world *)ctx)->lane[0];
    if (lane_kind.transport->memory == QN_TRANSPORT_BOTH_WRITE) {
        again_lane = (uint8_t *)new_lane + lane_memory_bytes();
    }
    new_end = NULL;
    again = NULL;
}

static void lives_teardown(void *ctx)
{
    qn_qp_close(new_end);
    qn_qp_close(again);
    lane_teardown(ctx);
}

static void opens_again(void *ctx)
{
    const struct qn_qp_opts o = {.tx = again_lane,
                                 .rx = new_lane,
                                 .cells = LANE_CELLS,
                                 .msg_max = LANE_MESSAGE_MAX,
                                 .self = 0,
                                 .peer = 1,
                                 .self_inc = 10,
                                 .peer_inc = 12};
    (void)ctx;
    if (lane_kind.transport->open(&again, &o) != QN_OK ||
        qn_qp_try_send(again, "new", 3) != QN_OK) {
        qn_sim_fail("open again");
    }
    uint32_t room = qn_qp_room(again);
    bool read = lane_kind.eager && new_end != NULL && room == lane_kind.full;
    if (room != lane_kind.full - 1 && !read) {
        qn_sim_fail("an acknowledgement of another life counted");
    }
}

static void comes_back(void *ctx)
{
    uint8_t msg[64];
    size_t len;
    int rc;
    (void)ctx;
    const struct qn_qp_opts o = {.tx = new_lane,
                                 .rx = again_lane,
                                 .cells = LANE_CELLS,
                                 .msg_max = LANE_MESSAGE_MAX,
                                 .self = 1,
                                 .peer = 0,
                                 .self_inc = 12,
                                 .peer_inc = 10};
    if (lane_kind.transport->open(&new_end, &o) != QN_OK) {
        qn_sim_fail("come back");
    }
    while ((rc = qn_qp_try_recv(new_end, msg, sizeof msg, &len)) == QN_EAGAIN) {
        qn_pause();
    }
    if (rc != QN_OK || len != 3 || memcmp(msg, "new", 3) != 0) {
        qn_sim_fail("a message of another life");
    }
}

/* Life 11 wakes and looks for what was sent to it: nothing. */
static void wakes_too_late(void *ctx)
{
    struct lane_world *w = ctx;
    uint8_t msg[64];
    size_t len;
    for (int i = 0; i < 3; i++) {
        if (qn_qp_try_recv(w->qp[1], msg, sizeof msg, &len) != QN_EAGAIN) {
            qn_sim_fail("a message to another life");
        }
    }
}

static void explore_lives(struct lane_world w, uint32_t nodes,
                          uint32_t deviations)
{
    lane_make(&w);
    new_lane = aligned_alloc(QN_CACHELINE, 2 * lane_memory_bytes());
    cr_assert_not_null(new_lane);
    lane_explore_in_both((struct qn_explore_opts){
        .nodes = nodes,
        .node = {opens_again, comes_back, wakes_too_late},
        .setup = lives_setup,
        .check = lane_nobody_asleep,
        .teardown = lives_teardown,
        .ctx = &w,
        .all = true, /* nodes allocate: no run is given up */
        .deviations = deviations,
        .steps_max = 1000});
    free(new_lane);
    free(w.lane[0]);
    free(w.lane[1]);
}

LANE_SCENARIO(lives_never_mix_in_any_order)
{
    explore_lives((struct lane_world){.filled = 3, .bytes = 8}, 2, 2);
}

LANE_SCENARIO(who_wakes_too_late_gets_nothing)
{
    explore_lives((struct lane_world){.filled = 0, .bytes = 8}, 3, 2);
}
