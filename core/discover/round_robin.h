#ifndef QN_CORE_DISCOVER_ROUND_ROBIN_H
#define QN_CORE_DISCOVER_ROUND_ROBIN_H

/**
 * In which order all pairs of cores are measured, so that pairs that are
 * measured at the same time share nothing.
 *
 * A round-robin round_robin: in each of n-1 rounds (n if n is odd) every core
 * meets one other (or rests), and after all of them each has met each once. A
 * round is cut into steps: two pairs of one step have no core and no physical
 * core in common (hardware threads of one core would slow each other), and a
 * step has at most `limit` pairs.
 *
 * Pure; one thread per round_robin; the caller owns the memory.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/machine/machine.h"

struct qn_round_robin_pair {
    uint32_t a, b; /* indices of cores, a < b */
};

struct qn_round_robin {
    const struct qn_machine *m; /* kept */
    uint32_t limit;
    uint32_t round;
    bool met[QN_CORES_MAX]; /* in this round, by the lower core of the pair */
};

/** Rounds of the round_robin of n. */
uint32_t qn_round_robin_rounds(uint32_t n);

/** The core that core i meets in a round; i itself: none. Pure. */
uint32_t qn_round_robin_partner(uint32_t n, uint32_t round, uint32_t i);

/** Begin. `limit` is at least 1. */
void qn_round_robin_init(struct qn_round_robin *s, const struct qn_machine *m,
                         uint32_t limit);

/**
 * The next step.
 *
 * @param pair    [limit] Filled.
 * @param wanted  Says whether a pair is to be measured at all; NULL: all are.
 * @return how many pairs; 0: all were given.
 */
uint32_t qn_round_robin_next(struct qn_round_robin *s,
                             struct qn_round_robin_pair *pair,
                             bool (*wanted)(void *arg, uint32_t a, uint32_t b),
                             void *arg);

#endif
