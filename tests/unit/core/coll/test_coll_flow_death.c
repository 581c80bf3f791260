/* Deaths in the flow machine, in virtual time. The net checks that what is
 * complete at a member was right: an answered operation has been delivered by
 * all, and a barrier has been entered by all, the dead included. */
#include <stdlib.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "tests/support/flow_states.h"
#include "tests/support/test.h"
#include "tests/unit/core/coll/flow_net.h"

#define KILLS     10000u
#define KILLS_MAX 40000u /* until there was one in each state */

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
    if (seed / 5 % 2 == 0) { /* lanes are full */
        net->window = 8;
        net->room = 1;
        net->delay = 60;
    }
    net->work = flow_net_draw(net, seed / 7 % 2 == 0 ? 400 : 40);
    net->late = seed / 3 % 3 == 0 ? 1 + flow_net_draw(net, 100) : 0;
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
                                     .called = reduces || seed / 8 % 2 == 0,
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

/* Its wiring, and whether all members begin it. */
static uint32_t row_of(void *ctx, uint32_t number, uint32_t kind)
{
    const struct flow_net *net = ctx;
    const struct qn_wiring *w = net->member[0].wiring[0];
    (void)number, (void)kind;
    return 2 * (uint32_t)w->kind + w->called;
}

static uint32_t root_of(const struct flow_net *net)
{
    uint32_t v = 0;
    while (!net->member[v].wiring[0]->root) {
        v++;
    }
    return v;
}

static void kill_one(struct flow_net *net, uint32_t victim,
                     struct flow_states *states)
{
    for (uint32_t v = 0; states != NULL && v < net->n; v++) {
        if (!net->member[v].ended && v != victim) {
            flow_states_see(states, net->member[v].f, row_of, net);
        }
    }
    if (states != NULL && !net->member[victim].ended) {
        flow_states_kill(states, net->member[victim].f, row_of, net);
    }
    flow_net_kill(net, victim);
}

static void run_until(struct flow_net *net, uint64_t time)
{
    net->end = time;
    flow_net_run(net);
    net->now = net->cut.on ? net->now : time;
}

/* A member sends a few messages more: its death may come between two of one
 * operation. */
static void run_until_cut(struct flow_net *net, uint32_t victim)
{
    net->cut.on = true;
    net->cut.member = victim;
    net->cut.sends = 1 + flow_net_draw(net, 3);
    run_until(net, net->now + 100);
    net->cut.on = false;
}

static void kill_in(uint32_t members, uint64_t seed, struct flow_states *states)
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
        const uint32_t victim =
            flow_net_draw(net, 4) == 0 ? root_of(net) : flow_net_draw(net, n);
        run_until(net, net->now + 1 + flow_net_draw(net, 400));
        if (flow_net_draw(net, 2) == 0) {
            run_until_cut(net, victim);
        }
        kill_one(net, victim, states);
    }
    net->end = 0;
    flow_net_run(net);
    check_ended(net, seed);
    flow_net_free(net);
}

static const char *row_name(uint32_t row)
{
    static const char *const name[] = {
        [2 * QN_WIRING_BROADCAST] = "broadcast",
        [2 * QN_WIRING_BROADCAST + 1] = "broadcast, called",
        [2 * QN_WIRING_ACKNOWLEDGED] = "acknowledged",
        [2 * QN_WIRING_ACKNOWLEDGED + 1] = "acknowledged, called",
        [2 * QN_WIRING_REDUCE + 1] = "reduce",
        [2 * QN_WIRING_ALLREDUCE + 1] = "all-reduce",
        [2 * QN_WIRING_COMMIT] = "commit",
        [2 * QN_WIRING_COMMIT + 1] = "commit, called",
        [2 * QN_WIRING_EXCHANGE + 1] = "exchange",
        [2 * QN_WIRING_RING] = "ring"};
    return name[row];
}

Test(coll_flow_death, no_member_waits_for_ever_in_whichever_state_one_dies,
     .timeout = 120)
{
    struct flow_states states = {.works = true, .name = row_name};
    for (uint64_t seed = 1;
         seed <= KILLS || (seed <= KILLS_MAX && flow_states_left(&states) > 0);
         seed++) {
        kill_in(2 + (uint32_t)(seed / 3 % 11), seed, &states);
    }
    flow_states_expect(&states, true);
}

/* Every size up to 64, and some above, each with all kinds over trees and pairs
 * of trees, or over rings. */
Test(coll_flow_death, no_member_waits_for_ever_in_larger_groups, .timeout = 120)
{
    uint64_t seed = 0;
    for (uint32_t n = 11; n <= FLOW_NET_MAX; n += n < 64 ? 1 : n / 8) {
        for (uint32_t i = 0; i < (QN_WIRING_RING + 2) * PER_KIND; i++) {
            kill_in(n, ++seed, NULL);
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
