#include "tests/sim/explore/sync/words_sync_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/err.h"
#include "core/sim/machine.h"
#include "core/sync/delegate/delegate.h"
#include "core/sync/delegate/server.h"
#include "core/sync/lock/lock_internal.h"
#include "core/sync/port.h"
#include "core/sync/sync_mutant.h"
#include "core/wait/park.h"

#define NODES 3u
#define BOTH  2u

/* With one node for two objects, each of these has another node at first. */
#define CLIENTS_OF_SECOND 7u
#define MEMORY_BYTES      4096u

enum qn_sync_mutant qn_sync_mutant;
void *qn_sync_one_node;

static struct {
    const struct words_program *program;
    uint8_t *memory;
    uint64_t inc[NODES];
    struct qn_doorbell_line line[NODES];
    struct qn_doorbell doorbell[NODES];
    struct qn_doorbell_handle ringer[NODES][NODES];
    struct qn_device *device[NODES];
    struct qn_sync_port port[NODES];
    struct qn_lock_client lock[NODES][BOTH];
    struct qn_delegate object[BOTH];
    struct qn_delegate_client client[NODES][BOTH];
    struct qn_delegate_server server[NODES];
    uint64_t count[BOTH]; /* plain */
    uint32_t done[BOTH];
    bool inside[BOTH];
    qn_a32 look;
    qn_a32 left; /* servers that have left */
    alignas(QN_CACHELINE) uint8_t locks[BOTH][MEMORY_BYTES];
    alignas(QN_CACHELINE) uint8_t objects[BOTH][MEMORY_BYTES];
    alignas(QN_CACHELINE) uint8_t nodes[MEMORY_BYTES]; /* qn_sync_one_node */
} w;

static const struct qn_device_type *type_of(void)
{
    return w.program->split ? &qn_words_split : &qn_words_shared;
}

/* ---- sections ---- */

static uint64_t count(uint32_t which)
{
    if (w.inside[which]) {
        qn_sim_fail("two are in one section");
    }
    w.inside[which] = true;
    uint64_t now;
    qn_copy_in(&now, &w.count[which], sizeof now);
    now++;
    (void)qn_load(&w.look, QN_RELAXED);
    qn_copy_out(&w.count[which], &now, sizeof now);
    w.inside[which] = false;
    w.done[which]++;
    return now;
}

static uint64_t run(void *ctx, uint32_t op, uint64_t arg)
{
    (void)op;
    (void)arg;
    return count((uint32_t)(uintptr_t)ctx);
}

/* ---- setup ---- */

static void attach(uint32_t nodes)
{
    const struct qn_device_opts opts = {.nodes = NODES, .lanes = 1};
    memset(w.memory, 0, type_of()->bytes(&opts));
    type_of()->format(w.memory, &opts);
    for (uint32_t i = 0; i < nodes; i++) {
        w.inc[i] = 1 + i;
        qn_doorbell_init(&w.doorbell[i], &w.line[i], -1);
        for (uint32_t k = 0; k < nodes; k++) {
            qn_doorbell_handle_init(&w.ringer[k][i], &w.line[i], -1);
        }
    }
    for (uint32_t i = 0; i < nodes; i++) {
        const struct qn_device_attach_opts o = {.memory = w.memory,
                                                .opts = &opts,
                                                .self = i,
                                                .incarnation = w.inc,
                                                .doorbell = &w.doorbell[i],
                                                .ringer = w.ringer[i]};
        QN_ASSERT(type_of()->attach(&w.device[i], &o) == QN_OK);
        QN_ASSERT(qn_sync_port_open(&w.port[i], w.device[i]) == QN_OK);
    }
}

