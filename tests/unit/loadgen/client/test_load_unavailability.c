#include "core/base/err.h"
#include "loadgen/client/unavailability.h"
#include "tests/support/test.h"

#include <pthread.h>

enum { GET = 1 << QN_OP_GET, SET = 1 << QN_OP_SET, PING = 1 << QN_OP_PING };

static struct qn_unavailability *make(const char *text, uint32_t addresses)
{
    struct qn_unavailability *s;
    struct qn_mix mix;
    char error[160];
    cr_assert_eq(qn_mix_parse(&mix, text, error, sizeof error), QN_OK);
    cr_assert_eq(qn_unavailability_create(&s, &mix, addresses), QN_OK);
    return s;
}

static void check(const struct qn_unavailability *s, uint32_t address,
                  uint32_t row, qn_time_t longest, qn_time_t began)
{
    struct qn_unavailability_row got = qn_unavailability_get(s, address, row);
    cr_assert_eq(got.longest, longest, "address %u, %s: %lu, expected %lu",
                 address, qn_unavailability_name(row),
                 (unsigned long)got.longest, (unsigned long)longest);
    cr_assert_eq(got.began, began, "address %u, %s: began %lu, expected %lu",
                 address, qn_unavailability_name(row), (unsigned long)got.began,
                 (unsigned long)began);
}

Test(load_unavailability, without_any_success_the_window_is_the_whole_time)
{
    struct qn_unavailability *s = make("get", 1);
    qn_unavailability_begin(s, 1000, QN_TIME_NEVER);
    qn_unavailability_end(s, 1500);
    check(s, 0, QN_OP_GET, 500, 0);
    cr_assert(qn_unavailability_get(s, 0, QN_UNAVAILABILITY_READ).asked);
    cr_assert(!qn_unavailability_get(s, 0, QN_OP_SET).asked);
    cr_assert(!qn_unavailability_get(s, 0, QN_UNAVAILABILITY_WRITE).asked);
    qn_unavailability_destroy(s);
}

Test(load_unavailability, the_longest_window_counts_at_any_position)
{
    static const qn_time_t at[3][3] = {
        {1050, 1060, 1070}, {1010, 1050, 1060}, {1010, 1020, 1060}};
    static const qn_time_t began[3] = {0, 10, 60};
    for (int i = 0; i < 3; i++) {
        struct qn_unavailability *s = make("get", 1);
        qn_unavailability_begin(s, 1000, QN_TIME_NEVER);
        for (int k = 0; k < 3; k++) {
            qn_unavailability_success(s, 0, GET, at[i][k]);
        }
        qn_unavailability_end(s, i == 2 ? 1101 : 1075);
        check(s, 0, QN_OP_GET, i == 0 ? 50 : i == 1 ? 40 : 41, began[i]);
        qn_unavailability_destroy(s);
    }
}

Test(load_unavailability,
     kinds_and_addresses_are_reported_separately_and_together)
{
    struct qn_unavailability *s = make("get,set,incr,ping", 2);
    qn_unavailability_begin(s, 0, QN_TIME_NEVER);
    qn_unavailability_success(s, 0, GET | SET, 10);
    qn_unavailability_success(s, 1, GET, 30);
    qn_unavailability_success(s, 1, 1 << QN_OP_INCR, 40);
    qn_unavailability_success(s, 0, GET | PING, 50);
    qn_unavailability_end(s, 60);
    check(s, 0, QN_OP_GET, 40, 10);
    check(s, 1, QN_OP_GET, 30, 0);
    check(s, 2, QN_OP_GET, 20, 10); /* successes at any address */
    check(s, 0, QN_UNAVAILABILITY_WRITE, 50, 10);
    check(s, 1, QN_UNAVAILABILITY_WRITE, 40, 0);
    check(s, 2, QN_UNAVAILABILITY_WRITE, 30, 10);
    check(s, 2, QN_OP_PING, 50, 0);
    qn_unavailability_destroy(s);
}

Test(load_unavailability, successes_outside_the_measured_time_do_not_count)
{
    struct qn_unavailability *s = make("get", 1);
    qn_unavailability_success(s, 0, GET, 5); /* before the measurement began */
    qn_unavailability_begin(s, 100, 140);
    qn_unavailability_success(s, 0, GET, 99);
    qn_unavailability_success(s, 0, GET, 130);
    qn_unavailability_success(s, 0, GET, 1000);
    qn_unavailability_end(s, 140);
    check(s, 0, QN_OP_GET, 30, 0);
    qn_unavailability_destroy(s);
}

/* Two connections that are read in another order than their times. */
Test(load_unavailability, a_success_reported_late_leaves_no_window)
{
    struct qn_unavailability *s = make("get", 1);
    qn_unavailability_begin(s, 0, QN_TIME_NEVER);
    qn_unavailability_success(s, 0, GET, 20);
    qn_unavailability_success(s, 0, GET, 10);
    qn_unavailability_success(s, 0, GET, 30);
    qn_unavailability_end(s, 35);
    check(s, 0, QN_OP_GET, 20, 0);
    qn_unavailability_destroy(s);
}

static struct qn_unavailability *shared;

/* Odd and even times: each thread alone has windows twice as long. */
static void *report_half(void *odd)
{
    for (qn_time_t t = odd != NULL; t <= 20000; t += 2) {
        qn_unavailability_success(shared, 0, GET, t * 10);
    }
    return NULL;
}

Test(load_unavailability,
     windows_of_threads_together_are_never_longer_than_of_one, .timeout = 60)
{
    pthread_t thread[2];
    shared = make("get", 1);
    qn_unavailability_begin(shared, 0, QN_TIME_NEVER);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(pthread_create(&thread[i], NULL, report_half,
                                    i == 0 ? NULL : shared),
                     0);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(thread[i], NULL);
    }
    qn_unavailability_end(shared, 200000);
    struct qn_unavailability_row row =
        qn_unavailability_get(shared, 0, QN_OP_GET);
    cr_assert_leq(row.longest, 20, "%lu", (unsigned long)row.longest);
    cr_assert_geq(row.longest, 10);
    qn_unavailability_destroy(shared);
}
