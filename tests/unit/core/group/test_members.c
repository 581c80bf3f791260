/*
 * Contexts of more members than one word has bits: trees whose queuepairs exist
 * along the edges only. A look at any other peer would follow a NULL.
 *
 * The members' numbers are dealt so that parents, children and siblings lie in
 * different words. Message `id` of length `len` has the bytes (id * 31 + i).
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/group/group.h"
#include "tests/support/inmemory_transport.h"
#include "tests/support/test.h"

enum { CELLS = 16, MSG_MAX = 600, LOG = 80 };

struct member {
    struct qn_qp **qp;
    struct qn_context *context;
    uint32_t count;
    uint8_t id[LOG]; /* of the messages delivered, in order */
    size_t len[LOG];
};

struct net {
    uint32_t n;
    uint32_t words;
    struct qn_tree tree;
    struct member *member; /* [n] */
};

static void deliver(void *ctx, const void *msg, size_t len)
{
    struct member *m = ctx;
    const uint8_t *bytes = msg;
    cr_assert_lt(m->count, LOG);
    uint8_t id = 0;
    while (len > 0 && (uint8_t)(id * 31u) != bytes[0]) {
        id++;
    }
    for (size_t i = 0; i < len; i++) {
        cr_assert_eq(bytes[i], (uint8_t)(id * 31u + i));
    }
    m->id[m->count] = id;
    m->len[m->count++] = len;
}

static void connect(struct net *net, qn_node_t a, qn_node_t b)
{
    struct qn_qp *end[2];
    inmemory_pair_limited(end, CELLS, QN_INPLACE_MAX, MSG_MAX);
    net->member[a].qp[b] = end[0];
    net->member[b].qp[a] = end[1];
}

static void connect_edges(struct net *net, const struct qn_tree *t)
{
    for (qn_node_t v = 0; v < net->n; v++) {
        qn_node_t up = t->parent[v];
        if (up != v && up != QN_NO_MEMBER && net->member[v].qp[up] == NULL) {
            connect(net, up, v);
        }
    }
}

static struct qn_context_opts opts_of(struct net *net, qn_node_t v)
{
    return (struct qn_context_opts){.self = v,
                                    .members = net->n,
                                    .msg_max = MSG_MAX,
                                    .tree = &net->tree,
                                    .qp = net->member[v].qp,
                                    .deliver = deliver,
                                    .ctx = &net->member[v]};
}

/* Ranks that follow each other lie in different words. 67 is a prime and
 * divides no size of these tests. */
static void deal(qn_node_t *order, uint32_t n)
{
    uint32_t step = n > 130 ? 67 : 1;
    for (uint32_t i = 0; i < n; i++) {
        order[i] = (n - 1 + i * step) % n;
    }
}

static struct net *net_new(const char *shape, uint32_t n)
{
    qn_node_t order[QN_MEMBERS_MAX];
    struct net *net = calloc(1, sizeof *net);
    cr_assert_not_null(net);
    net->n = n;
    net->words = QN_NODE_SET_WORDS(n);
    net->member = calloc(n, sizeof *net->member);
    cr_assert_not_null(net->member);
    deal(order, n);
    cr_assert_eq(qn_tree_build(&net->tree, shape, order, n), QN_OK);
    for (qn_node_t v = 0; v < n; v++) {
        net->member[v].qp = calloc(n, sizeof(struct qn_qp *));
        cr_assert_not_null(net->member[v].qp);
    }
    connect_edges(net, &net->tree);
    for (qn_node_t v = 0; v < n; v++) {
        const struct qn_context_opts o = opts_of(net, v);
        cr_assert_eq(qn_context_create(&net->member[v].context, &o), QN_OK);
    }
    return net;
}

static void net_free(struct net *net)
{
    for (qn_node_t v = 0; v < net->n; v++) {
        qn_context_destroy(net->member[v].context);
        for (qn_node_t w = 0; w < net->n; w++) {
            qn_qp_close(net->member[v].qp[w]);
        }
        free(net->member[v].qp);
    }
    free(net->member);
    free(net);
}

static struct qn_context *root_of(struct net *net)
{
    return net->member[net->tree.root].context;
}

static struct qn_slice message(uint8_t id, size_t len)
{
    static uint8_t bytes[MSG_MAX + 1];
    for (size_t i = 0; i < len; i++) {
        bytes[i] = (uint8_t)(id * 31u + i);
    }
    return (struct qn_slice){bytes, len};
}

/* @return true while anything is under way. */
static bool turn_all(struct net *net)
{
    bool busy = false;
    for (qn_node_t v = 0; v < net->n; v++) {
        struct qn_context *c = net->member[v].context;
        if (c != NULL) {
            busy |= qn_context_poll(c, 64) > 0;
            busy |= qn_context_flush(c);
        }
    }
    for (qn_node_t v = 0; v < net->n && !busy; v++) {
        struct qn_context *c = net->member[v].context;
        busy = c != NULL && qn_context_pending(c);
    }
    return busy;
}

static void settle(struct net *net)
{
    uint32_t turns = 0;
    while (turn_all(net)) {
        cr_assert_lt(++turns, 20000);
    }
}

