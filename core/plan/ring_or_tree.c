/*
 * Ring or tree, by prediction: see the header.
 *
 * Bursts of 1, 2, 4 ... LONGEST: the ring must be faster in all from some
 * length on, so a length at which it is faster by chance does not count.
 */
#include "core/plan/ring_or_tree.h"

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/plan/mixable_trees.h"
#include "core/topo/diamond_ring.h"
#include "core/topo/pipeline_sim.h"

enum { LENGTHS = 8, LONGEST = 1 << (LENGTHS - 1) };

/* Cycles of a burst of each length. */
struct bursts {
    double cycles[LENGTHS];
};

static int predict(struct bursts *b, const struct qn_machine *costs,
                   const struct qn_shape *s)
{
    int err = QN_OK;
    for (uint32_t i = 0; i < LENGTHS && err == QN_OK; i++) {
        const struct qn_pipeline_sim_opts o = {.ops = 1u << i, .q = 1};
        err = qn_pipeline_sim_tree(costs, s, false, &o, &b->cycles[i]);
    }
    return err;
}

static void shape_of(struct qn_shape *s, const struct qn_tree *t)
{
    struct qn_edges e;
    qn_edges_init(&e, t->n);
    for (uint32_t v = 0; v < t->n; v++) {
        for (uint32_t k = 0; k < t->child_count[v]; k++) {
            qn_edges_add(&e, v, t->child[t->child_at[v] + k]);
        }
    }
    int err = qn_shape_from_edges(s, &e, t->root);
    QN_ASSERT(err == QN_OK);
}

static int predict_tree(struct bursts *b, const struct qn_machine *costs)
{
    qn_node_t order[QN_NODES_MAX];
    struct qn_tree t;
    struct qn_shape s;
    for (uint32_t i = 0; i < costs->n; i++) {
        order[i] = i;
    }
    int err = qn_mixable_tree_build(&t, costs, order, costs->n);
    if (err == QN_OK) {
        shape_of(&s, &t);
        err = predict(b, costs, &s);
    }
    return err;
}

static int predict_ring(struct bursts *b, const struct qn_machine *costs,
                        uint32_t arity)
{
    struct qn_edges e;
    struct qn_shape s;
    int err = qn_diamond_ring_edges(&e, arity, costs->n);
    if (err == QN_OK) {
        err = qn_shape_from_edges(&s, &e, 0);
        QN_ASSERT(err == QN_OK);
        err = predict(b, costs, &s);
    }
    return err;
}

/* Bursts of this length and all longer ones are faster over the ring; 0: the
 * longest one is not. */
static uint32_t faster_from(const struct bursts *ring,
                            const struct bursts *tree)
{
    uint32_t i = LENGTHS;
    while (i > 0 &&
           ring->cycles[i - 1] <= tree->cycles[i - 1] * QN_RING_OR_TREE_GAIN) {
        i--;
    }
    return i == LENGTHS ? 0 : 1u << i;
}

static void take(struct qn_ring_or_tree *out, uint32_t arity,
                 const struct bursts *ring, const struct bursts *tree)
{
    double cycles = ring->cycles[LENGTHS - 1] / LONGEST;
    uint32_t from = faster_from(ring, tree);
    if (from != 0 && cycles < out->ring_cycles) {
        out->ring = arity;
        out->from = from;
        out->ring_cycles = cycles;
    }
}

int qn_ring_or_tree_choose(struct qn_ring_or_tree *out,
                           const struct qn_machine *costs)
{
    struct bursts tree, ring;
    struct qn_ring_or_tree best = {0, 0, 0, 0};
    *out = best;
    if (costs->n == 0 || costs->n > QN_NODES_MAX) {
        return QN_EINVAL;
    }
    int err = predict_tree(&tree, costs);
    if (err != QN_OK) {
        return err;
    }
    best.tree_cycles = best.ring_cycles = tree.cycles[LENGTHS - 1] / LONGEST;
    uint32_t most = QN_MIN(QN_RING_OR_TREE_ARITY, costs->n - 1);
    for (uint32_t k = 1; k <= most && err == QN_OK; k++) {
        err = predict_ring(&ring, costs, k);
        if (err == QN_OK) {
            take(&best, k, &ring, &tree);
        }
    }
    *out = err == QN_OK ? best : *out;
    return err;
}
