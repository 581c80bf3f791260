#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/workload/dist.h"
#include "tests/support/test.h"

#include <math.h>
#include <string.h>

enum { DRAWS = 200000, N_MAX = 1000 };

static struct qn_dist dist;
static struct qn_walk walk;
static char error[200];

static int parse(struct qn_dist_spec *spec, const char *text)
{
    error[0] = '\0';
    return qn_dist_parse(spec, text, error, sizeof error);
}

static void begin(const char *text, uint64_t n, uint64_t number,
                  uint64_t clients)
{
    struct qn_dist_spec spec;
    cr_assert_eq(parse(&spec, text), QN_OK, "%s", error);
    qn_dist_init(&dist, &spec, n);
    qn_walk_init(&walk, &dist, number, clients, 42);
}

/* The mapping of ranks to keys is one to one, for all small n and some large
 * ones. */
Test(dist, every_key_has_one_rank)
{
    static bool seen[N_MAX];
    for (uint64_t n = 1; n <= N_MAX; n++) {
        memset(seen, 0, sizeof seen);
        begin("zipf:1", n, 0, 1);
        for (uint64_t rank = 0; rank < n; rank++) {
            uint64_t key = qn_dist_key(&dist, rank);
            cr_assert_lt(key, n);
            cr_assert(!seen[key], "n %d, key %d", (int)n, (int)key);
            seen[key] = true;
        }
    }
}

Test(dist, ranks_of_large_n_are_the_true_remainders)
{
    static const uint64_t sizes[] = {999999937, 4000000000, QN_DIST_N_MAX - 1,
                                     QN_DIST_N_MAX};
    for (size_t i = 0; i < QN_ARRAY_COUNT(sizes); i++) {
        begin("zipf:1", sizes[i], 0, 1);
        for (uint64_t j = 0; j < 100000; j++) {
            uint64_t rank = j % 2 ? j : sizes[i] - 1 - j;
            cr_assert_eq(qn_dist_key(&dist, rank),
                         rank * dist.spread % sizes[i]);
        }
    }
}

/* Of the 100 hottest of 10^6 keys, each hundredth of the key space has 0 to
 * 3. */
Test(dist, hot_keys_are_spread)
{
    unsigned here[100] = {0};
    begin("zipf:1", 1000000, 0, 1);
    for (uint64_t rank = 0; rank < 100; rank++) {
        here[qn_dist_key(&dist, rank) / 10000]++;
    }
    for (int i = 0; i < 100; i++) {
        cr_assert_leq(here[i], 3, "part %d", i);
    }
}

Test(dist, uniform_requests_every_key_equally)
{
    static unsigned counts[100];
    double chi = 0;
    begin("uniform", 100, 0, 1);
    for (int i = 0; i < DRAWS; i++) {
        counts[qn_walk_next(&walk)]++;
    }
    for (int i = 0; i < 100; i++) {
        double off = counts[i] - DRAWS / 100.0;
        chi += off * off / (DRAWS / 100.0);
    }
    cr_assert_lt(chi, 99 + 5 * sqrt(2 * 99), "chi-square %g", chi);
}

Test(dist, zipf_requests_the_spread_ranks)
{
    static unsigned counts[10];
    begin("zipf:1", 10, 0, 1);
    for (int i = 0; i < DRAWS; i++) {
        counts[qn_walk_next(&walk)]++;
    }
    double sum = 7381.0 / 2520; /* 1 + 1/2 + ... + 1/10 */
    for (uint64_t rank = 0; rank < 10; rank++) {
        double expected = DRAWS / sum / (double)(rank + 1);
        double got = counts[qn_dist_key(&dist, rank)];
        cr_assert(fabs(got - expected) < 5 * sqrt(expected), "rank %d: %g, %g",
                  (int)rank, got, expected);
    }
}

Test(dist, a_hotspot_gets_its_share)
{
    static unsigned counts[1000];
    begin("hotspot:80:20", 1000, 0, 1);
    cr_assert_eq(dist.hot, 200);
    for (int i = 0; i < DRAWS; i++) {
        counts[qn_walk_next(&walk)]++;
    }
    double hot = 0;
    for (uint64_t rank = 0; rank < 1000; rank++) {
        double got = counts[qn_dist_key(&dist, rank)];
        double expected = rank < 200 ? DRAWS * 0.8 / 200 : DRAWS * 0.2 / 800;
        cr_assert(fabs(got - expected) < 6 * sqrt(expected), "rank %d: %g",
                  (int)rank, got);
        hot += rank < 200 ? got : 0;
    }
    cr_assert(fabs(hot - DRAWS * 0.8) < 5 * sqrt(DRAWS * 0.8 * 0.2));
}

Test(dist, a_hotspot_has_at_least_one_key_and_at_most_all)
{
    begin("hotspot:99:0.001", 10, 0, 1);
    cr_assert_eq(dist.hot, 1);
    begin("hotspot:100:100", 10, 0, 1);
    cr_assert_eq(dist.hot, 10);
    begin("hotspot:100:100", 1, 0, 1);
    cr_assert_eq(qn_walk_next(&walk), 0);
    begin("hotspot:50:50", 1, 0, 1);
    for (int i = 0; i < 100; i++) {
        cr_assert_eq(qn_walk_next(&walk), 0);
    }
}

