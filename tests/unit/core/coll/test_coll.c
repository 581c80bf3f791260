/* Collective operations without failures. */
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "tests/support/test.h"
#include "tests/unit/core/coll/coll_net.h"

/* What node `v` contributes to operation `k`. */
static uint64_t contribution(qn_node_t v, uint32_t k)
{
    return (uint64_t)(v + 1) * 1000003u + (uint64_t)k * k * 7919u;
}

static uint64_t naive_sum(uint32_t n, uint32_t k)
{
    uint64_t sum = 0;
    for (qn_node_t v = 0; v < n; v++) {
        sum += contribution(v, k);
    }
    return sum;
}

static enum qn_coll_what kind_of(uint32_t k)
{
    return k % 5 < 2 ? QN_COLL_REDUCE : QN_COLL_ALLREDUCE;
}

Test(coll, every_shape_and_size_reduces_to_the_naive_sum)
{
    for (uint32_t s = 0; qn_tree_name_at(s) != NULL; s++) {
        for (uint32_t n = 1; n <= COLL_NODES; n++) {
            struct coll_net *net = coll_new(qn_tree_name_at(s), n);
            for (uint32_t k = 0; k < 10; k++) {
                for (qn_node_t v = 0; v < n; v++) {
                    coll_start(net, v, kind_of(k), contribution(v, k));
                }
                coll_settle(net);
                bool all = kind_of(k) == QN_COLL_ALLREDUCE;
                for (qn_node_t v = 0; v < n; v++) {
                    cr_assert_eq(net->node[v].rc, QN_OK);
                    cr_assert(!qn_coll_flush(net->node[v].c));
                    cr_assert(!qn_coll_pending(net->node[v].c));
                    cr_assert(!(all || v == 0) ||
                              net->node[v].out == naive_sum(n, k));
                }
            }
            coll_free(net);
        }
    }
}

/* ---- all operations, over pairs of trees, any number of them under way ----
 */

#define OPERATIONS 60u
#define ANY_MAX    1024u /* bytes of a payload */

/* x -> a*x + b, one after the other: associative, and no order but one is
 * right. */
static void compose(void *into, const void *from, uint32_t count)
{
    uint64_t *f = into;
    const uint64_t *g = from;
    for (uint32_t i = 0; i < 2 * count; i += 2) {
        f[i + 1] = f[i + 1] * g[i] + g[i + 1];
        f[i] *= g[i];
    }
}

static const uint64_t identity[2] = {1, 0};
static const struct qn_operator maps = {
    .combine = compose, .neutral = identity, .bytes = 16};

struct any {
    struct qn_coll_call call;
    uint8_t in[ANY_MAX], out[ANY_MAX], want[ANY_MAX];
    size_t want_bytes;
    uint32_t number;
};

/* The kind, the operator and the size of operation k, the same at all nodes. */
static void choose(struct any *a, uint32_t k)
{
    static const struct qn_operator *const ops[] = {
        &qn_sum_u64, &qn_max_u64, &qn_min_i64, &qn_sum_f64, &maps, &qn_max_f64};
    a->call = (struct qn_coll_call){
        .what = (enum qn_coll_what)(k * 7 % 9 % (QN_COLL_SCATTER + 1)),
        .op = ops[k * 5 % QN_ARRAY_COUNT(ops)],
        .count = k * 11 % 4};
}

static bool is_reduction(const struct any *a)
{
    return a->call.what == QN_COLL_REDUCE || a->call.what == QN_COLL_ALLREDUCE;
}

