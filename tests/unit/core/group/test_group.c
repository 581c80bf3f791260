/* Broadcast along a tree that stays. */
#include "core/group/group.h"

#include "core/base/err.h"
#include "tests/support/test.h"
#include "tests/unit/core/group/net.h"

static struct net *chain(uint32_t cells, uint32_t cell_bytes)
{
    /* 0 -> 1 -> 3, 0 -> 2: node 1 is inner, 3 hangs below it. */
    return net_new(&(struct net_opts){"binary", 4, cells, cell_bytes});
}

static struct qn_context *at(struct net *net, qn_node_t node)
{
    return net->node[node].context;
}

Test(group, every_shape_and_size_delivers_every_length_in_order, .timeout = 60)
{
    static const size_t lens[] = {0, 1, 7, 8, 9, 16, 17, 24, 1000, QN_MSG_MAX};
    for (uint32_t s = 0; qn_tree_name_at(s) != NULL; s++) {
        for (uint32_t n = 1; n <= NET_NODES; n++) {
            struct net *net =
                net_new(&(struct net_opts){qn_tree_name_at(s), n, 16384, 8});
            for (uint8_t id = 0; id < QN_ARRAY_COUNT(lens); id++) {
                uint64_t dropped = 1;
                cr_assert_eq(net_bcast(net, id, lens[id], &dropped), QN_OK);
                cr_assert_eq(dropped, 0);
            }
            net_settle(net);
            for (qn_node_t v = 1; v < n; v++) {
                cr_assert_eq(net->node[v].count, QN_ARRAY_COUNT(lens));
                for (uint32_t i = 0; i < QN_ARRAY_COUNT(lens); i++) {
                    cr_assert_eq(net->node[v].len[i], lens[i]);
                    cr_assert(lens[i] == 0 || net->node[v].id[i] == i);
                }
            }
            cr_assert_eq(net->node[0].count, 0, "the root has it already");
            net_free(net);
        }
    }
}

Test(group, a_long_message_travels_on_before_it_has_arrived)
{
    struct net *net = chain(64, 8);
    inmemory_allow(net_qp(net, 0, 1), 3);
    cr_assert_eq(net_bcast(net, 1, 80, NULL), QN_OK);
    cr_assert(net_turn(net, 1));
    cr_assert_eq(inmemory_frames(net_qp(net, 1, 3)), 3);
    net_turn(net, 3);
    cr_assert_eq(net->node[1].count + net->node[3].count, 0);
    inmemory_allow(net_qp(net, 0, 1), INMEMORY_UNLIMITED);
    net_settle(net);
    cr_assert_eq(net->node[3].count, 1);
    net_free(net);
}

Test(group, poll_keeps_its_budget)
{
    struct net *net = chain(64, 8);
    for (uint8_t id = 0; id < 3; id++) {
        cr_assert_eq(net_bcast(net, id, 20, NULL), QN_OK); /* 3 frames */
    }
    cr_assert_eq(qn_context_poll(at(net, 1), 0), 0);
    cr_assert_eq(qn_context_poll(at(net, 1), 4), 4);
    cr_assert_eq(net->node[1].count, 1);
    cr_assert_eq(qn_context_poll(at(net, 2), 2), 2, "a leaf counts messages");
    cr_assert_eq(net->node[2].count, 2);
    cr_assert(qn_context_pending(at(net, 1)));
    cr_assert_eq(qn_context_poll(at(net, 1), 100), 5);
    cr_assert(!qn_context_pending(at(net, 1)));
    net_free(net);
}

Test(group, the_root_drops_for_a_full_child_only)
{
    struct net *net = net_new(&(struct net_opts){"sequential", 4, 16, 8});
    inmemory_allow(net_qp(net, 0, 2), 0);
    uint64_t dropped = 0;
    cr_assert_eq(net_bcast(net, 1, 8, &dropped), QN_OK);
    cr_assert_eq(dropped, 1u << 2);
    inmemory_allow(net_qp(net, 0, 2), INMEMORY_UNLIMITED);
    cr_assert_eq(net_bcast(net, 2, 8, &dropped), QN_OK);
    cr_assert_eq(dropped, 0);
    net_settle(net);
    cr_assert_eq(net->node[1].count, 2);
    cr_assert_eq(net->node[2].count, 1);
    cr_assert_eq(net->node[2].id[0], 2);
    cr_assert_eq(qn_context_drops(at(net, 0), 2), 1);
    cr_assert_eq(qn_context_drops(at(net, 0), 1), 0);
    net_free(net);
}

