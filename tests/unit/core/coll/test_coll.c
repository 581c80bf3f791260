/* Reductions and barriers without failures. */
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "tests/support/test.h"
#include "tests/unit/core/coll/coll_net.h"

#define OPERATIONS 40u

/* What node `v` contributes to operation `k`. */
static uint64_t contribution(qn_node_t v, uint32_t k)
{
    return (uint64_t)(v + 1) * 1000003u + (uint64_t)k * k * 7919u;
}

static uint64_t naive_sum(uint32_t n, uint32_t k)
{
    uint64_t sum = 0;
    for (qn_node_t v = 0; v < n; v++) {
        sum += contribution(v, k);
    }
    return sum;
}

static enum qn_coll_kind kind_of(uint32_t k)
{
    return k % 5 < 2 ? QN_COLL_REDUCE : QN_COLL_ALLREDUCE;
}

Test(coll, operators_combine_word_by_word)
{
    const uint64_t from[3] = {7, UINT64_MAX, 1};
    uint64_t sum[3] = {1, 2, 3}, least[3] = {1, 2, 3}, most[3] = {1, 2, 3};
    qn_coll_sum(sum, from, 2);
    qn_coll_min(least, from, 3);
    qn_coll_max(most, from, 2);
    cr_assert(sum[0] == 8 && sum[1] == 1 && sum[2] == 3);
    cr_assert(least[0] == 1 && least[1] == 2 && least[2] == 1);
    cr_assert(most[0] == 7 && most[1] == UINT64_MAX && most[2] == 3);
}

Test(coll, every_shape_and_size_reduces_to_the_naive_sum)
{
    for (uint32_t s = 0; qn_tree_name_at(s) != NULL; s++) {
        for (uint32_t n = 1; n <= COLL_NODES; n++) {
            struct coll_net *net = coll_new(qn_tree_name_at(s), n);
            for (uint32_t k = 0; k < 10; k++) {
                for (qn_node_t v = 0; v < n; v++) {
                    coll_start(net, v, kind_of(k), contribution(v, k));
                }
                coll_settle(net);
                bool all = kind_of(k) == QN_COLL_ALLREDUCE;
                for (qn_node_t v = 0; v < n; v++) {
                    cr_assert_eq(net->node[v].rc, QN_OK);
                    cr_assert(!qn_coll_flush(net->node[v].c));
                    cr_assert(!qn_coll_pending(net->node[v].c));
                    cr_assert(!(all || v == 0) ||
                              qn_coll_value(net->node[v].c)[0] ==
                                  naive_sum(n, k));
                }
            }
            coll_free(net);
        }
    }
}

/* Any node may be the next to turn, and a node that has completed an operation
 * starts the next one at once: so nodes are ahead of others all the time. */
Test(coll, random_trees_agree_with_a_naive_sum_in_any_order, .timeout = 60)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        uint32_t n = 1 + (uint32_t)(seed % COLL_NODES), started[COLL_NODES];
        struct coll_net *net = coll_random(n, seed);
        uint32_t left = n * OPERATIONS;
        for (qn_node_t v = 0; v < n; v++) {
            started[v] = 1;
            coll_start(net, v, kind_of(0), contribution(v, 0));
        }
        for (uint32_t turn = 0; left > 0; turn++) {
            cr_assert_lt(turn, 1000000, "seed %llu", (unsigned long long)seed);
            qn_node_t v = coll_draw(net, n);
            if (started[v] > OPERATIONS || coll_turn(net, v) == QN_EAGAIN) {
                continue;
            }
            cr_assert_eq(net->node[v].rc, QN_OK);
            uint32_t k = started[v]++ - 1;
            bool all = kind_of(k) == QN_COLL_ALLREDUCE;
            cr_assert(!(all || v == net->tree.root) ||
                          qn_coll_value(net->node[v].c)[0] == naive_sum(n, k),
                      "seed %llu", (unsigned long long)seed);
            left--;
            if (k + 1 < OPERATIONS) {
                coll_start(net, v, kind_of(k + 1), contribution(v, k + 1));
            }
        }
        coll_free(net);
    }
}

Test(coll, a_vector_of_six_words_travels_in_one_cell)
{
    struct coll_net *net = coll_new("tree:k=1", 3);
    for (qn_node_t v = 0; v < 3; v++) {
        uint64_t word[QN_COLL_WORDS];
        for (uint32_t i = 0; i < QN_COLL_WORDS; i++) {
            word[i] = (v * 3 + i * 5) % 7;
        }
        cr_assert_eq(qn_coll_start(net->node[v].c, QN_COLL_ALLREDUCE,
                                   qn_coll_max, word, QN_COLL_WORDS),
                     QN_OK);
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
        cr_assert_eq(qn_coll_value(net->node[2].c)[i], want);
    }
    coll_free(net);
}

