#include "core/base/err.h"
#include "loadgen/client/silence.h"
#include "tests/support/test.h"

#include <pthread.h>

enum { GET = 1 << QN_OP_GET, SET = 1 << QN_OP_SET, PING = 1 << QN_OP_PING };

static struct qn_silence *make(const char *text, uint32_t addresses)
{
    struct qn_silence *s;
    struct qn_mix mix;
    char error[160];
    cr_assert_eq(qn_mix_parse(&mix, text, error, sizeof error), QN_OK);
    cr_assert_eq(qn_silence_create(&s, &mix, addresses), QN_OK);
    return s;
}

static void check(const struct qn_silence *s, uint32_t address, uint32_t row,
                  qn_time_t longest, qn_time_t began)
{
    struct qn_silence_row got = qn_silence_get(s, address, row);
    cr_assert_eq(got.longest, longest, "address %u, %s: %lu, expected %lu",
                 address, qn_silence_name(row), (unsigned long)got.longest,
                 (unsigned long)longest);
    cr_assert_eq(got.began, began, "address %u, %s: began %lu, expected %lu",
                 address, qn_silence_name(row), (unsigned long)got.began,
                 (unsigned long)began);
}

Test(load_silence, nothing_at_all_is_silent_from_begin_to_end)
{
    struct qn_silence *s = make("get", 1);
    qn_silence_begin(s, 1000, QN_TIME_NEVER);
    qn_silence_end(s, 1500);
    check(s, 0, QN_OP_GET, 500, 0);
    cr_assert(qn_silence_get(s, 0, QN_SILENCE_READ).asked);
    cr_assert(!qn_silence_get(s, 0, QN_OP_SET).asked);
    cr_assert(!qn_silence_get(s, 0, QN_SILENCE_WRITE).asked);
    qn_silence_destroy(s);
}

Test(load_silence, the_longest_counts_wherever_it_lies)
{
    static const qn_time_t at[3][3] = {
        {1050, 1060, 1070}, {1010, 1050, 1060}, {1010, 1020, 1060}};
    static const qn_time_t began[3] = {0, 10, 60};
    for (int i = 0; i < 3; i++) {
        struct qn_silence *s = make("get", 1);
        qn_silence_begin(s, 1000, QN_TIME_NEVER);
        for (int k = 0; k < 3; k++) {
            qn_silence_success(s, 0, GET, at[i][k]);
        }
        qn_silence_end(s, i == 2 ? 1101 : 1075);
        check(s, 0, QN_OP_GET, i == 0 ? 50 : i == 1 ? 40 : 41, began[i]);
        qn_silence_destroy(s);
    }
}

Test(load_silence, kinds_and_addresses_are_apart_and_together)
{
    struct qn_silence *s = make("get,set,incr,ping", 2);
    qn_silence_begin(s, 0, QN_TIME_NEVER);
    qn_silence_success(s, 0, GET | SET, 10);
    qn_silence_success(s, 1, GET, 30);
    qn_silence_success(s, 1, 1 << QN_OP_INCR, 40);
    qn_silence_success(s, 0, GET | PING, 50);
    qn_silence_end(s, 60);
    check(s, 0, QN_OP_GET, 40, 10);
    check(s, 1, QN_OP_GET, 30, 0);
    check(s, 2, QN_OP_GET, 20, 10); /* any address answered */
    check(s, 0, QN_SILENCE_WRITE, 50, 10);
    check(s, 1, QN_SILENCE_WRITE, 40, 0);
    check(s, 2, QN_SILENCE_WRITE, 30, 10);
    check(s, 2, QN_OP_PING, 50, 0);
    qn_silence_destroy(s);
}

Test(load_silence, what_succeeds_outside_the_measured_time_does_not_count)
{
    struct qn_silence *s = make("get", 1);
    qn_silence_success(s, 0, GET, 5); /* before it began */
    qn_silence_begin(s, 100, 140);
    qn_silence_success(s, 0, GET, 99);
    qn_silence_success(s, 0, GET, 130);
    qn_silence_success(s, 0, GET, 1000);
    qn_silence_end(s, 140);
    check(s, 0, QN_OP_GET, 30, 0);
    qn_silence_destroy(s);
}

/* Two connections that are read in another order than their times. */
Test(load_silence, a_success_that_is_reported_late_is_no_silence)
{
    struct qn_silence *s = make("get", 1);
    qn_silence_begin(s, 0, QN_TIME_NEVER);
    qn_silence_success(s, 0, GET, 20);
    qn_silence_success(s, 0, GET, 10);
    qn_silence_success(s, 0, GET, 30);
    qn_silence_end(s, 35);
    check(s, 0, QN_OP_GET, 20, 0);
    qn_silence_destroy(s);
}

static struct qn_silence *shared;

/* Odd and even times: each thread alone is silent twice as long. */
static void *report_half(void *odd)
{
    for (qn_time_t t = odd != NULL; t <= 20000; t += 2) {
        qn_silence_success(shared, 0, GET, t * 10);
    }
    return NULL;
}

Test(load_silence, threads_together_are_never_longer_silent_than_one,
     .timeout = 60)
{
    pthread_t thread[2];
    shared = make("get", 1);
    qn_silence_begin(shared, 0, QN_TIME_NEVER);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(pthread_create(&thread[i], NULL, report_half,
                                    i == 0 ? NULL : shared),
                     0);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(thread[i], NULL);
    }
    qn_silence_end(shared, 200000);
    struct qn_silence_row row = qn_silence_get(shared, 0, QN_OP_GET);
    cr_assert_leq(row.longest, 20, "%lu", (unsigned long)row.longest);
    cr_assert_geq(row.longest, 10);
    qn_silence_destroy(shared);
}
