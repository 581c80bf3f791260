#include "core/topo/diamond_ring.h"

#include <stdio.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/topo/pipeline_sim.h"
#include "core/topo/predict.h"
#include "core/topo/static_trees.h"
#include "tests/support/test.h"
#include "tests/unit/core/topo/world.h"

static struct qn_diamond_ring *ring(uint32_t n, uint32_t k, bool full,
                                    bool companion)
{
    const struct qn_diamond_ring_opts o = {n, k, full, companion};
    struct qn_diamond_ring *r = NULL;
    cr_assert_eq(qn_diamond_ring_create(&r, &o), QN_OK, "n=%u k=%u", n, k);
    return r;
}

static void expect_links(uint32_t n, bool full, const char *want)
{
    char got[600] = "";
    size_t at = 0;
    struct qn_diamond_ring *r = ring(n, 2, full, false);
    for (uint32_t v = 0; v < n; v++) {
        at += (size_t)snprintf(got + at, sizeof got - at, "%s%u:[",
                               v > 0 ? " " : "", v);
        for (uint32_t i = r->first[v]; i < r->first[v + 1]; i++) {
            at += (size_t)snprintf(got + at, sizeof got - at, "%s%u",
                                   i > r->first[v] ? "," : "", r->next[i]);
        }
        at += (size_t)snprintf(got + at, sizeof got - at, "]");
    }
    cr_expect_str_eq(got, want);
    qn_diamond_ring_destroy(r);
}

/* Section 5.6. */
Test(ring, equals_the_table_of_the_specification)
{
    expect_links(1, false, "0:[]");
    expect_links(2, false, "0:[1] 1:[0]");
    expect_links(3, false, "0:[2,1] 1:[0] 2:[0]");
    expect_links(9, false,
                 "0:[8,7] 1:[0] 2:[0] 3:[1] 4:[1] 5:[2] 6:[2] 7:[4,3] "
                 "8:[6,5]");
    expect_links(11, false,
                 "0:[10,9] 1:[0] 2:[0] 3:[1] 4:[1] 5:[4] 6:[2] 7:[2] 8:[7] "
                 "9:[5,3] 10:[8,6]");
    expect_links(13, false,
                 "0:[12,11] 1:[0] 2:[0] 3:[1] 4:[3] 5:[1] 6:[5] 7:[2] 8:[7] "
                 "9:[2] 10:[9] 11:[6,4] 12:[10,8]");
    expect_links(14, false,
                 "0:[13,12] 1:[0] 2:[0] 3:[1] 4:[1] 5:[2] 6:[2] 7:[6] 8:[3] "
                 "9:[4] 10:[5] 11:[7] 12:[9,8] 13:[11,10]");
    expect_links(14, true,
                 "0:[13,12] 1:[0] 2:[0] 3:[1] 4:[1] 5:[2] 6:[2] 7:[6] "
                 "8:[3,3] 9:[4,4] 10:[5,5] 11:[7,6] 12:[9,8] 13:[11,10]");
}

/* Hops of the shortest and the longest way from the root to each id, ids in
 * descending order; the way back to the root ends in *low and *high. */
static void hops(const struct qn_diamond_ring *r, uint32_t *low, uint32_t *high)
{
    uint32_t least[QN_CORES_MAX], most[QN_CORES_MAX] = {0};
    for (uint32_t v = 0; v < r->o.n; v++) {
        least[v] = UINT32_MAX;
    }
    uint32_t ring_n = r->o.n - r->o.companion;
    *low = UINT32_MAX;
    *high = 0;
    for (uint32_t step = 0; step <= ring_n; step++) {
        /* The root, then n-1 .. 1, then the companion. */
        uint32_t v = step == ring_n ? ring_n : (ring_n - step) % ring_n;
        if (v == r->o.n || (step == ring_n && !r->o.companion)) {
            break;
        }
        uint32_t l = v == 0 ? 0 : least[v], h = v == 0 ? 0 : most[v];
        for (uint32_t i = r->first[v]; i < r->first[v + 1]; i++) {
            uint32_t w = r->next[i];
            cr_assert(v == 0 || w == 0 || w < v || w == ring_n);
            least[w] = QN_MIN(least[w], l + 1);
            most[w] = QN_MAX(most[w], h + 1);
        }
    }
    *low = least[0];
    *high = most[0];
}

