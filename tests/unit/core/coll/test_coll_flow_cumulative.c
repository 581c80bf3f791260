/*
 * Cumulative acknowledgements: one stands for all operations before it. The
 * machine is that of a member in the middle of the chain 0 -> 1 -> 2, or of its
 * root.
 */
#include "core/base/err.h"
#include "core/coll/coll_flow.h"
#include "tests/support/test.h"

#define WINDOW 8u

struct chain_member {
    struct qn_wiring *wiring;
    struct qn_coll_flow *f;
};

static struct chain_member make(qn_node_t self)
{
    static const qn_node_t order[] = {0, 1, 2};
    struct chain_member m;
    struct qn_tree tree;
    cr_assert_eq(qn_tree_build(&tree, "tree:k=1", order, 3), QN_OK);
    const struct qn_wiring_opts w = {.kind = QN_WIRING_ACKNOWLEDGED,
                                     .down = &tree,
                                     .up = &tree,
                                     .self = self};
    cr_assert_eq(qn_wiring_tree(&m.wiring, &w), QN_OK);
    const struct qn_wiring *wiring[] = {m.wiring};
    const struct qn_coll_flow_opts f = {
        .wiring = wiring, .kinds = 1, .window = WINDOW, .cumulative = true};
    cr_assert_eq(qn_coll_flow_create(&m.f, &f), QN_OK);
    return m;
}

static void destroy(struct chain_member *m)
{
    qn_coll_flow_destroy(m->f);
    qn_wiring_destroy(m->wiring);
}

static int take(struct chain_member *m, qn_node_t from, uint8_t stage,
                uint32_t number)
{
    const struct qn_flow_head h = {.number = number, .stage = stage};
    int rc = qn_coll_flow_takes(m->f, from, &h);
    if (rc == QN_OK) {
        (void)qn_coll_flow_arrive(m->f, &h);
    }
    return rc;
}

/* Messages 1 .. count come from the parent, are worked on, and go on. */
static void pass_down(struct chain_member *m, uint32_t count)
{
    struct qn_flow_send send;
    uint32_t number;
    for (uint32_t k = 1; k <= count; k++) {
        cr_assert_eq(take(m, 0, 0, k), QN_OK);
        cr_assert(qn_coll_flow_deliver(m->f, &number));
        qn_coll_flow_worked(m->f, number);
        cr_assert(qn_coll_flow_next(m->f, &send));
        cr_assert_eq(send.to, 2);
        cr_assert_eq(send.head.number, k);
        cr_assert(!send.later);
        qn_coll_flow_sent(m->f);
    }
}

static void begin(struct chain_member *root, uint32_t count)
{
    struct qn_flow_send send;
    uint32_t number;
    for (uint32_t k = 1; k <= count; k++) {
        cr_assert_eq(qn_coll_flow_begin(root->f, 0, &number), QN_OK);
        cr_assert(qn_coll_flow_deliver(root->f, &number));
        qn_coll_flow_worked(root->f, number);
        cr_assert(qn_coll_flow_next(root->f, &send));
        qn_coll_flow_sent(root->f);
    }
}

Test(coll_flow_cumulative, one_acknowledgement_is_sent_for_several)
{
    struct chain_member m = make(1);
    struct qn_flow_send send;
    pass_down(&m, 5);
    cr_assert(!qn_coll_flow_next(m.f, &send), "the child has said nothing");
    cr_assert_eq(take(&m, 2, 1, 2), QN_OK);
    cr_assert(qn_coll_flow_next(m.f, &send));
    cr_assert_eq(send.head.number, 2);
    cr_assert(send.later);
    cr_assert_eq(qn_coll_flow_completed(m.f), 0, "it is not sent yet");
    cr_assert_eq(take(&m, 2, 1, 5), QN_OK);
    cr_assert(qn_coll_flow_next(m.f, &send));
    cr_assert_eq(send.to, 0);
    cr_assert_eq(send.head.number, 5);
    cr_assert_eq(send.head.stage, 1);
    cr_assert(send.bare);
    qn_coll_flow_sent(m.f);
    cr_assert(!qn_coll_flow_next(m.f, &send));
    cr_assert_eq(qn_coll_flow_completed(m.f), 5);
    destroy(&m);
}

Test(coll_flow_cumulative, it_completes_all_before_it_at_the_root)
{
    struct chain_member root = make(0);
    begin(&root, 6);
    cr_assert_eq(take(&root, 1, 1, 4), QN_OK);
    cr_assert_eq(qn_coll_flow_completed(root.f), 4);
    cr_assert_eq(take(&root, 1, 1, 6), QN_OK);
    cr_assert_eq(qn_coll_flow_completed(root.f), 6);
    destroy(&root);
}

