#ifndef QN_SIM_TIMED_PREFETCH_H
#define QN_SIM_TIMED_PREFETCH_H

/**
 * A stride prefetcher: one stream of a cache. Two misses at equal distances
 * make a stream; each further one of it asks for the line behind it.
 *
 * What is asked for is brought when that line is looked at next, by any node,
 * as of the time at which it was asked for: until then nothing has happened to
 * it.
 *
 * Pure.
 */

#include "core/sim/timed/prices.h"

#define QN_PREFETCH_DISTANCE 32 /* lines, at most: half of a page */

/** Addresses are in lines. All 0: no stream yet. */
struct qn_prefetch {
    uintptr_t last; /* missed */
    intptr_t stride;
    uintptr_t asked; /* 0: none */
    qn_ps_t asked_at;
    uintptr_t brought; /* that line was brought, and not used yet; 0: none */
    qn_ps_t begun_at;  /* its transfer */
};

/** A load has missed that line, or used what was brought, at `at`. */
static inline void qn_prefetch_miss(struct qn_prefetch *f, uintptr_t line,
                                    qn_ps_t at)
{
    intptr_t stride = (intptr_t)(line - f->last);
    bool goes_on = stride == f->stride && stride != 0 &&
                   stride <= QN_PREFETCH_DISTANCE &&
                   stride >= -QN_PREFETCH_DISTANCE;
    f->last = line;
    f->stride = stride;
    if (goes_on) {
        f->asked = line + (uintptr_t)stride;
        f->asked_at = at;
    }
}

#endif
