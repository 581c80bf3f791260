/* The queue of tasks: bounds, order of each producer, nothing lost. */
#include <pthread.h>
#include <string.h>

#include "core/base/err.h"
#include "core/tasks/task_queue.h"
#include "tests/support/test.h"

static struct qn_task task_of(uint32_t producer, uint32_t number)
{
    struct qn_task t = {.run = NULL};
    memcpy(t.payload, &producer, sizeof producer);
    memcpy(t.payload + QN_TASK_PAYLOAD - sizeof number, &number, sizeof number);
    return t;
}

static uint32_t producer_of(const struct qn_task *t)
{
    uint32_t producer;
    memcpy(&producer, t->payload, sizeof producer);
    return producer;
}

static uint32_t number_of(const struct qn_task *t)
{
    uint32_t number;
    memcpy(&number, t->payload + QN_TASK_PAYLOAD - sizeof number,
           sizeof number);
    return number;
}

Test(task_queue, numbers_of_slots_out_of_range_are_refused)
{
    static const uint32_t wrong[] = {0, 1, 3, 2 * QN_TASK_QUEUE_MAX};
    struct qn_task_queue q;
    for (uint32_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        cr_assert_eq(qn_task_queue_init(&q, wrong[i]), QN_EINVAL);
    }
    cr_assert_eq(qn_task_queue_init(&q, QN_TASK_QUEUE_MAX), QN_OK);
    qn_task_queue_fini(&q);
}

Test(task_queue, a_full_queue_takes_none_and_loses_none)
{
    struct qn_task_queue q;
    struct qn_task t;
    uint32_t put = 0, taken = 0;
    cr_assert_eq(qn_task_queue_init(&q, 4), QN_OK);
    cr_assert_not(qn_task_queue_take(&q, &t));
    for (uint32_t lap = 0; lap < 1000; lap++) {
        for (t = task_of(0, put); qn_task_queue_put(&q, &t);
             t = task_of(0, put)) {
            put++;
        }
        cr_assert_eq(put - taken, 4);
        for (uint32_t i = 0; i <= lap % 4; i++) {
            cr_assert(qn_task_queue_take(&q, &t));
            cr_assert_eq(number_of(&t), taken++);
        }
    }
    qn_task_queue_fini(&q);
}

/* ---- threads ---- */

#define PRODUCERS 3u
#define TASKS     20000u /* of each */

static struct qn_task_queue shared;

static void *produce(void *arg)
{
    uint32_t producer = *(const uint32_t *)arg;
    for (uint32_t i = 0; i < TASKS; i++) {
        struct qn_task t = task_of(producer, i);
        while (!qn_task_queue_put(&shared, &t)) {
            sched_yield();
        }
    }
    return NULL;
}

Test(task_queue, tasks_of_each_producer_are_taken_in_order, .timeout = 100)
{
    static uint32_t name[PRODUCERS];
    pthread_t thread[PRODUCERS];
    uint32_t next[PRODUCERS] = {0};
    struct qn_task t;
    cr_assert_eq(qn_task_queue_init(&shared, 8), QN_OK);
    for (uint32_t p = 0; p < PRODUCERS; p++) {
        name[p] = p;
        cr_assert_eq(pthread_create(&thread[p], NULL, produce, &name[p]), 0);
    }
    for (uint32_t got = 0; got < PRODUCERS * TASKS;) {
        if (!qn_task_queue_take(&shared, &t)) {
            sched_yield();
            continue;
        }
        cr_assert_lt(producer_of(&t), PRODUCERS);
        cr_assert_eq(number_of(&t), next[producer_of(&t)]++);
        got++;
    }
    cr_assert_not(qn_task_queue_take(&shared, &t));
    for (uint32_t p = 0; p < PRODUCERS; p++) {
        pthread_join(thread[p], NULL);
        cr_assert_eq(next[p], TASKS);
    }
    qn_task_queue_fini(&shared);
}