Test(coll, no_node_leaves_a_barrier_before_the_last_has_entered)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct coll_net *net = coll_random(9, seed);
        qn_node_t late = (qn_node_t)(seed % 9);
        for (qn_node_t v = 0; v < 9; v++) {
            if (v != late) {
                cr_assert_eq(qn_coll_barrier(net->node[v].c), QN_OK);
            }
        }
        coll_settle(net);
        for (qn_node_t v = 0; v < 9; v++) {
            cr_assert_eq(net->node[v].rc, v != late ? QN_EAGAIN : QN_OK);
        }
        cr_assert_eq(qn_coll_barrier(net->node[late].c), QN_OK);
        coll_settle(net);
        for (qn_node_t v = 0; v < 9; v++) {
            cr_assert_eq(net->node[v].rc, QN_OK);
        }
        coll_free(net);
    }
}

/* Not commutative: it shows the order. */
static void append(uint64_t *into, const uint64_t *from, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        into[i] = into[i] * 10 + from[i];
    }
}

Test(coll, children_are_taken_as_their_messages_arrive)
{
    static const qn_node_t arrival[] = {3, 1, 4, 2};
    struct coll_net *net = coll_new("sequential", 5);
    for (qn_node_t v = 0; v < 5; v++) {
        uint64_t word = v;
        cr_assert_eq(
            qn_coll_start(net->node[v].c, QN_COLL_REDUCE, append, &word, 1),
            QN_OK);
    }
    for (uint32_t i = 0; i < 4; i++) {
        cr_assert_eq(coll_turn(net, 0), QN_EAGAIN);
        cr_assert_eq(coll_turn(net, arrival[i]), QN_OK);
    }
    cr_assert_eq(coll_turn(net, 0), QN_OK);
    cr_assert_eq(qn_coll_value(net->node[0].c)[0], 3142);
    coll_free(net);
}

Test(coll, a_child_is_at_most_one_barrier_ahead_and_its_message_stays)
{
    struct coll_net *net = coll_new("sequential", 2);
    struct qn_coll *child = net->node[1].c, *root = net->node[0].c;
    cr_assert_eq(qn_coll_barrier(root), QN_OK);
    cr_assert_eq(qn_coll_barrier(child), QN_OK);
    coll_settle(net);
    cr_assert_eq(qn_coll_barrier(child), QN_OK);
    coll_settle(net);
    cr_assert_eq(net->node[1].rc, QN_EAGAIN);
    cr_assert_eq(inmemory_used(coll_qp(net, 1, 0)), 1);
    cr_assert(!qn_coll_pending(root));
    cr_assert_eq(qn_coll_barrier(root), QN_OK);
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
        cr_assert_eq(qn_coll_value(net->node[0].c)[0], 100 + k);
        cr_assert_eq(coll_turn(net, 1), QN_OK);
        cr_assert_eq(inmemory_used(coll_qp(net, 1, 0)), COLL_CELLS - k);
    }
    coll_free(net);
}