Test(dist, sequential_deals_the_keys_to_the_clients_in_turn)
{
    static unsigned counts[10];
    for (uint64_t number = 0; number < 3; number++) {
        begin("sequential", 10, number, 3);
        cr_assert_eq(qn_walk_next(&walk), number);
        cr_assert_eq(qn_walk_next(&walk), number + 3);
        cr_assert_eq(qn_walk_next(&walk), number + 6);
        cr_assert_eq(qn_walk_next(&walk), (number + 9) % 10);
    }
    /* More clients than keys; and one client that wraps around. */
    begin("sequential", 10, 13, 17);
    for (int i = 0; i < 100; i++) {
        counts[qn_walk_next(&walk)]++;
    }
    for (int i = 0; i < 10; i++) {
        cr_assert_eq(counts[i], 10);
    }
}

Test(dist, insertions_are_new_and_belong_to_one_client)
{
    static bool seen[300];
    for (uint64_t number = 0; number < 3; number++) {
        begin("uniform", 10, number, 3);
        for (int i = 0; i < 50; i++) {
            uint64_t key = qn_walk_insert(&walk);
            cr_assert_geq(key, 10);
            cr_assert_lt(key, 10 + 150);
            cr_assert(!seen[key]);
            seen[key] = true;
            cr_assert_lt(qn_walk_next(&walk), 10);
        }
    }
}

/* Zipf over age: own insertions, newest first, then the first keys, newest
 * first; and never what another client inserts. */
Test(dist, latest_prefers_what_was_inserted_last)
{
    static unsigned counts[N_MAX];
    begin("latest:1", 5, 1, 2);
    uint64_t inserted[3];
    for (int i = 0; i < 3; i++) {
        inserted[i] = qn_walk_insert(&walk);
    }
    for (int i = 0; i < DRAWS; i++) {
        counts[qn_walk_next(&walk)]++;
    }
    const uint64_t by_age[] = {inserted[2], inserted[1], inserted[0], 4,
                               3,           2,           1,           0};
    double sum = 761.0 / 280; /* 1 + 1/2 + ... + 1/8 */
    double all = 0;
    for (size_t age = 0; age < 8; age++) {
        double expected = DRAWS / sum / (double)(age + 1);
        double got = counts[by_age[age]];
        cr_assert(fabs(got - expected) < 5 * sqrt(expected), "age %d: %g, %g",
                  (int)age, got, expected);
        all += got;
    }
    cr_assert_eq(all, DRAWS);
}

Test(dist, latest_uses_the_theta_of_ycsb_by_default)
{
    struct qn_dist_spec spec;
    cr_assert_eq(parse(&spec, "latest"), QN_OK);
    cr_assert_eq(spec.kind, QN_DIST_LATEST);
    cr_assert(fabs(spec.theta - 0.99) < 1e-12);
    cr_assert_eq(parse(&spec, "latest:0"), QN_OK);
    cr_assert(fabs(spec.theta - 0) < 1e-12);
}

Test(dist, the_same_seed_gives_the_same_keys)
{
    static const char *const all[] = {"uniform", "zipf:0.99", "hotspot:90:10",
                                      "latest", "sequential"};
    for (size_t d = 0; d < QN_ARRAY_COUNT(all); d++) {
        uint64_t first[100];
        begin(all[d], 1000, 3, 7);
        for (int i = 0; i < 100; i++) {
            first[i] =
                i % 10 == 0 ? qn_walk_insert(&walk) : qn_walk_next(&walk);
        }
        begin(all[d], 1000, 3, 7);
        for (int i = 0; i < 100; i++) {
            uint64_t key =
                i % 10 == 0 ? qn_walk_insert(&walk) : qn_walk_next(&walk);
            cr_assert_eq(key, first[i], "%s", all[d]);
        }
    }
}

static const struct {
    const char *text;
    const char *error; /* a part of the message */
} bad[] = {
    {"", "unknown distribution ''"},
    {"unifrom", "did you mean 'uniform'?"},
    {"zpif:1", "did you mean 'zipf'?"},
    {"gauss", "use one of uniform zipf:0.99"},
    {"uniform:1", "uniform takes no parameter; remove ':1'"},
    {"sequential:", "sequential takes no parameter; remove ':'"},
    {"zipf", "zipf:0.99"},
    {"zipf:", "'' is not a theta"},
    {"zipf:-1", "'-1' is not a theta between 0 and 20"},
    {"zipf:20.1", "'20.1' is not a theta"},
    {"zipf:1x", "'1x' is not a theta"},
    {"zipf:nan", "'nan' is not a theta"},
    {"zipf: 1", "' 1' is not a theta"},
    {"latest:x", "latest:0.99"},
    {"hotspot", "hotspot:80:20"},
    {"hotspot:80", "'80' is not a pair"},
    {"hotspot:80:", "'80:' is not a pair"},
    {"hotspot:80:20:1", "not a pair"},
    {"hotspot:0:0", "not a pair"},
    {"hotspot:80:0", "not a pair"},
    {"hotspot:101:20", "not a pair"},
    {"hotspot:20:80", "did you mean hotspot:80:20?"},
    {"a_word_that_is_much_longer_than_any_name_of_a_distribution",
     "unknown dist"},
};

Test(dist, reports_the_error_and_changes_nothing)
{
    for (size_t i = 0; i < QN_ARRAY_COUNT(bad); i++) {
        struct qn_dist_spec spec = {.theta = 7};
        cr_assert_eq(parse(&spec, bad[i].text), QN_EINVAL, "'%s'", bad[i].text);
        cr_assert(strstr(error, bad[i].error) != NULL, "'%s': %s", bad[i].text,
                  error);
        cr_assert_eq(spec.theta, 7);
    }
}
