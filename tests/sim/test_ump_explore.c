/*
 * UMP and the doorbell under every schedule of two nodes within a bound: sleep
 * and wake-up, acknowledgement and room, the wrap of the sequence, and death in
 * front of every operation. The last part breaks each rule on purpose, in small
 * copies of the protocol; the explorer must find every one of them, or else its
 * silence above would mean nothing.
 *
 * A failure prints the choices; QN_SIM_REPLAY with that text runs them alone.
 */
#include <stdlib.h>

#include "core/qp.h"
#include "core/sim/explore.h"
#include "tests/support/test.h"
#include "transports/ump.h"

#define CELLS       16u
#define FULL        (CELLS - 1) /* what a fresh lane holds */
#define MESSAGE_MAX 1024u

/* Deviations to leave out: a sanitizer makes each run twenty times slower, and
 * has seen all code after a few. */
#ifdef __SANITIZE_ADDRESS__
#define LESS 1u
#else
#define LESS 0u
#endif

/* ---- two nodes and their channel ---- */

struct world {
    /* the scenario */
    bool futex;        /* bells: futexes, else eventfds 0 and 1 */
    uint32_t start;    /* first sequence of either lane */
    uint32_t filled;   /* cells in node 0's lane before the run */
    uint32_t messages; /* that node 0 sends and node 1 receives in the run */
    uint32_t bytes;    /* of each */
    /* the machine */
    struct qn_ump_lane *lane[2];
    struct qn_bell_line line[2];
    struct qn_bell bell[2];
    struct qn_ringer ringer[2]; /* [i] rings node i */
    struct qn_qp *qp[2];
    /* what node 1 has received */
    uint32_t received;
    uint32_t replies; /* what node 0 has */
    const char *wrong;
};

static size_t lane_bytes(void)
{
    return qn_ump.lane_bytes(CELLS);
}

static void fill(uint8_t *msg, uint32_t bytes, uint32_t number)
{
    for (uint32_t i = 0; i < bytes; i++) {
        msg[i] = (uint8_t)(number * 31 + i);
    }
}

static void open_end(struct world *w, uint32_t i)
{
    int fd = w->futex ? -1 : (int)i;
    int peer_fd = w->futex ? -1 : 1 - (int)i;
    qn_bell_init(&w->bell[i], &w->line[i], fd);
    qn_ringer_init(&w->ringer[1 - i], &w->line[1 - i], peer_fd);
    const struct qn_qp_opts o = {.tx = w->lane[i],
                                 .rx = w->lane[1 - i],
                                 .cells = CELLS,
                                 .self = i,
                                 .peer = 1 - i,
                                 .self_inc = 10 + i,
                                 .peer_inc = 11 - i,
                                 .bell = &w->bell[i],
                                 .ringer = &w->ringer[1 - i]};
    if (qn_ump_open_at(&w->qp[i], &o, w->start) != QN_OK) {
        abort();
    }
}

static void setup(void *ctx)
{
    struct world *w = ctx;
    uint8_t msg[MESSAGE_MAX];
    memset(w->line, 0, sizeof w->line);
    for (uint32_t i = 0; i < 2; i++) {
        memset(w->lane[i], 0, lane_bytes());
    }
    open_end(w, 0);
    open_end(w, 1);
    w->received = 0;
    w->replies = 0;
    w->wrong = NULL;
    for (uint32_t n = 0; n < w->filled; n++) {
        fill(msg, w->bytes, n);
        if (qn_qp_try_send(w->qp[0], msg, w->bytes) != QN_OK) {
            abort();
        }
    }
}

static void teardown(void *ctx)
{
    struct world *w = ctx;
    qn_qp_close(w->qp[0]);
    qn_qp_close(w->qp[1]);
}

/* Message number `received`, whole and right? */
static void take(struct world *w, const uint8_t *msg, size_t len)
{
    uint8_t want[MESSAGE_MAX];
    fill(want, w->bytes, w->received);
    if (len != w->bytes || memcmp(msg, want, len) != 0) {
        qn_sim_fail("torn, lost or doubled message");
    }
    w->received++;
}

