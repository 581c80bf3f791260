/*
 * Drivers of a whole group in one thread, over the real transport and private
 * outboxes, in virtual time: each round gives every running node one turn.
 */
#include <stdlib.h>

#include "core/place/commons.h"
#include "core/place/outbox.h"
#include "core/wait/bell.h"
#include "paxos/driver.h"
#include "tests/support/test.h"
#include "transports/registry.h"
#include "transports/ump.h"

enum { MAX = 5, CELLS = 64, LOG_MAX = 4096 };

struct logged {
    qn_node_t origin;
    uint64_t seq;
    uint64_t first8; /* first bytes of the command */
    size_t len;
    qn_slot_t slot;
    uint64_t stamp_ms;
};

struct node {
    struct qn_driver *driver;
    struct qn_outbox *own;
    struct qn_outbox *view[MAX];
    struct qn_qp *direct[MAX], *tree[MAX];
    struct qn_bell bell;
    struct qn_ringer ringer[MAX]; /* [p] rings node p */
    struct logged log[LOG_MAX];
    uint32_t logged;
    uint64_t mine; /* own commands applied */
    bool stopped;
    uint32_t told;
    char told_text[16];
};

static struct node node[MAX];
static struct qn_events events[MAX];
static alignas(
    QN_CACHELINE) uint8_t flight[MAX][QN_FLIGHT_BYTES(QN_FLIGHT_ENTRIES)];
static struct qn_commons *commons;
static uint32_t nodes;
static qn_time_t now;
static uint32_t work = 1; /* of a command, as apply says */

static uint32_t on_apply(void *ctx, const struct qn_applied *a)
{
    struct node *n = ctx;
    cr_assert_lt(n->logged, LOG_MAX);
    struct logged *l = &n->log[n->logged++];
    *l = (struct logged){.origin = a->origin,
                         .seq = a->seq,
                         .len = a->bytes.len,
                         .slot = a->slot,
                         .stamp_ms = a->stamp_ms};
    memcpy(&l->first8, a->bytes.data, a->bytes.len < 8 ? a->bytes.len : 8);
    cr_assert_eq(a->mine, a->origin == (qn_node_t)(n - node));
    if (a->mine) {
        n->mine++;
        cr_assert_eq(a->seq, n->mine, "own commands come in order, once");
    }
    return work;
}

static void on_applied(void *ctx, qn_slot_t slot, uint64_t stamp_ms)
{
    (void)ctx;
    (void)slot;
    (void)stamp_ms;
}

static bool peers_are_wild; /* and write into what they have sent */

static void on_told(void *ctx, qn_node_t from, struct qn_slice bytes)
{
    struct node *n = ctx;
    if (peers_are_wild) {
        void *lane = qn_outbox_lane(node[from].own, (qn_node_t)(n - node),
                                    QN_LANE_DIRECT);
        memset((char *)lane + sizeof(struct qn_ump_lane), 'w', CELLS * 64);
    }
    n->told++;
    memcpy(n->told_text, bytes.data, bytes.len < 15 ? bytes.len : 15);
}

static void memory_open(const struct qn_transport *t)
{
    for (uint32_t i = 0; i < nodes; i++) {
        const struct qn_outbox_opts o = {
            .node = i,
            .nodes = nodes,
            .incarnation = 100 + i,
            .lane_bytes = t->lane_bytes(CELLS),
            .numa_node = -1,
        };
        cr_assert_eq(qn_outbox_create(&node[i].own, &o), QN_OK);
    }
}

static void channels_open(const struct qn_transport *t, uint32_t i)
{
    qn_bell_init(&node[i].bell, qn_outbox_bell(node[i].own), -1);
    for (uint32_t p = 0; p < nodes; p++) {
        qn_ringer_init(&node[i].ringer[p], qn_outbox_bell(node[p].own), -1);
        struct qn_qp **qp[QN_LANES] = {&node[i].direct[p], &node[i].tree[p]};
        for (int lane = 0; lane < QN_LANES && p != i; lane++) {
            const struct qn_qp_opts o = {
                .tx = qn_outbox_lane(node[i].own, p, (enum qn_lane)lane),
                .rx = qn_outbox_lane(node[p].own, i, (enum qn_lane)lane),
                .cells = CELLS,
                .self = i,
                .peer = p,
                .self_inc = 100 + i,
                .peer_inc = 100 + p,
                .bell = &node[i].bell,
                .ringer = &node[i].ringer[p],
            };
            cr_assert_eq(t->open(qp[lane], &o), QN_OK);
        }
    }
}

