/* Wirings and the flow machine in virtual time, without failures. */
#include <stdlib.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "tests/support/test.h"
#include "tests/unit/core/coll/flow_net.h"

static struct flow_net *new_net(uint32_t n, uint64_t seed)
{
    struct flow_net *net = calloc(1, sizeof *net);
    cr_assert_not_null(net);
    *net = (struct flow_net){.n = n,
                             .kinds = 1,
                             .window = 4,
                             .room = 8,
                             .first = 1,
                             .ops = 3,
                             .delay = 20,
                             .work = 5,
                             .random = seed};
    return net;
}

static void check_all_done(const struct flow_net *net)
{
    for (uint32_t v = 0; v < net->n; v++) {
        cr_assert_eq(net->member[v].completed, net->first - 1 + net->ops,
                     "member %u of %u", v, net->n);
    }
}

/* ---- rings ---- */

/* Hops from the root back to it, without the companion's. */
static void check_hops(const struct flow_net *net,
                       const struct qn_diamond_ring *r)
{
    const uint32_t l = r->levels, extra = r->o.companion;
    uint32_t least = 2 * l - (r->centers < r->rings && l > 1);
    uint32_t most = 2 * l + (r->centers > r->rings);
    cr_assert(net->least >= least + extra && net->most <= most + extra,
              "n %u k %u: %u .. %u hops", r->o.n, r->o.k, net->least,
              net->most);
    cr_assert(r->centers != r->rings || net->least == net->most);
}

static void check_counts(const struct flow_net *net,
                         const struct qn_diamond_ring *r)
{
    uint32_t proper = r->o.n - r->o.companion;
    cr_assert_eq(net->messages, (uint64_t)net->ops * r->messages);
    cr_assert(!r->o.full || r->levels < 2 ||
              r->messages == proper - 1 + r->rings + r->o.companion);
    for (uint32_t v = 0; v < net->n; v++) {
        uint32_t most = v == 0 ? 2 * r->o.k : r->o.k + 1;
        cr_assert_leq(net->member[v].handled, net->ops * most);
        cr_assert_eq(net->member[v].delivered, net->ops);
    }
}

static void run_ring(uint32_t n, uint32_t k, bool full, bool companion)
{
    struct qn_diamond_ring *r;
    const struct qn_diamond_ring_opts o = {
        .n = n, .k = k, .full = full, .companion = companion};
    cr_assert_eq(qn_diamond_ring_create(&r, &o), QN_OK);
    struct flow_net *net = new_net(n, n * 8 + k);
    net->ops = 2;
    flow_net_ring(net, r, n % 2 == 0);
    flow_net_start(net);
    flow_net_run(net);
    check_all_done(net);
    check_hops(net, r);
    check_counts(net, r);
    flow_net_free(net);
    qn_diamond_ring_destroy(r);
}

/* A sanitizer has seen all code in few of them. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STRIDE 5u
#else
#define STRIDE 1u
#endif

/* trees.md 5.5: as many messages, and as long ways, as the rules say. */
Test(coll_flow, rings_of_all_sizes_send_what_the_rules_say, .timeout = 120)
{
    for (uint32_t n = 2; n <= FLOW_NET_MAX; n += STRIDE) {
        for (uint32_t k = 1; k <= 8; k++) {
            run_ring(n, k, n % 2 == 0, false);
            if (n >= 3 && n % 3 == k % 3) {
                run_ring(n, k, n % 2 == 1, true);
            }
        }
    }
}

