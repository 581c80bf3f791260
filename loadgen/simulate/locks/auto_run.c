/*
 * One run. What threads note of their calls is not in simulated memory, and
 * free: so the thread that makes the last operation of a phase ends it, and the
 * last one of all ends the run.
 *
 * The object and its data lie in one block, the data first, a page apart.
 */
#include "loadgen/simulate/locks/auto_run.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/base/mark.h"
#include "core/sim/timed/timed.h"
#include "core/sync/object/collection.h"
#include "loadgen/base/random.h"

#define ARRAY    64u
#define APART    ((size_t)64 * QN_CACHELINE)
#define CAPACITY 1024u
/* Where lines have homes, these follow from the order of the first touches: a
 * seed touches as many lines first. */
#define HOMES    16u
/* How often a thread that does not call looks whether it should. */
#define IDLE_PS  (500 * QN_PS_PER_NS)

struct thread {
    struct qn_collection_client queue;
    struct qn_delegate_client client;
    uint64_t random;
    uint64_t next; /* result of its last addition, plus 1 */
    bool takes;    /* what it has put into the queue */
};

static struct auto_run {
    const struct qn_auto_run_opts *o;
    const struct qn_delegate_type *type;
    uint32_t nodes;
    uint32_t core[QN_CORES_MAX], domain[QN_CORES_MAX];
    struct thread *thread; /* [nodes] */
    char *memory;
    char *first;   /* [HOMES lines] */
    qn_a64 *array; /* [ARRAY] */
    struct qn_delegate d;
    struct qn_collection q;
    uint64_t done;
    qn_ps_t since;   /* operations of this phase count */
    qn_ps_t took[2]; /* those that count */
    bool wrong;
} chosen_run;

/* ---- the load ---- */

static void dispatch(void)
{
    if (chosen_run.o->machine->dispatch > 0) {
        qn_timed_work(chosen_run.o->machine->dispatch);
    }
}

static uint64_t increment(void *ctx, uint32_t op, uint64_t more)
{
    qn_a64 *array = ctx;
    (void)op;
    dispatch();
    /* relaxed: in exclusion of all others. */
    const uint64_t old = qn_load(&array[0], QN_RELAXED);
    qn_store(&array[0], old + 1, QN_RELAXED);
    for (uint32_t i = 1; i <= more; i++) {
        qn_store(&array[i], qn_load(&array[i], QN_RELAXED) + 1, QN_RELAXED);
        qn_timed_work(chosen_run.o->machine->increment);
    }
    return old;
}

static void add(struct thread *t)
{
    const uint64_t more =
        chosen_run.o->load == QN_AUTO_LOAD_INTEGERS ? QN_AUTO_INTEGERS : 0;
    uint64_t old = 0;
    chosen_run.wrong |=
        qn_delegate(&chosen_run.d, &t->client, 0, more, &old) != QN_OK;
    chosen_run.wrong |= old < t->next;
    t->next = old + 1;
}

/* No thread takes more than it has put, so there is a value for each. */
static void put_or_take(struct thread *t)
{
    uint64_t value = 1;
    const int rc = t->takes ? qn_collection_take(&t->queue, &value)
                            : qn_collection_put(&t->queue, value);
    chosen_run.wrong |= rc != QN_OK || value != 1;
    t->takes = !t->takes;
}

static void draw_pause(struct thread *t)
{
    const qn_ps_t turns =
        qn_random_below(&t->random, (uint64_t)chosen_run.o->pause + 1);
    if (turns > 0) {
        qn_timed_work(turns * chosen_run.o->machine->empty_turn);
    }
}

/* ---- phases ---- */

static void note(void)
{
    const struct qn_auto_run_opts *o = chosen_run.o;
    const uint64_t phase = chosen_run.done / o->every;
    const uint64_t in_it = chosen_run.done % o->every;
    if (in_it == o->skip) {
        chosen_run.since = qn_timed_clock();
    }
    chosen_run.done++;
    if (in_it + 1 == o->every) {
        chosen_run.took[phase % 2] += qn_timed_clock() - chosen_run.since;
    }
    if (chosen_run.done == (uint64_t)o->phases * o->every) {
        qn_timed_stop();
    }
}

static int join(struct thread *t, uint32_t domain)
{
    const struct qn_delegate_join_opts d = {.domain = domain};
    const struct qn_collection_join_opts q = {.domain = domain};
    return chosen_run.o->load == QN_AUTO_LOAD_QUEUE
               ? qn_collection_join(&chosen_run.q, &t->queue, &q)
               : qn_delegate_join(&chosen_run.d, &t->client, &d);
}

static void node_main(void *ctx, uint32_t node)
{
    (void)ctx;
    struct thread *t = &chosen_run.thread[node];
    if (node == 0) {
        qn_touch_in(chosen_run.first,
                    chosen_run.o->seed % HOMES * QN_CACHELINE);
    }
    chosen_run.wrong |= join(t, chosen_run.domain[node]) != QN_OK;
    while (!chosen_run.wrong) {
        if (node >=
            chosen_run.o->threads[chosen_run.done / chosen_run.o->every % 2]) {
            qn_timed_sleep_until(qn_timed_clock() + IDLE_PS);
            qn_timed_turn(); /* of those that work */
            continue;
        }
        draw_pause(t);
        if (chosen_run.o->load == QN_AUTO_LOAD_QUEUE) {
            put_or_take(t);
        } else {
            add(t);
        }
        note();
    }
}

/* ---- the object ---- */