static void check_degrees(const struct qn_diamond_ring *r)
{
    uint32_t n = r->o.n - r->o.companion, k = r->o.k;
    uint32_t back = r->o.companion ? n : 0; /* who gathers */
    uint32_t in[QN_CORES_MAX] = {0};
    for (uint32_t i = 0; i < r->messages; i++) {
        in[r->next[i]]++;
    }
    for (uint32_t v = 0; v < r->o.n; v++) {
        uint32_t out = r->first[v + 1] - r->first[v];
        cr_assert(out >= 1 && out <= k, "n=%u k=%u id=%u", n, k, v);
        cr_assert(in[v] >= 1 && in[v] <= k, "n=%u k=%u id=%u", n, k, v);
        cr_assert_eq(in[v], r->preds[v]);
        bool gather = v >= 1 && v <= r->scatter;
        bool center = v > r->scatter && v <= r->scatter + r->centers;
        cr_assert(!(center || gather) || out == 1);
        cr_assert(!center || in[v] == 1);
        cr_assert(v <= r->scatter + r->centers || v >= n || in[v] == 1);
    }
    cr_assert_eq(in[back] <= k, true);
    cr_assert(!r->o.companion || (in[0] == 1 && r->next[r->first[n]] == 0));
}

/* Section 5.3, for all n <= 300 and k <= 8. */
Test(ring, keeps_its_invariants_for_every_n_and_k, .timeout = 100)
{
    for (uint32_t n = 2; n <= 300; n++) {
        for (uint32_t i = 0; i < 8 * 4; i++) {
            uint32_t k = 1 + i / 4, low = 0, high = 0;
            bool full = i & 1, companion = i & 2;
            if (companion && n < 3) {
                continue;
            }
            struct qn_diamond_ring *r = ring(n, k, full, companion);
            uint32_t l2 = 2 * r->levels + companion;
            check_degrees(r);
            hops(r, &low, &high);
            uint32_t m = r->centers, rings = r->rings;
            uint32_t least = m < rings && r->levels > 1 ? l2 - 1 : l2;
            uint32_t most = m > rings ? l2 + 1 : l2;
            cr_assert(low >= least && high <= most, "n=%u k=%u: %u..%u", n, k,
                      low, high);
            cr_assert(m < rings || full || r->messages == n - 1 + rings);
            cr_assert(!full || r->levels < 2 || r->messages == n - 1 + rings);
            qn_diamond_ring_destroy(r);
        }
    }
}

/* Equation (2) of the paper, literally, where all rings have one center. */
Test(ring, full_shapes_equal_equation_2)
{
    for (uint32_t k = 1; k <= 8; k++) {
        for (uint32_t l = 1, s = 0, rings = k; 1 + 2 * s + rings <= 300;
             l++, s += rings, rings *= k) {
            uint32_t n = 1 + 2 * s + rings;
            struct qn_diamond_ring *r = ring(n, k, false, false);
            cr_assert_eq(r->levels, l);
            for (uint32_t id = 0; id < n; id++) {
                uint32_t j = id == 0 ? 0 : n - id;
                bool scatter = id == 0 || id > s + rings;
                for (uint32_t i = 0; i < (scatter ? k : 1); i++) {
                    uint32_t want =
                        scatter ? n - (k * j + i + 1) : (id - 1) / k;
                    cr_assert_eq(r->next[r->first[id] + i], want);
                }
            }
            qn_diamond_ring_destroy(r);
        }
    }
}

