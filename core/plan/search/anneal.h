#ifndef QN_CORE_PLAN_SEARCH_ANNEAL_H
#define QN_CORE_PLAN_SEARCH_ANNEAL_H

/**
 * What all local searches of the planner share: a seeded generator and a
 * temperature that falls geometrically.
 *
 * Plain data, integers but for the cooling factor, so that equal seeds give
 * equal runs. One thread at a time per object.
 */

#include <stdint.h>

struct qn_anneal {
    uint64_t random; /* state of the generator, any value is a seed */
    double heat;     /* temperature, in steps of cost */
    double cool;     /* its factor per QN_ANNEAL_EPOCH moves */
    uint32_t warm;   /* heat, rounded */
    uint64_t due;    /* moves left before the next cooling */
};

#define QN_ANNEAL_EPOCH 256u /* moves at one temperature */

/** Begin a run of `moves` moves, from one temperature to another. */
void qn_anneal_begin(struct qn_anneal *a, uint64_t moves, double from,
                     double to);

/** A uniform random number. (splitmix64) */
static inline uint64_t qn_anneal_random(struct qn_anneal *a)
{
    uint64_t z = a->random += 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

/** Uniform below n, n > 0. */
static inline uint32_t qn_anneal_below(struct qn_anneal *a, uint32_t n)
{
    return (uint32_t)(((qn_anneal_random(a) >> 32) * n) >> 32);
}

/** A move has passed. */
void qn_anneal_tick(struct qn_anneal *a);

/** By how much the next move may raise the cost: exponential with the present
 *  temperature as mean, which is Metropolis' rule drawn before the move. Ticks.
 */
uint32_t qn_anneal_slack(struct qn_anneal *a);

#endif