static uint32_t domains(void)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < chosen_run.nodes; i++) {
        chosen_run.domain[i] =
            chosen_run.type->domains ? chosen_run.domain[i] : 0;
        most = QN_MAX(most, chosen_run.domain[i]);
    }
    return most + 1;
}

static int make_queue(void *at, const struct qn_collection_opts *q)
{
    const int rc = qn_collection_format(at, q);
    return rc == QN_OK ? qn_collection_open(&chosen_run.q, at) : rc;
}

static int make_delegate(void *at, const struct qn_delegate_opts *d)
{
    const int rc = qn_delegate_format(at, d);
    return rc == QN_OK ? qn_delegate_open(&chosen_run.d, at, increment,
                                          chosen_run.array)
                       : rc;
}

static int make_object(void)
{
    const struct qn_delegate_opts d = {.type = chosen_run.type,
                                       .clients = chosen_run.nodes,
                                       .domains = domains()};
    const struct qn_collection_opts q = {.type = qn_collection_find("ms1"),
                                         .clients = chosen_run.nodes,
                                         .capacity = CAPACITY,
                                         .delegate = &d};
    const bool queue = chosen_run.o->load == QN_AUTO_LOAD_QUEUE;
    const size_t bytes =
        queue ? qn_collection_bytes(&q) : qn_delegate_bytes(&d);
    const size_t front = ARRAY * sizeof(qn_a64) + APART;
    const size_t all = front + bytes + 2 * APART;
    if (bytes == 0) {
        return QN_EINVAL;
    }
    chosen_run.memory = aligned_alloc(QN_CACHELINE, all);
    if (chosen_run.memory == NULL) {
        return QN_ENOMEM;
    }
    memset(chosen_run.memory, 0, all);
    chosen_run.array = (qn_a64 *)(void *)chosen_run.memory;
    chosen_run.first = chosen_run.memory + front + bytes + APART;
    return queue ? make_queue(chosen_run.memory + front, &q)
                 : make_delegate(chosen_run.memory + front, &d);
}

/* ---- what came out ---- */

static double rate_of(uint64_t phases, qn_ps_t took)
{
    const struct qn_auto_run_opts *o = chosen_run.o;
    return phases == 0
               ? 0
               : (double)(phases * (o->every - o->skip)) * 1e6 / (double)took;
}

static void sum(struct qn_auto_run_result *out)
{
    const struct qn_auto_run_opts *o = chosen_run.o;
    for (uint32_t odd = 0; odd < 2; odd++) {
        out->mops[odd] =
            rate_of((o->phases + 1 - odd) / 2, chosen_run.took[odd]);
    }
    out->mops[QN_AUTO_ALL] =
        rate_of(o->phases, chosen_run.took[0] + chosen_run.took[1]);
    for (uint32_t i = 0; i < chosen_run.nodes; i++) {
        const struct thread *t = &chosen_run.thread[i];
        const struct qn_delegate_stats s =
            o->load == QN_AUTO_LOAD_QUEUE
                ? qn_collection_stats_of(&t->queue)
                : qn_delegate_stats_of(&chosen_run.d, &t->client);
        out->changes += s.changes;
    }
    /* relaxed: the run is over. */
    const uint64_t count = qn_load(&chosen_run.array[0], QN_RELAXED);
    out->wrong =
        chosen_run.wrong || (o->load != QN_AUTO_LOAD_QUEUE &&
                             (count < chosen_run.done ||
                              count > chosen_run.done + chosen_run.nodes));
}

static int run_object(struct qn_auto_run_result *out)
{
    struct qn_timed_result r;
    struct qn_timed_opts t = {.nodes = chosen_run.nodes,
                              .main = node_main,
                              .seed = chosen_run.o->seed,
                              .jitter = chosen_run.o->jitter,
                              .looks_on = true};
    int rc = qn_locks_machine_prices(chosen_run.o->machine, chosen_run.core,
                                     chosen_run.nodes, &t.prices);
    if (rc == QN_OK) {
        rc = qn_timed_run(&t, &r);
    }
    if (rc == QN_OK) {
        sum(out);
        out->wrong |= r.fault != NULL || r.cut_off;
        qn_timed_result_free(&r);
    }
    qn_prices_destroy(t.prices);
    return rc;
}

int qn_auto_run(struct qn_auto_run_result *out,
                const struct qn_auto_run_opts *o)
{
    *out = (struct qn_auto_run_result){0};
    chosen_run =
        (struct auto_run){.o = o, .type = qn_delegate_find(o->backend)};
    chosen_run.nodes = QN_MAX(o->threads[0], o->threads[1]);
    if (chosen_run.type == NULL || chosen_run.type->server != NULL ||
        chosen_run.type->words || chosen_run.nodes == 0 || o->phases == 0 ||
        o->every <= o->skip) {
        return QN_EINVAL;
    }
    int rc = qn_locks_machine_cores(o->machine, chosen_run.nodes, 0,
                                    chosen_run.core, chosen_run.domain);
    chosen_run.thread = calloc(chosen_run.nodes, sizeof *chosen_run.thread);
    rc = rc == QN_OK && chosen_run.thread == NULL ? QN_ENOMEM : rc;
    for (uint32_t i = 0; rc == QN_OK && i < chosen_run.nodes; i++) {
        chosen_run.thread[i].random = qn_random_split(o->seed, i);
    }
    rc = rc == QN_OK ? make_object() : rc;
    rc = rc == QN_OK ? run_object(out) : rc;
    free(chosen_run.memory);
    free(chosen_run.thread);
    return rc;
}
