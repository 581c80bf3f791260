#include "tests/sim/explore/sync/delegate_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/mark.h"
#include "tests/support/test.h"

#define MEMORY_BYTES 16384u
#define CALLS_MAX    4u

static alignas(QN_CACHELINE) char memory[MEMORY_BYTES];
static size_t used;
static struct delegate_program program;
static struct qn_delegate object;
static struct qn_delegate_client client[QN_EXPLORE_NODES];
static uint64_t counter; /* plain: the backend orders its accesses */
static uint64_t noted[QN_EXPLORE_NODES * CALLS_MAX]; /* plain, by operations */
static bool given[QN_EXPLORE_NODES * CALLS_MAX];
static uint32_t ran[QN_EXPLORE_NODES * CALLS_MAX]; /* as no program sees it */
static uint32_t finished;

static uint64_t next(void *ctx, uint32_t op, uint64_t arg)
{
    uint64_t was;
    uint64_t now;
    (void)ctx;
    qn_copy_in(&was, &counter, sizeof was);
    now = was + arg;
    qn_copy_out(&counter, &now, sizeof now);
    noted[was] = now;
    ran[was] = op;
    qn_touch_out(&noted[was], sizeof now);
    return was;
}

static struct qn_delegate_opts opts(void)
{
    return (struct qn_delegate_opts){
        .type = qn_delegate_find(program.type),
        .lock = program.lock != NULL ? qn_lock_find(program.lock) : NULL,
        .clients = program.clients,
        .batch = program.batch,
        .domains = program.domains,
        .change_every = program.change_every,
        .own_cores = program.own_cores,
        .only_operations_use_data = program.only_operations};
}

static void join(uint32_t i)
{
    const struct qn_delegate_join_opts o = {
        .domain = program.domains != 0 ? i % program.domains : 0};
    QN_ASSERT(qn_delegate_join(&object, &client[i], &o) == QN_OK);
}

static void setup(void *ctx)
{
    const struct qn_delegate_opts o = opts();
    (void)ctx;
    memset(memory, 0, used);
    memset(given, 0, sizeof given);
    counter = 0;
    finished = 0;
    QN_ASSERT(qn_delegate_format(memory, &o) == QN_OK);
    QN_ASSERT(qn_delegate_open(&object, memory, next, NULL) == QN_OK);
    for (uint32_t i = 0; i < program.clients; i++) {
        join(i);
    }
}

static void call_all(uint32_t i)
{
    uint64_t before = 0;
    for (uint32_t k = 0; k < program.calls; k++) {
        const uint32_t op = 1 + i * CALLS_MAX + k;
        uint64_t was;
        if (i == 0 && k > 0 && program.rejoin) {
            qn_delegate_leave(&object, &client[i]);
            join(i);
        }
        if (qn_delegate(&object, &client[i], op, 1, &was) != QN_OK) {
            qn_sim_fail("a call was refused");
        }
        if (was >= program.clients * program.calls || given[was]) {
            qn_sim_fail("a result was given twice, or is none");
        }
        if (ran[was] != op) {
            qn_sim_fail("another operation was run");
        }
        if (k > 0 && was < before) {
            qn_sim_fail("a client's operations changed their order");
        }
        given[was] = true;
        if (!program.only_operations) {
            qn_touch_in(&noted[was], sizeof noted[was]);
        }
        before = was;
    }
    finished++;
}

static void client_0(void *ctx)
{
    (void)ctx;
    call_all(0);
}

static void client_1(void *ctx)
{
    (void)ctx;
    call_all(1);
}

static void client_2(void *ctx)
{
    (void)ctx;
    call_all(2);
}

static const char *all_done(void *ctx)
{
    (void)ctx;
    return finished == program.clients ? NULL : "a client was left asleep";
}

bool delegate_explore(const struct delegate_program *p,
                      enum qn_explore_memory m, struct qn_explored *out)
{
    const struct qn_explore_opts o = {.nodes = p->clients,
                                      .node = {client_0, client_1, client_2},
                                      .setup = setup,
                                      .check = all_done,
                                      .memory = m,
                                      .deviations = p->deviations,
                                      .steps_max = 2000};
    program = *p;
    const struct qn_delegate_opts d = opts();
    used = qn_delegate_bytes(&d);
    cr_assert(used > 0 && used <= MEMORY_BYTES);
    const bool clean = qn_explore(&o, out) && out->complete;
    if (getenv("QN_SHOW_RUNS") != NULL) {
        fprintf(stderr, "%s %u x %u, %u deviations: %lu runs, %lu steps\n",
                p->type, p->clients, p->calls, p->deviations, out->runs,
                out->steps);
    }
    return clean;
}
