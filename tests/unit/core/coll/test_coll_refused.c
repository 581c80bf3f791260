/* What is refused, and what other members say that cannot be. */
#include <string.h>

#include "core/base/err.h"
#include "tests/support/test.h"
#include "tests/unit/core/coll/coll_net.h"

/* The root gets `len` bytes from its child instead of a contribution to a
 * reduction of one word; h->number is 1 of the first operation. */
static int root_gets(const struct coll_head *h, size_t len)
{
    struct coll_net *net = coll_new("sequential", 2);
    uint8_t bytes[QN_INPLACE_MAX + 8] = {0};
    memcpy(bytes, h, sizeof *h);
    coll_start(net, 0, QN_COLL_REDUCE, 1);
    cr_assert_eq(qn_qp_try_send(coll_qp(net, 1, 0), bytes, len), QN_OK);
    int rc = coll_turn(net, 0);
    int later = qn_coll_barrier(net->node[0].c, NULL);
    cr_assert_eq(later, rc == QN_EAGAIN ? QN_EAGAIN : rc);
    coll_free(net);
    return rc;
}

Test(coll, a_message_that_does_not_belong_here_is_corrupt)
{
    const struct coll_head good = {
        .number = 1, .view = 1, .what = COLL_WHAT(QN_COLL_REDUCE, 0, 0)};
    struct coll_head m = good;
    cr_assert_eq(root_gets(&m, 16), QN_OK);
    cr_assert_eq(root_gets(&m, 15), QN_ECORRUPT, "shorter than a word");
    cr_assert_eq(root_gets(&m, 24), QN_ECORRUPT, "longer than a word");
    cr_assert_eq(root_gets(&m, 7), QN_ECORRUPT, "no head");
    cr_assert_eq(root_gets(&m, 0), QN_ECORRUPT, "nothing");
    cr_assert_eq(root_gets(&m, 64), QN_ECORRUPT, "longer than any");
    m.number = 0;
    cr_assert_eq(root_gets(&m, 16), QN_ECORRUPT, "of an operation before");
    m.number = 2;
    cr_assert_eq(root_gets(&m, 16), QN_EAGAIN, "of the next: it stays");
    m = good;
    m.what = COLL_WHAT(QN_COLL_ALLREDUCE, 0, 0);
    cr_assert_eq(root_gets(&m, 16), QN_ECORRUPT, "of another kind");
    m.what = COLL_WHAT(9, 0, 0);
    cr_assert_eq(root_gets(&m, 16), QN_ECORRUPT, "of no kind");
    m.what = COLL_WHAT(QN_COLL_REDUCE, 1, 0);
    cr_assert_eq(root_gets(&m, 16), QN_ECORRUPT, "of no stage");
    m.what = COLL_WHAT(QN_COLL_REDUCE, 0, 1);
    cr_assert_eq(root_gets(&m, 16), QN_ECORRUPT, "of no link");
}

/* Members that disagree: about the length of a broadcast, before and after it
 * has come; about the length of a result. */
Test(coll, members_that_disagree_about_the_length_are_found)
{
    const struct qn_coll_call three = {
        .what = QN_COLL_BROADCAST, .in = "abc", .count = 3};
    struct qn_coll_call two = three;
    two.count = 2;
    struct coll_net *net = coll_new("sequential", 2);
    cr_assert_eq(qn_coll_start(net->node[1].c, &two, NULL), QN_OK);
    cr_assert_eq(qn_coll_start(net->node[0].c, &three, NULL), QN_OK);
    coll_settle(net);
    cr_assert_eq(net->node[1].rc, QN_ECORRUPT);
    cr_assert_eq(qn_coll_start(net->node[1].c, &two, NULL), QN_ECORRUPT);
    coll_free(net);

    net = coll_chains((const qn_node_t[]){0, 2, 1},
                      (const qn_node_t[]){0, 1, 2}, 3, 2);
    const uint64_t yes = 1;
    const struct qn_coll_call commit = {.what = QN_COLL_COMMIT, .in = &yes};
    for (qn_node_t v = 0; v < 3; v++) {
        cr_assert_eq(qn_coll_start(net->node[v].c, &commit, NULL), QN_OK);
        cr_assert(v == 1 ||
                  qn_coll_start(net->node[v].c, &three, NULL) == QN_OK);
    }
    coll_settle(net); /* the broadcast goes in front of the decision */
    cr_assert_eq(net->node[1].rc, QN_OK);
    cr_assert_eq(qn_coll_start(net->node[1].c, &two, NULL), QN_ECORRUPT);
    coll_free(net);

    net = coll_new("sequential", 2);
    const struct coll_head h = {
        .number = 1, .view = 1, .what = COLL_WHAT(QN_COLL_ALLREDUCE, 1, 0)};
    coll_start(net, 1, QN_COLL_ALLREDUCE, 1);
    cr_assert_eq(coll_turn(net, 1), QN_EAGAIN);
    cr_assert_eq(qn_qp_try_send(coll_qp(net, 0, 1), &h, sizeof h), QN_OK);
    cr_assert_eq(coll_turn(net, 1), QN_ECORRUPT);
    coll_free(net);
}

