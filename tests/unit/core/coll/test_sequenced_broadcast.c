/* Acknowledged broadcast as a pipeline, over rings and trees, on channels of
 * few cells in one thread. */
#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "core/coll/sequenced_broadcast.h"
#include "tests/support/inmemory_transport.h"
#include "tests/support/test.h"

#define NODES     16u  /* of a group whose size is drawn */
#define NODES_MAX 300u /* of any */
#define BYTES_MAX 200u

struct member {
    struct qn_sequenced_broadcast *b; /* NULL: it has ended */
    struct qn_wiring *wiring;
    struct qn_qp *qp[NODES_MAX];
    uint32_t delivered;
    bool any; /* what it is delivered is not checked */
};

struct group {
    uint32_t n;
    uint64_t random;
    struct member member[NODES_MAX];
};

static uint32_t draw(struct group *g, uint32_t bound)
{
    g->random = g->random * UINT64_C(6364136223846793005) + 1442695;
    return (uint32_t)(g->random >> 33) % (bound + (bound == 0));
}

static uint32_t length(uint32_t number)
{
    return number * 37 % (BYTES_MAX + 1);
}

static void deliver(void *ctx, uint32_t number, const void *msg, size_t len)
{
    struct member *m = ctx;
    const uint8_t *byte = msg;
    cr_assert_eq(number, ++m->delivered, "in order, and once");
    cr_assert(m->any || len == length(number));
    cr_assert(m->any || len == 0 ||
              (byte[0] == (uint8_t)number &&
               byte[len - 1] == (uint8_t)(number + len - 1)));
}

static int send_next(struct group *g, uint32_t number)
{
    uint8_t msg[BYTES_MAX];
    uint32_t got;
    for (uint32_t i = 0; i < length(number); i++) {
        msg[i] = (uint8_t)(number + i);
    }
    int rc =
        qn_sequenced_broadcast_send(g->member[0].b, msg, length(number), &got);
    cr_assert(rc != QN_OK || got == number);
    return rc;
}

static void connect(struct group *g, qn_node_t v, qn_node_t w)
{
    struct qn_qp *end[2];
    if (g->member[v].qp[w] == NULL) {
        inmemory_pair(end, 4, QN_INPLACE_MAX);
        g->member[v].qp[w] = end[0];
        g->member[w].qp[v] = end[1];
    }
}

static struct group *new_group(uint32_t n, uint64_t seed)
{
    struct group *g = calloc(1, sizeof *g);
    cr_assert_not_null(g);
    g->n = n;
    g->random = seed;
    return g;
}

static void start(struct group *g, uint32_t window)
{
    for (qn_node_t v = 0; v < g->n; v++) {
        for (uint32_t i = 0; i < g->member[v].wiring->links; i++) {
            connect(g, v, g->member[v].wiring->link[i].node);
        }
    }
    for (qn_node_t v = 0; v < g->n; v++) {
        struct member *m = &g->member[v];
        const struct qn_sequenced_broadcast_opts o = {.wiring = m->wiring,
                                                      .qp = m->qp,
                                                      .window = window,
                                                      .bytes_max = BYTES_MAX,
                                                      .view = 1,
                                                      .deliver = deliver,
                                                      .ctx = m};
        cr_assert_eq(qn_sequenced_broadcast_create(&m->b, &o), QN_OK);
    }
}

static struct group *new_ring(uint32_t n, uint32_t k, uint32_t window,
                              uint64_t seed)
{
    struct group *g = new_group(n, seed);
    struct qn_diamond_ring *r;
    const struct qn_diamond_ring_opts ring = {.n = n,
                                              .k = k,
                                              .full = seed % 2 == 0,
                                              .companion =
                                                  n > 2 && seed % 3 == 0};
    cr_assert_eq(qn_diamond_ring_create(&r, &ring), QN_OK);
    for (qn_node_t v = 0; v < n; v++) {
        const struct qn_wiring_ring_opts o = {
            .ring = r, .self = v, .observed = seed % 5 == 0};
        cr_assert_eq(qn_wiring_ring(&g->member[v].wiring, &o), QN_OK);
    }
    qn_diamond_ring_destroy(r);
    start(g, window);
    return g;
}

