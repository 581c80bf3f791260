/* The acknowledged form of broadcast. */
#include "core/base/err.h"
#include "core/group/group.h"
#include "tests/support/test.h"
#include "tests/unit/core/group/net.h"

static struct net *acked(const char *shape, uint32_t n, uint32_t cells)
{
    return net_new(&(struct net_opts){shape, n, cells, 8, true});
}

static uint64_t acked_by_all(struct net *net)
{
    return qn_context_acked(net->node[0].context);
}

static uint32_t least_delivered(const struct net *net)
{
    uint32_t least = UINT32_MAX;
    for (qn_node_t v = 1; v < net->tree.n; v++) {
        least = QN_MIN(least, net->node[v].count);
    }
    return least;
}

Test(acked, every_shape_and_size_acknowledges_what_all_have, .timeout = 60)
{
    static const size_t lens[] = {0, 1, 8, 9, 100, QN_MSG_MAX - QN_ACKED_EXTRA};
    for (uint32_t s = 0; qn_tree_name_at(s) != NULL; s++) {
        for (uint32_t n = 1; n <= NET_NODES; n++) {
            struct net *net = acked(qn_tree_name_at(s), n, 16384);
            for (uint8_t id = 0; id < QN_ARRAY_COUNT(lens); id++) {
                uint64_t number = 0;
                cr_assert_eq(net_bcast_acked(net, id, lens[id], &number),
                             QN_OK);
                cr_assert_eq(number, id + 1u);
                cr_assert(n == 1 || acked_by_all(net) <= id);
                net_settle(net);
                cr_assert_eq(acked_by_all(net), number, "n=%u", n);
            }
            for (qn_node_t v = 1; v < n; v++) {
                cr_assert_eq(net->node[v].count, QN_ARRAY_COUNT(lens));
                for (uint32_t i = 0; i < QN_ARRAY_COUNT(lens); i++) {
                    cr_assert_eq(net->node[v].len[i], lens[i]);
                }
            }
            net_free(net);
        }
    }
}

/* What a faulty parent sent is forgotten with all that was noted about it. */
Test(acked, no_room_for_a_wrong_message_does_not_count_for_the_next_one)
{
    struct net *net =
        net_new(&(struct net_opts){"binary", 4, 64, QN_INPLACE_MAX, true});
    const uint64_t wrong[] = {0, 7}; /* number 7 comes first */
    uint64_t number;
    inmemory_allow(net_qp(net, 1, 3), 0);
    inmemory_inject(
        net_qp(net, 0, 1),
        &(struct qn_frame){QN_FRAME_ONLY, wrong, sizeof wrong, sizeof wrong});
    cr_assert(net_turn(net, 1));
    inmemory_allow(net_qp(net, 1, 3), INMEMORY_UNLIMITED);
    cr_assert_eq(net_bcast_acked(net, 1, 8, &number), QN_OK);
    net_settle(net);
    cr_assert_eq(acked_by_all(net), 1);
    cr_assert_eq(net->node[1].count, 1);
    cr_assert_eq(net->node[3].count, 1);
    cr_assert_eq(inmemory_frames(net_qp(net, 1, 3)), 1, "sent once");
    net_free(net);
}

Test(acked, nothing_is_acknowledged_before_the_last_one_has_it)
{
    struct net *net = acked("binary", 4, 64); /* 0 -> 1 -> 3, 0 -> 2 */
    uint64_t number;
    cr_assert_eq(net_bcast_acked(net, 1, 30, &number), QN_OK);
    net_turn(net, 0);
    net_turn(net, 1);
    net_turn(net, 2);
    net_turn(net, 1);
    net_turn(net, 0);
    cr_assert_eq(acked_by_all(net), 0);
    net_turn(net, 3);
    cr_assert_eq(acked_by_all(net), 0);
    net_turn(net, 1);
    net_turn(net, 0);
    cr_assert_eq(acked_by_all(net), 1);
    net_free(net);
}

