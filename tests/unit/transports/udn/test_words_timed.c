/*
 * Words on the simulated TILE-Gx 8036: code that emulates queues in memory is
 * charged what the hardware's queues cost, and nothing else. h: links between
 * two cores; node i is core i of the 6 x 6 grid; a cycle is 1000 ps.
 */
#include <stdlib.h>
#include <string.h>

#include "core/sim/timed/tiled/tiled.h"
#include "core/sim/timed/timed.h"
#include "core/words/words.h"
#include "tests/support/test.h"
#include "transports/udn/udn.h"

#define NODES 36u
#define FAR   35u /* ten links from core 0 */

static struct {
    struct qn_tiled m;
    struct qn_prices *prices;
    uint8_t *memory;
    struct qn_device *node[NODES];
    struct qn_qp *qp[NODES]; /* between nodes 0 and FAR */
    void (*does[NODES])(void);
    uint64_t took[4]; /* cycles */
    struct qn_timed_result result;
} world;

static void attach_all(void)
{
    const struct qn_device_opts opts = {.nodes = NODES, .lanes = 1};
    uint64_t inc[NODES];
    size_t bytes = qn_udn_device.bytes(&opts);
    world.memory = aligned_alloc(QN_CACHELINE, bytes);
    cr_assert_not_null(world.memory);
    memset(world.memory, 0, bytes);
    qn_udn_device.format(world.memory, &opts);
    for (uint32_t i = 0; i < NODES; i++) {
        inc[i] = 10 + i;
    }
    for (uint32_t i = 0; i < NODES; i++) {
        const struct qn_device_attach_opts o = {.memory = world.memory,
                                                .opts = &opts,
                                                .self = i,
                                                .incarnation = inc};
        cr_assert_eq(qn_udn_device.attach(&world.node[i], &o), QN_OK);
    }
}

static void begin(void)
{
    struct qn_parse_error e = {{0}};
    uint32_t core[NODES];
    memset(&world, 0, sizeof world);
    cr_assert_eq(qn_tiled_load(&world.m, QN_DATA "/tilegx_8036.json", &e),
                 QN_OK, "%s", e.text);
    world.m.clock_ghz = 1;
    for (uint32_t i = 0; i < NODES; i++) {
        core[i] = i;
    }
    cr_assert_eq(qn_tiled_prices(&world.prices, &world.m, core, NODES), QN_OK);
    attach_all();
}

static void end(void)
{
    for (uint32_t i = 0; i < NODES; i++) {
        qn_qp_close(world.qp[i]);
        qn_device_detach(world.node[i]);
    }
    free(world.memory);
    qn_timed_result_free(&world.result);
    qn_prices_destroy(world.prices);
}

#define TIMED_TEST(name)                                                       \
    Test(words_timed, name, .init = begin, .fini = end, .timeout = 60)

static void node_main(void *ctx, uint32_t node)
{
    (void)ctx;
    if (world.does[node] != NULL) {
        world.does[node]();
    }
}

static void run(void)
{
    const struct qn_timed_opts o = {
        .nodes = NODES, .prices = world.prices, .main = node_main};
    cr_assert_eq(qn_timed_run(&o, &world.result), QN_OK);
    cr_assert_null(world.result.fault);
}

static uint64_t now(void)
{
    return qn_timed_clock() / 1000;
}

static void send(qn_node_t from, qn_node_t to, uint64_t value, uint32_t n)
{
    uint64_t words[QN_WORDS_SHARED_MAX];
    for (uint32_t i = 0; i < n; i++) {
        words[i] = value + i;
    }
    if (qn_words_try_send(world.node[from], (struct qn_words_target){to, 1},
                          words, n) != QN_OK) {
        qn_timed_fail("send");
    }
}

static void receive(qn_node_t node, uint64_t value, uint32_t n)
{
    uint64_t words[QN_WORDS_SHARED_MAX];
    while (qn_words_try_receive(world.node[node], 1, words, n) != QN_OK) {
        qn_pause();
    }
    for (uint32_t i = 0; i < n; i++) {
        if (words[i] != value + i) {
            qn_timed_fail("wrong words");
        }
    }
}

/* ---- the ledger ---- */

static void send_three(void)
{
    send(0, FAR, 7, 3);
    world.took[0] = now();
}

static void receive_three(void)
{
    receive(FAR, 7, 3);
    world.took[1] = now();
}