static void sender(void *ctx)
{
    struct world *w = ctx;
    uint8_t msg[MESSAGE_MAX];
    for (uint32_t n = 0; n < w->messages; n++) {
        fill(msg, w->bytes, w->filled + n);
        if (qn_qp_send(w->qp[0], msg, w->bytes, QN_TIME_NEVER) != QN_OK) {
            qn_sim_fail("send");
        }
    }
    if (qn_qp_drain(w->qp[0], QN_TIME_NEVER) != QN_OK) {
        qn_sim_fail("drain");
    }
}

static void receiver(void *ctx)
{
    struct world *w = ctx;
    uint8_t msg[MESSAGE_MAX];
    size_t len = 0;
    for (uint32_t n = 0; n < w->filled + w->messages; n++) {
        if (qn_qp_recv(w->qp[1], msg, sizeof msg, &len, QN_TIME_NEVER) !=
            QN_OK) {
            qn_sim_fail("recv");
        }
        take(w, msg, len);
    }
}

/* Everybody ends, unless somebody was killed; nothing torn either way. */
static const char *all_received(void *ctx)
{
    const struct world *w = ctx;
    if (qn_sim_end_of(0) == QN_SIM_KILLED ||
        qn_sim_end_of(1) == QN_SIM_KILLED) {
        return NULL;
    }
    if (qn_sim_end_of(0) != QN_SIM_DONE) {
        return "the sender sleeps for ever";
    }
    if (qn_sim_end_of(1) != QN_SIM_DONE) {
        return "the receiver sleeps for ever";
    }
    return w->received == w->filled + w->messages ? NULL : "messages missing";
}

static void make(struct world *w)
{
    for (uint32_t i = 0; i < 2; i++) {
        w->lane[i] = aligned_alloc(QN_CACHELINE, lane_bytes());
        cr_assert_not_null(w->lane[i]);
    }
}

static void explore_clean(struct qn_explore_opts o, struct world *w)
{
    struct qn_explored out;
    const char *replay = getenv("QN_SIM_REPLAY");
    make(w);
    o.nodes = 2;
    o.deviations -= LESS;
    o.setup = setup;
    o.teardown = teardown;
    o.check = o.check != NULL ? o.check : all_received;
    o.ctx = w;
    bool good = replay != NULL ? qn_explore_replay(&o, replay, &out)
                               : qn_explore(&o, &out);
    cr_assert(good, "%s; QN_SIM_REPLAY='%s'", out.fault, out.choices);
    cr_assert(replay != NULL || out.complete);
    free(w->lane[0]);
    free(w->lane[1]);
}

/* ---- sleep and wake-up ---- */

static void explore_traffic(struct world w, uint32_t deviations, uint32_t kills)
{
    explore_clean((struct qn_explore_opts){.node = {sender, receiver},
                                           .deviations = deviations,
                                           .kills = kills},
                  &w);
}

Test(ump_explore, a_receiver_that_sleeps_is_woken, .timeout = 120)
{
    for (int futex = 0; futex <= 1; futex++) {
        explore_traffic(
            (struct world){.futex = futex, .messages = 1, .bytes = 8}, 5, 0);
        explore_traffic(
            (struct world){.futex = futex, .messages = 2, .bytes = 56}, 4, 0);
    }
}