Test(coll_flow, a_ring_goes_by_its_map)
{
    struct qn_diamond_ring *r;
    const struct qn_diamond_ring_opts ring = {.n = 9, .k = 2};
    const qn_node_t node[] = {20, 21, 22, 23, 24, 25, 26, 27, 28};
    cr_assert_eq(qn_diamond_ring_create(&r, &ring), QN_OK);
    for (uint32_t i = 0; i < 9; i++) {
        r->core[i] = (uint16_t)(8 - i); /* 9: 0:[8,7] 7:[4,3] 4:[1] */
    }
    struct qn_wiring *w;
    struct qn_wiring_ring_opts o = {.ring = r, .node = node, .self = 28};
    cr_assert_eq(qn_wiring_ring(&w, &o), QN_OK);
    cr_assert(w->root && w->stages == 2 && w->preds == 2 && w->links == 4);
    cr_assert_eq(qn_wiring_succ(w, 0, 0)->node, 20);
    cr_assert_eq(qn_wiring_succ(w, 0, 1)->node, 21);
    qn_wiring_destroy(w);
    o.self = 21; /* id 7 */
    cr_assert_eq(qn_wiring_ring(&w, &o), QN_OK);
    cr_assert(!w->root && w->stages == 1 && w->preds == 1 && w->links == 3);
    cr_assert_eq(qn_wiring_pred(w, 0, 0)->node, 28);
    cr_assert_eq(qn_wiring_succ(w, 0, 0)->node, 24);
    qn_wiring_destroy(w);
    o.self = 29;
    cr_assert_eq(qn_wiring_ring(&w, &o), QN_EINVAL, "no member");
    o.self = 28;
    r->core[3] = r->core[4];
    cr_assert_eq(qn_wiring_ring(&w, &o), QN_EINVAL, "no map");
    qn_diamond_ring_destroy(r);
}

/* ---- trees ---- */

static uint64_t messages_of(enum qn_wiring_kind kind, uint32_t n)
{
    static const uint32_t ways[] = {[QN_WIRING_BROADCAST] = 1,
                                    [QN_WIRING_ACKNOWLEDGED] = 2,
                                    [QN_WIRING_REDUCE] = 1,
                                    [QN_WIRING_ALLREDUCE] = 2,
                                    [QN_WIRING_COMMIT] = 3};
    return kind == QN_WIRING_EXCHANGE ? (uint64_t)n * (n - 1)
                                      : (uint64_t)ways[kind] * (n - 1);
}

static bool is_reduction(enum qn_wiring_kind kind)
{
    return kind == QN_WIRING_REDUCE || kind == QN_WIRING_ALLREDUCE ||
           kind == QN_WIRING_EXCHANGE;
}

static void run_trees(uint32_t n, enum qn_wiring_kind kind, bool called,
                      uint64_t seed)
{
    struct flow_net *net = new_net(n, seed);
    struct qn_tree down, up;
    net->window = 1u << flow_net_draw(net, 5);
    net->room = 1 + flow_net_draw(net, 8);
    net->ops = 1 + flow_net_draw(net, 60);
    net->work = flow_net_draw(net, 100);
    net->reorder = seed % 5 == 0;
    flow_net_tree(net, &down, QN_NO_MEMBER);
    up = down;
    if (seed % 2 == 0) {
        flow_net_tree(net, &up, down.root);
    }
    const struct qn_wiring_opts o = {
        .kind = kind, .called = called, .down = &down, .up = &up};
    flow_net_wire(net, 0, &o);
    flow_net_start(net);
    flow_net_run(net);
    check_all_done(net);
    cr_assert_eq(net->messages, net->ops * messages_of(kind, n));
    cr_assert(kind != QN_WIRING_ACKNOWLEDGED || n == 1 || seed % 2 == 0 ||
              net->most == 2 * qn_tree_depth(&down));
    flow_net_free(net);
}

Test(coll_flow, trees_and_pairs_of_trees_in_any_order, .timeout = 120)
{
    for (uint64_t seed = 1; seed <= 1200; seed++) {
        uint32_t n = 1 + (uint32_t)(seed * 7919 % 40);
        enum qn_wiring_kind kind =
            (enum qn_wiring_kind)(seed % QN_WIRING_EXCHANGE);
        run_trees(n, kind, is_reduction(kind) || seed % 3 == 0, seed);
    }
}

Test(coll_flow, exchanges_in_any_order, .timeout = 60)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        run_trees(1 + (uint32_t)(seed % 12), QN_WIRING_EXCHANGE, true, seed);
    }
}

Test(coll_flow, more_members_than_a_mask_has_bits, .timeout = 60)
{
    for (uint32_t k = 0; k < QN_WIRING_RING; k++) {
        run_trees(k == QN_WIRING_EXCHANGE ? 66 : FLOW_NET_MAX,
                  (enum qn_wiring_kind)k, true, 100 + k);
    }
}