/* What node v puts into operation k; node 3 takes part in every second one. */
static bool fill(struct any *a, qn_node_t v, uint32_t k)
{
    const uint32_t count = a->call.count;
    for (uint32_t i = 0; i < 64; i++) {
        uint64_t word = contribution(v, k) * (i + 1) % 1000;
        if (is_reduction(a) && a->call.op->bytes == 8 &&
            !a->call.op->commutes) {
            double x = 1.0 / (double)(word + 1);
            memcpy(&word, &x, sizeof x);
        }
        memcpy(a->in + 8 * (size_t)i, &word, 8);
    }
    if (a->call.what == QN_COLL_COMMIT) {
        uint64_t vote = (v + k) % 7 != 0;
        memcpy(a->in, &vote, sizeof vote);
    }
    return !is_reduction(a) || count == 0 || v != 3 || k % 2 == 0;
}

/* What a node must get, made from the inputs of all in the order of ranks. */
static void expect(const struct coll_net *net, struct any *a, qn_node_t self,
                   uint32_t k)
{
    const uint32_t n = net->tree.n, count = a->call.count;
    const bool root = self == net->tree.root;
    struct any other = *a;
    uint64_t all = 1;
    a->want_bytes = 0;
    for (qn_node_t v = 0; v < n; v++) {
        bool takes_part = fill(&other, v, k);
        uint64_t vote;
        memcpy(&vote, other.in, sizeof vote);
        all = all != 0 && vote != 0;
        if (a->call.what == QN_COLL_GATHER && root) {
            memcpy(a->want + (size_t)v * count, other.in, count);
            a->want_bytes = (size_t)n * count;
        } else if (is_reduction(a) && count > 0) {
            for (uint32_t i = 0; !takes_part && i < count; i++) {
                memcpy(other.in + (size_t)i * a->call.op->bytes,
                       a->call.op->neutral, a->call.op->bytes);
            }
            if (v == 0) {
                memcpy(a->want, other.in, (size_t)count * a->call.op->bytes);
            } else {
                a->call.op->combine(a->want, other.in, count);
            }
        }
    }
    if (is_reduction(a) && (root || a->call.what == QN_COLL_ALLREDUCE)) {
        a->want_bytes = count == 0 ? 0 : (size_t)count * a->call.op->bytes;
    }
    if (a->call.what == QN_COLL_COMMIT) {
        memcpy(a->want, &all, sizeof all);
        a->want_bytes = sizeof all;
    }
    if (a->call.what == QN_COLL_BROADCAST ||
        a->call.what == QN_COLL_ACKNOWLEDGED ||
        a->call.what == QN_COLL_SCATTER) {
        (void)fill(&other, net->tree.root, k);
        bool part = a->call.what == QN_COLL_SCATTER;
        memcpy(a->want, other.in + (part ? (size_t)self * count : 0), count);
        a->want_bytes = count;
    }
}

static void begin_any(struct coll_net *net, struct any *a, qn_node_t v,
                      uint32_t k)
{
    choose(a, k);
    bool takes_part = fill(a, v, k);
    expect(net, a, v, k);
    a->call.in = takes_part ? a->in : NULL;
    a->call.out = a->out;
    memset(a->out, 0xa5, sizeof a->out);
    int rc = qn_coll_start(net->node[v].c, &a->call, &a->number);
    cr_assert_eq(rc, QN_OK, "%s", qn_strerror(rc));
    cr_assert_eq(a->number, k + 1);
    memset(a->in, 0x5a, sizeof a->in); /* it was copied */
}

static void check_any(const struct any *a, qn_node_t v, uint64_t seed)
{
    cr_assert_eq(memcmp(a->out, a->want, a->want_bytes), 0,
                 "seed %llu node %u operation %u what %d",
                 (unsigned long long)seed, v, a->number, (int)a->call.what);
    cr_assert(a->want_bytes == sizeof a->out || a->out[a->want_bytes] == 0xa5);
}

/* Any node may be the next to turn, and starts the next operation at some time
 * after its window has room, so nodes are ahead of others all the time. */
