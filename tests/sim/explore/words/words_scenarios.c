/*
 * Node 0 receives, in all scenarios but one; nodes 1 and 2 send to it. Message
 * number m of node i has 2 words: i << 8 | m, and its complement.
 */
#include "tests/sim/explore/words/words_scenarios.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"

#define NODES      3u
#define MOST_WORDS 29u

/* What is different from scenario to scenario. */
struct plan {
    uint32_t nodes;
    void (*node[NODES])(void *ctx);
    const char *(*check)(void *ctx);
    uint32_t deviations, kills;
    bool split;
    uint32_t filled;   /* words of node 1 in the queue, before the run */
    bool foreign;      /* those are of an incarnation that has ended */
    bool lifeless;     /* node 0 ends before it has stored its life */
    bool stranger;     /* node 2 was not told of node 1 yet */
    uint32_t messages; /* of each sender that does not end early */
    uint32_t expected; /* messages, by the receiver */
};

static struct {
    const struct plan *plan;
    uint8_t *memory;
    uint64_t inc[NODES];
    struct qn_doorbell_line line[NODES];
    struct qn_doorbell doorbell[NODES];
    struct qn_doorbell_handle ringer[NODES][NODES];
    struct qn_device *node[NODES];
    qn_a32 ended;         /* a sender in front of its end */
    uint32_t next[NODES]; /* message of that sender */
    uint32_t received;
    int answer;
} w;

static const struct qn_words_target to_0 = {0, 0};

static const struct qn_device_type *type_of(const struct plan *p)
{
    return p->split ? &qn_words_split : &qn_words_shared;
}

static struct qn_device_opts opts_of(const struct plan *p)
{
    return (struct qn_device_opts){.nodes = QN_MAX(p->nodes, 2u), .lanes = 1};
}

static int attach(qn_node_t i)
{
    const struct qn_device_opts opts = opts_of(w.plan);
    const struct qn_device_attach_opts o = {.memory = w.memory,
                                            .opts = &opts,
                                            .self = i,
                                            .incarnation = w.inc,
                                            .doorbell = &w.doorbell[i],
                                            .ringer = w.ringer[i]};
    return type_of(w.plan)->attach(&w.node[i], &o);
}

static void must(bool good)
{
    if (!good) {
        abort();
    }
}

static void fill(void)
{
    const uint64_t words[MOST_WORDS] = {0};
    for (uint32_t left = w.plan->filled; left > 0;) {
        uint32_t n = QN_MIN(left, MOST_WORDS);
        must(qn_words_try_send(w.node[1], to_0, words, n) == QN_OK);
        left -= n;
    }
}

static void setup(void *ctx)
{
    const struct qn_device_opts opts = opts_of(w.plan);
    (void)ctx;
    memset(w.memory, 0, type_of(w.plan)->bytes(&opts));
    type_of(w.plan)->format(w.memory, &opts);
    memset(w.line, 0, sizeof w.line);
    memset(w.next, 0, sizeof w.next);
    qn_store(&w.ended, 0, QN_SEQ_CST);
    w.received = 0;
    w.answer = QN_EAGAIN;
    for (uint32_t i = 0; i < w.plan->nodes; i++) {
        w.inc[i] = 10 + i;
        qn_doorbell_init(&w.doorbell[i], &w.line[i], -1);
        for (uint32_t k = 0; k < w.plan->nodes; k++) {
            qn_doorbell_handle_init(&w.ringer[k][i], &w.line[i], -1);
        }
    }
    for (uint32_t i = 0; i < w.plan->nodes; i++) {
        must(attach(i) == QN_OK);
    }
    fill();
    if (w.plan->lifeless) {
        qn_store(&qn_words_port_of(w.node[0])->own->life, w.inc[0] - 1,
                 QN_SEQ_CST);
    }
    if (w.plan->stranger) {
        qn_device_detach(w.node[2]);
        w.inc[1] = 0;
        must(attach(2) == QN_OK);
        w.inc[1] = qn_words_port_of(w.node[1])->peer[1].inc;
    }
    if (w.plan->foreign) {
        qn_device_down(w.node[0], 1);
        qn_device_detach(w.node[1]);
        w.inc[1] += 10;
        must(attach(1) == QN_OK);
        qn_device_up(w.node[0], 1, w.inc[1]);
    }
}

