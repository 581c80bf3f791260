#ifndef QN_LOADGEN_CLIENT_TIMER_HEAP_H
#define QN_LOADGEN_CLIENT_TIMER_HEAP_H

/**
 * Deadlines of a fixed set of members, each with one deadline or none, in a
 * binary heap. One thread; no allocation after init.
 */

#include "core/base/clock.h"

#include <stdint.h>

/** Private. */
struct qn_timer_heap {
    uint32_t count; /* members in the heap */
    uint32_t *heap; /* [size] members, the earliest first */
    uint32_t *spot; /* 1 + position of a member in the heap; 0: not in it */
    qn_time_t *at;  /* deadline of each member */
};

/** @param size  Number of members: 0 .. size - 1.
 *  @return QN_OK; QN_ENOMEM, then nothing has to be freed. */
int qn_timer_heap_init(struct qn_timer_heap *a, uint32_t size);

void qn_timer_heap_fini(struct qn_timer_heap *a);

/** Set the deadline of `member`; QN_TIME_NEVER removes it. O(log size). */
void qn_timer_heap_set(struct qn_timer_heap *a, uint32_t member, qn_time_t at);

/** The earliest deadline; QN_TIME_NEVER if there is none. */
static inline qn_time_t qn_timer_heap_first(const struct qn_timer_heap *a)
{
    return a->count == 0 ? QN_TIME_NEVER : a->at[a->heap[0]];
}

/** Remove and return the member with the earliest deadline; the heap must not
 *  be empty. O(log size). */
uint32_t qn_timer_heap_pop(struct qn_timer_heap *a);

#endif
