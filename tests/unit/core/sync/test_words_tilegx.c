/*
 * HybLock, HybComb and MP-Server on the simulated TILE-Gx 8036, each core a
 * client: right totals.
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "core/sim/timed/tiled/tiled.h"
#include "core/sim/timed/timed.h"
#include "core/sync/delegate/delegate.h"
#include "core/sync/delegate/server.h"
#include "core/sync/port.h"
#include "tests/support/test.h"

#define NODES 36u
#define CALLS 20u

static struct {
    uint8_t *memory;
    struct qn_device *device[NODES];
    struct qn_sync_port port[NODES];
    void *object;
    struct qn_delegate d;
    uint64_t count; /* plain */
    qn_a32 ended;
    bool served;
} world;

static uint64_t add(void *ctx, uint32_t op, uint64_t arg)
{
    (void)ctx;
    (void)op;
    return world.count += arg;
}

static void *lines_of(size_t bytes)
{
    void *memory = aligned_alloc(QN_CACHELINE, bytes);
    cr_assert_not_null(memory);
    return memset(memory, 0, bytes);
}

static void make(const char *name, const char *lock)
{
    const struct qn_device_opts opts = {.nodes = NODES, .lanes = 1};
    const struct qn_delegate_opts o = {.type = qn_delegate_find(name),
                                       .lock = qn_lock_find(lock),
                                       .clients = NODES};
    uint64_t inc[NODES];
    memset(&world, 0, sizeof world);
    world.memory = lines_of(qn_words_shared.bytes(&opts));
    qn_words_shared.format(world.memory, &opts);
    for (uint32_t i = 0; i < NODES; i++) {
        inc[i] = 1 + i;
    }
    for (uint32_t i = 0; i < NODES; i++) {
        const struct qn_device_attach_opts a = {.memory = world.memory,
                                                .opts = &opts,
                                                .self = i,
                                                .incarnation = inc};
        cr_assert_eq(qn_words_shared.attach(&world.device[i], &a), QN_OK);
        cr_assert_eq(qn_sync_port_open(&world.port[i], world.device[i]), QN_OK);
    }
    world.object = lines_of(qn_delegate_bytes(&o));
    cr_assert_eq(qn_delegate_format(world.object, &o), QN_OK);
    cr_assert_eq(qn_delegate_open(&world.d, world.object, add, NULL), QN_OK);
    world.served = o.type->server != NULL;
}

static void serve(void)
{
    struct qn_delegate_server s = {.port = &world.port[0]};
    int rc = QN_OK;
    while (rc >= 0 && qn_load(&world.ended, QN_ACQUIRE) < NODES - 1) {
        rc = qn_delegate_poll(&world.d, &s);
    }
    (void)qn_delegate_stop(&world.d);
    if (qn_delegate_poll(&world.d, &s) != QN_EGONE) {
        qn_timed_fail("the server did not leave");
    }
}

static void node_main(void *ctx, uint32_t node)
{
    struct qn_delegate_client c;
    const struct qn_delegate_join_opts o = {.port = &world.port[node]};
    uint64_t before = 0;
    (void)ctx;
    if (world.served && node == 0) {
        serve();
        return;
    }
    if (qn_delegate_join(&world.d, &c, &o) != QN_OK) {
        qn_timed_fail("join");
    }
    for (uint32_t i = 0; i < CALLS; i++) {
        uint64_t now = 0;
        if (qn_delegate(&world.d, &c, 1, 1, &now) != QN_OK || now <= before) {
            qn_timed_fail("a call");
        }
        before = now;
    }
    qn_delegate_leave(&world.d, &c);
    qn_fetch_add(&world.ended, 1, QN_ACQ_REL);
}

static void run(const char *name, const char *lock)
{
    struct qn_tiled m;
    struct qn_prices *prices;
    struct qn_parse_error e = {{0}};
    struct qn_timed_result result;
    uint32_t core[NODES];
    cr_assert_eq(qn_tiled_load(&m, QN_DATA "/tilegx_8036.json", &e), QN_OK,
                 "%s", e.text);
    for (uint32_t i = 0; i < NODES; i++) {
        core[i] = i;
    }
    cr_assert_eq(qn_tiled_prices(&prices, &m, core, NODES), QN_OK);
    make(name, lock);
    const struct qn_timed_opts o = {
        .nodes = NODES, .prices = prices, .main = node_main};
    cr_assert_eq(qn_timed_run(&o, &result), QN_OK);
    cr_assert_null(result.fault, "%s", result.fault);
    cr_expect_eq(world.count, (NODES - world.served) * CALLS, "%lu",
                 world.count);
    for (uint32_t i = 0; i < NODES; i++) {
        qn_sync_port_close(&world.port[i]);
        qn_device_detach(world.device[i]);
    }
    free(world.object);
    free(world.memory);
    qn_timed_result_free(&result);
    qn_prices_destroy(prices);
}

Test(words_tilegx, hyblock_counts, .timeout = 60)
{
    run("lock", "hyblock");
}

Test(words_tilegx, hyb_comb_counts, .timeout = 60)
{
    run("hyb_comb", "ttas");
}

Test(words_tilegx, mp_server_counts, .timeout = 60)
{
    run("mp_server", "ttas");
}