static void teardown(void *ctx)
{
    (void)ctx;
    for (uint32_t i = 0; i < w.plan->nodes; i++) {
        qn_device_detach(w.node[i]);
    }
}

/* ---- nodes ---- */

static void make(uint64_t *words, uint64_t self, uint64_t number)
{
    words[0] = self << 8 | number;
    words[1] = ~words[0];
}

static void send_from(qn_node_t self)
{
    for (uint32_t m = 0; m < w.plan->messages; m++) {
        uint64_t words[2];
        make(words, self, m);
        if (qn_words_send(w.node[self], to_0, words, 2, QN_TIME_NEVER) !=
            QN_OK) {
            qn_sim_fail("send");
        }
    }
}

static void sender_1(void *ctx)
{
    (void)ctx;
    send_from(1);
}

static void sender_2(void *ctx)
{
    (void)ctx;
    send_from(2);
}

static void idle(void *ctx)
{
    (void)ctx;
}

/* @return what is wrong with a message, or NULL. */
static const char *taken(const uint64_t *words)
{
    uint64_t sender = words[0] >> 8;
    if (words[1] != ~words[0] || sender == 0 || sender >= w.plan->nodes) {
        return "a torn or interleaved message";
    }
    if ((words[0] & 0xff) != w.next[sender]) {
        return "a message is lost, doubled or out of order";
    }
    w.next[sender]++;
    w.received++;
    return NULL;
}

static void take(const uint64_t *words)
{
    const char *wrong = taken(words);
    if (wrong != NULL) {
        qn_sim_fail(wrong);
    }
}

static void receiver(void *ctx)
{
    uint64_t words[MOST_WORDS];
    (void)ctx;
    for (uint32_t left = w.plan->foreign ? 0 : w.plan->filled; left > 0;) {
        uint32_t n = QN_MIN(left, MOST_WORDS);
        if (qn_words_receive(w.node[0], 0, words, n, QN_TIME_NEVER) != QN_OK) {
            qn_sim_fail("receive");
        }
        left -= n;
    }
    while (w.received < w.plan->expected) {
        if (qn_words_receive(w.node[0], 0, words, 2, QN_TIME_NEVER) != QN_OK) {
            qn_sim_fail("receive");
        }
        take(words);
    }
}

/* As receiver, but told of node 1's end meanwhile. */
static void told_receiver(void *ctx)
{
    bool told = false;
    uint64_t words[2];
    (void)ctx;
    while (w.received < w.plan->expected || !told) {
        /* acquire: what the dead stored is visible when its end is told. */
        if (!told && qn_load(&w.ended, QN_ACQUIRE) != 0) {
            told = true;
            qn_device_down(w.node[0], 1);
        }
        int rc = qn_words_try_receive(w.node[0], 0, words, 2);
        if (rc == QN_OK) {
            take(words);
        } else if (rc == QN_EAGAIN) {
            qn_pause();
        } else {
            qn_sim_fail("receive");
        }
    }
}

static void end(void)
{
    /* release: told_receiver, told_node. */
    qn_store(&w.ended, 1, QN_RELEASE);
}

static void ends_with_a_reservation(void *ctx)
{
    uint32_t position;
    (void)ctx;
    if (qn_words_reserve(qn_words_port_of(w.node[1]), to_0, 2, &position) !=
        QN_OK) {
        qn_sim_fail("reserve");
    }
    end();
}

static void ends_with_an_intent(void *ctx)
{
    struct qn_words_port *p = qn_words_port_of(w.node[1]);
    (void)ctx;
    uint64_t state = qn_load(&p->memory->core[0].state, QN_ACQUIRE);
    uint32_t tail = qn_words_tail(p->shape, state, 0);
    qn_store(&p->own->intent, qn_words_intent(to_0, tail, w.inc[1]),
             QN_RELEASE);
    end();
}