static void asks(void *ctx)
{
    struct world *w = ctx;
    uint8_t msg[8];
    size_t len;
    for (uint32_t n = 0; n < w->messages; n++) {
        fill(msg, w->bytes, n);
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
    struct world *w = ctx;
    uint8_t msg[8];
    size_t len;
    for (uint32_t n = 0; n < w->messages; n++) {
        if (qn_qp_recv(w->qp[1], msg, sizeof msg, &len, QN_TIME_NEVER) !=
            QN_OK) {
            qn_sim_fail("recv");
        }
        take(w, msg, len);
        if (qn_qp_send(w->qp[1], msg, len, QN_TIME_NEVER) != QN_OK) {
            qn_sim_fail("answer");
        }
    }
}

Test(ump_explore, a_conversation_of_sleepers_goes_on, .timeout = 120)
{
    for (int futex = 0; futex <= 1; futex++) {
        struct world w = {.futex = futex, .messages = 2, .bytes = 8};
        explore_clean(
            (struct qn_explore_opts){.node = {asks, answers}, .deviations = 3},
            &w);
    }
}

/* ---- room ---- */

Test(ump_explore, a_sender_that_waits_for_room_is_woken, .timeout = 120)
{
    for (int futex = 0; futex <= 1; futex++) {
        explore_traffic(
            (struct world){
                .futex = futex, .filled = FULL, .messages = 1, .bytes = 8},
            2, 0);
    }
}

/* Reads what is there and goes on to other things. */
static void reads_and_goes(void *ctx)
{
    struct world *w = ctx;
    uint8_t msg[MESSAGE_MAX];
    size_t len;
    for (uint32_t n = 0; n < w->filled; n++) {
        if (qn_qp_try_recv(w->qp[1], msg, sizeof msg, &len) != QN_OK) {
            qn_sim_fail("recv");
        }
        take(w, msg, len);
    }
    (void)qn_qp_flush(w->qp[1]);
}

static const char *sender_done(void *ctx)
{
    (void)ctx;
    return qn_sim_end_of(0) == QN_SIM_DONE ? NULL
                                           : "the sender sleeps for ever";
}

Test(ump_explore, a_flush_alone_tells_of_room, .timeout = 120)
{
    for (int futex = 0; futex <= 1; futex++) {
        struct world w = {
            .futex = futex, .filled = FULL, .messages = 1, .bytes = 8};
        explore_clean((struct qn_explore_opts){.node = {sender, reads_and_goes},
                                               .check = sender_done,
                                               .deviations = 2},
                      &w);
    }
}

/* The receiver may consume the ring in its last look before it sleeps. */
Test(ump_explore, a_message_longer_than_the_ring_gets_through, .timeout = 120)
{
    for (int futex = 0; futex <= 1; futex++) {
        explore_traffic(
            (struct world){
                .futex = futex, .filled = FULL - 4, .messages = 1, .bytes = 56},
            3, 0);
        explore_traffic(
            (struct world){.futex = futex, .messages = 3, .bytes = 400}, 2, 0);
        explore_traffic(
            (struct world){.futex = futex, .messages = 1, .bytes = 1000}, 2, 0);
    }
}

Test(ump_explore, the_sequence_wraps, .timeout = 120)
{
    explore_traffic(
        (struct world){.start = UINT32_MAX - 1, .messages = 3, .bytes = 100}, 2,
        0);
    explore_traffic(
        (struct world){
            .start = UINT32_MAX - 7, .filled = FULL, .messages = 1, .bytes = 8},
        1, 0);
}

/* ---- death ---- */

/* Killed anywhere, either end: what is received is whole and in order, and a
 * survivor that is told of it ends. */
Test(ump_explore, death_in_front_of_every_operation_tears_nothing,
     .timeout = 120)
{
    for (int futex = 0; futex <= 1; futex++) {
        explore_traffic(
            (struct world){.futex = futex, .messages = 2, .bytes = 120}, 2, 2);
        explore_traffic(
            (struct world){
                .futex = futex, .filled = FULL, .messages = 1, .bytes = 8},
            1, 1);
    }
}

/* After the sender's death: nothing half is delivered from what it left. */
static const char *left_whole(void *ctx)
{
    struct world *w = ctx;
    uint8_t msg[MESSAGE_MAX];
    size_t len;
    int rc;
    if (qn_sim_end_of(1) == QN_SIM_KILLED) {
        return NULL;
    }
    qn_qp_down(w->qp[1]);
    while ((rc = qn_qp_try_recv(w->qp[1], msg, sizeof msg, &len)) == QN_OK) {
        uint8_t want[MESSAGE_MAX];
        fill(want, w->bytes, w->received++);
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

Test(ump_explore, what_the_dead_left_is_whole_or_nothing, .timeout = 120)
{
    struct world w = {.messages = 3, .bytes = 150};
    explore_clean((struct qn_explore_opts){.node = {sender, idle},
                                           .check = left_whole,
                                           .deviations = 2,
                                           .kills = 1},
                  &w);
}

/* ---- lives ---- */

static const char *nobody_asleep(void *ctx)
{
    (void)ctx;
    return qn_sim_end_of(0) == QN_SIM_DONE && qn_sim_end_of(1) == QN_SIM_DONE
               ? NULL
               : "asleep for ever";
}

/* Node 1 was life 11 and comes back as life 12 on new memory, while node 0
 * opens its old lane again: in every order, only what life 10 sent to life 12
 * arrives, and life 11, which only slept, gets nothing of it. */
static struct qn_ump_lane *new_lane;
static struct qn_qp *new_end;
static struct qn_qp *again;

static void lives_setup(void *ctx)
{
    setup(ctx); /* `filled` old messages lie in node 0's lane */
    memset(new_lane, 0, lane_bytes());
    new_end = NULL;
    again = NULL;
}

static void lives_teardown(void *ctx)
{
    qn_qp_close(new_end);
    qn_qp_close(again);
    teardown(ctx);
}

static void opens_again(void *ctx)
{
    struct world *w = ctx;
    const struct qn_qp_opts o = {.tx = w->lane[0],
                                 .rx = new_lane,
                                 .cells = CELLS,
                                 .self = 0,
                                 .peer = 1,
                                 .self_inc = 10,
                                 .peer_inc = 12};
    if (qn_ump.open(&again, &o) != QN_OK ||
        qn_qp_try_send(again, "new", 3) != QN_OK) {
        qn_sim_fail("open again");
    }
    if (qn_qp_room(again) != FULL - 1) {
        qn_sim_fail("an acknowledgement of another life counted");
    }
}

static void comes_back(void *ctx)
{
    struct world *w = ctx;
    uint8_t msg[64];
    size_t len;
    int rc;
    const struct qn_qp_opts o = {.tx = new_lane,
                                 .rx = w->lane[0],
                                 .cells = CELLS,
                                 .self = 1,
                                 .peer = 0,
                                 .self_inc = 12,
                                 .peer_inc = 10};
    if (qn_ump.open(&new_end, &o) != QN_OK) {
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
    struct world *w = ctx;
    uint8_t msg[64];
    size_t len;
    for (int i = 0; i < 3; i++) {
        if (qn_qp_try_recv(w->qp[1], msg, sizeof msg, &len) != QN_EAGAIN) {
            qn_sim_fail("a message to another life");
        }
    }
}

static void explore_lives(struct world w, uint32_t nodes, uint32_t deviations)
{
    struct qn_explored out;
    make(&w);
    new_lane = aligned_alloc(QN_CACHELINE, lane_bytes());
    cr_assert_not_null(new_lane);
    const struct qn_explore_opts o = {
        .nodes = nodes,
        .node = {opens_again, comes_back, wakes_too_late},
        .setup = lives_setup,
        .check = nobody_asleep,
        .teardown = lives_teardown,
        .ctx = &w,
        .deviations = deviations - LESS,
        .steps_max = 400};
    cr_assert(qn_explore(&o, &out), "%s at %s", out.fault, out.choices);
    cr_assert(out.complete);
    free(new_lane);
    free(w.lane[0]);
    free(w.lane[1]);
}

Test(ump_explore, lives_never_mix_in_any_order, .timeout = 120)
{
    explore_lives((struct world){.filled = 3, .bytes = 8}, 2, 2);
}

Test(ump_explore, who_wakes_too_late_gets_nothing, .timeout = 120)
{
    explore_lives((struct world){.filled = 0, .bytes = 8}, 3, 2);
}

/* ---- positive controls: each rule broken ---- */

struct control {
    struct qn_bell_line line;
    struct qn_bell bell;
    struct qn_ringer ringer;
    qn_a32 message, want, ack;
    uint8_t payload[8];
    bool broken;
};

static void control_setup(void *ctx)
{
    struct control *c = ctx;
    memset(&c->line, 0, sizeof c->line);
    qn_bell_init(&c->bell, &c->line, -1);
    qn_ringer_init(&c->ringer, &c->line, -1);
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
                                      .check = nobody_asleep,
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
            qn_bell_arm(&c->bell);
        }
        if (qn_load(&c->message, QN_ACQUIRE) == 0) {
            (void)qn_bell_wait(&c->bell, QN_TIME_NEVER);
        }
        qn_bell_disarm(&c->bell);
    }
}

static void right_ringer(void *ctx)
{
    struct control *c = ctx;
    qn_store(&c->message, 1, QN_RELEASE);
    qn_ringer_ring(&c->ringer);
}

Test(ump_explore_controls, arming_without_a_fence_is_found)
{
    expect_found(right_ringer, sleeper);
}

/* ring without its fence. */
static void right_sleeper(void *ctx)
{
    struct control *c = ctx;
    while (qn_load(&c->message, QN_ACQUIRE) == 0) {
        qn_bell_arm(&c->bell);
        if (qn_load(&c->message, QN_ACQUIRE) == 0) {
            (void)qn_bell_wait(&c->bell, QN_TIME_NEVER);
        }
        qn_bell_disarm(&c->bell);
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
        qn_ringer_ring(&c->ringer);
    }
}

Test(ump_explore_controls, ringing_without_a_fence_is_found)
{
    expect_found(ringer, right_sleeper);
}

/* The look before the declaration, as if flush came after it (core/qp.c). */
static void looks_too_early(void *ctx)
{
    struct control *c = ctx;
    while (qn_load(&c->message, QN_ACQUIRE) == 0) {
        bool there = c->broken && qn_load(&c->message, QN_ACQUIRE) != 0;
        qn_bell_arm(&c->bell);
        there = c->broken ? there : qn_load(&c->message, QN_ACQUIRE) != 0;
        if (!there) {
            (void)qn_bell_wait(&c->bell, QN_TIME_NEVER);
        }
        qn_bell_disarm(&c->bell);
    }
}

Test(ump_explore_controls, looking_before_declaring_is_found)
{
    expect_found(right_ringer, looks_too_early);
}

/* W: want and ack with release and acquire only. */
static void wants_room(void *ctx)
{
    struct control *c = ctx;
    qn_bell_arm(&c->bell);
    if (c->broken) {
        qn_store(&c->want, 1, QN_RELEASE);
    } else {
        qn_store(&c->want, 1, QN_SEQ_CST);
    }
    if (qn_load(&c->ack, QN_SEQ_CST) == 0) {
        (void)qn_bell_wait(&c->bell, QN_TIME_NEVER);
    }
    qn_bell_disarm(&c->bell);
}

static void makes_room(void *ctx)
{
    struct control *c = ctx;
    qn_store(&c->ack, 1, QN_SEQ_CST);
    if (qn_load(&c->want, QN_SEQ_CST) != 0) {
        qn_ringer_ring(&c->ringer);
    }
}

Test(ump_explore_controls, wanting_room_without_seq_cst_is_found)
{
    expect_found(makes_room, wants_room);
}

static void right_wants_room(void *ctx)
{
    struct control *c = ctx;
    qn_bell_arm(&c->bell);
    qn_store(&c->want, 1, QN_SEQ_CST);
    if (qn_load(&c->ack, QN_SEQ_CST) == 0) {
        (void)qn_bell_wait(&c->bell, QN_TIME_NEVER);
    }
    qn_bell_disarm(&c->bell);
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
        qn_ringer_ring(&c->ringer);
    }
}

Test(ump_explore_controls, making_room_without_seq_cst_is_found)
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

Test(ump_explore_controls, a_header_before_its_payload_is_found)
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

Test(ump_explore_controls, an_acknowledgement_before_the_read_is_found)
{
    expect_found(writes_twice, acknowledges);
}