static void group_start(uint32_t n)
{
    const struct qn_transport *t = qn_transport_find("ump");
    int fd = -1;
    uint64_t inc[MAX];
    nodes = n;
    now = QN_S;
    cr_assert_eq(qn_commons_create(&commons, n, false, &fd), QN_OK);
    memory_open(t);
    for (uint32_t i = 0; i < n; i++) {
        inc[i] = 100 + i;
        channels_open(t, i);
    }
    for (uint32_t i = 0; i < n; i++) {
        const struct qn_outbox_state *peers[MAX] = {0};
        for (uint32_t p = 0; p < n; p++) {
            peers[p] = p == i ? NULL : qn_outbox_state(node[p].own);
        }
        memset(flight[i], 0, sizeof flight[i]);
        qn_events_init(&events[i], flight[i], NULL, 1);
        const struct qn_driver_opts o = {
            .self = i,
            .nodes = n,
            .events = &events[i],
            .incarnation = inc,
            .direct = node[i].direct,
            .tree = node[i].tree,
            .topology = "sequential",
            .service = {.apply = on_apply,
                        .applied = on_applied,
                        .told = on_told,
                        .ctx = &node[i]},
            .read_index = qn_commons_read_index(commons),
            .state = qn_outbox_state(node[i].own),
            .peer_state = peers,
            .fixed = true,
            .seed = 1,
            .now = now,
        };
        cr_assert_eq(qn_driver_create(&node[i].driver, &o), QN_OK);
    }
}

static void group_stop(void)
{
    for (uint32_t i = 0; i < nodes; i++) {
        qn_driver_destroy(node[i].driver);
        for (uint32_t p = 0; p < nodes; p++) {
            qn_qp_close(node[i].direct[p]);
            qn_qp_close(node[i].tree[p]);
        }
    }
    for (uint32_t i = 0; i < nodes; i++) {
        qn_outbox_destroy(node[i].own);
    }
    qn_commons_destroy(commons);
}

/* @return true if something could not be sent. */
static bool one_turn(uint32_t i)
{
    qn_driver_turn(node[i].driver, now, now / QN_MS);
    /* Publish before expose. */
    cr_assert_geq(qn_load(qn_commons_read_index(commons), QN_SEQ_CST),
                  qn_driver_applied(node[i].driver));
    return qn_driver_flush(node[i].driver, now);
}

static void rounds(uint32_t count)
{
    for (uint32_t r = 0; r < count; r++) {
        now += 100 * QN_US;
        for (uint32_t i = 0; i < nodes; i++) {
            if (!node[i].stopped) {
                one_turn(i);
            }
        }
    }
}

static bool submit(uint32_t i, const void *bytes, size_t len)
{
    uint64_t seq = 0;
    const struct qn_slice part = {bytes, len};
    return qn_driver_submit(node[i].driver, &part, 1, &seq) == QN_OK;
}

static void submit_number(uint32_t i, uint64_t x)
{
    cr_assert(submit(i, &x, sizeof x), "node %u refused %lu", i,
              (unsigned long)x);
}

static void check_equal_logs(uint32_t expected)
{
    for (uint32_t i = 0; i < nodes; i++) {
        cr_assert_eq(node[i].logged, expected, "node %u applied %u of %u", i,
                     node[i].logged, expected);
        cr_assert_arr_eq(node[i].log, node[0].log,
                         expected * sizeof(struct logged), "node %u", i);
    }
}

Test(driver, commands_of_all_origins_come_in_one_order)
{
    group_start(3);
    for (uint64_t x = 0; x < 300; x++) {
        submit_number((uint32_t)(x % 3), x);
        rounds(x % 7 == 0);
    }
    rounds(50);
    check_equal_logs(300);
    group_stop();
}

