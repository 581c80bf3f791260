/*
 * Broadcasts of transports/mpb on a simulated SCC: all get all of it, whatever
 * the kind, the number of cores, of sources and of lines; and what is as fast
 * as it is for a reason. Times beside those of the hardware: test_scc_replay.
 */
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

static struct qn_scc_bcast_result run(const struct qn_scc_bcast_opts *o)
{
    struct qn_scc_bcast_result r;
    struct qn_scc_bcast_opts x = *o;
    x.machine = &machine;
    cr_assert_eq(qn_scc_bcast_run(&r, &x), QN_OK);
    cr_assert(r.complete, "kind %d, %u cores, k %u, %u lines", (int)x.kind,
              x.cores, x.k, x.lines);
    return r;
}

Test(scc_bcast, all_cores_get_all_of_it, .init = load, .timeout = 60)
{
    static const uint32_t cores[] = {2, 3, 13, 48};
    static const uint32_t lines[] = {1, 95, 250};
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(cores); i++) {
        for (uint32_t j = 0; j < QN_ARRAY_COUNT(lines); j++) {
            for (int kind = 0; kind <= QN_SCC_SCATTER_ALLGATHER; kind++) {
                (void)run(&(struct qn_scc_bcast_opts){
                    .kind = (enum qn_scc_bcast_kind)kind,
                    .cores = cores[i],
                    .k = QN_MIN(3u, cores[i] - 1),
                    .lines = lines[j],
                    .calls = 3});
            }
        }
    }
}

Test(scc_bcast, all_sources_are_heard, .init = load, .timeout = 60)
{
    for (uint32_t sources = 1; sources <= 12; sources++) {
        (void)run(&(struct qn_scc_bcast_opts){.kind = QN_SCC_BY_INTERRUPTS,
                                              .cores = 12,
                                              .k = 1 + sources % 11,
                                              .lines = 100,
                                              .calls = 8,
                                              .sources = sources});
    }
}

/* A binomial root sends its message six times, and reads it once. */
Test(scc_bcast, what_a_core_has_moved_is_in_its_caches, .init = load)
{
    const uint32_t lines = 96;
    struct qn_scc_bcast_opts o = {
        .kind = QN_SCC_BINOMIAL, .cores = 48, .lines = lines, .calls = 1};
    double us = run(&o).us;
    machine.parameter[QN_SCC_O_MEM_R].value += 100;
    double more = run(&o).us - us;
    /* 9.6 us, or a little less: a receiver looks at its flag at intervals. */
    cr_assert(more > 0.8 * lines * 0.1 && more < 1.1 * lines * 0.1,
              "%f us, once per line", more);
}

Test(scc_bcast, says_what_it_cannot_do, .init = load)
{
    struct qn_scc_bcast_result r;
    const struct qn_scc_bcast_opts good = {
        .machine = &machine, .cores = 4, .k = 3, .lines = 1, .calls = 1};
    struct qn_scc_bcast_opts o = good;
    cr_assert_eq(qn_scc_bcast_run(&r, &o), QN_OK);
    o.k = 4;
    cr_assert_eq(qn_scc_bcast_run(&r, &o), QN_EINVAL);
    o = good;
    o.sources = 2;
    cr_assert_eq(qn_scc_bcast_run(&r, &o), QN_EINVAL, "in turn: one");
    o.kind = QN_SCC_BY_INTERRUPTS;
    cr_assert_eq(qn_scc_bcast_run(&r, &o), QN_OK);
    o.sources = 5;
    cr_assert_eq(qn_scc_bcast_run(&r, &o), QN_EINVAL);
    o = good;
    o.cores = 49;
    cr_assert_eq(qn_scc_bcast_run(&r, &o), QN_EINVAL);
    o = good;
    o.lines = 0;
    cr_assert_eq(qn_scc_bcast_run(&r, &o), QN_EINVAL);
}