static const uint32_t sizes[] = {2, 63, 64, 65, 128, 129, 300, QN_MEMBERS_MAX};
static const char *const shapes[] = {"binary", "tree:k=4", "sequential"};
static const size_t lens[] = {0, 1, 56, 57, 300, MSG_MAX};

Test(members, a_tree_with_queuepairs_along_its_edges_broadcasts, .timeout = 120)
{
    for (uint32_t s = 0; s < QN_ARRAY_COUNT(sizes); s++) {
        for (uint32_t k = 0; k < QN_ARRAY_COUNT(shapes); k++) {
            struct net *net = net_new(shapes[k], sizes[s]);
            for (uint8_t id = 0; id < QN_ARRAY_COUNT(lens); id++) {
                const struct qn_slice m = message(id, lens[id]);
                cr_assert_eq(qn_context_bcast(root_of(net), &m, 1, NULL),
                             QN_OK);
                settle(net);
            }
            for (qn_node_t v = 0; v < net->n; v++) {
                bool root = v == net->tree.root;
                cr_assert_eq(net->member[v].count,
                             root ? 0 : QN_ARRAY_COUNT(lens),
                             "%s of %u, node %u", shapes[k], net->n, v);
                for (uint32_t i = 0; i < net->member[v].count; i++) {
                    cr_assert_eq(net->member[v].len[i], lens[i]);
                }
            }
            net_free(net);
        }
    }
}

/* Messages of several turns are under way at once. No node tells another that
 * it is full, so some are dropped: of each edge all are accounted for. */
Test(members, what_finds_no_room_is_counted_edge_by_edge, .timeout = 120)
{
    uint64_t all = 0; /* that were dropped */
    for (uint32_t s = 0; s < QN_ARRAY_COUNT(sizes); s++) {
        for (uint32_t k = 0; k < QN_ARRAY_COUNT(shapes); k++) {
            struct net *net = net_new(shapes[k], sizes[s]);
            for (uint8_t id = 0; id < LOG; id++) {
                const struct qn_slice m =
                    message(id, QN_MAX(lens[id % QN_ARRAY_COUNT(lens)], 1));
                cr_assert_eq(qn_context_bcast(root_of(net), &m, 1, NULL),
                             QN_OK);
                if (id % 4 == 3) {
                    turn_all(net);
                }
            }
            settle(net);
            for (qn_node_t v = 0; v < net->n; v++) {
                const struct member *m = &net->member[v];
                qn_node_t up = net->tree.parent[v];
                if (up == v) {
                    continue;
                }
                uint64_t had =
                    up == net->tree.root ? LOG : net->member[up].count;
                uint64_t lost = qn_context_drops(net->member[up].context, v);
                cr_assert_eq(m->count + lost, had, "%s of %u, node %u",
                             shapes[k], net->n, v);
                all += lost;
                for (uint32_t i = 1; i < m->count; i++) {
                    cr_assert_lt(m->id[i - 1], m->id[i]);
                }
            }
            net_free(net);
        }
    }
    cr_assert_gt(all, 1000);
}

Test(members, each_child_without_room_is_named_and_no_other)
{
    struct net *net = net_new("sequential", 300);
    uint64_t word[QN_NODE_SET_WORDS(300)];
    memset(word, 0xff, sizeof word); /* bcast clears it */
    struct qn_node_set dropped = qn_node_set_of(word, 300);
    static const qn_node_t full[] = {0, 63, 64, 127, 128, 255, 298};
    const struct qn_slice m = message(1, 8);
    qn_node_t root = net->tree.root;
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(full); i++) {
        cr_assert_neq(full[i], root);
        inmemory_allow(net->member[root].qp[full[i]], 0);
    }
    cr_assert_eq(qn_context_bcast(root_of(net), &m, 1, &dropped), QN_OK);
    uint32_t i = 0;
    for (qn_node_t v = qn_node_set_next(&dropped, 0); v != QN_NO_MEMBER;
         v = qn_node_set_next(&dropped, v + 1)) {
        cr_assert_lt(i, QN_ARRAY_COUNT(full));
        cr_assert_eq(v, full[i++]);
        cr_assert_eq(qn_context_drops(root_of(net), v), 1);
    }
    cr_assert_eq(i, QN_ARRAY_COUNT(full));
    for (qn_node_t v = 0; v < 300; v++) {
        cr_assert_leq(qn_context_drops(root_of(net), v),
                      qn_node_set_has(&dropped, v) ? 1 : 0);
    }
    net_free(net);
}

/* A child of an inner node gets the beginning of a long message only; all below
 * it get an ABORT when the next one comes. */
