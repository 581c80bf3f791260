/*
 * Queuepairs over words between threads that sleep whenever there is nothing
 * to do: four nodes, all pairs, both lanes, 10^5 messages of mostly small
 * random length in all.
 */
#include <pthread.h>

#include "core/qp.h"
#include "tests/unit/core/words/words_world.h"
#include "transports/udn/udn.h"

#define MESSAGES 4200u /* of each pair, direction and lane: 24 of them */
#define LONGEST  3000u

static struct words_world w;

struct traffic {
    qn_node_t self;
    struct qn_qp *qp[NODES][QN_LANES];
    uint32_t sent[NODES][QN_LANES], got[NODES][QN_LANES];
    const char *wrong;
};

static struct traffic node[NODES];

static uint32_t seed_of(qn_node_t from, qn_node_t to, enum qn_lane l,
                        uint32_t m)
{
    uint32_t x = (from << 28 ^ to << 24 ^ (uint32_t)l << 20 ^ m) * 2654435761u;
    return x ^ x >> 15;
}

static uint32_t size_of(uint32_t seed)
{
    return seed % 64 == 63 ? seed / 64 % LONGEST : seed / 64 % 80;
}

static void fill(uint8_t *buf, uint32_t size, uint32_t seed)
{
    for (uint32_t i = 0; i < size; i++) {
        buf[i] = (uint8_t)(seed + i * 13);
    }
}

static bool send_next(struct traffic *t, qn_node_t to, enum qn_lane l)
{
    uint8_t buf[LONGEST];
    uint32_t m = t->sent[to][l];
    uint32_t seed = seed_of(t->self, to, l, m);
    if (m == MESSAGES) {
        return false;
    }
    fill(buf, size_of(seed), seed);
    int rc = qn_qp_try_send(t->qp[to][l], buf, size_of(seed));
    if (rc != QN_OK && rc != QN_EAGAIN) {
        t->wrong = qn_strerror(rc);
    }
    t->sent[to][l] += rc == QN_OK;
    return rc == QN_OK;
}

static bool receive_next(struct traffic *t, qn_node_t from, enum qn_lane l)
{
    uint8_t want[LONGEST];
    const void *msg;
    size_t len;
    uint32_t seed = seed_of(from, t->self, l, t->got[from][l]);
    int rc = qn_qp_peek(t->qp[from][l], &msg, &len);
    if (rc == QN_EAGAIN) {
        return false;
    }
    fill(want, size_of(seed), seed);
    if (rc != QN_OK || len != size_of(seed) || memcmp(msg, want, len) != 0) {
        t->wrong = "a wrong message";
        return false;
    }
    qn_qp_release(t->qp[from][l]);
    t->got[from][l]++;
    return true;
}

/* @return true: something was done. */
static bool turn(struct traffic *t, bool *all)
{
    bool did = false;
    *all = true;
    for (qn_node_t i = 0; i < NODES; i++) {
        for (enum qn_lane l = 0; l < QN_LANES && i != t->self; l++) {
            did = send_next(t, i, l) || did;
            did = receive_next(t, i, l) || did;
            *all =
                *all && t->sent[i][l] == MESSAGES && t->got[i][l] == MESSAGES;
        }
    }
    return did;
}

static bool flush_all(struct traffic *t)
{
    bool staged = false;
    for (qn_node_t i = 0; i < NODES; i++) {
        for (enum qn_lane l = 0; l < QN_LANES && i != t->self; l++) {
            staged = qn_qp_flush(t->qp[i][l]) || staged;
        }
    }
    return staged;
}

static void *run(void *arg)
{
    struct traffic *t = arg;
    bool all = false;
    while (t->wrong == NULL) {
        while (turn(t, &all) && t->wrong == NULL) {
        }
        qn_doorbell_arm(&w.doorbell[t->self]);
        bool staged = flush_all(t);
        bool did = turn(t, &all);
        bool done = all && !staged;
        if (!did && !done && t->wrong == NULL) {
            (void)qn_doorbell_wait(&w.doorbell[t->self], QN_TIME_NEVER);
        }
        qn_doorbell_disarm(&w.doorbell[t->self]);
        if (done) {
            break;
        }
    }
    (void)flush_all(t);
    return NULL;
}

