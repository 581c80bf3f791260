/* Every lock by its name: places, try, deadline, order of arrival. */
#include <pthread.h>
#include <sched.h>

#include "core/sync/lock/lock_internal.h"
#include "tests/unit/core/sync/lock/lock_of.h"

#define EACH_TYPE(type)                                                        \
    for (const struct qn_lock_type *const *at_ = qn_lock_types, *type;         \
         (type = *at_) != NULL; at_++)                                         \
        if (lock_without_words(type))

Test(lock, each_type_is_found_by_its_name)
{
    const char *const names[] = {"tas", "ttas", "mcs", "clh"};
    for (uint32_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct qn_lock_type *type = qn_lock_find(names[i]);
        cr_assert_not_null(type);
        cr_expect_str_eq(type->name, names[i]);
    }
    cr_assert_null(qn_lock_find("mutex"));
}

Test(lock, a_number_of_clients_out_of_range_is_refused)
{
    const uint32_t wrong[] = {0, QN_SYNC_CLIENTS_MAX + 1, UINT32_MAX};
    const struct qn_lock_opts most = {.clients = QN_SYNC_CLIENTS_MAX};
    EACH_TYPE(type)
    {
        for (uint32_t i = 0; i < 3; i++) {
            const struct qn_lock_opts o = {.clients = wrong[i]};
            cr_expect_eq(qn_lock_bytes(type, &o), 0);
            cr_expect_eq(qn_lock_format(type, NULL, &o), QN_EINVAL);
        }
        cr_expect_gt(qn_lock_bytes(type, &most), 0);
        cr_expect_eq(qn_lock_bytes(type, &most) % QN_CACHELINE, 0);
    }
}

Test(lock, one_client_too_many_is_told_to_try_again)
{
    EACH_TYPE(type)
    {
        struct qn_lock_client c[3];
        void *memory = lock_of(type, 2);
        cr_assert_eq(qn_lock_join(type, memory, NULL, &c[0]), QN_OK);
        cr_assert_eq(qn_lock_join(type, memory, NULL, &c[1]), QN_OK);
        cr_expect_eq(qn_lock_join(type, memory, NULL, &c[2]), QN_EAGAIN);
        qn_lock_leave(&c[0]);
        cr_expect_eq(qn_lock_join(type, memory, NULL, &c[2]), QN_OK);
        free(memory);
    }
}

Test(lock, one_of_another_version_is_refused)
{
    EACH_TYPE(type)
    {
        struct qn_lock_client c;
        struct qn_lock_memory *m = lock_of(type, 1);
        const uint32_t says = qn_load(&m->type, QN_RELAXED);
        qn_store(&m->type, says + (1u << 16), QN_RELAXED);
        cr_expect_eq(qn_lock_join(type, m, NULL, &c), QN_EINVAL);
        qn_store(&m->type, says, QN_RELAXED);
        cr_expect_eq(qn_lock_join(type, m, NULL, &c), QN_OK);
        free(m);
    }
}

Test(lock, memory_without_a_lock_of_the_type_is_refused)
{
    struct qn_lock_client c;
    alignas(QN_CACHELINE) char none[4 * QN_CACHELINE] = {0};
    EACH_TYPE(type)
    {
        cr_expect_eq(qn_lock_join(type, none, NULL, &c), QN_EINVAL);
    }
    void *memory = lock_of(qn_lock_find("mcs"), 1);
    cr_assert_eq(qn_lock_join(qn_lock_find("clh"), memory, NULL, &c),
                 QN_EINVAL);
    cr_assert_eq(qn_lock_join(qn_lock_find("mcs"), memory, NULL, &c), QN_OK);
    free(memory);
}

/* Two clients in turn, so that nodes travel; and each of them leaves with the
 * node that it has then. */
