/*
 * How often a thread stalls, and for how long, both from a wide range: most
 * defects need one thread that stalls for a whole operation of others, some of
 * them two, and others one that is late by a few instructions.
 */
#include "tests/conformance/sync/stall.h"

#include <sched.h>

#include "loadgen/base/random.h"

enum {
    OFTEN = 8,    /* accesses between two stalls, the least */
    SHORTER = 5,  /* and 4, 16, ... times that number */
    LONGEST = 12, /* 2 to this power of pauses: up to some 100 us */
    YIELD_EVERY = 8
};

static uint64_t run; /* 0: no stalls */
static qn_a32 threads;

void stress_stalls_begin(uint64_t seed)
{
    run = seed;
}

void stress_stall(void)
{
    static _Thread_local uint64_t seed;
    static _Thread_local uint32_t every;
    if (run == 0) {
        return;
    }
    if (every == 0) {
        /* relaxed: a number of its own. */
        seed = qn_random_split(
            run, atomic_fetch_add_explicit(&threads, 1, QN_RELAXED));
        every = (uint32_t)OFTEN << 2 * qn_random_below(&seed, SHORTER);
    }
    if (qn_random_below(&seed, every) != 0) {
        return;
    }
    for (uint32_t i = 1u << qn_random_below(&seed, LONGEST); i > 0; i--) {
        qn_pause();
    }
    if (qn_random_below(&seed, YIELD_EVERY) == 0) {
        (void)sched_yield();
    }
}
