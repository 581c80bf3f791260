#ifndef QN_BASE_CYCLES_H
#define QN_BASE_CYCLES_H

/**
 * The cycle counter of the core: for costs below what clocks can tell.
 *
 * Its rate is constant and need not be the core's frequency; it may move in
 * steps (26 at a time on some machines), so short times are averaged over many
 * samples. Where there is none that a program may read it counts nanoseconds.
 * Counters of different cores are not compared.
 */

#include <stdint.h>

#include "core/base/clock.h"

/** Ticks. What stands before the call has been done when the counter is read
 *  (stores may still wait in the core's buffer); what follows has not begun. */
static inline uint64_t qn_cycles(void)
{
#if defined(__x86_64__)
    __builtin_ia32_lfence();
    uint64_t ticks = __builtin_ia32_rdtsc();
    __builtin_ia32_lfence();
    return ticks;
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ __volatile__("isb; mrs %0, cntvct_el0; isb"
                         : "=r"(ticks)::"memory");
    return ticks;
#else
    return qn_clock_now();
#endif
}

#endif
