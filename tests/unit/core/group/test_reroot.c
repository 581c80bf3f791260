/* The tree changes under way: roots come and go, frames of old ones are still
 * in the lanes. */
#include "core/base/err.h"
#include "core/group/group.h"
#include "tests/support/test.h"
#include "tests/unit/core/group/net.h"

#define ORDER(...)                                                             \
    (const qn_node_t[])                                                        \
    {                                                                          \
        __VA_ARGS__                                                            \
    }

static const uint8_t message_1 = 31; /* one byte of it, as net.h says */

/* A mesh on 0 -> 1 -> 3, 0 -> 2; message 1 of the tests has 5 frames. */
static struct net *mesh(uint32_t n, uint32_t cells)
{
    return net_mesh(&(struct net_opts){"binary", n, cells, 8});
}

static struct qn_context *at(struct net *net, qn_node_t node)
{
    return net->node[node].context;
}

static void bcast(struct net *net, uint8_t id, size_t len)
{
    cr_assert_eq(net_bcast(net, id, len, NULL), QN_OK);
}

/* What a node has delivered: pairs of id and sender. */
#define GOT(net, v, ...)                                                       \
    got(net, v, (const uint32_t[]){__VA_ARGS__},                               \
        sizeof((const uint32_t[]){__VA_ARGS__}) / 8, __LINE__)

static void got(struct net *net, qn_node_t v, const uint32_t *want,
                uint32_t count, int line)
{
    const struct net_node *node = &net->node[v];
    cr_assert_eq(node->count, count, "line %d: node %u got %u messages", line,
                 v, node->count);
    for (uint32_t i = 0; i < count; i++) {
        cr_assert_eq(node->id[i], want[2 * i], "line %d: node %u, message %u",
                     line, v, i);
        cr_assert_eq(node->from[i], want[2 * i + 1],
                     "line %d: node %u, sender of message %u", line, v, i);
    }
}

Test(reroot, what_an_old_root_sent_is_delivered_once_and_goes_no_further)
{
    struct net *net = mesh(4, 64);
    bcast(net, 1, 8);
    bcast(net, 2, 40);
    /* 2 -> 1 -> 3, 2 -> 0: node 1 is inner, but 0 is not its parent now. */
    net_reroot_all(net, "binary", ORDER(2, 1, 0, 3), 4);
    bcast(net, 3, 40);
    net_settle(net);
    cr_assert_eq(net->node[1].count, 3);
    GOT(net, 0, 3, 2);
    GOT(net, 2, 1, 0, 2, 0);
    GOT(net, 3, 3, 1);
    cr_assert_eq(inmemory_frames(net_qp(net, 1, 3)), 5, "message 3 alone");
    cr_assert(!qn_context_pending(at(net, 1)));
    net_free(net);
}

Test(reroot, a_node_does_not_sleep_on_what_a_stranger_has_sent)
{
    struct net *net = mesh(4, 64);
    net_reroot(net, 3, "sequential", ORDER(3, 0, 1, 2), 4);
    const struct qn_slice m = {&message_1, 1};
    cr_assert_eq(qn_context_bcast(at(net, 3), &m, 1, NULL), QN_OK);
    for (qn_node_t v = 0; v < 3; v++) { /* root, inner node, leaf */
        cr_assert(qn_context_pending(at(net, v)));
        while (qn_context_pending(at(net, v))) {
            (void)qn_context_poll(at(net, v), 9);
        }
        GOT(net, v, 1, 3);
    }
    net_free(net);
}

/* Message 1 has come to node 1 as far as frame k when its root is deposed. */
Test(reroot, a_message_cut_by_a_new_root_is_aborted_and_the_next_is_whole)
{
    for (uint32_t k = 1; k < 5; k++) {
        struct net *net = mesh(4, 64);
        inmemory_allow(net_qp(net, 0, 1), k);
        bcast(net, 1, 40);
        net_turn(net, 1);
        net_turn(net, 3);
        net_reroot_all(net, "binary", ORDER(2, 1, 0, 3), 4);
        bcast(net, 2, 40);
        net_turn(net, 1);
        net_turn(net, 3);
        GOT(net, 1, 2, 2);
        GOT(net, 3, 2, 1);
        cr_assert_eq(inmemory_frames(net_qp(net, 1, 3)), k + (k > 0) + 5);
        /* The old root's rest comes: here it is whole, below it is not. */
        inmemory_allow(net_qp(net, 0, 1), INMEMORY_UNLIMITED);
        net_settle(net);
        bcast(net, 3, 20);
        net_settle(net);
        GOT(net, 1, 2, 2, 1, 0, 3, 2);
        GOT(net, 3, 2, 1, 3, 1);
        net_free(net);
    }
}

