/* All-reductions by one message from each to each. */
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "tests/support/test.h"
#include "tests/unit/core/coll/coll_net.h"

Test(coll, an_exchange_is_one_message_from_each_to_each)
{
    struct coll_net *net = coll_exchange(4, 1, 1, 0);
    for (uint32_t turn = 0; turn < 2; turn++) {
        for (qn_node_t v = 0; v < 4; v++) {
            if (turn == 0) {
                coll_start(net, v, QN_COLL_ALLREDUCE, 1u << v);
            }
            (void)coll_turn(net, v);
        }
    }
    for (qn_node_t v = 0; v < 4; v++) {
        cr_assert_eq(net->node[v].rc, QN_OK);
        cr_assert_eq(net->node[v].out, 15);
        for (qn_node_t w = 0; w < 4; w++) {
            cr_assert(v == w || inmemory_frames(coll_qp(net, v, w)) == 1);
        }
    }
    coll_free(net);
}

/* What comes from others before the own contribution has gone to all is no part
 * of it. */
Test(coll, what_waits_for_room_is_the_own_contribution)
{
    static const struct qn_operator *const ops[] = {&qn_sum_u64, &coll_maps};
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(ops); i++) {
        struct coll_net *net = coll_exchange(3, 1, 1, 256);
        uint64_t in[3][2], out[3][2], want[2];
        inmemory_allow(coll_qp(net, 0, 2), 0);
        for (qn_node_t v = 0; v < 3; v++) {
            in[v][0] = v + 2;
            in[v][1] = v + 7;
            const struct qn_coll_call call = {.what = QN_COLL_ALLREDUCE,
                                              .op = ops[i],
                                              .in = in[v],
                                              .out = out[v],
                                              .count = i == 0 ? 2 : 1};
            cr_assert_eq(qn_coll_start(net->node[v].c, &call, NULL), QN_OK);
        }
        coll_settle(net);
        cr_assert_eq(net->node[0].rc, QN_EAGAIN);
        cr_assert_eq(net->node[1].rc, QN_OK);
        cr_assert_eq(net->node[2].rc, QN_EAGAIN);
        inmemory_allow(coll_qp(net, 0, 2), INMEMORY_UNLIMITED);
        coll_settle(net);
        memcpy(want, in[0], sizeof want);
        ops[i]->combine(want, in[1], i == 0 ? 2 : 1);
        ops[i]->combine(want, in[2], i == 0 ? 2 : 1);
        for (qn_node_t v = 0; v < 3; v++) {
            cr_assert_eq(net->node[v].rc, QN_OK);
            cr_assert_eq(memcmp(out[v], want, sizeof want), 0, "node %u", v);
        }
        coll_free(net);
    }
}

static struct {
    struct qn_qp_ops ops;
    int (*peek)(struct qn_qp *qp, const void **msg, size_t *len);
    uint32_t peeks;
} counted;

static int counting_peek(struct qn_qp *qp, const void **msg, size_t *len)
{
    counted.peeks++;
    return counted.peek(qp, msg, len);
}

/* How often a node that waits in vain for another one looks at its lane. */
static uint32_t looks_of_a_wait(bool exchange, uint32_t yields)
{
    struct coll_net *net = coll_exchange(2, 1, 1, 0);
    const qn_node_t v = net->tree.root;
    struct qn_qp *qp = coll_qp(net, v, 1 - v);
    struct qn_doorbell_line line = {.epoch = 0};
    struct qn_doorbell doorbell;
    struct qn_coll *c;
    uint32_t number;
    const struct qn_coll_opts o = {.self = v,
                                   .down = &net->tree,
                                   .qp = net->node[v].qp,
                                   .doorbell = &doorbell,
                                   .backoff = {.yields = yields},
                                   .exchange = exchange};
    qn_doorbell_init(&doorbell, &line, -1);
    counted.ops = *qp->ops;
    counted.peek = qp->ops->peek;
    counted.ops.peek = counting_peek;
    counted.peeks = 0;
    qp->ops = &counted.ops;
    cr_assert_eq(qn_coll_create(&c, &o), QN_OK);
    cr_assert_eq(qn_coll_barrier(c, &number), QN_OK);
    cr_assert_eq(qn_coll_wait(c, number, 1), QN_ETIMEDOUT);
    qn_coll_destroy(c);
    coll_free(net);
    return counted.peeks;
}

Test(coll, a_wait_in_an_exchange_looks_again_before_it_lets_others_run)
{
    const uint32_t tree = looks_of_a_wait(false, 2) - looks_of_a_wait(false, 0);
    const uint32_t all = looks_of_a_wait(true, 2) - looks_of_a_wait(true, 0);
    cr_assert_eq(tree, 2, "%u", tree);
    cr_assert_eq(all, 2 * (1 + 4), "%u", all);
}

Test(coll, an_exchange_needs_queuepairs_to_all_members)
{
    struct coll_net *net = coll_exchange(4, 1, 1, 0);
    const qn_node_t leaf = net->tree.root == 3 ? 2 : 3;
    struct qn_coll_opts o = {.self = leaf,
                             .down = &net->tree,
                             .qp = net->node[leaf].qp,
                             .exchange = true};
    struct qn_coll *c;
    cr_assert_eq(qn_coll_create(&c, &o), QN_OK);
    qn_coll_destroy(c);
    for (qn_node_t v = 0; v < 4; v++) {
        struct qn_qp *some[QN_NODES_MAX];
        memcpy((void *)some, (void *)net->node[leaf].qp, sizeof some);
        some[v] = NULL;
        o.qp = some;
        cr_assert_eq(qn_coll_create(&c, &o), v == leaf ? QN_OK : QN_EINVAL);
        if (v == leaf) {
            qn_coll_destroy(c);
        }
    }
    coll_free(net);
}