static void receiver_that_ends(void *ctx)
{
    (void)ctx;
    end();
}

static void told_node(void *ctx)
{
    (void)ctx;
    while (qn_load(&w.ended, QN_ACQUIRE) == 0) {
        qn_pause();
    }
    qn_device_down(w.node[2], 0);
}

static void node_told_of_an_end_and_a_beginning(void *ctx)
{
    told_node(ctx);
    qn_device_up(w.node[2], 1, w.inc[1]);
}

static void sender_to_the_dead(void *ctx)
{
    uint64_t word = 0;
    (void)ctx;
    w.answer = qn_words_send(w.node[1], to_0, &word, 1, QN_TIME_NEVER);
}

/* What a new attachment of node 1 does, without allocating. */
static void begin_again(void)
{
    struct qn_words_port *p = qn_words_port_of(w.node[1]);
    qn_store(&p->own->intent, 0, QN_RELEASE);
    qn_store(&p->own->life, w.inc[1] + 1, QN_SEQ_CST);
    p->peer[1].inc++;
}

/* Sends, ends, and comes back. Its successor sends before node 0 is told. */
static void comes_back(void *ctx)
{
    uint64_t words[2];
    (void)ctx;
    make(words, 1, 9); /* of the former incarnation: never to be seen */
    if (qn_words_try_send(w.node[1], to_0, words, 2) != QN_OK) {
        qn_sim_fail("send");
    }
    begin_again();
    make(words, 1, 0);
    if (qn_words_try_send(w.node[1], to_0, words, 2) != QN_OK) {
        qn_sim_fail("send");
    }
    end();
}

/* Its successor reserves and ends, and node 0 hears of the next one only. */
static void successor_ends_with_a_reservation(void *ctx)
{
    begin_again();
    ends_with_a_reservation(ctx);
}

static void receiver_of_the_next_but_one(void *ctx)
{
    bool told = false;
    uint64_t words[2];
    (void)ctx;
    qn_device_down(w.node[0], 1);
    while (w.received < w.plan->expected || !told) {
        /* acquire: what the dead stored is visible when its end is told. */
        if (!told && qn_load(&w.ended, QN_ACQUIRE) != 0) {
            told = true;
            qn_device_up(w.node[0], 1, w.inc[1] + 2);
        }
        if (qn_words_try_receive(w.node[0], 0, words, 2) == QN_OK) {
            take(words);
        } else {
            qn_pause();
        }
    }
}

static void receiver_of_a_successor(void *ctx)
{
    bool told = false;
    uint64_t words[2];
    (void)ctx;
    while (w.received < w.plan->expected) {
        if (!told && qn_load(&w.ended, QN_ACQUIRE) != 0) {
            told = true;
            qn_device_down(w.node[0], 1);
            qn_device_up(w.node[0], 1, w.inc[1] + 1);
        }
        /* Before it is told: copied, and held if of the successor. */
        (void)qn_words_empty(w.node[0], 0);
        if (told && qn_words_try_receive(w.node[0], 0, words, 2) == QN_OK) {
            take(words);
        } else {
            qn_pause();
        }
    }
}

/* ---- checks ---- */

static const char *all_received(void *ctx)
{
    (void)ctx;
    for (uint32_t i = 0; i < w.plan->nodes; i++) {
        if (qn_sim_end_of(i) == QN_SIM_ASLEEP) {
            return "asleep for ever";
        }
    }
    return w.received == w.plan->expected ? NULL : "messages missing";
}

/* The rest of the queue, after the run. */
static const char *drain(void)
{
    uint64_t words[2];
    const char *wrong = NULL;
    while (wrong == NULL &&
           qn_words_try_receive(w.node[0], 0, words, 2) == QN_OK) {
        wrong = taken(words);
    }
    if (wrong == NULL && !qn_words_empty(w.node[0], 0)) {
        return "a part of a message";
    }
    return wrong;
}

