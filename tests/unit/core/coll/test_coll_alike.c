/* Operations that end alike: what a death leaves, case by case. Random ones are
 * in tests/sim/views. */
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/coll/operations.h"
#include "tests/support/test.h"
#include "tests/unit/core/coll/coll_net.h"

static const qn_node_t all[] = {0, 1, 2}, living[] = {1, 2};

/* Members 0, 1 and 2; of the first view 0 is the root of the others. */
static struct coll_net *three(uint32_t window)
{
    struct coll_net *net = coll_new("sequential", 3);
    net->window = window;
    net->alike = true;
    coll_again(net, all, 3, 1);
    return net;
}

static int vote(struct coll_net *net, qn_node_t v, uint64_t yes)
{
    struct coll_node *node = &net->node[v];
    const struct qn_coll_call call = {
        .what = QN_COLL_COMMIT, .in = &yes, .out = &node->out};
    node->out = 77;
    return qn_coll_start(node->c, &call, NULL);
}

/* All have voted, and the root has decided; its messages go to some. */
static struct coll_net *decided(uint32_t to_1, uint32_t to_2)
{
    struct coll_net *net = three(1);
    for (qn_node_t v = 0; v < 3; v++) {
        cr_assert_eq(vote(net, v, 1), QN_OK);
    }
    (void)coll_turn(net, 0); /* asks */
    (void)coll_turn(net, 1);
    (void)coll_turn(net, 2);
    inmemory_allow(coll_qp(net, 0, 1), to_1);
    inmemory_allow(coll_qp(net, 0, 2), to_2);
    cr_assert_eq(coll_turn(net, 0), to_1 + to_2 == 2 ? QN_OK : QN_EAGAIN);
    coll_settle(net);
    coll_die(net, 0);
    coll_tell(net, 0);
    return net;
}

Test(coll_alike, a_commit_that_only_the_dead_root_knew_is_void)
{
    struct coll_net *net = decided(0, 0);
    const struct qn_view view = coll_next_view(net, living, 2, 2);
    coll_settle(net);
    cr_assert_eq(view.done, 0);
    for (qn_node_t v = 1; v < 3; v++) {
        cr_assert_eq(qn_coll_state(net->node[v].c, 1), QN_EPEERDEAD);
        cr_assert_eq(net->node[v].out, 77, "nothing was written");
        cr_assert_eq(qn_coll_last(net->node[v].c), 0);
        cr_assert_eq(vote(net, v, v == 1), QN_OK);
        cr_assert_eq(qn_coll_last(net->node[v].c), 1);
    }
    coll_settle(net);
    cr_assert_eq(net->node[1].rc, QN_OK);
    cr_assert_eq(net->node[1].out, 0, "the other one was against it");
    cr_assert_eq(net->node[2].out, 0);
    coll_free(net);
}

Test(coll_alike, a_commit_that_one_member_knows_is_one_at_all)
{
    struct coll_net *net = decided(1, 0);
    cr_assert_eq(qn_coll_state(net->node[1].c, 1), QN_OK);
    cr_assert_eq(qn_coll_state(net->node[2].c, 1), QN_EPEERDEAD);
    const struct qn_view view = coll_next_view(net, living, 2, 2);
    cr_assert_eq(view.done, 1);
    cr_assert_eq(qn_coll_state(net->node[2].c, 1), QN_EAGAIN);
    net->node[1].out = 78;
    coll_settle(net);
    cr_assert_eq(qn_coll_state(net->node[2].c, 1), QN_OK);
    cr_assert_eq(net->node[2].out, 1);
    cr_assert_eq(net->node[1].out, 78, "it is written once");
    coll_free(net);
}

/* A contribution has gone, and the root never had all. */
Test(coll_alike, a_reduction_is_complete_nowhere_before_it_is_at_the_root)
{
    struct coll_net *net = three(1);
    coll_start(net, 0, QN_COLL_REDUCE, 1);
    coll_start(net, 1, QN_COLL_REDUCE, 2);
    coll_settle(net);
    cr_assert_eq(net->node[1].rc, QN_EAGAIN);
    coll_die(net, 2);
    coll_tell(net, 2);
    coll_settle(net);
    static const qn_node_t others[] = {1, 0};
    cr_assert_eq(coll_next_view(net, others, 2, 2).done, 0);
    coll_settle(net);
    for (qn_node_t v = 0; v < 2; v++) {
        cr_assert_eq(qn_coll_state(net->node[v].c, 1), QN_EPEERDEAD);
        coll_start(net, v, QN_COLL_REDUCE, 10 + v);
    }
    coll_settle(net);
    cr_assert_eq(net->node[1].rc, QN_OK);
    cr_assert_eq(net->node[1].out, 21, "at the new root");
    cr_assert_eq(net->node[0].rc, QN_OK);
    coll_free(net);
}

