/* Collective operations without failures: their results, and when things
 * happen. */

#include "core/base/bits.h"
#include "core/base/err.h"
#include "tests/support/test.h"
#include "tests/unit/core/coll/coll_net.h"

static uint64_t naive_sum(uint32_t n, uint32_t k)
{
    uint64_t sum = 0;
    for (qn_node_t v = 0; v < n; v++) {
        sum += coll_contribution(v, k);
    }
    return sum;
}

static enum qn_coll_what kind_of(uint32_t k)
{
    return k % 5 < 2 ? QN_COLL_REDUCE : QN_COLL_ALLREDUCE;
}

Test(coll, every_shape_and_size_reduces_to_the_naive_sum)
{
    for (uint32_t s = 0; qn_tree_name_at(s) != NULL; s++) {
        for (uint32_t n = 1; n <= COLL_NODES; n++) {
            struct coll_net *net = coll_new(qn_tree_name_at(s), n);
            for (uint32_t k = 0; k < 10; k++) {
                for (qn_node_t v = 0; v < n; v++) {
                    coll_start(net, v, kind_of(k), coll_contribution(v, k));
                }
                coll_settle(net);
                bool all = kind_of(k) == QN_COLL_ALLREDUCE;
                for (qn_node_t v = 0; v < n; v++) {
                    cr_assert_eq(net->node[v].rc, QN_OK);
                    cr_assert(!qn_coll_flush(net->node[v].c));
                    cr_assert(!qn_coll_pending(net->node[v].c));
                    cr_assert(!(all || v == 0) ||
                              net->node[v].out == naive_sum(n, k));
                }
            }
            coll_free(net);
        }
    }
}

Test(coll, a_vector_of_six_words_travels_in_one_cell)
{
    struct coll_net *net = coll_new("tree:k=1", 3);
    uint64_t out[3][QN_COLL_WORDS];
    for (qn_node_t v = 0; v < 3; v++) {
        uint64_t word[QN_COLL_WORDS];
        for (uint32_t i = 0; i < QN_COLL_WORDS; i++) {
            word[i] = (v * 3 + i * 5) % 7;
        }
        const struct qn_coll_call call = {.what = QN_COLL_ALLREDUCE,
                                          .op = &qn_max_u64,
                                          .in = word,
                                          .out = out[v],
                                          .count = QN_COLL_WORDS};
        cr_assert_eq(qn_coll_start(net->node[v].c, &call, NULL), QN_OK);
    }
    coll_settle(net);
    cr_assert_eq(inmemory_frames(coll_qp(net, 2, 1)), 1);
    cr_assert_eq(inmemory_frames(coll_qp(net, 1, 2)), 1);
    for (uint32_t i = 0; i < QN_COLL_WORDS; i++) {
        uint64_t want = 0;
        for (uint32_t v = 0; v < 3; v++) {
            uint64_t word = (v * 3 + i * 5) % 7;
            want = QN_MAX(want, word);
        }
        cr_assert_eq(out[2][i], want);
    }
    coll_free(net);
}

Test(coll, no_node_leaves_a_barrier_before_the_last_has_entered)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct coll_net *net = coll_random_pair(9, seed, 1, 0);
        qn_node_t late = (qn_node_t)(seed % 9);
        for (qn_node_t v = 0; v < 9; v++) {
            if (v != late) {
                cr_assert_eq(qn_coll_barrier(net->node[v].c, NULL), QN_OK);
            }
        }
        coll_settle(net);
        for (qn_node_t v = 0; v < 9; v++) {
            cr_assert_eq(net->node[v].rc, v != late ? QN_EAGAIN : QN_OK);
        }
        cr_assert_eq(qn_coll_barrier(net->node[late].c, NULL), QN_OK);
        coll_settle(net);
        for (qn_node_t v = 0; v < 9; v++) {
            cr_assert_eq(net->node[v].rc, QN_OK);
        }
        coll_free(net);
    }
}

Test(coll, an_acknowledged_broadcast_waits_for_all_a_plain_one_for_none)
{
    static const enum qn_coll_what whats[] = {QN_COLL_BROADCAST,
                                              QN_COLL_ACKNOWLEDGED};
    for (uint32_t i = 0; i < 2; i++) {
        struct coll_net *net = coll_new("sequential", 3);
        struct qn_coll_call call = {.what = whats[i], .in = "abc", .count = 3};
        cr_assert_eq(qn_coll_start(net->node[0].c, &call, NULL), QN_OK);
        cr_assert_eq(qn_coll_start(net->node[1].c, &call, NULL), QN_OK);
        coll_settle(net);
        cr_assert_eq(net->node[0].rc, i == 0 ? QN_OK : QN_EAGAIN);
        cr_assert_eq(net->node[1].rc, QN_OK);
        cr_assert_eq(qn_coll_start(net->node[2].c, &call, NULL), QN_OK);
        coll_settle(net);
        cr_assert_eq(net->node[0].rc, QN_OK);
        cr_assert_eq(net->node[2].rc, QN_OK);
        coll_free(net);
    }
}

/* Said to commute, which it does not: it shows the order. */
static void append(void *into, const void *from, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        ((uint64_t *)into)[i] =
            ((uint64_t *)into)[i] * 10 + ((const uint64_t *)from)[i];
    }
}

static const uint64_t one = 1;
static const struct qn_operator appends = {
    .combine = append, .neutral = &one, .bytes = 8, .commutes = true};

