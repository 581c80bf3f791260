/*
 * Contexts (core/group) that broadcast by OC-Bcast: the calls of any context,
 * with roots that move; and real threads, all of them sources, on plain and on
 * strict chips.
 */
#include <pthread.h>

#include "core/group/group.h"
#include "tests/unit/transports/mpb/mpb_world.h"
#include "transports/mpb/ocbcast/oc_async.h"

#define NODES 4u

struct part {
    struct qn_device_bcast *bcast;
    struct qn_context *context;
    uint32_t got, wrong;
    qn_node_t sender;
    uint32_t next[NODES]; /* number that is expected of each source */
};

static struct mpb_world w;
static struct part part[NODES];

static void on_message(void *ctx, const void *msg, size_t len)
{
    struct part *p = ctx;
    uint32_t number;
    memcpy(&number, msg, sizeof number);
    p->sender = qn_context_sender(p->context);
    p->wrong += len < sizeof number || number != p->next[p->sender];
    for (size_t i = sizeof number; i < len; i++) {
        p->wrong += ((const uint8_t *)msg)[i] != (uint8_t)number;
    }
    p->next[p->sender] = number + 1;
    p->got++;
}

/* Only its root counts. */
static struct qn_tree *tree_of(qn_node_t root)
{
    struct qn_tree *tree = malloc(sizeof *tree);
    qn_node_t order[NODES];
    for (uint32_t i = 0; i < NODES; i++) {
        order[i] = (root + i) % NODES;
    }
    cr_assert_not_null(tree);
    cr_assert_eq(qn_tree_build(tree, "sequential", order, NODES), QN_OK);
    return tree;
}

static void make(bool strict, uint64_t seed)
{
    struct qn_tree *tree = tree_of(0);
    mpb_open_world(&w, NODES, strict, seed);
    for (qn_node_t i = 0; i < NODES; i++) {
        part[i] = (struct part){.got = 0};
        cr_assert_eq(qn_oc_async_create(&part[i].bcast,
                                        &(struct qn_oc_async_opts){
                                            .device = w.node[i], .k = 2}),
                     QN_OK);
        cr_assert_eq(qn_context_create(
                         &part[i].context,
                         &(struct qn_context_opts){.self = i,
                                                   .tree = tree,
                                                   .deliver = on_message,
                                                   .ctx = &part[i],
                                                   .bcast = part[i].bcast}),
                     QN_OK);
    }
    free(tree);
}

static void unmake(void)
{
    for (qn_node_t i = 0; i < NODES; i++) {
        cr_assert_eq(part[i].wrong, 0, "node %u", i);
        cr_assert_null(qn_mpb_fault(w.node[i]));
        qn_context_destroy(part[i].context);
        qn_device_bcast_destroy(part[i].bcast);
    }
    mpb_close_world(&w);
}

static void reroot(qn_node_t root)
{
    struct qn_tree *tree = tree_of(root);
    for (qn_node_t i = 0; i < NODES; i++) {
        cr_assert_eq(qn_context_reroot(part[i].context, tree), QN_OK);
    }
    free(tree);
}

static int bcast(qn_node_t i, uint32_t number, uint32_t len,
                 struct qn_node_set *dropped)
{
    uint8_t msg[3000];
    memset(msg, (int)number, sizeof msg);
    memcpy(msg, &number, sizeof number);
    const struct qn_slice parts[] = {{msg, 4}, {msg + 4, len - 4}};
    return qn_context_bcast(part[i].context, parts, 2, dropped);
}

static void turns(void)
{
    for (uint32_t t = 0; t < 100; t++) {
        for (qn_node_t i = 0; i < NODES; i++) {
            (void)qn_context_poll(part[i].context, 8);
            (void)qn_context_flush(part[i].context);
        }
    }
}

Test(oc_context, all_but_the_root_get_what_it_broadcasts)
{
    make(true, 1);
    cr_assert_eq(bcast(1, 0, 10, NULL), QN_EPERM);
    for (uint32_t n = 0; n < 40; n++) {
        qn_node_t root = n % NODES;
        reroot(root);
        cr_assert_eq(bcast(root, n / NODES, 4 + n * 70, NULL), QN_OK);
        turns();
        for (qn_node_t i = 0; i < NODES; i++) {
            cr_assert(i == root || part[i].sender == root);
            cr_assert(!qn_context_pending(part[i].context));
        }
    }
    for (qn_node_t i = 0; i < NODES; i++) {
        cr_assert_eq(part[i].got, 30);
        cr_assert_eq(qn_context_drops(part[i].context, (i + 1) % NODES), 0);
    }
    unmake();
}