/* Kinds follow each other in a pattern that all members know, from different
 * roots, each over trees of its own. */
static uint32_t mixed_kind(uint32_t number)
{
    return number * 2654435761u >> 29; /* 0 .. 7 */
}

static void run_mixed(uint32_t n, uint64_t seed, uint32_t first)
{
    struct flow_net *net = new_net(n, seed);
    struct qn_tree down, up;
    net->kinds = 8;
    net->kind_of = mixed_kind;
    net->first = first;
    net->window = 1u << flow_net_draw(net, 5);
    net->room = 1 + flow_net_draw(net, 4);
    net->ops = 100;
    for (uint32_t k = 0; k < net->kinds; k++) {
        flow_net_tree(net, &down, QN_NO_MEMBER);
        flow_net_tree(net, &up, down.root);
        const struct qn_wiring_opts o = {
            .kind = (enum qn_wiring_kind)(k % QN_WIRING_RING),
            .called = true,
            .down = &down,
            .up = &up};
        flow_net_wire(net, k, &o);
    }
    flow_net_start(net);
    flow_net_run(net);
    check_all_done(net);
    flow_net_free(net);
}

Test(coll_flow, kinds_and_roots_may_be_mixed, .timeout = 60)
{
    for (uint64_t seed = 1; seed <= 100; seed++) {
        run_mixed(1 + (uint32_t)(seed % 20), seed, 1);
    }
}

Test(coll_flow, numbers_wrap)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        run_mixed(6, seed, UINT32_MAX - 40);
    }
}

/* ---- one machine ---- */

struct one {
    struct qn_tree tree;
    struct qn_wiring *wiring;
    struct qn_coll_flow *f;
};

/* Member `self` of the tree 0 -> 1, 0 -> 2. */
static void make_one(struct one *one, enum qn_wiring_kind kind, bool called,
                     qn_node_t self, uint32_t window)
{
    static const qn_node_t order[] = {0, 1, 2};
    cr_assert_eq(qn_tree_build(&one->tree, "sequential", order, 3), QN_OK);
    const struct qn_wiring_opts o = {.kind = kind,
                                     .called = called,
                                     .down = &one->tree,
                                     .up = &one->tree,
                                     .self = self};
    cr_assert_eq(qn_wiring_tree(&one->wiring, &o), QN_OK);
    const struct qn_wiring *wiring[] = {one->wiring};
    const struct qn_coll_flow_opts f = {
        .wiring = wiring, .kinds = 1, .window = window};
    cr_assert_eq(qn_coll_flow_create(&one->f, &f), QN_OK);
}

static void free_one(struct one *one)
{
    qn_coll_flow_destroy(one->f);
    qn_wiring_destroy(one->wiring);
}

Test(coll_flow, the_window_bounds_what_the_root_begins)
{
    struct one one;
    struct qn_flow_send send;
    uint32_t number;
    make_one(&one, QN_WIRING_ACKNOWLEDGED, false, 0, 4);
    for (uint32_t k = 1; k <= 4; k++) {
        cr_assert_eq(qn_coll_flow_begin(one.f, 0, &number), QN_OK);
        cr_assert_eq(number, k);
    }
    cr_assert_eq(qn_coll_flow_begin(one.f, 0, &number), QN_EAGAIN);
    while (qn_coll_flow_deliver(one.f, &number)) {
        qn_coll_flow_worked(one.f, number);
    }
    uint32_t sent = 0;
    for (; qn_coll_flow_next(one.f, &send); sent++) {
        cr_assert_eq(send.to, 1 + sent % 2);
        cr_assert_eq(send.head.number, 1 + sent / 2);
        qn_coll_flow_sent(one.f);
    }
    cr_assert_eq(sent, 8);
    struct qn_flow_head ack = {.number = 1, .stage = 1};
    cr_assert_eq(qn_coll_flow_takes(one.f, 1, &ack), QN_OK);
    cr_assert(qn_coll_flow_arrive(one.f, &ack));
    cr_assert_eq(qn_coll_flow_begin(one.f, 0, &number), QN_EAGAIN);
    ack.link = 1;
    cr_assert_eq(qn_coll_flow_takes(one.f, 2, &ack), QN_OK);
    cr_assert(!qn_coll_flow_arrive(one.f, &ack));
    cr_assert_eq(qn_coll_flow_state(one.f, 1), QN_OK);
    cr_assert_eq(qn_coll_flow_state(one.f, 2), QN_EAGAIN);
    cr_assert_eq(qn_coll_flow_begin(one.f, 0, &number), QN_OK);
    free_one(&one);
}

