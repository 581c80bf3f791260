/*
 * One run. All threads call until it is cut off; what counts is what lies
 * between `warm_ns` and its end.
 *
 * The counter is the first word of an array of 64. It and the object lie in one
 * block, far enough apart that no stream of a prefetcher leads from one to the
 * other. What threads note of their calls is not in simulated memory, and free.
 */
#include "loadgen/simulate/locks/locks_run.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/mark.h"
#include "core/sim/machine.h"
#include "core/sim/timed/timed.h"
#include "core/sync/delegate/server.h"
#include "loadgen/base/random.h"
#include "loadgen/simulate/locks/locks_words.h"

#define WARM_NS 20000u
#define RUN_NS  100000u
#define ARRAY   64u
#define APART   ((size_t)64 * QN_CACHELINE)
#define FROM    QN_CACHELINE / sizeof(uint64_t) /* increments of one line */

struct thread {
    struct qn_delegate_client client;
    uint64_t random;
    uint64_t last;  /* result, plus 1 */
    uint64_t done;  /* between warm and the end */
    uint64_t all;   /* since the begin */
    uint64_t ran;   /* operations of any thread */
    qn_ps_t waited; /* of `done` */
    bool wrong, ended;
};

static struct counted_run {
    const struct qn_locks_opts *o;
    const struct qn_delegate_type *type; /* NULL: an atomic operation */
    const struct qn_lock_type *lock;
    bool served;   /* node 0 is the server */
    bool by_words; /* nodes need ports */
    uint32_t nodes;
    qn_ps_t warm;
    uint32_t core[QN_CORES_MAX], domain[QN_CORES_MAX];
    struct thread *thread; /* [nodes] */
    char *memory;
    qn_a64 *array; /* [ARRAY] */
    char *first;   /* [QN_LOCKS_HOMES lines] */
    struct qn_delegate d;
    struct qn_delegate_server server;
    struct qn_locks_words words;
} counted;

/* ---- the operation ---- */

static uint64_t increment(void *ctx, uint32_t op, uint64_t arg)
{
    const struct qn_locks_machine *m = counted.o->machine;
    qn_a64 *array = ctx;
    (void)op;
    counted.thread[qn_sim.self].ran++;
    if (counted.lock == NULL && m->dispatch > 0) {
        qn_timed_work(m->dispatch);
    }
    if (arg == 0) {
        return 0;
    }
    /* relaxed: in exclusion of all others. */
    uint64_t old = qn_load(&array[0], QN_RELAXED);
    qn_store(&array[0], old + 1, QN_RELAXED);
    for (uint32_t i = 1; i < arg; i++) {
        qn_a64 *at = &array[i % ARRAY];
        if (i % FROM == 0 && i % ARRAY != 0) {
            qn_store(at, qn_load(at, QN_RELAXED) + 1, QN_RELAXED);
        }
        qn_timed_work(m->increment);
    }
    return old;
}

static uint64_t call(struct thread *t)
{
    uint64_t result = 0;
    if (counted.type == NULL) {
        /* relaxed: nothing else is ordered by it. */
        return qn_fetch_add(&counted.array[0], 1, QN_RELAXED);
    }
    (void)qn_delegate(&counted.d, &t->client, 0, counted.o->increments,
                      &result);
    return result;
}

/* ---- threads ---- */

static void draw_pause(struct thread *t)
{
    const qn_ps_t turns =
        qn_random_below(&t->random, (uint64_t)counted.o->pause + 1);
    if (turns > 0) {
        qn_timed_work(turns * counted.o->machine->empty_turn);
    }
}

static void note(struct thread *t, qn_ps_t from, uint64_t result)
{
    bool counts = counted.type == NULL || counted.o->increments > 0;
    t->wrong |= counts && result + 1 <= t->last;
    t->last = result + 1;
    t->all++;
    if (from >= counted.warm) {
        t->done++;
        t->waited += qn_timed_clock() - from;
    }
}

static void node_main(void *ctx, uint32_t node)
{
    (void)ctx;
    struct thread *t = &counted.thread[node];
    if (node == 0) {
        qn_touch_in(counted.first, counted.o->homes * QN_CACHELINE);
    }
    struct qn_sync_port *port =
        counted.by_words ? &counted.words.port[node] : NULL;
    if (counted.served && node == 0) {
        counted.server.port = port;
        (void)qn_delegate_serve(&counted.d, &counted.server);
        t->ended = true;
        return;
    }
    const struct qn_delegate_join_opts o = {.domain = counted.domain[node],
                                            .port = port};
    if (counted.type != NULL &&
        qn_delegate_join(&counted.d, &t->client, &o) != QN_OK) {
        t->ended = true;
        return;
    }
    for (;;) {
        draw_pause(t);
        qn_ps_t from = qn_timed_clock();
        note(t, from, call(t));
    }
}

/* ---- the object ---- */

/* @return false: there is no such backend. */
static bool find_backend(const char *name)
{
    counted.lock = qn_lock_find(name);
    counted.type = qn_delegate_find(counted.lock != NULL ? "lock" : name);
    counted.by_words =
        counted.type != NULL &&
        (counted.type->words || (counted.lock != NULL && counted.lock->words));
    counted.served = counted.type != NULL && counted.type->server != NULL;
    return counted.type != NULL || strcmp(name, QN_LOCKS_FETCH_ADD) == 0;
}

static uint32_t domains(void)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < counted.nodes; i++) {
        most = QN_MAX(most, counted.domain[i]);
        counted.domain[i] = counted.type != NULL && counted.type->domains
                                ? counted.domain[i]
                                : 0;
    }
    return counted.type != NULL && counted.type->domains ? most + 1 : 1;
}