Test(coll_flow_cumulative, what_no_child_can_have_sent_is_corrupt)
{
    struct chain_member root = make(0);
    begin(&root, 3);
    cr_assert_eq(take(&root, 1, 1, 4), QN_ECORRUPT, "it was not sent");
    cr_assert_eq(take(&root, 2, 1, 1), QN_ECORRUPT, "no child");
    cr_assert_eq(take(&root, 1, 1, 2), QN_OK);
    cr_assert_eq(take(&root, 1, 1, 2), QN_ECORRUPT, "twice");
    cr_assert_eq(take(&root, 1, 1, 1), QN_ECORRUPT, "backward");
    const struct qn_flow_head h = {.number = 3, .stage = 1, .link = 1};
    cr_assert_eq(qn_coll_flow_takes(root.f, 1, &h), QN_ECORRUPT, "no link");
    destroy(&root);
}

/* The root has two children; one dies after it has acknowledged less than the
 * other. What the other says of later operations counts for those that do not
 * fail. */
Test(coll_flow_cumulative, of_failed_operations_it_counts_for_those_before)
{
    static const qn_node_t order[] = {0, 1, 2};
    struct chain_member root;
    struct qn_tree tree;
    struct qn_flow_send send;
    uint32_t number;
    cr_assert_eq(qn_tree_build(&tree, "sequential", order, 3), QN_OK);
    const struct qn_wiring_opts w = {
        .kind = QN_WIRING_ACKNOWLEDGED, .down = &tree, .up = &tree};
    cr_assert_eq(qn_wiring_tree(&root.wiring, &w), QN_OK);
    const struct qn_wiring *wiring[] = {root.wiring};
    const struct qn_coll_flow_opts f = {
        .wiring = wiring, .kinds = 1, .window = WINDOW, .cumulative = true};
    cr_assert_eq(qn_coll_flow_create(&root.f, &f), QN_OK);
    for (uint32_t k = 1; k <= 5; k++) {
        cr_assert_eq(qn_coll_flow_begin(root.f, 0, &number), QN_OK);
        cr_assert(qn_coll_flow_deliver(root.f, &number));
        qn_coll_flow_worked(root.f, number);
    }
    while (qn_coll_flow_next(root.f, &send)) {
        qn_coll_flow_sent(root.f);
    }
    cr_assert_eq(take(&root, 1, 1, 3), QN_OK);
    qn_coll_flow_down(root.f, 1);
    struct qn_flow_head h = {.number = 5, .stage = 1, .link = 1};
    cr_assert_eq(qn_coll_flow_takes(root.f, 2, &h), QN_OK);
    (void)qn_coll_flow_arrive(root.f, &h);
    cr_assert_eq(qn_coll_flow_completed(root.f), 3);
    cr_assert_eq(qn_coll_flow_state(root.f, 4), QN_EPEERDEAD);
    cr_assert_eq(qn_coll_flow_takes(root.f, 2, &h), QN_EPEERDEAD, "dropped");
    cr_assert(qn_coll_flow_next(root.f, &send));
    cr_assert_eq(send.head.kind, QN_FLOW_FAIL);
    cr_assert_eq(send.to, 2);
    destroy(&root);
}

Test(coll_flow_cumulative, what_was_not_acknowledged_fails_with_the_parent)
{
    struct chain_member m = make(1);
    struct qn_flow_send send;
    pass_down(&m, 4);
    cr_assert_eq(take(&m, 2, 1, 1), QN_OK);
    cr_assert(qn_coll_flow_next(m.f, &send));
    qn_coll_flow_sent(m.f);
    cr_assert_eq(take(&m, 2, 1, 3), QN_OK);
    qn_coll_flow_down(m.f, 0);
    cr_assert_eq(qn_coll_flow_state(m.f, 1), QN_OK);
    cr_assert_eq(qn_coll_flow_state(m.f, 2), QN_EPEERDEAD);
    cr_assert(qn_coll_flow_next(m.f, &send));
    cr_assert_eq(send.head.kind, QN_FLOW_FAIL);
    cr_assert_eq(send.to, 2);
    qn_coll_flow_sent(m.f);
    cr_assert(!qn_coll_flow_next(m.f, &send));
    destroy(&m);
}

Test(coll_flow_cumulative, other_wirings_are_refused)
{
    static const qn_node_t order[] = {0, 1, 2};
    struct qn_tree tree;
    struct qn_coll_flow *f;
    cr_assert_eq(qn_tree_build(&tree, "binary", order, 3), QN_OK);
    for (enum qn_wiring_kind kind = 0; kind < QN_WIRING_RING; kind++) {
        struct qn_wiring *w;
        const struct qn_wiring_opts o = {
            .kind = kind, .called = true, .down = &tree, .up = &tree};
        cr_assert_eq(qn_wiring_tree(&w, &o), QN_OK);
        const struct qn_wiring *wiring[] = {w};
        const struct qn_coll_flow_opts opts = {
            .wiring = wiring, .kinds = 1, .window = WINDOW, .cumulative = true};
        cr_assert_eq(qn_coll_flow_create(&f, &opts), QN_EINVAL);
        qn_wiring_destroy(w);
    }
}