Test(ring, saves_messages_and_hops_against_a_tree)
{
    static const uint32_t n[] = {9, 21, 45, 93, 189};
    for (uint32_t i = 0; i < 5; i++) {
        struct qn_diamond_ring *r = ring(n[i], 2, true, false);
        uint32_t low = 0, high = 0;
        hops(r, &low, &high);
        cr_expect_eq(high, 4 + 2 * i);
        qn_diamond_ring_destroy(r);
    }
    struct qn_diamond_ring *r = ring(9, 2, true, false);
    cr_expect_eq(r->messages, 12); /* the tree needs 16 */
    qn_diamond_ring_destroy(r);
}

/* ---- how a broadcast spreads --------------------------------------------- */

static bool has_link(const struct qn_diamond_ring *r, uint32_t from,
                     uint32_t to)
{
    bool found = false;
    for (uint32_t i = r->first[from]; i < r->first[from + 1]; i++) {
        found = found || r->next[i] == to;
    }
    return found;
}

/* Every edge is a link of the ring, and leads to a later rank: trees of one
 * order can be mixed. */
static void check_edges(uint32_t n, uint32_t k)
{
    struct qn_diamond_ring *r = ring(n, k, false, false);
    struct qn_edges e;
    struct qn_shape s;
    cr_assert_eq(qn_diamond_ring_edges(&e, k, n), QN_OK);
    cr_assert_eq(qn_shape_from_edges(&s, &e, 0), QN_OK, "n=%u k=%u", n, k);
    for (uint32_t v = 0; v < n; v++) {
        cr_assert_leq(s.count[v], k);
        for (uint32_t i = 0; i < s.count[v]; i++) {
            uint32_t w = qn_shape_children(&s, v)[i];
            cr_assert_gt(w, v, "n=%u k=%u", n, k);
            cr_assert(has_link(r, v == 0 ? 0 : n - v, n - w));
        }
    }
    cr_assert_leq(qn_shape_depth(&s), 2 * r->levels, "n=%u k=%u", n, k);
    qn_diamond_ring_destroy(r);
}

Test(ring, reaches_every_node_once_along_its_links, .timeout = 100)
{
    for (uint32_t n = 1; n <= 300; n++) {
        for (uint32_t k = 1; k <= 8; k++) {
            check_edges(n, k);
        }
    }
    check_edges(QN_CORES_MAX, 1);
    check_edges(QN_CORES_MAX, QN_RING_ARITY_MAX);
}

/* `want`: the rank before each rank but the root. */
static void expect_spread(uint32_t n, uint32_t k, const char *want)
{
    char got[200] = "";
    size_t at = 0;
    struct qn_edges e;
    struct qn_shape s;
    cr_assert_eq(qn_diamond_ring_edges(&e, k, n), QN_OK);
    cr_assert_eq(qn_shape_from_edges(&s, &e, 0), QN_OK);
    for (uint32_t v = 1; v < n; v++) {
        at += (size_t)snprintf(got + at, sizeof got - at, "%s%u",
                               v > 1 ? " " : "", s.parent[v]);
    }
    cr_expect_str_eq(got, want);
}

Test(ring, spreads_in_chains_that_part_and_join)
{
    expect_spread(1, 2, "");
    expect_spread(3, 2, "0 0");
    expect_spread(4, 1, "0 1 2");
    expect_spread(5, 2, "0 1 0 3");
    expect_spread(9, 2, "0 0 1 1 2 2 3 5");
}

Test(ring, is_known_by_name)
{
    cr_assert_eq(qn_diamond_ring_arity("ring:k=1"), 1u);
    cr_assert_eq(qn_diamond_ring_arity("ring:k=64"), QN_RING_ARITY_MAX);
    static const char *const no[] = {"ring",      "ring:k=",   "ring:k=0",
                                     "ring:k=65", "ring:k=+1", "ring:k=2x",
                                     "tree:k=2",  ""};
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(no); i++) {
        cr_assert_eq(qn_diamond_ring_arity(no[i]), 0u, "%s", no[i]);
    }
    struct qn_edges e;
    cr_assert_eq(qn_diamond_ring_edges(&e, 0, 4), QN_EINVAL);
    cr_assert_eq(qn_diamond_ring_edges(&e, QN_RING_ARITY_MAX + 1, 4),
                 QN_EINVAL);
    cr_assert_eq(qn_diamond_ring_edges(&e, 2, 0), QN_EINVAL);
    cr_assert_eq(qn_diamond_ring_edges(&e, 2, QN_CORES_MAX + 1), QN_EINVAL);
}

