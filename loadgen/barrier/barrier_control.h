#ifndef QN_LOADGEN_BARRIER_CONTROL_H
#define QN_LOADGEN_BARRIER_CONTROL_H

/**
 * How `quoin bench barrier` drives a team: members that sleep between rounds,
 * threads or processes, of this program or of another one. All of it is in
 * memory that they share.
 *
 *     bench                              member i
 *     subject, count, check
 *     post start[0 .. members - 1]   ->  wait start[i]
 *                                        one barrier, then `count` barriers
 *     wait done, members times       <-  post done
 *     ns: what member 0 measured
 *
 * A member posts `done` once when it is ready, too. Everything here is inline:
 * programs that have nothing else of quoin include it.
 */

#include <sched.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "core/base/atomic.h"

#define QN_BARRIER_TEAM_MAX      64u
/* A shorter sleep takes longer than it is asked for. */
#define QN_BARRIER_LATE_LEAST_NS 5e5

struct qn_barrier_seen {
    alignas(QN_CACHELINE) qn_a64 episode;
};

struct qn_barrier_control {
    sem_t start[QN_BARRIER_TEAM_MAX];
    sem_t done;
    uint32_t members;
    /* Of a round, written by the bench; ordered by `start` and `done`. */
    uint32_t subject;
    uint64_t count; /* 0: the end */
    bool check;     /* does each see what all did before? Not timed */
    double ns;      /* of one barrier; written by member 0 */
    double late;    /* part of the time that the last member sleeps, in front of
                       barriers; below 1 */
    uint64_t sleeps; /* written by that member, of all rounds */
    qn_a64 wrong;    /* what members have not seen, of all rounds */
    struct qn_barrier_seen seen[QN_BARRIER_TEAM_MAX];
};

/** Pass one barrier. */
typedef void qn_barrier_pass_fn(void *arg);

/** Bind the calling thread to the i-th core that the process may use, modulo
 *  their number. Where that is refused it is not bound. */
static inline void qn_barrier_bind(uint32_t i)
{
    cpu_set_t may, own;
    if (sched_getaffinity(0, sizeof may, &may) != 0) {
        return;
    }
    uint32_t nth = i % (uint32_t)CPU_COUNT(&may);
    size_t cpu = 0;
    while (!CPU_ISSET(cpu, &may) || nth-- > 0) {
        cpu++;
    }
    CPU_ZERO(&own);
    CPU_SET(cpu, &own);
    (void)sched_setaffinity(0, sizeof own, &own);
}

static inline double qn_barrier_now_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Relaxed: the barrier itself must order them; that is what is checked. */
static inline void qn_barrier_check(struct qn_barrier_control *c,
                                    uint32_t member, uint64_t episode,
                                    qn_barrier_pass_fn *pass, void *arg)
{
    qn_store(&c->seen[member].episode, episode, QN_RELAXED);
    pass(arg);
    for (uint32_t i = 0; i < c->members; i++) {
        if (qn_load(&c->seen[i].episode, QN_RELAXED) != episode) {
            (void)qn_fetch_add(&c->wrong, 1, QN_RELAXED);
        }
    }
    pass(arg);
}

/* The late member sleeps what it owes of its part of the time since `from`, if
 * that is `least` or more. @return what it has slept since then, ns. */
static inline double qn_barrier_be_late(struct qn_barrier_control *c,
                                        double from, double slept, double least)
{
    const double now = qn_barrier_now_ns();
    /* A sleep is time, too. */
    const double owed = (c->late * (now - from) - slept) / (1 - c->late);
    if (owed < least) {
        return slept;
    }
    const uint64_t ns = (uint64_t)owed;
    const struct timespec pause = {(time_t)(ns / 1000000000),
                                   (long)(ns % 1000000000)};
    (void)nanosleep(&pause, NULL);
    c->sleeps++;
    return slept + qn_barrier_now_ns() - now;
}

/** One member's part of a round that has started. */
static inline void qn_barrier_round(struct qn_barrier_control *c,
                                    uint32_t member, qn_barrier_pass_fn *pass,
                                    void *arg)
{
    const uint64_t count = c->count;
    pass(arg); /* all have begun */
    const bool late = c->late > 0 && member == c->members - 1;
    const double from = qn_barrier_now_ns();
    double slept = 0;
    for (uint64_t i = 1; i <= count; i++) {
        if (late) {
            slept = qn_barrier_be_late(
                c, from, slept, i < count ? QN_BARRIER_LATE_LEAST_NS : 0);
        }
        if (c->check) {
            qn_barrier_check(c, member, i, pass, arg);
        } else {
            pass(arg);
        }
    }
    if (member == 0) {
        c->ns = (qn_barrier_now_ns() - from) / (double)count;
    }
}

/** The next round has begun. @return false: there is none. */
static inline bool qn_barrier_next(struct qn_barrier_control *c,
                                   uint32_t member)
{
    (void)sem_post(&c->done); /* ready, or done with the last one */
    while (sem_wait(&c->start[member]) != 0) {
    }
    return c->count != 0;
}

#endif
