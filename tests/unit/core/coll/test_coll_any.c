/* All operations, over pairs of trees, any number of them under way. */
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "tests/support/test.h"
#include "tests/unit/core/coll/coll_net.h"

#define OPERATIONS 60u
#define ANY_MAX    1024u /* bytes of a payload */

struct any {
    struct qn_coll_call call;
    uint8_t in[ANY_MAX], out[ANY_MAX], want[ANY_MAX];
    size_t want_bytes;
    uint32_t number;
};

/* The kind, the operator and the size of operation k, the same at all nodes. */
static void choose(struct any *a, uint32_t k)
{
    static const struct qn_operator *const ops[] = {&qn_sum_u64, &qn_max_u64,
                                                    &qn_min_i64, &qn_sum_f64,
                                                    &coll_maps,  &qn_max_f64};
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
        uint64_t word = coll_contribution(v, k) * (i + 1) % 1000;
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
