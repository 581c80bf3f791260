/*
 * Single operations on a simulated SCC: queues at a message buffer and at the
 * interrupt controller. That the prices are those in print is tested beside
 * them (tests/unit/core/sim/test_scc.c) and by the replay.
 */
#include <math.h>

#include "core/base/err.h"
#include "loadgen/simulate/scc/scc_probe.h"
#include "tests/support/test.h"

static struct qn_tiled machine;

static void load(void)
{
    struct qn_parse_error e = {{0}};
    cr_assert_eq(qn_tiled_load(&machine, QN_MACHINES "/scc.json", &e), QN_OK,
                 "%s", e.text);
}

struct range {
    double least, most;
};

static struct range range_of(const double *value, uint32_t from, uint32_t until)
{
    struct range r = {INFINITY, 0};
    for (uint32_t i = from; i < until; i++) {
        r.least = fmin(r.least, value[i]);
        r.most = fmax(r.most, value[i]);
    }
    return r;
}

/* The first n cores get 128 lines from core 0. */
static struct range readers(uint32_t n)
{
    double us[QN_SCC_CORES];
    const struct qn_scc_transfer t = {.lines = 128};
    cr_assert_eq(qn_scc_probe_crowd(us, &machine, n, &t), QN_OK);
    return range_of(us, 0, n);
}

/* 48 lines of 12.5 ns for each line of one of them. */
Test(scc_probe, forty_eight_readers_of_one_buffer_queue, .init = load)
{
    struct range r = readers(48);
    cr_assert(r.most > 128 * 48 * 0.0125 && r.most < 1.5 * 128 * 48 * 0.0125,
              "%f to %f", r.least, r.most);
    cr_assert(r.least > 1.4 * 35.1, "%f", r.least);
}

Test(scc_probe, inputs_served_in_turn_spread_the_readers, .init = load)
{
    struct range together = readers(48);
    machine.parameter[QN_SCC_FAIR].value = 1;
    struct range r = readers(48);
    cr_assert(r.most / r.least > 2 * together.most / together.least, "%f to %f",
              r.least, r.most);
    cr_assert(r.most > 128 * 48 * 0.0125, "%f", r.most); /* one at a time */
}

Test(scc_probe, a_core_that_waits_for_none_takes_as_long_as_alone, .init = load)
{
    double us;
    const struct qn_scc_transfer t = {.lines = 128, .peer = 0};
    cr_assert_eq(qn_scc_probe_transfer(&us, &machine, &t), QN_OK);
    cr_assert(fabs(readers(1).most / us - 1) < 1e-6, "%f", us);
}

Test(scc_probe, an_interrupt_takes_2000_cycles_and_many_queue, .init = load)
{
    double cycles[QN_SCC_CORES];
    cr_assert_eq(qn_scc_probe_interrupts(cycles, &machine, 5, 1), QN_OK);
    cr_assert(cycles[0] > 1950 && cycles[0] < 2150, "%f", cycles[0]);
    cr_assert_eq(qn_scc_probe_interrupts(cycles, &machine, 0, 48), QN_OK);
    struct range all = range_of(cycles, 0, 48);
    cr_assert(all.least < 2200, "%f", all.least);
    cr_assert(all.most > 0.85 * 6000 && all.most < 6000, "%f", all.most);
}

Test(scc_probe, says_what_it_cannot_do, .init = load)
{
    double us[QN_SCC_CORES];
    struct qn_scc_transfer t = {.lines = 1};
    cr_assert_eq(qn_scc_probe_crowd(us, &machine, 49, &t), QN_EINVAL);
    cr_assert_eq(qn_scc_probe_interrupts(us, &machine, 48, 1), QN_EINVAL);
    cr_assert_eq(qn_scc_probe_interrupts(us, &machine, 0, 49), QN_EINVAL);
    machine.kind = QN_TILED_TILEGX;
    cr_assert_eq(qn_scc_probe_transfer(us, &machine, &t), QN_EINVAL);
}
