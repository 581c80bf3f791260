/*
 * Executed against predicted: broadcasts of core/group over UMP on the timed
 * machine take as long as core/topo/predict says, on every machine file and
 * over every kind of tree. Both have the same costs, so what differs is what
 * the shipping code does beside sending and receiving: at the median within
 * 10 %, at worst within 25 %.
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/group/group.h"
#include "core/sim/timed/coherent.h"
#include "core/sim/timed/timed.h"
#include "core/topo/adaptive.h"
#include "core/topo/predict.h"
#include "core/topo/static_trees.h"
#include "tests/sim/timed/worlds.h"
#include "tests/support/test.h"
#include "transports/registry.h"

#define CELLS 128u /* used in runs of 16 */
#define WARM  64u
#define OPS   15u

static const char *const trees[] = {"adaptive",   "binary",  "fibonacci",
                                    "sequential", "cluster", "mst"};

struct end {
    struct qn_qp *qp[QN_NODES_MAX];
    struct qn_context *context;
    uint64_t got;
};

static struct world {
    uint32_t n;
    bool acked;
    uint64_t gap_ns; /* between two operations: longer than one */
    struct qn_tree tree;
    struct end end[QN_NODES_MAX];
    void *lane[QN_NODES_MAX][2]; /* by child: down from its parent, and up */
    qn_ps_t sent[WARM + OPS];
    qn_ps_t last[WARM + OPS]; /* when the last node had it */
} w;

static void deliver(void *ctx, const void *msg, size_t len)
{
    struct end *e = ctx;
    uint64_t number;
    if (len != sizeof number) {
        qn_timed_fail("another length than was sent");
    }
    memcpy(&number, msg, sizeof number);
    if (number != e->got) {
        qn_timed_fail("another number than was sent");
    }
    w.last[number] = QN_MAX(w.last[number], qn_timed_clock());
    e->got++;
}

static void turn(struct end *e)
{
    uint32_t found = qn_context_poll(e->context, 64);
    (void)qn_context_flush(e->context);
    if (found == 0) {
        qn_pause();
    }
}

static void root(struct end *e)
{
    for (uint64_t i = 0; i < WARM + OPS; i++) {
        const struct qn_slice part = {(const uint8_t *)&i, sizeof i};
        uint64_t number, dropped = 0;
        qn_work(w.gap_ns);
        w.sent[i] = qn_timed_clock();
        int rc = w.acked ? qn_context_bcast_acked(e->context, &part, 1, &number)
                         : qn_context_bcast(e->context, &part, 1, &dropped);
        if (rc != QN_OK || dropped != 0) {
            qn_timed_fail("no room for a broadcast");
        }
        (void)qn_context_flush(e->context);
        while (w.acked && qn_context_acked(e->context) <= i) {
            turn(e);
        }
        if (w.acked) {
            w.last[i] = qn_timed_clock();
        }
    }
}

static void node(void *ctx, uint32_t i)
{
    struct end *e = &w.end[i];
    (void)ctx;
    if (i == w.tree.root) {
        root(e);
        return;
    }
    while (e->got < WARM + OPS ||
           (w.acked && qn_context_acked(e->context) < WARM + OPS)) {
        turn(e);
    }
    (void)qn_context_flush(e->context); /* the last acknowledgement */
}

static void open_end(uint32_t self, uint32_t peer, void *tx, void *rx)
{
    const struct qn_qp_opts o = {.tx = tx,
                                 .rx = rx,
                                 .cells = CELLS,
                                 .self = self,
                                 .peer = peer,
                                 .self_inc = 1,
                                 .peer_inc = 1};
    cr_assert_eq(qn_transport_at(0)->open(&w.end[self].qp[peer], &o), QN_OK);
}

static void open_edges(void)
{
    size_t bytes = qn_transport_at(0)->lane_bytes(CELLS);
    for (uint32_t v = 0; v < w.n; v++) {
        if (v == w.tree.root) {
            continue;
        }
        for (uint32_t i = 0; i < 2; i++) {
            if (w.lane[v][i] == NULL) {
                w.lane[v][i] = aligned_alloc(QN_CACHELINE, bytes);
            }
            memset(w.lane[v][i], 0, bytes);
        }
        open_end(w.tree.parent[v], v, w.lane[v][0], w.lane[v][1]);
        open_end(v, w.tree.parent[v], w.lane[v][1], w.lane[v][0]);
    }
    for (uint32_t v = 0; v < w.n; v++) {
        const struct qn_context_opts o = {.self = v,
                                          .tree = &w.tree,
                                          .qp = w.end[v].qp,
                                          .deliver = deliver,
                                          .ctx = &w.end[v],
                                          .acked = w.acked};
        cr_assert_eq(qn_context_create(&w.end[v].context, &o), QN_OK);
        w.end[v].got = 0;
    }
}