Test(coll_flow, what_is_beyond_the_window_is_left_where_it_is)
{
    struct one one;
    uint32_t number;
    make_one(&one, QN_WIRING_REDUCE, true, 0, 2);
    struct qn_flow_head h = {.number = 3};
    cr_assert_eq(qn_coll_flow_takes(one.f, 1, &h), QN_EAGAIN);
    h.number = 2; /* early ones wait here */
    cr_assert_eq(qn_coll_flow_takes(one.f, 1, &h), QN_OK);
    cr_assert(qn_coll_flow_arrive(one.f, &h));
    cr_assert_eq(qn_coll_flow_kind(one.f, 1), QN_FLOW_KINDS_MAX);
    cr_assert_eq(qn_coll_flow_kind(one.f, 2), 0);
    h.number = 1;
    cr_assert(qn_coll_flow_arrive(one.f, &h));
    h.link = 1;
    cr_assert(!qn_coll_flow_arrive(one.f, &h));
    cr_assert_eq(qn_coll_flow_state(one.f, 1), QN_EAGAIN, "not begun here");
    cr_assert_eq(qn_coll_flow_begin(one.f, 0, &number), QN_OK);
    cr_assert_eq(qn_coll_flow_state(one.f, 1), QN_OK);
    h.number = 3;
    cr_assert_eq(qn_coll_flow_takes(one.f, 2, &h), QN_OK);
    free_one(&one);
}

Test(coll_flow, a_message_that_no_member_can_have_sent_is_corrupt)
{
    struct one one;
    make_one(&one, QN_WIRING_ALLREDUCE, true, 0, 4);
    const struct qn_flow_head good = {.number = 2, .link = 1};
    struct qn_flow_head h = good;
    cr_assert_eq(qn_coll_flow_takes(one.f, 2, &h), QN_OK);
    cr_assert_eq(qn_coll_flow_takes(one.f, 1, &h), QN_ECORRUPT, "a link of 2");
    h.link = 2;
    cr_assert_eq(qn_coll_flow_takes(one.f, 2, &h), QN_ECORRUPT, "no link");
    h = good;
    h.stage = 1;
    cr_assert_eq(qn_coll_flow_takes(one.f, 2, &h), QN_ECORRUPT, "no parent");
    h.stage = 2;
    cr_assert_eq(qn_coll_flow_takes(one.f, 2, &h), QN_ECORRUPT, "no stage");
    h = good;
    h.kind = 1;
    cr_assert_eq(qn_coll_flow_takes(one.f, 2, &h), QN_ECORRUPT, "no kind");
    h = good;
    h.number = 0;
    cr_assert_eq(qn_coll_flow_takes(one.f, 2, &h), QN_ECORRUPT, "long past");
    h = good;
    (void)qn_coll_flow_arrive(one.f, &h);
    cr_assert_eq(qn_coll_flow_takes(one.f, 2, &h), QN_ECORRUPT, "twice");
    free_one(&one);
}

Test(coll_flow, members_that_disagree_about_the_kind_are_found)
{
    struct one one;
    uint32_t number;
    make_one(&one, QN_WIRING_ALLREDUCE, true, 0, 4);
    const struct qn_wiring *two[] = {one.wiring, one.wiring};
    struct qn_coll_flow *f;
    const struct qn_coll_flow_opts o = {.wiring = two, .kinds = 2, .window = 4};
    cr_assert_eq(qn_coll_flow_create(&f, &o), QN_OK);
    struct qn_flow_head h = {.number = 1, .kind = 1};
    cr_assert_eq(qn_coll_flow_takes(f, 1, &h), QN_OK);
    (void)qn_coll_flow_arrive(f, &h);
    h = (struct qn_flow_head){.number = 1, .kind = 0, .link = 1};
    cr_assert_eq(qn_coll_flow_takes(f, 2, &h), QN_ECORRUPT);
    cr_assert_eq(qn_coll_flow_begin(f, 0, &number), QN_ECORRUPT);
    cr_assert_eq(qn_coll_flow_begin(f, 1, &number), QN_ECORRUPT, "for ever");
    qn_coll_flow_destroy(f);
    free_one(&one);
}