/* ---- bad input ----------------------------------------------------------- */

Test(ring, bad_input_is_refused_and_the_largest_is_made)
{
    static const struct qn_diamond_ring_opts bad[] = {{0, 2, false, false},
                                                      {1025, 2, false, false},
                                                      {5, 0, false, false},
                                                      {5, 65, false, false},
                                                      {2, 2, false, true}};
    struct qn_diamond_ring *r = NULL;
    for (uint32_t i = 0; i < 5; i++) {
        cr_expect_eq(qn_diamond_ring_create(&r, &bad[i]), QN_EINVAL, "%u", i);
    }
    for (uint32_t k = 1; k <= QN_RING_ARITY_MAX; k++) {
        r = ring(QN_CORES_MAX, k, true, true);
        check_degrees(r);
        qn_diamond_ring_destroy(r);
    }
}

/* s = 10, r = 30, three nodes, k = 2: 0 -> 2 visible at 10, 0 -> 1 at 20.
 * 2 has it at 40, its message is visible at 50; 1 at 50 and 60. The root takes
 * 2's until 80 and 1's until 110. */
Test(pipeline_sim, a_ring_by_hand)
{
    struct qn_machine *m = uniform(3, 10, 30, 1);
    struct qn_diamond_ring *r = ring(3, 2, false, false);
    struct qn_pipeline_sim_opts o = {.ops = 1, .work = 0, .q = 1};
    double t = 0;
    cr_assert_eq(qn_pipeline_sim_ring(m, r, &o, &t), QN_OK);
    cr_expect_eq(t, 110);
    cr_expect_eq(qn_diamond_ring_occupancy(m, r), 80);
    o.work = 5; /* 2: at 45, visible 55; root until 85; then 1's until 115 */
    cr_assert_eq(qn_pipeline_sim_ring(m, r, &o, &t), QN_OK);
    cr_expect_eq(t, 115);
    o = (struct qn_pipeline_sim_opts){.ops = 2, .work = 0, .q = 1};
    /* The root issues again at 20: until 40. Then 2's (visible 50) until 80,
     * 1's (60) until 110. Node 2: second visible at 30, served 50 to 80, sends
     * until 90; node 1: second visible 40, served 60 to 90, sends until 100.
     * Root: until 140 and 170. */
    cr_assert_eq(qn_pipeline_sim_ring(m, r, &o, &t), QN_OK);
    cr_expect_eq(t, 170);
    qn_diamond_ring_destroy(r);
    qn_machine_destroy(m);
}

Test(pipeline_sim, one_operation_on_a_tree_is_the_predicted_latency)
{
    for (uint32_t n = 1; n <= 30; n++) {
        struct qn_machine *m = scattered(n, n + 7);
        struct qn_shape s;
        const struct qn_pipeline_sim_opts o = {.ops = 1, .q = 0.5};
        double t = -1;
        (void)qn_static_build(&s, m, "fibonacci", 0, QN_LEVEL_NODE);
        cr_assert_eq(qn_pipeline_sim_tree(m, &s, false, &o, &t), QN_OK);
        cr_expect_eq(t, qn_predict(m, &s, QN_COLLECTIVE_BROADCAST, 0.5));
        cr_assert_eq(qn_pipeline_sim_tree(m, &s, true, &o, &t), QN_OK);
        cr_expect_eq(t, qn_predict(m, &s, QN_COLLECTIVE_ACK, 0.5), "n=%u", n);
        qn_machine_destroy(m);
    }
}

static struct qn_shape tree_of(uint32_t n, const uint8_t (*edge)[2])
{
    struct qn_edges e;
    struct qn_shape s;
    qn_edges_init(&e, n);
    for (uint32_t i = 0; i + 1 < n; i++) {
        qn_edges_add(&e, edge[i][0], edge[i][1]);
    }
    cr_assert_eq(qn_shape_from_edges(&s, &e, 0), QN_OK);
    return s;
}

