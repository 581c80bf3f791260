#include "core/base/err.h"
#include "loadgen/client/stats_sink.h"
#include "tests/support/test.h"

#include <pthread.h>
#include <stdlib.h>

enum { THREADS = 4, ROUNDS = 20 };

static struct qn_stats_sink *collect;

/* Each thread records ROUNDS pings that took 1, 2, ... ns. */
static void *hand_in(void *arg)
{
    (void)arg;
    struct qn_stats *stats = calloc(1, sizeof *stats);
    qn_stats_sink_hand_in(collect, stats, 1000, false);
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        stats->op[QN_OP_PING].ops = 1;
        qn_histogram_record(&stats->op[QN_OP_PING].latency, i);
        qn_stats_sink_hand_in(collect, stats, 1000 + i, i == ROUNDS);
    }
    free(stats);
    return NULL;
}

Test(collect, nothing_is_lost_or_counted_twice, .timeout = 20)
{
    pthread_t thread[THREADS];
    static struct qn_stats_sink_recent recent;
    cr_assert_eq(qn_stats_sink_create(&collect, THREADS), QN_OK);
    for (int i = 0; i < THREADS; i++) {
        cr_assert_eq(pthread_create(&thread[i], NULL, hand_in, NULL), 0);
    }
    uint64_t taken = 0;
    bool done;
    do {
        done = qn_stats_sink_wait(collect, qn_clock_now() + QN_MS);
        qn_stats_sink_take(collect, &recent);
        taken += recent.stats.op[QN_OP_PING].ops;
    } while (!done);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
    }
    cr_assert_eq(taken, THREADS * ROUNDS);
    cr_assert_eq(recent.first, 1000);
    cr_assert_eq(recent.last, 1000 + ROUNDS);
    const struct qn_op_stats *ping =
        &qn_stats_sink_total(collect)->op[QN_OP_PING];
    cr_assert_eq(ping->ops, THREADS * ROUNDS);
    cr_assert_eq(qn_histogram_quantile(&ping->latency, 0.5), ROUNDS / 2);
    cr_assert_eq(qn_histogram_quantile(&ping->latency, 1), ROUNDS);
    qn_stats_sink_destroy(collect);
}

Test(collect, each_interval_has_the_new_samples_and_the_total_has_all)
{
    static struct qn_stats stats;
    static struct qn_stats_sink_recent recent;
    cr_assert_eq(qn_stats_sink_create(&collect, 1), QN_OK);
    stats.op[QN_OP_GET].ops = 3;
    stats.op[QN_OP_SET].ops = 4;
    stats.unanswered = 1;
    qn_stats_sink_hand_in(collect, &stats, 10, false);
    cr_assert_eq(stats.op[QN_OP_GET].ops + stats.unanswered, 0, "emptied");
    qn_stats_sink_take(collect, &recent);
    cr_assert_eq(recent.stats.op[QN_OP_GET].ops, 3);
    cr_assert_eq(recent.stats.op[QN_OP_SET].ops, 4);
    cr_assert_eq(recent.stats.unanswered, 1);
    stats.op[QN_OP_GET].ops = 5;
    qn_stats_sink_hand_in(collect, &stats, 20, true);
    qn_stats_sink_take(collect, &recent);
    cr_assert_eq(recent.stats.op[QN_OP_GET].ops, 5);
    cr_assert_eq(recent.stats.unanswered, 0, "told before");
    cr_assert_eq(recent.last, 20);
    cr_assert_eq(qn_stats_sink_total(collect)->op[QN_OP_GET].ops, 8);
    cr_assert_eq(qn_stats_sink_total(collect)->unanswered, 1);
    qn_stats_sink_destroy(collect);
}

Test(collect, waiting_ends_at_its_time, .timeout = 20)
{
    cr_assert_eq(qn_stats_sink_create(&collect, 1), QN_OK);
    cr_assert(!qn_stats_sink_wait(collect, 0), "a time that is past");
    qn_time_t until = qn_clock_now() + 5 * QN_MS;
    cr_assert(!qn_stats_sink_wait(collect, until));
    cr_assert_geq(qn_clock_now(), until);
    qn_stats_sink_destroy(collect);
    qn_stats_sink_destroy(NULL);
}