/* Entries of a gather: of no member, and of one that was there. */
Test(coll, a_rank_counts_once)
{
    static const uint64_t ranks[] = {0, 3};
    for (uint32_t i = 0; i < 2; i++) {
        struct coll_net *net = coll_new("sequential", 3);
        struct {
            struct coll_head h;
            uint64_t rank, value;
        } m = {.h = {.number = 1,
                     .view = 1,
                     .what = COLL_WHAT(QN_COLL_REDUCE, 0, 0)},
               .rank = ranks[i]};
        const struct qn_coll_call call = {
            .what = QN_COLL_GATHER, .in = "x", .count = 1};
        cr_assert_eq(qn_coll_start(net->node[0].c, &call, NULL), QN_OK);
        cr_assert_eq(qn_qp_try_send(coll_qp(net, 1, 0), &m, sizeof m), QN_OK);
        cr_assert_eq(coll_turn(net, 0), QN_ECORRUPT);
        coll_free(net);
    }
}

Test(coll, what_is_longer_than_the_bound_is_refused)
{
    struct coll_net *net = coll_random_pair(4, 1, 1, 64);
    struct qn_coll *c = net->node[net->tree.root].c;
    uint64_t word[16] = {0};
    struct qn_coll_call call = {
        .what = QN_COLL_REDUCE, .op = &qn_sum_u64, .in = word, .count = 9};
    cr_assert_eq(qn_coll_start(c, &call, NULL), QN_EMSGSIZE);
    call.op = &qn_sum_f64; /* gathered: 4 * (8 + 16) */
    call.count = 2;
    cr_assert_eq(qn_coll_start(c, &call, NULL), QN_EMSGSIZE);
    call =
        (struct qn_coll_call){.what = QN_COLL_SCATTER, .in = word, .count = 17};
    cr_assert_eq(qn_coll_start(c, &call, NULL), QN_EMSGSIZE);
    call.what = QN_COLL_BROADCAST;
    call.count = 65;
    cr_assert_eq(qn_coll_start(c, &call, NULL), QN_EMSGSIZE);
    call.count = 64;
    call.in = NULL;
    cr_assert_eq(qn_coll_start(c, &call, NULL), QN_EINVAL, "no input");
    call.in = word;
    cr_assert_eq(qn_coll_start(c, &call, NULL), QN_OK);
    coll_free(net);
}

Test(coll, a_window_of_operations_may_be_under_way)
{
    struct coll_net *net = coll_random_pair(3, 1, 4, 0);
    struct qn_coll *c = net->node[net->tree.root].c;
    uint32_t number;
    for (uint32_t k = 1; k <= 4; k++) {
        cr_assert_eq(qn_coll_barrier(c, &number), QN_OK);
        cr_assert_eq(number, k);
    }
    cr_assert_eq(qn_coll_barrier(c, &number), QN_EAGAIN);
    cr_assert_eq(qn_coll_last(c), 4);
    coll_free(net);
}

Test(coll, what_cannot_be_made_is_refused)
{
    struct coll_net *net = coll_new("sequential", 3);
    struct qn_qp *none[QN_NODES_MAX] = {NULL};
    struct qn_tree broken = net->tree;
    struct qn_coll *c;
    struct qn_coll_opts o = {.self = 0, .down = &net->tree, .qp = none};
    cr_assert_eq(qn_coll_create(&c, &o), QN_EINVAL, "no queuepair");
    o.qp = net->node[0].qp;
    cr_assert_eq(qn_coll_create(&c, &o), QN_OK);
    cr_assert_eq(qn_coll_poll(c), QN_OK, "nothing was started");
    qn_coll_destroy(c);
    o.window = 3;
    cr_assert_eq(qn_coll_create(&c, &o), QN_EINVAL, "window");
    o.window = 0;
    o.bytes_max = QN_COLL_PAYLOAD_MAX + 1;
    cr_assert_eq(qn_coll_create(&c, &o), QN_EINVAL, "bytes_max");
    o.bytes_max = 0;
    o.self = 3;
    cr_assert_eq(qn_coll_create(&c, &o), QN_EINVAL, "no member");
    o.self = QN_NODES_MAX * 1000;
    cr_assert_eq(qn_coll_create(&c, &o), QN_EINVAL, "no node");
    broken.parent[1] = 2;
    broken.parent[2] = 1;
    o.self = 0;
    o.down = &broken;
    cr_assert_eq(qn_coll_create(&c, &o), QN_EINVAL, "no tree");
    coll_free(net);
}
