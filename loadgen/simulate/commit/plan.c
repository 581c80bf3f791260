/*
 * Numbers of the replicas, and their tree.
 *
 * A planned tree stays usable when members change if every parent has a lower
 * number than its children (core/plan/mixable_trees.h), so the replicas are
 * numbered in the order of the plan. With a process acceptor the leader is no
 * member of the tree, it learns by ACCEPTED. So it is number 0, above the
 * acceptor, which is number 1 and the root of what was planned.
 */
#include <stdlib.h>

#include "core/base/assert.h"
#include "core/base/err.h"
#include "core/plan/plan.h"
#include "loadgen/simulate/commit/commit_internal.h"

/* The machine of some cores of another one, in this order. */
static int take_cores(struct qn_machine **out, const struct qn_machine *m,
                      const uint32_t *core, uint32_t n)
{
    struct qn_machine *own;
    int err = qn_machine_create(&own, n);
    for (uint32_t u = 0; err == QN_OK && u < n; u++) {
        own->core[u] = m->core[core[u]];
        own->core[u].os = u;
        for (uint32_t v = 0; v < n; v++) {
            own->send[u * n + v] = qn_send_cost(m, core[u], core[v]);
            own->receive[u * n + v] = qn_receive_cost(m, core[u], core[v]);
        }
    }
    if (err == QN_OK) {
        own->facts.clock_ghz = m->facts.clock_ghz;
        *out = own;
    }
    return err;
}

/* Renumber by the shape, whose cores begin with replica `first`. */
static void take_shape(struct qn_sim_group *g, const struct qn_shape *s,
                       uint32_t first)
{
    uint16_t order[QN_CORES_MAX];
    uint32_t rank[QN_NODES_MAX];
    uint32_t core[QN_NODES_MAX] = {0};
    qn_node_t node[QN_NODES_MAX];
    struct qn_edges e;
    struct qn_shape all;
    uint32_t n = qn_shape_order(s, order);
    QN_ASSERT(n == s->n && n + first == g->o.replicas);
    qn_edges_init(&e, g->o.replicas);
    for (uint32_t i = 0; i < n; i++) {
        rank[order[i]] = first + i;
        core[first + i] = g->out->core[first + order[i]];
        node[first + i] = first + i;
    }
    if (first > 0) {
        node[0] = 0;
        qn_edges_add(&e, 0, 1);
    }
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < s->count[order[i]]; k++) {
            qn_edges_add(&e, first + i,
                         rank[qn_shape_children(s, order[i])[k]]);
        }
    }
    int err = qn_shape_from_edges(&all, &e, 0);
    QN_ASSERT(err == QN_OK);
    err = qn_tree_place(&g->plan, &all, node);
    QN_ASSERT(err == QN_OK);
    for (uint32_t i = first; i < g->o.replicas; i++) {
        g->out->core[i] = core[i];
    }
}

static uint32_t first_of_tree(const struct qn_sim_group *g)
{
    return g->o.memory ? 0 : 1;
}

static int plan_stream(struct qn_sim_group *g)
{
    uint32_t first = first_of_tree(g);
    struct qn_plan_opts opts = QN_PLAN_OPTS_DEFAULT;
    struct qn_plan *plan = malloc(sizeof *plan);
    struct qn_machine *own = NULL;
    int err = plan == NULL
                  ? QN_ENOMEM
                  : take_cores(&own, g->o.machine, g->out->core + first,
                               g->o.replicas - first);
    opts.goal = QN_GOAL_STREAM;
    if (err == QN_OK) {
        err = qn_plan(plan, own, &opts);
    }
    if (err == QN_OK) {
        take_shape(g, &plan->down, first);
    }
    qn_machine_destroy(own);
    free(plan);
    return err;
}

int qn_sim_group_plan(struct qn_sim_group *g)
{
    int err = QN_OK;
    for (uint32_t i = 0; i < g->o.replicas; i++) {
        g->out->core[i] = g->o.core[i];
    }
    if (g->o.tree == QN_SIM_TREE_STREAM && g->o.replicas > 2) {
        err = plan_stream(g);
    } else if (g->o.tree == QN_SIM_TREE_SHAPE) {
        take_shape(g, g->o.shape, first_of_tree(g));
    }
    return err == QN_OK ? take_cores(&g->costs, g->o.machine, g->out->core,
                                     g->o.replicas)
                        : err;
}

/* ---- cores --------------------------------------------------------------- */

/* How many cores of the same group come before v. */
static uint32_t rank_in_node(const struct qn_machine *m, uint32_t v,
                             uint32_t thread, const uint32_t *thread_of)
{
    uint32_t rank = 0;
    for (uint32_t u = 0; u < v; u++) {
        rank += thread_of[u] == thread && m->core[u].node == m->core[v].node;
    }
    return rank;
}

/* The first hardware thread of its physical core, the second, ... */
static uint32_t thread_number(const struct qn_machine *m, uint32_t v)
{
    uint32_t before = 0;
    for (uint32_t u = 0; u < v; u++) {
        before += m->core[u].phys == m->core[v].phys;
    }
    return before;
}

/* The first core of its node. */
static uint32_t first_of_node(const struct qn_machine *m, uint32_t v)
{
    uint32_t u = 0;
    while (m->core[u].node != m->core[v].node) {
        u++;
    }
    return u;
}

struct place {
    uint64_t key; /* unique */
    uint32_t core;
};

static int by_key(const void *a, const void *b)
{
    const struct place *x = a;
    const struct place *y = b;
    return (x->key > y->key) - (x->key < y->key);
}

void qn_sim_cores(uint32_t *core, const struct qn_machine *m, bool spread)
{
    struct place at[QN_CORES_MAX];
    uint32_t thread[QN_CORES_MAX];
    for (uint32_t v = 0; v < m->n; v++) {
        thread[v] = thread_number(m, v);
    }
    for (uint32_t v = 0; v < m->n; v++) {
        uint64_t rank = rank_in_node(m, v, thread[v], thread);
        uint64_t node = first_of_node(m, v);
        at[v].key = ((uint64_t)thread[v] << 40 |
                     (spread ? rank << 20 | node : node << 20 | rank));
        at[v].core = v;
    }
    qsort(at, m->n, sizeof at[0], by_key);
    for (uint32_t v = 0; v < m->n; v++) {
        core[v] = at[v].core;
    }
}
