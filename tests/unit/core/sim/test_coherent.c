/*
 * Optional terms of coherent machines: hyper-threads that share a core, links
 * between sockets that carry one transfer at a time. Both are off unless asked
 * for.
 *
 * Eight cores at 1 GHz: s(u, v) = 100 (150 between siblings, so that a defect
 * shows), r(u, v) = 200. Cores 2i and 2i + 1 are
 * threads of one physical core; cores 0 to 3 and 4 to 7 are the two sockets.
 */
#include <string.h>

#include "core/base/atomic.h"
#include "core/base/err.h"
#include "core/sim/timed/coherent.h"
#include "core/sim/timed/timed.h"
#include "tests/support/test.h"

#define CORES 8u
#define CYCLE UINT64_C(1000) /* ps */

static struct {
    alignas(QN_CACHELINE) qn_a64 line[CORES][QN_CACHELINE / sizeof(qn_a64)];
    void (*node[CORES])(void);
    uint64_t took[CORES]; /* cycles */
} world;

static void node_main(void *ctx, uint32_t node)
{
    (void)ctx;
    if (world.node[node] != NULL) {
        world.node[node]();
    }
}

static void begin(void)
{
    memset(&world, 0, sizeof world);
}

static struct qn_machine *machine(void)
{
    struct qn_machine *m;
    cr_assert_eq(qn_machine_create(&m, CORES), QN_OK);
    for (uint32_t u = 0; u < CORES; u++) {
        m->core[u].phys = u / 2;
        m->core[u].socket = u / 4;
        for (uint32_t v = 0; v < CORES; v++) {
            m->send[u * CORES + v] = u == v ? 0 : u / 2 == v / 2 ? 150 : 100;
            m->receive[u * CORES + v] = u == v ? 0 : 200;
        }
    }
    m->facts.clock_ghz = 1;
    return m;
}

static struct qn_timed_result run(const struct qn_coherent_opts *c)
{
    static const uint32_t core[CORES] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct qn_machine *m = machine();
    struct qn_timed_opts o = {.nodes = CORES, .main = node_main};
    struct qn_timed_result r;
    cr_assert_eq(qn_coherent_create(&o.prices, m, core, CORES, c), QN_OK);
    cr_assert_eq(qn_timed_run(&o, &r), QN_OK);
    qn_prices_destroy(o.prices);
    qn_machine_destroy(m);
    return r;
}

static void work_cycles(uint64_t cycles)
{
    qn_timed_work(cycles * CYCLE);
}

static qn_a64 *line(uint32_t i)
{
    return &world.line[i][0];
}

/* ---- hyper-threads ---- */

static void write_line(void)
{
    qn_store(line(0), 1, QN_RELEASE);
}

static void timed_add(uint64_t at, uint32_t count)
{
    qn_timed_sleep_until(at * CYCLE);
    for (uint32_t i = 0; i < count; i++) {
        (void)qn_fetch_add(line(0), 1, QN_ACQ_REL);
    }
    world.took[qn_sim.self] = qn_timed_clock() / CYCLE - at;
}

static void add_at_1000(void)
{
    timed_add(1000, 1);
}

static void add_at_1010(void)
{
    timed_add(1010, 1);
}

static void add_at_1020(void)
{
    timed_add(1020, 1);
}

static void add_200_times(void)
{
    timed_add(1000, 200);
}

/* Node 4 takes the line at 1000, until 1300; 0 asks at 1010, 5 at 1020. A
 * read-modify-write of a line in the own cache takes 20, of another one 300. */
Test(coherent, a_request_of_the_holders_hyper_thread_is_served_first,
     .init = begin)
{
    world.node[1] = write_line;
    world.node[4] = add_at_1000;
    world.node[0] = add_at_1010;
    world.node[5] = add_at_1020;
    struct qn_timed_result r =
        run(&(struct qn_coherent_opts){.hyper_threads = true});
    cr_assert_eq(world.took[4], 300);
    cr_assert_eq(world.took[5], 300 + 20 - 20);
    cr_assert_eq(world.took[0], 320 + 300 - 10);
    qn_timed_result_free(&r);
    r = run(&(struct qn_coherent_opts){0});
    cr_assert_eq(world.took[0], 300 + 300 - 10);
    cr_assert_eq(world.took[5], 600 + 300 - 20);
    qn_timed_result_free(&r);
}

/* 16 read-modify-writes of the two, of 20 each, come before that of node 0. */
Test(coherent, two_hyper_threads_do_not_keep_a_line_for_ever, .init = begin)
{
    world.node[4] = add_200_times;
    world.node[5] = add_200_times;
    world.node[0] = add_at_1010;
    struct qn_timed_result r =
        run(&(struct qn_coherent_opts){.hyper_threads = true});
    cr_assert(world.took[0] >= 16 * 20 + 300 - 10 &&
                  world.took[0] <= 18 * 20 + 300,
              "%lu", world.took[0]);
    qn_timed_result_free(&r);
}

static void read_at_1000(void)
{
    work_cycles(1000);
    (void)qn_load(line(0), QN_ACQUIRE);
}

static void read_at_2000(void)
{
    work_cycles(2000);
    (void)qn_load(line(0), QN_ACQUIRE);
}

static void write_at_2000(void)
{
    work_cycles(2000);
    qn_store(line(0), 2, QN_RELEASE);
}