/* Both roots' frames arrive in turn: two messages are put together at once. */
Test(reroot, the_messages_of_an_old_and_a_new_root_do_not_mix)
{
    struct net *net = mesh(4, 64);
    inmemory_allow(net_qp(net, 0, 1), 1);
    bcast(net, 1, 40);
    net_turn(net, 1);
    net_reroot_all(net, "binary", ORDER(2, 1, 0, 3), 4);
    inmemory_allow(net_qp(net, 2, 1), 0);
    bcast(net, 7, 8); /* no room for it */
    inmemory_allow(net_qp(net, 2, 1), 1);
    bcast(net, 2, 40);
    for (uint32_t k = 1; k < 5; k++) {
        net_turn(net, 1);
        cr_assert_eq(net->node[1].count, 0);
        inmemory_allow(net_qp(net, 0, 1), 1);
        inmemory_allow(net_qp(net, 2, 1), 1);
        net_turn(net, 0);
        net_turn(net, 2);
    }
    net_settle(net);
    cr_assert_eq(net->node[1].count, 2);
    cr_assert_eq(net->node[1].id[0] + net->node[1].id[1], 3);
    GOT(net, 3, 2, 1);
    net_free(net);
}

/* Node 4 leaves the tree. */
Test(reroot, who_keeps_parent_and_child_loses_nothing)
{
    for (uint32_t k = 1; k <= 5; k++) {
        struct net *net = mesh(5, 64);
        inmemory_allow(net_qp(net, 1, 3), k / 2);
        inmemory_allow(net_qp(net, 0, 1), k);
        bcast(net, 1, 40);
        net_turn(net, 1);
        net_reroot_all(net, "binary", ORDER(0, 1, 2, 3), 4);
        inmemory_allow(net_qp(net, 0, 1), INMEMORY_UNLIMITED);
        inmemory_allow(net_qp(net, 1, 3), INMEMORY_UNLIMITED);
        net_settle(net);
        GOT(net, 1, 1, 0);
        GOT(net, 3, 1, 1);
        cr_assert_eq(qn_context_drops(at(net, 1), 3), 0);
        cr_assert_eq(inmemory_frames(net_qp(net, 1, 3)), 5);
        net_free(net);
    }
}

/* Node 1 has all of message 1, node 3 k frames of it: the old root is not
 * needed any more. */
Test(reroot, what_is_complete_here_goes_on_to_who_stays_a_child)
{
    for (uint32_t k = 0; k < 5; k++) {
        struct net *net = mesh(4, 64);
        inmemory_allow(net_qp(net, 1, 3), k);
        bcast(net, 1, 40);
        net_turn(net, 1);
        net_reroot_all(net, "binary", ORDER(2, 1, 0, 3), 4);
        bcast(net, 2, 8); /* finds no room behind it */
        net_turn(net, 1);
        inmemory_allow(net_qp(net, 1, 3), INMEMORY_UNLIMITED);
        bcast(net, 3, 8);
        net_settle(net);
        GOT(net, 3, 1, 1, 3, 1);
        cr_assert_eq(qn_context_drops(at(net, 1), 3), 1);
        net_free(net);
    }
}

