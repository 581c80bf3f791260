/*
 * Executed against predicted: operations of core/group and core/coll over UMP
 * on the timed machine take as long as core/topo/predict says, on every machine
 * file, over every kind of tree, and exchanged. Both have the same costs, so
 * what differs is what the shipping code does beside sending and receiving: at
 * the median within 10 %, at worst within 25 %.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/coll/coll.h"
#include "core/sim/timed/coherent.h"
#include "core/topo/adaptive.h"
#include "core/topo/predict.h"
#include "core/topo/static_trees.h"
#include "loadgen/simulate/virtual.h"
#include "tests/sim/timed/worlds.h"
#include "tests/support/test.h"
#include "transports/registry.h"

/* There is no chance in it: when two runs of cells have been used, operations
 * are alike. */
#define OPS  5u
#define WARM 36u

static const char *const trees[] = {"adaptive",   "binary",  "fibonacci",
                                    "sequential", "cluster", "mst"};

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* @return the median operation in ps. */
static double execute(const struct qn_tree *tree, struct qn_prices *p,
                      enum qn_virtual op, bool exchange, double want_ps)
{
    struct qn_virtual_result r;
    const struct qn_virtual_opts o = {.op = op,
                                      .transport = qn_transport_at(0),
                                      .tree = tree,
                                      .prices = p,
                                      .exchange = exchange,
                                      .size = 8,
                                      .count = OPS,
                                      .warm = WARM,
                                      .gap_ns =
                                          (uint64_t)(2 * want_ps / 1000) + 100};
    cr_assert_eq(qn_virtual_run(&r, &o), QN_OK);
    cr_assert(r.wrong == 0 && !r.incomplete, "%lu wrong, %u of %u complete",
              r.wrong, r.count, OPS);
    double median = (double)r.took[OPS / 2];
    qn_virtual_result_free(&r);
    return median;
}

/* ---- all machines ---- */

static double *ratio;
static size_t ratios;

static void shape_named(struct qn_shape *s, const struct qn_machine *m,
                        const char *name)
{
    int err = strcmp(name, "adaptive") == 0
                  ? qn_adaptive_build(s, m, 0, QN_LEVEL_NODE)
                  : qn_static_build(s, m, name, 0, QN_LEVEL_NODE);
    cr_assert_eq(err, QN_OK, "%s", name);
}

/* @param name  A tree; NULL: an exchange. */
static void one_way(const struct qn_machine *m, const char *name,
                    enum qn_virtual op)
{
    static const enum qn_collective predicted[QN_VIRTUALS] = {
        QN_COLLECTIVE_BROADCAST, QN_COLLECTIVE_ACK, QN_COLLECTIVE_REDUCE,
        QN_COLLECTIVE_BARRIER,   QN_COLLECTIVE_ACK, QN_COLLECTIVE_BARRIER,
        QN_COLLECTIVE_2PC};
    static uint32_t core[QN_MEMBERS_MAX];
    static struct qn_shape s;
    static struct qn_tree tree;
    const struct qn_coherent_opts bare = {.bare = true};
    struct qn_prices *p;
    shape_named(&s, m, name != NULL ? name : "binary");
    for (uint32_t i = 0; i < m->n; i++) {
        core[i] = i;
    }
    cr_assert_eq(qn_tree_place(&tree, &s, core), QN_OK);
    cr_assert_eq(qn_coherent_create(&p, m, core, m->n, &bare), QN_OK);
    double ghz = m->facts.clock_ghz > 0 ? m->facts.clock_ghz : 2;
    double cycles = name != NULL ? qn_predict(m, &s, predicted[op], 1)
                                 : qn_predict_exchange(m, 1);
    double want = cycles * 1000 / ghz;
    double got = execute(&tree, p, op, name == NULL, want);
    ratio = realloc(ratio, (ratios + 1) * sizeof *ratio);
    ratio[ratios++] = got / want;
    if (getenv("QN_VERBOSE") != NULL) {
        fprintf(stderr, "%-24s %4u %-10s %-9s %9.0f %9.0f %.3f\n", m->name,
                m->n, name != NULL ? name : "exchange", qn_virtual_name(op),
                got, want, got / want);
    }
    qn_prices_destroy(p);
}

