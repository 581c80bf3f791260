#include "loadgen/simulate/edges.h"

#include <stdlib.h>
#include <string.h>

static int open_end(struct qn_edges_net *e, const struct qn_transport *t,
                    const struct qn_qp_opts *shape, qn_node_t self,
                    qn_node_t peer, void *tx, const void *rx)
{
    struct qn_qp_opts o = *shape;
    o.tx = tx;
    o.rx = rx;
    o.self = self;
    o.peer = peer;
    return t->open(&e->qp[self][peer], &o);
}

/* Both lanes between `child` and its parent, and both ends. */
static int open_edge(struct qn_edges_net *e, const struct qn_transport *t,
                     const struct qn_qp_opts *shape, qn_node_t parent,
                     qn_node_t child)
{
    size_t bytes = t->lane_bytes(shape->cells);
    bytes = (bytes + QN_CACHELINE - 1) / QN_CACHELINE * QN_CACHELINE;
    void **lane = &e->lane[2 * child];
    for (uint32_t i = 0; i < 2; i++) {
        lane[i] = aligned_alloc(QN_CACHELINE, bytes);
        if (lane[i] == NULL) {
            return QN_ENOMEM;
        }
        memset(lane[i], 0, bytes);
    }
    int err = open_end(e, t, shape, parent, child, lane[0], lane[1]);
    return err != QN_OK
               ? err
               : open_end(e, t, shape, child, parent, lane[1], lane[0]);
}

static int make_tables(struct qn_edges_net *e)
{
    e->qp = calloc(e->nodes, sizeof *e->qp);
    e->lane = calloc(2 * (size_t)e->nodes, sizeof *e->lane);
    if (e->qp == NULL || e->lane == NULL) {
        return QN_ENOMEM;
    }
    for (uint32_t v = 0; v < e->nodes; v++) {
        e->qp[v] = calloc(e->nodes, sizeof **e->qp);
        if (e->qp[v] == NULL) {
            return QN_ENOMEM;
        }
    }
    return QN_OK;
}

int qn_edges_net_open(struct qn_edges_net *e, const struct qn_transport *t,
                      const struct qn_tree *tree, uint32_t cells,
                      uint32_t msg_max)
{
    const struct qn_qp_opts shape = {
        .cells = cells, .msg_max = msg_max, .self_inc = 1, .peer_inc = 1};
    *e = (struct qn_edges_net){.nodes = tree->n};
    int err = make_tables(e);
    for (qn_node_t v = 0; v < tree->n && err == QN_OK; v++) {
        if (v != tree->root) {
            err = open_edge(e, t, &shape, tree->parent[v], v);
        }
    }
    if (err != QN_OK) {
        qn_edges_net_close(e);
    }
    return err;
}

void qn_edges_net_close(struct qn_edges_net *e)
{
    for (uint32_t v = 0; e->qp != NULL && v < e->nodes; v++) {
        for (uint32_t u = 0; e->qp[v] != NULL && u < e->nodes; u++) {
            qn_qp_close(e->qp[v][u]);
        }
        free(e->qp[v]);
    }
    for (uint32_t i = 0; e->lane != NULL && i < 2 * e->nodes; i++) {
        free(e->lane[i]);
    }
    free(e->qp);
    free(e->lane);
    *e = (struct qn_edges_net){0};
}