static struct group *new_tree(uint32_t n, const char *name, uint32_t window,
                              uint64_t seed)
{
    struct group *g = new_group(n, seed);
    struct qn_tree t;
    qn_node_t order[NODES_MAX];
    for (qn_node_t v = 0; v < n; v++) {
        order[v] = v;
    }
    cr_assert_eq(qn_tree_build(&t, name, order, n), QN_OK);
    for (qn_node_t v = 0; v < n; v++) {
        const struct qn_wiring_opts o = {
            .kind = QN_WIRING_ACKNOWLEDGED, .down = &t, .up = &t, .self = v};
        cr_assert_eq(qn_wiring_tree(&g->member[v].wiring, &o), QN_OK);
    }
    start(g, window);
    return g;
}

static void free_group(struct group *g)
{
    for (qn_node_t v = 0; v < g->n; v++) {
        struct member *m = &g->member[v];
        qn_sequenced_broadcast_destroy(m->b);
        qn_wiring_destroy(m->wiring);
        for (qn_node_t w = 0; w < g->n; w++) {
            qn_qp_close(m->qp[w]);
        }
    }
    free(g);
}

/* What poll does, pending has announced. */
static void turn(struct group *g, qn_node_t v)
{
    struct member *m = &g->member[v];
    bool could = qn_sequenced_broadcast_pending(m->b);
    bool moved = qn_sequenced_broadcast_poll(m->b);
    cr_assert(could || !moved);
    (void)qn_sequenced_broadcast_flush(m->b);
}

static void run(struct group *g, uint32_t count)
{
    uint32_t sent = 0;
    for (uint32_t turns = 0;
         qn_sequenced_broadcast_acked(g->member[0].b) < count; turns++) {
        cr_assert_lt(turns, 10000000u);
        while (sent < count && send_next(g, sent + 1) == QN_OK) {
            sent++;
        }
        turn(g, draw(g, g->n));
        uint32_t acked = qn_sequenced_broadcast_acked(g->member[0].b);
        for (qn_node_t v = 0; v < g->n; v++) {
            cr_assert_geq(g->member[v].delivered, acked, "all have it");
        }
    }
    for (qn_node_t v = 0; v < g->n; v++) {
        cr_assert_eq(g->member[v].delivered, count);
    }
    free_group(g);
}

Test(sequenced_broadcast, rings_deliver_in_order_and_acknowledge, .timeout = 60)
{
    for (uint64_t seed = 1; seed <= 300; seed++) {
        run(new_ring(1 + (uint32_t)(seed % NODES), 1 + (uint32_t)(seed % 4),
                     1u << seed % 6, seed),
            60);
    }
}

Test(sequenced_broadcast, trees_deliver_in_order_and_acknowledge, .timeout = 60)
{
    uint32_t shapes = 1;
    while (qn_tree_name_at(shapes) != NULL) {
        shapes++;
    }
    for (uint64_t seed = 1; seed <= 150; seed++) {
        run(new_tree(1 + (uint32_t)(seed % NODES),
                     qn_tree_name_at((uint32_t)seed % shapes), 1u << seed % 6,
                     seed),
            60);
    }
}

/* Turn all until nothing moves. */
static void settle(struct group *g)
{
    bool moved = true;
    for (uint32_t turns = 0; moved; turns++) {
        cr_assert_lt(turns, 10000);
        moved = false;
        for (qn_node_t v = 0; v < g->n; v++) {
            moved |= qn_sequenced_broadcast_poll(g->member[v].b);
            (void)qn_sequenced_broadcast_flush(g->member[v].b);
        }
    }
}

/* The channel 1 -> 3 stops after k frames, in the middle of a message or
 * between two. */