Test(members, a_long_message_is_cut_short_for_a_child_in_another_word)
{
    struct net *net = net_new("tree:k=4", 300);
    qn_node_t root = net->tree.root;
    qn_node_t inner = net->tree.child[net->tree.child_at[root]];
    qn_node_t slow = net->tree.child[net->tree.child_at[inner] + 2];
    cr_assert_neq(inner / 64, slow / 64);
    inmemory_allow(net->member[inner].qp[slow], 2);
    const uint8_t ids[] = {1, 2, 3};
    for (uint32_t i = 0; i < 3; i++) {
        const struct qn_slice m = message(ids[i], i == 2 ? 8 : MSG_MAX);
        cr_assert_eq(qn_context_bcast(root_of(net), &m, 1, NULL), QN_OK);
        for (uint32_t k = 0; k < 60; k++) {
            turn_all(net);
        }
        if (i == 1) {
            inmemory_allow(net->member[inner].qp[slow], INMEMORY_UNLIMITED);
            settle(net);
        }
    }
    settle(net);
    for (qn_node_t v = 0; v < net->n; v++) {
        qn_node_t up = v;
        while (up != root && up != slow) {
            up = net->tree.parent[up];
        }
        cr_assert_eq(net->member[v].count,
                     v == root    ? 0
                     : up == slow ? 2
                                  : 3,
                     "node %u", v);
    }
    cr_assert_eq(qn_context_drops(net->member[inner].context, slow), 1);
    net_free(net);
}

/* Queuepairs along the edges of two trees: the root moves there and back, and a
 * node without a queuepair to its new parent is left out. */
Test(members, the_root_moves_where_queuepairs_are)
{
    struct net *net = net_new("tree:k=4", 300);
    const struct qn_tree first = net->tree;
    qn_node_t order[300];
    struct qn_tree second;
    for (uint32_t i = 0; i < 300; i++) {
        order[i] = (150 + i * 7) % 300;
    }
    cr_assert_eq(qn_tree_build(&second, "binary", order, 300), QN_OK);
    qn_node_t without = order[299]; /* a leaf of it */
    connect_edges(net, &second);
    for (qn_node_t v = 0; v < 300; v++) {
        for (qn_node_t w = 0; w < 300; w++) {
            if (v != without && w != without && net->member[v].qp[w] != NULL) {
                qn_context_up(net->member[v].context, w);
            }
        }
    }
    for (uint8_t round = 0; round < 4; round++) {
        const struct qn_tree *t = round % 2 == 0 ? &second : &first;
        for (qn_node_t v = 0; v < 300; v++) {
            cr_assert_eq(qn_context_reroot(net->member[v].context, t), QN_OK);
        }
        net->tree = *t;
        const struct qn_slice m = message(round, 300);
        cr_assert_eq(qn_context_bcast(root_of(net), &m, 1, NULL), QN_OK);
        settle(net);
    }
    for (qn_node_t v = 0; v < 300; v++) {
        uint32_t roots =
            (v == first.root ? 2u : 0u) + (v == second.root ? 2u : 0u);
        cr_assert_eq(net->member[v].count, v == without ? 2 : 4 - roots,
                     "node %u", v);
    }
    net_free(net);
}

Test(members, what_is_out_of_range_is_refused)
{
    struct net *net = net_new("binary", 65);
    struct qn_context *c = NULL;
    const struct qn_context_opts good = opts_of(net, 3);
    struct qn_context_opts bad[] = {good, good, good, good, good};
    bad[0].members = 64; /* the tree has node 64 */
    bad[1].members = QN_MEMBERS_MAX + 1;
    bad[2].self = 65;
    bad[3].msg_max = QN_INPLACE_MAX - 1;
    bad[4].msg_max = QN_MSG_MAX + 1;
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(bad); i++) {
        cr_expect_eq(qn_context_create(&c, &bad[i]), QN_EINVAL, "case %u", i);
    }
    cr_assert_null(c);
    const struct qn_slice m = message(1, MSG_MAX + 1);
    cr_expect_eq(qn_context_bcast(root_of(net), &m, 1, NULL), QN_EMSGSIZE);
    struct qn_tree larger;
    const qn_node_t order[] = {0, 65};
    cr_assert_eq(qn_tree_build(&larger, "binary", order, 2), QN_OK);
    cr_expect_eq(qn_context_reroot(root_of(net), &larger), QN_EINVAL);
    net_free(net);
}

/* A parent whose queuepair lets longer messages pass than the context was made
 * for: they are not assembled, and the next one is. */
Test(members, a_message_longer_than_the_context_takes_is_left_out)
{
    struct net *net = net_new("binary", 70);
    qn_node_t root = net->tree.root;
    qn_node_t inner = net->tree.child[net->tree.child_at[root]];
    struct qn_qp *end = net->member[root].qp[inner];
    static const uint8_t bytes[QN_INPLACE_MAX] = {31};
    const struct qn_frame frames[] = {
        {QN_FRAME_FIRST, bytes, QN_INPLACE_MAX, MSG_MAX + 1},
        {QN_FRAME_MORE, bytes, QN_INPLACE_MAX, 0},
        {QN_FRAME_ABORT, bytes, 0, 0}};
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(frames); i++) {
        inmemory_inject(end, &frames[i]);
    }
    settle(net);
    cr_assert_eq(net->member[inner].count, 0);
    const struct qn_slice m = message(1, MSG_MAX);
    cr_assert_eq(qn_context_bcast(root_of(net), &m, 1, NULL), QN_OK);
    settle(net);
    cr_assert_eq(net->member[inner].count, 1);
    net_free(net);
}
