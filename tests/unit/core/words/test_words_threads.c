/*
 * Words between threads: all senders to one receiver, every queue, both kinds
 * of device; room that must be waited for; a death of which another node
 * learns. Waits are rung for: none of them has a deadline.
 */
#include <pthread.h>

#include "tests/unit/core/words/words_world.h"

#define MESSAGES 20000u
#define SENDERS  (NODES - 1)

static struct words_world w;
static pthread_t thread[NODES];
static void *const number[NODES] = {&thread[0], &thread[1], &thread[2],
                                    &thread[3]};

static qn_node_t node_of(const void *arg)
{
    return (qn_node_t)((const pthread_t *)arg - thread);
}

static void start(qn_node_t i, void *(*run)(void *))
{
    cr_assert_eq(pthread_create(&thread[i], NULL, run, number[i]), 0);
}

static void join(qn_node_t i)
{
    void *result;
    cr_assert_eq(pthread_join(thread[i], &result), 0);
    cr_assert_null(result);
}

/* Message m of a sender: m % 7 + 1 words, sender << 32 | m << 4 | place. */
static uint64_t word_of(uint64_t sender, uint64_t m, uint64_t place)
{
    return sender << 32 | m << 4 | place;
}

static void *send_all(void *arg)
{
    const qn_node_t self = node_of(arg);
    for (uint32_t m = 0; m < MESSAGES; m++) {
        uint64_t words[7];
        uint32_t n = m % 7 + 1;
        for (uint32_t i = 0; i < n; i++) {
            words[i] = word_of(self, m, i);
        }
        if (qn_words_send(w.node[self], (struct qn_words_target){0, m % 2},
                          words, n, QN_TIME_NEVER) != QN_OK) {
            return arg;
        }
    }
    return NULL;
}

/* One message of a queue; what it is tells its first word. */
static bool receive_one(uint32_t queue, uint32_t *next)
{
    uint64_t words[7];
    if (qn_words_try_receive(w.node[0], queue, words, 1) != QN_OK) {
        return false;
    }
    uint64_t sender = words[0] >> 32;
    uint32_t m = (uint32_t)words[0] >> 4;
    cr_assert(sender >= 1 && sender < NODES, "%lx", words[0]);
    cr_assert_eq(m, next[sender], "%u after %u", m, next[sender]);
    next[sender] += 2;
    uint32_t n = m % 7 + 1;
    if (n > 1) {
        cr_assert_eq(qn_words_try_receive(w.node[0], queue, words + 1, n - 1),
                     QN_OK);
    }
    for (uint32_t i = 0; i < n; i++) {
        cr_assert_eq(words[i], word_of(sender, m, i), "interleaved");
    }
    return true;
}

static void many_to_one(const struct qn_device_type *type)
{
    uint32_t next[2][NODES] = {{0}, {0, 1, 1, 1}};
    world_make(&w, type);
    for (qn_node_t i = 1; i < NODES; i++) {
        start(i, send_all);
    }
    for (uint32_t got = 0; got < SENDERS * MESSAGES;) {
        bool any = false;
        qn_doorbell_arm(&w.doorbell[0]);
        for (uint32_t q = 0; q < 2; q++) {
            while (receive_one(q, next[q])) {
                any = true;
                got++;
            }
        }
        if (!any) {
            (void)qn_doorbell_wait(&w.doorbell[0], QN_TIME_NEVER);
        }
        qn_doorbell_disarm(&w.doorbell[0]);
    }
    for (qn_node_t i = 1; i < NODES; i++) {
        join(i);
    }
    cr_assert_eq(qn_words_room(w.node[1], (struct qn_words_target){0, 0}),
                 port_of(&w, 0)->shape->room);
    world_free(&w);
}

Test(words_threads, messages_of_many_senders_do_not_interleave, .timeout = 100)
{
    many_to_one(&qn_words_shared);
}

Test(words_threads, nor_in_queues_with_room_of_their_own, .timeout = 100)
{
    many_to_one(&qn_words_split);
}

/* ---- request and reply ---- */

static void *ask(void *arg)
{
    const qn_node_t self = node_of(arg);
    for (uint64_t i = 0; i < MESSAGES / 4; i++) {
        uint64_t request[3] = {self, i, ~i};
        uint64_t reply = 0;
        if (qn_words_send(w.node[self], (struct qn_words_target){0, 1}, request,
                          3, QN_TIME_NEVER) != QN_OK ||
            qn_words_receive(w.node[self], 2, &reply, 1, QN_TIME_NEVER) !=
                QN_OK ||
            reply != i + self) {
            return arg;
        }
    }
    return NULL;
}

Test(words_threads, a_server_answers_its_clients, .timeout = 100)
{
    world_make(&w, &qn_words_shared);
    for (qn_node_t i = 1; i < NODES; i++) {
        start(i, ask);
    }
    for (uint32_t i = 0; i < SENDERS * (MESSAGES / 4); i++) {
        uint64_t request[3];
        cr_assert_eq(qn_words_receive(w.node[0], 1, request, 3, QN_TIME_NEVER),
                     QN_OK);
        cr_assert_eq(request[1], ~request[2]);
        request[1] += request[0];
        cr_assert_eq(
            qn_words_send(w.node[0],
                          (struct qn_words_target){(qn_node_t)request[0], 2},
                          request + 1, 1, QN_TIME_NEVER),
            QN_OK);
    }
    for (qn_node_t i = 1; i < NODES; i++) {
        join(i);
    }
    world_free(&w);
}

/* ---- death ---- */

static void *send_until_dead(void *arg)
{
    const qn_node_t self = node_of(arg);
    uint64_t word = 0;
    int rc;
    do {
        rc = qn_words_send(w.node[self], (struct qn_words_target){0, 0}, &word,
                           1, QN_TIME_NEVER);
    } while (rc == QN_OK);
    return rc == QN_EPEERDEAD ? NULL : arg;
}

/* Nodes 1 and 2 fill node 0 and sleep for room; node 3 is told of the end. */
Test(words_threads, senders_that_sleep_at_a_dead_core_are_told, .timeout = 100)
{
    world_make(&w, &qn_words_shared);
    start(1, send_until_dead);
    start(2, send_until_dead);
    for (uint32_t i = 1; i < 3; i++) {
        while ((qn_load(&w.line[i].epoch, QN_ACQUIRE) & 1) == 0) {
            qn_pause();
        }
    }
    qn_device_down(w.node[3], 0);
    join(1);
    join(2);
    world_free(&w);
}
