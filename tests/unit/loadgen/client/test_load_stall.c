#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/client/client.h"
#include "tests/support/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * The reason for an open loop, in virtual time: real clients and schedules
 * against a server that stalls for 100 ms in every second and otherwise needs
 * 50 us per request, one after another. The expected result, at 10000 arrivals
 * per second: a request that arrives u after the beginning of the stall waits
 * for its remainder and for the requests before it, 100 ms - u + u/2; after the
 * stall the queue shrinks at the same rate. So waiting times fall from 100 ms
 * to 0 over 200 ms, evenly: 20 % of all requests are uniform in 0..100 ms, and
 * 1 % of all wait more than 95 ms. A closed loop of 20 connections has 20
 * requests that wait 100 ms in each second, among thousands that do not: its
 * p99 does not show the stall.
 */

enum { CLIENTS = 20, SECONDS = 10, RATE = 10000, QUEUE_MAX = 1 << 16 };

static const qn_time_t service = 50 * QN_US;

static struct qn_workload workload;
static struct qn_stats stats;
static struct qn_client client[CLIENTS];
static struct qn_connection_state connection[CLIENTS];

/* The server: the time when it is free, and the replies it has produced. */
static struct {
    qn_time_t free;
    struct {
        qn_time_t at;
        uint32_t client;
    } reply[QUEUE_MAX];
    uint32_t head;
    uint32_t tail;
} server;

/* The end of a request's service that begins at `t`, or when the stall ends:
 * the server stalls from 0.5 s to 0.6 s of each second. */
static qn_time_t serve_from(qn_time_t t)
{
    qn_time_t stall = t / QN_S * QN_S + 500 * QN_MS;
    if (t >= stall && t < stall + 100 * QN_MS) {
        t = stall + 100 * QN_MS;
    }
    bool caught = t < stall && t + service > stall;
    return t + service + (caught ? 100 * QN_MS : 0);
}

static void arrive(uint32_t c, qn_time_t now)
{
    server.free = serve_from(QN_MAX(now, server.free));
    cr_assert_lt(server.tail - server.head, QUEUE_MAX);
    server.reply[server.tail % QUEUE_MAX].at = server.free;
    server.reply[server.tail % QUEUE_MAX].client = c;
    server.tail++;
}

static void send_due(uint32_t c, qn_time_t now)
{
    static const size_t ping = sizeof "*1\r\n$4\r\nPING\r\n" - 1;
    struct iovec *iov;
    qn_client_fill(&client[c], now, &connection[c], &connection[c]);
    cr_assert_eq(qn_connection_state_bytes(&connection[c], &iov), 1);
    for (size_t n = iov->iov_len / ping; n > 0; n--) {
        arrive(c, now);
    }
}

static void take_reply(qn_time_t now)
{
    uint32_t c = server.reply[server.head++ % QUEUE_MAX].client;
    cr_assert_eq(qn_client_feed(&connection[c], (const uint8_t *)"+PONG\r\n", 7,
                                now, &stats),
                 QN_OK);
}

/* Processes the next event until none is left. */
static void run(qn_time_t end)
{
    for (;;) {
        uint32_t first = 0;
        for (uint32_t c = 1; c < CLIENTS; c++) {
            if (qn_client_due(&client[c]) < qn_client_due(&client[first])) {
                first = c;
            }
        }
        static qn_time_t now;
        qn_time_t due = qn_client_due(&client[first]);
        qn_time_t reply = server.head == server.tail
                              ? QN_TIME_NEVER
                              : server.reply[server.head % QUEUE_MAX].at;
        if (QN_MIN(due, reply) >= end) {
            return;
        }
        now = QN_MAX(now, QN_MIN(due, reply));
        if (reply <= due) {
            take_reply(now);
        } else {
            send_due(first, now);
        }
    }
}

static void set_up(uint32_t depth, struct qn_rate *rate, bool poisson)
{
    char error[160];
    memset(&stats, 0, sizeof stats);
    memset(&server, 0, sizeof server);
    struct qn_workload_opts opts = {
        .keys = 1,
        .key_size = qn_sizes_fixed(8),
        .value_size = qn_sizes_fixed(8),
        .mset_keys = 1,
    };
    cr_assert_eq(qn_mix_parse(&opts.mix, "ping", error, sizeof error), QN_OK);
    cr_assert_eq(qn_workload_init(&workload, &opts), QN_OK);
    for (uint32_t c = 0; c < CLIENTS; c++) {
        struct qn_schedule schedule;
        const struct qn_schedule_opts so = {.rate = rate,
                                            .poisson = poisson,
                                            .number = c,
                                            .clients = CLIENTS,
                                            .share = 1,
                                            .seed = c};
        if (rate != NULL) {
            qn_schedule_init(&schedule, &so);
        }
        const struct qn_client_task task = {.depth = depth,
                                            .requests = UINT64_MAX,
                                            .schedule = rate != NULL ? &schedule
                                                                     : NULL};
        const struct qn_client_opts co = {.workload = &workload,
                                          .depth_max = depth,
                                          .number = c,
                                          .clients = CLIENTS,
                                          .seed = c};
        cr_assert_eq(qn_client_init(&client[c], &co), QN_OK);
        cr_assert_eq(qn_connection_state_init(&connection[c], &client[c]),
                     QN_OK);
        qn_client_begin(&client[c], &task);
    }
}

