/*
 * A baton between threads and between processes; every schedule of it is in
 * tests/sim/explore/sync/test_baton_explore.c.
 */
#include "core/wait/baton.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/wait/park.h"
#include "tests/support/test.h"

#define ROUNDS 2000u

struct pair {
    struct qn_baton there, back;
    uint32_t count; /* written by the side that has the value */
};

Test(baton, a_value_that_is_there_is_taken_without_sleep)
{
    struct qn_baton b;
    struct qn_wait_stats s = {0};
    uint32_t value = 7;
    qn_baton_init(&b);
    cr_assert_not(qn_baton_is_go(&b, &value));
    cr_assert_eq(value, 7);
    cr_assert_not(qn_baton_go(&b, QN_BATON_GO + 5));
    cr_assert(qn_baton_is_go(&b, &value));
    cr_assert_eq(value, QN_BATON_GO + 5);
    cr_assert_eq(qn_baton_wait(&b, &s), QN_BATON_GO + 5);
    cr_assert_eq(s.parks, 0);
    cr_assert_eq(s.yields, 0);
}

static void go_there(struct pair *p, uint32_t i)
{
    p->count++;
    qn_baton_init(&p->back);
    (void)qn_baton_go(&p->there, QN_BATON_GO + i);
}

static void *answer(void *arg)
{
    struct pair *p = arg;
    struct qn_wait_stats s = {0};
    for (uint32_t i = 0; i < ROUNDS; i++) {
        if (qn_baton_wait(&p->there, &s) != QN_BATON_GO + i) {
            return p;
        }
        p->count++;
        qn_baton_init(&p->there);
        (void)qn_baton_go(&p->back, UINT32_MAX - i);
    }
    return NULL;
}

Test(baton, two_threads_alternate, .timeout = 60)
{
    struct pair p = {.count = 0};
    struct qn_wait_stats s = {0};
    pthread_t t;
    void *wrong;
    qn_baton_init(&p.there);
    cr_assert_eq(pthread_create(&t, NULL, answer, &p), 0);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        go_there(&p, i);
        cr_assert_eq(qn_baton_wait(&p.back, &s), UINT32_MAX - i);
        cr_assert_eq(p.count, 2 * i + 2);
    }
    pthread_join(t, &wrong);
    cr_assert_null(wrong);
}

static void until_parked(const struct qn_baton *b)
{
    while (qn_load(&b->word, QN_RELAXED) != QN_BATON_PARKED) {
        sched_yield();
    }
}

struct sleeper {
    struct qn_baton baton;
    struct qn_wait_stats stats;
    uint32_t value;
};

static void *sleep_on(void *arg)
{
    struct sleeper *s = arg;
    s->value = qn_baton_wait(&s->baton, &s->stats);
    return NULL;
}

Test(baton, a_sleeper_is_woken_by_its_value_and_by_nothing_else, .timeout = 60)
{
    struct sleeper s = {.value = 0};
    pthread_t t;
    qn_baton_init(&s.baton);
    cr_assert_eq(pthread_create(&t, NULL, sleep_on, &s), 0);
    until_parked(&s.baton);
    for (int late = 0; late < 100; late++) {
        qn_unpark_word(&s.baton.word); /* of an earlier use */
        sched_yield();
    }
    cr_assert(qn_baton_go(&s.baton, 9));
    pthread_join(t, NULL);
    cr_assert_eq(s.value, 9);
    cr_assert_eq(s.stats.parks, 1);
}

static uint64_t yields_before_sleep(uint64_t wakes)
{
    struct sleeper s = {.stats = {.wakes = wakes}};
    pthread_t t;
    qn_baton_init(&s.baton);
    cr_assert_eq(pthread_create(&t, NULL, sleep_on, &s), 0);
    until_parked(&s.baton);
    cr_assert(qn_baton_go(&s.baton, QN_BATON_GO));
    pthread_join(t, NULL);
    cr_assert_eq(s.stats.wakes_before, wakes);
    return s.stats.yields;
}

Test(baton, a_thread_that_has_woken_another_is_in_less_haste_to_sleep,
     .timeout = 60)
{
    cr_assert_eq(yields_before_sleep(0), 2);
    cr_assert_gt(yields_before_sleep(1), 2);
}

Test(baton, a_process_wakes_another_at_another_address, .timeout = 60)
{
    int fd = memfd_create("baton", MFD_CLOEXEC);
    cr_assert_geq(fd, 0);
    cr_assert_eq(ftruncate(fd, 4096), 0);
    struct qn_baton *mine =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    struct qn_baton *other =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    cr_assert_neq((void *)mine, MAP_FAILED);
    cr_assert_neq((void *)other, MAP_FAILED);
    qn_baton_init(mine);
    pid_t child = fork();
    if (child == 0) {
        struct qn_wait_stats s = {0};
        _exit(qn_baton_wait(other, &s) == 33 && s.parks == 1 ? 0 : 1);
    }
    until_parked(mine);
    cr_assert(qn_baton_go(mine, 33));
    int status = -1;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(status, 0);
    munmap(mine, 4096);
    munmap(other, 4096);
    close(fd);
}
