/*
 * The rows of `quoin sim replay locks` that take few runs, with three seeds,
 * two of them with jitter: what holds goes on holding, and what does not says
 * why.
 */
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/simulate/locks/locks_check.h"
#include "loadgen/simulate/locks/locks_queue.h"
#include "loadgen/simulate/locks/locks_replay.h"
#include "loadgen/simulate/locks/locks_run.h"
#include "tests/support/test.h"

/* Beginnings of the rows that stand with their reason. */
static const char *const missed[] = {
    "Opteron: best server",
};

struct seen {
    uint32_t rows, missed;
};

static bool stands(const struct qn_replay_row *r)
{
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(missed); i++) {
        if (strncmp(r->what, missed[i], strlen(missed[i])) == 0) {
            return r->why != NULL;
        }
    }
    return false;
}

static void check(void *ctx, const struct qn_replay_row *r)
{
    struct seen *s = ctx;
    bool holds = qn_replay_row_holds(r);
    cr_assert(holds != stands(r), "%s %s: %f, limit %f", r->id, r->what, r->got,
              r->limit);
    s->rows++;
    s->missed += !holds;
}

static void replay(uint64_t seed, double jitter)
{
    struct seen s = {0};
    struct qn_parse_error e = {{0}};
    const struct qn_locks_replay_opts o = {
        .machines = QN_MACHINES, .seed = seed, .jitter = jitter, .small = true};
    int rc = qn_locks_replay(&o, check, &s, &e);
    cr_assert_eq(rc, QN_OK, "%s%s", qn_strerror(rc), e.text);
    cr_assert_eq(s.missed, QN_ARRAY_COUNT(missed), "docs/replayed.md");
    cr_assert_geq(s.rows, 20);
}

Test(locks_replay, rows_hold_or_say_why_not, .timeout = 200)
{
    replay(1, 0);
    replay(2, 0.05);
    replay(3, 0.05);
}

static struct qn_locks_machine tilegx(void)
{
    struct qn_locks_machine m;
    cr_assert_eq(
        qn_locks_machine_load(&m, QN_MACHINES "/tilegx_8036.json", NULL),
        QN_OK);
    return m;
}

Test(locks_replay, the_same_run_has_the_same_result)
{
    struct qn_locks_machine m = tilegx();
    struct qn_locks_result r[2];
    for (uint32_t i = 0; i < 2; i++) {
        const struct qn_locks_opts o = {.machine = &m,
                                        .backend = "mcs",
                                        .threads = 8,
                                        .pause = 50,
                                        .increments = 1,
                                        .seed = 7};
        cr_assert_eq(qn_locks_run(&r[i], &o), QN_OK);
        cr_assert(!r[i].wrong && r[i].mops > 0 && r[i].latency_ns > 0);
    }
    cr_assert_eq(memcmp(&r[0], &r[1], sizeof r[0]), 0);
}

Test(locks_replay, what_does_not_exist_is_refused)
{
    struct qn_locks_machine m = tilegx();
    struct qn_locks_result r;
    struct qn_locks_opts o = {.machine = &m, .backend = "none", .threads = 2};
    cr_assert_eq(qn_locks_run(&r, &o), QN_EINVAL);
    o.backend = "mcs";
    o.threads = 37;
    cr_assert_eq(qn_locks_run(&r, &o), QN_EINVAL, "cores of the 8036");
}

/* ---- one figure, and seeds ---- */

struct figure {
    const char *id;
    uint32_t rows, differ;
};

static void only_of_it(void *ctx, const struct qn_replay_row *r)
{
    struct figure *f = ctx;
    cr_assert_eq(strncmp(r->id, f->id, strlen(f->id)), 0, "%s", r->id);
    cr_assert(r->id[strlen(f->id)] == 0 || r->id[strlen(f->id)] == ' ', "%s",
              r->id);
    f->rows++;
}

static void count_different(void *ctx, const struct qn_replay_row *r,
                            uint64_t seed, double jitter)
{
    struct figure *f = ctx;
    (void)r;
    (void)seed;
    (void)jitter;
    f->differ++;
}

Test(locks_replay, one_figure_has_the_same_verdicts_with_any_seed)
{
    struct figure f = {.id = "L1"};
    struct qn_parse_error e = {{0}};
    const struct qn_locks_replay_opts o = {
        .machines = QN_MACHINES, .seed = 1, .small = true, .only = f.id};
    struct qn_locks_check c = {
        .each = only_of_it, .differs = count_different, .ctx = &f};
    cr_assert_eq(qn_locks_check(&c, &o, &e), QN_OK, "%s", e.text);
    cr_assert_eq(f.rows, 1, "L1, and neither L10 nor L6 of its runs");
    cr_assert_eq(c.rows, f.rows);
    cr_assert_eq(c.runs, 2 * QN_LOCKS_CHECK_SEEDS);
    cr_assert_eq(f.differ, 0);
}