Test(lock, try_takes_a_free_lock_and_never_one_that_is_held)
{
    EACH_TYPE(type)
    {
        struct qn_lock_client c[2];
        void *memory = lock_of(type, 2);
        cr_assert_eq(qn_lock_join(type, memory, NULL, &c[0]), QN_OK);
        cr_assert_eq(qn_lock_join(type, memory, NULL, &c[1]), QN_OK);
        for (uint32_t turn = 0; turn < 20; turn++) {
            struct qn_lock_client *a = &c[turn % 2];
            struct qn_lock_client *b = &c[1 - turn % 2];
            if (turn % 3 == 0) {
                qn_lock_acquire(a);
            } else {
                cr_assert(qn_lock_try_acquire(a), "%s", type->name);
            }
            cr_assert_not(qn_lock_try_acquire(b), "%s", type->name);
            qn_lock_release(a);
            qn_lock_leave(b);
            cr_assert_eq(qn_lock_join(type, memory, NULL, b), QN_OK);
        }
        cr_expect_gt(c[0].stats.acquired + c[1].stats.acquired, 0);
        cr_expect_eq(c[0].stats.waits.parks, 0);
        cr_expect_eq(c[0].stats.waits.wakes, 0);
        free(memory);
    }
}

/* The clock may be late, never early. No client releases the lock. */
Test(lock, a_deadline_is_reached_or_refused)
{
    EACH_TYPE(type)
    {
        struct qn_lock_client c[2];
        void *memory = lock_of(type, 2);
        cr_assert_eq(qn_lock_join(type, memory, NULL, &c[0]), QN_OK);
        cr_assert_eq(qn_lock_join(type, memory, NULL, &c[1]), QN_OK);
        if (!type->timed) {
            cr_expect_eq(qn_lock_acquire_until(&c[0], QN_TIME_NEVER),
                         QN_ENOSYS);
            cr_expect(qn_lock_try_acquire(&c[1]));
            cr_expect_eq(c[0].stats.acquired, 0);
        } else {
            cr_expect_eq(qn_lock_acquire_until(&c[0], 1), QN_OK, "it is free");
            cr_expect_eq(qn_lock_acquire_until(&c[1], 1), QN_ETIMEDOUT);
            const qn_time_t deadline = qn_clock_now() + QN_MS;
            cr_expect_eq(qn_lock_acquire_until(&c[1], deadline), QN_ETIMEDOUT);
            cr_expect_geq(qn_clock_now(), deadline);
            qn_lock_release(&c[0]);
            cr_expect_eq(qn_lock_acquire_until(&c[1], 1), QN_OK);
            cr_expect_eq(c[1].stats.acquired, 1);
        }
        free(memory);
    }
}

/* ---- order of arrival ---- */

#define WAITERS 6u

struct arrival {
    struct qn_lock_client client;
    uint32_t *order, *count; /* under the lock */
    uint32_t number;
};

static void *arrive(void *arg)
{
    struct arrival *a = arg;
    qn_lock_acquire(&a->client);
    a->order[(*a->count)++] = a->number;
    qn_lock_release(&a->client);
    return NULL;
}

/* What changes when a client enters the queue. */
static uint64_t queue_end(const void *memory)
{
    const struct qn_lock_memory *m = memory;
    return qn_load(&m->tail, QN_RELAXED) + qn_load(&m->word, QN_RELAXED);
}

static void start_in_order(const struct qn_lock_type *type, void *memory,
                           struct arrival *a, pthread_t *t)
{
    for (uint32_t i = 0; i < WAITERS; i++) {
        const uint64_t before = queue_end(memory);
        a[i].number = i;
        cr_assert_eq(qn_lock_join(type, memory, NULL, &a[i].client), QN_OK);
        cr_assert_eq(pthread_create(&t[i], NULL, arrive, &a[i]), 0);
        while (queue_end(memory) == before) {
            sched_yield();
        }
    }
}

Test(lock, a_fifo_lock_is_granted_in_the_order_of_arrival, .timeout = 60)
{
    EACH_TYPE(type)
    {
        uint32_t order[WAITERS];
        uint32_t count = 0;
        struct arrival a[WAITERS];
        struct qn_lock_client first;
        pthread_t t[WAITERS];
        if (!type->fifo) {
            continue;
        }
        void *memory = lock_of(type, WAITERS + 1);
        cr_assert_eq(qn_lock_join(type, memory, NULL, &first), QN_OK);
        qn_lock_acquire(&first);
        for (uint32_t i = 0; i < WAITERS; i++) {
            a[i] = (struct arrival){.order = order, .count = &count};
        }
        start_in_order(type, memory, a, t);
        qn_lock_release(&first);
        for (uint32_t i = 0; i < WAITERS; i++) {
            pthread_join(t[i], NULL);
        }
        for (uint32_t i = 0; i < WAITERS; i++) {
            cr_expect_eq(order[i], i, "%s: %u is number %u", type->name, i,
                         order[i]);
        }
        free(memory);
    }
}