/* s = 10, r = 30: down a chain, 1 has it at 40 and has sent at 50, 2 at 80. */
Test(pipeline_sim, answers_may_take_another_tree)
{
    static const uint8_t chain[][2] = {{0, 1}, {1, 2}, {2, 3}};
    static const uint8_t star[][2] = {{0, 1}, {0, 2}};
    static const uint8_t back[][2] = {{0, 2}, {2, 1}, {1, 3}};
    struct qn_machine *m = uniform(3, 10, 30, 3), *four = uniform(4, 10, 30, 4);
    struct qn_shape down = tree_of(3, chain), up = tree_of(3, star);
    struct qn_pipeline_sim_opts o = {.ops = 1, .q = 1};
    double t = -1, one = -1;
    /* 1's answer is visible at 60, 2's at 90: the root until 90 and 120. */
    cr_assert_eq(qn_pipeline_sim_trees(m, &down, &up, &o, &t), QN_OK);
    cr_expect_eq(t, 120);
    o.ops = 20;
    cr_assert_eq(qn_pipeline_sim_trees(m, &down, &down, &o, &t), QN_OK);
    cr_assert_eq(qn_pipeline_sim_tree(m, &down, true, &o, &one), QN_OK);
    cr_expect_eq(t, one);
    /* 3 has it at 120 and answers to 1 until 130. 1 has that at 160 and answers
     * to 2, whom it has informed, until 170; 2 to the root, 200 to 210. */
    o.ops = 1;
    down = tree_of(4, chain);
    up = tree_of(4, back);
    cr_assert_eq(qn_pipeline_sim_trees(four, &down, &up, &o, &t), QN_OK);
    cr_expect_eq(t, 240);
    qn_machine_destroy(four);
    qn_machine_destroy(m);
}

/* The busiest core bounds the rate. */
Test(pipeline_sim, throughput_stays_below_the_bound_and_comes_near)
{
    struct qn_machine *m = recorded("intel_xeon_e5_v2_2x10");
    const struct qn_pipeline_sim_opts o = {.ops = QN_PIPELINE_SIM_DEFAULT,
                                           .q = 1};
    struct qn_shape s;
    double t = 0;
    (void)qn_static_build(&s, m, "binary", 0, QN_LEVEL_NODE);
    for (uint32_t acks = 0; acks < 2; acks++) {
        double least = o.ops * qn_predict_occupancy(m, &s, acks, NULL);
        cr_assert_eq(qn_pipeline_sim_tree(m, &s, acks, &o, &t), QN_OK);
        cr_expect(t >= least && t < 1.2 * least, "%g %g", t, least);
    }
    struct qn_diamond_ring *r = ring(m->n, 2, false, false);
    cr_assert_eq(qn_pipeline_sim_ring(m, r, &o, &t), QN_OK);
    double least = o.ops * qn_diamond_ring_occupancy(m, r);
    cr_expect(t >= least && t < 1.2 * least, "%g %g", t, least);
    qn_diamond_ring_destroy(r);
    qn_machine_destroy(m);
}

Test(pipeline_sim, bad_options_are_refused)
{
    struct qn_machine *m = uniform(3, 1, 1, 1);
    static const struct qn_pipeline_sim_opts bad[] = {
        {0, 0, 1},
        {QN_PIPELINE_SIM_MAX + 1, 0, 1},
        {1, -1, 1},
        {1, 0, 2},
        {1, 0, -1}};
    struct qn_diamond_ring *r = ring(3, 2, false, false);
    double t = 0;
    for (uint32_t i = 0; i < 5; i++) {
        cr_expect_eq(qn_pipeline_sim_ring(m, r, &bad[i], &t), QN_EINVAL, "%u",
                     i);
    }
    qn_diamond_ring_destroy(r);
    qn_machine_destroy(m);
}