/* ---- queues and stacks ---- */

static struct qn_locks_queue_result queue(const char *type, const char *backend,
                                          uint32_t threads, int rc)
{
    struct qn_locks_machine m = tilegx();
    struct qn_locks_queue_result r;
    const struct qn_locks_queue_opts o = {.machine = &m,
                                          .type = type,
                                          .backend = backend,
                                          .threads = threads,
                                          .pause = 50,
                                          .seed = 7};
    cr_assert_eq(qn_locks_queue_run(&r, &o), rc, "%s", type);
    return r;
}

Test(locks_replay, queues_and_stacks_lose_nothing)
{
    static const struct {
        const char *type, *backend;
        uint32_t threads;
    } each[] = {
        {"ms1", "mp_server", 35},  {"ms2", "mp_server", 34},
        {"ms2", "shm_server", 34}, {"ms1", "hyblock", 8},
        {"list", "hyb_comb", 36},  {"lcrq32", NULL, 36},
        {"treiber", NULL, 8},
    };
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(each); i++) {
        const struct qn_locks_queue_result r =
            queue(each[i].type, each[i].backend, each[i].threads, QN_OK);
        cr_assert(!r.wrong && r.mops > 0, "%s", each[i].type);
    }
    const struct qn_locks_queue_result a = queue("ms1", "cc_synch", 8, QN_OK);
    const struct qn_locks_queue_result b = queue("ms1", "cc_synch", 8, QN_OK);
    cr_assert_eq(memcmp(&a, &b, sizeof a), 0);
}

Test(locks_replay, queues_that_do_not_exist_are_refused)
{
    (void)queue("none", NULL, 2, QN_EINVAL);
    (void)queue("ms1", NULL, 2, QN_EINVAL);
    (void)queue("lcrq", "mcs", 2, QN_EINVAL);
    (void)queue("ms1", "none", 2, QN_EINVAL);
    (void)queue("lcrq", NULL, 37, QN_EINVAL);
    (void)queue("ms2", "mp_server", 35, QN_EINVAL);
}

/* A second server has a physical core of the first one's socket. */
Test(locks_replay, two_servers_share_a_socket_and_no_core)
{
    struct qn_locks_machine m;
    uint32_t core[158], domain[158];
    cr_assert_eq(
        qn_locks_machine_load(&m, QN_MACHINES "/westmere_8x10x2", NULL), QN_OK);
    cr_assert_eq(qn_locks_machine_cores(&m, 158, 2, core, domain), QN_OK);
    cr_assert_eq(core[0], 0);
    cr_assert_eq(domain[1], domain[0]);
    for (uint32_t i = 0; i < 158; i++) {
        for (uint32_t k = 0; k < 2; k++) {
            cr_assert(i == k ||
                      m.m->core[core[i]].phys != m.m->core[core[k]].phys);
        }
    }
    cr_assert_eq(qn_locks_machine_cores(&m, 159, 2, core, domain), QN_EINVAL);
    qn_locks_machine_free(&m);
}

/* The first is core 0; its sibling stays idle; sockets in turn. */
Test(locks_replay, threads_are_dealt_round_robin_over_the_sockets)
{
    struct qn_locks_machine m;
    uint32_t core[159], domain[159];
    cr_assert_eq(
        qn_locks_machine_load(&m, QN_MACHINES "/westmere_8x10x2", NULL), QN_OK);
    cr_assert_eq(qn_locks_machine_cores(&m, 159, 1, core, domain), QN_OK);
    cr_assert_eq(core[0], 0);
    uint32_t seen[8] = {0};
    for (uint32_t i = 1; i < 159; i++) {
        cr_assert_neq(m.m->core[core[i]].phys, m.m->core[0].phys);
        seen[domain[i]]++;
    }
    for (uint32_t i = 1; i < 8; i++) {
        cr_assert_neq(domain[i], domain[i + 1]);
        cr_assert_eq(seen[i], 20);
    }
    cr_assert_eq(seen[0], 18);
    cr_assert_eq(qn_locks_machine_cores(&m, 160, 1, core, domain), QN_EINVAL);
    qn_locks_machine_free(&m);
}
