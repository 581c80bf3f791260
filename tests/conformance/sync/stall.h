#ifndef QN_TESTS_CONFORMANCE_SYNC_STALL_H
#define QN_TESTS_CONFORMANCE_SYNC_STALL_H

/**
 * Threads that stall between two accesses of shared memory. sync_mutants
 * includes this in front of each source of core/sync: there every operation of
 * atomic.h but copies, fences and streaming stores calls stress_stall() first.
 *
 * A window of a few ns is met by a signal once in many thousands of times, and
 * two of them at once by none. Here each access is as likely as another one.
 */

#include "core/base/atomic.h"

/** Threads that are made from now on stall as the seed says. One at a time. */
void stress_stalls_begin(uint64_t seed);

/** Perhaps let some time pass: each thread draws how often. It spins, and now
 *  and then yields, since others may need its core. Any thread. Before
 *  stress_stalls_begin: nothing. */
void stress_stall(void);

#undef qn_load
#undef qn_store
#undef qn_exchange
#undef qn_fetch_add
#undef qn_fetch_or
#undef qn_cas
#define STRESS_STALLED(operation) (stress_stall(), operation)
#define qn_load(p, order)         STRESS_STALLED(atomic_load_explicit((p), (order)))
#define qn_store(p, v, order)                                                  \
    STRESS_STALLED(atomic_store_explicit((p), (v), (order)))
#define qn_exchange(p, v, order)                                               \
    STRESS_STALLED(atomic_exchange_explicit((p), (v), (order)))
#define qn_fetch_add(p, v, order)                                              \
    STRESS_STALLED(atomic_fetch_add_explicit((p), (v), (order)))
#define qn_fetch_or(p, v, order)                                               \
    STRESS_STALLED(atomic_fetch_or_explicit((p), (v), (order)))
#define qn_cas(p, expected, desired, order)                                    \
    STRESS_STALLED(atomic_compare_exchange_strong_explicit(                    \
        (p), (expected), (desired), (order), memory_order_acquire))
/* No macro is expanded inside itself: the inner one is the function. */
#define qn_cas_pair(p, ...) STRESS_STALLED(qn_cas_pair((p), __VA_ARGS__))

#endif
