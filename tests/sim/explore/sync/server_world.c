/*
 * A run begins with a new object and clients that have joined; each result must
 * be new, and each node ends.
 */
#include "tests/sim/explore/sync/server_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/sim/machine.h"

enum qn_server_mutant qn_server_mutant;

#define MEMORY_BYTES (16u * 4096)

static alignas(4096) unsigned char memory[MEMORY_BYTES];
struct qn_delegate server_object;
struct qn_delegate_client server_clients[SERVER_WORLD_CLIENTS];
struct qn_delegate_server server_servers[2];
const struct program *prog;
static qn_a64 counter; /* the data of the operations */
static qn_a32 left;    /* clients that have not finished */
static qn_a32 gone;    /* servers that were stopped */
static bool seen[SERVER_WORLD_CLIENTS * 2 + 1]; /* results */

uint64_t server_add(void *ctx, uint32_t op, uint64_t arg)
{
    (void)ctx;
    (void)op;
    /* relaxed: of one server after the other, which the endpoint orders. */
    const uint64_t now = qn_load(&counter, QN_RELAXED) + arg;
    qn_store(&counter, now, QN_RELAXED);
    return now;
}

void server_setup(void *program)
{
    prog = (const struct program *)program;
    const struct qn_delegate_opts o = {.type = &qn_delegate_shm_server,
                                       .clients = prog->clients,
                                       .domains = prog->domains,
                                       .server = prog->server};
    const size_t bytes = qn_delegate_bytes(&o);
    QN_ASSERT(bytes != 0 && bytes <= sizeof memory);
    memset(memory, 0, bytes);
    QN_ASSERT(qn_delegate_format(memory, &o) == QN_OK);
    QN_ASSERT(qn_delegate_open(&server_object, memory, server_add, NULL) ==
              QN_OK);
    for (uint32_t i = 0; i < prog->clients; i++) {
        if (!prog->late || i != 1) {
            QN_ASSERT(qn_delegate_join(&server_object, &server_clients[i],
                                       NULL) == QN_OK);
        }
    }
    memset(server_servers, 0, sizeof server_servers);
    memset(seen, 0, sizeof seen);
    qn_store(&counter, 0, QN_SEQ_CST);
    qn_store(&left, prog->clients, QN_SEQ_CST);
    qn_store(&gone, 0, QN_SEQ_CST);
}

/* A result is that of one operation, and the client sees what it has written,
 * unless replies stream. */
static void take(uint64_t result, uint64_t *last)
{
    if (result <= *last || result > prog->clients * prog->calls ||
        seen[result]) {
        qn_sim_fail("a result that was given before, or out of order");
    }
    seen[result] = true;
    *last = result;
    if (!prog->server.only_server_uses_data &&
        qn_load(&counter, QN_RELAXED) < result) {
        qn_sim_fail("a reply came before what the operation has written");
    }
}

void server_stop(void)
{
    while (qn_delegate_stop(&server_object) != QN_OK) {
        qn_pause();
    }
}

static void call_all(struct qn_delegate_client *c)
{
    uint64_t last = 0, result = 0;
    for (uint32_t i = 0; i < prog->calls; i++) {
        if (prog->submits) {
            QN_ASSERT(qn_delegate_submit(&server_object, c, 0, 1) == QN_OK);
            continue;
        }
        QN_ASSERT(qn_delegate(&server_object, c, 0, 1, &result) == QN_OK);
        take(result, &last);
    }
    /* A submission alone wakes a server that sleeps. */
    while (prog->submits && qn_load(&counter, QN_RELAXED) < prog->calls) {
        qn_pause();
    }
    for (uint32_t i = 0; prog->submits && i < prog->calls; i++) {
        QN_ASSERT(qn_delegate_collect(&server_object, c, &result) == QN_OK);
        take(result, &last);
    }
}

static void client(uint32_t i)
{
    if (prog->late && i == 1) {
        QN_ASSERT(qn_delegate_join(&server_object, &server_clients[i], NULL) ==
                  QN_OK);
    }
    call_all(&server_clients[i]);
    qn_delegate_leave(&server_object, &server_clients[i]);
    if (qn_fetch_add(&left, UINT32_MAX, QN_ACQ_REL) == 1 && !prog->other) {
        /* The last server; the second one has stopped the first. */
        while (qn_load(&gone, QN_ACQUIRE) + 1 != prog->servers) {
            qn_pause();
        }
        server_stop();
    }
}