Test(acked, the_window_counts_broadcasts)
{
    struct net *net = acked("sequential", 2, 4096);
    uint64_t number = 0;
    for (uint32_t i = 0; i < 3 * QN_ACKED_COUNT; i++) {
        int want = i < QN_ACKED_COUNT ? QN_OK : QN_EAGAIN;
        cr_assert_eq(net_bcast_acked(net, (uint8_t)i, 1, &number), want);
    }
    cr_assert_eq(number, QN_ACKED_COUNT);
    qn_context_poll(net->node[1].context, 1);
    qn_context_flush(net->node[1].context);
    net_turn(net, 0);
    cr_assert_eq(acked_by_all(net), 1);
    cr_assert_eq(net_bcast_acked(net, 0, 1, &number), QN_OK);
    cr_assert_eq(net_bcast_acked(net, 0, 1, &number), QN_EAGAIN);
    net_settle(net);
    cr_assert_eq(acked_by_all(net), QN_ACKED_COUNT + 1);
    net_free(net);
}

Test(acked, the_window_counts_bytes)
{
    struct net *net = acked("sequential", 2, 65536);
    uint64_t number;
    size_t half = QN_ACKED_BYTES / 2 - QN_ACKED_EXTRA;
    cr_assert_eq(net_bcast_acked(net, 1, half, &number), QN_OK);
    cr_assert_eq(net_bcast_acked(net, 2, half - 9, &number), QN_OK);
    cr_assert_eq(net_bcast_acked(net, 3, 2, &number), QN_EAGAIN);
    cr_assert_eq(net_bcast_acked(net, 3, 1, &number), QN_OK);
    cr_assert_eq(net_bcast_acked(net, 4, 0, &number), QN_EAGAIN);
    net_settle(net);
    cr_assert_eq(net_bcast_acked(net, 4, half, &number), QN_OK);
    net_settle(net);
    cr_assert_eq(acked_by_all(net), 4);
    net_free(net);
}

Test(acked, without_room_at_one_child_nothing_is_sent_to_any)
{
    struct net *net = acked("sequential", 4, 64);
    uint64_t number = 77;
    inmemory_allow(net_qp(net, 0, 3), 0);
    cr_assert_eq(net_bcast_acked(net, 1, 1, &number), QN_EAGAIN);
    cr_assert_eq(number, 77);
    cr_assert_eq(inmemory_frames(net_qp(net, 0, 1)), 0);
    inmemory_allow(net_qp(net, 0, 3), INMEMORY_UNLIMITED);
    cr_assert_eq(net_bcast_acked(net, 1, 1, &number), QN_OK);
    cr_assert_eq(number, 1);
    net_settle(net);
    cr_assert_eq(acked_by_all(net), 1);
    net_free(net);
}

/* The channel 1 -> 3 stops after k frames; the others must not notice. */
Test(acked, a_full_child_is_owed_and_holds_up_nobody)
{
    for (uint32_t k = 0; k < 12; k++) {
        struct net *net = acked("binary", 5, 64); /* 1 -> 3, 4 */
        uint64_t number;
        inmemory_allow(net_qp(net, 1, 3), k);
        for (uint8_t id = 1; id <= 6; id++) {
            /* alternately 1 cell and 4 */
            size_t len = id % 2 == 0 ? 0 : 20;
            cr_assert_eq(net_bcast_acked(net, id, len, &number), QN_OK);
            net_settle(net);
            cr_assert_eq(net->node[4].count, id, "k=%u", k);
            cr_assert_eq(net->node[2].count, id, "k=%u", k);
            cr_assert_eq(acked_by_all(net), net->node[3].count);
        }
        cr_assert(qn_context_flush(net->node[1].context), "k=%u", k);
        inmemory_allow(net_qp(net, 1, 3), INMEMORY_UNLIMITED);
        net_settle(net);
        cr_assert_eq(net->node[3].count, 6, "k=%u", k);
        for (uint8_t i = 0; i < 6; i += 2) {
            cr_assert_eq(net->node[3].id[i], i + 1);
        }
        cr_assert_eq(acked_by_all(net), 6);
        cr_assert_eq(qn_context_drops(net->node[1].context, 3), 0);
        cr_assert(!qn_context_flush(net->node[1].context));
        net_free(net);
    }
}

