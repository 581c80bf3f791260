#include "core/wait/doorbell.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/err.h"
#include "tests/support/test.h"

enum kind { FUTEX, EVENTFD, KINDS };

/* A sleeper and a ringer on one line. */
struct pair {
    struct qn_doorbell_line line;
    struct qn_doorbell doorbell;
    struct qn_doorbell_handle ringer;
};

static int open_end(enum kind kind)
{
    return kind == FUTEX ? -1 : eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
}

static void init(struct pair *p, enum kind kind)
{
    memset(p, 0, sizeof *p);
    int fd = open_end(kind);
    qn_doorbell_init(&p->doorbell, &p->line, fd);
    qn_doorbell_handle_init(&p->ringer, &p->line, fd);
}

static void fini(struct pair *p)
{
    if (p->doorbell.fd >= 0) {
        close(p->doorbell.fd);
    }
}

static bool readable(int fd)
{
    struct pollfd f = {.fd = fd, .events = POLLIN};
    return poll(&f, 1, 0) == 1;
}

Test(doorbell, is_not_rung_while_awake)
{
    for (enum kind kind = 0; kind < KINDS; kind++) {
        struct pair p;
        init(&p, kind);
        cr_assert_not(qn_doorbell_ring(&p.ringer), "kind %d", kind);
        qn_doorbell_arm(&p.doorbell);
        qn_doorbell_disarm(&p.doorbell);
        cr_assert_not(qn_doorbell_ring(&p.ringer), "kind %d", kind);
        fini(&p);
    }
}

Test(doorbell, is_rung_once_per_sleep)
{
    for (enum kind kind = 0; kind < KINDS; kind++) {
        struct pair p;
        init(&p, kind);
        for (int i = 0; i < 3; i++) {
            qn_doorbell_arm(&p.doorbell);
            cr_assert(qn_doorbell_ring(&p.ringer), "kind %d, %d", kind, i);
            cr_assert_not(qn_doorbell_ring(&p.ringer), "kind %d, %d", kind, i);
            qn_doorbell_disarm(&p.doorbell);
        }
        fini(&p);
    }
}

Test(doorbell, two_ringers_of_a_futex_make_one_call)
{
    struct pair p;
    struct qn_doorbell_handle other;
    init(&p, FUTEX);
    qn_doorbell_handle_init(&other, &p.line, -1);
    qn_doorbell_arm(&p.doorbell);
    cr_assert(qn_doorbell_ring(&p.ringer));
    cr_assert_not(qn_doorbell_ring(&other));
}

/* The futex itself would forget such a ring. */
Test(doorbell, a_ring_between_arm_and_wait_is_not_missed, .timeout = 10)
{
    for (enum kind kind = 0; kind < KINDS; kind++) {
        struct pair p;
        init(&p, kind);
        qn_doorbell_arm(&p.doorbell);
        qn_doorbell_ring(&p.ringer);
        cr_assert_eq(qn_doorbell_wait(&p.doorbell, QN_TIME_NEVER), QN_OK);
        qn_doorbell_disarm(&p.doorbell);
        fini(&p);
    }
}

Test(doorbell, wait_ends_at_its_deadline, .timeout = 10)
{
    for (enum kind kind = 0; kind < KINDS; kind++) {
        struct pair p;
        init(&p, kind);
        qn_time_t deadline = qn_clock_now() + 2 * QN_MS;
        qn_doorbell_arm(&p.doorbell);
        int err;
        do { /* a signal may end it early */
            err = qn_doorbell_wait(&p.doorbell, deadline);
        } while (err == QN_OK);
        cr_assert_eq(err, QN_ETIMEDOUT);
        cr_assert_geq(qn_clock_now(), deadline);
        cr_assert_eq(qn_doorbell_wait(&p.doorbell, 0), QN_ETIMEDOUT,
                     "in the past");
        qn_doorbell_disarm(&p.doorbell);
        fini(&p);
    }
}

Test(doorbell, disarm_without_arm_is_harmless)
{
    for (enum kind kind = 0; kind < KINDS; kind++) {
        struct pair p;
        init(&p, kind);
        qn_doorbell_disarm(&p.doorbell);
        qn_doorbell_disarm(&p.doorbell);
        qn_doorbell_arm(&p.doorbell);
        cr_assert(qn_doorbell_ring(&p.ringer));
        fini(&p);
    }
}

/* An event loop that polls the descriptor must not spin on an old ring. */
Test(doorbell, disarm_takes_the_ring_out_of_the_eventfd)
{
    struct pair p;
    init(&p, EVENTFD);
    qn_doorbell_arm(&p.doorbell);
    qn_doorbell_ring(&p.ringer);
    cr_assert(readable(p.doorbell.fd));
    qn_doorbell_disarm(&p.doorbell);
    cr_assert_not(readable(p.doorbell.fd));
    fini(&p);
}