Test(coherent, a_copy_of_one_hyper_thread_is_a_copy_of_both, .init = begin)
{
    world.node[0] = write_line;
    world.node[1] = read_at_1000; /* the sibling of the writer */
    world.node[2] = read_at_1000;
    world.node[3] = read_at_2000; /* the sibling of a reader */
    struct qn_timed_result r =
        run(&(struct qn_coherent_opts){.hyper_threads = true});
    cr_assert_eq(r.node[1].reads, 0);
    cr_assert_eq(r.node[2].reads, 1);
    cr_assert_eq(r.node[3].reads, 0);
    qn_timed_result_free(&r);
    r = run(&(struct qn_coherent_opts){0});
    cr_assert_eq(r.node[1].reads, 1);
    cr_assert_eq(r.node[3].reads, 1);
    qn_timed_result_free(&r);
}

Test(coherent, a_store_takes_no_copy_away_from_the_own_sibling, .init = begin)
{
    world.node[0] = write_at_2000;
    world.node[1] = read_at_1000;
    struct qn_timed_result r =
        run(&(struct qn_coherent_opts){.hyper_threads = true});
    cr_assert_eq(r.node[0].writes, 0);
    qn_timed_result_free(&r);
    r = run(&(struct qn_coherent_opts){0});
    cr_assert_eq(r.node[0].writes, 1);
    qn_timed_result_free(&r);
}

Test(coherent, a_store_of_a_sibling_takes_copies_of_other_cores_away,
     .init = begin)
{
    world.node[0] = write_line;
    world.node[1] = write_at_2000;
    world.node[4] = read_at_1000;
    struct qn_timed_result r =
        run(&(struct qn_coherent_opts){.hyper_threads = true});
    cr_assert_eq(r.node[1].writes, 1);
    cr_assert_eq(r.node[1].write, 100 * CYCLE, "%lu", r.node[1].write);
    qn_timed_result_free(&r);
}

static void compute(void)
{
    work_cycles(10000);
    world.took[qn_sim.self] = qn_timed_clock() / CYCLE;
}

static void compute_less(void)
{
    work_cycles(5000);
    world.took[qn_sim.self] = qn_timed_clock() / CYCLE;
}

Test(coherent, hyper_threads_that_both_compute_have_half_of_a_core,
     .init = begin)
{
    world.node[0] = compute;
    world.node[1] = compute_less;
    world.node[2] = compute; /* its sibling is idle */
    struct qn_timed_result r =
        run(&(struct qn_coherent_opts){.hyper_threads = true});
    cr_assert(world.took[0] == 15000, "%lu", world.took[0]);
    cr_assert(world.took[1] >= 9900 && world.took[1] <= 10000, "%lu",
              world.took[1]);
    cr_assert_eq(world.took[2], 10000);
    cr_assert_eq(r.node[0].worked, 10000 * CYCLE);
    cr_assert_eq(r.node[0].waited, 5000 * CYCLE);
    qn_timed_result_free(&r);
    r = run(&(struct qn_coherent_opts){0});
    cr_assert_eq(world.took[0], 10000);
    qn_timed_result_free(&r);
}

static void look_1000(void)
{
    for (uint32_t i = 0; i < 900; i++) { /* not yet taken for a spin */
        (void)qn_load(line(qn_sim.self), QN_RELAXED);
    }
    world.took[qn_sim.self] = qn_timed_clock() / CYCLE;
}

Test(coherent, hits_of_hyper_threads_are_issued_one_at_a_time, .init = begin)
{
    world.node[0] = look_1000;
    world.node[1] = look_1000;
    world.node[2] = look_1000;
    struct qn_timed_result r =
        run(&(struct qn_coherent_opts){.hyper_threads = true});
    cr_assert(world.took[0] > 7100 && world.took[0] <= 7200, "%lu",
              world.took[0]);
    cr_assert_eq(world.took[2], 3600);
    qn_timed_result_free(&r);
}

/* ---- links ---- */

static void write_all(void)
{
    for (uint32_t i = 0; i < 4; i++) {
        qn_store(line(i), 1, QN_RELEASE);
    }
}

static void read_one(void)
{
    work_cycles(5000);
    (void)qn_load(line(qn_sim.self % 4), QN_ACQUIRE);
    world.took[qn_sim.self] = qn_timed_clock() / CYCLE - 5000;
}

static uint64_t took(uint32_t from, uint32_t to)
{
    uint64_t sum = 0;
    for (uint32_t i = from; i < to; i++) {
        sum += world.took[i];
    }
    return sum;
}

/* Four lines cross from socket 0 to socket 1, and three stay at home. */
static void cross(double link)
{
    world.node[0] = write_all;
    for (uint32_t i = 1; i < CORES; i++) {
        world.node[i] = read_one;
    }
    struct qn_timed_result r =
        run(&(struct qn_coherent_opts){.link = link, .serve = 0.001});
    qn_timed_result_free(&r);
}

Test(coherent, a_link_carries_one_transfer_at_a_time, .init = begin)
{
    cross(0);
    cr_assert_eq(took(1, 4), 3 * 200);
    cr_assert(took(4, 8) <= 4 * 200 + 4, "%lu", took(4, 8));
    cross(0.5);
    cr_assert(took(1, 4) <= 3 * 200 + 4, "%lu", took(1, 4));
    /* Each waits for half of each before it: 0 + 100 + 200 + 300. */
    cr_assert(took(4, 8) >= 4 * 200 + 600 && took(4, 8) <= 4 * 200 + 604, "%lu",
              took(4, 8));
}

Test(coherent, a_share_of_a_link_above_1_is_refused)
{
    static const uint32_t core[2] = {0, 1};
    struct qn_machine *m = machine();
    struct qn_prices *p;
    cr_assert_eq(qn_coherent_create(&p, m, core, 2,
                                    &(struct qn_coherent_opts){.link = 1.5}),
                 QN_EINVAL);
    qn_machine_destroy(m);
}
