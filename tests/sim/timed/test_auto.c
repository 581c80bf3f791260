/*
 * `auto` beside each backend that it chooses from, on a simulated Xeon of 8
 * sockets and a TILE-Gx: 10000 operations after the begin it has 0.95 of the
 * best one. With QN_AUTO_FULL=1 all objects and numbers of threads are run,
 * with three seeds, and what is measured is printed (docs/measurements.md).
 */
#include <stdio.h>
#include <stdlib.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/simulate/locks/auto_run.h"
#include "tests/support/test.h"

#define PAUSE  64u  /* turns of a loop, as of quoin bench */
#define JITTER 0.05 /* without, threads that take turns stay in step */

/* With more threads a lock of its kind has a few percent of a combiner, and its
 * failed attempts take minutes. */
#define LOCK_MAX 40u

static const char *const load_name[] = {"counter", "queue", "integers"};

/* The mean of seeds 1 to `seeds`. */
static double rate(const struct qn_locks_machine *m, const char *backend,
                   enum qn_auto_load load, uint32_t threads, uint32_t seeds)
{
    double sum = 0;
    for (uint32_t seed = 1; seed <= seeds; seed++) {
        struct qn_auto_run_result r;
        const struct qn_auto_run_opts o = {.machine = m,
                                           .backend = backend,
                                           .load = load,
                                           .threads = {threads, 0},
                                           .phases = 1,
                                           .every = 25000,
                                           .skip = 10000,
                                           .pause = PAUSE,
                                           .seed = seed,
                                           .jitter = JITTER};
        cr_assert_eq(qn_auto_run(&r, &o), QN_OK);
        cr_assert_not(r.wrong, "%s, %u threads", backend, threads);
        sum += r.mops[0];
    }
    return sum / seeds;
}

/* @return of the best one. */
static double compare(const struct qn_locks_machine *m, enum qn_auto_load load,
                      uint32_t threads, uint32_t seeds)
{
    static const char *const fixed[] = {"cc_synch", "h_synch", "lock"};
    const double chosen = rate(m, "auto", load, threads, seeds);
    double best = 0;
    for (uint32_t i = threads > LOCK_MAX ? 2 : 3; i-- > 0;) {
        if (i != 1 || !m->is_tiled) { /* a mesh is one domain */
            best = QN_MAX(best, rate(m, fixed[i], load, threads, seeds));
        }
    }
    fprintf(stderr, "%-8s %3u threads: %6.2f of %6.2f M/s, %.2f\n",
            load_name[load], threads, chosen, best, chosen / best);
    return chosen / best;
}

static uint32_t next_of(uint32_t n)
{
    return n < 4 ? n + 1 : n < 8 ? n + 2 : n < 40 ? n + 4 : n + 20;
}

static void compare_all(const struct qn_locks_machine *m, uint32_t most)
{
    for (uint32_t load = 0; load < QN_AUTO_LOADS; load++) {
        for (uint32_t n = 1; n <= most; n = next_of(n)) {
            (void)compare(m, (enum qn_auto_load)load, n, 3);
        }
    }
}

struct point {
    enum qn_auto_load load;
    uint32_t threads;
};

static void check(const char *machine, uint32_t most, const struct point *p,
                  uint32_t points)
{
    struct qn_locks_machine m;
    cr_assert_eq(qn_locks_machine_load(&m, machine, NULL), QN_OK);
    if (getenv("QN_AUTO_FULL") != NULL) {
        compare_all(&m, most);
    } else {
        for (uint32_t i = 0; i < points; i++) {
            cr_expect_geq(compare(&m, p[i].load, p[i].threads, 1), 0.95);
        }
    }
    qn_locks_machine_free(&m);
}

Test(auto, is_close_to_the_best_on_a_machine_of_sockets, .timeout = 1200)
{
    static const struct point p[] = {{QN_AUTO_LOAD_QUEUE, 1},
                                     {QN_AUTO_LOAD_COUNTER, 3},
                                     {QN_AUTO_LOAD_INTEGERS, 4}};
    check(QN_MACHINES "/westmere_8x10x2", 160, p, QN_ARRAY_COUNT(p));
}

Test(auto, is_close_to_the_best_on_a_mesh, .timeout = 1200)
{
    static const struct point p[] = {{QN_AUTO_LOAD_QUEUE, 4},
                                     {QN_AUTO_LOAD_INTEGERS, 8}};
    check(QN_MACHINES "/tilegx_8036.json", 36, p, QN_ARRAY_COUNT(p));
}
