/*
 * N1 (NUMACol, table 2, row SD): broadcasts on an HP Integrity Superdome, 64
 * dual-core Itanium 2 at 1.6 GHz in 16 cells. There is no machine file; the
 * machine is made here, by formula:
 *
 *   lines     load-to-use latencies of the generation before, 243 ns in a cell,
 *             423 to a cell of the same crossbar, 479 to others (HP, ccNUMA
 *             overview, table 1), and a quarter less (HP, of the sx2000
 *             chipset); 0.22 of it to send, 0.78 to receive, as for others
 *   memory    14.4 GB/s per cell: 7.2 sustained, and twice that with the sx2000
 *   link      8 GB/s per cell (EuroBen 2007)
 *   caches    12 MiB per core (Intel)
 *   copy      0.6 GB/s for a core, and
 *   cache     2.4 GB/s that a cache gives to others: both fitted to the figures
 *             of 64 KiB and 1 MiB; only those of 16 MiB follow
 *
 * In print a broadcast of 256 bytes takes 190 us: its semaphores and barriers
 * are software, which costs nothing here. So what such a broadcast takes more
 * in print than here is added to each time.
 */
#include "loadgen/simulate/large/numacol_replay.h"

#include <math.h>
#include <stdio.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/simulate/large/large_run.h"

#define CELLS    16u
#define CORES    8u /* of a cell */
#define CROSSBAR 4u /* cells of one */
#define MEMBERS  (CELLS * CORES)
#define GHZ      1.6
#define KIB      ((uint64_t)1 << 10)
#define MIB      ((uint64_t)1 << 20)
#define WITHIN   0.25
#define COPIES   0.6 /* GB/s; fitted */
#define GIVES    2.4 /* GB/s; fitted */

#define PULL  "broadcast/pull/binomial/whole"
#define FIXED "broadcast/pull/binomial+flat/fixed"

static double latency_ns(uint32_t u, uint32_t v)
{
    const uint32_t a = u / CORES, b = v / CORES;
    return 0.75 * (a == b ? 243 : a / CROSSBAR == b / CROSSBAR ? 423 : 479);
}

static int make_superdome(struct qn_machine **out)
{
    struct qn_machine *m = NULL;
    const int rc = qn_machine_create(&m, MEMBERS);
    if (rc != QN_OK) {
        return rc;
    }
    for (uint32_t u = 0; u < MEMBERS; u++) {
        m->core[u] = (struct qn_machine_core){.os = u,
                                              .phys = u,
                                              .cache = u,
                                              .node = u / CORES,
                                              .socket = u / CORES};
        for (uint32_t v = 0; v < MEMBERS; v++) {
            const double cycles = u == v ? 0 : latency_ns(u, v) * GHZ;
            m->send[u * MEMBERS + v] = 0.22 * cycles;
            m->receive[u * MEMBERS + v] = 0.78 * cycles;
        }
    }
    m->facts.clock_ghz = GHZ;
    m->facts.bandwidth[QN_BANDWIDTH_COPY] = COPIES;
    m->facts.bandwidth[QN_BANDWIDTH_CACHE] = GIVES;
    m->facts.bandwidth[QN_BANDWIDTH_MEMORY] = 14.4;
    m->facts.bandwidth[QN_BANDWIDTH_LINK] = 8;
    m->facts.bandwidth[QN_BANDWIDTH_HOLDS] = 12;
    *out = m;
    return QN_OK;
}

/* ---- runs ---- */

struct replay {
    const struct qn_machine *m;
    qn_replay_row_fn *each;
    void *ctx;
    int rc; /* the first error */
};

static double ns_of(struct replay *p, const char *name, uint64_t bytes)
{
    struct qn_large_run_result r = {.ns = 1};
    const struct qn_large_run_opts o = {.m = p->m,
                                        .variant = qn_large_variant_find(name),
                                        .bytes = bytes,
                                        .seed = 1};
    if (p->rc == QN_OK) {
        p->rc = qn_large_run_timed(&r, &o);
    }
    if (p->rc == QN_OK && r.wrong) {
        p->rc = QN_EIO;
    }
    return r.ns;
}

static void tell(struct replay *p, const struct qn_replay_row *r)
{
    if (p->rc == QN_OK) {
        p->each(p->ctx, r);
    }
}

/* ---- table 2 ---- */

#define ONE_RATE                                                               \
    "beyond the caches print copies 1.4 times as fast as at 1 MiB; here a "    \
    "core "                                                                    \
    "copies at one rate from wherever"
#define NO_LOSS                                                                \
    "print loses a tenth beyond the caches; here a longer message only "       \
    "gains, since filling the pipeline is a smaller part of it"
#define SPREAD                                                                 \
    "a binomial tree spreads the reads of a cell over its caches, each of "    \
    "which gives as much here; print does not say by how much it is behind"