/* Message 1 has 5 frames; the channel 1 -> 3 takes k of them. */
static struct net *stuck_at(uint32_t k)
{
    struct net *net = chain(64, 8);
    inmemory_allow(net_qp(net, 1, 3), k);
    cr_assert_eq(net_bcast(net, 1, 40, NULL), QN_OK);
    net_settle(net);
    cr_assert_eq(net->node[1].count, 1, "the inner node itself has it");
    cr_assert_eq(net->node[2].count, 1);
    cr_assert_eq(net->node[3].count, 0);
    return net;
}

Test(group, a_child_that_makes_room_in_time_gets_the_rest)
{
    for (uint32_t k = 0; k < 5; k++) {
        struct net *net = stuck_at(k);
        cr_assert(qn_context_flush(at(net, 1)), "something waits");
        cr_assert(!qn_context_pending(at(net, 1)), "but there is no room");
        inmemory_allow(net_qp(net, 1, 3), INMEMORY_UNLIMITED);
        cr_assert(qn_context_pending(at(net, 1)), "now there is");
        net_settle(net);
        cr_assert_eq(net->node[3].count, 1, "k=%u", k);
        cr_assert_eq(qn_context_drops(at(net, 1), 3), 0);
        cr_assert(!qn_context_flush(at(net, 1)));
        net_free(net);
    }
}

Test(group, a_short_message_never_overtakes_what_is_stuck)
{
    for (uint32_t k = 0; k < 5; k++) {
        struct net *net = stuck_at(k);
        cr_assert_eq(net_bcast(net, 2, 8, NULL), QN_OK);
        net_settle(net);
        inmemory_allow(net_qp(net, 1, 3), INMEMORY_UNLIMITED);
        cr_assert_eq(net_bcast(net, 3, 8, NULL), QN_OK);
        net_settle(net);
        cr_assert_eq(net->node[1].count, 3);
        cr_assert_eq(net->node[3].count, 2, "k=%u", k);
        cr_assert_eq(net->node[3].id[0], 1);
        cr_assert_eq(net->node[3].id[1], 3);
        cr_assert_eq(qn_context_drops(at(net, 1), 3), 1);
        net_free(net);
    }
}

Test(group, the_next_long_message_aborts_what_is_stuck)
{
    for (uint32_t k = 0; k < 5; k++) {
        struct net *net = stuck_at(k);
        cr_assert_eq(net_bcast(net, 2, 50, NULL), QN_OK);
        net_turn(net, 0);
        net_turn(net, 1);
        cr_assert_eq(qn_context_drops(at(net, 1), 3), 1);
        inmemory_allow(net_qp(net, 1, 3), INMEMORY_UNLIMITED);
        net_settle(net);
        cr_assert_eq(net->node[3].count, 1, "k=%u", k);
        cr_assert_eq(net->node[3].id[0], 2);
        /* k frames and an ABORT if k > 0, then 7 frames. */
        cr_assert_eq(inmemory_frames(net_qp(net, 1, 3)), k + (k > 0) + 7);
        net_free(net);
    }
}

Test(group, a_source_that_dies_at_any_frame_leaves_nothing)
{
    for (uint32_t k = 0; k < 5; k++) {
        struct net *net = chain(64, 8);
        inmemory_allow(net_qp(net, 0, 1), k);
        inmemory_allow(net_qp(net, 0, 2), k);
        cr_assert_eq(net_bcast(net, 1, 40, NULL), QN_OK);
        for (qn_node_t v = 1; v < 4; v++) {
            net_turn(net, v);
        }
        for (qn_node_t v = 1; v < 4; v++) {
            qn_context_down(at(net, v), 0);
            net_turn(net, v);
        }
        /* A new tree over the same channels: 1 -> 3. */
        net_die(net, 0);
        net_reshape(net, "sequential", (const qn_node_t[]){1, 3}, 2);
        cr_assert_eq(net_bcast(net, 9, 20, NULL), QN_OK);
        net_settle(net);
        cr_assert_eq(net->node[1].count + net->node[2].count, 0);
        cr_assert_eq(net->node[3].count, 1, "k=%u", k);
        cr_assert_eq(net->node[3].id[0], 9);
        net_free(net);
    }
}