Test(reroot, who_is_no_child_any_more_gets_an_abort)
{
    for (uint32_t k = 0; k < 5; k++) {
        struct net *net = mesh(4, 64);
        inmemory_allow(net_qp(net, 1, 3), k);
        bcast(net, 1, 40);
        net_turn(net, 1);
        net_reroot_all(net, "sequential", ORDER(0, 1, 2), 3);
        cr_assert_eq(qn_context_drops(at(net, 1), 3), 1);
        cr_assert_eq(qn_context_flush(at(net, 1)), k > 0, "the ABORT waits");
        inmemory_allow(net_qp(net, 1, 3), INMEMORY_UNLIMITED);
        cr_assert_eq(qn_context_pending(at(net, 1)), k > 0);
        cr_assert(!qn_context_flush(at(net, 1)));
        cr_assert_eq(inmemory_frames(net_qp(net, 1, 3)), k + (k > 0));
        bcast(net, 2, 20); /* not for node 3 */
        net_settle(net);
        net_reroot_all(net, "binary", ORDER(0, 1, 2, 3), 4);
        bcast(net, 3, 20);
        net_settle(net);
        GOT(net, 1, 1, 0, 2, 0, 3, 0);
        GOT(net, 3, 3, 1);
        net_free(net);
    }
}

/* Node 1 becomes an inner node when it has k frames of a message: as a leaf it
 * reads messages, as an inner node frames. */
Test(reroot, a_leaf_becomes_an_inner_node_in_the_middle_of_a_message)
{
    for (uint32_t k = 1; k <= 5; k++) {
        struct net *net = mesh(4, 64);
        net_reroot_all(net, "sequential", ORDER(0, 1, 2, 3), 4);
        inmemory_allow(net_qp(net, 0, 1), k);
        bcast(net, 1, 40);
        if (k != 5) {
            net_turn(net, 1); /* what is whole is left in the channel */
        } else {
            cr_assert(qn_context_pending(at(net, 1)), "a look may assemble");
        }
        net_reroot_all(net, "binary", ORDER(0, 1, 2, 3), 4);
        inmemory_allow(net_qp(net, 0, 1), INMEMORY_UNLIMITED);
        net_settle(net);
        GOT(net, 1, 1, 0);
        cr_assert_eq(net->node[3].count, 2, "from its old and its new parent");
        /* From now on it cuts through. */
        inmemory_allow(net_qp(net, 0, 1), 3);
        bcast(net, 2, 40);
        net_turn(net, 1);
        cr_assert_eq(inmemory_frames(net_qp(net, 1, 3)), 5 + 3);
        inmemory_allow(net_qp(net, 0, 1), INMEMORY_UNLIMITED);
        net_settle(net);
        GOT(net, 1, 1, 0, 2, 0);
        cr_assert_eq(net->node[3].id[2], 2);
        net_free(net);
    }
}

Test(reroot, an_inner_node_becomes_a_leaf_in_the_middle_of_a_message)
{
    for (uint32_t k = 1; k <= 5; k++) {
        struct net *net = mesh(4, 64);
        inmemory_allow(net_qp(net, 0, 1), k);
        bcast(net, 1, 40);
        net_turn(net, 1);
        net_reroot_all(net, "sequential", ORDER(0, 1, 2, 3), 4);
        bcast(net, 2, 40); /* node 1 may have no room for it */
        inmemory_allow(net_qp(net, 0, 1), INMEMORY_UNLIMITED);
        net_settle(net);
        bcast(net, 3, 40);
        net_settle(net);
        cr_assert_eq(net->node[1].id[0], 1);
        cr_assert_eq(net->node[1].id[net->node[1].count - 1], 3);
        if (k == 5) {
            GOT(net, 3, 2, 0, 1, 1, 3, 0);
        } else {
            GOT(net, 3, 2, 0, 3, 0);
        }
        net_free(net);
    }
}

/* Node 0 has staged half a message for node 1 when it is root no more. */
Test(reroot, a_root_becomes_a_leaf_and_a_root_again)
{
    struct net *net = mesh(4, 3);
    bcast(net, 1, 40); /* 5 frames, 3 cells */
    net_reroot_all(net, "binary", ORDER(2, 0, 1, 3), 4);
    bcast(net, 2, 20);
    net_settle(net);
    GOT(net, 0, 2, 2);
    cr_assert_eq(net->node[1].count, 2, "what was begun came whole");
    GOT(net, 3, 2, 0);
    net_reroot_all(net, "binary", ORDER(3, 0, 1, 2), 4);
    bcast(net, 3, 20);
    net_settle(net);
    net_reroot_all(net, "binary", ORDER(0, 1, 2, 3), 4);
    bcast(net, 4, 24);
    net_settle(net);
    GOT(net, 0, 2, 2, 3, 3);
    GOT(net, 2, 1, 0, 3, 0, 4, 0);
    GOT(net, 3, 2, 0, 4, 1);
    net_free(net);
}