static void make_object(uint32_t which)
{
    const char *name = w.program->delegate;
    const struct qn_delegate_opts o = {
        .type = qn_delegate_find(name != NULL ? name : "hyb_comb"),
        .clients = which == 0 ? NODES : CLIENTS_OF_SECOND,
        .batch = w.program->batch};
    QN_ASSERT(qn_delegate_bytes(&o) <= MEMORY_BYTES);
    QN_ASSERT(qn_delegate_format(w.objects[which], &o) == QN_OK);
    QN_ASSERT(qn_delegate_open(&w.object[which], w.objects[which], run,
                               (void *)(uintptr_t)which) == QN_OK);
}

static void make_lock(uint32_t which)
{
    const struct qn_lock_opts o = {.clients = NODES};
    QN_ASSERT(qn_lock_format(&qn_lock_hyblock, w.locks[which], &o) == QN_OK);
}

static bool is_used(uint32_t node, const char *by)
{
    return strpbrk(w.program->node[node], by) != NULL;
}

static void join(uint32_t i)
{
    const struct qn_delegate_join_opts o = {.port = &w.port[i]};
    for (uint32_t k = 0; k < BOTH; k++) {
        if (is_used(i, k == 0 ? "atn" : "bn")) {
            QN_ASSERT(qn_lock_join(&qn_lock_hyblock, w.locks[k], &w.port[i],
                                   &w.lock[i][k]) == QN_OK);
        }
        if (is_used(i, k == 0 ? "c" : "d") ||
            (QN_SYNC_MUTANT(ONE_NODE) && is_used(i, "cd"))) {
            QN_ASSERT(qn_delegate_join(&w.object[k], &w.client[i][k], &o) ==
                      QN_OK);
        }
    }
}

static void setup(void *ctx)
{
    uint32_t nodes = 0;
    (void)ctx;
    while (nodes < NODES && w.program->node[nodes] != NULL) {
        nodes++;
    }
    memset(w.line, 0, sizeof w.line);
    memset(w.locks, 0, sizeof w.locks);
    memset(w.objects, 0, sizeof w.objects);
    memset(w.count, 0, sizeof w.count);
    memset(w.done, 0, sizeof w.done);
    memset(w.inside, 0, sizeof w.inside);
    memset(w.server, 0, sizeof w.server);
    qn_store(&w.look, 0, QN_SEQ_CST);
    qn_store(&w.left, 0, QN_SEQ_CST);
    attach(nodes);
    qn_sync_one_node = w.nodes;
    memset(w.nodes, 0, sizeof w.nodes);
    for (uint32_t k = BOTH; k-- > 0;) {
        make_lock(k);
        make_object(k);
    }
    for (uint32_t i = 0; i < nodes; i++) {
        w.server[i].port = &w.port[i];
        join(i);
    }
}

static void teardown(void *ctx)
{
    (void)ctx;
    for (uint32_t i = 0; i < NODES && w.program->node[i] != NULL; i++) {
        qn_device_detach(w.device[i]);
    }
}

/* ---- nodes ---- */

static void under_lock(uint32_t node, uint32_t which)
{
    qn_lock_acquire(&w.lock[node][which]);
    (void)count(which);
    qn_lock_release(&w.lock[node][which]);
}

static void delegate(uint32_t node, uint32_t which)
{
    uint64_t result = 0;
    if (QN_SYNC_MUTANT(ONE_NODE)) { /* the one that the thread has now */
        w.client[node][which].at[0].node = w.client[node][0].at[0].node;
    }
    if (qn_delegate(&w.object[which], &w.client[node][which], 1, 1, &result) !=
            QN_OK ||
        result == 0) {
        qn_sim_fail("a call was refused, or has no result");
    }
    if (QN_SYNC_MUTANT(ONE_NODE)) {
        w.client[node][0].at[0].node = w.client[node][which].at[0].node;
    }
}

/* Wait until `n` servers have left. relaxed: it orders nothing, so that
 * what the delegate itself leaves out is seen. */