TIMED_TEST(a_message_costs_n_plus_1_and_arrives_h_plus_n_plus_2_later)
{
    world.does[0] = send_three;
    world.does[FAR] = receive_three;
    run();
    cr_assert_eq(world.took[0], 4, "%lu", world.took[0]);
    /* One look may be under way when it arrives. */
    cr_assert(world.took[1] >= 10 + 3 + 2 + 4 && world.took[1] <= 20, "%lu",
              world.took[1]);
    const struct qn_timed_node *n = &world.result.node[0];
    cr_assert_eq(n->clock, n->device, "nothing but the send has a price");
    n = &world.result.node[FAR];
    cr_assert_eq(n->clock, n->device + n->paused);
}

static void look_before_and_after(void)
{
    cr_assert(qn_words_empty(world.node[FAR], 1));
    world.took[1] = now();
    qn_timed_work(13000);
    cr_assert(qn_words_empty(world.node[FAR], 1), "it arrives at 15");
    qn_timed_work(1000);
    cr_assert(!qn_words_empty(world.node[FAR], 1));
    world.took[2] = now();
    receive(FAR, 7, 3);
    world.took[3] = now();
}

TIMED_TEST(a_look_costs_1_and_finds_what_has_arrived)
{
    world.does[0] = send_three;
    world.does[FAR] = look_before_and_after;
    run();
    cr_assert_eq(world.took[1], 1);
    cr_assert_eq(world.took[2], 1 + 13 + 1 + 1 + 1, "%lu", world.took[2]);
    cr_assert_eq(world.took[3], world.took[2] + 4);
}

static void ping(void)
{
    for (uint32_t i = 0; i < 100; i++) {
        send(0, FAR, i, 1);
        receive(0, i, 1);
    }
    world.took[0] = now();
}

static void pong(void)
{
    for (uint32_t i = 0; i < 100; i++) {
        receive(FAR, i, 1);
        send(FAR, 0, i, 1);
    }
}

/* As the queues of core/sim/timed/tiled/udn.h: a way takes 13 cycles, and 2 to
 * receive; at most a look more. */
TIMED_TEST(a_ping_pong_costs_what_it_costs_on_the_machine)
{
    world.does[0] = ping;
    world.does[FAR] = pong;
    run();
    cr_assert(world.took[0] >= 200 * 15 && world.took[0] <= 200 * 16, "%lu",
              world.took[0]);
}

static void fill_core(void)
{
    uint64_t word = 0;
    send(0, FAR, 0, 118);
    world.took[0] = now();
    if (qn_words_try_send(world.node[0], (struct qn_words_target){FAR, 1},
                          &word, 1) != QN_EAGAIN) {
        qn_timed_fail("more than there is room for");
    }
    world.took[1] = now();
}

TIMED_TEST(a_send_without_room_costs_a_look)
{
    world.does[0] = fill_core;
    run();
    cr_assert_eq(world.took[0], 119);
    cr_assert_eq(world.took[1], 120);
}

/* ---- the queuepair on it ---- */

static void send_messages(void)
{
    for (uint32_t i = 0; i < 200; i++) {
        while (qn_qp_try_send(world.qp[0], &i, sizeof i) != QN_OK) {
            qn_pause();
        }
    }
    while (qn_qp_flush(world.qp[0])) {
        qn_pause();
    }
}

static void receive_messages(void)
{
    for (uint32_t i = 0; i < 200; i++) {
        uint32_t got = 0;
        size_t len;
        while (qn_qp_try_recv(world.qp[FAR], &got, sizeof got, &len) != QN_OK) {
            qn_pause();
        }
        if (got != i) {
            qn_timed_fail("wrong message");
        }
    }
    world.took[0] = now();
}

static void open_end(qn_node_t self, qn_node_t peer)
{
    const struct qn_qp_opts o = {.device = world.node[self],
                                 .self = self,
                                 .peer = peer,
                                 .self_inc = 10 + self,
                                 .peer_inc = 10 + peer};
    cr_assert_eq(qn_udn.open(&world.qp[self], &o), QN_OK);
}

/* A message of 2 words; a window of 14 and an acknowledgement per 7. */
TIMED_TEST(messages_of_a_queuepair_cost_their_words)
{
    open_end(0, FAR);
    open_end(FAR, 0);
    world.does[0] = send_messages;
    world.does[FAR] = receive_messages;
    run();
    cr_assert(world.took[0] > 200 * 3 && world.took[0] < 200 * 12, "%lu",
              world.took[0]);
}
