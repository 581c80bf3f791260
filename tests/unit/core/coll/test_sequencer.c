/* Several sources of one sequence: diamond rings and balanced trees as
 * pipelines, with requests to the root, in virtual time. */
#include <stdlib.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/coll/sequencer.h"
#include "tests/support/test.h"
#include "tests/unit/core/coll/flow_net.h"

#ifdef __SANITIZE_ADDRESS__
#define OPERATIONS 30000u
#else
#define OPERATIONS 1000000u
#endif
#define SOURCES 4u
#define CREDIT  16u

/* ---- tags ---- */

Test(sequencer, each_source_is_admitted_in_its_own_order)
{
    struct qn_tag last[3];
    struct qn_sequencer s;
    qn_sequencer_init(&s, last, 3);
    struct qn_tag t = {.source = 2, .incarnation = 1, .number = 1};
    cr_assert_eq(qn_sequencer_admit(&s, &t), QN_TAG_NEXT);
    cr_assert_eq(qn_sequencer_admit(&s, &t), QN_TAG_OLD, "sent again");
    t.number = 3;
    cr_assert_eq(qn_sequencer_admit(&s, &t), QN_TAG_EARLY);
    t.number = 2;
    cr_assert_eq(qn_sequencer_admit(&s, &t), QN_TAG_NEXT);
    t.source = 1;
    cr_assert_eq(qn_sequencer_admit(&s, &t), QN_TAG_EARLY, "another source");
    t.source = 3;
    cr_assert_eq(qn_sequencer_admit(&s, &t), QN_TAG_OLD, "no member");
}

Test(sequencer, a_new_incarnation_begins_again_and_ends_the_former)
{
    struct qn_tag last[1];
    struct qn_sequencer s;
    qn_sequencer_init(&s, last, 1);
    struct qn_tag t = {.source = 0, .incarnation = 4, .number = 1};
    qn_sequencer_observe(&s, &t); /* the root was another member */
    cr_assert_eq(qn_sequencer_admit(&s, &t), QN_TAG_OLD);
    t.incarnation = 5;
    t.number = 2;
    cr_assert_eq(qn_sequencer_admit(&s, &t), QN_TAG_EARLY);
    t.number = 1;
    cr_assert_eq(qn_sequencer_admit(&s, &t), QN_TAG_NEXT);
    t.incarnation = 4;
    t.number = 2;
    cr_assert_eq(qn_sequencer_admit(&s, &t), QN_TAG_OLD);
}

Test(sequencer, credit_bounds_what_a_source_has_open)
{
    struct qn_source s;
    struct qn_tag t;
    qn_source_init(&s, 3, 7, 2);
    cr_assert_eq(qn_source_submit(&s, &t), QN_OK);
    cr_assert(t.source == 3 && t.incarnation == 7 && t.number == 1);
    cr_assert_eq(qn_source_submit(&s, &t), QN_OK);
    cr_assert_eq(qn_source_submit(&s, &t), QN_EAGAIN);
    cr_assert_eq(qn_source_end(&s, 3), QN_ECORRUPT);
    cr_assert_eq(qn_source_end(&s, 1), QN_OK);
    cr_assert_eq(qn_source_end(&s, 0), QN_OK, "late");
    cr_assert_eq(qn_source_open(&s), 1);
    cr_assert_eq(qn_source_submit(&s, &t), QN_OK);
    cr_assert_eq(t.number, 3);
}

/* ---- pipelines ---- */

/* A tag as one word: the payload that the net carries and compares. */
static uint64_t pack(const struct qn_tag *t)
{
    return t->number << 8 | t->source;
}

static struct qn_tag unpack(uint64_t word)
{
    return (struct qn_tag){
        .source = word & 255, .incarnation = 1, .number = word >> 8};
}

struct pipeline {
    struct flow_net *net;
    struct qn_source source[SOURCES];
    qn_node_t at[SOURCES]; /* members that are sources */
    uint32_t companion;    /* a source that sees the end itself, or n */
    struct qn_tag last[FLOW_NET_MAX];
    struct qn_sequencer root;
    uint64_t early[SOURCES][CREDIT]; /* requests that wait for one before */
    uint32_t again;                  /* duplicates that the root has dropped */
    uint64_t *order;                 /* [ops] tags in the root's sequence */
    uint32_t admitted;
    uint32_t submitted;
    uint64_t seen[FLOW_NET_MAX][SOURCES]; /* last number of each source that a
                                             member has delivered */
};

