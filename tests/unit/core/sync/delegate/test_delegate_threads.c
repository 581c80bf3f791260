/* Each backend with more threads than cores: nothing is lost or done twice,
 * each thread's operations are in its order, and all threads end. */
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "core/sync/delegate/delegate.h"
#include "tests/support/test.h"
#include "tests/unit/core/sync/delegate/delegate_world.h"

#define THREADS 16u
#define CALLS   2000u /* of each thread */

static struct world world;

struct user {
    pthread_t thread;
    uint32_t number, op;
    uint32_t stay; /* calls between join and leave */
    bool ordered;  /* its results grew */
    struct qn_delegate_stats stats;
};

static void *use(void *arg)
{
    struct user *u = arg;
    uint64_t before = 0;
    u->ordered = true;
    for (uint32_t done = 0; done < CALLS;) {
        const struct qn_delegate_join_opts join = {.domain = u->number % 2};
        struct qn_delegate_client c;
        while (qn_delegate_join(&world.d, &c, &join) != QN_OK) {
            sched_yield();
        }
        for (uint32_t i = 0; i < u->stay && done < CALLS; i++, done++) {
            uint64_t was = 0;
            if (qn_delegate(&world.d, &c, u->op, 1, &was) != QN_OK) {
                u->ordered = false;
            }
            u->ordered &= done == 0 || was > before;
            before = was;
        }
        const struct qn_delegate_stats stats =
            qn_delegate_stats_of(&world.d, &c);
        qn_delegate_stats_add(&u->stats, &stats);
        qn_delegate_leave(&world.d, &c);
    }
    return NULL;
}

/* All threads add: to the object, or by its operations to `inner`. */
static struct qn_delegate_stats crowd_at(const struct qn_delegate_opts *o,
                                         uint32_t stay, struct world *inner,
                                         struct qn_delegate_client *nested)
{
    struct user u[THREADS];
    struct qn_delegate_stats sum = {0};
    world_make(&world, o);
    world.inner = inner;
    world.nested = nested;
    for (uint32_t i = 0; i < THREADS; i++) {
        u[i] = (struct user){
            .number = i, .op = inner != NULL ? NEST : ADD, .stay = stay};
        cr_assert_eq(pthread_create(&u[i].thread, NULL, use, &u[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        cr_assert_eq(pthread_join(u[i].thread, NULL), 0);
        cr_expect(u[i].ordered, "%s: thread %u", o->type->name, i);
        qn_delegate_stats_add(&sum, &u[i].stats);
    }
    const uint64_t counter = (inner != NULL ? inner : &world)->counter;
    cr_expect_eq(counter, THREADS * CALLS, "%s: %lu", o->type->name, counter);
    cr_expect_eq(sum.operations, THREADS * CALLS);
    cr_expect_eq(sum.served, THREADS * CALLS);
    const uint64_t most = 1 + (o->batch != 0 ? o->batch : QN_DELEGATE_BATCH);
    cr_expect_leq(sum.served, most * sum.batches, "%s", o->type->name);
    world_free(&world);
    return sum;
}

static struct qn_delegate_stats crowd(const struct qn_delegate_opts *o,
                                      uint32_t stay)
{
    return crowd_at(o, stay, NULL, NULL);
}

static void one_core(void)
{
    cpu_set_t all;
    cpu_set_t one;
    uint32_t cpu = 0;
    cr_assert_eq(sched_getaffinity(0, sizeof all, &all), 0);
    while (!CPU_ISSET(cpu, &all)) {
        cpu++;
    }
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    cr_assert_eq(sched_setaffinity(0, sizeof one, &one), 0);
}

static void all_forms(const char *name)
{
    struct qn_delegate_opts o = {
        .type = qn_delegate_find(name), .clients = THREADS, .domains = 2};
    crowd(&o, CALLS);
    o.batch = 1;
    crowd(&o, CALLS);
    /* Fewer places than threads: all join and leave all the time. */
    o.clients = THREADS / 2;
    crowd(&o, 3);
    one_core();
    o.batch = 0;
    crowd(&o, 50);
}

Test(delegate_threads, under_a_lock, .timeout = 100)
{
    all_forms("lock");
}

Test(delegate_threads, cc_synch, .timeout = 100)
{
    all_forms("cc_synch");
}

Test(delegate_threads, h_synch, .timeout = 100)
{
    all_forms("h_synch");
}

Test(delegate_threads, auto_by_its_rule, .timeout = 100)
{
    all_forms("auto");
}

Test(delegate_threads, auto_that_changes_every_10_operations, .timeout = 100)
{
    struct qn_delegate_opts o = {.type = qn_delegate_find("auto"),
                                 .clients = THREADS,
                                 .domains = 2,
                                 .change_every = 10};
    struct qn_delegate_stats s = crowd(&o, CALLS);
    /* A batch may be longer than 10. */
    cr_expect_gt(s.changes, 3);
    o.batch = 1;
    s = crowd(&o, 7);
    cr_expect_geq(s.changes, THREADS * CALLS / 12);
    one_core();
    s = crowd(&o, CALLS);
    cr_expect_geq(s.changes, THREADS * CALLS / 12);
}

/* Whichever thread runs an operation uses the client that they have at the
 * other object: one at a time. */
Test(delegate_threads, operations_call_another_object, .timeout = 100)
{
    for (uint32_t i = 0; qn_delegate_types[i] != NULL; i++) {
        const struct qn_delegate_opts one = {.type = qn_delegate_types[i],
                                             .clients = 1};
        const struct qn_delegate_opts o = {
            .type = qn_delegate_types[i], .clients = THREADS, .domains = 2};
        struct world inner;
        struct qn_delegate_client nested;
        world_make(&inner, &one);
        cr_assert_eq(qn_delegate_join(&inner.d, &nested, NULL), QN_OK);
        crowd_at(&o, CALLS, &inner, &nested);
        qn_delegate_leave(&inner.d, &nested);
        world_free(&inner);
    }
}