static void serve(uint32_t i)
{
    struct qn_delegate_server *s = &server_servers[i];
    int rc;
    s->domain = i % prog->domains;
    if (i == 1) { /* the first one has served, perhaps nothing */
        server_stop();
    }
    do {
        rc = qn_delegate_serve(&server_object, s);
        QN_ASSERT(rc == QN_OK || rc == QN_EBUSY);
        if (rc == QN_EBUSY) {
            qn_pause();
        }
    } while (rc != QN_OK);
    (void)qn_fetch_add(&gone, 1, QN_RELEASE);
}

static void stop_behind_all(void)
{
    while (qn_load(&counter, QN_RELAXED) < prog->clients * prog->calls) {
        qn_pause();
    }
    server_stop();
}

static void node(uint32_t i)
{
    if (i < prog->clients) {
        client(i);
    } else if (i < prog->clients + prog->servers) {
        serve(i - prog->clients);
    } else {
        stop_behind_all();
    }
}

static void run_self(void *ctx)
{
    (void)ctx;
    node(qn_sim.self);
}

static uint32_t nodes_of(const struct program *p)
{
    return p->clients + p->servers + p->other;
}

const char *server_check(void *program)
{
    (void)program;
    for (uint32_t i = 0; i < nodes_of(prog); i++) {
        if (qn_sim_end_of(i) != QN_SIM_DONE) {
            return "asleep for ever";
        }
    }
    return qn_load(&counter, QN_SEQ_CST) == prog->clients * prog->calls
               ? NULL
               : "the total is wrong";
}

bool server_clean(const struct program *p, enum qn_explore_memory m,
                  uint32_t deviations, struct qn_explored *out)
{
    const struct qn_explore_opts o = {
        .nodes = nodes_of(p),
        .node = {run_self, run_self, run_self, run_self},
        .setup = server_setup,
        .check = server_check,
        .ctx = (void *)(uintptr_t)p, /* read only */
        .memory = m,
        .deviations = deviations,
        .steps_max = 2000};
    const bool ok = qn_explore(&o, out) && out->complete;
    if (getenv("QN_VERBOSE") != NULL) {
        printf("%u clients, %u servers, memory %d, %u deviations: %lu runs, "
               "%lu pruned, %lu steps, %s "
               "%s\n",
               p->clients, p->servers, (int)m, deviations,
               (unsigned long)out->runs, (unsigned long)out->pruned,
               (unsigned long)out->steps, ok ? "clean" : out->fault,
               out->choices);
    }
    return ok;
}

#define NO_PAUSE .server = {.pause = QN_SERVER_NONE}

const struct program calls = {
    .clients = 1, .servers = 1, .calls = 2, .domains = 1, NO_PAUSE};
const struct program two_clients = {
    .clients = 2, .servers = 1, .calls = 1, .domains = 1, NO_PAUSE};
const struct program two_clients_twice = {
    .clients = 2, .servers = 1, .calls = 2, .domains = 1, NO_PAUSE};
const struct program submits = {.clients = 1,
                                .servers = 1,
                                .calls = 2,
                                .submits = true,
                                .domains = 1,
                                NO_PAUSE};
const struct program moves = {
    .clients = 1, .servers = 2, .calls = 2, .domains = 2, NO_PAUSE};
const struct program leaves = {.clients = 1,
                               .servers = 1,
                               .calls = 1,
                               .other = true,
                               .domains = 1,
                               NO_PAUSE};
const struct program streams = {
    .clients = 1,
    .servers = 1,
    .calls = 2,
    .domains = 1,
    .server = {.pause = QN_SERVER_NONE, .only_server_uses_data = true}};
const struct program groups = {
    .clients = 2,
    .servers = 1,
    .calls = 1,
    .late = true,
    .domains = 1,
    .server = {.pause = QN_SERVER_NONE, .group_replies = true}};