static void check_ratios(void)
{
    qsort(ratio, ratios, sizeof *ratio, by_size);
    cr_assert(ratio[0] > 0.75 && ratio[ratios - 1] < 1.25, "%.3f to %.3f",
              ratio[0], ratio[ratios - 1]);
    cr_assert(ratio[ratios / 2] > 0.9 && ratio[ratios / 2] < 1.1, "%.3f",
              ratio[ratios / 2]);
    free(ratio);
}

/* Every k-th core, so that groups span the whole machine. */
static struct qn_machine *group(const struct qn_machine *m, uint32_t n)
{
    uint32_t index[QN_MEMBERS_MAX];
    struct qn_machine *some;
    for (uint32_t i = 0; i < n; i++) {
        index[i] = (uint32_t)((uint64_t)i * m->n / n);
    }
    cr_assert_eq(qn_machine_restrict(&some, m, index, n), QN_OK);
    return some;
}

/* A sanitizer makes each of them several times slower, and has seen all code
 * in the small ones. */
#if defined(__SANITIZE_ADDRESS__)
#define GROUP_MAX 4u
#else
#define GROUP_MAX QN_MEMBERS_MAX
#endif

#define SMALL 16u /* groups that run all operations */

static bool runs(enum qn_virtual op, uint32_t n)
{
    return op < QN_VIRTUAL_CHANNEL ||
           (op == QN_VIRTUAL_CHANNEL ? n == 2 : n <= SMALL);
}

/* Of large groups, which take most of the time, every second tree: the others
 * on the next machine. */
static void every_tree(const struct qn_machine *m)
{
    static uint32_t machines;
    const uint32_t most = QN_MIN(m->n, GROUP_MAX);
    const uint32_t left_out = machines++ % 2;
    for (uint32_t n = 2; n <= most;
         n = n < most ? QN_MIN(2 * n, most) : n + 1) {
        struct qn_machine *some = group(m, n);
        for (uint32_t t = 0; t < QN_ARRAY_COUNT(trees); t++) {
            const bool chosen = n <= SMALL || t % 2 != left_out;
            for (uint32_t op = 0; op < QN_VIRTUALS; op++) {
                if (chosen && runs((enum qn_virtual)op, n)) {
                    one_way(some, trees[t], (enum qn_virtual)op);
                }
            }
        }
        qn_machine_destroy(some);
    }
}

Test(predicted, broadcasts_take_as_long_as_predicted, .timeout = 250)
{
    cr_assert_eq(worlds_each(every_tree), 15);
    check_ratios();
}

/* ---- exchanges ---- */

/* Of few members an exchange takes no longer than the best of the trees. */
static void every_exchange(const struct qn_machine *m)
{
    for (uint32_t n = 2; n <= QN_MIN(m->n, QN_MIN(SMALL, GROUP_MAX));
         n += n < QN_COLL_EXCHANGE_FEW ? 1 : n / 2) {
        struct qn_machine *some = group(m, n);
        const double all = qn_predict_exchange(some, 1);
        double least = INFINITY;
        one_way(some, NULL, QN_VIRTUAL_BARRIER);
        one_way(some, NULL, QN_VIRTUAL_ALLREDUCE);
        for (uint32_t t = 0; t < QN_ARRAY_COUNT(trees); t++) {
            struct qn_shape s;
            shape_named(&s, some, trees[t]);
            least =
                QN_MIN(least, qn_predict(some, &s, QN_COLLECTIVE_BARRIER, 1));
        }
        cr_assert(n > QN_COLL_EXCHANGE_FEW || all < 1.01 * least,
                  "%s, %u of them: %.0f, over a tree %.0f", m->name, n, all,
                  least);
        qn_machine_destroy(some);
    }
}

Test(predicted, exchanges_take_as_long_as_predicted, .timeout = 100)
{
    cr_assert_eq(worlds_each(every_exchange), 15);
    check_ratios();
}