static void run_any(uint64_t seed, bool exchange)
{
    const uint32_t n = 1 + (uint32_t)(seed % COLL_NODES);
    const uint32_t window = 1u << seed % 3;
    struct coll_net *net = exchange
                               ? coll_exchange(n, seed, window, ANY_MAX)
                               : coll_random_pair(n, seed, window, ANY_MAX);
    struct any(*any)[4] = calloc(COLL_NODES, sizeof *any);
    uint32_t started[COLL_NODES] = {0}, done[COLL_NODES] = {0};
    uint32_t left = n * OPERATIONS;
    cr_assert_not_null(any);
    for (uint32_t turn = 0; left > 0; turn++) {
        cr_assert_lt(turn, 1000000, "seed %llu", (unsigned long long)seed);
        qn_node_t v = coll_draw(net, n);
        if (started[v] < OPERATIONS && started[v] - done[v] < window &&
            coll_draw(net, 3) == 0) { /* it may be late */
            begin_any(net, &any[v][started[v] % 4], v, started[v]);
            started[v]++;
        }
        coll_turn(net, v);
        while (done[v] < started[v]) {
            const struct any *a = &any[v][done[v] % 4];
            int rc = qn_coll_state(net->node[v].c, a->number);
            if (rc == QN_EAGAIN) {
                break;
            }
            cr_assert_eq(rc, QN_OK);
            check_any(a, v, seed);
            done[v]++;
            left--;
        }
    }
    free(any);
    coll_free(net);
}

Test(coll, all_operations_over_pairs_of_trees_in_any_order, .timeout = 100)
{
    for (uint64_t seed = 1; seed <= 300; seed++) {
        run_any(seed, false);
    }
}

/* Others of all kinds come before and after those that are exchanged. */
Test(coll, all_reductions_may_be_exchanged_in_any_order, .timeout = 100)
{
    for (uint64_t seed = 1; seed <= 150; seed++) {
        run_any(seed, true);
    }
}

Test(coll, a_broadcast_has_up_to_64_kibibytes, .timeout = 30)
{
    static uint8_t sent[QN_COLL_PAYLOAD_MAX], got[3][QN_COLL_PAYLOAD_MAX];
    struct coll_net *net = coll_random_pair(3, 5, 1, QN_COLL_PAYLOAD_MAX);
    for (uint32_t i = 0; i < sizeof sent; i++) {
        sent[i] = (uint8_t)(i * 31 >> 3);
    }
    for (qn_node_t v = 0; v < 3; v++) {
        const struct qn_coll_call call = {.what = QN_COLL_ACKNOWLEDGED,
                                          .in = sent,
                                          .out = got[v],
                                          .count = sizeof sent};
        cr_assert_eq(qn_coll_start(net->node[v].c, &call, NULL), QN_OK);
    }
    for (uint32_t i = 0; i < 100; i++) {
        coll_settle(net);
    }
    for (qn_node_t v = 0; v < 3; v++) {
        cr_assert_eq(net->node[v].rc, QN_OK);
        cr_assert_eq(memcmp(sent, got[v], sizeof sent), 0);
    }
    coll_free(net);
}

/* ---- when things happen ---- */

Test(coll, a_vector_of_six_words_travels_in_one_cell)
{
    struct coll_net *net = coll_new("tree:k=1", 3);
    uint64_t out[3][QN_COLL_WORDS];
    for (qn_node_t v = 0; v < 3; v++) {
        uint64_t word[QN_COLL_WORDS];
        for (uint32_t i = 0; i < QN_COLL_WORDS; i++) {
            word[i] = (v * 3 + i * 5) % 7;
        }
        const struct qn_coll_call call = {.what = QN_COLL_ALLREDUCE,
                                          .op = &qn_max_u64,
                                          .in = word,
                                          .out = out[v],
                                          .count = QN_COLL_WORDS};
        cr_assert_eq(qn_coll_start(net->node[v].c, &call, NULL), QN_OK);
    }
    coll_settle(net);
    cr_assert_eq(inmemory_frames(coll_qp(net, 2, 1)), 1);
    cr_assert_eq(inmemory_frames(coll_qp(net, 1, 2)), 1);
    for (uint32_t i = 0; i < QN_COLL_WORDS; i++) {
        uint64_t want = 0;
        for (uint32_t v = 0; v < 3; v++) {
            uint64_t word = (v * 3 + i * 5) % 7;
            want = QN_MAX(want, word);
        }
        cr_assert_eq(out[2][i], want);
    }
    coll_free(net);
}

