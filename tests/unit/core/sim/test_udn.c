/*
 * Message queues of TILE-Gx: what a message costs and when it arrives, order,
 * room, and what messages are worth beside shared memory.
 *
 * Node i is core i of the 6 x 6 grid.
 */
#include "tests/unit/core/sim/tiled_world.h"

#define FAR    35u /* ten hops from core 0 */
#define SERVED 2000u

static void begin(void)
{
    load_machine("tilegx_8036");
    world.m.clock_ghz = 1;
    make_prices(36);
    cr_assert_eq(qn_udn_create(&world.udn, &world.m, 36), QN_OK);
}

static void end(void)
{
    qn_udn_destroy(world.udn);
    qn_prices_destroy(world.prices);
}

static void run(void)
{
    struct qn_timed_result r = run_world();
    qn_timed_result_free(&r);
}

static void send(uint32_t to, uint64_t value, uint32_t n)
{
    uint64_t words[118];
    for (uint32_t i = 0; i < n; i++) {
        words[i] = value + i;
    }
    qn_udn_send(world.udn, to, 0, words, n);
}

static uint64_t receive(uint32_t n)
{
    uint64_t words[118];
    qn_udn_receive(world.udn, 0, words, n);
    for (uint32_t i = 1; i < n; i++) {
        cr_assert_eq(words[i], words[0] + i);
    }
    return words[0];
}

static uint64_t now(void)
{
    return qn_timed_clock() / 1000;
}

/* ---- prices ---- */

static void send_three(void)
{
    send(FAR, 7, 3);
    world.took[0] = now();
}

static void receive_three(void)
{
    world.took[1] = receive(3);
    world.took[2] = now();
}

Test(udn, a_message_of_n_words_costs_n_plus_1_and_arrives_h_plus_n_plus_2_later,
     .init = begin, .fini = end)
{
    world.node[0] = send_three;
    world.node[FAR] = receive_three;
    run();
    cr_assert_eq(world.took[0], 4);
    cr_assert_eq(world.took[1], 7);
    cr_assert_eq(world.took[2], 10 + 3 + 2 + 4, "%lu", world.took[2]);
}

static void receive_late(void)
{
    work_cycles(1000);
    receive_three();
}

Test(udn, words_that_are_there_cost_only_their_receive, .init = begin,
     .fini = end)
{
    world.node[0] = send_three;
    world.node[FAR] = receive_late;
    run();
    cr_assert_eq(world.took[2], 1000 + 4);
}

static void poll_queue(void)
{
    while (qn_udn_empty(world.udn, 0)) {
        qn_pause();
    }
    world.took[1] = now();
}

static void send_at_5000(void)
{
    work_cycles(5000);
    send(FAR, 7, 1);
}

/* A poller is woken by the arrival, not by the end of its pause. */
Test(udn, an_arrival_ends_a_pause, .init = begin, .fini = end)
{
    world.node[0] = send_at_5000;
    world.node[FAR] = poll_queue;
    run();
    cr_assert(world.took[1] >= 5013 && world.took[1] <= 5016, "%lu",
              world.took[1]);
}

static void send_100_words_at_5000(void)
{
    work_cycles(5000);
    send(FAR, 7, 100);
}

static void poll_in_flight(void)
{
    work_cycles(5005);
    poll_queue();
}

Test(udn, an_arrival_ends_a_pause_that_began_while_it_was_on_its_way,
     .init = begin, .fini = end)
{
    world.node[0] = send_100_words_at_5000;
    world.node[FAR] = poll_in_flight;
    run();
    cr_assert(world.took[1] >= 5112 && world.took[1] <= 5115, "%lu",
              world.took[1]);
}

/* ---- order and room ---- */

static void send_100(void)
{
    for (uint32_t i = 0; i < 100; i++) {
        send(5, qn_sim.self * 1000 + i, 1 + i % 3);
    }
}

static void receive_200(void)
{
    uint64_t next[36] = {0};
    for (uint32_t i = 0; i < 200; i++) {
        uint64_t first;
        qn_udn_receive(world.udn, 0, &first, 1);
        uint64_t from = first / 1000;
        cr_assert_eq(first % 1000, next[from], "%lu", first);
        for (uint64_t k = 0; k < next[from] % 3; k++) {
            uint64_t more;
            qn_udn_receive(world.udn, 0, &more, 1);
            cr_assert_eq(more, first + k + 1);
        }
        next[from]++;
        world.took[from]++;
    }
}