Test(coll, the_number_of_an_operation_wraps)
{
    struct coll_net *net = coll_new("binary", 6);
    for (qn_node_t v = 0; v < 6; v++) {
        net->node[v].c->number = UINT32_MAX - 2;
    }
    for (uint32_t k = 0; k < 6; k++) {
        for (qn_node_t v = 0; v < 6; v++) {
            coll_start(net, v, kind_of(k), contribution(v, k));
        }
        coll_settle(net);
        cr_assert_eq(qn_coll_value(net->node[0].c)[0], naive_sum(6, k));
    }
    cr_assert_eq(net->node[5].c->number, 3);
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

/* The root gets `len` bytes of `m` from its child instead of a contribution to
 * a reduction of one word. */
static int root_gets(const struct qn_coll_message *m, size_t len)
{
    struct coll_net *net = coll_new("sequential", 2);
    uint8_t bytes[QN_INPLACE_MAX] = {0};
    memcpy(bytes, m, len < sizeof *m ? len : sizeof *m);
    coll_start(net, 0, QN_COLL_REDUCE, 1);
    cr_assert_eq(qn_qp_try_send(coll_qp(net, 1, 0), bytes, len), QN_OK);
    int rc = coll_turn(net, 0);
    uint64_t word = 0;
    int later =
        qn_coll_start(net->node[0].c, QN_COLL_REDUCE, qn_coll_sum, &word, 1);
    cr_assert_eq(later, rc);
    coll_free(net);
    return rc;
}

Test(coll, a_message_that_does_not_belong_here_is_corrupt)
{
    const struct qn_coll_message good = {
        .instance = 1, .what = QN_COLL_REDUCE, .count = 1, .number = 1};
    struct qn_coll_message m = good;
    cr_assert_eq(root_gets(&m, 16), QN_OK);
    cr_assert_eq(root_gets(&m, 15), QN_ECORRUPT, "shorter than it says");
    cr_assert_eq(root_gets(&m, 7), QN_ECORRUPT, "no head");
    cr_assert_eq(root_gets(&m, 0), QN_ECORRUPT, "nothing");
    m.number = 2;
    cr_assert_eq(root_gets(&m, 16), QN_ECORRUPT, "of another operation");
    m = good;
    m.what = QN_COLL_ALLREDUCE;
    cr_assert_eq(root_gets(&m, 16), QN_ECORRUPT, "of another kind");
    m.what = 99;
    cr_assert_eq(root_gets(&m, 16), QN_ECORRUPT, "of no kind");
    m = good;
    m.count = 2;
    cr_assert_eq(root_gets(&m, 24), QN_ECORRUPT, "of another length");
    m.count = QN_COLL_WORDS + 1;
    cr_assert_eq(root_gets(&m, 56), QN_ECORRUPT, "longer than any");
}

Test(coll, a_message_that_is_longer_than_a_cell_is_corrupt)
{
    struct coll_net *net = coll_new("sequential", 2);
    uint8_t bytes[QN_INPLACE_MAX + 8] = {0};
    coll_start(net, 0, QN_COLL_REDUCE, 1);
    cr_assert_eq(qn_qp_try_send(coll_qp(net, 1, 0), bytes, sizeof bytes),
                 QN_OK);
    cr_assert_eq(coll_turn(net, 0), QN_ECORRUPT);
    coll_free(net);
}

Test(coll, a_child_that_gets_no_result_of_its_operation_says_corrupt)
{
    struct coll_net *net = coll_new("sequential", 2);
    const struct qn_coll_message m = {
        .instance = 1, .what = 2, .count = 1, .number = 2};
    coll_start(net, 1, QN_COLL_ALLREDUCE, 1);
    cr_assert_eq(coll_turn(net, 1), QN_EAGAIN);
    cr_assert_eq(qn_qp_try_send(coll_qp(net, 0, 1), &m, 16), QN_OK);
    cr_assert_eq(coll_turn(net, 1), QN_ECORRUPT);
    coll_free(net);
}

Test(coll, what_cannot_be_made_or_started_is_refused)
{
    struct coll_net *net = coll_new("sequential", 3);
    struct qn_qp *none[QN_NODES_MAX] = {NULL};
    struct qn_tree broken = net->tree;
    uint64_t word[QN_COLL_WORDS + 1] = {0};
    struct qn_coll *c = malloc(qn_coll_bytes(&net->tree, 0));
    cr_assert_not_null(c);
    struct qn_coll_opts o = {.self = 0, .tree = &net->tree, .qp = none};
    cr_assert_eq(qn_coll_init(c, &o), QN_EINVAL, "no queuepair");
    o.qp = net->node[0].qp;
    cr_assert_eq(qn_coll_init(c, &o), QN_OK);
    cr_assert_eq(
        qn_coll_start(c, QN_COLL_REDUCE, qn_coll_sum, word, QN_COLL_WORDS + 1),
        QN_EINVAL);
    cr_assert_eq(qn_coll_poll(c), QN_OK, "nothing was started");
    o.self = 3;
    cr_assert_eq(qn_coll_init(c, &o), QN_EINVAL, "no member");
    o.self = QN_NODES_MAX * 1000;
    cr_assert_eq(qn_coll_init(c, &o), QN_EINVAL, "no node");
    broken.parent[1] = 2;
    broken.parent[2] = 1;
    o.self = 0;
    o.tree = &broken;
    cr_assert_eq(qn_coll_init(c, &o), QN_EINVAL, "no tree");
    free(c);
    coll_free(net);
}

Test(coll, an_operation_may_not_start_while_another_is_in_progress,
     .signal = SIGABRT)
{
    struct coll_net *net = coll_new("sequential", 2);
    coll_start(net, 0, QN_COLL_REDUCE, 1);
    coll_start(net, 0, QN_COLL_REDUCE, 1);
}
