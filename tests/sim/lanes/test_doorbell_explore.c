/*
 * The doorbell alone: a sleeper with one ringer that rings twice, and with two
 * ringers, in both forms. Whatever was published is found, and no sleeper
 * sleeps while it waits.
 */
#include <string.h>

#include "tests/sim/lanes/lane_world.h"
#include "tests/support/test.h"

#define RINGERS 2u

struct doorbell_world {
    bool futex;
    bool loop;         /* the sleeper is an event loop: wake and drain */
    uint32_t messages; /* of each ringer */
    struct qn_doorbell_line line;
    struct qn_doorbell doorbell;
    struct qn_doorbell_handle ringer[RINGERS];
    qn_a32 sent[RINGERS];
    uint32_t payload[RINGERS][4];
    uint32_t taken[RINGERS];
};

static void doorbell_setup(void *ctx)
{
    struct doorbell_world *b = ctx;
    int fd = b->futex ? -1 : 0;
    memset(&b->line, 0, sizeof b->line);
    memset(b->payload, 0, sizeof b->payload);
    memset(b->taken, 0, sizeof b->taken);
    qn_doorbell_init(&b->doorbell, &b->line, fd);
    for (uint32_t i = 0; i < RINGERS; i++) {
        qn_doorbell_handle_init(&b->ringer[i], &b->line, fd);
        qn_store(&b->sent[i], 0, QN_SEQ_CST);
    }
}

static void ring_as(struct doorbell_world *b, uint32_t i)
{
    for (uint32_t n = 1; n <= b->messages; n++) {
        qn_copy_out(&b->payload[i][n], &n, sizeof n);
        qn_store(&b->sent[i], n, QN_RELEASE);
        (void)qn_doorbell_ring(&b->ringer[i]);
    }
}

static void first_ringer(void *ctx)
{
    ring_as(ctx, 0);
}

static void second_ringer(void *ctx)
{
    ring_as(ctx, 1);
}

static void look(struct doorbell_world *b)
{
    for (uint32_t i = 0; i < RINGERS; i++) {
        uint32_t sent = qn_load(&b->sent[i], QN_ACQUIRE);
        while (b->taken[i] < sent) {
            uint32_t n = 0;
            b->taken[i]++;
            qn_copy_in(&n, &b->payload[i][b->taken[i]], sizeof n);
            if (n != b->taken[i]) {
                qn_sim_fail("another message");
            }
        }
    }
}

static void sleep_until(struct doorbell_world *b, uint32_t all)
{
    look(b);
    while (b->taken[0] + b->taken[1] < all) {
        qn_doorbell_arm(&b->doorbell);
        look(b);
        if (b->taken[0] + b->taken[1] < all) {
            (void)qn_doorbell_wait(&b->doorbell, QN_TIME_NEVER);
        }
        if (b->loop) {
            qn_doorbell_wake(&b->doorbell);
            qn_doorbell_drain(&b->doorbell);
        } else {
            qn_doorbell_disarm(&b->doorbell);
        }
        look(b);
    }
}

static void sleeper_of_one(void *ctx)
{
    struct doorbell_world *b = ctx;
    sleep_until(b, b->messages);
}

static void sleeper_of_two(void *ctx)
{
    struct doorbell_world *b = ctx;
    sleep_until(b, 2 * b->messages);
}

static bool message_waits(void *ctx, uint32_t node)
{
    const struct doorbell_world *b = ctx;
    return node == 0 && (b->taken[0] < qn_load(&b->sent[0], QN_RELAXED) ||
                         b->taken[1] < qn_load(&b->sent[1], QN_RELAXED));
}

static const char *none_left(void *ctx)
{
    (void)ctx;
    return qn_sim_end_of(0) == QN_SIM_DONE ? NULL : "asleep for ever";
}

static void explore_doorbell(uint32_t nodes, uint32_t messages)
{
    for (int form = 0; form <= 2; form++) {
        struct doorbell_world b = {
            .futex = form == 0, .loop = form == 2, .messages = messages};
        lane_explore_in_both((struct qn_explore_opts){
            .nodes = nodes,
            .node = {nodes == 2 ? sleeper_of_one : sleeper_of_two, first_ringer,
                     second_ringer},
            .setup = doorbell_setup,
            .check = none_left,
            .pending = message_waits,
            .ctx = &b,
            .deviations = 2});
    }
}

LANE_SCENARIO(a_doorbell_that_rings_twice_loses_nothing)
{
    explore_doorbell(2, 2);
}

LANE_SCENARIO(a_doorbell_with_two_ringers_loses_nothing)
{
    explore_doorbell(3, 1);
}
