/*
 * What the nodes of a run share is allocated before they start. A node makes
 * what its program runs on and leaves it here: the run may end while a
 * simulated machine has killed it.
 */
#include "loadgen/operation/operation.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/operation/operation_internal.h"

#define CELL_BYTES 48u  /* minimum of message bytes in a cell */
#define CELLS_MIN  128u /* of a lane */

/* ---- results ---- */

static bool is_leaf(const struct qn_tree *t, qn_node_t v)
{
    return t->child_count[v] == 0 && v != t->root;
}

static uint32_t count_leaves(const struct qn_tree *t)
{
    uint32_t count = 0;
    for (qn_node_t v = 0; v < t->n; v++) {
        count += is_leaf(t, v);
    }
    return count;
}

int qn_operation_result_init(struct qn_operation_result *r,
                             const struct qn_tree *tree, enum qn_collective op,
                             uint32_t sources)
{
    *r = (struct qn_operation_result){
        .histograms = op == QN_COLLECTIVE_BROADCAST ? count_leaves(tree)
                                                    : QN_MAX(sources, 1u)};
    r->latency = calloc(r->histograms, sizeof *r->latency);
    return r->latency != NULL ? QN_OK : QN_ENOMEM;
}

void qn_operation_result_fini(struct qn_operation_result *r)
{
    free(r->latency);
    r->latency = NULL;
}

uint64_t qn_operation_latency(const struct qn_operation_result *r, double q)
{
    uint32_t slowest = 0;
    uint64_t most = 0;
    for (uint32_t i = 0; i < r->histograms; i++) {
        uint64_t median = qn_histogram_quantile(&r->latency[i], 0.5);
        if (median == 0) {
            return 0;
        }
        slowest = median > most ? i : slowest;
        most = QN_MAX(most, median);
    }
    return qn_histogram_quantile(&r->latency[slowest], q);
}

double qn_operation_rate(const struct qn_operation_result *r)
{
    return r->stream_s > 0 ? (double)r->stream / r->stream_s : 0;
}

/* ---- a run ---- */

static bool is_broadcast(const struct qn_operation_opts *o)
{
    return o->op == QN_COLLECTIVE_BROADCAST || o->op == QN_COLLECTIVE_ACK;
}

static bool opts_ok(const struct qn_operation_opts *o)
{
    if (o->sources > 0 &&
        (o->op != QN_COLLECTIVE_ACK || o->sources > o->tree->n)) {
        return false;
    }
    if (o->tree->n < 2 ||
        (o->ring != NULL &&
         (o->op != QN_COLLECTIVE_ACK || o->ring->o.n != o->tree->n ||
          o->ring->core[0] != o->tree->root))) {
        return false;
    }
    if (o->op == QN_COLLECTIVE_2PC) {
        return true;
    }
    if (!is_broadcast(o)) {
        return o->size % 8 == 0 && o->size <= 8 * QN_COLL_WORDS;
    }
    return o->size >= QN_OPERATION_SIZE_MIN &&
           o->size <= QN_OPERATION_SIZE_MAX && o->window >= 1 &&
           o->window <= QN_OPERATION_WINDOW_MAX &&
           o->window * (o->size + QN_COLL_HEAD_BYTES) <=
               QN_OPERATION_LANE_BYTES;
}

/* Room for four windows: a receiver returns cells late, and no message may be
 * dropped. */
uint32_t qn_operation_cells(const struct qn_operation_opts *o)
{
    uint32_t cells = CELLS_MIN;
    if (is_broadcast(o)) {
        uint32_t each = (o->size + QN_COLL_HEAD_BYTES) / CELL_BYTES + 1;
        while (cells < 4 * each * o->window) {
            cells *= 2;
        }
    }
    return cells;
}

int qn_operation_wiring(struct qn_wiring **out, const struct qn_tree *tree,
                        const struct qn_diamond_ring *ring, qn_node_t self)
{
    const struct qn_wiring_opts t = {
        .kind = QN_WIRING_ACKNOWLEDGED, .down = tree, .up = tree, .self = self};
    const struct qn_wiring_ring_opts r = {.ring = ring, .self = self};
    return ring != NULL ? qn_wiring_ring(out, &r) : qn_wiring_tree(out, &t);
}

int qn_operation_ring_members(struct qn_tree *out,
                              const struct qn_diamond_ring *ring)
{
    static qn_node_t order[QN_CORES_MAX];
    for (uint32_t id = 0; id < ring->o.n; id++) {
        order[id] = ring->core[id];
    }
    return qn_tree_build(out, "sequential", order, ring->o.n);
}

uint32_t qn_operation_window(const struct qn_operation_opts *o)
{
    uint32_t window = 1;
    while (window < o->window) {
        window *= 2;
    }
    return window;
}

static int make_nodes(struct qn_operation *p)
{
    const struct qn_tree *t = p->o.tree;
    size_t bytes = t->n * sizeof *p->tally;
    p->leaf = calloc(t->n, sizeof *p->leaf);
    p->tally = aligned_alloc(QN_CACHELINE, bytes);
    if (p->leaf == NULL || p->tally == NULL) {
        return QN_ENOMEM;
    }
    memset(p->tally, 0, bytes);
    for (qn_node_t v = 0; v < t->n; v++) {
        if (is_leaf(t, v)) {
            p->leaf[p->leaves++] = v;
        }
    }
    return QN_OK;
}

int qn_operation_create(struct qn_operation **out,
                        const struct qn_operation_opts *o,
                        struct qn_operation_result *r)
{
    if (!opts_ok(o)) {
        return QN_EINVAL;
    }
    struct qn_operation *p = aligned_alloc(QN_CACHELINE, sizeof *p);
    if (p == NULL) {
        return QN_ENOMEM;
    }
    memset(p, 0, sizeof *p);
    p->o = *o;
    p->r = r;
    int rc = make_nodes(p);
    if (rc != QN_OK) {
        qn_operation_destroy(p);
        return rc;
    }
    *out = p;
    return QN_OK;
}

void qn_operation_destroy(struct qn_operation *p)
{
    if (p == NULL) {
        return;
    }
    for (qn_node_t v = 0; p->tally != NULL && v < p->o.tree->n; v++) {
        qn_context_destroy(p->tally[v].context);
        qn_sequenced_broadcast_destroy(p->tally[v].sequenced);
        qn_wiring_destroy(p->tally[v].wiring);
        qn_coll_destroy(p->tally[v].coll);
    }
    free(p->tally);
    free(p->leaf);
    free(p);
}

int qn_operation_node(struct qn_operation *p,
                      const struct qn_operation_end *end)
{
    struct qn_operation_self n = {.p = p, .end = end};
    int rc = p->o.sources > 0      ? qn_operation_sources(&n)
             : is_broadcast(&p->o) ? qn_operation_broadcasts(&n)
                                   : qn_operation_collectives(&n);
    if (rc != QN_OK) {
        qn_operation_give_up(&n);
        return rc;
    }
    return qn_operation_given_up(&n) ? QN_ETIMEDOUT : QN_OK;
}

void qn_operation_sum(struct qn_operation *p)
{
    /* acquire: pairs with the store of each node. */
    const struct qn_operation_tally *root = &p->tally[p->o.tree->root];
    uint64_t sent = qn_load(&root->delivered, QN_ACQUIRE);
    p->r->sent += sent;
    for (qn_node_t v = 0; v < p->o.tree->n; v++) {
        uint64_t got = qn_load(&p->tally[v].delivered, QN_ACQUIRE);
        p->r->wrong += p->tally[v].wrong + (got != sent) +
                       (p->tally[v].order != root->order);
    }
}
