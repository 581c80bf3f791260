/*
 * A crowd repeats its transfers until a fixed time, so that all are there as
 * long as any is: the mean of each core is of the crowd alone.
 *
 * The closed model of OC-Bcast (thesis, 4.3.2): the slowest stage of a pipeline
 * of chunks of 96 lines gives its rate. Root and inner cores poll a flag per
 * child. Of scatter-allgather: pairs of send and receive, one after the other;
 * the first message of a root comes from memory, what was received before from
 * the caches.
 */
#include "loadgen/simulate/scc/scc_probe.h"

#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/sim/timed/tiled/scc.h"
#include "core/sim/timed/timed.h"

#define WARM       (UINT64_C(300) * 1000 * QN_PS_PER_NS) /* ps */
#define CROWDED    (UINT64_C(1500) * 1000 * QN_PS_PER_NS)
#define CHUNK      96u  /* lines of OC-Bcast, and of a slice */
#define CHUNK_RCCE 251u /* lines */
#define MESSAGE    (QN_SCC_CORES * CHUNK)

struct probe {
    void (*node)(struct probe *p, uint32_t node);
    struct qn_scc_transfer transfer;
    uint32_t cores;
    uint32_t children; /* of a stage; a leaf has none */
    bool leaf;
    uint32_t source;
    qn_ps_t from;
    qn_ps_t came[QN_SCC_CORES]; /* an interrupt; QN_PS_NEVER: none */
    double got[QN_SCC_CORES];
};

static void node_main(void *ctx, uint32_t node)
{
    struct probe *p = ctx;
    p->node(p, node);
}

static int run(struct probe *p, const struct qn_tiled *m)
{
    uint32_t core[QN_SCC_CORES];
    struct qn_prices *prices;
    struct qn_timed_result result;
    if (m->kind != QN_TILED_SCC) {
        return QN_EINVAL;
    }
    for (uint32_t i = 0; i < QN_SCC_CORES; i++) {
        core[i] = i;
    }
    int rc = qn_tiled_prices(&prices, m, core, QN_SCC_CORES);
    if (rc != QN_OK) {
        return rc;
    }
    rc = qn_timed_run(&(struct qn_timed_opts){.nodes = QN_SCC_CORES,
                                              .prices = prices,
                                              .main = node_main,
                                              .ctx = p,
                                              .seed = 1},
                      &result);
    if (rc == QN_OK) {
        qn_timed_result_free(&result);
    }
    qn_prices_destroy(prices);
    return rc;
}

static double us_since(qn_ps_t from)
{
    return (double)(qn_timed_clock() - from) / 1e6;
}

/* ---- put and get ---- */

static void transfer(const struct qn_scc_transfer *t)
{
    const struct qn_scc_copy c = {
        .peer = t->peer, .lines = t->lines, .memory = t->memory};
    if (t->put) {
        qn_scc_put(&c);
    } else {
        qn_scc_get(&c);
    }
}

static void transfer_once(struct probe *p, uint32_t node)
{
    if (node == 0) {
        transfer(&p->transfer);
        p->got[0] = us_since(0);
    }
}

static void transfer_on(struct probe *p, uint32_t node)
{
    qn_ps_t from = 0;
    uint32_t times = 0;
    while (node < p->cores && qn_timed_clock() < CROWDED) {
        if (from == 0 && qn_timed_clock() > WARM) {
            from = qn_timed_clock();
        }
        transfer(&p->transfer);
        times += from != 0;
    }
    p->got[node] = times > 0 ? us_since(from) / times : 0;
}

int qn_scc_probe_transfer(double *us, const struct qn_tiled *m,
                          const struct qn_scc_transfer *t)
{
    struct probe p = {.node = transfer_once, .transfer = *t};
    int rc = run(&p, m);
    *us = p.got[0];
    return rc;
}

int qn_scc_probe_crowd(double *us, const struct qn_tiled *m, uint32_t cores,
                       const struct qn_scc_transfer *t)
{
    struct probe p = {.node = transfer_on, .transfer = *t, .cores = cores};
    int rc = cores > QN_SCC_CORES ? QN_EINVAL : run(&p, m);
    memcpy(us, p.got, QN_MIN(cores, QN_SCC_CORES) * sizeof *us);
    return rc;
}

/* ---- interrupts ---- */

static void request(struct probe *p)
{
    qn_timed_work(1000000); /* the others wait */
    p->from = qn_timed_clock();
    for (uint32_t i = 0; i < p->cores; i += QN_SCC_INTERRUPTS) {
        struct qn_price at = qn_timed_device(
            &(struct qn_device_access){.kind = QN_DEVICE_INTERRUPT});
        for (uint32_t to = i; to < QN_MIN(i + QN_SCC_INTERRUPTS, p->cores);
             to++) {
            p->came[to] = at.visible;
            if (to != p->source) {
                qn_timed_signal(to, at.visible);
            }
        }
    }
}