Test(group, an_abort_without_room_is_sent_later)
{
    for (uint32_t k = 1; k < 5; k++) {
        struct net *net = chain(64, 8);
        inmemory_allow(net_qp(net, 0, 1), 4);
        inmemory_allow(net_qp(net, 1, 3), k);
        cr_assert_eq(net_bcast(net, 1, 40, NULL), QN_OK);
        net_turn(net, 1);
        qn_context_down(at(net, 1), 0);
        cr_assert(qn_context_flush(at(net, 1)), "the ABORT waits");
        inmemory_allow(net_qp(net, 1, 3), 1);
        cr_assert(!qn_context_flush(at(net, 1)));
        cr_assert_eq(inmemory_frames(net_qp(net, 1, 3)), QN_MIN(k, 4) + 1);
        net_turn(net, 3);
        cr_assert_eq(net->node[3].count, 0);
        net_free(net);
    }
}

Test(group, what_the_dead_had_sent_in_full_still_travels_down)
{
    struct net *net = stuck_at(2);
    qn_context_down(at(net, 1), 0);
    inmemory_allow(net_qp(net, 1, 3), INMEMORY_UNLIMITED);
    net_turn(net, 1);
    net_turn(net, 3);
    cr_assert_eq(net->node[3].count, 1);
    net_free(net);
}

Test(group, a_dead_child_is_left_alone_and_the_others_go_on)
{
    struct net *net = net_new(&(struct net_opts){"sequential", 3, 16, 8});
    cr_assert_eq(net_bcast(net, 1, 100, NULL), QN_OK);
    qn_context_down(at(net, 0), 1);
    qn_context_down(at(net, 0), 1);
    qn_context_destroy(at(net, 1));
    net->node[1].context = NULL;
    qn_qp_close(net_qp(net, 0, 1));
    net->node[0].qp[1] = NULL;
    uint64_t dropped = 1;
    cr_assert_eq(net_bcast(net, 2, 8, &dropped), QN_OK);
    cr_assert_eq(dropped, 0, "the dead have no room to lack");
    net_settle(net);
    cr_assert_eq(net->node[2].count, 2);
    cr_assert_eq(qn_context_drops(at(net, 0), 1), 0);
    net_free(net);
}

Test(group, an_inner_node_forgets_a_child_that_dies_in_the_middle)
{
    for (uint32_t k = 0; k < 5; k++) {
        struct net *net = stuck_at(k);
        qn_context_down(at(net, 1), 3);
        qn_context_destroy(at(net, 3));
        net->node[3].context = NULL;
        qn_qp_close(net_qp(net, 1, 3));
        net->node[1].qp[3] = NULL;
        cr_assert(!qn_context_flush(at(net, 1)));
        cr_assert_eq(net_bcast(net, 2, 40, NULL), QN_OK);
        net_settle(net);
        cr_assert_eq(net->node[1].count, 2);
        net_free(net);
    }
}

/* Node 3 comes back while message 1 passes through its parent. */
Test(group, a_new_life_gets_what_begins_after_it_and_no_tail)
{
    for (uint32_t k = 1; k < 5; k++) {
        struct net *net = chain(64, 8);
        inmemory_allow(net_qp(net, 0, 1), k);
        cr_assert_eq(net_bcast(net, 1, 40, NULL), QN_OK);
        net_turn(net, 1);
        qn_context_down(at(net, 1), 3);
        net_connect(net, 1, 3, 64, 8);
        qn_context_up(at(net, 1), 3);
        inmemory_allow(net_qp(net, 0, 1), INMEMORY_UNLIMITED);
        cr_assert_eq(net_bcast(net, 2, 40, NULL), QN_OK);
        cr_assert_eq(net_bcast(net, 3, 4, NULL), QN_OK);
        net_settle(net);
        cr_assert_eq(net->node[1].count, 3);
        cr_assert_eq(net->node[3].count, 2, "k=%u", k);
        cr_assert_eq(net->node[3].id[0], 2);
        net_free(net);
    }
}