Test(coll, children_are_taken_as_their_messages_arrive)
{
    static const qn_node_t arrival[] = {3, 1, 4, 2};
    struct coll_net *net = coll_new("sequential", 5);
    uint64_t out = 0;
    for (qn_node_t v = 0; v < 5; v++) {
        uint64_t word = v;
        const struct qn_coll_call call = {.what = QN_COLL_REDUCE,
                                          .op = &appends,
                                          .in = &word,
                                          .out = &out,
                                          .count = 1};
        cr_assert_eq(qn_coll_start(net->node[v].c, &call, NULL), QN_OK);
    }
    for (uint32_t i = 0; i < 4; i++) {
        cr_assert_eq(coll_turn(net, 0), QN_EAGAIN);
        cr_assert_eq(coll_turn(net, arrival[i]), QN_OK);
    }
    cr_assert_eq(coll_turn(net, 0), QN_OK);
    cr_assert_eq(out, 3142);
    coll_free(net);
}

Test(coll, a_child_is_at_most_one_barrier_ahead_and_its_message_stays)
{
    struct coll_net *net = coll_new("sequential", 2);
    struct qn_coll *child = net->node[1].c, *root = net->node[0].c;
    cr_assert_eq(qn_coll_barrier(root, NULL), QN_OK);
    cr_assert_eq(qn_coll_barrier(child, NULL), QN_OK);
    coll_settle(net);
    cr_assert_eq(qn_coll_barrier(child, NULL), QN_OK);
    coll_settle(net);
    cr_assert_eq(net->node[1].rc, QN_EAGAIN);
    cr_assert_eq(inmemory_used(coll_qp(net, 1, 0)), 1);
    cr_assert(!qn_coll_pending(root));
    cr_assert_eq(qn_coll_barrier(root, NULL), QN_OK);
    coll_settle(net);
    cr_assert_eq(net->node[1].rc, QN_OK);
    cr_assert_eq(inmemory_used(coll_qp(net, 1, 0)), 0);
    coll_free(net);
}

Test(coll, reductions_ahead_fill_the_lane_and_then_wait)
{
    struct coll_net *net = coll_new("sequential", 2);
    for (uint32_t k = 0; k < COLL_CELLS; k++) {
        coll_start(net, 1, QN_COLL_REDUCE, k);
        cr_assert_eq(coll_turn(net, 1), QN_OK);
    }
    coll_start(net, 1, QN_COLL_REDUCE, COLL_CELLS);
    cr_assert_eq(coll_turn(net, 1), QN_EAGAIN);
    cr_assert(!qn_coll_pending(net->node[1].c));
    for (uint32_t k = 0; k <= COLL_CELLS; k++) {
        coll_start(net, 0, QN_COLL_REDUCE, 100);
        cr_assert_eq(coll_turn(net, 0), QN_OK);
        cr_assert_eq(net->node[0].out, 100 + k);
        cr_assert_eq(coll_turn(net, 1), QN_OK);
        cr_assert_eq(inmemory_used(coll_qp(net, 1, 0)), COLL_CELLS - k);
    }
    coll_free(net);
}

Test(coll, a_poll_says_whether_it_has_moved_something)
{
    struct coll_net *net = coll_new("sequential", 2);
    coll_start(net, 1, QN_COLL_REDUCE, 1);
    (void)qn_coll_poll(net->node[1].c);
    cr_assert(qn_coll_moved(net->node[1].c), "sent");
    (void)qn_coll_poll(net->node[1].c);
    cr_assert(!qn_coll_moved(net->node[1].c));
    coll_start(net, 0, QN_COLL_REDUCE, 1);
    (void)qn_coll_poll(net->node[0].c);
    cr_assert(qn_coll_moved(net->node[0].c), "received");
    (void)qn_coll_test(net->node[0].c, 1);
    cr_assert(!qn_coll_moved(net->node[0].c));
    coll_free(net);
}

/* A node that sleeps after a flush would not see that its operation is
 * complete, and nothing would wake it. */
Test(coll, what_a_flush_has_completed_is_pending_until_the_next_poll)
{
    struct coll_net *net = coll_new("sequential", 2);
    struct qn_coll *c = net->node[1].c;
    inmemory_allow(coll_qp(net, 1, 0), 0);
    coll_start(net, 1, QN_COLL_REDUCE, 1);
    cr_assert_eq(coll_turn(net, 1), QN_EAGAIN);
    cr_assert(!qn_coll_pending(c));
    inmemory_allow(coll_qp(net, 1, 0), INMEMORY_UNLIMITED);
    cr_assert(!qn_coll_flush(c), "it has gone");
    cr_assert_eq(qn_coll_state(c, 1), QN_OK);
    cr_assert(qn_coll_pending(c));
    cr_assert_eq(qn_coll_poll(c), QN_OK);
    cr_assert(!qn_coll_pending(c));
    coll_free(net);
}

Test(coll, a_release_without_room_waits_and_goes_to_each_child_once)
{
    struct coll_net *net = coll_new("sequential", 4);
    inmemory_allow(coll_qp(net, 0, 2), 0);
    for (qn_node_t v = 0; v < 4; v++) {
        coll_start(net, v, QN_COLL_ALLREDUCE, v);
    }
    coll_settle(net);
    cr_assert_eq(net->node[0].rc, QN_EAGAIN);
    cr_assert(!qn_coll_pending(net->node[0].c));
    cr_assert_eq(net->node[1].rc, QN_OK);
    cr_assert_eq(net->node[2].rc, QN_EAGAIN);
    inmemory_allow(coll_qp(net, 0, 2), INMEMORY_UNLIMITED);
    cr_assert(qn_coll_pending(net->node[0].c));
    coll_settle(net);
    for (qn_node_t v = 0; v < 4; v++) {
        cr_assert_eq(net->node[v].rc, QN_OK);
        cr_assert(v == 0 || inmemory_frames(coll_qp(net, 0, v)) == 1);
    }
    coll_free(net);
}
