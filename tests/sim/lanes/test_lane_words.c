/*
 * What only a queuepair over words has: room at the core that words of others
 * take, a next incarnation on the same device, and its defects
 * (transports/udn/udn_mutant.h), which the scenarios must find.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/words/words.h"
#include "tests/sim/lanes/lane_world.h"
#include "tests/support/test.h"
#include "transports/udn/udn.h"
#include "transports/udn/udn_mutant.h"

enum qn_udn_mutant qn_udn_mutant;

/* ---- room at the core ---- */

#define OTHER_QUEUE 1u

static const struct qn_words_target other = {1, OTHER_QUEUE};
static uint64_t words[QN_WORDS_SHARED_MAX];

/* The core of node 1 is full of words for another user of the device. */
static void full_core_setup(void *ctx)
{
    struct lane_world *w = ctx;
    lane_setup(ctx);
    if (qn_words_try_send(w->port[0], other, words, QN_WORDS_SHARED_MAX) !=
        QN_OK) {
        abort();
    }
}

static void takes_words_and_receives(void *ctx)
{
    struct lane_world *w = ctx;
    if (qn_words_try_receive(w->port[1], OTHER_QUEUE, words,
                             QN_WORDS_SHARED_MAX) != QN_OK) {
        qn_sim_fail("the words of the other user");
    }
    lane_receiver(ctx);
}

LANE_SCENARIO(what_waits_for_room_at_the_core_is_sent_when_there_is_some)
{
    for (int futex = 0; futex <= 1; futex++) {
        struct lane_world w = {.futex = futex, .messages = 1, .bytes = 100};
        lane_make(&w);
        lane_explore_in_both((struct qn_explore_opts){
            .nodes = 2,
            .node = {lane_sender, takes_words_and_receives},
            .setup = full_core_setup,
            .check = lane_nobody_asleep,
            .teardown = lane_teardown,
            .ctx = &w,
            .deviations = 2});
        free(w.lane[0]);
    }
}

/* ---- told, and rung ---- */

/* A message of more frames than the window. Node 0 receives: the frames arrive,
 * and are rung for, between its first look and its arming of the doorbell, it
 * consumes them in its last look, and the sender has looked for what that gives
 * back after the words were taken out of the core and before it was told. */
static uint8_t long_message[QN_UDN_WINDOW * QN_UDN_FRAME_BYTES + 1];

static void receives_one(void *ctx)
{
    struct lane_world *w = ctx;
    static uint8_t msg[sizeof long_message];
    size_t len = 0;
    if (qn_qp_recv(w->qp[0], msg, sizeof msg, &len, QN_TIME_NEVER) != QN_OK ||
        len != sizeof msg || memcmp(msg, long_message, len) != 0) {
        qn_sim_fail("torn message");
    }
}

static void sends_one(void *ctx)
{
    struct lane_world *w = ctx;
    if (qn_qp_send(w->qp[1], long_message, sizeof long_message,
                   QN_TIME_NEVER) != QN_OK ||
        qn_qp_drain(w->qp[1], QN_TIME_NEVER) != QN_OK) {
        qn_sim_fail("send");
    }
}

LANE_SCENARIO(a_message_longer_than_the_window_gets_through)
{
    lane_fill(long_message, sizeof long_message, 1);
    for (int futex = 0; futex <= 1; futex++) {
        struct lane_world w = {.futex = futex};
        lane_make(&w);
        lane_explore_in_both(
            (struct qn_explore_opts){.nodes = 2,
                                     .node = {receives_one, sends_one},
                                     .setup = lane_setup,
                                     .check = lane_nobody_asleep,
                                     .teardown = lane_teardown,
                                     .ctx = &w,
                                     .deviations = 1 + LANE_LESS});
        free(w.lane[0]);
    }
}

/* ---- a next incarnation ---- */

/* Node 1 was incarnation 11, to which `filled` messages were sent and from
 * which one was received in part, and has ended. */