Test(driver, a_group_of_one_decides_by_itself)
{
    group_start(1);
    for (uint64_t x = 0; x < 100; x++) {
        submit_number(0, x);
    }
    rounds(10);
    check_equal_logs(100);
    group_stop();
}

Test(driver, groups_of_two_and_five_agree)
{
    for (uint32_t n = 2; n <= 5; n += 3) {
        memset(node, 0, sizeof node);
        group_start(n);
        for (uint64_t x = 0; x < 200; x++) {
            submit_number((uint32_t)(x % n), x);
        }
        rounds(100);
        check_equal_logs(200);
        group_stop();
    }
}

Test(driver, commands_far_longer_than_a_lane_pass_in_pieces)
{
    static uint8_t big[3u << 20];
    group_start(3);
    for (uint32_t i = 0; i < 3; i++) {
        memset(big, (int)('a' + i), sizeof big);
        cr_assert(submit(i, big, sizeof big - i));
        submit_number(i, i);
    }
    rounds(20000);
    check_equal_logs(6);
    for (uint32_t k = 0; k < 6; k++) {
        const struct logged *l = &node[2].log[k];
        cr_assert_eq(l->len, l->seq == 1 ? sizeof big - l->origin : 8);
    }
    struct qn_driver_status st;
    qn_driver_status(node[2].driver, &st);
    cr_assert_eq(st.fetches, 0, "the pieces came, yet were fetched");
    group_stop();
}

/* FILL of this batch takes longer than T_FETCH (50 ms of these rounds). */
Test(driver, a_batch_that_takes_long_to_come_is_asked_for_once)
{
    enum { BYTES = 8 << 20 };
    uint8_t *big = calloc(1, BYTES);
    group_start(3);
    node[2].stopped = true;
    cr_assert(submit(0, big, BYTES));
    rounds(20000);
    cr_assert_eq(node[0].logged, 1);
    node[2].stopped = false;
    uint32_t count = 0;
    for (; node[2].logged == 0 && count < 20000; count++) {
        rounds(1);
    }
    check_equal_logs(1);
    cr_assert_gt(count, 1000, "too fast to show anything: %u rounds", count);
    struct qn_driver_status st;
    qn_driver_status(node[2].driver, &st);
    cr_assert_eq(st.fetches, 1);
    group_stop();
    free(big);
}

Test(driver, a_learner_that_stood_still_catches_up)
{
    group_start(3);
    node[2].stopped = true;
    for (uint64_t x = 0; x < 3000; x++) {
        submit_number((uint32_t)(x % 2), x);
        rounds(1);
    }
    rounds(20);
    cr_assert_eq(node[0].logged, 3000, "others go on: %u", node[0].logged);
    cr_assert_lt(node[2].logged, 3000);
    node[2].stopped = false;
    rounds(3000);
    check_equal_logs(3000);
    struct qn_driver_status st;
    qn_driver_status(node[2].driver, &st);
    cr_assert_gt(st.fetches, 0);
    group_stop();
}

Test(driver, a_node_that_catches_up_submits_meanwhile)
{
    group_start(3);
    node[2].stopped = true;
    for (uint64_t x = 0; x < 3000; x++) {
        submit_number((uint32_t)(x % 2), x);
        rounds(1);
    }
    rounds(20);
    node[2].stopped = false;
    for (uint64_t x = 0; x < 500; x++) {
        submit_number(2, x);
        rounds(x % 5 == 0);
    }
    rounds(3000);
    check_equal_logs(3500);
    group_stop();
}

/* A turn applies as much as QN_TURN_WORK, and finishes a step of two slots. */
static void turns_are_bounded(uint32_t work_of_each)
{
    work = work_of_each;
    group_start(3);
    for (uint64_t x = 0; x < 1200; x++) {
        for (uint32_t i = 0; i < 3; i++) {
            submit_number(i, x);
        }
    }
    for (uint32_t r = 0; r < 4000 && node[2].logged < 3600; r++) {
        now += 100 * QN_US;
        for (uint32_t i = 0; i < 3; i++) {
            uint32_t before = node[i].logged;
            one_turn(i);
            uint32_t did = node[i].logged - before;
            cr_assert_leq(did, QN_TURN_WORK / work + 2 * 64, "node %u", i);
        }
    }
    rounds(100);
    check_equal_logs(3600);
    group_stop();
    work = 1;
}

