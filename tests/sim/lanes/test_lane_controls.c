/*
 * Positive controls: each rule of the doorbell and of UMP broken on purpose, in
 * small copies of the protocol. The explorer must find every one of them, or
 * else its silence about the real code would mean nothing.
 */
#include "core/sim/explore/explore.h"
#include "tests/sim/lanes/lane_world.h"
#include "tests/support/test.h"

struct control {
    struct qn_doorbell_line line;
    struct qn_doorbell doorbell;
    struct qn_doorbell_handle ringer;
    qn_a32 message, want, ack;
    uint8_t payload[8];
    bool broken;
};

static void control_setup(void *ctx)
{
    struct control *c = ctx;
    memset(&c->line, 0, sizeof c->line);
    qn_doorbell_init(&c->doorbell, &c->line, -1);
    qn_doorbell_handle_init(&c->ringer, &c->line, -1);
    qn_store(&c->message, 0, QN_SEQ_CST);
    qn_store(&c->want, 0, QN_SEQ_CST);
    qn_store(&c->ack, 0, QN_SEQ_CST);
    memset(c->payload, 0, sizeof c->payload);
}

/* The control as it should be is clean; broken, it is found. */
static void expect_found(void (*node_0)(void *), void (*node_1)(void *))
{
    struct control c = {.broken = false};
    struct qn_explored out;
    const struct qn_explore_opts o = {.nodes = 2,
                                      .node = {node_0, node_1},
                                      .setup = control_setup,
                                      .check = lane_nobody_asleep,
                                      .ctx = &c,
                                      .deviations = 3};
    cr_assert(qn_explore(&o, &out), "unbroken: %s at %s", out.fault,
              out.choices);
    c.broken = true;
    cr_assert(!qn_explore(&o, &out), "the broken rule was not found");
    cr_assert(!qn_explore_replay(&o, out.choices, &out));
}

/* arm without its fence. */
static void sleeper(void *ctx)
{
    struct control *c = ctx;
    while (qn_load(&c->message, QN_ACQUIRE) == 0) {
        if (c->broken) {
            uint32_t epoch = qn_load(&c->line.epoch, QN_RELAXED);
            qn_store(&c->line.epoch, epoch + 1, QN_RELEASE);
        } else {
            qn_doorbell_arm(&c->doorbell);
        }
        if (qn_load(&c->message, QN_ACQUIRE) == 0) {
            (void)qn_doorbell_wait(&c->doorbell, QN_TIME_NEVER);
        }
        qn_doorbell_disarm(&c->doorbell);
    }
}

static void right_ringer(void *ctx)
{
    struct control *c = ctx;
    qn_store(&c->message, 1, QN_RELEASE);
    qn_doorbell_ring(&c->ringer);
}

Test(lane_explore_controls, arming_without_a_fence_is_found)
{
    expect_found(right_ringer, sleeper);
}

/* ring without its fence. */
static void right_sleeper(void *ctx)
{
    struct control *c = ctx;
    while (qn_load(&c->message, QN_ACQUIRE) == 0) {
        qn_doorbell_arm(&c->doorbell);
        if (qn_load(&c->message, QN_ACQUIRE) == 0) {
            (void)qn_doorbell_wait(&c->doorbell, QN_TIME_NEVER);
        }
        qn_doorbell_disarm(&c->doorbell);
    }
}

static void ringer(void *ctx)
{
    struct control *c = ctx;
    qn_store(&c->message, 1, QN_RELEASE);
    uint32_t epoch = 0;
    if (c->broken) {
        epoch = qn_load(&c->line.epoch, QN_RELAXED);
    }
    if (!c->broken || epoch % 2 == 1) {
        qn_doorbell_ring(&c->ringer);
    }
}

Test(lane_explore_controls, ringing_without_a_fence_is_found)
{
    expect_found(ringer, right_sleeper);
}

/* The look before the declaration, as if flush came after it (core/qp.c). */
static void looks_too_early(void *ctx)
{
    struct control *c = ctx;
    while (qn_load(&c->message, QN_ACQUIRE) == 0) {
        bool there = c->broken && qn_load(&c->message, QN_ACQUIRE) != 0;
        qn_doorbell_arm(&c->doorbell);
        there = c->broken ? there : qn_load(&c->message, QN_ACQUIRE) != 0;
        if (!there) {
            (void)qn_doorbell_wait(&c->doorbell, QN_TIME_NEVER);
        }
        qn_doorbell_disarm(&c->doorbell);
    }
}

