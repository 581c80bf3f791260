/*
 * A round in virtual time: the workers of loadgen/sync are nodes. Operations
 * count from WARM_NS on. The worker that leaves last checks what is left, and
 * stops the server, so the run ends by itself.
 */
#include "loadgen/simulate/locks/locks_round.h"

#include <stdio.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/sim/timed/timed.h"
#include "loadgen/simulate/locks/locks_machine.h"
#include "loadgen/sync/worker.h"

#define WARM_NS  (50 * QN_US)
#define ROUND_NS (500 * QN_US)
#define PATIENCE 20u /* a run is cut off after 20 times its length */

static struct qn_locks_machine machine;

static struct {
    struct qn_sync_workers all;
    struct qn_sync_round *out;
    bool served; /* node 0 serves, and has no worker */
    uint32_t nodes, left;
    uint32_t core[QN_CORES_MAX], domain[QN_CORES_MAX];
    int rc; /* of the check; QN_ETIMEDOUT: it was not reached */
} current;

static qn_time_t now(void)
{
    return qn_timed_clock() / QN_PS_PER_NS;
}

/* ---- nodes --------------------------------------------------------------- */

static void operate(struct qn_sync_worker *w)
{
    const qn_time_t end = WARM_NS + w->o->duration;
    bool counts = false;
    w->ns = NULL;
    for (qn_time_t at = now(); at < end; at = now()) {
        const uint64_t turns = qn_sync_worker_pause(w);
        if (turns > 0) {
            qn_timed_work(turns * machine.empty_turn);
        }
        if (!counts && now() >= WARM_NS) {
            counts = true;
            w->before = w->operations;
            w->ns = w->owned;
        }
        qn_sync_worker_operate(w);
    }
}

static void node_main(void *ctx, uint32_t node)
{
    struct qn_sync_workers *all = &current.all;
    (void)ctx;
    if (current.served && node == 0) {
        (void)all->s->type->serve(all->s);
        return;
    }
    struct qn_sync_worker *w = &all->worker[node - current.served];
    w->now = now;
    w->client.core = node + 1;
    w->client.domain = current.domain[node] + 1;
    if (qn_sync_worker_join(w) == QN_OK) {
        operate(w);
    }
    qn_sync_worker_leave(w);
    if (++current.left == all->o->threads) {
        current.rc = qn_sync_workers_check(all, w, current.out);
        if (current.served) {
            all->s->type->stop(all->s);
        }
    }
}

/* ---- a round ------------------------------------------------------------- */

/* Of the server, or of the node that waited most. */
static double stalled(const struct qn_timed_result *r)
{
    double most = 0;
    for (uint32_t i = 0; i < (current.served ? 1u : r->nodes); i++) {
        const struct qn_timed_node *n = &r->node[i];
        const qn_ps_t waits = n->read + n->write + n->waited + n->fenced;
        const qn_ps_t runs = n->clock - n->paused - n->parked - n->blocked;
        most = runs > 0 ? QN_MAX(most, (double)waits / (double)runs) : most;
    }
    return most;
}

static int run(const struct qn_sync_round_opts *o)
{
    struct qn_timed_result r;
    struct qn_timed_opts t = {.nodes = current.nodes,
                              .main = node_main,
                              .seed = o->seed,
                              .looks_on = true,
                              .until_ns = PATIENCE * (WARM_NS + o->duration)};
    int rc = qn_locks_machine_prices(&machine, current.core, current.nodes,
                                     &t.prices);
    rc = rc == QN_OK ? qn_timed_run(&t, &r) : rc;
    if (rc == QN_OK) {
        rc = current.rc;
        if (r.fault != NULL) {
            fprintf(stderr, "the simulated machine: %s\n", r.fault);
            rc = QN_ECORRUPT;
        }
        current.out->elapsed_ns = o->duration;
        current.out->stalled = stalled(&r);
        qn_timed_result_free(&r);
    }
    qn_prices_destroy(t.prices);
    return rc;
}

/* The sockets that have threads, as domains of the subject. */
static uint32_t sockets(uint32_t threads)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < threads; i++) {
        most = QN_MAX(most, current.domain[i]);
    }
    return most + 1;
}

static int round_run(const struct qn_sync_round_opts *opts,
                     struct qn_sync_round *out)
{
    struct qn_sync_round_opts o = *opts;
    current.out = out;
    current.left = 0;
    current.rc = QN_ETIMEDOUT;
    o.o.call_ps = (uint32_t)machine.dispatch;
    o.o.increment_ps = (uint32_t)machine.increment;
    o.o.looks_on = true;
    int rc = qn_locks_machine_cores(&machine, o.threads, 0, current.core,
                                    current.domain);
    if (rc != QN_OK) {
        return rc;
    }
    if (o.o.domains == 0) {
        o.o.domains = sockets(o.threads);
    }
    rc = qn_sync_workers_create(&current.all, &o);
    if (rc != QN_OK) {
        return rc;
    }
    current.served = qn_subject_served(current.all.s);
    current.nodes = o.threads + current.served;
    rc = qn_locks_machine_cores(&machine, current.nodes, current.served,
                                current.core, current.domain);
    rc = rc == QN_OK ? run(&o) : rc;
    qn_sync_workers_destroy(&current.all);
    return rc;
}

/* ---- the machine --------------------------------------------------------- */

static int open_machine(const struct qn_sync_host_opts *o, uint32_t *cores)
{
    struct qn_parse_error e;
    if (o->machine == NULL) {
        fprintf(stderr, "%s: --machine names the machine\n", o->program);
        return 2;
    }
    const int rc = qn_locks_machine_load(&machine, o->machine, &e);
    if (rc != QN_OK) {
        fprintf(stderr, "%s: --machine: %s\n", o->program, e.text);
        return 2;
    }
    *cores = machine.cores;
    return 0;
}

static void close_machine(void)
{
    qn_locks_machine_free(&machine);
}

const struct qn_sync_host qn_locks_host = {.simulated = true,
                                           .duration = ROUND_NS,
                                           .rounds = 3,
                                           .open = open_machine,
                                           .close = close_machine,
                                           .round = round_run};