static flow_net_fn request;
static flow_net_fn ended;

static uint64_t draw_delay(struct flow_net *net)
{
    return net->now + 1 + flow_net_draw(net, net->delay);
}

static uint32_t source_at(const struct pipeline *p, qn_node_t member)
{
    uint32_t i = 0;
    while (i < SOURCES && p->at[i] != member) {
        i++;
    }
    return i;
}

/* Submit as far as credit goes; every seventh request is sent twice. */
static void submit(struct pipeline *p, uint32_t i)
{
    struct flow_net *net = p->net;
    struct qn_tag t;
    while (p->submitted < net->ops &&
           qn_source_submit(&p->source[i], &t) == QN_OK) {
        p->submitted++;
        t.source = i;
        flow_net_call(net, draw_delay(net), 0, request, pack(&t));
        if (t.number % 7 == 0) {
            flow_net_call(net, draw_delay(net), 0, request, pack(&t));
        }
    }
}

/* A request reaches the root, in any order. */
static void request(struct flow_net *net, uint32_t member, uint64_t word)
{
    struct pipeline *p = net->ctx;
    struct qn_tag t = unpack(word);
    (void)member;
    for (;;) {
        uint64_t *place = &p->early[t.source][t.number % CREDIT];
        enum qn_tag_verdict v = qn_sequencer_admit(&p->root, &t);
        p->again += v == QN_TAG_OLD;
        if (v == QN_TAG_EARLY) {
            cr_assert(*place == 0 || *place == word, "credit is a bound");
            *place = word;
        }
        if (v != QN_TAG_NEXT) {
            return;
        }
        *place = 0;
        cr_assert_lt(p->admitted, net->ops);
        p->order[p->admitted++] = pack(&t);
        t.number++;
        word = pack(&t);
        if (p->early[t.source][t.number % CREDIT] != word) {
            return;
        }
    }
}

static void ended(struct flow_net *net, uint32_t member, uint64_t word)
{
    struct pipeline *p = net->ctx;
    uint32_t i = source_at(p, member);
    cr_assert_eq(qn_source_end(&p->source[i], unpack(word).number), QN_OK);
    submit(p, i);
}

static uint64_t payload(struct flow_net *net, uint32_t number)
{
    struct pipeline *p = net->ctx;
    cr_assert(number >= 1 && number <= p->admitted);
    return p->order[number - 1];
}

static uint32_t allowed(struct flow_net *net)
{
    return ((struct pipeline *)net->ctx)->admitted;
}

/* The net has checked that it is the next one, and the root's. */
static void on_deliver(struct flow_net *net, uint32_t member, uint32_t number)
{
    struct pipeline *p = net->ctx;
    struct qn_tag t = unpack(p->order[number - 1]);
    cr_assert_eq(t.number, ++p->seen[member][t.source]);
}

static bool all_have(const struct pipeline *p, uint32_t number)
{
    bool all = true;
    for (uint32_t v = 0; v < p->net->n; v++) {
        all = all && p->net->member[v].delivered >= number;
    }
    return all;
}

/* The root tells the source; a companion that is the source has all messages
 * itself. */
static void on_complete(struct flow_net *net, uint32_t member, uint32_t number)
{
    struct pipeline *p = net->ctx;
    uint64_t word = p->order[number - 1];
    qn_node_t source = p->at[unpack(word).source];
    if (member == p->companion) {
        cr_assert(all_have(p, number), "the companion ends the ring");
        if (source == member) {
            flow_net_call(net, net->now, source, ended, word);
        }
    } else if (member == 0 && source != p->companion) {
        flow_net_call(net, source == 0 ? net->now : draw_delay(net), source,
                      ended, word);
    }
}