Test(doorbell, a_ringer_needs_no_write_access_to_an_eventfds_line)
{
    struct qn_doorbell_line *line = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int fd = open_end(EVENTFD);
    struct qn_doorbell doorbell;
    struct qn_doorbell_handle ringer;
    qn_doorbell_init(&doorbell, line, fd);
    qn_doorbell_handle_init(&ringer, line, fd);
    qn_doorbell_arm(&doorbell);
    cr_assert_eq(mprotect(line, 4096, PROT_READ), 0);
    cr_assert(qn_doorbell_ring(&ringer));
    cr_assert(readable(fd));
    close(fd);
    munmap(line, 4096);
}

Test(doorbell, the_epoch_wraps)
{
    for (enum kind kind = 0; kind < KINDS; kind++) {
        struct pair p;
        init(&p, kind);
        qn_store(&p.line.epoch, UINT32_MAX - 3, QN_RELAXED);
        for (int i = 0; i < 4; i++) {
            qn_doorbell_arm(&p.doorbell);
            cr_assert(qn_doorbell_ring(&p.ringer), "kind %d, %d", kind, i);
            qn_doorbell_disarm(&p.doorbell);
        }
        cr_assert_eq(qn_load(&p.line.epoch, QN_RELAXED), 4);
        fini(&p);
    }
}

/*
 * Lost wake-ups: two nodes hand a counter to and fro, each blocking without a
 * deadline until the other has moved. One lost ring hangs the test.
 */
struct side {
    struct qn_doorbell doorbell;
    struct qn_doorbell_handle peer;
    qn_a32 *mine;         /* written by this side */
    const qn_a32 *theirs; /* published before the ring */
    uint32_t rounds;
};

struct table {
    struct qn_doorbell_line line[2];
    alignas(64) qn_a32 count[2];
};

static void await(struct side *s, uint32_t value)
{
    /* acquire: the other side's release store of its count. */
    while (qn_load(s->theirs, QN_ACQUIRE) != value) {
        qn_doorbell_arm(&s->doorbell);
        if (qn_load(s->theirs, QN_ACQUIRE) != value) {
            qn_doorbell_wait(&s->doorbell, QN_TIME_NEVER);
        }
        qn_doorbell_disarm(&s->doorbell);
    }
}

static void *serve(void *arg)
{
    struct side *s = arg;
    for (uint32_t i = 1; i <= s->rounds; i++) {
        await(s, i);
        qn_store(s->mine, i, QN_RELEASE);
        qn_doorbell_ring(&s->peer);
    }
    return NULL;
}

static void call(struct side *s)
{
    for (uint32_t i = 1; i <= s->rounds; i++) {
        qn_store(s->mine, i, QN_RELEASE);
        qn_doorbell_ring(&s->peer);
        await(s, i);
    }
}

static void sides(struct side s[2], struct table *t, enum kind kind,
                  uint32_t rounds)
{
    int fd[2] = {open_end(kind), open_end(kind)};
    for (int i = 0; i < 2; i++) {
        s[i] = (struct side){
            .mine = &t->count[i], .theirs = &t->count[1 - i], .rounds = rounds};
        qn_doorbell_init(&s[i].doorbell, &t->line[i], fd[i]);
        qn_doorbell_handle_init(&s[i].peer, &t->line[1 - i], fd[1 - i]);
    }
}

Test(doorbell, no_wake_up_is_lost_between_threads, .timeout = 60)
{
    for (enum kind kind = 0; kind < KINDS; kind++) {
        struct table t = {0};
        struct side s[2];
        pthread_t thread;
        sides(s, &t, kind, 20000);
        cr_assert_eq(pthread_create(&thread, NULL, serve, &s[1]), 0);
        call(&s[0]);
        pthread_join(thread, NULL);
        cr_assert_eq(qn_load(&t.count[1], QN_ACQUIRE), 20000);
        close(s[0].doorbell.fd);
        close(s[1].doorbell.fd);
    }
}

Test(doorbell, no_wake_up_is_lost_between_processes, .timeout = 60)
{
    for (enum kind kind = 0; kind < KINDS; kind++) {
        struct table *t = mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        struct side s[2];
        sides(s, t, kind, 10000);
        pid_t pid = fork();
        if (pid == 0) {
            serve(&s[1]);
            _exit(0);
        }
        call(&s[0]);
        int status;
        cr_assert_eq(waitpid(pid, &status, 0), pid);
        cr_assert_eq(status, 0);
        close(s[0].doorbell.fd);
        close(s[1].doorbell.fd);
        munmap(t, sizeof *t);
    }
}