Test(group, a_child_may_be_absent_at_first)
{
    struct net *net = chain(64, 8);
    qn_context_destroy(at(net, 1));
    qn_qp_close(net_qp(net, 1, 3));
    net->node[1].qp[3] = NULL;
    const struct qn_context_opts o = {
        .self = 1,
        .tree = &net->tree,
        .qp = net->node[1].qp,
        .deliver = net_deliver,
        .ctx = &net->node[1],
    };
    cr_assert_eq(qn_context_create(&net->node[1].context, &o), QN_OK);
    cr_assert_eq(net_bcast(net, 1, 40, NULL), QN_OK);
    net_turn(net, 1);
    net_connect(net, 1, 3, 64, 8);
    qn_context_up(at(net, 1), 3);
    cr_assert_eq(net_bcast(net, 2, 40, NULL), QN_OK);
    net_settle(net);
    cr_assert_eq(net->node[1].count, 2);
    cr_assert_eq(net->node[3].count, 1);
    net_free(net);
}

/* Sequences of frames that no sane parent sends. Nothing of them may be
 * delivered; what was sent on must form messages (inmemory_qp asserts it). */
Test(group, malformed_frames_are_an_abort)
{
    static uint8_t b[8];
    const struct qn_frame first = {QN_FRAME_FIRST, b, 8, 24};
    const struct qn_frame more = {QN_FRAME_MORE, b, 8, 0};
    const struct qn_frame last = {QN_FRAME_LAST, b, 8, 0};
    const struct qn_frame abort = {QN_FRAME_ABORT, NULL, 0, 0};
    const struct {
        uint32_t count;
        struct qn_frame f[3];
    } bad[] = {
        {1, {more}},
        {1, {last}},
        {1, {abort}},
        {2, {more, last}},
        {2, {{QN_FRAME_FIRST, b, 8, 8}, last}},
        {2, {{QN_FRAME_FIRST, b, 8, 7}, last}},
        {2, {{QN_FRAME_FIRST, b, 0, 8}, last}},
        {2, {{QN_FRAME_FIRST, b, 8, QN_MSG_MAX + 1}, more}},
        {2, {{QN_FRAME_FIRST, b, 8, UINT32_MAX}, more}},
        {2, {first, last}},
        {2, {first, {QN_FRAME_LAST, b, 0, 0}}},
        {2, {first, {QN_FRAME_MORE, b, 0, 0}}},
        {2, {{QN_FRAME_FIRST, b, 8, 15}, more}},
        {2, {{QN_FRAME_FIRST, b, 8, 15}, last}},
        {2, {{QN_FRAME_FIRST, b, 8, 16}, more}},
        {3, {first, more, more}},
        {2, {first, abort}},
        {3, {first, abort, last}},
        {2, {first, first}},
        {1, {first}},
        {1, {{(enum qn_frame_kind)77, b, 8, 8}}},
        {2, {first, {(enum qn_frame_kind)77, b, 8, 8}}},
    };
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(bad); i++) {
        struct net *net = chain(64, 8);
        for (uint32_t k = 0; k < bad[i].count; k++) {
            inmemory_inject(net_qp(net, 0, 1), &bad[i].f[k]);
        }
        cr_assert_eq(net_bcast(net, 5, 30, NULL), QN_OK);
        net_settle(net);
        cr_assert_eq(net->node[1].count, 1, "sequence %u", i);
        cr_assert_eq(net->node[3].count, 1, "sequence %u", i);
        cr_assert_eq(net->node[3].id[0], 5);
        net_free(net);
    }
}

/* A small channel against all lengths, with room that comes and goes: every
 * node delivers a subsequence of what was sent, whole and in order, and who is
 * given room gets the next message. */
