#include "core/base/clock.h"

#include <time.h>

qn_time_t qn_clock_now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (qn_time_t)ts.tv_sec * QN_S + (qn_time_t)ts.tv_nsec;
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