/*
 * The race itself, without the sleep around it: one thread arms and looks, the
 * other publishes and rings, on many lines in a row. Each message must be seen
 * by the look or rung. (Without a fence a few in 100,000 are neither.)
 */
#define LINES  256u
#define PASSES 2000u

struct race {
    struct qn_doorbell_line line[LINES];
    struct {
        alignas(64) qn_a32 message;
    } channel[LINES];
    bool seen[LINES];
    bool rung[LINES];
    alignas(64) qn_a32 arrived; /* both threads, twice a pass */
};

static void meet(struct race *r, uint32_t meeting)
{
    qn_fetch_add(&r->arrived, 1, QN_ACQ_REL);
    while (qn_load(&r->arrived, QN_ACQUIRE) < 2 * meeting) {
        sched_yield();
    }
}

static void *publish_and_ring(void *arg)
{
    struct race *r = arg;
    for (uint32_t pass = 1; pass <= PASSES; pass++) {
        meet(r, 2 * pass - 1);
        for (uint32_t i = 0; i < LINES; i++) {
            struct qn_doorbell_handle ringer;
            qn_doorbell_handle_init(&ringer, &r->line[i], -1);
            qn_store(&r->channel[i].message, pass, QN_RELEASE);
            r->rung[i] = qn_doorbell_ring(&ringer);
        }
        meet(r, 2 * pass);
    }
    return NULL;
}

static uint32_t arm_and_look(struct race *r, uint32_t pass)
{
    struct qn_doorbell doorbell[LINES];
    uint32_t lost = 0;
    meet(r, 2 * pass - 1);
    for (uint32_t i = 0; i < LINES; i++) {
        qn_doorbell_init(&doorbell[i], &r->line[i], -1);
        qn_doorbell_arm(&doorbell[i]);
        r->seen[i] = qn_load(&r->channel[i].message, QN_ACQUIRE) == pass;
    }
    meet(r, 2 * pass);
    for (uint32_t i = 0; i < LINES; i++) {
        lost += !r->seen[i] && !r->rung[i];
        qn_doorbell_disarm(&doorbell[i]);
    }
    return lost;
}

Test(doorbell, a_message_is_seen_or_rung, .timeout = 60)
{
    struct race *r = aligned_alloc(64, sizeof *r);
    pthread_t thread;
    uint32_t lost = 0;
    memset(r, 0, sizeof *r);
    cr_assert_eq(pthread_create(&thread, NULL, publish_and_ring, r), 0);
    for (uint32_t pass = 1; pass <= PASSES; pass++) {
        lost += arm_and_look(r, pass);
    }
    pthread_join(thread, NULL);
    cr_assert_eq(lost, 0, "%u lost", lost);
    free(r);
}

/* Many ringers, one sleeper that must see the sum. */
#define RINGERS 4u
#define RINGS   5000u

struct crowd {
    struct qn_doorbell_line line;
    alignas(64) qn_a32 count;
    int fd;
};

static void *ring_often(void *arg)
{
    struct crowd *c = arg;
    struct qn_doorbell_handle ringer;
    qn_doorbell_handle_init(&ringer, &c->line, c->fd);
    for (uint32_t i = 0; i < RINGS; i++) {
        qn_fetch_add(&c->count, 1, QN_RELEASE);
        qn_doorbell_ring(&ringer);
    }
    return NULL;
}

Test(doorbell, no_wake_up_is_lost_among_many_ringers, .timeout = 60)
{
    for (enum kind kind = 0; kind < KINDS; kind++) {
        struct crowd c = {.fd = open_end(kind)};
        struct qn_doorbell doorbell;
        pthread_t thread[RINGERS];
        qn_doorbell_init(&doorbell, &c.line, c.fd);
        for (uint32_t i = 0; i < RINGERS; i++) {
            pthread_create(&thread[i], NULL, ring_often, &c);
        }
        uint32_t seen = 0;
        while (seen < RINGERS * RINGS) {
            qn_doorbell_arm(&doorbell);
            uint32_t now = qn_load(&c.count, QN_ACQUIRE);
            if (now == seen) {
                qn_doorbell_wait(&doorbell, QN_TIME_NEVER);
            }
            qn_doorbell_disarm(&doorbell);
            seen = now;
        }
        for (uint32_t i = 0; i < RINGERS; i++) {
            pthread_join(thread[i], NULL);
        }
        close(c.fd);
    }
}
