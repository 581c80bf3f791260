#ifndef QN_LOADGEN_CLIENT_AGENDA_H
#define QN_LOADGEN_CLIENT_AGENDA_H

/**
 * Who wants to be called when: a binary heap of the members of a fixed set,
 * each with one time or none. One thread; no allocation after init.
 */

#include "core/base/clock.h"

#include <stdint.h>

/** Private. */
struct qn_agenda {
    uint32_t count; /* members in the heap */
    uint32_t *heap; /* [size] members, the earliest first */
    uint32_t *spot; /* [size] 1 + where a member is in the heap; 0: nowhere */
    qn_time_t *at;  /* [size] of each member */
};

/** @param size  Members: 0 .. size - 1.
 *  @return QN_OK or QN_ENOMEM, then nothing is left behind. */
int qn_agenda_init(struct qn_agenda *a, uint32_t size);

void qn_agenda_fini(struct qn_agenda *a);

/** Call `member` at `at` and at no other time; QN_TIME_NEVER: not at all.
 *  O(log size). */
void qn_agenda_set(struct qn_agenda *a, uint32_t member, qn_time_t at);

/** When somebody is due first; QN_TIME_NEVER if nobody is. */
static inline qn_time_t qn_agenda_first(const struct qn_agenda *a)
{
    return a->count == 0 ? QN_TIME_NEVER : a->at[a->heap[0]];
}

/** Take who is due first off; the agenda must not be empty. O(log size). */
uint32_t qn_agenda_pop(struct qn_agenda *a);

#endif
