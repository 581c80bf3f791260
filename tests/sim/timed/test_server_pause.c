/*
 * The pauses of clients of shm_server on the simulated Xeon of 8 sockets: the
 * adaptive one has 0.9 of the best fixed one with 40 and 158 clients, 0.7 with
 * 8, and costs nothing where there is one client.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/machine/machine.h"
#include "core/sim/timed/coherent_file.h"
#include "core/sim/timed/timed.h"
#include "core/sync/delegate/delegate.h"
#include "tests/support/test.h"

/* Clients go on until then; the first half is to find the pause. */
#define UNTIL_NS 800000u
#define CORES    160u

static struct {
    struct qn_delegate d;
    struct qn_delegate_server server;
    qn_a64 counter;
    qn_a32 left;
    uint64_t operations;
} world;

static uint64_t add(void *ctx, uint32_t op, uint64_t arg)
{
    (void)ctx;
    (void)op;
    /* relaxed: one server. */
    const uint64_t now = qn_load(&world.counter, QN_RELAXED) + arg;
    qn_store(&world.counter, now, QN_RELAXED);
    return now;
}

static void client(void)
{
    struct qn_delegate_client c;
    uint64_t result, last = 0, now;
    cr_assert_eq(qn_delegate_join(&world.d, &c, NULL), QN_OK);
    do {
        cr_assert_eq(qn_delegate(&world.d, &c, 0, 1, &result), QN_OK);
        cr_assert_gt(result, last);
        last = result;
        now = qn_timed_clock() / 1000;
        world.operations += now > UNTIL_NS / 2 && now <= UNTIL_NS;
    } while (now <= UNTIL_NS);
    qn_delegate_leave(&world.d, &c);
    if (qn_fetch_add(&world.left, UINT32_MAX, QN_ACQ_REL) == 1) {
        cr_assert_eq(qn_delegate_stop(&world.d), QN_OK);
    }
}

static void node_main(void *ctx, uint32_t node)
{
    (void)ctx;
    if (node == 0) {
        cr_assert_eq(qn_delegate_serve(&world.d, &world.server), QN_OK);
    } else {
        client();
    }
}

/* The server's core first, and its hyper-thread idle. */
static void place(const struct qn_machine *m, uint32_t *core)
{
    uint32_t n = 1;
    core[0] = 0;
    for (uint32_t i = 1; i < m->n; i++) {
        if (m->core[i].phys != m->core[0].phys) {
            core[n++] = i;
        }
    }
}

static struct qn_coherent_opts prices;

/* @return operations in the time that counts. */
static uint64_t measure(const struct qn_machine *m, uint32_t clients,
                        enum qn_server_pause pause, uint32_t pause_ns)
{
    const struct qn_delegate_opts o = {.type = qn_delegate_find("shm_server"),
                                       .clients = clients,
                                       .server = {.pause = (uint8_t)pause,
                                                  .pause_ns = pause_ns,
                                                  .stride = 2,
                                                  .cores = CORES}};
    uint32_t core[CORES];
    struct qn_timed_opts run = {
        .nodes = clients + 1, .main = node_main, .seed = 1};
    struct qn_timed_result r;
    void *memory = aligned_alloc(QN_CACHELINE, qn_delegate_bytes(&o));
    memset(memory, 0, qn_delegate_bytes(&o));
    cr_assert_eq(qn_delegate_format(memory, &o), QN_OK);
    memset(&world, 0, sizeof world);
    cr_assert_eq(qn_delegate_open(&world.d, memory, add, NULL), QN_OK);
    qn_store(&world.left, clients, QN_RELAXED);
    place(m, core);
    cr_assert_eq(qn_coherent_create(&run.prices, m, core, run.nodes, &prices),
                 QN_OK);
    cr_assert_eq(qn_timed_run(&run, &r), QN_OK);
    cr_assert_null(r.fault);
    if (getenv("QN_VERBOSE") != NULL) {
        fprintf(stderr, "%3u clients, pause %u of %4u ns: %.2f M/s\n", clients,
                (unsigned)pause, pause_ns,
                (double)world.operations * 2000 / UNTIL_NS);
    }
    qn_timed_result_free(&r);
    qn_prices_destroy(run.prices);
    free(memory);
    return world.operations;
}

Test(server_pause, the_adaptive_one_comes_close_to_the_best, .timeout = 100)
{
    static const uint32_t clients[] = {1, 8, 40, 158};
    static const uint32_t fixed[] = {1000, 2500, 5000};
    static const char folder[] = QN_MACHINES "/westmere_8x10x2";
    struct qn_machine *m;
    struct qn_coherent_file file;
    cr_assert_eq(qn_machine_load(&m, folder, NULL), QN_OK);
    cr_assert_eq(qn_coherent_file_load(&file, folder, NULL), QN_OK);
    prices = qn_coherent_file_opts(&file);
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(clients); i++) {
        const uint64_t adaptive = measure(m, clients[i], QN_SERVER_ADAPTIVE, 0);
        const uint64_t none = measure(m, clients[i], QN_SERVER_NONE, 0);
        uint64_t best = none;
        for (uint32_t k = 0; k < QN_ARRAY_COUNT(fixed); k++) {
            const uint64_t with =
                measure(m, clients[i], QN_SERVER_FIXED, fixed[k]);
            best = QN_MAX(best, with);
        }
        /* With 8 clients a fixed pause of 1000 ns falls between two scans. */
        const uint64_t tenths = clients[i] == 8 ? 7 : 9;
        cr_assert_geq(adaptive * 10, best * tenths, "%u clients", clients[i]);
        cr_assert(clients[i] > 1 || adaptive * 11 >= none * 10, "one client");
    }
    qn_machine_destroy(m);
}