static const char *all_room_is_back(qn_node_t from)
{
    return qn_words_room(w.node[from], to_0) ==
                   qn_words_port_of(w.node[from])->shape->room
               ? NULL
               : "room is lost";
}

/* Senders may have been killed; node 0 was idle. */
static const char *whole_or_absent(void *ctx)
{
    (void)ctx;
    for (uint32_t i = 1; i < w.plan->nodes; i++) {
        if (qn_sim_end_of(i) == QN_SIM_KILLED) {
            qn_device_down(w.node[0], i);
        }
    }
    const char *wrong = drain();
    for (uint32_t i = 1; i < w.plan->nodes && wrong == NULL; i++) {
        if (qn_sim_end_of(i) == QN_SIM_DONE && w.next[i] != w.plan->messages) {
            wrong = "a living sender's messages are missing";
        }
    }
    return wrong != NULL ? wrong : all_room_is_back(0);
}

/* Node 0 may have been killed anywhere: its successor takes over. Node 1 has
 * sent to the former one. */
static const char *goes_on(void *ctx)
{
    uint64_t words[2];
    (void)ctx;
    if (qn_sim_end_of(1) == QN_SIM_KILLED ||
        qn_sim_end_of(0) != QN_SIM_KILLED) {
        return NULL;
    }
    qn_device_down(w.node[1], 0);
    qn_device_detach(w.node[0]);
    w.inc[0] += 10;
    if (attach(0) != QN_OK) {
        w.node[0] = NULL;
        return "the successor finds damage";
    }
    qn_device_up(w.node[1], 0, w.inc[0]);
    if (!qn_words_empty(w.node[0], 0)) {
        return "words for the former incarnation";
    }
    make(words, 1, 0);
    w.next[1] = 0;
    if (qn_words_try_send(w.node[1], to_0, words, 2) != QN_OK) {
        return "no room";
    }
    const char *wrong = drain();
    return wrong != NULL    ? wrong
           : w.next[1] != 1 ? "not received"
                            : all_room_is_back(1);
}

static const char *told_and_awake(void *ctx)
{
    (void)ctx;
    return qn_sim_end_of(1) != QN_SIM_DONE ? "the sender sleeps for ever"
           : w.answer != QN_EPEERDEAD      ? "the sender was not told"
                                           : NULL;
}

/* ---- scenarios ---- */

