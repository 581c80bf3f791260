/* Ports: what is for another object is put aside; room is promised. */
#include <pthread.h>
#include <sched.h>

#include "core/base/err.h"
#include "tests/unit/core/sync/port_world.h"

#define OBJECT_KIND (QN_SYNC_OBJECT | QN_SYNC_KIND)

static struct port_world w;
static const struct qn_device_type *const types[] = {&qn_words_shared,
                                                     &qn_words_split};

static void send(uint32_t object, enum qn_sync_kind kind, uint32_t tag,
                 uint64_t value)
{
    const uint64_t words[] = {qn_sync_head(&w.port[1], object, kind, tag),
                              value, ~value};
    const uint32_t n = kind == QN_SYNC_REQUEST ? 3
                       : kind == QN_SYNC_REPLY ? 2
                                               : 1;
    struct qn_wait_stats waits = {0};
    qn_sync_send(&w.port[1], w.port[0].address, words, n, &waits);
}

static bool receive(uint32_t object, enum qn_sync_kind kind, uint64_t mask,
                    uint64_t *words)
{
    return qn_sync_try_receive(
        &w.port[0], qn_sync_head(&w.port[0], object, kind, 0), mask, words);
}

Test(port, a_wait_takes_what_is_for_its_object_and_kind)
{
    uint64_t words[QN_SYNC_WORDS];
    port_world_make(&w, &qn_words_split, 2, true);
    send(1, QN_SYNC_ALLOW, 0, 0);
    send(2, QN_SYNC_REQUEST, 0, 70);
    send(2, QN_SYNC_REPLY, 0, 80);
    send(2, QN_SYNC_REQUEST, 0, 71);
    cr_expect(!receive(3, QN_SYNC_ALLOW, OBJECT_KIND, words));
    cr_assert(receive(2, QN_SYNC_REPLY, OBJECT_KIND, words));
    cr_expect_eq(words[1], 80);
    cr_assert(receive(2, QN_SYNC_REQUEST, OBJECT_KIND, words));
    cr_expect_eq(words[1], 70);
    cr_expect_eq(words[2], ~(uint64_t)70);
    cr_expect_eq(qn_sync_head_address(words[0]), w.port[1].address);
    cr_expect(!receive(1, QN_SYNC_SUCCESSOR, OBJECT_KIND, words));
    cr_expect(
        receive(1, QN_SYNC_SUCCESSOR, QN_SYNC_OBJECT | QN_SYNC_LOCK, words));
    cr_assert(receive(2, QN_SYNC_REQUEST, OBJECT_KIND, words));
    cr_expect_eq(words[1], 71);
    cr_expect(!receive(2, QN_SYNC_REQUEST, OBJECT_KIND, words));
    port_world_free(&w);
}

Test(port, a_tag_tells_replies_apart)
{
    uint64_t words[QN_SYNC_WORDS];
    port_world_make(&w, &qn_words_shared, 2, true);
    send(1, QN_SYNC_REPLY, 0xfe, 5);
    send(1, QN_SYNC_REPLY, 0, 6);
    cr_assert(receive(1, QN_SYNC_REPLY, OBJECT_KIND | QN_SYNC_TAG, words));
    cr_expect_eq(words[1], 6);
    cr_assert(receive(1, QN_SYNC_REPLY, OBJECT_KIND, words));
    cr_expect_eq(qn_sync_head_tag(words[0]), 0xfe);
    port_world_free(&w);
}

Test(port, the_fifth_at_a_core_is_refused)
{
    for (uint32_t t = 0; t < 2; t++) {
        struct qn_sync_port more[QN_WORDS_QUEUES];
        port_world_make(&w, types[t], 2, true);
        for (uint32_t i = 1; i < QN_WORDS_QUEUES; i++) {
            cr_assert_eq(qn_sync_port_open(&more[i], w.device[0]), QN_OK);
            cr_expect_neq(more[i].address, w.port[0].address);
        }
        cr_expect_eq(qn_sync_port_open(&more[0], w.device[0]), QN_EAGAIN);
        qn_sync_port_close(&more[2]);
        cr_expect_eq(qn_sync_port_open(&more[2], w.device[0]), QN_OK);
        for (uint32_t i = 1; i < QN_WORDS_QUEUES; i++) {
            qn_sync_port_close(&more[i]);
        }
        port_world_free(&w);
    }
}

