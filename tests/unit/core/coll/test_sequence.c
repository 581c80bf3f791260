/* One member of a sequence: its bounds, and what it refuses. Whole groups are
 * in tests/sim/views. */
#include <string.h>

#include "core/base/err.h"
#include "core/coll/sequence.h"
#include "tests/support/test.h"

#define LEN_MAX 40u

struct one {
    struct qn_sequence *s;
    struct qn_wiring *wiring;
    struct qn_view view;
    uint32_t delivered;
};

static void deliver(void *ctx, uint32_t number,
                    const struct qn_retained_message *m)
{
    struct one *one = ctx;
    (void)m;
    cr_assert_eq(number, ++one->delivered);
}

/* A member of 0 -> 1, in view 1. */
static void make(struct one *one, qn_node_t self, struct qn_sequence_opts o)
{
    static const qn_node_t order[] = {0, 1};
    struct qn_tree t;
    *one = (struct one){.view = {.number = 1, .member = {3}}};
    cr_assert_eq(qn_tree_build(&t, "sequential", order, 2), QN_OK);
    const struct qn_wiring_opts w = {
        .kind = QN_WIRING_ACKNOWLEDGED, .down = &t, .up = &t, .self = self};
    cr_assert_eq(qn_wiring_tree(&one->wiring, &w), QN_OK);
    o.self = self;
    o.members = 2;
    o.incarnation = 1;
    o.len_max = LEN_MAX;
    o.deliver = deliver;
    o.ctx = one;
    cr_assert_eq(qn_sequence_create(&one->s, &o), QN_OK);
    cr_assert_eq(qn_sequence_enter(one->s, &one->view, one->wiring), QN_OK);
}

static void free_one(struct one *one)
{
    qn_sequence_destroy(one->s);
    qn_wiring_destroy(one->wiring);
}

/* The child of the root has message k. */
static void acknowledge(struct one *one, uint32_t k)
{
    struct qn_coll_flow *f = qn_sequence_flow(one->s);
    const struct qn_flow_head h = {.number = k, .stage = 1};
    struct qn_flow_send send;
    while (qn_coll_flow_next(f, &send)) {
        qn_coll_flow_sent(f);
    }
    cr_assert_eq(qn_coll_flow_takes(f, 1, &h), QN_OK);
    cr_assert_eq(qn_sequence_take(one->s, &h, NULL, 0), QN_OK);
    (void)qn_coll_flow_arrive(f, &h);
    qn_sequence_settled(one->s);
}

Test(sequence, the_root_is_at_most_a_window_of_messages_ahead)
{
    struct one one;
    uint32_t number;
    make(&one, 0, (struct qn_sequence_opts){.window = 2});
    cr_assert_eq(qn_sequence_send(one.s, "a", 1, &number), QN_OK);
    cr_assert_eq(qn_sequence_send(one.s, "b", 1, &number), QN_OK);
    cr_assert_eq(number, 2);
    cr_assert_eq(qn_sequence_send(one.s, "c", 1, &number), QN_EAGAIN);
    acknowledge(&one, 1);
    cr_assert_eq(qn_sequence_stable(one.s), 1);
    cr_assert_eq(qn_sequence_send(one.s, "c", 1, &number), QN_OK);
    cr_assert_eq(one.delivered, 3);
    free_one(&one);
}

Test(sequence, the_root_is_at_most_a_window_of_bytes_ahead)
{
    struct one one;
    const uint8_t bytes[LEN_MAX + 1] = {0};
    make(&one, 0,
         (struct qn_sequence_opts){.window = 64,
                                   .bytes_max = 2 * qn_retained_cost(LEN_MAX)});
    cr_assert_eq(qn_sequence_send(one.s, bytes, LEN_MAX, NULL), QN_OK);
    cr_assert_eq(qn_sequence_send(one.s, bytes, LEN_MAX, NULL), QN_OK);
    cr_assert_eq(qn_sequence_send(one.s, bytes, 0, NULL), QN_EAGAIN);
    acknowledge(&one, 1);
    cr_assert_eq(qn_sequence_send(one.s, bytes, 0, NULL), QN_OK);
    cr_assert_eq(qn_sequence_send(one.s, bytes, LEN_MAX + 1, NULL),
                 QN_EMSGSIZE);
    free_one(&one);
}

Test(sequence, a_source_has_at_most_its_credit_open)
{
    struct one one;
    size_t len;
    make(&one, 1, (struct qn_sequence_opts){.window = 8, .credit = 2});
    cr_assert_eq(qn_sequence_submit(one.s, "a", 1, NULL), QN_OK);
    cr_assert_eq(qn_sequence_submit(one.s, "b", 1, NULL), QN_OK);
    cr_assert_eq(qn_sequence_submit(one.s, "c", 1, NULL), QN_EAGAIN);
    cr_assert_not_null(qn_sequence_next_request(one.s, &len));
    qn_sequence_requested(one.s);
    cr_assert_not_null(qn_sequence_next_request(one.s, &len));
    qn_sequence_requested(one.s);
    cr_assert_null(qn_sequence_next_request(one.s, &len));
    cr_assert_eq(qn_sequence_submit(one.s, "c", 1, NULL), QN_EAGAIN,
                 "requested is not ended");
    free_one(&one);
}