static void await_left(uint32_t n)
{
    uint32_t left;
    while ((left = qn_load(&w.left, QN_RELAXED)) < n) {
        (void)qn_park_word(&w.left, left, QN_TIME_NEVER);
    }
}

static void has_left(void)
{
    (void)qn_fetch_add(&w.left, 1, QN_RELAXED);
    qn_unpark_word(&w.left);
}

static void serve(uint32_t node)
{
    int rc;
    /* It may find that the one before serves, though that one has left. */
    while ((rc = qn_delegate_serve(&w.object[0], &w.server[node])) ==
           QN_EBUSY) {
        qn_pause();
    }
    if (rc != QN_OK) {
        qn_sim_fail("a server was refused");
    }
    has_left();
}

static void poll(uint32_t node)
{
    const int rc = qn_delegate_poll(&w.object[0], &w.server[node]);
    if (rc < 0 && rc != QN_EGONE) {
        qn_sim_fail("a server was refused");
    }
}

static void stop(void)
{
    while (qn_delegate_stop(&w.object[0]) == QN_ENOENT) {
        qn_pause();
    }
}

static void do_one(uint32_t node, char operation)
{
    switch (operation) {
    case 'a':
    case 'b':
        under_lock(node, operation == 'b');
        break;
    case 't':
        if (qn_lock_try_acquire(&w.lock[node][0])) {
            (void)count(0);
            qn_lock_release(&w.lock[node][0]);
        }
        break;
    case 'n':
        qn_lock_acquire(&w.lock[node][0]);
        under_lock(node, 1);
        (void)count(0);
        qn_lock_release(&w.lock[node][0]);
        break;
    case 'c':
    case 'd':
        delegate(node, operation == 'd');
        break;
    case 'S':
        await_left(1);
        serve(node);
        break;
    case 's':
        serve(node);
        break;
    case 'p':
        poll(node);
        break;
    case 'l':
        has_left();
        break;
    case 'y':
        qn_pause();
        break;
    case 'X':
        await_left(1);
        stop();
        break;
    default:
        stop();
        break;
    }
}

static void run_node(uint32_t node)
{
    for (const char *o = w.program->node[node]; *o != '\0'; o++) {
        do_one(node, *o);
    }
}

static void run_self(void *ctx)
{
    (void)ctx;
    run_node(qn_sim.self);
}

static const char *all_done(void *ctx)
{
    (void)ctx;
    for (uint32_t i = 0; i < NODES && w.program->node[i] != NULL; i++) {
        if (qn_sim_end_of(i) != QN_SIM_DONE) {
            return "a node sleeps for ever";
        }
    }
    return w.count[0] == w.done[0] && w.count[1] == w.done[1]
               ? NULL
               : "a count is lost";
}

bool words_sync_is_clean(const struct words_program *p,
                         enum qn_explore_memory memory, int more,
                         struct qn_explored *out)
{
    const struct qn_device_opts opts = {.nodes = NODES, .lanes = 1};
    const uint32_t less = memory == QN_EXPLORE_TSO;
    struct qn_explore_opts o = {
        .node = {run_self, run_self, run_self},
        .setup = setup,
        .check = all_done,
        .teardown = teardown,
        .memory = memory,
        .deviations = (uint32_t)((int)(p->deviations - less) + more),
        .steps_max = 5000};
    while (o.nodes < NODES && p->node[o.nodes] != NULL) {
        o.nodes++;
    }
    w.program = p;
    w.memory = aligned_alloc(QN_CACHELINE, type_of()->bytes(&opts));
    QN_ASSERT(w.memory != NULL);
    const bool clean = qn_explore(&o, out);
    free(w.memory);
    if (getenv("QN_SHOW_RUNS") != NULL) {
        fprintf(stderr, "%s: memory %d, %u deviations: %lu runs, %s %s\n",
                p->node[0], (int)memory, o.deviations, out->runs,
                clean ? "clean" : out->fault, clean ? "" : out->choices);
    }
    return clean;
}