Test(coll, no_node_leaves_a_barrier_before_the_last_has_entered)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct coll_net *net = coll_random_pair(9, seed, 1, 0);
        qn_node_t late = (qn_node_t)(seed % 9);
        for (qn_node_t v = 0; v < 9; v++) {
            if (v != late) {
                cr_assert_eq(qn_coll_barrier(net->node[v].c, NULL), QN_OK);
            }
        }
        coll_settle(net);
        for (qn_node_t v = 0; v < 9; v++) {
            cr_assert_eq(net->node[v].rc, v != late ? QN_EAGAIN : QN_OK);
        }
        cr_assert_eq(qn_coll_barrier(net->node[late].c, NULL), QN_OK);
        coll_settle(net);
        for (qn_node_t v = 0; v < 9; v++) {
            cr_assert_eq(net->node[v].rc, QN_OK);
        }
        coll_free(net);
    }
}

Test(coll, an_acknowledged_broadcast_waits_for_all_a_plain_one_for_none)
{
    static const enum qn_coll_what whats[] = {QN_COLL_BROADCAST,
                                              QN_COLL_ACKNOWLEDGED};
    for (uint32_t i = 0; i < 2; i++) {
        struct coll_net *net = coll_new("sequential", 3);
        struct qn_coll_call call = {.what = whats[i], .in = "abc", .count = 3};
        cr_assert_eq(qn_coll_start(net->node[0].c, &call, NULL), QN_OK);
        cr_assert_eq(qn_coll_start(net->node[1].c, &call, NULL), QN_OK);
        coll_settle(net);
        cr_assert_eq(net->node[0].rc, i == 0 ? QN_OK : QN_EAGAIN);
        cr_assert_eq(net->node[1].rc, QN_OK);
        cr_assert_eq(qn_coll_start(net->node[2].c, &call, NULL), QN_OK);
        coll_settle(net);
        cr_assert_eq(net->node[0].rc, QN_OK);
        cr_assert_eq(net->node[2].rc, QN_OK);
        coll_free(net);
    }
}

/* Said to commute, which it does not: it shows the order. */
static void append(void *into, const void *from, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        ((uint64_t *)into)[i] =
            ((uint64_t *)into)[i] * 10 + ((const uint64_t *)from)[i];
    }
}

static const struct qn_operator appends = {
    .combine = append, .neutral = identity, .bytes = 8, .commutes = true};

Test(coll, children_are_taken_as_their_messages_arrive)
{
    static const qn_node_t arrival[] = {3, 1, 4, 2};
    struct coll_net *net = coll_new("sequential", 5);
    uint64_t out = 0;
    for (qn_node_t v = 0; v < 5; v++) {
        uint64_t word = v;
        const struct qn_coll_call call = {.what = QN_COLL_REDUCE,
                                          .op = &appends,
                                          .in = &word,
                                          .out = &out,
                                          .count = 1};
        cr_assert_eq(qn_coll_start(net->node[v].c, &call, NULL), QN_OK);
    }
    for (uint32_t i = 0; i < 4; i++) {
        cr_assert_eq(coll_turn(net, 0), QN_EAGAIN);
        cr_assert_eq(coll_turn(net, arrival[i]), QN_OK);
    }
    cr_assert_eq(coll_turn(net, 0), QN_OK);
    cr_assert_eq(out, 3142);
    coll_free(net);
}