Test(sequenced_broadcast, what_a_full_child_lacks_is_acknowledged_by_none_above)
{
    for (uint32_t k = 0; k < 12; k++) {
        struct group *g = new_tree(5, "binary", 8, 1); /* 1 -> 3, 4 */
        inmemory_allow(g->member[1].qp[3], k);
        for (uint32_t sent = 1; sent <= 8; sent++) {
            cr_assert_eq(send_next(g, sent), QN_OK);
            settle(g);
            cr_assert_eq(g->member[2].delivered, sent, "k=%u", k);
            cr_assert_eq(qn_sequenced_broadcast_acked(g->member[0].b),
                         g->member[3].delivered, "k=%u", k);
        }
        cr_assert_lt(g->member[3].delivered, 8, "it is full");
        inmemory_allow(g->member[1].qp[3], INMEMORY_UNLIMITED);
        settle(g);
        cr_assert_eq(g->member[3].delivered, 8, "k=%u", k);
        cr_assert_eq(qn_sequenced_broadcast_acked(g->member[0].b), 8);
        free_group(g);
    }
}

/* One leaf gets nothing: what each member above it has acknowledged stays as it
 * was, however many others have delivered. */
Test(sequenced_broadcast, one_silent_leaf_of_many_holds_all_above_it_back)
{
    struct group *g = new_tree(NODES_MAX, "tree:k=4", 4, 1);
    const qn_node_t leaf = NODES_MAX - 1;
    const qn_node_t up = g->member[leaf].wiring->link[0].node;
    inmemory_allow(g->member[up].qp[leaf], 0);
    cr_assert_eq(send_next(g, 1), QN_OK);
    settle(g);
    uint32_t behind = 0;
    for (qn_node_t v = 0; v < NODES_MAX; v++) {
        cr_assert_eq(g->member[v].delivered, v == leaf ? 0 : 1);
        behind += qn_sequenced_broadcast_acked(g->member[v].b) == 0;
    }
    cr_assert_eq(behind, 5, "the leaf and all above it");
    cr_assert_eq(qn_sequenced_broadcast_acked(g->member[0].b), 0);
    inmemory_allow(g->member[up].qp[leaf], INMEMORY_UNLIMITED);
    settle(g);
    for (qn_node_t v = 0; v < NODES_MAX; v++) {
        cr_assert_eq(qn_sequenced_broadcast_acked(g->member[v].b), 1);
    }
    free_group(g);
}

Test(sequenced_broadcast, a_full_window_holds_the_root)
{
    struct group *g = new_ring(3, 1, 4, 1);
    for (uint32_t k = 1; k <= 4; k++) {
        cr_assert_eq(send_next(g, k), QN_OK);
    }
    cr_assert_eq(send_next(g, 5), QN_EAGAIN);
    uint8_t long_one[BYTES_MAX + 1] = {0};
    cr_assert_eq(qn_sequenced_broadcast_send(g->member[0].b, long_one,
                                             sizeof long_one, NULL),
                 QN_EMSGSIZE);
    cr_assert_eq(qn_sequenced_broadcast_send(g->member[1].b, NULL, 0, NULL),
                 QN_EPERM);
    free_group(g);
}

/* Whichever member dies, every other one hears of it, and what the root knows
 * to be acknowledged was delivered by all. */
Test(sequenced_broadcast, a_death_reaches_all_members, .timeout = 60)
{
    for (uint64_t seed = 1; seed <= 300; seed++) {
        uint32_t n = 2 + (uint32_t)(seed % (NODES - 1)), sent = 0;
        struct group *g = seed % 3 == 0
                              ? new_tree(n, "binary", 8, seed)
                              : new_ring(n, 1 + (uint32_t)(seed % 3), 8, seed);
        const qn_node_t victim = draw(g, n);
        for (uint32_t turns = draw(g, 200); turns > 0; turns--) {
            sent += send_next(g, sent + 1) == QN_OK;
            turn(g, draw(g, n));
        }
        qn_sequenced_broadcast_destroy(g->member[victim].b);
        g->member[victim].b = NULL;
        for (qn_node_t v = 0; v < n; v++) {
            if (v != victim && g->member[v].qp[victim] != NULL) {
                qn_sequenced_broadcast_down(g->member[v].b, victim);
            }
        }
        for (uint32_t turns = 0; turns < 400 * n; turns++) {
            qn_node_t v = draw(g, n);
            if (v != victim) {
                turn(g, v);
            }
        }
        for (qn_node_t v = 0; v < n; v++) {
            cr_assert(v == victim || qn_sequenced_broadcast_error(
                                         g->member[v].b) == QN_EPEERDEAD,
                      "seed %llu: member %u", (unsigned long long)seed, v);
        }
        cr_assert(victim == 0 || send_next(g, sent + 1) == QN_EPEERDEAD);
        free_group(g);
    }
}

