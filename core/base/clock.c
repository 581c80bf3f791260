#include "core/base/clock.h"

#include <time.h>

static qn_time_t read_ns(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (qn_time_t)ts.tv_sec * QN_S + (qn_time_t)ts.tv_nsec;
}

qn_time_t qn_clock_now(void)
{
    return read_ns(CLOCK_MONOTONIC);
}

qn_time_t qn_clock_cpu(void)
{
    return read_ns(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t qn_clock_wall_us(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

uint64_t qn_clock_wall_ms(void)
{
    return qn_clock_wall_us() / 1000;
}