Test(coll_flow, what_cannot_be_made_is_refused)
{
    struct one one;
    uint32_t number;
    make_one(&one, QN_WIRING_BROADCAST, false, 1, 4);
    cr_assert_eq(qn_coll_flow_begin(one.f, 0, &number), QN_EPERM);
    const struct qn_wiring *wiring[QN_FLOW_KINDS_MAX + 1] = {one.wiring};
    struct qn_coll_flow *f;
    struct qn_coll_flow_opts o = {.wiring = wiring, .kinds = 1, .window = 3};
    cr_assert_eq(qn_coll_flow_create(&f, &o), QN_EINVAL, "no power of two");
    o.window = 2 * QN_FLOW_WINDOW_MAX;
    cr_assert_eq(qn_coll_flow_create(&f, &o), QN_EINVAL, "window");
    o.window = QN_FLOW_WINDOW_MAX;
    cr_assert_eq(qn_coll_flow_create(&f, &o), QN_OK);
    qn_coll_flow_destroy(f);
    o.kinds = QN_FLOW_KINDS_MAX + 1;
    cr_assert_eq(qn_coll_flow_create(&f, &o), QN_EINVAL, "kinds");
    o.kinds = 0;
    cr_assert_eq(qn_coll_flow_create(&f, &o), QN_EINVAL, "no kind");

    struct qn_wiring *w;
    struct qn_tree broken = one.tree;
    struct qn_wiring_opts t = {.kind = QN_WIRING_ACKNOWLEDGED,
                               .down = &one.tree,
                               .up = &one.tree,
                               .self = 3};
    cr_assert_eq(qn_wiring_tree(&w, &t), QN_EINVAL, "no member");
    t.self = 1;
    t.kind = QN_WIRING_REDUCE;
    cr_assert_eq(qn_wiring_tree(&w, &t), QN_EINVAL, "not called");
    t.kind = QN_WIRING_RING;
    cr_assert_eq(qn_wiring_tree(&w, &t), QN_EINVAL, "no tree makes a ring");
    t.kind = QN_WIRING_ACKNOWLEDGED;
    t.up = NULL;
    cr_assert_eq(qn_wiring_tree(&w, &t), QN_EINVAL, "no way up");
    static const qn_node_t other[] = {0, 1, 3}, turned[] = {1, 0, 2};
    t.up = &broken;
    cr_assert_eq(qn_tree_build(&broken, "binary", other, 3), QN_OK);
    cr_assert_eq(qn_wiring_tree(&w, &t), QN_EINVAL, "other members");
    cr_assert_eq(qn_tree_build(&broken, "binary", turned, 3), QN_OK);
    cr_assert_eq(qn_wiring_tree(&w, &t), QN_EINVAL, "another root");
    broken.root = 2;
    cr_assert_eq(qn_wiring_tree(&w, &t), QN_EINVAL, "no tree");
    free_one(&one);
}

static bool count_look(void *ctx, qn_node_t node)
{
    uint32_t *seen = ctx;
    *seen |= 1u << node;
    return false;
}

Test(coll_flow, it_awaits_those_whose_messages_are_missing)
{
    struct one one;
    uint32_t number, seen = 0;
    make_one(&one, QN_WIRING_ALLREDUCE, true, 0, 1);
    cr_assert_eq(qn_coll_flow_begin(one.f, 0, &number), QN_OK);
    qn_coll_flow_awaited(one.f, count_look, &seen);
    cr_assert_eq(seen, 1u << 1 | 1u << 2);
    const struct qn_flow_head h = {.number = 1};
    (void)qn_coll_flow_arrive(one.f, &h);
    seen = 0;
    qn_coll_flow_awaited(one.f, count_look, &seen);
    cr_assert_eq(seen, 1u << 2);
    free_one(&one);
}