static void open_all(void)
{
    for (qn_node_t i = 0; i < NODES; i++) {
        node[i].self = i;
        for (qn_node_t k = 0; k < NODES; k++) {
            for (enum qn_lane l = 0; l < QN_LANES && i != k; l++) {
                const struct qn_qp_opts o = {.device = w.node[i],
                                             .lane = l,
                                             .self = i,
                                             .peer = k,
                                             .msg_max = LONGEST,
                                             .self_inc = w.inc[i],
                                             .peer_inc = w.inc[k],
                                             .doorbell = &w.doorbell[i],
                                             .ringer = &w.ringer[i][k]};
                cr_assert_eq(qn_udn.open(&node[i].qp[k][l], &o), QN_OK);
            }
        }
    }
}

Test(udn_qp_threads, four_talk_all_to_all, .timeout = 100)
{
    pthread_t thread[NODES];
    world_make(&w, &qn_udn_device);
    open_all();
    for (qn_node_t i = 0; i < NODES; i++) {
        cr_assert_eq(pthread_create(&thread[i], NULL, run, &node[i]), 0);
    }
    for (qn_node_t i = 0; i < NODES; i++) {
        cr_assert_eq(pthread_join(thread[i], NULL), 0);
        cr_assert_null(node[i].wrong, "node %u: %s", i, node[i].wrong);
    }
    for (qn_node_t i = 0; i < NODES; i++) {
        for (qn_node_t k = 0; k < NODES; k++) {
            for (enum qn_lane l = 0; l < QN_LANES; l++) {
                qn_qp_close(node[i].qp[k][l]);
            }
        }
    }
    world_free(&w);
}

/* ---- waiting forms, and messages longer than a window ---- */

#define LONG_MESSAGES 300u
#define LONG_BYTES    20000u

static struct qn_qp *one_way[2];
static uint8_t long_message[LONG_BYTES];

static void *send_long(void *arg)
{
    for (uint32_t i = 0; i < LONG_MESSAGES; i++) {
        uint8_t msg[LONG_BYTES];
        fill(msg, LONG_BYTES, i);
        if (qn_qp_send(one_way[0], msg, LONG_BYTES, QN_TIME_NEVER) != QN_OK) {
            return arg;
        }
    }
    return qn_qp_drain(one_way[0], QN_TIME_NEVER) == QN_OK ? NULL : arg;
}

Test(udn_qp_threads, long_messages_pass_between_sleepers, .timeout = 100)
{
    pthread_t thread;
    void *failed;
    world_make(&w, &qn_udn_device);
    for (qn_node_t i = 0; i < 2; i++) {
        const struct qn_qp_opts o = {.device = w.node[i],
                                     .self = i,
                                     .peer = 1 - i,
                                     .self_inc = w.inc[i],
                                     .peer_inc = w.inc[1 - i],
                                     .doorbell = &w.doorbell[i],
                                     .ringer = &w.ringer[i][1 - i]};
        cr_assert_eq(qn_udn.open(&one_way[i], &o), QN_OK);
    }
    cr_assert_eq(pthread_create(&thread, NULL, send_long, long_message), 0);
    for (uint32_t i = 0; i < LONG_MESSAGES; i++) {
        uint8_t want[LONG_BYTES];
        size_t len = 0;
        fill(want, LONG_BYTES, i);
        cr_assert_eq(qn_qp_recv(one_way[1], long_message, LONG_BYTES, &len,
                                QN_TIME_NEVER),
                     QN_OK);
        cr_assert(len == LONG_BYTES && memcmp(want, long_message, len) == 0);
    }
    cr_assert_eq(pthread_join(thread, &failed), 0);
    cr_assert_null(failed);
    qn_qp_close(one_way[0]);
    qn_qp_close(one_way[1]);
    world_free(&w);
}
