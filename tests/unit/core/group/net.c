#include "tests/unit/core/group/net.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"

static uint8_t pattern(uint8_t id, size_t i)
{
    return (uint8_t)(id * 31u + i);
}

void net_deliver(void *ctx, const void *msg, size_t len)
{
    struct net_node *node = ctx;
    const uint8_t *bytes = msg;
    cr_assert_lt(node->count, NET_LOG);
    uint8_t id = 0;
    while (len > 0 && pattern(id, 0) != bytes[0]) {
        id++;
    }
    for (size_t i = 0; i < len; i++) {
        cr_assert_eq(bytes[i], pattern(id, i), "message %u, byte %zu", id, i);
    }
    node->id[node->count] = id;
    node->from[node->count] = qn_context_sender(node->context);
    node->len[node->count++] = len;
}

static void make_context(struct net *net, qn_node_t v)
{
    struct net_node *node = &net->node[v];
    const struct qn_context_opts o = {
        .self = v,
        .tree = &net->tree,
        .qp = node->qp,
        .deliver = net_deliver,
        .ctx = node,
    };
    cr_assert_eq(qn_context_create(&node->context, &o), QN_OK);
}

static void make_contexts(struct net *net)
{
    for (qn_node_t v = 0; v < NET_NODES; v++) {
        qn_context_destroy(net->node[v].context);
        net->node[v].context = NULL;
        if (qn_tree_has(&net->tree, v)) {
            make_context(net, v);
        }
    }
}

void net_connect(struct net *net, qn_node_t a, qn_node_t b, uint32_t cells,
                 uint32_t cell_bytes)
{
    struct qn_qp *end[2];
    qn_qp_close(net->node[a].qp[b]);
    qn_qp_close(net->node[b].qp[a]);
    inmemory_pair(end, cells, cell_bytes);
    net->node[a].qp[b] = end[0];
    net->node[b].qp[a] = end[1];
}

static struct net *make(const struct net_opts *o, bool mesh)
{
    struct net *net = calloc(1, sizeof *net);
    cr_assert_not_null(net);
    qn_node_t order[NET_NODES];
    for (qn_node_t v = 0; v < NET_NODES; v++) {
        order[v] = v;
    }
    cr_assert_eq(qn_tree_build(&net->tree, o->shape, order, o->n), QN_OK);
    for (qn_node_t v = 1; v < o->n; v++) {
        for (qn_node_t w = 0; w < v; w++) {
            if (mesh || w == net->tree.parent[v]) {
                net_connect(net, w, v, o->cells, o->cell_bytes);
            }
        }
    }
    make_contexts(net);
    return net;
}

struct net *net_new(const struct net_opts *o)
{
    return make(o, false);
}

struct net *net_mesh(const struct net_opts *o)
{
    return make(o, true);
}

void net_reroot(struct net *net, qn_node_t node, const char *shape,
                const qn_node_t *order, uint32_t n)
{
    struct qn_tree tree;
    cr_assert_eq(qn_tree_build(&tree, shape, order, n), QN_OK);
    cr_assert_eq(qn_context_reroot(net->node[node].context, &tree), QN_OK);
}

void net_reroot_all(struct net *net, const char *shape, const qn_node_t *order,
                    uint32_t n)
{
    cr_assert_eq(qn_tree_build(&net->tree, shape, order, n), QN_OK);
    for (qn_node_t v = 0; v < NET_NODES; v++) {
        if (net->node[v].context != NULL) {
            net_reroot(net, v, shape, order, n);
        }
    }
}

void net_die(struct net *net, qn_node_t node)
{
    qn_context_destroy(net->node[node].context);
    net->node[node].context = NULL;
    for (qn_node_t v = 0; v < NET_NODES; v++) {
        if (net->node[v].context != NULL) {
            qn_context_down(net->node[v].context, node);
        }
        qn_qp_close(net->node[v].qp[node]);
        qn_qp_close(net->node[node].qp[v]);
        net->node[v].qp[node] = net->node[node].qp[v] = NULL;
    }
}

void net_revive(struct net *net, qn_node_t node, uint32_t cells,
                uint32_t cell_bytes)
{
    for (qn_node_t v = 0; v < NET_NODES; v++) {
        if (net->node[v].context != NULL) {
            net_connect(net, v, node, cells, cell_bytes);
            qn_context_up(net->node[v].context, node);
        }
    }
    make_context(net, node);
}

void net_reshape(struct net *net, const char *shape, const qn_node_t *order,
                 uint32_t n)
{
    cr_assert_eq(qn_tree_build(&net->tree, shape, order, n), QN_OK);
    make_contexts(net);
}

void net_free(struct net *net)
{
    for (qn_node_t v = 0; v < NET_NODES; v++) {
        qn_context_destroy(net->node[v].context);
        for (qn_node_t w = 0; w < NET_NODES; w++) {
            qn_qp_close(net->node[v].qp[w]);
        }
    }
    free(net);
}

/* Message `id` in two parts, the first a third of it. */
static void fill(uint8_t *bytes, struct qn_slice parts[2], uint8_t id,
                 size_t len)
{
    for (size_t i = 0; i < len; i++) {
        bytes[i] = pattern(id, i);
    }
    size_t cut = len / 3;
    parts[0] = (struct qn_slice){bytes, cut};
    parts[1] = (struct qn_slice){bytes + cut, len - cut};
}

int net_bcast(struct net *net, uint8_t id, size_t len, uint64_t *dropped)
{
    static uint8_t bytes[QN_MSG_MAX + 1];
    struct qn_slice parts[2];
    uint64_t mask = UINT64_MAX; /* bcast clears it */
    struct qn_node_set set = qn_node_set_of(&mask, QN_NODES_MAX);
    fill(bytes, parts, id, len);
    int err = qn_context_bcast(net->node[net->tree.root].context, parts, 2,
                               dropped != NULL ? &set : NULL);
    if (dropped != NULL && err == QN_OK) {
        *dropped = mask;
    }
    return err;
}

bool net_turn(struct net *net, qn_node_t node)
{
    struct qn_context *c = net->node[node].context;
    uint32_t got = qn_context_poll(c, UINT32_MAX);
    qn_context_flush(c);
    return got > 0;
}

/* Grows with each frame that is sent or released anywhere. */
static uint64_t progress(const struct net *net)
{
    uint64_t sum = 0;
    for (qn_node_t v = 0; v < NET_NODES; v++) {
        for (qn_node_t w = 0; w < NET_NODES; w++) {
            const struct qn_qp *qp = net->node[v].qp[w];
            sum += qp != NULL ? 2 * inmemory_frames(qp) - inmemory_used(qp) : 0;
        }
    }
    return sum;
}

static bool pending(const struct net *net)
{
    for (qn_node_t v = 0; v < NET_NODES; v++) {
        struct qn_context *c = net->node[v].context;
        if (c != NULL && qn_context_pending(c)) {
            return true;
        }
    }
    return false;
}

void net_settle(struct net *net)
{
    uint64_t before;
    do {
        before = progress(net);
        for (qn_node_t v = 0; v < NET_NODES; v++) {
            if (net->node[v].context != NULL) {
                net_turn(net, v);
            }
        }
        /* A look may take frames of a long message, and is progress then. */
    } while (pending(net) || progress(net) != before);
}

struct qn_qp *net_qp(struct net *net, qn_node_t from, qn_node_t to)
{
    return net->node[from].qp[to];
}