Test(port, ports_of_a_shared_core_promise_118_words_together)
{
    struct qn_sync_port other;
    port_world_make(&w, &qn_words_shared, 2, true);
    cr_assert_eq(qn_sync_port_open(&other, w.device[0]), QN_OK);
    cr_expect_eq(qn_sync_promise(&w.port[0], 119), QN_EDQUOT);
    cr_expect_eq(qn_sync_promise(&w.port[0], 100), QN_OK);
    cr_expect_eq(qn_sync_promise(&other, 19), QN_EDQUOT);
    cr_expect_eq(qn_sync_promise(&other, 18), QN_OK);
    cr_expect_eq(qn_sync_promise(&w.port[1], 118), QN_OK, "another core");
    qn_sync_promise_back(&w.port[0], 100);
    cr_expect_eq(qn_sync_promise(&other, 100), QN_OK);
    qn_sync_promise_back(&other, 118);
    qn_sync_promise_back(&w.port[1], 118);
    qn_sync_port_close(&other);
    port_world_free(&w);
}

Test(port, each_port_of_a_split_core_promises_what_its_stash_holds)
{
    struct qn_sync_port other;
    port_world_make(&w, &qn_words_split, 2, true);
    cr_assert_eq(qn_sync_port_open(&other, w.device[0]), QN_OK);
    cr_expect_eq(qn_sync_promise(&w.port[0], QN_SYNC_STASH), QN_OK);
    cr_expect_eq(qn_sync_promise(&w.port[0], 1), QN_EDQUOT);
    cr_expect_eq(qn_sync_promise(&other, QN_SYNC_STASH), QN_OK);
    qn_sync_promise_back(&w.port[0], QN_SYNC_STASH);
    qn_sync_promise_back(&other, QN_SYNC_STASH);
    qn_sync_port_close(&other);
    port_world_free(&w);
}

Test(port, an_object_has_one_number_at_its_device)
{
    qn_a32 a;
    qn_a32 b;
    qn_store(&a, 0, QN_RELAXED);
    qn_store(&b, 0, QN_RELAXED);
    port_world_make(&w, &qn_words_shared, 2, true);
    const uint32_t first = qn_sync_object(&w.port[0], &a);
    const uint32_t second = qn_sync_object(&w.port[1], &b);
    cr_expect_neq(first, 0);
    cr_expect_neq(first, second);
    cr_expect_eq(qn_sync_object(&w.port[1], &a), first);
    cr_expect_eq(qn_sync_object(&w.port[0], &b), second);
    port_world_free(&w);
}

/* ---- a receive that sleeps ---- */

static void *receive_asleep(void *arg)
{
    uint64_t words[QN_SYNC_WORDS];
    qn_sync_receive(&w.port[0], qn_sync_head(&w.port[0], 1, QN_SYNC_ALLOW, 0),
                    OBJECT_KIND, words, arg);
    return NULL;
}

/* Wait until it sleeps, and wake it. @return its yields. */
static uint64_t yields_before_sleep(uint64_t wakes)
{
    struct qn_wait_stats s = {.wakes = wakes};
    struct qn_wait_stats sender = {.wakes = 0};
    const uint64_t head = qn_sync_head(&w.port[1], 1, QN_SYNC_ALLOW, 0);
    pthread_t t;
    cr_assert_eq(pthread_create(&t, NULL, receive_asleep, &s), 0);
    while (qn_load(&w.line[0].epoch, QN_ACQUIRE) % 2 == 0) {
        sched_yield();
    }
    qn_sync_send(&w.port[1], w.port[0].address, &head, 1, &sender);
    pthread_join(t, NULL);
    cr_expect_eq(s.parks, 1);
    return s.yields;
}

Test(port, a_send_counts_whether_it_has_woken_its_receiver)
{
    struct qn_wait_stats s = {.wakes = 0};
    port_world_make(&w, &qn_words_shared, 2, true);
    const uint64_t head = qn_sync_head(&w.port[1], 1, QN_SYNC_ALLOW, 0);
    qn_sync_send(&w.port[1], w.port[0].address, &head, 1, &s);
    cr_expect_eq(s.wakes, 0);
    qn_doorbell_arm(&w.doorbell[0]);
    qn_sync_send(&w.port[1], w.port[0].address, &head, 1, &s);
    cr_expect_eq(s.wakes, 1);
    qn_doorbell_disarm(&w.doorbell[0]);
    port_world_free(&w);
}

Test(port, a_receive_behind_a_wake_up_looks_longer, .timeout = 60)
{
    port_world_make(&w, &qn_words_shared, 2, true);
    const uint64_t yields = yields_before_sleep(0);
    /* A yield that takes long ends the looks behind a wake-up. */
    cr_expect_gt(yields_before_sleep(1), yields);
    port_world_free(&w);
}