/* Member 2 has told one other what it contributes, or none, and dies. */
static void exchange_and_die(uint32_t to_0)
{
    struct coll_net *net = coll_new("sequential", 3);
    double in[3] = {0.1, 0.2, 0.3}, out[3] = {7, 7, 7};
    net->alike = net->exchange = true;
    coll_again(net, all, 3, 1);
    inmemory_allow(coll_qp(net, 2, 0), to_0);
    inmemory_allow(coll_qp(net, 2, 1), 0);
    for (qn_node_t v = 0; v < 3; v++) {
        const struct qn_coll_call call = {.what = QN_COLL_ALLREDUCE,
                                          .op = &qn_sum_f64,
                                          .in = &in[v],
                                          .out = &out[v],
                                          .count = 1};
        cr_assert_eq(qn_coll_start(net->node[v].c, &call, NULL), QN_OK);
    }
    coll_settle(net);
    cr_assert_eq(net->node[0].rc, to_0 == 1 ? QN_OK : QN_EAGAIN);
    cr_assert_eq(net->node[1].rc, QN_EAGAIN);
    coll_die(net, 2);
    coll_tell(net, 2);
    static const qn_node_t others[] = {1, 0};
    cr_assert_eq(coll_next_view(net, others, 2, 2).done, to_0);
    coll_settle(net);
    for (qn_node_t v = 0; v < 2; v++) {
        cr_assert_eq(qn_coll_state(net->node[v].c, 1),
                     to_0 == 1 ? QN_OK : QN_EPEERDEAD);
        cr_assert_eq(out[v], to_0 == 1 ? 0.1 + 0.2 + 0.3 : 7);
        coll_start(net, v, QN_COLL_ALLREDUCE, 10 + v);
    }
    coll_settle(net);
    cr_assert_eq(net->node[0].out, 21);
    cr_assert_eq(net->node[1].out, 21);
    coll_free(net);
}

Test(coll_alike, an_exchange_that_one_member_has_completed_is_complete_at_all)
{
    exchange_and_die(1);
    exchange_and_die(0);
}

/* Member 2 is late. The root stops where one that is acknowledged lacks it;
 * what it has sent until then is kept by member 1, which hands it on. */
Test(coll_alike, results_are_kept_for_three_windows_and_a_period)
{
    static const uint32_t windows[] = {1, 4, 16};
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(windows); i++) {
        const uint32_t window = windows[i];
        const uint32_t period = qn_operations_period(window);
        struct coll_net *net = three(window);
        net->random = i;
        for (uint32_t round = 0; round < 40 * period; round++) {
            for (qn_node_t v = 0; v < 3; v++) {
                uint64_t word = qn_coll_last(net->node[v].c) + 1;
                const struct qn_coll_call call = {.what = QN_COLL_BROADCAST,
                                                  .in = &word,
                                                  .out = &net->node[v].out,
                                                  .count = 8};
                if (v < 2 || word <= period) {
                    (void)qn_coll_start(net->node[v].c, &call, NULL);
                }
                (void)coll_turn(net, v);
            }
        }
        cr_assert_eq(qn_coll_state(net->node[0].c, 2 * period - 1), QN_OK);
        cr_assert_eq(qn_coll_state(net->node[0].c, 2 * period), QN_EAGAIN);
        coll_die(net, 0);
        coll_tell(net, 0);
        const struct qn_view view = coll_next_view(net, living, 2, 2);
        cr_assert_eq(view.done - view.before, period + window - 1);
        coll_settle(net);
        cr_assert_eq(qn_coll_last(net->node[2].c), period);
        for (uint64_t k = period + 1; k <= view.done; k++) {
            coll_start(net, 2, QN_COLL_BROADCAST, 0);
            coll_settle(net);
            cr_assert_eq(net->node[2].rc, QN_OK, "window %u", window);
            cr_assert_eq(net->node[2].out, k);
        }
        cr_assert_eq(net->node[1].rc, QN_OK);
        coll_free(net);
    }
}

Test(coll_alike, a_member_without_views_leaves_none)
{
    struct coll_net *net = coll_new("sequential", 2);
    struct qn_view_report report;
    const struct qn_coll_view_opts o = {.down = &net->tree,
                                        .qp = net->node[1].qp};
    struct qn_view view = {.number = 2, .member = {3}};
    cr_assert_eq(qn_coll_leave(net->node[1].c, &report), QN_EPERM);
    cr_assert_eq(qn_coll_enter(net->node[1].c, &view, &o), QN_EPERM);
    coll_free(net);
}

Test(coll_alike, a_view_that_is_none_is_refused_and_a_later_one_is_entered)
{
    struct coll_net *net = three(1);
    struct qn_qp *none[QN_NODES_MAX] = {NULL};
    struct qn_coll *c = net->node[1].c;
    const struct qn_coll_view_opts o = {.down = &net->tree,
                                        .qp = net->node[1].qp};
    const struct qn_coll_view_opts without = {.down = &net->tree, .qp = none};
    struct qn_view view = {.number = 1, .member = {7}};
    cr_assert_eq(qn_coll_enter(c, &view, &o), QN_EINVAL, "not newer");
    cr_assert_eq(qn_coll_barrier(c, NULL), QN_OK, "nothing has changed");
    view.number = 2;
    view.member[0] = 3;
    cr_assert_eq(qn_coll_enter(c, &view, &o), QN_EINVAL, "other members");
    view.member[0] = 7;
    view.before = view.done = 1;
    cr_assert_eq(qn_coll_enter(c, &view, &o), QN_EINVAL, "it lacks that");
    view.before = 0;
    view.done = 1000;
    cr_assert_eq(qn_coll_enter(c, &view, &o), QN_EINVAL, "too much");
    view.done = 0;
    cr_assert_eq(qn_coll_enter(c, &view, &without), QN_EINVAL);
    cr_assert_eq(qn_coll_barrier(c, NULL), QN_EPEERDEAD);
    cr_assert(!qn_coll_pending(c));
    cr_assert(!qn_coll_flush(c));
    qn_coll_down(c, 0);
    cr_assert_eq(qn_coll_poll(c), QN_OK, "there was none");
    cr_assert_eq(qn_coll_barrier(c, NULL), QN_EPEERDEAD);
    view.number = 3;
    cr_assert_eq(qn_coll_enter(c, &view, &o), QN_OK);
    cr_assert_eq(qn_coll_barrier(c, NULL), QN_EAGAIN, "the others come first");
    coll_free(net);
}