Test(coll, a_child_is_at_most_one_barrier_ahead_and_its_message_stays)
{
    struct coll_net *net = coll_new("sequential", 2);
    struct qn_coll *child = net->node[1].c, *root = net->node[0].c;
    cr_assert_eq(qn_coll_barrier(root, NULL), QN_OK);
    cr_assert_eq(qn_coll_barrier(child, NULL), QN_OK);
    coll_settle(net);
    cr_assert_eq(qn_coll_barrier(child, NULL), QN_OK);
    coll_settle(net);
    cr_assert_eq(net->node[1].rc, QN_EAGAIN);
    cr_assert_eq(inmemory_used(coll_qp(net, 1, 0)), 1);
    cr_assert(!qn_coll_pending(root));
    cr_assert_eq(qn_coll_barrier(root, NULL), QN_OK);
    coll_settle(net);
    cr_assert_eq(net->node[1].rc, QN_OK);
    cr_assert_eq(inmemory_used(coll_qp(net, 1, 0)), 0);
    coll_free(net);
}

Test(coll, reductions_ahead_fill_the_lane_and_then_wait)
{
    struct coll_net *net = coll_new("sequential", 2);
    for (uint32_t k = 0; k < COLL_CELLS; k++) {
        coll_start(net, 1, QN_COLL_REDUCE, k);
        cr_assert_eq(coll_turn(net, 1), QN_OK);
    }
    coll_start(net, 1, QN_COLL_REDUCE, COLL_CELLS);
    cr_assert_eq(coll_turn(net, 1), QN_EAGAIN);
    cr_assert(!qn_coll_pending(net->node[1].c));
    for (uint32_t k = 0; k <= COLL_CELLS; k++) {
        coll_start(net, 0, QN_COLL_REDUCE, 100);
        cr_assert_eq(coll_turn(net, 0), QN_OK);
        cr_assert_eq(net->node[0].out, 100 + k);
        cr_assert_eq(coll_turn(net, 1), QN_OK);
        cr_assert_eq(inmemory_used(coll_qp(net, 1, 0)), COLL_CELLS - k);
    }
    coll_free(net);
}

Test(coll, a_poll_says_whether_it_has_moved_something)
{
    struct coll_net *net = coll_new("sequential", 2);
    coll_start(net, 1, QN_COLL_REDUCE, 1);
    (void)qn_coll_poll(net->node[1].c);
    cr_assert(qn_coll_moved(net->node[1].c), "sent");
    (void)qn_coll_poll(net->node[1].c);
    cr_assert(!qn_coll_moved(net->node[1].c));
    coll_start(net, 0, QN_COLL_REDUCE, 1);
    (void)qn_coll_poll(net->node[0].c);
    cr_assert(qn_coll_moved(net->node[0].c), "received");
    (void)qn_coll_test(net->node[0].c, 1);
    cr_assert(!qn_coll_moved(net->node[0].c));
    coll_free(net);
}

/* A node that sleeps after a flush would not see that its operation is
 * complete, and nothing would wake it. */
Test(coll, what_a_flush_has_completed_is_pending_until_the_next_poll)
{
    struct coll_net *net = coll_new("sequential", 2);
    struct qn_coll *c = net->node[1].c;
    inmemory_allow(coll_qp(net, 1, 0), 0);
    coll_start(net, 1, QN_COLL_REDUCE, 1);
    cr_assert_eq(coll_turn(net, 1), QN_EAGAIN);
    cr_assert(!qn_coll_pending(c));
    inmemory_allow(coll_qp(net, 1, 0), INMEMORY_UNLIMITED);
    cr_assert(!qn_coll_flush(c), "it has gone");
    cr_assert_eq(qn_coll_state(c, 1), QN_OK);
    cr_assert(qn_coll_pending(c));
    cr_assert_eq(qn_coll_poll(c), QN_OK);
    cr_assert(!qn_coll_pending(c));
    coll_free(net);
}

