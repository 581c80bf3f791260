#include "tests/unit/core/coll/coll_net.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "tests/support/test.h"

uint32_t coll_draw(struct coll_net *net, uint32_t bound)
{
    net->random = net->random * UINT64_C(6364136223846793005) + 1442695;
    return (uint32_t)(net->random >> 33) % bound;
}

static void connect(struct coll_net *net, qn_node_t a, qn_node_t b)
{
    struct qn_qp *end[2];
    if (net->node[a].qp[b] == NULL) {
        inmemory_pair(end, COLL_CELLS, QN_INPLACE_MAX);
        net->node[a].qp[b] = end[0];
        net->node[b].qp[a] = end[1];
    }
}

static void connect_edges(struct coll_net *net, const struct qn_tree *t)
{
    for (qn_node_t v = 0; v < COLL_NODES; v++) {
        qn_node_t p = t->parent[v];
        if (p < COLL_NODES && p != v) {
            connect(net, p, v);
        }
    }
}

static void make_all(struct coll_net *net, uint16_t view)
{
    connect_edges(net, &net->tree);
    connect_edges(net, &net->up);
    for (qn_node_t v = 0; net->exchange && v < COLL_NODES; v++) {
        for (qn_node_t w = 0; w < v; w++) {
            connect(net, v, w);
        }
    }
    for (qn_node_t v = 0; v < COLL_NODES; v++) {
        struct coll_node *node = &net->node[v];
        const struct qn_coll_opts o = {.self = v,
                                       .down = &net->tree,
                                       .up = &net->up,
                                       .qp = node->qp,
                                       .window = net->window,
                                       .bytes_max = net->bytes_max,
                                       .view = view,
                                       .alike = net->alike,
                                       .exchange = net->exchange};
        qn_coll_destroy(node->c);
        node->c = NULL;
        if (qn_tree_has(&net->tree, v)) {
            cr_assert_eq(qn_coll_create(&node->c, &o), QN_OK);
        }
    }
}

struct coll_net *coll_new(const char *shape, uint32_t n)
{
    struct coll_net *net = calloc(1, sizeof *net);
    qn_node_t order[COLL_NODES];
    cr_assert_not_null(net);
    for (qn_node_t v = 0; v < COLL_NODES; v++) {
        order[v] = v;
    }
    cr_assert_eq(qn_tree_build(&net->tree, shape, order, n), QN_OK);
    net->up = net->tree;
    make_all(net, 1);
    return net;
}

struct coll_net *coll_chains(const qn_node_t *down, const qn_node_t *up,
                             uint32_t n, uint32_t window)
{
    struct coll_net *net = calloc(1, sizeof *net);
    cr_assert_not_null(net);
    net->window = window;
    cr_assert_eq(qn_tree_build(&net->tree, "tree:k=1", down, n), QN_OK);
    cr_assert_eq(qn_tree_build(&net->up, "tree:k=1", up, n), QN_OK);
    make_all(net, 1);
    return net;
}

/* Each node hangs below an earlier one of a random order. */
static void draw_tree(struct coll_net *net, struct qn_tree *t, uint32_t n,
                      qn_node_t root)
{
    struct qn_shape s;
    struct qn_edges edges;
    qn_node_t order[COLL_NODES] = {0}, identity[COLL_NODES];
    for (uint32_t i = 0; i < n; i++) {
        uint32_t j = coll_draw(net, i + 1);
        order[i] = order[j];
        order[j] = i;
        identity[i] = i;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (order[i] == root) {
            order[i] = order[0];
            order[0] = root;
        }
    }
    qn_edges_init(&edges, n);
    for (uint32_t i = 1; i < n; i++) {
        qn_edges_add(&edges, order[coll_draw(net, i)], order[i]);
    }
    cr_assert_eq(qn_shape_from_edges(&s, &edges, order[0]), QN_OK);
    cr_assert_eq(qn_tree_place(t, &s, identity), QN_OK);
}

static struct coll_net *new_random(uint64_t seed)
{
    struct coll_net *net = calloc(1, sizeof *net);
    cr_assert_not_null(net);
    net->random = seed;
    return net;
}

struct coll_net *coll_random(uint32_t n, uint64_t seed)
{
    struct coll_net *net = new_random(seed);
    draw_tree(net, &net->tree, n, QN_NO_MEMBER);
    net->up = net->tree;
    make_all(net, 1);
    return net;
}

struct coll_net *coll_random_pair(uint32_t n, uint64_t seed, uint32_t window,
                                  uint32_t bytes_max)
{
    struct coll_net *net = new_random(seed);
    net->window = window;
    net->bytes_max = bytes_max;
    draw_tree(net, &net->tree, n, QN_NO_MEMBER);
    draw_tree(net, &net->up, n, net->tree.root);
    make_all(net, 1);
    return net;
}

