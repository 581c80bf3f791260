/*
 * All cores call at the same time. A call of one line in front of those that
 * are measured, which has no price, makes the root the last root, so that no
 * barrier is in what is measured, as in the published measurements.
 *
 * A message is new to the caches of its root, and to those of all others.
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
#include "transports/mpb/twosided/rivals.h"

#define START (5000 * 1000 * QN_PS_PER_NS) /* ps; the first call is over */

struct node {
    struct qn_mpb *chip;
    struct qn_oc oc;
    struct qn_rival rival;
    struct qn_device_bcast *async;
    uint8_t *bytes;             /* [len] */
    uint32_t got[QN_MPB_CORES]; /* asynchronous: messages of each source */
    uint32_t missing;           /* and of all, those that are to come */
    qn_ps_t done;
    bool right;
};

struct run {
    const struct qn_scc_bcast_opts *o;
    struct qn_scc_chip *chip;
    uint32_t len, sources;
    uint8_t *bytes; /* [cores][len] */
    struct node node[QN_MPB_CORES];
};

static uint8_t byte_of(uint32_t i, uint32_t source, uint32_t call)
{
    return (uint8_t)(i * 7 + source * 3 + call);
}

static void fill(uint8_t *bytes, uint32_t len, uint32_t source, uint32_t call)
{
    for (uint32_t i = 0; i < len; i++) {
        bytes[i] = byte_of(i, source, call);
    }
}

static bool filled(const uint8_t *bytes, uint32_t len, uint32_t source,
                   uint32_t call)
{
    uint32_t i = 0;
    while (i < len && bytes[i] == byte_of(i, source, call)) {
        i++;
    }
    return i == len;
}

/* ---- in turn ---- */

static int begin(const struct run *r, struct node *n, uint32_t len)
{
    return r->o->kind == QN_SCC_IN_TURN
               ? qn_oc_begin(&n->oc, 0, n->bytes, len)
               : qn_rival_begin(&n->rival, 0, n->bytes, len);
}

static int step(const struct run *r, struct node *n)
{
    return r->o->kind == QN_SCC_IN_TURN ? qn_oc_step(&n->oc)
                                        : qn_rival_step(&n->rival);
}

static void call_once(struct run *r, uint32_t node, uint32_t call, uint32_t len)
{
    struct node *n = &r->node[node];
    if (node == 0) {
        fill(n->bytes, len, 0, call);
    }
    if (qn_scc_chip_message(n->chip, n->bytes, r->o->lines) != QN_OK ||
        begin(r, n, len) != QN_OK) {
        qn_timed_fail("begin");
    }
    while (step(r, n) == QN_EAGAIN) {
    }
    n->right = n->right && filled(n->bytes, len, 0, call);
}

static void turn_main(void *ctx, uint32_t node)
{
    struct run *r = ctx;
    r->node[node].right = true;
    call_once(r, node, 0, QN_MPB_LINE_BYTES);
    qn_timed_sleep_until(START);
    for (uint32_t call = 1; call <= r->o->calls; call++) {
        call_once(r, node, call, r->len);
    }
    r->node[node].done = qn_timed_clock();
}

/* ---- by interrupts ---- */

static void deliver(void *ctx, qn_node_t source, const void *msg, size_t len)
{
    struct run *r = ctx;
    struct node *n = &r->node[qn_sim.self];
    n->right = n->right && len == r->len &&
               filled(msg, (uint32_t)len, source, n->got[source]);
    n->got[source]++;
    n->missing--;
}

/* Poll; what finds nothing to look at waits for an interrupt. */
static void turn(struct run *r, struct node *n)
{
    qn_ps_t before = qn_timed_clock();
    if (qn_device_bcast_poll(n->async, 1, deliver, r) == 0 &&
        qn_timed_clock() == before) {
        qn_scc_chip_wait(n->chip, START * 100);
    }
}

static bool is_source(const struct run *r, uint32_t node)
{
    uint32_t apart = r->o->cores / r->sources;
    return node % apart == 0 && node / apart < r->sources;
}

static void interrupts_main(void *ctx, uint32_t node)
{
    struct run *r = ctx;
    struct node *n = &r->node[node];
    const struct qn_slice part = {n->bytes, r->len};
    const struct qn_oc_async_opts o = {.device = &n->chip->device,
                                       .lines = QN_MPB_LINES,
                                       .k = r->o->k,
                                       .msg_max = r->len};
    bool source = is_source(r, node);
    if (qn_oc_async_create(&n->async, &o) != QN_OK) {
        qn_timed_fail("create");
    }
    n->right = true;
    n->missing = (r->sources - source) * r->o->calls;
    qn_timed_sleep_until(START);
    for (uint32_t call = 0; call < r->o->calls && source; call++) {
        fill(n->bytes, r->len, node, call);
        while (qn_device_bcast_try_send(n->async, &part, 1) == QN_EAGAIN) {
            turn(r, n);
        }
    }
    while (n->missing > 0) {
        turn(r, n);
    }
    while (qn_device_bcast_flush(n->async) || !qn_oc_async_told(n->async)) {
    }
    n->done = qn_timed_clock();
}