Test(coll, a_release_without_room_waits_and_goes_to_each_child_once)
{
    struct coll_net *net = coll_new("sequential", 4);
    inmemory_allow(coll_qp(net, 0, 2), 0);
    for (qn_node_t v = 0; v < 4; v++) {
        coll_start(net, v, QN_COLL_ALLREDUCE, v);
    }
    coll_settle(net);
    cr_assert_eq(net->node[0].rc, QN_EAGAIN);
    cr_assert(!qn_coll_pending(net->node[0].c));
    cr_assert_eq(net->node[1].rc, QN_OK);
    cr_assert_eq(net->node[2].rc, QN_EAGAIN);
    inmemory_allow(coll_qp(net, 0, 2), INMEMORY_UNLIMITED);
    cr_assert(qn_coll_pending(net->node[0].c));
    coll_settle(net);
    for (qn_node_t v = 0; v < 4; v++) {
        cr_assert_eq(net->node[v].rc, QN_OK);
        cr_assert(v == 0 || inmemory_frames(coll_qp(net, 0, v)) == 1);
    }
    coll_free(net);
}

/* ---- exchanges ---- */

Test(coll, an_exchange_is_one_message_from_each_to_each)
{
    struct coll_net *net = coll_exchange(4, 1, 1, 0);
    for (uint32_t turn = 0; turn < 2; turn++) {
        for (qn_node_t v = 0; v < 4; v++) {
            if (turn == 0) {
                coll_start(net, v, QN_COLL_ALLREDUCE, 1u << v);
            }
            (void)coll_turn(net, v);
        }
    }
    for (qn_node_t v = 0; v < 4; v++) {
        cr_assert_eq(net->node[v].rc, QN_OK);
        cr_assert_eq(net->node[v].out, 15);
        for (qn_node_t w = 0; w < 4; w++) {
            cr_assert(v == w || inmemory_frames(coll_qp(net, v, w)) == 1);
        }
    }
    coll_free(net);
}

/* What comes from others before the own contribution has gone to all is no part
 * of it. */
Test(coll, what_waits_for_room_is_the_own_contribution)
{
    static const struct qn_operator *const ops[] = {&qn_sum_u64, &maps};
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(ops); i++) {
        struct coll_net *net = coll_exchange(3, 1, 1, 256);
        uint64_t in[3][2], out[3][2], want[2];
        inmemory_allow(coll_qp(net, 0, 2), 0);
        for (qn_node_t v = 0; v < 3; v++) {
            in[v][0] = v + 2;
            in[v][1] = v + 7;
            const struct qn_coll_call call = {.what = QN_COLL_ALLREDUCE,
                                              .op = ops[i],
                                              .in = in[v],
                                              .out = out[v],
                                              .count = i == 0 ? 2 : 1};
            cr_assert_eq(qn_coll_start(net->node[v].c, &call, NULL), QN_OK);
        }
        coll_settle(net);
        cr_assert_eq(net->node[0].rc, QN_EAGAIN);
        cr_assert_eq(net->node[1].rc, QN_OK);
        cr_assert_eq(net->node[2].rc, QN_EAGAIN);
        inmemory_allow(coll_qp(net, 0, 2), INMEMORY_UNLIMITED);
        coll_settle(net);
        memcpy(want, in[0], sizeof want);
        ops[i]->combine(want, in[1], i == 0 ? 2 : 1);
        ops[i]->combine(want, in[2], i == 0 ? 2 : 1);
        for (qn_node_t v = 0; v < 3; v++) {
            cr_assert_eq(net->node[v].rc, QN_OK);
            cr_assert_eq(memcmp(out[v], want, sizeof want), 0, "node %u", v);
        }
        coll_free(net);
    }
}

static struct {
    struct qn_qp_ops ops;
    int (*peek)(struct qn_qp *qp, const void **msg, size_t *len);
    uint32_t peeks;
} counted;

static int counting_peek(struct qn_qp *qp, const void **msg, size_t *len)
{
    counted.peeks++;
    return counted.peek(qp, msg, len);
}

