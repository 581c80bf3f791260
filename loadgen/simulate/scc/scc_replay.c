/*
 * scc: OC-Bcast on a simulated SCC of 48 cores, against what was measured on
 * the hardware (Petrovic, EPFL thesis, chapter 4): C2, latencies of one call;
 * C3, the shapes of the curves; C5, the asynchronous form beside the other.
 *
 * The program is transports/mpb/ocbcast as it ships. What it was measured with
 * reset its flags: that is priced too (scc_chip.c).
 */
#include "loadgen/simulate/scc/scc_replay.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/simulate/scc/scc_bcast.h"

#define CORES         48u
#define OFF_MOST      0.20 /* of a latency */
#define OFF_MEDIAN    0.10
#define MODEL_K47     35.88 /* MB/s, closed model */
#define LONG_MESSAGES 60u

struct replay {
    struct qn_tiled machine;
    qn_scc_row_fn *row;
    void *ctx;
    int rc;
};

static double run(struct replay *r, const struct qn_scc_bcast_opts *o,
                  bool rate)
{
    struct qn_scc_bcast_result result = {0};
    struct qn_scc_bcast_opts x = *o;
    x.machine = &r->machine;
    x.cores = CORES;
    int rc = qn_scc_bcast_run(&result, &x);
    if (rc != QN_OK || !result.complete) {
        r->rc = rc != QN_OK ? rc : QN_ECORRUPT;
    }
    return rate ? result.mb_s : result.us;
}

static double us(struct replay *r, uint32_t k, uint32_t lines, bool async)
{
    return run(r,
               &(struct qn_scc_bcast_opts){
                   .k = k, .lines = lines, .calls = 1, .async = async},
               false);
}

static double mb_s(struct replay *r, uint32_t k, uint32_t lines)
{
    return run(r,
               &(struct qn_scc_bcast_opts){
                   .k = k, .lines = lines, .calls = LONG_MESSAGES},
               true);
}

static void row(struct replay *r, const char *id, const char *published,
                bool most, double limit, double got, const char *what, ...)
    __attribute__((format(printf, 7, 8)));

static void row(struct replay *r, const char *id, const char *published,
                bool most, double limit, double got, const char *what, ...)
{
    struct qn_scc_row line = {.id = id,
                              .published = published,
                              .limit = limit,
                              .most = most,
                              .got = got};
    va_list args;
    va_start(args, what);
    (void)vsnprintf(line.what, sizeof line.what, what, args);
    va_end(args);
    r->row(r->ctx, &line);
}

/* ---- C2 ---- */

static const struct {
    uint32_t k, lines;
    bool async;
    double us;
    const char *text;
} hardware[] = {
    {47, 1, false, 44.1, "44.1"},    {47, 32, false, 75.8, "75.8"},
    {47, 64, false, 112.7, "112.7"}, {47, 128, false, 198.6, "198.6"},
    {47, 1, true, 40.2, "40.2"},     {47, 32, true, 75.5, "75.5"},
    {47, 64, true, 118, "118"},      {47, 128, true, 196.7, "196.7"},
    {7, 1, false, 16.6, "16.6"},
};

static void latencies(struct replay *r)
{
    double off[QN_ARRAY_COUNT(hardware)];
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(hardware); i++) {
        double got = us(r, hardware[i].k, hardware[i].lines, hardware[i].async);
        double is = fabs(got / hardware[i].us - 1);
        row(r, "C2", hardware[i].text, true, OFF_MOST, is,
            "k = %u, %u lines, %s: %.1f us; off by", hardware[i].k,
            hardware[i].lines, hardware[i].async ? "by interrupts" : "in turn",
            got);
        uint32_t at = i; /* insert, ascending */
        for (; at > 0 && off[at - 1] > is; at--) {
            off[at] = off[at - 1];
        }
        off[at] = is;
    }
    row(r, "C2", NULL, true, OFF_MEDIAN, off[QN_ARRAY_COUNT(off) / 2],
        "the median of these");
}

/* ---- C3 ---- */

static void shapes(struct replay *r)
{
    static const uint32_t lines[] = {96, 128, 160, 192};
    const size_t points = QN_ARRAY_COUNT(lines);
    double below = 0;
    double apart = 0;
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(lines); i++) {
        double seven = us(r, 7, lines[i], false);
        below += 1 - seven / us(r, 2, lines[i], false);
        apart = fmax(apart, fabs(us(r, 47, lines[i], false) / seven - 1));
    }
    below /= (double)points;
    double short_slope = us(r, 7, 96, false) - us(r, 7, 64, false);
    double long_slope = us(r, 7, 192, false) - us(r, 7, 160, false);
    double one = fmax(us(r, 2, 1, false), us(r, 7, 1, false));
    row(r, "C3", "less", true, 0.8, long_slope / short_slope,
        "k = 7: a line behind 96 lines over one before");
    row(r, "C3", "dip", true, 0.95, mb_s(r, 7, 97) / mb_s(r, 7, 96),
        "k = 7: throughput of 97 lines over 96");
    row(r, "C3", "worst", false, 1, us(r, 47, 1, false) / one,
        "one line: k = 47 over the worse of 2 and 7");
    row(r, "C3", "25 %", true, 0.07, fabs(below - 0.25),
        "96 to 192 lines: k = 7 is %.0f %% below k = 2; off by", below * 100);
    row(r, "C3", "alike", true, 0.10, apart,
        "96 to 192 lines: k = 47 beside 7, at most");
    double rate = mb_s(r, 47, 96);
    row(r, "C3", "16 %", true, 0.05, fabs(1 - rate / MODEL_K47 - 0.16),
        "k = 47: %.1f MB/s, %.0f %% below the closed model; off by", rate,
        (1 - rate / MODEL_K47) * 100);
}

/* ---- C5 ---- */

static void by_interrupts(struct replay *r)
{
    static const uint32_t lines[] = {1, 32, 64, 128};
    const size_t points = QN_ARRAY_COUNT(lines);
    double more = 0;
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(lines); i++) {
        more += us(r, 47, lines[i], true) / us(r, 47, lines[i], false) - 1;
    }
    row(r, "C5", "10 %", true, 0.10, fabs(more / (double)points),
        "k = 47: by interrupts beside in turn, mean of 1 to 128 lines");
    row(r, "C5", "far above", false, 1.5,
        us(r, 2, 1, true) / us(r, 2, 1, false),
        "k = 2, one line: by interrupts over in turn");
}

int qn_scc_replay(const char *path, qn_scc_row_fn *each, void *ctx,
                  struct qn_parse_error *parse_error)
{
    struct replay r = {.row = each, .ctx = ctx};
    int rc = qn_tiled_load(&r.machine, path, parse_error);
    if (rc != QN_OK) {
        return rc;
    }
    latencies(&r);
    shapes(&r);
    by_interrupts(&r);
    return r.rc;
}