/* A copy of another length than the first, an acknowledgement with bytes, and a
 * message that is too long. */
Test(sequenced_broadcast, damaged_messages_are_found)
{
    /* number, view; how far behind */
    uint8_t msg[16 + BYTES_MAX + 1] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    struct group *g = new_ring(4, 2, 4, 1); /* 0:[3,1], 3:[2] */
    cr_assert_eq(qn_qp_try_send(g->member[0].qp[3], msg, sizeof msg), QN_OK);
    for (uint32_t i = 0; i < 10; i++) {
        (void)qn_qp_flush(g->member[0].qp[3]);
        turn(g, 3);
    }
    cr_assert_eq(qn_sequenced_broadcast_error(g->member[3].b), QN_ECORRUPT);
    free_group(g);

    g = new_ring(9, 2, 4, 1); /* 3:[1] 4:[1] */
    g->member[1].any = true;
    cr_assert_eq(qn_qp_try_send(g->member[3].qp[1], msg, 20), QN_OK);
    turn(g, 1);
    cr_assert_eq(qn_sequenced_broadcast_error(g->member[1].b), QN_OK);
    msg[6] = 1; /* its second link */
    cr_assert_eq(qn_qp_try_send(g->member[4].qp[1], msg, 21), QN_OK);
    turn(g, 1);
    cr_assert_eq(qn_sequenced_broadcast_error(g->member[1].b), QN_ECORRUPT);
    free_group(g);

    msg[6] = 0;
    for (uint8_t behind = 0; behind <= 5; behind += 5) { /* window: 4 */
        g = new_ring(2, 1, 4, 1);
        msg[8] = behind;
        cr_assert_eq(qn_qp_try_send(g->member[0].qp[1], msg, 20), QN_OK);
        turn(g, 1);
        cr_assert_eq(qn_sequenced_broadcast_error(g->member[1].b), QN_ECORRUPT);
        free_group(g);
    }

    g = new_ring(2, 1, 4, 1);
    cr_assert_eq(send_next(g, 1), QN_OK);
    msg[7] = 1u << 2; /* stage 1 */
    cr_assert_eq(qn_qp_try_send(g->member[1].qp[0], msg, 9), QN_OK);
    turn(g, 0);
    cr_assert_eq(qn_sequenced_broadcast_error(g->member[0].b), QN_ECORRUPT);
    free_group(g);
}

Test(sequenced_broadcast, what_cannot_be_made_is_refused)
{
    struct group *g = new_tree(2, "sequential", 4, 1);
    struct member *m = &g->member[0];
    struct qn_wiring other = *m->wiring;
    struct qn_sequenced_broadcast *b;
    struct qn_sequenced_broadcast_opts o = {.wiring = m->wiring,
                                            .qp = m->qp,
                                            .window = 3,
                                            .bytes_max = 8,
                                            .deliver = deliver};
    cr_assert_eq(qn_sequenced_broadcast_create(&b, &o), QN_EINVAL, "window");
    o.window = 4;
    o.bytes_max = QN_SEQUENCE_LEN_MAX + 1;
    cr_assert_eq(qn_sequenced_broadcast_create(&b, &o), QN_EINVAL, "bytes");
    o.bytes_max = 8;
    o.deliver = NULL;
    cr_assert_eq(qn_sequenced_broadcast_create(&b, &o), QN_EINVAL, "deliver");
    o.deliver = deliver;
    other.called = true;
    o.wiring = &other;
    cr_assert_eq(qn_sequenced_broadcast_create(&b, &o), QN_EINVAL, "called");
    free_group(g);
}