static void interrupted(struct probe *p, uint32_t node)
{
    if (node == p->source) {
        request(p);
    }
    if (node >= p->cores) {
        return;
    }
    (void)qn_timed_wait(node == p->source ? p->came[node] : QN_PS_NEVER);
    for (uint32_t i = 0; i < 2; i++) { /* read the cause, clear it */
        (void)qn_timed_device(
            &(struct qn_device_access){.kind = QN_DEVICE_INTERRUPT_REGISTER});
    }
    p->got[node] = us_since(p->from);
}

int qn_scc_probe_interrupts(double *cycles, const struct qn_tiled *m,
                            uint32_t source, uint32_t targets)
{
    struct probe p = {.node = interrupted, .cores = targets, .source = source};
    if (source >= QN_SCC_CORES || targets > QN_SCC_CORES) {
        return QN_EINVAL;
    }
    int rc = run(&p, m);
    for (uint32_t i = 0; i < targets; i++) {
        cycles[i] = p.got[i] * m->clock_ghz * 1000;
    }
    return rc;
}

/* ---- the closed model ---- */

/* Poll the children's flags, see the notification, get a chunk, tell the
 * parent and two more, and copy the chunk to memory. */
static void pass_chunk(struct probe *p, uint32_t node)
{
    for (uint32_t i = 0; i <= p->children && node == 0; i++) {
        (void)qn_scc_flag_read(0);
    }
    if (node != 0) {
        return;
    }
    qn_scc_get(&(struct qn_scc_copy){.peer = 1, .lines = CHUNK});
    for (uint32_t i = 0; i < (p->leaf ? 1u : 3u); i++) {
        (void)qn_scc_flag_write(1);
    }
    qn_scc_get(
        &(struct qn_scc_copy){.peer = 0, .lines = CHUNK, .memory = true});
    p->got[0] = us_since(0);
}

static bool all_cached(void *ctx, uint32_t i)
{
    (void)ctx;
    (void)i;
    return true;
}

/* Two flags, each written, read and cleared by an access to a line. */
static void two_flags(void)
{
    for (uint32_t i = 0; i < 2; i++) {
        struct qn_device_access x = {.kind = QN_DEVICE_WRITE, .peer = 1};
        (void)qn_timed_device(&x);
        x = (struct qn_device_access){.kind = QN_DEVICE_READ, .peer = 0};
        (void)qn_timed_device(&x);
        x.kind = QN_DEVICE_WRITE;
        (void)qn_timed_device(&x);
    }
}

/* A message of a pair: what sender and receiver do, one after the other. */
static void send_and_receive(uint32_t lines, bool cached)
{
    for (uint32_t at = 0; at < lines; at += CHUNK_RCCE) {
        uint32_t some = QN_MIN(CHUNK_RCCE, lines - at);
        qn_scc_put(&(struct qn_scc_copy){.peer = 0,
                                         .lines = some,
                                         .memory = true,
                                         .cached = cached ? all_cached : NULL});
        qn_scc_get(
            &(struct qn_scc_copy){.peer = 1, .lines = some, .memory = true});
        two_flags();
    }
}

static void scatter_allgather(struct probe *p, uint32_t node)
{
    if (node != 0) {
        return;
    }
    for (uint32_t left = QN_SCC_CORES; left > 1; left -= left / 2) {
        send_and_receive(left / 2 * CHUNK, false);
    }
    send_and_receive(CHUNK, false);
    for (uint32_t i = 0; i < 2 * QN_SCC_CORES - 3; i++) {
        send_and_receive(CHUNK, true);
    }
    p->got[0] = us_since(0);
}

static int rate(double *mb_s, const struct qn_tiled *m, struct probe p,
                uint32_t lines)
{
    int rc = run(&p, m);
    *mb_s = rc == QN_OK ? (double)lines * QN_SCC_LINE / p.got[0] : 0;
    return rc;
}

int qn_scc_probe_model(struct qn_scc_model *out, const struct qn_tiled *m)
{
    const struct probe inner2 = {.node = pass_chunk, .children = 2};
    const struct probe inner7 = {.node = pass_chunk, .children = 7};
    const struct probe leaf = {.node = pass_chunk, .leaf = true};
    const struct probe all = {.node = scatter_allgather};
    int rc = rate(&out->k2, m, inner2, CHUNK);
    rc = rc == QN_OK ? rate(&out->k7, m, inner7, CHUNK) : rc;
    rc = rc == QN_OK ? rate(&out->k47, m, leaf, CHUNK) : rc;
    return rc == QN_OK ? rate(&out->scatter_allgather, m, all, MESSAGE) : rc;
}
