/* Deaths in the flow machine, in virtual time. The net checks that what is
 * complete at a member was right: an answered operation has been delivered by
 * all, and a barrier has been entered by all, the dead included. */
#include <stdlib.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "tests/support/test.h"
#include "tests/unit/core/coll/flow_net.h"

#define KILLS 10000u

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PER_KIND 1u
#else
#define PER_KIND 3u
#endif

static struct flow_net *new_net(uint32_t n, uint64_t seed)
{
    struct flow_net *net = calloc(1, sizeof *net);
    cr_assert_not_null(net);
    *net = (struct flow_net){.n = n,
                             .kinds = 1,
                             .first = 1,
                             .ops = 1000,
                             .delay = 20,
                             .random = seed};
    net->window = 1u << flow_net_draw(net, 4);
    net->room = 1 + flow_net_draw(net, 4);
    net->work = flow_net_draw(net, 40);
    return net;
}

static void wire_ring(struct flow_net *net, uint64_t seed)
{
    struct qn_diamond_ring *r;
    const struct qn_diamond_ring_opts o = {.n = net->n,
                                           .k = 1 + (uint32_t)(seed / 7 % 3),
                                           .full = seed % 2 == 0,
                                           .companion =
                                               net->n > 2 && seed / 5 % 2 == 0};
    cr_assert_eq(qn_diamond_ring_create(&r, &o), QN_OK);
    flow_net_ring(net, r, seed % 3 == 0);
    qn_diamond_ring_destroy(r);
}

static void wire_trees(struct flow_net *net, enum qn_wiring_kind kind,
                       uint64_t seed)
{
    struct qn_tree down, up;
    bool reduces = kind == QN_WIRING_REDUCE || kind == QN_WIRING_ALLREDUCE ||
                   kind == QN_WIRING_EXCHANGE;
    flow_net_tree(net, &down, QN_NO_MEMBER);
    flow_net_tree(net, &up, down.root);
    const struct qn_wiring_opts o = {.kind = kind,
                                     .called = reduces || seed % 2 == 0,
                                     .down = &down,
                                     .up = seed / 3 % 2 == 0 ? &up : &down};
    flow_net_wire(net, 0, &o);
}

/* Nothing is under way at a member any more, and no operation begins. */
static void check_ended(const struct flow_net *net, uint64_t seed)
{
    for (uint32_t v = 0; v < net->n; v++) {
        const struct flow_member *m = &net->member[v];
        if (m->ended) {
            continue;
        }
        cr_assert_eq(qn_coll_flow_error(m->f), QN_EPEERDEAD,
                     "seed %llu: member %u has not heard",
                     (unsigned long long)seed, v);
        for (uint32_t k = 1; k <= QN_MAX(m->begun, m->completed + 1); k++) {
            int want = k <= m->completed ? QN_OK : QN_EPEERDEAD;
            cr_assert_eq(qn_coll_flow_state(m->f, k), want,
                         "seed %llu: member %u waits for %u",
                         (unsigned long long)seed, v, k);
        }
    }
}

/* Its messages are as many as pairs. */
#define EXCHANGE_MAX 16u

static void kill_in(uint32_t members, uint64_t seed)
{
    const uint32_t kind = (uint32_t)(seed % (QN_WIRING_RING + 2));
    const uint32_t n =
        kind == QN_WIRING_EXCHANGE ? QN_MIN(members, EXCHANGE_MAX) : members;
    struct flow_net *net = new_net(n, seed);
    if (kind >= QN_WIRING_RING) {
        wire_ring(net, seed);
    } else {
        wire_trees(net, (enum qn_wiring_kind)kind, seed);
    }
    flow_net_start(net);
    for (uint32_t kills = 1 + flow_net_draw(net, 2); kills > 0; kills--) {
        net->end = net->now + 1 + flow_net_draw(net, 400);
        flow_net_run(net);
        net->now = net->end;
        flow_net_kill(net, flow_net_draw(net, n));
    }
    net->end = 0;
    flow_net_run(net);
    check_ended(net, seed);
    flow_net_free(net);
}

Test(coll_flow_death, no_member_waits_for_ever_whichever_dies, .timeout = 120)
{
    for (uint64_t seed = 1; seed <= KILLS; seed++) {
        kill_in(2 + (uint32_t)(seed / 3 % 9), seed);
    }
}

/* Every size up to 64, and some above, each with all kinds over trees and pairs
 * of trees, or over rings. */
Test(coll_flow_death, no_member_waits_for_ever_in_larger_groups, .timeout = 120)
{
    uint64_t seed = 0;
    for (uint32_t n = 11; n <= FLOW_NET_MAX; n += n < 64 ? 1 : n / 8) {
        for (uint32_t i = 0; i < (QN_WIRING_RING + 2) * PER_KIND; i++) {
            kill_in(n, ++seed);
        }
    }
}

/* ---- one machine, the root or a child of 0 -> 1, 0 -> 2 ---- */

struct one {
    struct qn_tree tree;
    struct qn_wiring *wiring;
    struct qn_coll_flow *f;
};

static void make_one(struct one *one, enum qn_wiring_kind kind, qn_node_t self)
{
    static const qn_node_t order[] = {0, 1, 2};
    cr_assert_eq(qn_tree_build(&one->tree, "sequential", order, 3), QN_OK);
    const struct qn_wiring_opts o = {.kind = kind,
                                     .called = true,
                                     .down = &one->tree,
                                     .up = &one->tree,
                                     .self = self};
    cr_assert_eq(qn_wiring_tree(&one->wiring, &o), QN_OK);
    const struct qn_wiring *wiring[] = {one->wiring};
    const struct qn_coll_flow_opts f = {
        .wiring = wiring, .kinds = 1, .window = 4};
    cr_assert_eq(qn_coll_flow_create(&one->f, &f), QN_OK);
}