/* How often a node that waits in vain for another one looks at its lane. */
static uint32_t looks_of_a_wait(bool exchange, uint32_t yields)
{
    struct coll_net *net = coll_exchange(2, 1, 1, 0);
    const qn_node_t v = net->tree.root;
    struct qn_qp *qp = coll_qp(net, v, 1 - v);
    struct qn_doorbell_line line = {.epoch = 0};
    struct qn_doorbell doorbell;
    struct qn_coll *c;
    uint32_t number;
    const struct qn_coll_opts o = {.self = v,
                                   .down = &net->tree,
                                   .qp = net->node[v].qp,
                                   .doorbell = &doorbell,
                                   .backoff = {.yields = yields},
                                   .exchange = exchange};
    qn_doorbell_init(&doorbell, &line, -1);
    counted.ops = *qp->ops;
    counted.peek = qp->ops->peek;
    counted.ops.peek = counting_peek;
    counted.peeks = 0;
    qp->ops = &counted.ops;
    cr_assert_eq(qn_coll_create(&c, &o), QN_OK);
    cr_assert_eq(qn_coll_barrier(c, &number), QN_OK);
    cr_assert_eq(qn_coll_wait(c, number, 1), QN_ETIMEDOUT);
    qn_coll_destroy(c);
    coll_free(net);
    return counted.peeks;
}

Test(coll, a_wait_in_an_exchange_looks_again_before_it_lets_others_run)
{
    const uint32_t tree = looks_of_a_wait(false, 2) - looks_of_a_wait(false, 0);
    const uint32_t all = looks_of_a_wait(true, 2) - looks_of_a_wait(true, 0);
    cr_assert_eq(tree, 2, "%u", tree);
    cr_assert_eq(all, 2 * (1 + 4), "%u", all);
}

Test(coll, an_exchange_needs_queuepairs_to_all_members)
{
    struct coll_net *net = coll_exchange(4, 1, 1, 0);
    const qn_node_t leaf = net->tree.root == 3 ? 2 : 3;
    struct qn_coll_opts o = {.self = leaf,
                             .down = &net->tree,
                             .qp = net->node[leaf].qp,
                             .exchange = true};
    struct qn_coll *c;
    cr_assert_eq(qn_coll_create(&c, &o), QN_OK);
    qn_coll_destroy(c);
    for (qn_node_t v = 0; v < 4; v++) {
        struct qn_qp *some[QN_NODES_MAX];
        memcpy((void *)some, (void *)net->node[leaf].qp, sizeof some);
        some[v] = NULL;
        o.qp = some;
        cr_assert_eq(qn_coll_create(&c, &o), v == leaf ? QN_OK : QN_EINVAL);
        if (v == leaf) {
            qn_coll_destroy(c);
        }
    }
    coll_free(net);
}

/* ---- what is refused ---- */

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

/* Each member is up to a window ahead of another, which may be more than a lane
 * holds, and sends to all in one order. */
Test(coll, a_window_is_longer_than_lanes_over_a_pair_of_trees, .timeout = 60)
{
    enum { WINDOW = 64, COMMITS = 200 };
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct coll_net *net = coll_random_pair(9, seed, WINDOW, 0);
        uint32_t rounds = 0, ended = 0;
        const uint64_t yes = 1;
        const struct qn_coll_call call = {.what = QN_COLL_COMMIT, .in = &yes};
        for (; rounds < 100 * COMMITS && ended < 9; rounds++) {
            ended = 0;
            for (qn_node_t v = 0; v < 9; v++) {
                struct qn_coll *c = net->node[v].c;
                while (qn_coll_last(c) < COMMITS && coll_draw(net, 12) > v &&
                       qn_coll_start(c, &call, NULL) == QN_OK) {
                }
                ended +=
                    coll_turn(net, v) == QN_OK && qn_coll_last(c) == COMMITS;
            }
        }
        cr_assert_eq(ended, 9, "seed %llu: %u of 9", (unsigned long long)seed,
                     ended);
        coll_free(net);
    }
}