/* Tiny channels, random lengths and turns, and plain broadcasts in between:
 * numbered ones all arrive, in order and once; `acked` never runs ahead. */
Test(acked, all_that_is_begun_arrives_once_and_in_order, .timeout = 60)
{
    for (uint32_t seed = 1; seed <= 200; seed++) {
        uint64_t r = seed * UINT64_C(0x9e3779b97f4a7c15);
        struct net *net =
            acked("binary", 2 + seed % (NET_NODES - 1), 1 + seed % 9);
        uint32_t n = net->tree.n;
        uint64_t number = 0;
        while (number < 150) {
            r = r * UINT64_C(6364136223846793005) + 1442695040888963407u;
            size_t len = 1 + (r >> 40) % 60;
            if ((r >> 33) % 4 == 0) {
                cr_assert_eq(net_bcast(net, 255, len, NULL), QN_OK);
            } else {
                int err =
                    net_bcast_acked(net, (uint8_t)(number + 1), len, &number);
                cr_assert(err == QN_OK || err == QN_EAGAIN);
            }
            for (uint32_t k = 0; k < n; k++) {
                r = r * UINT64_C(6364136223846793005) + 1442695040888963407u;
                net_turn(net, (qn_node_t)((r >> 33) % n));
                cr_assert_leq(acked_by_all(net), least_delivered(net));
            }
        }
        net_settle(net);
        cr_assert_eq(acked_by_all(net), 150, "seed %u", seed);
        for (qn_node_t v = 1; v < n; v++) {
            uint32_t next = 1;
            for (uint32_t i = 0; i < net->node[v].count; i++) {
                if (net->node[v].id[i] != 255) {
                    cr_assert_eq(net->node[v].id[i], next, "seed %u", seed);
                    next++;
                }
            }
            cr_assert_eq(next, 151);
        }
        net_free(net);
    }
}

Test(acked, a_dead_leaf_is_not_waited_for)
{
    struct net *net = acked("binary", 5, 64);
    uint64_t number;
    inmemory_allow(net_qp(net, 1, 3), 1);
    cr_assert_eq(net_bcast_acked(net, 1, 20, &number), QN_OK);
    net_settle(net);
    cr_assert_eq(acked_by_all(net), 0);
    for (qn_node_t v = 0; v < 5; v++) {
        if (v != 3) {
            qn_context_down(net->node[v].context, 3);
        }
    }
    net_settle(net);
    cr_assert_eq(acked_by_all(net), 1);
    cr_assert_eq(net_bcast_acked(net, 2, 20, &number), QN_OK);
    net_settle(net);
    cr_assert_eq(acked_by_all(net), 2);
    net_free(net);
}

/* Node 3 is owed message 1 and dies while message 2 passes its parent. */
Test(acked, a_child_that_dies_while_it_is_owed_is_owed_nothing)
{
    struct net *net = acked("binary", 5, 64);
    uint64_t number;
    inmemory_allow(net_qp(net, 1, 3), 0);
    cr_assert_eq(net_bcast_acked(net, 1, 20, &number), QN_OK);
    net_settle(net);
    inmemory_allow(net_qp(net, 0, 1), 2);
    cr_assert_eq(net_bcast_acked(net, 2, 20, &number), QN_OK);
    net_turn(net, 1);
    qn_context_destroy(net->node[3].context);
    net->node[3].context = NULL;
    qn_context_down(net->node[0].context, 3);
    qn_context_down(net->node[1].context, 3);
    qn_qp_close(net_qp(net, 1, 3));
    net->node[1].qp[3] = NULL;
    inmemory_allow(net_qp(net, 0, 1), INMEMORY_UNLIMITED);
    net_settle(net);
    cr_assert_eq(acked_by_all(net), 2);
    cr_assert_eq(net->node[4].count, 2);
    cr_assert(!qn_context_flush(net->node[1].context));
    net_free(net);
}