/* Node 1 becomes the root while its child still waits for the ABORT of what it
 * had passed on, or for the rest of it. */
Test(reroot, a_new_root_pays_its_debts_first)
{
    for (uint32_t k = 1; k <= 5; k++) {
        struct net *net = mesh(4, 64);
        inmemory_allow(net_qp(net, 0, 1), k);
        inmemory_allow(net_qp(net, 1, 3), 1);
        bcast(net, 1, 40);
        net_turn(net, 1);
        net_reroot_all(net, "sequential", ORDER(1, 0, 2, 3), 4);
        uint64_t dropped = 0;
        cr_assert_eq(net_bcast(net, 2, 8, &dropped), QN_OK);
        cr_assert_eq(dropped, 1u << 3);
        inmemory_allow(net_qp(net, 1, 3), INMEMORY_UNLIMITED);
        cr_assert_eq(net_bcast(net, 3, 8, &dropped), QN_OK);
        cr_assert_eq(dropped, 0);
        net_settle(net);
        if (k == 5) {
            GOT(net, 3, 1, 1, 3, 1);
        } else {
            GOT(net, 3, 3, 1);
        }
        cr_assert_eq(net->node[2].count, 3);
        net_free(net);
    }
}

Test(reroot, a_node_dies_and_comes_back)
{
    for (uint32_t k = 1; k <= 5; k++) {
        struct net *net = mesh(4, 64);
        inmemory_allow(net_qp(net, 0, 1), k);
        bcast(net, 1, 40);
        net_turn(net, 1);
        net_turn(net, 3);
        net_die(net, 0);
        net_reroot_all(net, "binary", ORDER(1, 2, 3), 3);
        bcast(net, 2, 40);
        net_settle(net);
        net_revive(net, 0, 64, 8);
        net_reroot_all(net, "binary", ORDER(1, 0, 2, 3), 4);
        bcast(net, 3, 40);
        net_settle(net);
        net_reroot_all(net, "binary", ORDER(0, 1, 2, 3), 4);
        bcast(net, 4, 40);
        net_settle(net);
        GOT(net, 0, 3, 1);
        if (k == 5) {
            GOT(net, 1, 1, 0, 4, 0);
            GOT(net, 3, 1, 1, 2, 1, 3, 0, 4, 1);
        } else {
            GOT(net, 1, 4, 0);
            GOT(net, 3, 2, 1, 3, 0, 4, 1);
        }
        net_free(net);
    }
}

/* An inner node dies with a part of a message; the tree still names it. */
Test(reroot, a_dead_member_is_skipped)
{
    struct net *net = mesh(4, 64);
    net_die(net, 1);
    net_reroot_all(net, "sequential", ORDER(0, 1, 2, 3), 4);
    uint64_t dropped = 1;
    cr_assert_eq(net_bcast(net, 1, 40, &dropped), QN_OK);
    cr_assert_eq(dropped, 0);
    net_settle(net);
    GOT(net, 2, 1, 0);
    GOT(net, 3, 1, 0);
    net_reroot_all(net, "binary", ORDER(1, 0, 2, 3), 4);
    cr_assert_eq(qn_context_poll(at(net, 0), 9), 0);
    net_free(net);
}

Test(reroot, who_is_no_member_only_receives)
{
    struct net *net = mesh(4, 64);
    bcast(net, 1, 40);
    net_reroot_all(net, "sequential", ORDER(0, 2), 2);
    const struct qn_slice m = {&message_1, 1};
    cr_assert_eq(qn_context_bcast(at(net, 1), &m, 1, NULL), QN_EPERM);
    bcast(net, 2, 40);
    net_settle(net);
    GOT(net, 1, 1, 0);
    GOT(net, 2, 1, 0, 2, 0);
    cr_assert_eq(net->node[3].count, 0);
    net_reroot_all(net, "binary", ORDER(0, 1, 2, 3), 4);
    bcast(net, 3, 40);
    net_settle(net);
    GOT(net, 1, 1, 0, 3, 0);
    GOT(net, 3, 3, 1);
    net_free(net);
}