static const struct plan plans[WORDS_SCENARIOS] = {
    [WORDS_a_message_is_whole] = {.nodes = 2,
                                  .node = {receiver, sender_1},
                                  .check = all_received,
                                  .deviations = 3,
                                  .messages = 2,
                                  .expected = 2},
    [WORDS_senders_do_not_interleave] = {.nodes = 3,
                                         .node = {receiver, sender_1, sender_2},
                                         .check = all_received,
                                         .deviations = 2,
                                         .messages = 1,
                                         .expected = 2},
    [WORDS_a_sender_without_room_is_woken] = {.nodes = 2,
                                              .node = {receiver, sender_1},
                                              .check = all_received,
                                              .deviations = 3,
                                              .split = true,
                                              .filled = 28,
                                              .messages = 1,
                                              .expected = 1},
    [WORDS_a_long_message_waits_for_room] = {.nodes = 3,
                                             .node = {receiver, sender_1,
                                                      sender_2},
                                             .check = all_received,
                                             .deviations = 1,
                                             .split = true,
                                             .filled = 29,
                                             .messages = 1,
                                             .expected = 2},
    [WORDS_what_a_killed_sender_left_is_whole_or_absent] =
        {.nodes = 3,
         .node = {idle, sender_1, sender_2},
         .check = whole_or_absent,
         .deviations = 2,
         .kills = 2,
         .messages = 2},
    [WORDS_a_killed_receiver_leaves_a_queue_that_goes_on] = {.nodes = 2,
                                                             .node = {receiver,
                                                                      sender_1},
                                                             .check = goes_on,
                                                             .deviations = 2,
                                                             .kills = 1,
                                                             .messages = 2,
                                                             .expected = 2},
    [WORDS_what_is_passed_over_gives_its_room_back] = {.nodes = 2,
                                                       .node = {receiver,
                                                                sender_1},
                                                       .check = goes_on,
                                                       .deviations = 1,
                                                       .kills = 1,
                                                       .split = true,
                                                       .filled = 29,
                                                       .foreign = true,
                                                       .messages = 1,
                                                       .expected = 1},
    [WORDS_a_range_of_the_dead_is_padded_beside_the_living] =
        {.nodes = 3,
         .node = {told_receiver, ends_with_a_reservation, sender_2},
         .check = all_received,
         .deviations = 2,
         .messages = 1,
         .expected = 1},
    [WORDS_a_dead_intent_hides_no_message] = {.nodes = 3,
                                              .node = {told_receiver,
                                                       ends_with_an_intent,
                                                       sender_2},
                                              .check = all_received,
                                              .deviations = 2,
                                              .messages = 1,
                                              .expected = 1},
    [WORDS_a_sender_at_a_dead_core_is_woken] = {.nodes = 3,
                                                .node = {receiver_that_ends,
                                                         sender_to_the_dead,
                                                         told_node},
                                                .check = told_and_awake,
                                                .deviations = 2,
                                                .split = true,
                                                .filled = 29},
    [WORDS_a_sender_at_a_core_that_never_lived_is_woken] =
        {.nodes = 3,
         .node = {receiver_that_ends, sender_to_the_dead, told_node},
         .check = told_and_awake,
         .deviations = 2,
         .split = true,
         .filled = 29,
         .lifeless = true},
    [WORDS_a_sender_that_is_not_known_yet_is_woken] =
        {.nodes = 3,
         .node = {receiver_that_ends, sender_to_the_dead,
                  node_told_of_an_end_and_a_beginning},
         .check = told_and_awake,
         .deviations = 2,
         .split = true,
         .filled = 29,
         .stranger = true},
    [WORDS_a_range_of_an_incarnation_never_named_is_padded] =
        {.nodes = 3,
         .node = {receiver_of_the_next_but_one,
                  successor_ends_with_a_reservation, sender_2},
         .check = all_received,
         .deviations = 2,
         .messages = 1,
         .expected = 1},
    [WORDS_incarnations_do_not_mix] = {.nodes = 2,
                                       .node = {receiver_of_a_successor,
                                                comes_back},
                                       .check = all_received,
                                       .deviations = 2,
                                       .expected = 1},
};

const char *const words_scenario_names[WORDS_SCENARIOS] = {
#define X(name) [WORDS_##name] = #name,
    WORDS_SCENARIO_MAP(X)
#undef X
};

static struct qn_explore_opts begin(enum words_scenario s,
                                    enum qn_explore_memory memory)
{
    const struct plan *p = &plans[s];
    const struct qn_device_opts opts = opts_of(p);
    w.plan = p;
    w.memory = aligned_alloc(QN_CACHELINE, type_of(p)->bytes(&opts));
    must(w.memory != NULL);
    return (struct qn_explore_opts){
        .nodes = p->nodes,
        .node = {p->node[0], p->node[1], p->node[2]},
        .setup = setup,
        .check = p->check,
        .teardown = teardown,
        .memory = memory,
        .deviations = p->deviations,
        .kills = p->kills};
}

bool words_explore(enum words_scenario s, enum qn_explore_memory memory,
                   int more, struct qn_explored *out)
{
    struct qn_explore_opts o = begin(s, memory);
    o.deviations = (uint32_t)QN_MAX((int)o.deviations + more, 1);
    bool clean = qn_explore(&o, out);
    free(w.memory);
    return clean;
}

bool words_replay(enum words_scenario s, enum qn_explore_memory memory,
                  const char *choices, struct qn_explored *out)
{
    const struct qn_explore_opts o = begin(s, memory);
    bool clean = qn_explore_replay(&o, choices, out);
    free(w.memory);
    return clean;
}