static int make_object(const struct qn_locks_opts *o)
{
    const struct qn_delegate_opts d = {.type = counted.type,
                                       .clients = o->threads,
                                       .batch = o->batch,
                                       .domains = domains(),
                                       .lock = counted.lock,
                                       .own_cores = true,
                                       .only_operations_use_data =
                                           o->server.only_server_uses_data,
                                       .server = o->server};
    size_t bytes = counted.type != NULL ? qn_delegate_bytes(&d) : 0;
    if (counted.type != NULL && bytes == 0) {
        return QN_EINVAL;
    }
    size_t array = ARRAY * sizeof(qn_a64);
    const size_t all = array + APART + bytes + APART;
    counted.memory =
        aligned_alloc(QN_CACHELINE, all + QN_LOCKS_HOMES * QN_CACHELINE);
    if (counted.memory == NULL) {
        return QN_ENOMEM;
    }
    memset(counted.memory, 0, all + QN_LOCKS_HOMES * QN_CACHELINE);
    counted.array = (qn_a64 *)(void *)counted.memory;
    counted.first = counted.memory + all;
    if (counted.type == NULL) {
        return QN_OK;
    }
    void *at = counted.memory + array + APART;
    int rc = qn_delegate_format(at, &d);
    return rc != QN_OK
               ? rc
               : qn_delegate_open(&counted.d, at, increment, counted.array);
}

/* ---- what came out ---- */

/* The node that ran most operations; of atomic ones the first. */
static uint32_t servant(void)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < counted.nodes; i++) {
        best = counted.thread[i].ran > counted.thread[best].ran ? i : best;
    }
    return best;
}

static double stalled(const struct qn_timed_node *n)
{
    qn_ps_t waits = n->read + n->write + n->waited + n->fenced;
    qn_ps_t runs = n->clock - n->paused - n->parked - n->blocked;
    return runs > 0 ? (double)waits / (double)runs : 0;
}

static void sum_threads(struct qn_locks_result *out)
{
    struct qn_delegate_stats sum = {0};
    uint64_t done = 0;
    uint64_t all = 0;
    uint64_t least = UINT64_MAX;
    uint64_t most = 0;
    qn_ps_t waited = 0;
    for (uint32_t i = counted.served; i < counted.nodes; i++) {
        const struct thread *t = &counted.thread[i];
        done += t->done;
        all += t->all;
        waited += t->waited;
        least = QN_MIN(least, t->done);
        most = QN_MAX(most, t->done);
        out->wrong |= t->wrong || t->ended;
        if (counted.type != NULL) {
            struct qn_delegate_stats s =
                qn_delegate_stats_of(&counted.d, &t->client);
            sum.batches += s.batches;
            sum.served += s.served;
            sum.cas += s.cas;
        }
    }
    out->mops = (double)done * 1e3 / (double)counted.o->run_ns;
    out->latency_ns =
        done > 0 ? (double)waited / (double)done / QN_PS_PER_NS : 0;
    out->most_over_least = least > 0 ? (double)most / (double)least : 0;
    out->combined =
        sum.batches > 0 ? (double)sum.served / (double)sum.batches - 1 : 0;
    out->cas = all > 0 ? (double)sum.cas / (double)all : 0;
    /* relaxed: the run is over. */
    uint64_t total = qn_load(&counted.array[0], QN_RELAXED);
    bool counts = counted.type == NULL || counted.o->increments > 0;
    out->wrong |= counts && (total < all || total > all + counted.nodes);
}

/* ---- a run ---- */

static int run_object(struct qn_locks_result *out,
                      const struct qn_locks_opts *o)
{
    struct qn_timed_result r;
    struct qn_timed_opts t = {.nodes = counted.nodes,
                              .main = node_main,
                              .seed = o->seed,
                              .jitter = o->jitter,
                              .looks_on = true,
                              .until_ns = o->warm_ns + o->run_ns};
    int rc = qn_locks_machine_prices(o->machine, counted.core, counted.nodes,
                                     &t.prices);
    if (rc == QN_OK) {
        rc = qn_timed_run(&t, &r);
    }
    if (rc == QN_OK) {
        sum_threads(out);
        out->stalled = stalled(&r.node[servant()]);
        out->wrong |= r.fault != NULL || !r.cut_off || counted.thread[0].ended;
        qn_timed_result_free(&r);
    }
    qn_prices_destroy(t.prices);
    return rc;
}

int qn_locks_run(struct qn_locks_result *out, const struct qn_locks_opts *opts)
{
    struct qn_locks_opts o = *opts;
    o.warm_ns = o.warm_ns > 0 ? o.warm_ns : WARM_NS;
    o.run_ns = o.run_ns > 0 ? o.run_ns : RUN_NS;
    *out = (struct qn_locks_result){0};
    counted = (struct counted_run){.o = &o, .warm = o.warm_ns * QN_PS_PER_NS};
    if (o.threads < 1 || !find_backend(o.backend)) {
        return QN_EINVAL;
    }
    counted.nodes = o.threads + counted.served;
    int rc = qn_locks_machine_cores(o.machine, counted.nodes, counted.served,
                                    counted.core, counted.domain);
    counted.thread = calloc(counted.nodes, sizeof *counted.thread);
    rc = rc == QN_OK && counted.thread == NULL ? QN_ENOMEM : rc;
    for (uint32_t i = 0; rc == QN_OK && i < counted.nodes; i++) {
        counted.thread[i].random = qn_random_split(o.seed, i);
    }
    if (rc == QN_OK && counted.by_words) {
        rc = qn_locks_words_make(&counted.words, counted.nodes);
    }
    rc = rc == QN_OK ? make_object(&o) : rc;
    rc = rc == QN_OK ? run_object(out, &o) : rc;
    qn_locks_words_free(&counted.words);
    free(counted.memory);
    free(counted.thread);
    return rc;
}