Test(acked, a_dead_inner_node_holds_back_while_anybody_below_lives)
{
    struct net *net = acked("binary", 5, 64); /* 1 -> 3, 4 */
    uint64_t number;
    cr_assert_eq(net_bcast_acked(net, 1, 20, &number), QN_OK);
    qn_context_destroy(net->node[1].context);
    net->node[1].context = NULL;
    qn_context_down(net->node[0].context, 1);
    net_settle(net);
    cr_assert_eq(acked_by_all(net), 0);
    cr_assert_eq(net_bcast_acked(net, 2, 1, &number), QN_EPEERDEAD);
    qn_context_down(net->node[0].context, 3);
    cr_assert_eq(acked_by_all(net), 0);
    qn_context_down(net->node[0].context, 4);
    cr_assert_eq(acked_by_all(net), 1, "only 2 is left");
    cr_assert_eq(net_bcast_acked(net, 2, 1, &number), QN_OK);
    net_settle(net);
    cr_assert_eq(acked_by_all(net), 2);
    net_free(net);
}

Test(acked, acknowledgements_that_nobody_can_have_sent_are_ignored)
{
    struct net *net = acked("sequential", 2, 64);
    uint64_t number;
    const uint64_t wild[] = {1, 2, UINT64_MAX, 0};
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(wild); i++) {
        cr_assert_eq(qn_qp_try_send(net_qp(net, 1, 0), &wild[i], 8), QN_OK);
    }
    cr_assert_eq(qn_qp_try_send(net_qp(net, 1, 0), "short", 5), QN_OK);
    cr_assert_eq(qn_context_poll(net->node[0].context, 100), 5);
    cr_assert_eq(net_bcast_acked(net, 1, 1, &number), QN_OK);
    cr_assert_eq(acked_by_all(net), 0);
    net_settle(net);
    cr_assert_eq(acked_by_all(net), 1);
    net_free(net);
}

/* Numbers out of order or without trailer: a parent gone wild. */
Test(acked, broadcasts_out_of_order_are_not_delivered)
{
    struct net *net = acked("binary", 4, 64);
    const uint64_t wild[] = {2, UINT64_MAX};
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(wild); i++) {
        cr_assert_eq(qn_qp_try_send(net_qp(net, 0, 1), &wild[i], 8), QN_OK);
    }
    cr_assert_eq(qn_qp_try_send(net_qp(net, 0, 1), "short", 5), QN_OK);
    net_settle(net);
    cr_assert_eq(net->node[1].count + net->node[3].count, 0);
    net_free(net);
}

Test(acked, an_acknowledgement_without_room_is_part_of_the_next)
{
    struct net *net = acked("sequential", 2, 64);
    uint64_t number;
    inmemory_allow(net_qp(net, 1, 0), 0);
    for (uint8_t id = 1; id <= 3; id++) {
        cr_assert_eq(net_bcast_acked(net, id, 1, &number), QN_OK);
        net_settle(net);
    }
    cr_assert(qn_context_flush(net->node[1].context), "it waits for room");
    cr_assert_eq(acked_by_all(net), 0);
    cr_assert(!qn_context_pending(net->node[1].context));
    inmemory_allow(net_qp(net, 1, 0), 1);
    cr_assert(qn_context_pending(net->node[1].context));
    net_settle(net);
    cr_assert_eq(acked_by_all(net), 3);
    net_free(net);
}

Test(acked, a_new_life_needs_a_new_context)
{
    struct net *net = acked("sequential", 2, 64);
    qn_context_down(net->node[0].context, 1);
    cr_assert_eq(qn_context_up(net->node[0].context, 1), QN_EPERM);
    struct qn_qp *none[QN_NODES_MAX] = {0};
    struct qn_context *c = NULL;
    const struct qn_context_opts o = {
        .self = 0, .tree = &net->tree, .qp = none, .acked = true};
    cr_assert_eq(qn_context_create(&c, &o), QN_EINVAL);
    cr_assert_eq(net_bcast(net, 1, QN_MSG_MAX - 7, NULL), QN_EMSGSIZE);
    uint64_t number;
    cr_assert_eq(net_bcast_acked(net, 1, QN_MSG_MAX - 7, &number), QN_EMSGSIZE);
    cr_assert_eq(qn_context_bcast_acked(net->node[1].context, NULL, 0, &number),
                 QN_EPERM);
    net_free(net);
}
