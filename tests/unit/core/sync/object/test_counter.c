/* The counter in each form: alone, and with more threads than cores. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "core/sync/delegate/server.h"
#include "core/sync/object/counter.h"
#include "tests/support/test.h"

#define THREADS 8u
#define ADDS    500u

static const char *const backends[] = {NULL, "lock", "cc_synch", "h_synch",
                                       "auto"};

struct world {
    void *memory; /* allocated */
    struct qn_counter counter;
};

static void make(struct world *w, const char *backend, uint32_t clients)
{
    const struct qn_delegate_opts d = {
        .type = backend == NULL ? NULL : qn_delegate_find(backend)};
    const struct qn_counter_opts o = {.clients = clients,
                                      .delegate = backend == NULL ? NULL : &d};
    size_t bytes = qn_counter_bytes(&o);
    cr_assert_neq(bytes, 0);
    w->memory = aligned_alloc(QN_CACHELINE, bytes);
    cr_assert_neq(w->memory, NULL);
    memset(w->memory, 0, bytes);
    cr_assert_eq(qn_counter_open(&w->counter, w->memory), QN_EINVAL);
    cr_assert_eq(qn_counter_format(w->memory, &o), QN_OK);
    /* Of another version: the upper half of the first word. */
    *(uint32_t *)w->memory += 1u << 16;
    cr_assert_eq(qn_counter_open(&w->counter, w->memory), QN_EINVAL);
    *(uint32_t *)w->memory -= 1u << 16;
    cr_assert_eq(qn_counter_open(&w->counter, w->memory), QN_OK);
}

Test(counter, returns_what_it_was_and_wraps_at_63_bits)
{
    for (uint32_t i = 0; i < sizeof backends / sizeof *backends; i++) {
        struct world w;
        struct qn_counter_client c;
        uint64_t before = 1;
        make(&w, backends[i], 1);
        cr_assert_eq(qn_counter_join(&w.counter, &c, NULL), QN_OK);
        cr_assert_eq(qn_counter_add(&c, 5, &before), QN_OK);
        cr_assert_eq(before, 0);
        cr_assert_eq(qn_counter_add(&c, QN_DELEGATE_VALUE, &before), QN_OK);
        cr_assert_eq(before, 5);
        cr_assert_eq(qn_counter_add(&c, 0, &before), QN_OK);
        cr_assert_eq(before, 4);
        cr_assert_eq(qn_counter_stats_of(&c).operations,
                     backends[i] == NULL ? 0 : 3);
        qn_counter_leave(&c);
        free(w.memory);
    }
}

static void *add(void *arg)
{
    struct world *w = arg;
    struct qn_counter_client c;
    uint64_t last = 0;
    cr_assert_eq(qn_counter_join(&w->counter, &c, NULL), QN_OK);
    for (uint32_t i = 0; i < ADDS; i++) {
        uint64_t before;
        cr_assert_eq(qn_counter_add(&c, 1, &before), QN_OK);
        cr_assert(i == 0 || before > last);
        last = before;
    }
    qn_counter_leave(&c);
    return NULL;
}

Test(counter, loses_no_addition, .timeout = 60)
{
    for (uint32_t i = 0; i < sizeof backends / sizeof *backends; i++) {
        struct world w;
        pthread_t thread[THREADS];
        struct qn_counter_client c;
        uint64_t total;
        make(&w, backends[i], THREADS);
        for (uint32_t k = 0; k < THREADS; k++) {
            cr_assert_eq(pthread_create(&thread[k], NULL, add, &w), 0);
        }
        for (uint32_t k = 0; k < THREADS; k++) {
            cr_assert_eq(pthread_join(thread[k], NULL), 0);
        }
        cr_assert_eq(qn_counter_join(&w.counter, &c, NULL), QN_OK);
        cr_assert_eq(qn_counter_add(&c, 0, &total), QN_OK);
        cr_assert_eq(total, THREADS * ADDS);
        qn_counter_leave(&c);
        free(w.memory);
    }
}

static void *serve(void *arg)
{
    struct world *w = arg;
    struct qn_delegate_server server = {.domain = 0};
    const struct qn_delegate *d = qn_counter_delegate(&w->counter);
    cr_assert_eq(qn_delegate_serve(d, &server), QN_OK);
    cr_assert_eq(server.stats.served, 2);
    return NULL;
}

Test(counter, a_thread_serves_its_delegate, .timeout = 60)
{
    struct world w;
    struct qn_counter_client c;
    pthread_t server;
    uint64_t before = 1;
    make(&w, NULL, 1);
    cr_assert_null(qn_counter_delegate(&w.counter));
    free(w.memory);
    make(&w, "shm_server", 1);
    cr_assert_eq(pthread_create(&server, NULL, serve, &w), 0);
    cr_assert_eq(qn_counter_join(&w.counter, &c, NULL), QN_OK);
    cr_assert_eq(qn_counter_add(&c, 5, &before), QN_OK);
    cr_assert_eq(before, 0);
    cr_assert_eq(qn_counter_add(&c, 1, &before), QN_OK);
    cr_assert_eq(before, 5);
    cr_assert_eq(qn_delegate_stop(qn_counter_delegate(&w.counter)), QN_OK);
    cr_assert_eq(pthread_join(server, NULL), 0);
    qn_counter_leave(&c);
    free(w.memory);
}
