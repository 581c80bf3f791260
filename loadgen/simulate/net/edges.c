#include "loadgen/simulate/net/edges.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"

#define INCARNATION 1u /* of every node */

/* ---- the device ---- */

static int attach_all(struct qn_edges_device *d, const struct qn_transport *t,
                      const struct qn_device_opts *o)
{
    static uint64_t incarnation[QN_MEMBERS_MAX];
    int err = QN_OK;
    for (uint32_t v = 0; v < d->nodes; v++) {
        incarnation[v] = INCARNATION;
    }
    for (uint32_t v = 0; v < d->nodes && err == QN_OK; v++) {
        const struct qn_device_attach_opts attach = {.memory = d->memory,
                                                     .opts = o,
                                                     .self = v,
                                                     .incarnation =
                                                         incarnation};
        err = t->device->attach(&d->port[v], &attach);
    }
    return err;
}

int qn_edges_device_open(struct qn_edges_device *d,
                         const struct qn_transport *t, uint32_t nodes)
{
    const struct qn_device_opts o = {.nodes = nodes, .lanes = QN_LANES};
    *d = (struct qn_edges_device){.nodes = nodes};
    if (t->device == NULL) {
        return QN_OK;
    }
    size_t bytes = t->device->bytes(&o);
    if (bytes == 0) {
        return QN_EINVAL;
    }
    d->memory = aligned_alloc(QN_CACHELINE, bytes);
    d->port = calloc(nodes, sizeof(struct qn_device *));
    int err = QN_ENOMEM;
    if (d->memory != NULL && d->port != NULL) {
        memset(d->memory, 0, bytes);
        t->device->format(d->memory, &o);
        err = attach_all(d, t, &o);
    }
    if (err != QN_OK) {
        qn_edges_device_close(d);
    }
    return err;
}

void qn_edges_device_close(struct qn_edges_device *d)
{
    for (uint32_t v = 0; d->port != NULL && v < d->nodes; v++) {
        qn_device_detach(d->port[v]);
    }
    free(d->port);
    free(d->memory);
    *d = (struct qn_edges_device){0};
}

/* ---- the edges ---- */

static int open_end(struct qn_edges_net *e, const struct qn_edges_opts *opts,
                    qn_node_t self, qn_node_t peer, void *tx, const void *rx)
{
    const struct qn_qp_opts o = {.tx = tx,
                                 .rx = rx,
                                 .device = opts->transport->device != NULL
                                               ? opts->device->port[self]
                                               : NULL,
                                 .lane = opts->lane,
                                 .cells = opts->cells,
                                 .self = self,
                                 .peer = peer,
                                 .msg_max = opts->msg_max,
                                 .self_inc = INCARNATION,
                                 .peer_inc = INCARNATION};
    return opts->transport->open(&e->qp[self][peer], &o);
}

/* A lane each way between two nodes, unless there is a device. */
static int make_lanes(struct qn_edges_net *e, const struct qn_edges_opts *o,
                      void *lane[2])
{
    size_t bytes =
        qn_align_up(o->transport->lane_bytes(o->cells), QN_CACHELINE);
    for (uint32_t i = 0; i < 2 && bytes > 0; i++) {
        lane[i] = aligned_alloc(QN_CACHELINE, bytes);
        if (lane[i] == NULL) {
            return QN_ENOMEM;
        }
        memset(lane[i], 0, bytes);
        e->lane[e->lanes++] = lane[i];
    }
    return QN_OK;
}

/* Nothing if there is one already. */
static int open_edge(struct qn_edges_net *e, const struct qn_edges_opts *o,
                     qn_node_t from, qn_node_t to)
{
    void *lane[2] = {NULL, NULL};
    QN_ASSERT(from < e->nodes && e->qp[from] != NULL);
    if (e->qp[from][to] != NULL) {
        return QN_OK;
    }
    int err = make_lanes(e, o, lane);
    if (err == QN_OK) {
        err = open_end(e, o, from, to, lane[0], lane[1]);
    }
    return err == QN_OK ? open_end(e, o, to, from, lane[1], lane[0]) : err;
}

static int open_ring(struct qn_edges_net *e, const struct qn_edges_opts *o)
{
    const struct qn_diamond_ring *r = o->ring;
    int err = QN_OK;
    for (uint32_t id = 0; id < r->o.n; id++) {
        for (uint32_t i = r->first[id]; i < r->first[id + 1] && err == QN_OK;
             i++) {
            err = open_edge(e, o, r->core[id], r->core[r->next[i]]);
        }
    }
    return err;
}

static int open_tree(struct qn_edges_net *e, const struct qn_edges_opts *o)
{
    int err = QN_OK;
    for (qn_node_t v = 0; v < o->tree->n && err == QN_OK; v++) {
        if (v != o->tree->root) {
            err = open_edge(e, o, o->tree->parent[v], v);
        }
    }
    return err;
}

static int open_mesh(struct qn_edges_net *e, const struct qn_edges_opts *o)
{
    int err = QN_OK;
    for (qn_node_t v = 0; v < e->nodes; v++) {
        for (qn_node_t u = 0; u < v && err == QN_OK; u++) {
            err = open_edge(e, o, u, v);
        }
    }
    return err;
}

static uint32_t edges_of(const struct qn_edges_opts *o)
{
    return o->tree == NULL ? o->ring->messages
           : o->all        ? o->tree->n * (o->tree->n - 1) / 2
                           : o->tree->n;
}

static int make_tables(struct qn_edges_net *e, uint32_t edges)
{
    e->qp = calloc(e->nodes, sizeof *e->qp);
    e->lane = calloc(2 * (size_t)edges, sizeof *e->lane);
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

int qn_edges_net_open(struct qn_edges_net *e, const struct qn_edges_opts *o)
{
    const bool tree = o->tree != NULL;
    *e = (struct qn_edges_net){.nodes = tree ? o->tree->n : o->ring->o.n};
    int err = make_tables(e, edges_of(o));
    if (err == QN_OK) {
        err = !tree    ? open_ring(e, o)
              : o->all ? open_mesh(e, o)
                       : open_tree(e, o);
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
    for (uint32_t i = 0; i < e->lanes; i++) {
        free(e->lane[i]);
    }
    free(e->qp);
    free(e->lane);
    *e = (struct qn_edges_net){0};
}
