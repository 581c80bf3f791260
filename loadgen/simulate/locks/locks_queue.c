/*
 * One run. All threads put and take until it is cut off; what counts is what
 * lies between `warm_ns` and its end. A put is over before its thread takes, so
 * a take always finds something.
 */
#include "loadgen/simulate/locks/locks_queue.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/sim/timed/timed.h"
#include "core/sync/delegate/server.h"
#include "loadgen/base/random.h"
#include "loadgen/simulate/locks/locks_words.h"

#define WARM_NS     20000u
#define RUN_NS      100000u
#define ENDS        2u /* servers, at most */
#define THREADS_MAX 255u
#define NUMBER_BITS 24 /* of a value; the thread has the 8 above */
#define NUMBER_MASK ((UINT32_C(1) << NUMBER_BITS) - 1)

struct thread {
    struct qn_collection_client client;
    struct qn_delegate_server server;
    uint64_t random;
    uint64_t done;               /* between warm and the end */
    uint32_t put;                /* values */
    uint32_t taken[THREADS_MAX]; /* number of each thread's last */
    bool wrong, ended;
};

static struct queue_run {
    const struct qn_locks_queue_opts *o;
    struct qn_collection_opts queue;
    struct qn_delegate_opts delegate;
    uint32_t servers; /* the first nodes */
    uint32_t nodes;
    bool by_words; /* nodes need ports */
    qn_ps_t warm;
    uint32_t core[QN_CORES_MAX], domain[QN_CORES_MAX];
    struct thread *thread; /* [nodes] */
    void *memory;
    struct qn_collection q;
    struct qn_locks_words words;
} shared;

/* ---- threads ---- */

static void put(struct thread *t, uint32_t index)
{
    const uint32_t number = ++t->put & NUMBER_MASK;
    const uint64_t value = (uint64_t)index << NUMBER_BITS | number;
    t->wrong |= qn_collection_put(&t->client, value) != QN_OK;
}

static void take(struct thread *t)
{
    uint64_t value = 0;
    if (qn_collection_take(&t->client, &value) != QN_OK ||
        value >> NUMBER_BITS >= shared.nodes) {
        t->wrong = true;
        return;
    }
    uint32_t *last = &t->taken[value >> NUMBER_BITS];
    const uint32_t number = (uint32_t)value & NUMBER_MASK;
    t->wrong |= shared.queue.type->order == QN_FIFO && number <= *last;
    *last = number;
}

static void put_and_take(struct thread *t, uint32_t index)
{
    for (uint32_t i = 0;; i++) {
        const qn_ps_t turns =
            qn_random_below(&t->random, (uint64_t)shared.o->pause + 1);
        if (turns > 0) {
            qn_timed_work(turns * shared.o->machine->empty_turn);
        }
        const qn_ps_t from = qn_timed_clock();
        if (i % 2 == 0) {
            put(t, index);
        } else {
            take(t);
        }
        t->done += from >= shared.warm;
    }
}

static void node_main(void *ctx, uint32_t node)
{
    (void)ctx;
    struct thread *t = &shared.thread[node];
    struct qn_sync_port *port =
        shared.by_words ? &shared.words.port[node] : NULL;
    if (node < shared.servers) {
        t->server.port = port;
        (void)qn_delegate_serve(qn_collection_delegate_at(&shared.q, node),
                                &t->server);
    } else {
        const struct qn_collection_join_opts o = {.domain = shared.domain[node],
                                                  .port = port};
        if (qn_collection_join(&shared.q, &t->client, &o) == QN_OK) {
            put_and_take(t, node);
        }
    }
    t->ended = true;
}

/* ---- the queue ---- */

/* @return false: there is no such type or backend. */
static bool find_kind(const struct qn_locks_queue_opts *o)
{
    const struct qn_collection_type *type = qn_collection_find(o->type);
    struct qn_delegate_opts *d = &shared.delegate;
    if (type == NULL || (o->backend != NULL) != (type->delegates > 0)) {
        return false;
    }
    shared.queue = (struct qn_collection_opts){.type = type,
                                               .clients = o->threads,
                                               .capacity = 2 * o->threads,
                                               .pause_ns = o->turn_ns};
    if (o->backend == NULL) {
        return true;
    }
    const struct qn_lock_type *lock = qn_lock_find(o->backend);
    *d = (struct qn_delegate_opts){
        .type = qn_delegate_find(lock != NULL ? "lock" : o->backend),
        .lock = lock,
        .own_cores = true,
        .only_operations_use_data =
            o->only_operations_use_data && type->delegates == 1,
        .server = o->server};
    shared.queue.delegate = d;
    if (d->type == NULL) {
        return false;
    }
    shared.by_words = d->type->words || (lock != NULL && lock->words);
    shared.servers = d->type->server != NULL ? type->delegates : 0;
    return true;
}