/* A peer that fills its lane again as soon as it is read; budgets are small. */
Test(reroot, no_lane_starves_another)
{
    for (uint32_t budget = 1; budget < 4; budget++) {
        struct net *net = mesh(4, 4);
        const struct qn_slice m = {&message_1, 1};
        for (qn_node_t v = 1; v < 4; v++) {
            net_reroot(net, v, "sequential", ORDER(v, (v + 1) % 4), 2);
            net_reroot(net, v, "sequential", ORDER(v, 0), 2);
        }
        net_reroot(net, 0, "sequential", ORDER(1, 0), 2);
        uint32_t came[4] = {0};
        for (uint32_t i = 0; i < 48; i++) {
            for (qn_node_t v = 1; v < 4; v++) {
                (void)qn_context_bcast(at(net, v), &m, 1, NULL);
            }
            cr_assert_eq(qn_context_poll(at(net, 0), budget), budget);
        }
        for (uint32_t i = 0; i < net->node[0].count; i++) {
            came[net->node[0].from[i]]++;
        }
        for (qn_node_t v = 1; v < 4; v++) {
            cr_assert_geq(came[v], 48 * budget / 4 - 4, "node %u: %u", v,
                          came[v]);
        }
        net_free(net);
    }
}

Test(reroot, many_strangers_are_all_heard)
{
    struct net *net = mesh(NET_NODES, 4);
    const struct qn_slice m = {&message_1, 1};
    for (qn_node_t v = 1; v < NET_NODES; v++) {
        net_reroot(net, v, "sequential", ORDER(v, 0), 2);
        cr_assert_eq(qn_context_bcast(at(net, v), &m, 1, NULL), QN_OK);
    }
    while (qn_context_pending(at(net, 0))) {
        (void)qn_context_poll(at(net, 0), 4);
    }
    cr_assert_eq(net->node[0].count, NET_NODES - 1);
    net_free(net);
}

/* An old root gone wild begins a message inside another one: it is put together
 * here, but no more forwarded than any other of it. */
Test(reroot, what_an_old_root_begins_anew_goes_no_further)
{
    struct net *net = mesh(4, 64);
    inmemory_allow(net_qp(net, 0, 1), 2);
    bcast(net, 1, 40);
    net_turn(net, 1);
    net_reroot_all(net, "binary", ORDER(2, 1, 0, 3), 4);
    inmemory_allow(net_qp(net, 0, 1), INMEMORY_UNLIMITED);
    uint8_t bytes[24]; /* message 0 */
    for (uint8_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = i;
    }
    inmemory_inject(net_qp(net, 0, 1),
                    &(struct qn_frame){QN_FRAME_FIRST, bytes, 8, 24});
    inmemory_inject(net_qp(net, 0, 1),
                    &(struct qn_frame){QN_FRAME_MORE, bytes + 8, 8, 0});
    inmemory_inject(net_qp(net, 0, 1),
                    &(struct qn_frame){QN_FRAME_LAST, bytes + 16, 8, 0});
    (void)qn_context_poll(at(net, 1), 9);
    (void)qn_context_flush(at(net, 1));
    GOT(net, 1, 0, 0);
    cr_assert_eq(inmemory_frames(net_qp(net, 1, 3)), 3, "two and the ABORT");
    net_free(net);
}

Test(reroot, bad_calls_are_refused)
{
    struct net *net = mesh(4, 64);
    struct qn_tree broken = net->tree;
    broken.parent[3] = 2;
    cr_expect_eq(qn_context_reroot(at(net, 1), &broken), QN_EINVAL);
    bcast(net, 1, 40);
    net_settle(net);
    GOT(net, 3, 1, 1);

    struct qn_context *c = NULL;
    const struct qn_context_opts o = {
        .self = 0, .tree = &net->tree, .qp = net->node[0].qp};
    cr_assert_eq(qn_context_create(&c, &o), QN_OK);
    struct qn_tree other;
    cr_assert_eq(qn_tree_build(&other, "binary", ORDER(1, 0), 2), QN_OK);
    cr_expect_eq(qn_context_reroot(c, &other), QN_EINVAL, "nobody to deliver");
    cr_assert_eq(qn_tree_build(&other, "binary", ORDER(0, 3), 2), QN_OK);
    cr_expect_eq(qn_context_reroot(c, &other), QN_OK);
    qn_context_destroy(c);
    net_free(net);
}