Test(driver, no_turn_applies_more_than_its_share)
{
    turns_are_bounded(QN_TURN_WORK / 4);
    memset(node, 0, sizeof node);
    turns_are_bounded(QN_TURN_WORK);
}

/* What a turn has left to apply needs no bell and no message. */
Test(driver, what_a_turn_left_is_pending)
{
    group_start(1);
    for (uint64_t x = 0; x < 2000; x++) {
        submit_number(0, x);
    }
    one_turn(0);
    cr_assert_leq(node[0].logged, QN_TURN_WORK + 2 * 64);
    for (uint32_t i = 0; i < 100 && qn_driver_pending(node[0].driver); i++) {
        one_turn(0);
    }
    check_equal_logs(2000);
    group_stop();
}

Test(driver, held_learns_are_applied_after_release)
{
    group_start(3);
    qn_driver_hold_learns(node[2].driver, true);
    submit_number(0, 7);
    rounds(500);
    cr_assert_eq(node[0].logged, 1);
    cr_assert_eq(node[2].logged, 0);
    cr_assert(!qn_driver_pending(node[2].driver));
    qn_driver_hold_learns(node[2].driver, false);
    rounds(500);
    check_equal_logs(1);
    group_stop();
}

Test(driver, nothing_is_decided_while_the_acceptor_stands_still)
{
    group_start(3);
    node[1].stopped = true;
    submit_number(0, 1);
    submit_number(2, 2);
    rounds(1000);
    cr_assert_eq(node[0].logged + node[2].logged, 0);
    node[1].stopped = false;
    rounds(100);
    check_equal_logs(2);
    group_stop();
}

Test(driver, credit_ends_and_comes_back)
{
    group_start(3);
    node[1].stopped = true;
    uint32_t taken = 0;
    uint64_t x = 0;
    while (qn_driver_room(node[2].driver)) {
        cr_assert(submit(2, &x, sizeof x), "room, but refused");
        taken++;
        cr_assert_leq(taken, 4096);
    }
    cr_assert(!submit(2, &x, sizeof x), "no room, but taken");
    node[1].stopped = false;
    rounds(300);
    cr_assert_eq(node[2].mine, taken);
    cr_assert(qn_driver_room(node[2].driver));
    group_stop();
}

Test(driver, tell_reaches_the_peer_outside_the_log)
{
    group_start(3);
    const struct qn_slice text = {(const uint8_t *)"hello", 5};
    cr_assert_eq(qn_driver_tell(node[0].driver, 2, text), QN_OK);
    rounds(2);
    cr_assert_eq(node[2].told, 1);
    cr_assert_str_eq(node[2].told_text, "hello");
    cr_assert_eq(node[1].told, 0);
    group_stop();
}

Test(driver, what_was_received_stays_as_it_is)
{
    group_start(3);
    peers_are_wild = true;
    const struct qn_slice text = {(const uint8_t *)"hello", 5};
    cr_assert_eq(qn_driver_tell(node[0].driver, 2, text), QN_OK);
    qn_driver_flush(node[0].driver, now);
    one_turn(2);
    cr_assert_str_eq(node[2].told_text, "hello");
    group_stop();
}

Test(driver, the_third_node_may_end_and_the_others_go_on)
{
    group_start(3);
    submit_number(0, 1);
    rounds(20);
    node[2].stopped = true;
    qn_driver_down(node[0].driver, 2, now);
    qn_driver_down(node[1].driver, 2, now);
    for (uint64_t x = 0; x < 500; x++) {
        submit_number((uint32_t)(x % 2), x);
        rounds(1);
    }
    rounds(20);
    cr_assert_eq(node[0].logged, 501);
    cr_assert_eq(node[1].logged, 501);
    group_stop();
}

/* The leader has not read ACCEPTED when the acceptor runs wild: what node 2 has
 * learned tells it, whatever the acceptor has written over its own positions.
 */