/* All nodes have domain 0 where there are none, and where slots are: those lie
 * at the server. */
static void find_domains(void)
{
    const struct qn_delegate_type *type = shared.delegate.type;
    const bool has = shared.servers == 0 && (type == NULL || type->domains);
    uint32_t most = 0;
    for (uint32_t i = 0; i < shared.nodes; i++) {
        shared.domain[i] = has ? shared.domain[i] : 0;
        most = QN_MAX(most, shared.domain[i]);
    }
    shared.delegate.domains = most + 1;
}

static int make_queue(void)
{
    const size_t bytes = qn_collection_bytes(&shared.queue);
    if (bytes == 0) {
        return QN_EINVAL;
    }
    shared.memory = aligned_alloc(QN_CACHELINE, bytes);
    if (shared.memory == NULL) {
        return QN_ENOMEM;
    }
    memset(shared.memory, 0, bytes);
    int rc = qn_collection_format(shared.memory, &shared.queue);
    return rc == QN_OK ? qn_collection_open(&shared.q, shared.memory) : rc;
}

/* ---- a run ---- */

static void sum_threads(struct qn_locks_queue_result *out)
{
    uint64_t done = 0;
    uint64_t least = UINT64_MAX;
    uint64_t most = 0;
    for (uint32_t i = 0; i < shared.nodes; i++) {
        const struct thread *t = &shared.thread[i];
        out->wrong |= t->wrong || t->ended;
        if (i >= shared.servers) {
            done += t->done;
            least = QN_MIN(least, t->done);
            most = QN_MAX(most, t->done);
        }
    }
    out->mops = (double)done * 1e3 / (double)shared.o->run_ns;
    out->most_over_least = least > 0 ? (double)most / (double)least : 0;
}

static int run_threads(struct qn_locks_queue_result *out,
                       const struct qn_locks_queue_opts *o)
{
    struct qn_timed_result r;
    struct qn_timed_opts t = {.nodes = shared.nodes,
                              .main = node_main,
                              .seed = o->seed,
                              .jitter = o->jitter,
                              .looks_on = true,
                              .until_ns = o->warm_ns + o->run_ns};
    int rc = qn_locks_machine_prices(o->machine, shared.core, shared.nodes,
                                     &t.prices);
    if (rc == QN_OK) {
        rc = qn_timed_run(&t, &r);
    }
    if (rc == QN_OK) {
        sum_threads(out);
        out->wrong |= r.fault != NULL || !r.cut_off;
        qn_timed_result_free(&r);
    }
    qn_prices_destroy(t.prices);
    return rc;
}

static int make_threads(const struct qn_locks_queue_opts *o)
{
    shared.nodes = o->threads + shared.servers;
    shared.thread = calloc(shared.nodes, sizeof *shared.thread);
    if (shared.thread == NULL) {
        return QN_ENOMEM;
    }
    for (uint32_t i = 0; i < shared.nodes; i++) {
        shared.thread[i].random = qn_random_split(o->seed, i);
    }
    int rc = qn_locks_machine_cores(o->machine, shared.nodes, shared.servers,
                                    shared.core, shared.domain);
    if (rc == QN_OK) {
        find_domains();
    }
    return rc == QN_OK && shared.by_words
               ? qn_locks_words_make(&shared.words, shared.nodes)
               : rc;
}

int qn_locks_queue_run(struct qn_locks_queue_result *out,
                       const struct qn_locks_queue_opts *opts)
{
    struct qn_locks_queue_opts o = *opts;
    o.warm_ns = o.warm_ns > 0 ? o.warm_ns : WARM_NS;
    o.run_ns = o.run_ns > 0 ? o.run_ns : RUN_NS;
    *out = (struct qn_locks_queue_result){0};
    shared = (struct queue_run){.o = &o, .warm = o.warm_ns * QN_PS_PER_NS};
    if (o.threads < 1 || o.threads > THREADS_MAX - ENDS || !find_kind(&o)) {
        return QN_EINVAL;
    }
    int rc = make_threads(&o);
    rc = rc == QN_OK ? make_queue() : rc;
    rc = rc == QN_OK ? run_threads(out, &o) : rc;
    qn_locks_words_free(&shared.words);
    free(shared.memory);
    free(shared.thread);
    return rc;
}