/* MB/s of all members together. */
static const struct size {
    uint64_t bytes;
    const char *text;
    double pull, fixed;
    const char *pull_text, *fixed_text, *ratio_text;
    const char *why_ratio, *why_pull, *why_fixed;
} sizes[] = {
    {64 * KIB, "64 KiB", 7284, 13003, "7284", "13003", "1.79", NULL, NULL,
     NULL},
    {MIB, "1 MiB", 7764, 26265, "7764", "26265", "3.38", NULL, NULL, NULL},
    {16 * MIB, "16 MiB", 10750, 24031, "10750", "24031", "2.24", ONE_RATE,
     ONE_RATE, NO_LOSS},
};

static const double small_mb_s[] = {172.2, 172.6}; /* of 256 bytes */

static double mb_s(uint64_t bytes, double ns)
{
    return (double)bytes * MEMBERS / ns * 1e3;
}

/* What 256 bytes take more in print. */
static double software_ns(struct replay *p, const char *name, double published)
{
    return 256.0 * MEMBERS / published * 1e3 - ns_of(p, name, 256);
}

static void compare(struct replay *p, const struct size *s, const char *what,
                    const char *published, double is, double got,
                    const char *why)
{
    struct qn_replay_row r = {.id = "N1",
                              .published = published,
                              .why = why,
                              .limit = WITHIN,
                              .most = true,
                              .got = fabs(got / is - 1)};
    (void)snprintf(r.what, sizeof r.what, "%s, %s: %.5g; off by", s->text, what,
                   got);
    tell(p, &r);
}

static void replay_table(struct replay *p, uint32_t count, double *rising)
{
    const double more_pull = software_ns(p, PULL, small_mb_s[0]);
    const double more_fixed = software_ns(p, FIXED, small_mb_s[1]);
    for (uint32_t i = 0; i < count; i++) {
        const struct size *s = &sizes[i];
        const double pull =
            mb_s(s->bytes, ns_of(p, PULL, s->bytes) + more_pull);
        const double fixed =
            mb_s(s->bytes, ns_of(p, FIXED, s->bytes) + more_fixed);
        compare(p, s, "fixed, flat over whole", s->ratio_text,
                s->fixed / s->pull, fixed / pull, s->why_ratio);
        compare(p, s, "whole, MB/s", s->pull_text, s->pull, pull, s->why_pull);
        compare(p, s, "fixed, flat, MB/s", s->fixed_text, s->fixed, fixed,
                s->why_fixed);
        rising[i] = fixed / pull;
    }
}

/* ---- claims ---- */

/* The fastest variant of an operation in a direction, but for `name` and the
 * flat ones: those are no part of the table. */
static double least_other(struct replay *p, enum qn_large_operation op,
                          const char *name, uint64_t bytes)
{
    const struct qn_large_variant *but = qn_large_variant_find(name);
    double least = INFINITY;
    for (uint32_t i = 0; i < QN_LARGE_TABLE; i++) {
        const struct qn_large_variant *v = qn_large_variant_at(i);
        if (v->operation == op && v != but) {
            least = QN_MIN(least, ns_of(p, v->name, bytes));
        }
    }
    return least;
}

static void claim_best(struct replay *p, enum qn_large_operation op,
                       const char *name, uint64_t bytes, const char *why)
{
    struct qn_replay_row r = {.id = "N1", .why = why, .limit = 0.9};
    (void)snprintf(r.what, sizeof r.what,
                   "%s, %llu KiB: its speed over the best other's", name,
                   (unsigned long long)(bytes / KIB));
    r.got = least_other(p, op, name, bytes) / ns_of(p, name, bytes);
    tell(p, &r);
}

int qn_numacol_replay(bool small, qn_replay_row_fn *each, void *ctx)
{
    struct qn_machine *m = NULL;
    double rising[QN_ARRAY_COUNT(sizes)];
    struct replay p = {.each = each, .ctx = ctx, .rc = make_superdome(&m)};
    p.m = m;
    replay_table(&p, small ? 2 : QN_ARRAY_COUNT(sizes), rising);
    tell(&p, &(struct qn_replay_row){
                 .id = "N1",
                 .what = "fixed rises where whole has peaked: 64 KiB to 1 MiB",
                 .published = "1.90",
                 .limit = 1,
                 .got = rising[1] / rising[0]});
    if (!small) {
        claim_best(&p, QN_LARGE_BROADCAST, FIXED, MIB, SPREAD);
        claim_best(&p, QN_LARGE_SCATTER, "scatter/pull/ring", 64 * KIB, NULL);
        claim_best(&p, QN_LARGE_GATHER, "gather/push/ring", 64 * KIB, NULL);
    }
    qn_machine_destroy(m);
    return p.rc;
}
