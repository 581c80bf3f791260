/*
 * OC-Bcast of transports/mpb on a simulated SCC of 48 cores, against what was
 * measured on the hardware (Petrovic, EPFL thesis, chapter 4): latencies of one
 * call within 20 %, and the shapes of the curves.
 */
#include <math.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/simulate/scc/scc_bcast.h"
#include "tests/support/test.h"

static struct qn_tiled machine;

static void load(void)
{
    struct qn_parse_error e = {{0}};
    cr_assert_eq(qn_tiled_load(&machine, QN_MACHINES "/scc.json", &e), QN_OK,
                 "%s", e.text);
}

static struct qn_scc_bcast_result run(uint32_t k, uint32_t lines,
                                      uint32_t calls, bool async)
{
    struct qn_scc_bcast_result r;
    const struct qn_scc_bcast_opts o = {.machine = &machine,
                                        .cores = 48,
                                        .k = k,
                                        .lines = lines,
                                        .calls = calls,
                                        .async = async};
    cr_assert_eq(qn_scc_bcast_run(&r, &o), QN_OK);
    cr_assert(r.complete, "k %u, %u lines", k, lines);
    return r;
}

struct point {
    uint32_t lines;
    double us;
};

static void check(const struct point *at, uint32_t points, bool async)
{
    for (uint32_t i = 0; i < points; i++) {
        double got = run(47, at[i].lines, 1, async).us;
        cr_assert_leq(fabs(got / at[i].us - 1), 0.2, "%u lines: %.1f us, %.1f",
                      at[i].lines, got, at[i].us);
    }
}

Test(scc_bcast, takes_as_long_as_measured, .init = load, .timeout = 60)
{
    static const struct point at[] = {
        {1, 44.1}, {32, 75.8}, {64, 112.7}, {128, 198.6}};
    check(at, QN_ARRAY_COUNT(at), false);
}

Test(scc_bcast, takes_as_long_by_interrupts, .init = load, .timeout = 60)
{
    static const struct point at[] = {
        {1, 40.2}, {32, 75.5}, {64, 118}, {128, 196.7}};
    check(at, QN_ARRAY_COUNT(at), true);
}

Test(scc_bcast, two_buffers_overlap_and_a_short_chunk_costs, .init = load,
     .timeout = 60)
{
    double before = run(7, 96, 1, false).us - run(7, 64, 1, false).us;
    double behind = run(7, 192, 1, false).us - run(7, 160, 1, false).us;
    cr_assert_lt(behind, 0.8 * before);
    cr_assert_lt(run(7, 97, 20, false).mb_s, 0.95 * run(7, 96, 20, false).mb_s);
}

Test(scc_bcast, messages_in_a_row_arrive_by_interrupts, .init = load,
     .timeout = 60)
{
    for (uint32_t k = 2; k < 48; k += 15) {
        cr_assert_gt(run(k, 128, 10, true).mb_s, 5);
    }
}