/* ---- a run ---- */

static int run_on(struct run *r, struct qn_prices *prices,
                  struct qn_scc_bcast_result *out)
{
    struct qn_timed_result result;
    const struct qn_timed_opts t = {.nodes = r->o->cores,
                                    .prices = prices,
                                    .main = r->o->kind == QN_SCC_BY_INTERRUPTS
                                                ? interrupts_main
                                                : turn_main,
                                    .ctx = r,
                                    .seed = 1};
    int rc = qn_timed_run(&t, &result);
    if (rc != QN_OK) {
        return rc;
    }
    qn_ps_t last = START;
    out->complete = result.fault == NULL && !result.cut_off;
    for (uint32_t i = 0; i < r->o->cores; i++) {
        last = QN_MAX(last, r->node[i].done);
        out->complete = out->complete && r->node[i].right;
    }
    out->us = (double)(last - START) / 1e6;
    out->mb_s = (double)r->sources * r->o->calls * r->len / out->us;
    qn_timed_result_free(&result);
    return QN_OK;
}

static int make(struct run *r, const struct qn_scc_bcast_opts *o)
{
    r->o = o;
    r->len = o->lines * QN_MPB_LINE_BYTES;
    r->sources = QN_MAX(o->sources, 1u);
    r->chip = qn_scc_chip_create(o->cores);
    r->bytes = calloc(o->cores, r->len);
    int rc = r->chip == NULL || r->bytes == NULL ? QN_ENOMEM : QN_OK;
    for (qn_node_t v = 0; v < o->cores && rc == QN_OK; v++) {
        struct node *n = &r->node[v];
        n->chip = qn_scc_chip_core(r->chip, v);
        n->bytes = r->bytes + (size_t)v * r->len;
        rc =
            o->kind == QN_SCC_IN_TURN
                ? qn_oc_init(&n->oc, &(struct qn_oc_opts){.chip = n->chip,
                                                          .lines = QN_MPB_LINES,
                                                          .k = o->k,
                                                          .session = 1})
                : qn_rival_init(&n->rival,
                                o->kind == QN_SCC_BINOMIAL
                                    ? QN_RIVAL_BINOMIAL
                                    : QN_RIVAL_SCATTER_ALLGATHER,
                                &(struct qn_two_opts){.chip = n->chip,
                                                      .lines = QN_MPB_LINES,
                                                      .session = 1});
    }
    return rc;
}

static void unmake(struct run *r)
{
    for (qn_node_t v = 0; v < QN_MPB_CORES; v++) {
        qn_device_bcast_destroy(r->node[v].async);
    }
    qn_scc_chip_free(r->chip);
    free(r->bytes);
}

static bool valid(const struct qn_scc_bcast_opts *o)
{
    bool oc = o->kind == QN_SCC_IN_TURN || o->kind == QN_SCC_BY_INTERRUPTS;
    return o->machine->kind == QN_TILED_SCC && o->cores >= 2 &&
           o->cores <= QN_MPB_CORES && o->lines >= 1 && o->calls >= 1 &&
           (!oc || (o->k >= 1 && o->k < o->cores)) &&
           o->sources <= (o->kind == QN_SCC_BY_INTERRUPTS ? o->cores : 1);
}

int qn_scc_bcast_run(struct qn_scc_bcast_result *out,
                     const struct qn_scc_bcast_opts *o)
{
    uint32_t core[QN_MPB_CORES];
    struct qn_prices *prices = NULL;
    if (!valid(o)) {
        return QN_EINVAL;
    }
    for (uint32_t i = 0; i < o->cores; i++) {
        core[i] = i;
    }
    struct run *r = calloc(1, sizeof *r);
    if (r == NULL) {
        return QN_ENOMEM;
    }
    int rc = qn_tiled_prices(&prices, o->machine, core, o->cores);
    rc = rc == QN_OK ? make(r, o) : rc;
    rc = rc == QN_OK ? run_on(r, prices, out) : rc;
    unmake(r);
    free(r);
    qn_prices_destroy(prices);
    return rc;
}
