/*
 * core/base/clock.h on the simulated machine: the clock of the running node, in
 * ns since the run began. Outside a run it is 0.
 */
#include "core/base/clock.h"

#include "core/sim/machine.h"

#define WALL_US UINT64_C(1600000000000000) /* of every run's beginning */

qn_time_t qn_clock_now(void)
{
    return qn_sim.self == QN_SIM_NO_NODE ? 0 : qn_sim.scheduler->now();
}

/* On a core of its own a node computes all the time. */
qn_time_t qn_clock_cpu(void)
{
    return qn_clock_now();
}

uint64_t qn_clock_wall_us(void)
{
    return WALL_US + qn_clock_now() / 1000;
}

uint64_t qn_clock_wall_ms(void)
{
    return qn_clock_wall_us() / 1000;
}