static void tear_down(void)
{
    for (uint32_t c = 0; c < CLIENTS; c++) {
        qn_connection_state_fini(&connection[c]);
        qn_client_fini(&client[c]);
    }
    qn_workload_fini(&workload);
}

static double p99_ms(const struct qn_histogram *h)
{
    return (double)qn_histogram_quantile(h, 0.99) / 1e6;
}

static int compare(const void *a, const void *b)
{
    qn_time_t x = *(const qn_time_t *)a;
    qn_time_t y = *(const qn_time_t *)b;
    return (x > y) - (x < y);
}

/* The p99 of a queue that receives each request at its intended time: no
 * client, no connection, every waiting time stored and sorted. */
static double truth_ms(void)
{
    enum { N = RATE * SECONDS };
    qn_time_t *wait = calloc(N, sizeof *wait);
    cr_assert_neq(wait, NULL);
    qn_time_t free_at = 0;
    for (uint64_t i = 0; i < N; i++) {
        qn_time_t at = (2 * i + 1) * QN_S / (2 * RATE);
        free_at = serve_from(QN_MAX(at, free_at));
        wait[i] = free_at - at;
    }
    qsort(wait, N, sizeof *wait, compare);
    double p99 = (double)wait[N - N / 100] / 1e6;
    free(wait);
    return p99;
}

static double open_p99_ms(uint32_t depth)
{
    struct qn_rate rate;
    cr_assert_eq(qn_rate_parse(&rate, "10k"), QN_OK);
    qn_rate_fit(&rate, 0, SECONDS);
    set_up(depth, &rate, false);
    run(QN_TIME_NEVER);
    cr_assert_eq(stats.op[QN_OP_PING].ops, (uint64_t)RATE * SECONDS);
    double p99 = p99_ms(&stats.op[QN_OP_PING].latency);
    tear_down();
    return p99;
}

Test(load_stall, the_offline_result_equals_the_analytic_one)
{
    double p99 = truth_ms();
    cr_assert_lt(fabs(p99 / 95.05 - 1), 0.005, "%f ms", p99);
}

Test(load_stall, an_open_loop_shows_the_true_p99)
{
    double p99 = open_p99_ms(200);
    cr_assert_lt(fabs(p99 / truth_ms() - 1), 0.02, "%f ms", p99);
    /* All were sent in time: the wait in the server's queue counts as service
     * time too. */
    double sent = p99_ms(&stats.op[QN_OP_PING].service);
    cr_assert_lt(fabs(sent / p99 - 1), 0.02, "%f ms", sent);
}

/* The queue is then in the client, and only its response times include it. */
Test(load_stall, it_does_so_with_one_request_outstanding_per_connection)
{
    double p99 = open_p99_ms(1);
    cr_assert_lt(fabs(p99 / truth_ms() - 1), 0.02, "%f ms", p99);
    double sent = p99_ms(&stats.op[QN_OP_PING].service);
    cr_assert_lt(sent, 10, "%f ms", sent);
}

Test(load_stall, a_closed_loop_hides_it)
{
    set_up(1, NULL, false);
    run(SECONDS * QN_S);
    double p99 = p99_ms(&stats.op[QN_OP_PING].latency);
    cr_assert_lt(p99, 2, "%f ms", p99);
    cr_assert_gt(stats.op[QN_OP_PING].latency.max, 100 * QN_MS);
    cr_assert_eq(stats.op[QN_OP_PING].service.count, 0);
    tear_down();
}

/* Three times the capacity of the server: due requests are counted, not
 * stored. */
Test(load_stall, an_overloaded_client_stores_no_backlog)
{
    struct qn_rate rate;
    cr_assert_eq(qn_rate_parse(&rate, "60k"), QN_OK);
    qn_rate_fit(&rate, 0, 1000);
    set_up(4, &rate, true);
    run(SECONDS * QN_S);
    uint64_t unsent = 0;
    uint64_t outstanding = 0;
    for (uint32_t c = 0; c < CLIENTS; c++) {
        unsent += qn_client_unsent(&client[c], SECONDS * QN_S);
        outstanding += client[c].outstanding;
    }
    cr_assert_eq(outstanding, 4 * CLIENTS);
    double all = (double)(stats.op[QN_OP_PING].ops + unsent + outstanding);
    cr_assert_lt(fabs(all / (60000.0 * SECONDS) - 1), 0.01, "%.0f", all);
    cr_assert_gt(unsent, 40000u * SECONDS);
    tear_down();
}