Test(driver, what_a_wild_acceptor_has_decided_comes_from_the_others)
{
    group_start(3);
    submit_number(0, 1);
    for (int i = 0; i < 3; i++) {
        one_turn(0);
        one_turn(1);
        one_turn(2);
    }
    submit_number(0, 2);
    one_turn(0);
    one_turn(1);
    one_turn(2);
    cr_assert_eq(node[2].logged, node[0].logged + 1);
    memset(qn_outbox_state(node[1].own), 0, sizeof(struct qn_outbox_state));
    memset(qn_outbox_lane(node[1].own, 0, QN_LANE_DIRECT), 0, CELLS * 64);
    node[1].stopped = true;
    qn_driver_down(node[0].driver, 1, now);
    qn_driver_down(node[2].driver, 1, now);
    rounds(200);
    cr_assert_eq(node[0].logged, 2);
    check_equal_logs(2);
    group_stop();
}

/* ---- the flight recorder ------------------------------------------------- */

static struct qn_flight_event noted[QN_FLIGHT_ENTRIES];

/* What node i has noted, in `noted`; @return how many. */
static uint32_t read_events(uint32_t i)
{
    return qn_flight_read(flight[i], QN_FLIGHT_ENTRIES, noted);
}

/* The first event of a kind from `from` on; there must be one. */
static const struct qn_flight_event *find_event(uint32_t i, uint32_t from,
                                                enum qn_event_kind kind)
{
    uint32_t n = read_events(i);
    for (uint32_t k = from; k < n; k++) {
        if (noted[k].kind == kind) {
            return &noted[k];
        }
    }
    cr_assert_fail("node %u has not noted kind %u", i, kind);
    return NULL;
}

/* Who leads is noted at the beginning, and then nothing, whatever is written:
 * a recorder that commands fill remembers nothing. */
Test(driver, commands_leave_no_trace_in_the_flight_recorder)
{
    group_start(3);
    uint32_t before = read_events(0);
    const struct qn_flight_event *e = find_event(0, 0, QN_EVENT_EPOCH);
    cr_assert_eq(e->node, 0);
    cr_assert_eq(e->b, 1);
    cr_assert_eq(e->a, 100);
    submit_number(0, 0);
    rounds(1);
    cr_assert_eq(find_event(0, 0, QN_EVENT_ROLE)->b, QN_ACTIVE);
    for (uint64_t x = 0; x < 999; x++) {
        submit_number((uint32_t)(x % 3), x);
        rounds(1);
    }
    rounds(50);
    check_equal_logs(1000);
    cr_assert_eq(read_events(0), before + 1);
    cr_assert_eq(read_events(1), 1);
    cr_assert_eq(read_events(2), 1);
    group_stop();
}

Test(driver, a_death_is_noted_when_and_with_what_was_applied)
{
    group_start(3);
    submit_number(0, 1);
    rounds(20);
    qn_driver_down(node[0].driver, 2, now);
    qn_driver_down(node[0].driver, 2, now); /* twice is once */
    uint32_t n = read_events(0);
    const struct qn_flight_event *e = find_event(0, 0, QN_EVENT_DOWN);
    cr_assert_eq(e, &noted[n - 1]);
    cr_assert_eq(e->time, now);
    cr_assert_eq(e->node, 2);
    cr_assert_eq(e->a, 102);
    cr_assert_eq(e->slot, 1);
    group_stop();
}

/* A learner stands still: the acceptor leaves it behind; when it goes on it
 * fetches, from whoever notes that too. */
Test(driver, who_is_left_behind_and_what_it_fetches_is_noted)
{
    group_start(3);
    node[2].stopped = true;
    for (uint64_t x = 0; x < 3000; x++) {
        submit_number((uint32_t)(x % 2), x);
        rounds(1);
    }
    cr_assert_eq(find_event(1, 0, QN_EVENT_BEHIND)->node, 2);
    node[2].stopped = false;
    rounds(3000);
    submit_number(0, 1);
    rounds(20);
    check_equal_logs(3001);
    cr_assert_eq(find_event(1, 0, QN_EVENT_BACK)->node, 2);
    const struct qn_flight_event *e = find_event(2, 0, QN_EVENT_SENT);
    cr_assert_eq(e->b, QN_MSG_FETCH);
    cr_assert_eq(find_event(e->node, 0, QN_EVENT_GOT)->b, QN_MSG_FETCH);
    cr_assert_lt(read_events(2), 100, "a flood");
    group_stop();
}