Test(group, room_that_comes_and_goes_never_tears_or_reorders, .timeout = 60)
{
    for (uint32_t seed = 1; seed <= 200; seed++) {
        uint64_t r = seed * UINT64_C(0x9e3779b97f4a7c15);
        struct net *net = net_new(&(struct net_opts){
            "binary", 1 + seed % NET_NODES, 1 + seed % 7, 4});
        uint32_t n = net->tree.n;
        for (uint8_t id = 0; id < 100; id++) {
            r = r * UINT64_C(6364136223846793005) + 1442695040888963407u;
            cr_assert_eq(net_bcast(net, id, 1 + (r >> 33) % 40, NULL), QN_OK);
            for (uint32_t k = 0; k < n; k++) {
                r = r * UINT64_C(6364136223846793005) + 1442695040888963407u;
                net_turn(net, (qn_node_t)((r >> 33) % n));
            }
        }
        net_settle(net);
        cr_assert_eq(net_bcast(net, 200, 1, NULL), QN_OK);
        net_settle(net);
        for (qn_node_t v = 1; v < n; v++) {
            struct net_node *node = &net->node[v];
            cr_assert_geq(node->count, 1);
            cr_assert_eq(node->id[node->count - 1], 200, "seed %u", seed);
            for (uint32_t i = 1; i < node->count; i++) {
                cr_assert_lt(node->id[i - 1], node->id[i]);
            }
        }
        /* Every message is accounted for, edge by edge. */
        for (qn_node_t v = 1; v < n; v++) {
            qn_node_t p = net->tree.parent[v];
            uint64_t had = p == 0 ? 101 : net->node[p].count;
            cr_assert_eq(net->node[v].count + qn_context_drops(at(net, p), v),
                         had, "seed %u node %u", seed, v);
        }
        net_free(net);
    }
}

Test(group, bad_calls_are_refused)
{
    struct net *net = chain(16, 8);
    uint8_t byte = 0;
    const struct qn_slice one = {&byte, 1};
    cr_expect_eq(qn_context_bcast(at(net, 1), &one, 1, NULL), QN_EPERM);
    cr_expect_eq(qn_context_bcast(at(net, 3), &one, 1, NULL), QN_EPERM);
    cr_expect_eq(net_bcast(net, 0, QN_MSG_MAX + 1, NULL), QN_EMSGSIZE);
    cr_expect_eq(qn_context_bcast(at(net, 0), NULL, 0, NULL), QN_OK);

    struct qn_context *c = NULL;
    struct qn_context_opts o = {.self = 0, .tree = &net->tree, .qp = NULL};
    cr_expect_eq(qn_context_create(&c, &o), QN_EINVAL);
    o.qp = net->node[1].qp;
    o.self = 1; /* not the root: deliver is needed */
    cr_expect_eq(qn_context_create(&c, &o), QN_EINVAL);
    o.self = 4; /* no member */
    cr_expect_eq(qn_context_create(&c, &o), QN_EINVAL);
    o.self = QN_NODES_MAX;
    cr_expect_eq(qn_context_create(&c, &o), QN_EINVAL);
    struct qn_tree broken = net->tree;
    broken.parent[3] = 2;
    o.tree = &broken;
    o.self = 0;
    cr_expect_eq(qn_context_create(&c, &o), QN_EINVAL);
    cr_assert_null(c);
    qn_context_destroy(NULL);
    net_free(net);
}

/* A parent gone wild changes a message while it is being delivered: neither
 * this node nor anybody below sees another one than was checked. */
static struct qn_qp *wild;

static void deliver_and_scribble(void *ctx, const void *msg, size_t len)
{
    inmemory_scribble(wild);
    net_deliver(ctx, msg, len);
    inmemory_scribble(wild);
    net_deliver(ctx, msg, len);
}

static struct qn_context *scribbled(struct net *net, qn_node_t node)
{
    struct qn_context *c;
    const struct qn_context_opts o = {.self = node,
                                      .tree = &net->tree,
                                      .qp = net->node[node].qp,
                                      .deliver = deliver_and_scribble,
                                      .ctx = &net->node[node]};
    cr_assert_eq(qn_context_create(&c, &o), QN_OK);
    return c;
}

Test(group, what_is_delivered_stays_as_it_is)
{
    for (qn_node_t node = 1; node <= 2; node++) { /* inner node, leaf */
        struct net *net = chain(64, QN_INPLACE_MAX);
        struct qn_context *c = scribbled(net, node);
        wild = net_qp(net, 0, node);
        for (uint8_t id = 0; id < 3; id++) {
            size_t len = id == 0 ? 1 : id == 1 ? QN_INPLACE_MAX : 500;
            cr_assert_eq(net_bcast(net, id, len, NULL), QN_OK);
            net_turn(net, 0);
            cr_assert_gt(qn_context_poll(c, UINT32_MAX), 0);
        }
        cr_assert_eq(net->node[node].count, 6);
        qn_context_flush(c);
        net_turn(net, 3);
        cr_assert_eq(net->node[3].count, node == 1 ? 3 : 0);
        qn_context_destroy(c);
        net_free(net);
    }
}
