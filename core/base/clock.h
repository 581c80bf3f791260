#ifndef QN_BASE_CLOCK_H
#define QN_BASE_CLOCK_H

/** The clocks. Protocols take times as arguments; only shells read them.
 *  Any thread. */

#include <stdint.h>

typedef uint64_t qn_time_t; /* ns, monotonic, origin unspecified */

#define QN_US         ((qn_time_t)1000)
#define QN_MS         ((qn_time_t)1000000)
#define QN_S          ((qn_time_t)1000000000)
#define QN_TIME_NEVER UINT64_MAX

/** Monotonic time in ns (CLOCK_MONOTONIC). */
qn_time_t qn_clock_now(void);

/** CPU time of the calling thread in ns (CLOCK_THREAD_CPUTIME_ID): a system
 *  call, some 0.5 us. */
qn_time_t qn_clock_cpu(void);

/** Wall clock in ms since 1970 (CLOCK_REALTIME); may jump. */
uint64_t qn_clock_wall_ms(void);

/** Wall clock in us since 1970; may jump. */
uint64_t qn_clock_wall_us(void);

#endif