Test(sequence, a_request_waits_for_the_window_and_an_old_one_is_dropped)
{
    struct one root, source;
    size_t len;
    uint8_t request[2][64];
    make(&root, 0, (struct qn_sequence_opts){.window = 1, .credit = 1});
    make(&source, 1, (struct qn_sequence_opts){.window = 1, .credit = 2});
    for (uint32_t i = 0; i < 2; i++) {
        cr_assert_eq(qn_sequence_submit(source.s, "x", 1, NULL), QN_OK);
        const uint8_t *at = qn_sequence_next_request(source.s, &len);
        memcpy(request[i], at, len);
        qn_sequence_requested(source.s);
    }
    cr_assert_eq(qn_sequence_take_request(root.s, 0, request[0], len),
                 QN_ECORRUPT, "of another source");
    cr_assert_eq(qn_sequence_take_request(root.s, 1, request[1], len),
                 QN_ECORRUPT, "one before it is missing");
    cr_assert_eq(qn_sequence_take_request(root.s, 1, request[0], 3),
                 QN_ECORRUPT, "too short");
    cr_assert_eq(qn_sequence_take_request(root.s, 1, request[0], len), QN_OK);
    cr_assert_eq(qn_sequence_take_request(root.s, 1, request[0], len), QN_OK);
    cr_assert_eq(root.delivered, 1, "once");
    cr_assert_eq(qn_sequence_take_request(root.s, 1, request[1], len),
                 QN_EAGAIN);
    acknowledge(&root, 1);
    cr_assert_eq(qn_sequence_owed(root.s), 1);
    cr_assert_eq(qn_sequence_owed_to(root.s, 0), 1);
    cr_assert_eq(qn_sequence_stable(root.s), 1);
    qn_sequence_told(root.s, 0);
    cr_assert_eq(qn_sequence_owed(root.s), 0);
    cr_assert_eq(qn_sequence_take_request(root.s, 1, request[1], len), QN_OK);
    free_one(&root);
    free_one(&source);
}

Test(sequence, a_view_that_is_not_made_from_its_report_is_refused)
{
    struct one one;
    struct qn_view_report report;
    make(&one, 0, (struct qn_sequence_opts){.window = 4});
    cr_assert_eq(qn_sequence_send(one.s, "a", 1, NULL), QN_OK);
    struct qn_view bad = one.view;
    cr_assert_eq(qn_sequence_enter(one.s, &bad, one.wiring), QN_EINVAL,
                 "not newer");
    cr_assert(qn_sequence_runs(one.s), "nothing has changed");
    bad.number = 2;
    cr_assert_eq(qn_sequence_enter(one.s, &bad, one.wiring), QN_EINVAL,
                 "it has more than is done");
    bad.before = bad.done = 2;
    cr_assert_eq(qn_sequence_enter(one.s, &bad, one.wiring), QN_EINVAL,
                 "it has less than all");
    bad.before = 0;
    cr_assert_eq(qn_sequence_enter(one.s, &bad, one.wiring), QN_EINVAL,
                 "a root that has not most");
    bad.done = 1;
    bad.root = 1;
    cr_assert_eq(qn_sequence_enter(one.s, &bad, one.wiring), QN_EINVAL,
                 "the wiring's root is another");
    bad.root = 0;
    bad.member[0] = 2;
    cr_assert_eq(qn_sequence_enter(one.s, &bad, one.wiring), QN_EINVAL,
                 "no member");
    qn_sequence_leave(one.s, &report);
    cr_assert(report.member == 0 && report.delivered == 1 &&
              report.released == 0);
    cr_assert_eq(qn_sequence_send(one.s, "b", 1, NULL), QN_EPEERDEAD,
                 "between views");
    bad.member[0] = 3;
    cr_assert_eq(qn_sequence_enter(one.s, &bad, one.wiring), QN_OK);
    cr_assert_eq(qn_sequence_send(one.s, "b", 1, NULL), QN_OK);
    cr_assert_eq(one.delivered, 2, "the first is sent again, not delivered");
    free_one(&one);
}

Test(sequence, the_end_of_a_member_ends_the_view_and_of_another_node_does_not)
{
    struct one one;
    make(&one, 0, (struct qn_sequence_opts){.window = 4});
    qn_sequence_down(one.s, 5);
    cr_assert_eq(qn_sequence_send(one.s, "a", 1, NULL), QN_OK);
    qn_sequence_down(one.s, 1);
    cr_assert_eq(qn_sequence_send(one.s, "b", 1, NULL), QN_EPEERDEAD);
    free_one(&one);
}

Test(sequence, options_out_of_range_are_refused)
{
    struct qn_sequence *s;
    const struct qn_sequence_opts good = {.members = 4,
                                          .incarnation = 1,
                                          .window = 8,
                                          .len_max = 10,
                                          .deliver = deliver};
    struct qn_sequence_opts bad[] = {good, good, good, good, good, good, good};
    bad[0].members = QN_MEMBERS_MAX + 1;
    bad[1].self = 4;
    bad[2].incarnation = 0;
    bad[3].window = 6;
    bad[4].window = 2 * QN_FLOW_WINDOW_MAX;
    bad[5].len_max = 65536;
    bad[6].bytes_max = qn_retained_cost(10) - 1;
    for (uint32_t i = 0; i < 7; i++) {
        cr_assert_eq(qn_sequence_create(&s, &bad[i]), QN_EINVAL, "%u", i);
    }
    cr_assert_eq(qn_sequence_create(&s, &good), QN_OK);
    cr_assert_eq(qn_sequence_submit(s, "a", 1, NULL), QN_EPERM, "no credit");
    cr_assert_eq(qn_sequence_send(s, "a", 1, NULL), QN_EPERM, "no root");
    qn_sequence_destroy(s);
}