/* The receiver is slower than both senders, so its room is full. */
Test(udn, messages_of_a_sender_stay_whole_and_in_order, .init = begin,
     .fini = end)
{
    world.node[0] = send_100;
    world.node[4] = send_100;
    world.node[5] = receive_200;
    struct qn_timed_result r = run_world();
    cr_assert_eq(world.took[0], 100);
    cr_assert_eq(world.took[4], 100);
    cr_assert(r.node[0].blocked > 0 && r.node[4].blocked > 0);
    for (uint32_t i = 0; i < 36; i++) {
        const struct qn_timed_node *n = &r.node[i];
        cr_assert_eq(n->clock, n->hit + n->read + n->write + n->waited +
                                   n->fenced + n->library + n->worked +
                                   n->device + n->blocked + n->paused +
                                   n->parked + n->stopped);
    }
    qn_timed_result_free(&r);
}

static void fill_room(void)
{
    send(FAR, 0, 118);
    world.took[0] = now();
    send(FAR, 0, 1);
    world.took[1] = now();
}

static void make_room_at_1000(void)
{
    work_cycles(1000);
    receive(1);
}

Test(udn, a_sender_waits_for_room_until_words_were_received, .init = begin,
     .fini = end)
{
    world.node[0] = fill_room;
    world.node[FAR] = make_room_at_1000;
    run();
    cr_assert_eq(world.took[0], 119);
    cr_assert_eq(world.took[1], 1000 + 2 + 2, "%lu", world.took[1]);
}

static void send_one_at_5(void)
{
    work_cycles(5);
    send(0, 1, 1);
}

static void send_one(void)
{
    send(0, 2, 1);
}

static void receive_two(void)
{
    world.took[0] = receive(1);
    world.took[1] = receive(1);
}

/* From core 35 it is there at 13, from core 1 at 5 + 4. */
Test(udn, messages_are_received_in_the_order_of_arrival, .init = begin,
     .fini = end)
{
    world.node[0] = receive_two;
    world.node[1] = send_one_at_5;
    world.node[FAR] = send_one;
    run();
    cr_assert_eq(world.took[0], 1);
    cr_assert_eq(world.took[1], 2);
}

static void fill_all(void)
{
    send(FAR, 0, 118);
}

static void send_ten_at_200(void)
{
    work_cycles(200);
    send(FAR, 0, 10);
    world.took[1] = now();
}

static void send_one_at_1500(void) /* there is room, but not its turn */
{
    work_cycles(1500);
    send(FAR, 0, 1);
    world.took[2] = now();
}

static void receive_5_and_20(void)
{
    work_cycles(1000);
    receive(5); /* room for one word, but not for ten */
    work_cycles(1000);
    receive(20); /* room for both */
}

Test(udn, senders_get_room_in_the_order_in_which_they_asked, .init = begin,
     .fini = end)
{
    world.node[0] = fill_all;
    world.node[1] = send_ten_at_200;
    world.node[2] = send_one_at_1500;
    world.node[FAR] = receive_5_and_20;
    run();
    cr_assert_eq(world.took[1], 2027 + 11, "%lu", world.took[1]);
    cr_assert_eq(world.took[2], 2027 + 2, "%lu", world.took[2]);
}

Test(udn, a_receiver_without_a_message_is_asleep_at_the_end, .init = begin,
     .fini = end)
{
    world.node[FAR] = receive_three;
    struct qn_timed_result r = run_world();
    cr_assert_eq(r.node[FAR].state, QN_SIM_SLEEPS);
    qn_timed_result_free(&r);
}

Test(udn, only_a_tilegx_has_it)
{
    struct qn_udn *u;
    load_machine("scc");
    cr_assert_eq(qn_udn_create(&u, &world.m, 36), QN_EINVAL);
}

/* ---- messages beside shared memory ---- */

static void ping(void)
{
    for (uint32_t i = 0; i < 100; i++) {
        send(FAR, i, 1);
        receive(1);
    }
    world.took[0] = now();
}

static void pong(void)
{
    for (uint32_t i = 0; i < 100; i++) {
        receive(1);
        send(0, i, 1);
    }
}

static void await_line(uint32_t line, uint64_t value)
{
    while (qn_load(&world.line[line].x, QN_ACQUIRE) != value) {
        qn_pause();
    }
}

static void ping_line(void)
{
    for (uint64_t i = 1; i <= 100; i++) {
        qn_store(&world.line[0].x, i, QN_RELAXED);
        await_line(1, i);
    }
    world.took[1] = now();
}