Test(lane_explore_controls, looking_before_declaring_is_found)
{
    expect_found(right_ringer, looks_too_early);
}

/* W: want and ack with release and acquire only. */
static void wants_room(void *ctx)
{
    struct control *c = ctx;
    qn_doorbell_arm(&c->doorbell);
    if (c->broken) {
        qn_store(&c->want, 1, QN_RELEASE);
    } else {
        qn_store(&c->want, 1, QN_SEQ_CST);
    }
    if (qn_load(&c->ack, QN_SEQ_CST) == 0) {
        (void)qn_doorbell_wait(&c->doorbell, QN_TIME_NEVER);
    }
    qn_doorbell_disarm(&c->doorbell);
}

static void makes_room(void *ctx)
{
    struct control *c = ctx;
    qn_store(&c->ack, 1, QN_SEQ_CST);
    if (qn_load(&c->want, QN_SEQ_CST) != 0) {
        qn_doorbell_ring(&c->ringer);
    }
}

Test(lane_explore_controls, wanting_room_without_seq_cst_is_found)
{
    expect_found(makes_room, wants_room);
}

static void right_wants_room(void *ctx)
{
    struct control *c = ctx;
    qn_doorbell_arm(&c->doorbell);
    qn_store(&c->want, 1, QN_SEQ_CST);
    if (qn_load(&c->ack, QN_SEQ_CST) == 0) {
        (void)qn_doorbell_wait(&c->doorbell, QN_TIME_NEVER);
    }
    qn_doorbell_disarm(&c->doorbell);
}

static void makes_room_lazily(void *ctx)
{
    struct control *c = ctx;
    if (c->broken) {
        qn_store(&c->ack, 1, QN_RELEASE);
    } else {
        qn_store(&c->ack, 1, QN_SEQ_CST);
    }
    if (qn_load(&c->want, QN_SEQ_CST) != 0) {
        qn_doorbell_ring(&c->ringer);
    }
}

Test(lane_explore_controls, making_room_without_seq_cst_is_found)
{
    expect_found(makes_room_lazily, right_wants_room);
}

/* C: the header before the payload. */
static void publishes(void *ctx)
{
    struct control *c = ctx;
    if (c->broken) {
        qn_store(&c->message, 1, QN_RELEASE);
        qn_copy_out(c->payload, "payload", 8);
    } else {
        qn_copy_out(c->payload, "payload", 8);
        qn_store(&c->message, 1, QN_RELEASE);
    }
}

static void reads(void *ctx)
{
    struct control *c = ctx;
    char payload[8];
    while (qn_load(&c->message, QN_ACQUIRE) == 0) {
        qn_pause();
    }
    qn_copy_in(payload, c->payload, sizeof payload);
    if (memcmp(payload, "payload", 8) != 0) {
        qn_sim_fail("torn");
    }
}

Test(lane_explore_controls, a_header_before_its_payload_is_found)
{
    expect_found(publishes, reads);
}

/* K: acknowledged before it was read. */
static void writes_twice(void *ctx)
{
    struct control *c = ctx;
    qn_copy_out(c->payload, "payload", 8);
    qn_store(&c->message, 1, QN_RELEASE);
    while (qn_load(&c->ack, QN_ACQUIRE) == 0) {
        qn_pause();
    }
    qn_copy_out(c->payload, "another", 8);
    qn_store(&c->message, 2, QN_RELEASE);
}

static void acknowledges(void *ctx)
{
    struct control *c = ctx;
    char payload[8];
    while (qn_load(&c->message, QN_ACQUIRE) == 0) {
        qn_pause();
    }
    if (c->broken) {
        qn_store(&c->ack, 1, QN_RELEASE);
    }
    qn_copy_in(payload, c->payload, sizeof payload);
    if (!c->broken) {
        qn_store(&c->ack, 1, QN_RELEASE);
    }
    if (memcmp(payload, "payload", 8) != 0) {
        qn_sim_fail("overwritten");
    }
}

Test(lane_explore_controls, an_acknowledgement_before_the_read_is_found)
{
    expect_found(writes_twice, acknowledges);
}
