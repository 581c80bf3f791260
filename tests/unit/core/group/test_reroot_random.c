/* Trees that change node by node at random, while nodes die and come back and
 * room is short. What holds for every pair of neighbours, whatever they think
 * of the tree: what X delivers from P is a subsequence of what P had, in order;
 * inmemory_qp and net.h check that nothing is torn. In trees of depth 1 nobody
 * forwards, so it holds for X and the root that sent it, too, and each message
 * comes at most once. When all agree again, the next message reaches all. */
#include "core/base/err.h"
#include "core/group/group.h"
#include "tests/support/test.h"
#include "tests/unit/core/group/net.h"

struct run {
    struct net *net;
    const char *shape;
    uint32_t n, cells, seed;
    uint64_t random;
    uint8_t sent; /* messages: their ids are 0, 1, .. */
};

static uint32_t below(struct run *r, uint32_t limit)
{
    r->random =
        r->random * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(r->random >> 33) % limit;
}

static bool lives(const struct run *r, qn_node_t v)
{
    return r->net->node[v].context != NULL;
}

/* `root`, then the others in ascending order, some left out. */
static uint32_t members(struct run *r, qn_node_t root, uint32_t out_of_8,
                        qn_node_t order[NET_NODES])
{
    uint32_t n = 0;
    order[n++] = root;
    for (qn_node_t v = 0; v < r->n; v++) {
        if (v != root && below(r, 8) < out_of_8) {
            order[n++] = v;
        }
    }
    return n;
}

static void reroot(struct run *r, qn_node_t v)
{
    qn_node_t order[NET_NODES];
    /* Often itself, so that there are roots. */
    qn_node_t root = below(r, 2) == 0 ? v : below(r, r->n);
    uint32_t n = members(r, root, 7, order);
    net_reroot(r->net, v, r->shape, order, n);
}

/* Message `sent`, if `v` thinks that it is the root. */
static void bcast(struct run *r, qn_node_t v)
{
    struct net_node *node = &r->net->node[v];
    qn_node_t root = r->net->tree.root;
    r->net->tree.root = v;
    if (net_bcast(r->net, r->sent, 1 + below(r, 40), NULL) == QN_OK) {
        node->id[node->count] = r->sent++;
        node->from[node->count++] = v;
    }
    r->net->tree.root = root;
}

static void step(struct run *r)
{
    qn_node_t v = below(r, r->n);
    uint32_t what = below(r, 64);
    if (!lives(r, v)) {
        if (what < 16) {
            net_revive(r->net, v, r->cells, 4);
        }
    } else if (what < 1 && r->n > 2) {
        net_die(r->net, v);
    } else if (what < 4) {
        reroot(r, v);
    } else if (what < 24) {
        bcast(r, v);
    } else if (what < 44) {
        net_turn(r->net, v);
    } else if (qn_context_pending(r->net->node[v].context)) {
        (void)qn_context_poll(r->net->node[v].context, 1 + below(r, 4));
    }
}

/* All that X has from P, P had before, in this order. */
static void check_lane(const struct run *r, qn_node_t x, qn_node_t p)
{
    const struct net_node *to = &r->net->node[x];
    const struct net_node *from = &r->net->node[p];
    uint32_t at = 0;
    for (uint32_t i = 0; i < to->count; i++) {
        if (to->from[i] != p) {
            continue;
        }
        while (at < from->count && from->id[at] != to->id[i]) {
            at++;
        }
        cr_assert_lt(at, from->count, "seed %u: %u from %u at %u, message %u",
                     r->seed, to->id[i], p, x, i);
        at++;
    }
}

/* Depth 1: each lane carries what its root sent, so ids only grow. */
static void check_once(const struct run *r, qn_node_t x, qn_node_t p)
{
    const struct net_node *to = &r->net->node[x];
    int last = -1;
    for (uint32_t i = 0; i < to->count; i++) {
        if (to->from[i] == p) {
            cr_assert_gt(to->id[i], last, "seed %u: node %u", r->seed, x);
            last = to->id[i];
        }
    }
}

static void check(const struct run *r)
{
    bool flat = r->shape[0] == 's';
    for (qn_node_t x = 0; x < r->n; x++) {
        for (qn_node_t p = 0; p < r->n; p++) {
            if (x != p) {
                check_lane(r, x, p);
            }
            if (flat) {
                check_once(r, x, p);
            }
        }
    }
}

/* The living agree on a tree, then one more message. */
static void agree(struct run *r)
{
    qn_node_t order[NET_NODES];
    for (qn_node_t v = 0; v < r->n; v++) {
        if (!lives(r, v)) {
            net_revive(r->net, v, r->cells, 4);
        }
    }
    qn_node_t root = below(r, r->n);
    uint32_t n = members(r, root, 8, order);
    net_reroot_all(r->net, r->shape, order, n);
    net_settle(r->net);
    bcast(r, root);
    net_settle(r->net);
    for (qn_node_t v = 0; v < r->n; v++) {
        struct net_node *node = &r->net->node[v];
        cr_assert_gt(node->count, 0);
        cr_assert_eq(node->id[node->count - 1], r->sent - 1,
                     "seed %u: the last message at node %u", r->seed, v);
        cr_assert(node->count < 2 || node->id[node->count - 2] != r->sent - 1,
                  "seed %u: twice at node %u", r->seed, v);
        cr_assert(!qn_context_pending(node->context));
        cr_assert(!qn_context_flush(node->context));
    }
}

static void run(const char *shape, uint32_t seed)
{
    struct run r = {.shape = shape,
                    .n = 2 + seed % 8,
                    .cells = 1 + seed % 11,
                    .seed = seed,
                    .random = seed * UINT64_C(0x9e3779b97f4a7c15)};
    r.net = net_mesh(&(struct net_opts){shape, r.n, r.cells, 4});
    for (uint32_t i = 0; r.sent < 240 && i < 4000; i++) {
        step(&r);
    }
    agree(&r);
    check(&r);
    net_free(r.net);
}

Test(reroot_random, roots_that_send_to_all_themselves, .timeout = 120)
{
    for (uint32_t seed = 1; seed <= 60; seed++) {
        run("sequential", seed);
    }
}

Test(reroot_random, trees_that_forward, .timeout = 120)
{
    for (uint32_t seed = 1; seed <= 120; seed++) {
        run("binary", seed);
    }
}