static void pong_line(void)
{
    for (uint64_t i = 1; i <= 100; i++) {
        await_line(0, i);
        qn_store(&world.line[1].x, i, QN_RELAXED);
    }
}

Test(udn, a_ping_pong_of_messages_beats_one_of_shared_lines, .init = begin,
     .fini = end)
{
    world.node[0] = ping;
    world.node[FAR] = pong;
    run();
    world.node[0] = ping_line;
    world.node[FAR] = pong_line;
    run();
    /* A way: 13 cycles, and 2 to receive. */
    cr_assert_eq(world.took[0], 200 * 15, "%lu", world.took[0]);
    /* About half of an acknowledgement with a copy to drop (20 to 50), and a
     * load from the home (32 to 52). */
    cr_assert(world.took[1] > 200 * 52 && world.took[1] < 200 * 102, "%lu",
              world.took[1]);
}

/* ---- a counter behind a server ---- */

static qn_ps_t dispatch;

static void increment(void)
{
    qn_a64 *counter = &world.line[100].x;
    uint64_t v = qn_load(counter, QN_RELAXED);
    work_cycles(1);
    qn_store(counter, v + 1, QN_RELAXED);
}

static uint64_t idle(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + 1;
    return (*state >> 33) % 51;
}

static void message_server(void)
{
    for (uint32_t i = 0; i < 35 * SERVED; i++) {
        uint64_t request[3];
        qn_udn_receive(world.udn, 0, request, 3);
        qn_timed_work(dispatch);
        increment();
        qn_udn_send(world.udn, (uint32_t)request[0], 0, request, 1);
    }
    world.took[0] = now();
}

static void message_client(void)
{
    uint64_t state = qn_sim.self;
    for (uint32_t i = 0; i < SERVED; i++) {
        uint64_t request[3] = {qn_sim.self, 0, 0}, reply;
        qn_udn_send(world.udn, 0, 0, request, 3);
        qn_udn_receive(world.udn, 0, &reply, 1);
        work_cycles(1 + idle(&state));
    }
}

/* A slot is one line: a request makes its word odd, the reply even. */
static void memory_server(void)
{
    uint64_t last[36] = {0};
    for (uint32_t served = 0; served < 35 * SERVED;) {
        for (uint32_t i = 1; i < 36; i++) {
            uint64_t word = qn_load(&world.line[i].x, QN_ACQUIRE);
            if (word % 2 == 0 || word == last[i]) {
                continue;
            }
            last[i] = word;
            qn_timed_work(dispatch + 4000); /* operation and argument: hits */
            increment();
            qn_timed_work(1000); /* the result, in the same line */
            qn_store(&world.line[i].x, word + 1, QN_RELAXED);
            served++;
        }
    }
    world.took[1] = now();
}

static void memory_client(void)
{
    uint64_t state = qn_sim.self;
    qn_a64 *slot = &world.line[qn_sim.self].x;
    for (uint64_t i = 0; i < SERVED; i++) {
        work_cycles(2); /* operation and argument */
        qn_store(slot, 2 * i + 1, QN_RELAXED);
        while (qn_load(slot, QN_ACQUIRE) != 2 * i + 2) {
            qn_pause();
        }
        work_cycles(1 + idle(&state));
    }
}

/* Published: 4.3; a model on paper: 3.9. */
Test(udn, a_server_of_messages_is_about_four_times_one_of_shared_memory,
     .init = begin, .fini = end)
{
    dispatch = qn_tiled_ps(&world.m, QN_TILEGX_DISPATCH);
    world.node[0] = message_server;
    for (uint32_t i = 1; i < 36; i++) {
        world.node[i] = message_client;
    }
    run();
    cr_assert_eq(atomic_load(&world.line[100].x), 35 * SERVED);
    world.node[0] = memory_server;
    for (uint32_t i = 1; i < 36; i++) {
        world.node[i] = memory_client;
    }
    run();
    cr_assert_eq(atomic_load(&world.line[100].x), 2 * 35 * SERVED);
    double message = (double)world.took[0] / (35 * SERVED);
    double memory = (double)world.took[1] / (35 * SERVED);
    /* At 1.2 GHz, 88 M/s are 13.6 cycles. */
    cr_assert(message > 13 && message < 14.2, "%f", message);
    cr_assert(memory / message > 0.85 * 4.3 && memory / message < 1.15 * 4.3,
              "%f / %f", memory, message);
}