static struct pipeline *new_pipeline(uint32_t n, uint32_t ops, uint64_t seed)
{
    struct pipeline *p = calloc(1, sizeof *p);
    struct flow_net *net = calloc(1, sizeof *net);
    cr_assert(p != NULL && net != NULL);
    *net = (struct flow_net){.n = n,
                             .kinds = 1,
                             .window = 32,
                             .room = 32,
                             .first = 1,
                             .ops = ops,
                             .delay = 20,
                             .work = 3,
                             .random = seed,
                             .on_deliver = on_deliver,
                             .on_complete = on_complete,
                             .payload = payload,
                             .allowed = allowed,
                             .ctx = p};
    p->net = net;
    p->companion = n;
    p->order = calloc(ops, sizeof *p->order);
    cr_assert_not_null(p->order);
    qn_sequencer_init(&p->root, p->last, SOURCES);
    return p;
}

static void run(struct pipeline *p)
{
    struct flow_net *net = p->net;
    flow_net_start(net);
    for (uint32_t i = 0; i < SOURCES; i++) {
        p->at[i] = i * (net->n - 1) / (SOURCES - 1); /* the root .. the last */
        qn_source_init(&p->source[i], i, 1, CREDIT);
    }
    for (uint32_t i = 0; i < SOURCES; i++) {
        submit(p, i);
    }
    flow_net_run(net);
    for (uint32_t v = 0; v < net->n; v++) {
        cr_assert_eq(net->member[v].delivered, net->ops, "member %u", v);
        cr_assert_eq(net->member[v].completed, net->ops, "member %u", v);
    }
    cr_assert(p->again > 0 && p->admitted == net->ops);
}

static void free_pipeline(struct pipeline *p)
{
    flow_net_free(p->net);
    free(p->order);
    free(p);
}

static struct pipeline *new_ring(uint32_t n, uint32_t k, bool companion,
                                 uint32_t ops)
{
    struct qn_diamond_ring *r;
    const struct qn_diamond_ring_opts o = {
        .n = n, .k = k, .companion = companion};
    struct pipeline *p = new_pipeline(n, ops, n + k);
    cr_assert_eq(qn_diamond_ring_create(&r, &o), QN_OK);
    flow_net_ring(p->net, r, false);
    qn_diamond_ring_destroy(r);
    p->companion = companion ? n - 1 : n;
    return p;
}

/* Lanes, and the ways of requests, are no FIFOs: only numbers give the order.
 */
Test(sequencer, a_million_operations_of_four_sources_keep_one_order,
     .timeout = 300)
{
    struct pipeline *p = new_ring(9, 2, false, OPERATIONS);
    p->net->reorder = true;
    run(p);
    free_pipeline(p);
}

Test(sequencer, a_companion_is_a_source_that_sees_the_end_itself, .timeout = 60)
{
    for (uint32_t n = 4; n <= 40; n += 3) {
        struct pipeline *p = new_ring(n, 1 + n % 4, true, 2000);
        p->net->reorder = n % 2 == 0;
        run(p);
        free_pipeline(p);
    }
}

Test(sequencer, rings_and_balanced_trees_take_any_window_and_room,
     .timeout = 60)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        uint32_t n = 4 + (uint32_t)(seed % 17), k = 1 + (uint32_t)(seed % 4);
        struct pipeline *p = new_ring(n, k, false, 500);
        if (seed % 3 == 0) {
            struct qn_tree t;
            qn_node_t order[FLOW_NET_MAX];
            char name[] = "tree:k=1";
            name[sizeof name - 2] = (char)('0' + k);
            for (qn_node_t v = 0; v < n; v++) {
                order[v] = v;
                qn_wiring_destroy(p->net->member[v].wiring[0]);
            }
            cr_assert_eq(qn_tree_build(&t, name, order, n), QN_OK);
            const struct qn_wiring_opts o = {
                .kind = QN_WIRING_ACKNOWLEDGED, .down = &t, .up = &t};
            flow_net_wire(p->net, 0, &o);
        }
        p->net->window = 1u << flow_net_draw(p->net, 6);
        p->net->room = 1 + flow_net_draw(p->net, 8);
        p->net->work = flow_net_draw(p->net, 50);
        run(p);
        free_pipeline(p);
    }
}