static void free_one(struct one *one)
{
    qn_coll_flow_destroy(one->f);
    qn_wiring_destroy(one->wiring);
}

static void begin(struct one *one, uint32_t want)
{
    uint32_t number;
    cr_assert_eq(qn_coll_flow_begin(one->f, 0, &number), QN_OK);
    cr_assert_eq(number, want);
}

static void arrive(struct one *one, uint32_t number, uint8_t stage,
                   uint16_t link)
{
    const struct qn_flow_head h = {
        .number = number, .stage = stage, .link = link};
    cr_assert_eq(
        qn_coll_flow_takes(one->f,
                           qn_wiring_pred(one->wiring, stage, link)->node, &h),
        QN_OK);
    (void)qn_coll_flow_arrive(one->f, &h);
}

static struct qn_flow_send next(struct one *one)
{
    struct qn_flow_send send;
    cr_assert(qn_coll_flow_next(one->f, &send));
    qn_coll_flow_sent(one->f);
    return send;
}

Test(coll_flow_death, what_a_member_gave_before_it_died_counts)
{
    struct one one;
    uint32_t number;
    struct qn_flow_send send;
    make_one(&one, QN_WIRING_REDUCE, 0);
    begin(&one, 1);
    begin(&one, 2);
    arrive(&one, 1, 0, 0);
    qn_coll_flow_down(one.f, 1);
    qn_coll_flow_down(one.f, 1);
    cr_assert_eq(qn_coll_flow_state(one.f, 1), QN_EAGAIN);
    cr_assert_eq(qn_coll_flow_state(one.f, 2), QN_EPEERDEAD);
    cr_assert_eq(qn_coll_flow_begin(one.f, 0, &number), QN_EPEERDEAD);
    cr_assert(!qn_coll_flow_next(one.f, &send), "told before the first ended");
    arrive(&one, 1, 0, 1);
    cr_assert_eq(qn_coll_flow_state(one.f, 1), QN_OK);
    send = next(&one);
    cr_assert_eq(send.head.kind, QN_FLOW_FAIL);
    cr_assert_eq(send.to, 2);
    cr_assert(!qn_coll_flow_next(one.f, &send));
    free_one(&one);
}

Test(coll_flow_death, a_child_that_only_receives_is_left_out)
{
    struct one one;
    make_one(&one, QN_WIRING_ALLREDUCE, 0);
    begin(&one, 1);
    arrive(&one, 1, 0, 0);
    arrive(&one, 1, 0, 1);
    qn_coll_flow_down(one.f, 1);
    cr_assert_eq(qn_coll_flow_state(one.f, 1), QN_EAGAIN);
    struct qn_flow_send send = next(&one);
    cr_assert_eq(send.to, 2);
    cr_assert_eq(send.head.number, 1);
    cr_assert_eq(qn_coll_flow_state(one.f, 1), QN_OK);
    free_one(&one);
}

Test(coll_flow_death, an_exchange_needs_what_the_dead_contribute_only)
{
    struct one one;
    make_one(&one, QN_WIRING_EXCHANGE, 0);
    begin(&one, 1);
    begin(&one, 2);
    arrive(&one, 1, 1, 0);
    qn_coll_flow_down(one.f, 1);
    struct qn_flow_send send = next(&one);
    cr_assert_eq(send.to, 2, "the first one is gone");
    cr_assert_eq(send.head.number, 1);
    cr_assert_eq(send.head.link, 0, "below member 2 there is member 0 first");
    cr_assert_eq(qn_coll_flow_state(one.f, 1), QN_EAGAIN);
    arrive(&one, 1, 1, 1);
    cr_assert_eq(qn_coll_flow_state(one.f, 1), QN_OK);
    cr_assert_eq(qn_coll_flow_state(one.f, 2), QN_EPEERDEAD);
    free_one(&one);
}

Test(coll_flow_death, a_contribution_that_cannot_be_sent_fails)
{
    struct one one;
    struct qn_flow_send send;
    make_one(&one, QN_WIRING_REDUCE, 1);
    begin(&one, 1);
    begin(&one, 2);
    cr_assert_eq(next(&one).head.number, 1);
    qn_coll_flow_down(one.f, 0);
    cr_assert(!qn_coll_flow_next(one.f, &send), "its only neighbour is gone");
    cr_assert_eq(qn_coll_flow_state(one.f, 1), QN_OK, "it had been sent");
    cr_assert_eq(qn_coll_flow_state(one.f, 2), QN_EPEERDEAD);
    free_one(&one);
}

Test(coll_flow_death, messages_of_what_has_failed_are_dropped)
{
    struct one one;
    make_one(&one, QN_WIRING_REDUCE, 0);
    begin(&one, 1);
    qn_coll_flow_down(one.f, 1);
    const struct qn_flow_head h = {.number = 1, .link = 1};
    cr_assert_eq(qn_coll_flow_takes(one.f, 2, &h), QN_EPEERDEAD);
    qn_coll_flow_down(one.f, 77); /* no neighbour */
    cr_assert_eq(next(&one).to, 2);
    free_one(&one);
}

Test(coll_flow_death, another_error_ends_all_that_is_under_way)
{
    struct one one;
    make_one(&one, QN_WIRING_ALLREDUCE, 0);
    begin(&one, 1);
    arrive(&one, 1, 0, 0);
    qn_coll_flow_fail(one.f, QN_ECORRUPT);
    cr_assert_eq(qn_coll_flow_state(one.f, 1), QN_ECORRUPT);
    cr_assert_eq(next(&one).to, 1);
    cr_assert_eq(next(&one).to, 2);
    free_one(&one);
}
