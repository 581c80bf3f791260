/*
 * C1, throughput of broadcasts in the closed model (thesis, table 4.2), from
 * the prices of the machine; C4, interrupts (figure 3.3); C6, put and get over
 * distance and in a crowd (figures 4.2 and 4.3).
 */
#include <math.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/sim/timed/tiled/scc.h"
#include "loadgen/simulate/scc/scc_probe.h"
#include "loadgen/simulate/scc/scc_replay_internal.h"

static void note(struct qn_scc_replay *r, int rc)
{
    r->rc = r->rc == QN_OK ? rc : r->rc;
}

/* A published value and how far from it a row may be. */
static void near(struct qn_scc_replay *r, const char *id, const char *published,
                 double value, double off, double got, const char *what)
{
    qn_scc_replay_row(
        r,
        &(struct qn_replay_claim){
            .id = id, .published = published, .most = true, .limit = off},
        fabs(got / value - 1), "%s: %.5g; off by", what, got);
}

/* ---- C1 ---- */

void qn_scc_replay_model(struct qn_scc_replay *r)
{
    struct qn_scc_model m = {0};
    note(r, qn_scc_probe_model(&m, &r->machine));
    near(r, "C1", "35.22", 35.22, 0.001, m.k2, "closed model, k = 2, MB/s");
    near(r, "C1", "34.30", 34.30, 0.001, m.k7, "closed model, k = 7, MB/s");
    near(r, "C1", "35.88", 35.88, 0.001, m.k47, "closed model, k = 47, MB/s");
    near(r, "C1", "13.38", 13.38, 0.021, m.scatter_allgather,
         "closed model, scatter-allgather, MB/s");
}

/* ---- C4 ---- */

struct range {
    double least, most, mean;
};

static struct range range_of(const double *value, uint32_t count)
{
    struct range s = {.least = value[0], .most = value[0]};
    for (uint32_t i = 0; i < count; i++) {
        s.least = fmin(s.least, value[i]);
        s.most = fmax(s.most, value[i]);
        s.mean += value[i] / count;
    }
    return s;
}

/* Each core of the first `targets` interrupts them all, in a run of its own:
 * when it is interrupted itself. */
static void own_interrupts(struct qn_scc_replay *r, const struct qn_tiled *m,
                           uint32_t targets, double *own)
{
    for (uint32_t i = 0; i < targets; i++) {
        double cycles[QN_SCC_CORES] = {0};
        note(r, qn_scc_probe_interrupts(cycles, m, i, targets));
        own[i] = cycles[i];
    }
}

void qn_scc_replay_interrupts(struct qn_scc_replay *r)
{
    const uint32_t few = 20;
    struct qn_tiled free_registers = r->machine;
    double own[QN_SCC_CORES];
    own_interrupts(r, &r->machine, QN_SCC_CORES, own);
    struct range all = range_of(own, QN_SCC_CORES);
    near(r, "C4", "2000", 2000, 0.15, all.least,
         "48 cores interrupted, cycles until the first source is");
    near(r, "C4", "6000", 6000, 0.15, all.most,
         "48 cores interrupted, cycles until the last source is");
    own_interrupts(r, &r->machine, few, own);
    all = range_of(own, few);
    qn_scc_replay_row(
        r, &(struct qn_replay_claim){"C4", "alike", NULL, true, 1.05},
        all.most / all.least, "20 cores interrupted: the last over the first");
    free_registers.parameter[QN_SCC_GIC_HOLDS].value = 1000;
    own_interrupts(r, &free_registers, QN_SCC_CORES, own);
    near(r, "C4", "2000", 2000, 0.15, range_of(own, QN_SCC_CORES).mean,
         "48 cores, registers that do not queue, mean of cycles");
    double before = range_of(own, QN_SCC_INTERRUPTS).mean;
    double behind =
        range_of(own + QN_SCC_INTERRUPTS, QN_SCC_CORES - QN_SCC_INTERRUPTS)
            .mean;
    qn_scc_replay_row(
        r, &(struct qn_replay_claim){"C4", "later", NULL, false, 1.02},
        behind / before, "the same: cores 32 to 47 (second store) over others");
}

/* ---- C6 ---- */

static double alone(struct qn_scc_replay *r, bool put, uint32_t peer,
                    uint32_t lines)
{
    double us = 0;
    note(r,
         qn_scc_probe_transfer(&us, &r->machine,
                               &(struct qn_scc_transfer){
                                   .put = put, .peer = peer, .lines = lines}));
    return us;
}

/* All at the buffer of core 0. */
static struct range crowd(struct qn_scc_replay *r, const struct qn_tiled *m,
                          uint32_t cores, bool put, uint32_t lines)
{
    double us[QN_SCC_CORES] = {0};
    note(r, qn_scc_probe_crowd(
                us, m, cores,
                &(struct qn_scc_transfer){.put = put, .lines = lines}));
    return range_of(us, cores);
}

void qn_scc_replay_transfers(struct qn_scc_replay *r)
{
    const uint32_t far = 47;
    const uint32_t some = 24;
    struct qn_tiled fair = r->machine;
    fair.parameter[QN_SCC_FAIR].value = 1;
    for (int put = 0; put < 2; put++) {
        near(r, "C6", "30 %", 1.30, 0.05,
             alone(r, put, far, 128) / alone(r, put, 1, 128),
             put ? "put of 128 lines, 9 routers over 1"
                 : "get of 128 lines, 9 routers over 1");
    }
    for (int put = 0; put < 2; put++) {
        uint32_t lines = put ? 1 : 128;
        qn_scc_replay_row(
            r, &(struct qn_replay_claim){"C6", "no effect", NULL, true, 1.05},
            crowd(r, &r->machine, some, put, lines).most /
                alone(r, put, some - 1, lines),
            "24 cores %s one buffer: the slowest over the farthest alone",
            put ? "put a line into" : "get 128 lines from");
    }
    for (int put = 0; put < 2; put++) {
        struct range all = crowd(r, &fair, QN_SCC_CORES, put, put ? 1 : 128);
        qn_scc_replay_row(
            r,
            &(struct qn_replay_claim){
                "C6", put ? "over 4" : "over 2",
                "a write occupies a buffer as long as a read does; the source "
                "has no price for writes alone",
                false, put ? 4 : 2},
            all.most / all.least,
            "48 cores %s one buffer (fair_ports): slowest over fastest",
            put ? "put into" : "get from");
    }
}
