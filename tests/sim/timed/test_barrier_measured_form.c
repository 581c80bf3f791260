/* Barriers that measure when their members join, on the timed machine: they
 * find its prices, whatever one member does meanwhile. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/barrier/measured/measured_barrier.h"
#include "core/barrier/selection/selection.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/machine/machine.h"
#include "core/sim/timed/coherent.h"
#include "core/sim/timed/timed.h"
#include "tests/support/test.h"

#define EPISODES     3u
#define MEMBERS_MOST 32u

static struct {
    void *memory;
    uint32_t members;
    const char *form[MEMBERS_MOST]; /* of each that has joined */
    uint32_t entered[EPISODES]; /* private to the thread that runs all nodes */
    uint32_t left;
} world;

static void node(void *ctx, uint32_t member)
{
    struct qn_barrier_member me;
    (void)ctx;
    if (qn_measured_barrier_join(world.memory, member, NULL, &me) != QN_OK) {
        qn_timed_fail("a member has no seat");
    }
    world.form[member] = qn_barrier_form_name(&me);
    for (uint32_t e = 0; e < EPISODES; e++) {
        world.entered[e]++;
        qn_barrier_wait(&me);
        if (world.entered[e] != world.members) {
            qn_timed_fail("a member left before all had entered");
        }
    }
    world.left++;
}

static struct qn_machine *machine(const char *name, uint32_t n)
{
    struct qn_parse_error bad = {""};
    struct qn_machine *all = NULL, *some = NULL;
    uint32_t index[MEMBERS_MOST];
    char path[256];
    snprintf(path, sizeof path, QN_MACHINES "/%s", name);
    cr_assert_eq(qn_machine_load(&all, path, &bad), QN_OK, "%s", bad.text);
    for (uint32_t i = 0; i < n; i++) {
        index[i] = i;
    }
    cr_assert_eq(qn_machine_restrict(&some, all, index, n), QN_OK);
    qn_machine_destroy(all);
    return some;
}

static void run(const struct qn_machine *m, const struct qn_sim_fault *fault)
{
    uint32_t core[MEMBERS_MOST];
    const struct qn_coherent_opts c = {.clock_ghz = 2, .bare = true};
    const struct qn_barrier_opts o = {.members = m->n, .cores = m->n};
    struct qn_timed_opts t = {.nodes = m->n,
                              .main = node,
                              .seed = 1,
                              .until_ns = QN_S,
                              .fault = fault,
                              .faults = fault != NULL};
    struct qn_timed_result r;
    const size_t bytes = qn_measured_barrier_bytes(&o);
    memset(&world, 0, sizeof world);
    world.members = m->n;
    for (uint32_t i = 0; i < m->n; i++) {
        core[i] = i;
    }
    world.memory = aligned_alloc(QN_CACHELINE, bytes);
    cr_assert_eq(qn_measured_barrier_format(world.memory, bytes, &o), QN_OK);
    cr_assert_eq(qn_coherent_create(&t.prices, m, core, m->n, &c), QN_OK);
    cr_assert_eq(qn_timed_run(&t, &r), QN_OK);
    cr_expect_null(r.fault, "%s", r.fault);
    if (getenv("QN_SHOW_RUNS") != NULL) {
        printf("%s, %u: %s, %.1f us\n", m->name, m->n, world.form[0],
               (double)r.clock / QN_PS_PER_NS / QN_US);
    }
    qn_timed_result_free(&r);
    qn_prices_destroy(t.prices);
    free(world.memory);
}

static void expect_form(const char *form)
{
    cr_expect_eq(world.left, world.members);
    for (uint32_t i = 0; i < world.members; i++) {
        cr_assert_not_null(world.form[i]);
        cr_expect_str_eq(world.form[i], form, "member %u: %s", i,
                         world.form[i]);
    }
}

Test(barrier_measured_form, is_that_of_the_prices_of_the_machine)
{
    static const struct {
        const char *machine, *form;
        uint32_t members;
    } all[] = {{"graviton3_1x64", "dissemination", 2},
               {"graviton3_1x64", "dissemination", 16},
               {"westmere_8x10x2", "tree", 32}};
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(all); i++) {
        struct qn_machine *m = machine(all[i].machine, all[i].members);
        struct qn_barrier_selection s;
        cr_assert_eq(qn_barrier_select(&s, m, m->n), QN_OK);
        cr_expect_str_eq(s.form, all[i].form);
        run(m, NULL);
        expect_form(all[i].form);
        qn_machine_destroy(m);
    }
}

/* It stops within its pairs, for longer than the others look. */
Test(barrier_measured_form, of_members_one_of_which_stalls_is_the_same)
{
    struct qn_machine *m = machine("graviton3_1x64", 8);
    for (uint64_t from = 3; from <= 48; from *= 4) {
        const struct qn_sim_fault stop = {.kind = QN_SIM_FAULT_STOP,
                                          .node = 3,
                                          .from_ns = from * QN_US,
                                          .until_ns = 5 * QN_MS};
        run(m, &stop);
        expect_form("dissemination");
    }
    qn_machine_destroy(m);
}

/* None passes the barrier, as if it had never come. */
Test(barrier_measured_form, a_member_that_dies_while_it_measures_holds_up_all)
{
    struct qn_machine *m = machine("graviton3_1x64", 8);
    const uint64_t accesses[] = {1, 50, 1000};
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(accesses); i++) {
        const struct qn_sim_fault kill = {
            .kind = QN_SIM_FAULT_KILL, .node = i * 3, .access = accesses[i]};
        run(m, &kill);
        cr_expect_eq(world.left, 0);
        cr_expect_eq(world.entered[0], 0, "kill %u: %u joined", i,
                     world.entered[0]);
    }
    qn_machine_destroy(m);
}