/* The others take nothing: the window is full, and later nothing is torn. */
Test(oc_context, what_has_no_room_is_dropped_for_all)
{
    uint64_t word[QN_NODE_SET_WORDS(QN_NODES_MAX)];
    struct qn_node_set dropped = qn_node_set_over(word, QN_NODES_MAX);
    uint32_t sent = 0;
    make(true, 2);
    while (sent < 100) {
        cr_assert_eq(bcast(0, sent, 20, &dropped), QN_OK);
        if (!qn_node_set_empty(&dropped)) {
            break;
        }
        sent++;
    }
    cr_assert_eq(sent, QN_OC_WINDOW + 1, "one waits for the window");
    for (qn_node_t i = 1; i < NODES; i++) {
        cr_assert(qn_node_set_has(&dropped, i));
        cr_assert_eq(qn_context_drops(part[0].context, i), 1);
    }
    turns();
    cr_assert_eq(bcast(0, sent, 20, &dropped), QN_OK);
    cr_assert(qn_node_set_empty(&dropped));
    turns();
    for (qn_node_t i = 1; i < NODES; i++) {
        cr_assert_eq(part[i].got, sent + 1);
    }
    unmake();
}

/* The message that waited may go out in a poll, and all may have it before the
 * node arms its doorbell: nothing is pending, and no peer will ring. A loop
 * that sleeps then, with more to send, sleeps for ever. */
Test(oc_context, a_sender_has_room_when_flush_says_that_nothing_waits)
{
    uint8_t number[4] = {0}; /* little endian */
    const struct qn_slice s = {number, sizeof number};
    make(false, 1);
    while (qn_device_bcast_try_send(part[0].bcast, &s, 1) == QN_OK) {
        number[0]++;
    }
    cr_assert(qn_context_flush(part[0].context), "one waits");
    turns();
    cr_assert(!qn_context_flush(part[0].context));
    cr_assert(!qn_context_pending(part[0].context));
    cr_assert_eq(qn_device_bcast_try_send(part[0].bcast, &s, 1), QN_OK);
    turns();
    unmake();
}

Test(oc_context, a_node_that_ended_holds_nothing_back)
{
    make(false, 1);
    reroot(1);
    qn_context_destroy(part[3].context);
    qn_device_bcast_destroy(part[3].bcast);
    part[3].context = NULL;
    part[3].bcast = NULL;
    qn_device_detach(w.node[3]);
    w.node[3] = NULL;
    for (uint32_t n = 0; n < 50; n++) {
        if (n == 1) { /* it was a child of the first */
            for (qn_node_t i = 0; i < 3; i++) {
                qn_context_down(part[i].context, 3);
                qn_device_down(w.node[i], 3);
            }
        }
        cr_assert_eq(bcast(1, n, 500, NULL), QN_OK);
        for (uint32_t t = 0; t < 30; t++) {
            for (qn_node_t i = 0; i < 3; i++) {
                (void)qn_context_poll(part[i].context, 8);
                (void)qn_context_flush(part[i].context);
            }
        }
    }
    cr_assert_eq(part[0].got, 50);
    cr_assert_eq(part[2].got, 50);
    mpb_attach(&w, 3); /* for unmake */
    unmake();
}

/* ---- threads ---- */

#define MESSAGES 1000u

static void *all_send(void *arg)
{
    struct part *p = arg;
    qn_node_t self = (qn_node_t)(p - part);
    uint8_t msg[700];
    uint32_t sent = 0;
    while (sent < MESSAGES || p->got < (NODES - 1) * MESSAGES) {
        const struct qn_slice s = {msg, sizeof sent + sent * 37 % 690};
        memset(msg, (int)(uint8_t)sent, sizeof msg);
        memcpy(msg, &sent, sizeof sent);
        if (sent < MESSAGES &&
            qn_device_bcast_try_send(p->bcast, &s, 1) == QN_OK) {
            sent++;
            continue;
        }
        if (qn_context_poll(p->context, 8) > 0) {
            continue;
        }
        qn_doorbell_arm(&w.doorbell[self]);
        /* What waits is rung for; with nothing waiting there is room. */
        bool waits = qn_context_flush(p->context);
        if (!qn_context_pending(p->context) && (sent == MESSAGES || waits)) {
            (void)qn_doorbell_wait(&w.doorbell[self], QN_TIME_NEVER);
        }
        qn_doorbell_disarm(&w.doorbell[self]);
    }
    while (qn_context_flush(p->context)) { /* for its children */
        qn_pause();
    }
    return NULL;
}

static void run_threads(bool strict, uint64_t seed)
{
    pthread_t thread[NODES];
    make(strict, seed);
    for (qn_node_t i = 0; i < NODES; i++) {
        cr_assert_eq(pthread_create(&thread[i], NULL, all_send, &part[i]), 0);
    }
    for (qn_node_t i = 0; i < NODES; i++) {
        cr_assert_eq(pthread_join(thread[i], NULL), 0);
    }
    unmake();
}

Test(oc_threads, all_broadcast_to_all, .timeout = 120)
{
    run_threads(false, 0);
}

Test(oc_threads, all_broadcast_to_all_on_strict_chips, .timeout = 120)
{
    run_threads(true, 1);
    run_threads(true, 2);
}
