/*
 * All cores call at the same time, one call without pricing its wait before:
 * a call in front of those that are measured makes the root the last root, so
 * that no barrier is in what is measured, as in the published measurements.
 */
#include "loadgen/simulate/scc/scc_bcast.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/sim/timed/timed.h"
#include "loadgen/simulate/scc/scc_chip.h"
#include "transports/mpb/ocbcast/oc_async.h"
#include "transports/mpb/ocbcast/ocbcast.h"

#define START (5000 * 1000 * QN_PS_PER_NS) /* ps; the first call is over */

struct run {
    const struct qn_scc_bcast_opts *o;
    struct qn_scc_chip *chip;
    struct qn_oc oc[QN_MPB_CORES];
    struct qn_device_bcast *async[QN_MPB_CORES];
    uint32_t got[QN_MPB_CORES]; /* messages, asynchronous */
    qn_ps_t done[QN_MPB_CORES];
    bool right[QN_MPB_CORES];
    uint8_t *bytes; /* [cores][lines of a message] */
};

static void fill(uint8_t *bytes, uint32_t len, uint32_t call)
{
    for (uint32_t i = 0; i < len; i++) {
        bytes[i] = (uint8_t)(i * 7 + call);
    }
}

static bool filled(const uint8_t *bytes, uint32_t len, uint32_t call)
{
    uint32_t i = 0;
    while (i < len && bytes[i] == (uint8_t)(i * 7 + call)) {
        i++;
    }
    return i == len;
}

static void node_main(void *ctx, uint32_t node)
{
    struct run *r = ctx;
    uint32_t len = r->o->lines * QN_MPB_LINE_BYTES;
    uint8_t *bytes = r->bytes + (size_t)node * len;
    r->right[node] = true;
    for (uint32_t call = 0; call <= r->o->calls; call++) {
        if (node == 0) {
            fill(bytes, len, call);
        }
        if (call == 1) {
            qn_timed_sleep_until(START);
        }
        if (qn_oc_begin(&r->oc[node], 0, bytes, len) != QN_OK) {
            qn_timed_fail("begin");
        }
        while (qn_oc_step(&r->oc[node]) == QN_EAGAIN) {
        }
        r->right[node] = r->right[node] && filled(bytes, len, call);
    }
    r->done[node] = qn_timed_clock();
}

/* ---- asynchronous ---- */

static void deliver(void *ctx, qn_node_t source, const void *msg, size_t len)
{
    struct run *r = ctx;
    uint32_t node = qn_sim.self;
    r->right[node] = r->right[node] && source == 0 &&
                     len == r->o->lines * QN_MPB_LINE_BYTES &&
                     filled(msg, (uint32_t)len, r->got[node]);
    r->got[node]++;
}

/* Poll; what finds nothing to look at waits for an interrupt. */
static void turn(struct run *r, uint32_t node)
{
    qn_ps_t before = qn_timed_clock();
    if (qn_device_bcast_poll(r->async[node], 1, deliver, r) == 0 &&
        qn_timed_clock() == before) {
        qn_scc_chip_wait(qn_scc_chip_core(r->chip, node), START * 100);
    }
}

static void async_main(void *ctx, uint32_t node)
{
    struct run *r = ctx;
    uint32_t len = r->o->lines * QN_MPB_LINE_BYTES;
    uint8_t *bytes = r->bytes + (size_t)node * len;
    const struct qn_slice part = {bytes, len};
    struct qn_mpb *m = qn_scc_chip_core(r->chip, node);
    const struct qn_oc_async_opts o = {.device = &m->device,
                                       .lines = QN_MPB_LINES,
                                       .k = r->o->k,
                                       .msg_max = len};
    if (qn_oc_async_create(&r->async[node], &o) != QN_OK) {
        qn_timed_fail("create");
    }
    r->right[node] = true;
    qn_timed_sleep_until(START);
    for (uint32_t call = 0; call < r->o->calls && node == 0; call++) {
        fill(bytes, len, call);
        while (qn_device_bcast_try_send(r->async[0], &part, 1) == QN_EAGAIN) {
            turn(r, 0);
        }
    }
    r->got[0] = r->o->calls;
    while (r->got[node] < r->o->calls) {
        turn(r, node);
    }
    while (qn_device_bcast_flush(r->async[node]) ||
           !qn_oc_async_told(r->async[node])) {
    }
    r->done[node] = qn_timed_clock();
}

static int run_on(struct run *r, struct qn_prices *prices,
                  struct qn_scc_bcast_result *out)
{
    struct qn_timed_result result;
    const struct qn_timed_opts t = {.nodes = r->o->cores,
                                    .prices = prices,
                                    .main =
                                        r->o->async ? async_main : node_main,
                                    .ctx = r,
                                    .seed = 1};
    int rc = qn_timed_run(&t, &result);
    if (rc != QN_OK) {
        return rc;
    }
    qn_ps_t last = START;
    out->complete = result.fault == NULL && !result.cut_off;
    for (uint32_t i = 0; i < r->o->cores; i++) {
        last = QN_MAX(last, r->done[i]);
        out->complete = out->complete && r->right[i];
    }
    out->us = (double)(last - START) / 1e6;
    out->mb_s = (double)r->o->calls * r->o->lines * QN_MPB_LINE_BYTES / out->us;
    qn_timed_result_free(&result);
    return QN_OK;
}

int qn_scc_bcast_run(struct qn_scc_bcast_result *out,
                     const struct qn_scc_bcast_opts *o)
{
    uint32_t core[QN_MPB_CORES];
    struct qn_prices *prices = NULL;
    if (o->machine->kind != QN_TILED_SCC || o->cores < 2 ||
        o->cores > QN_MPB_CORES || o->lines < 1 || o->calls < 1) {
        return QN_EINVAL;
    }
    for (uint32_t i = 0; i < o->cores; i++) {
        core[i] = i;
    }
    struct run *r = calloc(1, sizeof *r);
    int rc = r == NULL ? QN_ENOMEM
                       : qn_tiled_prices(&prices, o->machine, core, o->cores);
    if (rc == QN_OK) {
        r->o = o;
        r->chip = qn_scc_chip_create(o->cores);
        r->bytes = calloc(o->cores, o->lines * QN_MPB_LINE_BYTES);
        rc = r->chip == NULL || r->bytes == NULL ? QN_ENOMEM : QN_OK;
    }
    for (qn_node_t v = 0; v < o->cores && rc == QN_OK; v++) {
        rc = qn_oc_init(&r->oc[v], &(struct qn_oc_opts){
                                       .chip = qn_scc_chip_core(r->chip, v),
                                       .lines = QN_MPB_LINES,
                                       .k = o->k,
                                       .session = 1});
    }
    rc = rc == QN_OK ? run_on(r, prices, out) : rc;
    for (qn_node_t v = 0; v < QN_MPB_CORES && r != NULL; v++) {
        qn_device_bcast_destroy(r->async[v]);
    }
    if (r != NULL) {
        qn_scc_chip_free(r->chip);
        free(r->bytes);
    }
    free(r);
    qn_prices_destroy(prices);
    return rc;
}
