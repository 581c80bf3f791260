#ifndef QN_BARRIER_BARRIER_INTERNAL_H
#define QN_BARRIER_BARRIER_INTERNAL_H

/**
 * The memory of a barrier, for its forms.
 *
 *     line 0   what it is      constant once formatted
 *     line 1   arrivals        all members (central)
 *     lines    seats           join and leave
 */

#include "core/barrier/barrier.h"

struct qn_barrier_seat {
    qn_a32 taken;   /* by a member that has joined */
    qn_a32 episode; /* of the last one that left; written before `taken` */
};

struct qn_barrier_memory {
    alignas(QN_CACHELINE) qn_a32 says; /* version and form */
    qn_a32 members;
    qn_a32 own_cores;
    alignas(QN_CACHELINE) qn_a32 arrived;                /* central */
    alignas(QN_CACHELINE) struct qn_barrier_seat seat[]; /* [members] */
};

extern const struct qn_barrier_form qn_barrier_central;

#endif