/* Nothing is decided for a while: how long is noted when it is over, by who
 * waited and by nobody else. */
Test(driver, a_pause_is_noted_by_who_waited)
{
    group_start(3);
    submit_number(2, 1);
    rounds(20);
    node[1].stopped = true;
    submit_number(2, 2);
    rounds(300); /* 30 ms */
    uint32_t before = read_events(2);
    node[1].stopped = false;
    rounds(20);
    check_equal_logs(2);
    const struct qn_flight_event *e = find_event(2, before, QN_EVENT_PAUSE);
    cr_assert_geq(e->a, 29000, "%u us", (unsigned)e->a);
    cr_assert_leq(e->a, 32000, "%u us", (unsigned)e->a);
    for (uint32_t k = read_events(0); k-- > 0;) {
        cr_assert_neq(noted[k].kind, QN_EVENT_PAUSE);
    }
    group_stop();
}

Test(driver, what_is_malformed_is_noted)
{
    group_start(3);
    void *cell = NULL;
    cr_assert_eq(qn_qp_try_reserve(node[2].direct[0], 16, &cell), QN_OK);
    memset(cell, 0xff, 16);
    qn_qp_commit(node[2].direct[0], 16);
    qn_qp_flush(node[2].direct[0]);
    rounds(2);
    cr_assert_eq(find_event(0, 0, QN_EVENT_CORRUPT)->node, 2);
    group_stop();
}

/* ---- going to sleep ------------------------------------------------------ */

/* A bell of the futex kind is turned back to even by who rings it. */
static bool was_rung(uint32_t i)
{
    return qn_load(&qn_outbox_bell(node[i].own)->epoch, QN_SEQ_CST) % 2 == 0;
}

/* The acceptor waits for a child without room, to which it has sent nothing
 * since its last flush: that one must ring it when it has made room. */
Test(driver, a_child_that_was_waited_for_rings)
{
    group_start(3);
    bool waits = false;
    for (uint64_t x = 0; x < 64 && !waits; x++) { /* node 2 stands still */
        submit_number(0, x);
        one_turn(0);
        waits = one_turn(1);
        one_turn(0);
    }
    cr_assert(waits, "64 LEARNs of 2 cells do not fill 64 cells");
    cr_assert(one_turn(1), "still nobody has made room");
    qn_bell_arm(&node[1].bell);
    cr_assert(!qn_driver_pending(node[1].driver));
    one_turn(2);
    cr_assert(was_rung(1), "it sleeps, with room for what it has to send");
    qn_bell_disarm(&node[1].bell);
    rounds(50);
    check_equal_logs(node[0].logged);
    group_stop();
}

static int big_until_failure; /* allocations that still succeed; 0: never */

void *__wrap_malloc(size_t bytes);
void *__real_malloc(size_t bytes);

void *__wrap_malloc(size_t bytes)
{
    if (bytes >= 7000 && big_until_failure != 0 && --big_until_failure == 0) {
        return NULL;
    }
    return __real_malloc(bytes);
}

/* The acceptor has no memory for a batch and leaves its ACCEPT in the channel.
 * If the machine has moved in the same turn it may be taken now, so the node
 * must not sleep; and if nothing has moved, not spin. */
static void refuse_an_accept(bool something_moves)
{
    static uint8_t big[7000]; /* one piece, not joined */
    group_start(3);
    cr_assert(submit(0, big, sizeof big));
    one_turn(0);
    big_until_failure = 1;
    for (uint64_t x = 0; x < 200 && big_until_failure != 0; x++) {
        one_turn(0);
        if (something_moves) {
            submit_number(1, x);
        }
        one_turn(1);
    }
    cr_assert_eq(big_until_failure, 0, "the ACCEPT has not come");
    cr_assert_eq(qn_driver_pending(node[1].driver), something_moves);
    rounds(100);
    cr_assert_eq(node[0].mine, 1, "the command was lost");
    check_equal_logs(node[0].logged);
    group_stop();
}

Test(driver, a_refused_accept_is_looked_at_when_the_machine_has_moved)
{
    refuse_an_accept(true);
}

Test(driver, a_refused_accept_lets_its_node_sleep_meanwhile)
{
    refuse_an_accept(false);
}