static void next_setup(void *ctx)
{
    struct lane_world *w = ctx;
    const struct qn_frame first = {
        .kind = QN_FRAME_FIRST, .data = "old", .len = 3, .total = 6};
    struct qn_frame f;
    lane_setup(ctx);
    if (qn_qp_try_send(w->qp[1], "older", 5) != QN_OK ||
        qn_qp_try_send_frame(w->qp[1], &first) != QN_OK ||
        qn_qp_peek_frame(w->qp[0], &f) != QN_OK) {
        abort(); /* both frames have arrived */
    }
    qn_qp_release_frame(w->qp[0]);
    qn_qp_close(w->qp[1]);
    qn_device_detach(w->port[1]);
    w->qp[1] = NULL;
    w->port[1] = NULL;
}

static void must_receive(struct qn_qp *qp, const char *text)
{
    char msg[64];
    size_t len = 0;
    int rc = qn_qp_recv(qp, msg, sizeof msg, &len, QN_TIME_NEVER);
    if (rc != QN_OK || len != strlen(text) || memcmp(msg, text, len) != 0) {
        qn_sim_fail("a message of another incarnation");
    }
}

/* It sends before it has heard of the successor's attachment, and after. */
static void is_told(void *ctx)
{
    struct lane_world *w = ctx;
    qn_device_down(w->port[0], 1);
    qn_qp_down(w->qp[0]);
    qn_qp_close(w->qp[0]);
    w->qp[0] = NULL;
    qn_device_up(w->port[0], 1, 12);
    lane_open(w, 0, 10, 12);
    if (qn_qp_send(w->qp[0], "new", 3, QN_TIME_NEVER) != QN_OK) {
        qn_sim_fail("send");
    }
    must_receive(w->qp[0], "answer");
}

static void comes_back(void *ctx)
{
    struct lane_world *w = ctx;
    lane_attach(w, 1, 12, 10);
    lane_open(w, 1, 12, 10);
    must_receive(w->qp[1], "new");
    if (qn_qp_send(w->qp[1], "answer", 6, QN_TIME_NEVER) != QN_OK) {
        qn_sim_fail("send");
    }
}

LANE_SCENARIO(a_next_incarnation_gets_what_is_sent_to_it_only)
{
    struct lane_world w = {.filled = 3, .bytes = 8};
    lane_make(&w);
    lane_explore_in_both((struct qn_explore_opts){
        .nodes = 2,
        .node = {is_told, comes_back},
        .setup = next_setup,
        .check = lane_nobody_asleep,
        .teardown = lane_teardown,
        .ctx = &w,
        .all = true, /* nodes allocate: no run is given up */
        .deviations = 2});
    free(w.lane[0]);
}

/* ---- defects: what they do to memory is of no interest ---- */

#ifndef __SANITIZE_ADDRESS__

void lane_a_flush_of_little_tells_of_room(void);

static const struct {
    enum qn_udn_mutant mutant;
    void (*by)(void);
    const char *name;
} finds[] = {
#define FOUND(mutant, by)                                                      \
    {                                                                          \
        QN_UDN_MUTANT_##mutant, lane_##by, #mutant                             \
    }
    FOUND(NO_REST, a_message_longer_than_the_window_gets_through),
    FOUND(NO_WANT, what_waits_for_room_at_the_core_is_sent_when_there_is_some),
    FOUND(MUTE, a_flush_of_little_tells_of_room),
    FOUND(OLD_FRAMES, a_next_incarnation_gets_what_is_sent_to_it_only),
#undef FOUND
};

Test(lane_words, each_defect_is_found, .timeout = 600)
{
#define X(name, text) +1
    cr_assert_eq(QN_ARRAY_COUNT(finds), 0 QN_UDN_MUTANT_MAP(X));
#undef X
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(finds); i++) {
        lane_search = (struct lane_search){.on = true, .deviations = 2};
        qn_udn_mutant = finds[i].mutant;
        finds[i].by();
        qn_udn_mutant = QN_UDN_MUTANT_NONE;
        cr_expect(lane_search.found, "not found: %s", finds[i].name);
        lane_search.on = false;
    }
}

#endif
