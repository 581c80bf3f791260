/*
 * Servers with threads: 14 clients that join and leave, two servers that take
 * turns whenever a client says so, and signal handlers that sleep, on as many
 * cores as there are. Counts say when, no clock does.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "core/base/bits.h"
#include "tests/support/test.h"
#include "tests/unit/core/sync/delegate/delegate_world.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CALLS 400u
#else
#define CALLS 4000u
#endif
#define CLIENTS     14u
#define SERVERS     2u
#define JOIN_EVERY  100u /* calls of a client */
#define MOVE_EVERY  60u  /* calls of the first client */
#define SHAKE_EVERY 25u

static struct world w;
static pthread_t threads[CLIENTS + SERVERS];
static qn_a32 done;
static qn_a64 sum; /* of results */
static struct qn_delegate_server servers[SERVERS];

static void sleep_in_handler(int number)
{
    (void)number;
    const struct timespec t = {.tv_nsec = 20000};
    nanosleep(&t, NULL);
}

static void *serve(void *arg)
{
    struct qn_delegate_server *s = (struct qn_delegate_server *)arg;
    while (qn_load(&done, QN_ACQUIRE) == 0) {
        const int rc = qn_delegate_serve(&w.d, s);
        cr_assert(rc == QN_OK || rc == QN_EBUSY);
        sched_yield(); /* the other one's turn */
    }
    return NULL;
}

/* Calls and submissions in turn; results of one client ascend. */
static uint64_t some_calls(struct qn_delegate_client *c, uint64_t *last)
{
    uint64_t result = 0, total = 0;
    cr_assert_eq(qn_delegate(&w.d, c, ADD, 1, &result), QN_OK);
    for (uint32_t i = 0; i <= 4; i++) {
        cr_assert(i == 0 || result > *last || *last == UINT64_MAX);
        *last = result;
        total += result;
        if (i < 4) {
            cr_assert_eq(qn_delegate_submit(&w.d, c, ADD, 1), QN_OK);
            cr_assert_eq(qn_delegate_collect(&w.d, c, &result), QN_OK);
        }
    }
    return total;
}

static void *call(void *arg)
{
    const uint32_t self = (uint32_t)(uintptr_t)arg;
    struct qn_delegate_client c;
    const struct qn_delegate_join_opts o = {.domain =
                                                self % w.d.at[0].o.domains};
    uint64_t last = UINT64_MAX, total = 0;
    cr_assert_eq(qn_delegate_join(&w.d, &c, &o), QN_OK);
    for (uint32_t i = 0; i < CALLS / 5; i++) {
        total += some_calls(&c, &last);
        if (i % (JOIN_EVERY / 5) == self) {
            qn_delegate_leave(&w.d, &c);
            cr_assert_eq(qn_delegate_join(&w.d, &c, &o), QN_OK);
        }
        if (self == 0 && i % (MOVE_EVERY / 5) == 0) {
            (void)qn_delegate_stop(&w.d);
        }
        if (self == 0 && i % (SHAKE_EVERY / 5) == 0) {
            pthread_kill(threads[CLIENTS + i % SERVERS], SIGUSR1);
        }
    }
    qn_delegate_leave(&w.d, &c);
    (void)qn_fetch_add(&sum, total, QN_RELAXED);
    return NULL;
}

static void run(const struct qn_server_opts *form, uint32_t domains)
{
    const struct qn_delegate_opts o = {.type = qn_delegate_find("shm_server"),
                                       .clients = CLIENTS + 2,
                                       .domains = domains,
                                       .server = *form};
    world_make(&w, &o);
    qn_store(&done, 0, QN_RELAXED);
    qn_store(&sum, 0, QN_RELAXED);
    for (uint32_t i = 0; i < SERVERS; i++) {
        servers[i] = (struct qn_delegate_server){.domain = i % domains};
        cr_assert_eq(
            pthread_create(&threads[CLIENTS + i], NULL, serve, &servers[i]), 0);
    }
    for (uint32_t i = 0; i < CLIENTS; i++) {
        cr_assert_eq(
            pthread_create(&threads[i], NULL, call, (void *)(uintptr_t)i), 0);
    }
    for (uint32_t i = 0; i < CLIENTS; i++) {
        pthread_join(threads[i], NULL);
    }
    qn_store(&done, 1, QN_RELEASE);
    for (uint32_t i = 0; i < SERVERS; i++) {
        while (pthread_tryjoin_np(threads[CLIENTS + i], NULL) != 0) {
            (void)qn_delegate_stop(&w.d);
            sched_yield();
        }
    }
    const uint64_t n = (uint64_t)CLIENTS * CALLS;
    cr_assert_eq(w.counter, n);
    cr_assert_eq(qn_load(&sum, QN_RELAXED), n * (n - 1) / 2,
                 "a result was given twice");
    cr_assert_eq(servers[0].stats.served + servers[1].stats.served, n);
    world_free(&w);
}

static void handle(void)
{
    const struct sigaction a = {.sa_handler = sleep_in_handler};
    cr_assert_eq(sigaction(SIGUSR1, &a, NULL), 0);
}

Test(server_threads, servers_move_while_clients_come_and_go, .timeout = 100)
{
    handle();
    run(&(struct qn_server_opts){0}, 2);
}

Test(server_threads, replies_in_groups, .timeout = 100)
{
    handle();
    run(&(struct qn_server_opts){.group_replies = true, .stride = 2}, 2);
}

Test(server_threads, replies_that_stream, .timeout = 100)
{
    handle();
    run(&(struct qn_server_opts){.only_server_uses_data = true,
                                 .pause = QN_SERVER_NONE},
        1);
}