static void close_edges(void)
{
    for (uint32_t v = 0; v < w.n; v++) {
        qn_context_destroy(w.end[v].context);
        for (uint32_t u = 0; u < w.n; u++) {
            qn_qp_close(w.end[v].qp[u]);
            w.end[v].qp[u] = NULL;
        }
    }
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* @return the median operation in ps. */
static double execute(struct qn_prices *p)
{
    double took[OPS];
    struct qn_timed_opts o = {
        .nodes = w.n, .prices = p, .main = node, .until_ns = QN_S};
    struct qn_timed_result r;
    memset(w.last, 0, sizeof w.last);
    open_edges();
    cr_assert_eq(qn_timed_run(&o, &r), QN_OK);
    cr_assert_null(r.fault, "%s", r.fault);
    cr_assert(!r.cut_off);
    for (uint32_t i = 0; i < OPS; i++) {
        took[i] = (double)(w.last[WARM + i] - w.sent[WARM + i]);
    }
    qn_timed_result_free(&r);
    close_edges();
    qsort(took, OPS, sizeof took[0], by_size);
    return took[OPS / 2];
}

/* ---- all machines ---- */

static double *ratio;
static size_t ratios;

static void one_tree(const struct qn_machine *m, const char *name,
                     enum qn_collective op)
{
    static uint32_t core[QN_NODES_MAX];
    static qn_node_t self[QN_NODES_MAX];
    struct qn_shape s;
    struct qn_prices *p;
    int err = strcmp(name, "adaptive") == 0
                  ? qn_adaptive_build(&s, m, 0, QN_LEVEL_NODE)
                  : qn_static_build(&s, m, name, 0, QN_LEVEL_NODE);
    cr_assert_eq(err, QN_OK, "%s", name);
    for (uint32_t i = 0; i < m->n; i++) {
        core[i] = i;
        self[i] = i;
    }
    w.n = m->n;
    w.acked = op == QN_COLLECTIVE_ACK;
    cr_assert_eq(qn_tree_place(&w.tree, &s, self), QN_OK);
    cr_assert_eq(qn_coherent_create(&p, m, core, m->n,
                                    &(struct qn_coherent_opts){.bare = true}),
                 QN_OK);
    double ghz = m->facts.clock_ghz > 0 ? m->facts.clock_ghz : 2;
    double want = qn_predict(m, &s, op, 1) * 1000 / ghz;
    w.gap_ns = (uint64_t)(2 * want / 1000) + 100;
    double got = execute(p);
    ratio = realloc(ratio, (ratios + 1) * sizeof *ratio);
    ratio[ratios++] = got / want;
    if (getenv("QN_VERBOSE") != NULL) {
        fprintf(stderr, "%-24s %3u %-10s %s %9.0f %9.0f %.3f\n", m->name, m->n,
                name, qn_collective_name(op), got, want, got / want);
    }
    qn_prices_destroy(p);
}

/* Every k-th core, so that groups span the whole machine. */
static struct qn_machine *group(const struct qn_machine *m, uint32_t n)
{
    uint32_t index[QN_NODES_MAX];
    struct qn_machine *some;
    for (uint32_t i = 0; i < n; i++) {
        index[i] = (uint32_t)((uint64_t)i * m->n / n);
    }
    cr_assert_eq(qn_machine_restrict(&some, m, index, n), QN_OK);
    return some;
}

static void every_tree(const struct qn_machine *m)
{
    for (uint32_t n = 2; n <= QN_MIN(m->n, QN_NODES_MAX); n *= 2) {
        struct qn_machine *some = group(m, n);
        for (uint32_t t = 0; t < QN_ARRAY_COUNT(trees); t++) {
            one_tree(some, trees[t], QN_COLLECTIVE_BROADCAST);
            one_tree(some, trees[t], QN_COLLECTIVE_ACK);
        }
        qn_machine_destroy(some);
    }
}

Test(predicted, broadcasts_take_as_long_as_predicted, .timeout = 100)
{
    cr_assert_eq(worlds_each(every_tree), 15);
    qsort(ratio, ratios, sizeof *ratio, by_size);
    cr_assert(ratio[0] > 0.75 && ratio[ratios - 1] < 1.25, "%.3f to %.3f",
              ratio[0], ratio[ratios - 1]);
    cr_assert(ratio[ratios / 2] > 0.9 && ratio[ratios / 2] < 1.1, "%.3f",
              ratio[ratios / 2]);
    free(ratio);
}