struct coll_net *coll_exchange(uint32_t n, uint64_t seed, uint32_t window,
                               uint32_t bytes_max)
{
    struct coll_net *net = new_random(seed);
    net->window = window;
    net->bytes_max = bytes_max;
    net->exchange = true;
    draw_tree(net, &net->tree, n, QN_NO_MEMBER);
    net->up = net->tree;
    make_all(net, 1);
    return net;
}

void coll_free(struct coll_net *net)
{
    for (qn_node_t v = 0; v < COLL_NODES; v++) {
        qn_coll_destroy(net->node[v].c);
        for (qn_node_t w = 0; w < COLL_NODES; w++) {
            qn_qp_close(net->node[v].qp[w]);
        }
    }
    free(net);
}

void coll_start(struct coll_net *net, qn_node_t v, enum qn_coll_what what,
                uint64_t word)
{
    struct coll_node *node = &net->node[v];
    const bool bytes = what == QN_COLL_BROADCAST;
    const struct qn_coll_call call = {.what = what,
                                      .op = &qn_sum_u64,
                                      .in = &word,
                                      .out = &node->out,
                                      .count = bytes ? sizeof word : 1};
    int rc = qn_coll_start(node->c, &call, NULL);
    cr_assert_eq(rc, QN_OK, "node %u: %s", v, qn_strerror(rc));
    node->rc = QN_EAGAIN;
}

int coll_turn(struct coll_net *net, qn_node_t v)
{
    struct coll_node *node = &net->node[v];
    bool could = qn_coll_pending(node->c);
    int before = qn_coll_state(node->c, qn_coll_last(node->c));
    node->rc = qn_coll_poll(node->c);
    /* What poll has done, pending had announced. */
    cr_assert(could || before == node->rc);
    qn_coll_flush(node->c);
    return node->rc;
}

void coll_settle(struct coll_net *net)
{
    for (uint32_t turn = 0; turn < 4 * COLL_NODES; turn++) {
        for (qn_node_t v = 0; v < COLL_NODES; v++) {
            if (net->node[v].c != NULL) {
                coll_turn(net, v);
            }
        }
    }
}

void coll_die(struct coll_net *net, qn_node_t v)
{
    qn_coll_destroy(net->node[v].c);
    net->node[v].c = NULL;
}

void coll_tell(struct coll_net *net, qn_node_t v)
{
    for (qn_node_t w = 0; w < COLL_NODES; w++) {
        if (net->node[w].c != NULL) {
            qn_coll_down(net->node[w].c, v);
            qn_coll_down(net->node[w].c, v);
        }
        qn_qp_close(net->node[w].qp[v]);
        qn_qp_close(net->node[v].qp[w]);
        net->node[w].qp[v] = net->node[v].qp[w] = NULL;
    }
}

void coll_again(struct coll_net *net, const qn_node_t *order, uint32_t n,
                uint16_t view)
{
    cr_assert_eq(qn_tree_build(&net->tree, "binary", order, n), QN_OK);
    net->up = net->tree;
    make_all(net, view);
}

struct qn_view coll_next_view(struct coll_net *net, const qn_node_t *order,
                              uint32_t n, uint16_t view)
{
    struct qn_view_report report[COLL_NODES];
    struct qn_view next;
    for (uint32_t i = 0; i < n; i++) {
        cr_assert_eq(qn_coll_leave(net->node[order[i]].c, &report[i]), QN_OK);
    }
    cr_assert_eq(qn_view_decide(&next, view, report, n), QN_OK);
    cr_assert_eq(qn_tree_build(&net->tree, "tree:k=1", order, n), QN_OK);
    net->up = net->tree;
    connect_edges(net, &net->tree);
    for (uint32_t i = 0; i < n; i++) {
        struct coll_node *node = &net->node[order[i]];
        const struct qn_coll_view_opts o = {.down = &net->tree, .qp = node->qp};
        cr_assert_eq(qn_coll_enter(node->c, &next, &o), QN_OK);
    }
    return next;
}

struct qn_qp *coll_qp(struct coll_net *net, qn_node_t from, qn_node_t to)
{
    cr_assert_not_null(net->node[from].qp[to]);
    return net->node[from].qp[to];
}

uint64_t coll_contribution(qn_node_t v, uint32_t k)
{
    return (uint64_t)(v + 1) * 1000003u + (uint64_t)k * k * 7919u;
}

static void compose(void *into, const void *from, uint32_t count)
{
    uint64_t *f = into;
    const uint64_t *g = from;
    for (uint32_t i = 0; i < 2 * count; i += 2) {
        f[i + 1] = f[i + 1] * g[i] + g[i + 1];
        f[i] *= g[i];
    }
}

static const uint64_t identity[2] = {1, 0};
const struct qn_operator coll_maps = {
    .combine = compose, .neutral = identity, .bytes = 16};
