/*
 * Ring or tree, by prediction: see the header.
 *
 * Bursts of 1, 2, 4 ... LONGEST: the ring must be faster in all from some
 * length on, so a length at which it is faster by chance does not count.
 *
 * The map has the least work of the busiest node for its goal. It is simulated,
 * too, and counts only if it is faster.
 */
#include "core/plan/ring_or_tree.h"

#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/plan/diamond_ring_map.h"
#include "core/plan/mixable_trees.h"
#include "core/topo/diamond_ring.h"
#include "core/topo/pipeline_sim.h"

enum { LENGTHS = 8, LONGEST = 1 << (LENGTHS - 1), MOVES = 20000 };

/* Cycles of a burst of each length. */
struct bursts {
    double cycles[LENGTHS];
};

static double last(const struct bursts *b)
{
    return b->cycles[LENGTHS - 1];
}

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

static void by_number(qn_node_t *order, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        order[i] = i;
    }
}

static int predict_tree(struct bursts *b, const struct qn_machine *costs,
                        const qn_node_t *order)
{
    struct qn_tree t;
    struct qn_shape s;
    int err = qn_mixable_tree_build(&t, costs, order, costs->n);
    if (err == QN_OK) {
        shape_of(&s, &t);
        err = predict(b, costs, &s);
    }
    return err;
}

static int predict_ring(struct bursts *b, const struct qn_machine *costs,
                        uint32_t arity, const qn_node_t *order)
{
    struct qn_edges ranks, e;
    struct qn_shape s;
    int err = qn_diamond_ring_edges(&ranks, arity, costs->n);
    if (err == QN_OK) {
        qn_edges_init(&e, costs->n);
        for (uint32_t i = 0; i < ranks.count; i++) {
            qn_edges_add(&e, order[ranks.parent[i]], order[ranks.child[i]]);
        }
        err = qn_shape_from_edges(&s, &e, order[0]);
        QN_ASSERT(err == QN_OK);
        err = predict(b, costs, &s);
    }
    return err;
}

/* The node of each rank, by the map. */
static int order_by_map(qn_node_t *order, const struct qn_machine *costs,
                        uint32_t arity)
{
    struct qn_diamond_ring *r = NULL;
    const struct qn_diamond_ring_opts o = {.n = costs->n, .k = arity};
    const struct qn_diamond_ring_map_opts map = {.busy = true,
                                                 .one_way = true,
                                                 .root = QN_ROOT_FREE,
                                                 .seed = 1,
                                                 .moves = MOVES};
    int err = qn_diamond_ring_create(&r, &o);
    err = err == QN_OK ? qn_diamond_ring_map(r, costs, &map, NULL) : err;
    for (uint32_t id = 0; err == QN_OK && id < costs->n; id++) {
        order[id == 0 ? 0 : costs->n - id] = r->core[id];
    }
    qn_diamond_ring_destroy(r);
    return err;
}

/* The better of the two orders. @param b  [2] filled: that one, by number. */
static int order_find(qn_node_t *order, struct bursts *b,
                      const struct qn_machine *costs, uint32_t arity)
{
    qn_node_t mapped[QN_NODES_MAX];
    by_number(order, costs->n);
    int err = predict_ring(&b[1], costs, arity, order);
    b[0] = b[1];
    err = err == QN_OK ? order_by_map(mapped, costs, arity) : err;
    struct bursts other;
    err = err == QN_OK ? predict_ring(&other, costs, arity, mapped) : err;
    if (err == QN_OK && other.cycles[LENGTHS - 1] < b[1].cycles[LENGTHS - 1]) {
        b[0] = other;
        memcpy(order, mapped, costs->n * sizeof *order);
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

struct found {
    uint32_t arity; /* 0: there is no ring for so few nodes */
    struct bursts bursts;
    qn_node_t order[QN_NODES_MAX];
};

/* The fastest ring in a long burst. One over all others would be a tree. */
static int ring_find(struct found *f, const struct qn_machine *costs)
{
    struct bursts b[2];
    qn_node_t order[QN_NODES_MAX];
    int err = QN_OK;
    f->arity = 0;
    by_number(f->order, costs->n);
    for (uint32_t k = 1; k <= QN_RING_OR_TREE_ARITY && k + 1 < costs->n; k++) {
        err = order_find(order, b, costs, k);
        if (err != QN_OK) {
            return err;
        }
        if (f->arity == 0 || last(&b[0]) < last(&f->bursts)) {
            f->arity = k;
            f->bursts = b[0];
            memcpy(f->order, order, costs->n * sizeof *order);
        }
    }
    return err;
}

int qn_ring_or_tree_choose(struct qn_ring_or_tree *out,
                           const struct qn_machine *costs)
{
    struct bursts tree, beside;
    struct found f;
    qn_node_t order[QN_NODES_MAX];
    *out = (struct qn_ring_or_tree){0, 0, 0, 0};
    if (costs->n == 0 || costs->n > QN_NODES_MAX) {
        return QN_EINVAL;
    }
    by_number(order, costs->n);
    int err = predict_tree(&tree, costs, order);
    err = err == QN_OK ? ring_find(&f, costs) : err;
    err = err == QN_OK ? predict_tree(&beside, costs, f.order) : err;
    if (err != QN_OK) {
        return err;
    }
    out->ring_cycles = out->tree_cycles = last(&tree) / LONGEST;
    uint32_t from = f.arity == 0 ? 0 : faster_from(&f.bursts, &tree);
    uint32_t then = f.arity == 0 ? 0 : faster_from(&f.bursts, &beside);
    if (from != 0 && then != 0) {
        out->ring = f.arity;
        out->from = QN_MAX(from, then);
        out->ring_cycles = last(&f.bursts) / LONGEST;
        out->tree_cycles = QN_MIN(last(&tree), last(&beside)) / LONGEST;
    }
    return QN_OK;
}

int qn_ring_order(qn_node_t *order, double *part,
                  const struct qn_machine *costs, uint32_t arity)
{
    struct bursts b[2];
    *part = 1;
    if (costs->n < 2 || costs->n > QN_NODES_MAX) {
        return QN_EINVAL;
    }
    int err = order_find(order, b, costs, arity);
    if (err != QN_OK) {
        by_number(order, costs->n);
        return err;
    }
    *part = last(&b[0]) / last(&b[1]);
    QN_ASSERT(*part <= 1);
    return QN_OK;
}
