#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/client/client.h"
#include "tests/support/test.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/*
 * A client with a schedule, connections with roles, and the history that it
 * records: the cases that test_load_client.c does not cover with a closed loop.
 */

static struct qn_workload workload;
static struct qn_client client;
static struct qn_connection_state connection[2];
static struct qn_rate rate;
static struct qn_recorder recorder;
static struct qn_stats stats;

/* One client, 1000 requests per second: intended send times 0.5 ms, 1.5 ms
 * ... */
static void set_up(const char *mix, uint32_t depth, uint64_t requests)
{
    char error[160];
    struct qn_schedule schedule;
    struct qn_workload_opts o = {.keys = 10,
                                 .key_size = {.min = 16, .max = 16},
                                 .value_size = {.min = 16, .max = 16},
                                 .mset_keys = 1,
                                 .unique = true};
    cr_assert_eq(qn_mix_parse(&o.mix, mix, error, sizeof error), QN_OK);
    cr_assert_eq(qn_workload_init(&workload, &o), QN_OK);
    qn_recorder_init(&recorder, UINT64_MAX);
    const struct qn_client_opts co = {.workload = &workload,
                                      .depth_max = depth,
                                      .number = 0,
                                      .clients = 1,
                                      .seed = 3,
                                      .recorder = &recorder};
    cr_assert_eq(qn_client_init(&client, &co), QN_OK);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(qn_connection_state_init(&connection[i], &client), QN_OK);
    }
    cr_assert_eq(qn_rate_parse(&rate, "1k"), QN_OK);
    qn_rate_fit(&rate, 0, INFINITY);
    const struct qn_schedule_opts so = {
        .rate = &rate, .clients = 1, .share = 1};
    qn_schedule_init(&schedule, &so);
    const struct qn_client_task task = {
        .depth = depth, .requests = requests, .schedule = &schedule};
    qn_client_begin(&client, &task);
}

static void tear_down(void)
{
    qn_connection_state_fini(&connection[0]);
    qn_connection_state_fini(&connection[1]);
    qn_client_fini(&client);
    qn_workload_fini(&workload);
    qn_recorder_fini(&recorder);
}

static void fill(qn_time_t now)
{
    qn_client_fill(&client, now, &connection[0], &connection[0]);
}

static int feed(const char *text, qn_time_t now)
{
    return qn_client_feed(&connection[0], (const uint8_t *)text, strlen(text),
                          now, &stats);
}

static const struct qn_record *recorded(uint32_t i)
{
    cr_assert_lt(i, recorder.count);
    return &recorder.first->record[i];
}

Test(load_open, nothing_is_due_before_its_time_and_all_that_is_due_goes_at_once)
{
    set_up("ping", 10, UINT64_MAX);
    cr_assert_eq(qn_client_due(&client), 500 * QN_US);
    fill(2500 * QN_US); /* the third one is due now */
    cr_assert_eq(client.outstanding, 3);
    cr_assert_eq(qn_client_due(&client), 3500 * QN_US);
    tear_down();
}

Test(load_open, a_request_that_waits_for_room_keeps_its_intended_time)
{
    set_up("ping", 2, UINT64_MAX);
    fill(10 * QN_MS); /* ten are due */
    cr_assert_eq(client.outstanding, 2);
    cr_assert_eq(qn_client_due(&client), QN_TIME_NEVER);
    cr_assert_eq(qn_client_unsent(&client, 10 * QN_MS), 8);
    cr_assert_eq(feed("+PONG\r\n+PONG\r\n", 10 * QN_MS), QN_OK);
    cr_assert_eq(qn_client_due(&client), 2500 * QN_US);
    fill(12 * QN_MS);
    cr_assert_eq(feed("+PONG\r\n", 13 * QN_MS), QN_OK);
    const struct qn_op_stats *op = &stats.op[QN_OP_PING];
    cr_assert_eq(op->latency.max, 10500 * QN_US); /* from 2.5 ms */
    cr_assert_eq(op->service.max, 1 * QN_MS);     /* from 12 ms */
    tear_down();
}

Test(load_open, a_lost_connection_leaves_the_schedule_as_it_is)
{
    set_up("ping", 10, 5);
    fill(2500 * QN_US);
    qn_client_lost(&connection[0], &stats);
    cr_assert_eq(stats.unanswered, 3);
    cr_assert(qn_client_idle(&client));
    cr_assert_eq(qn_client_due(&client), 3500 * QN_US);
    fill(20 * QN_MS);
    cr_assert_eq(client.outstanding, 2, "of five, three were asked");
    tear_down();
}

Test(load_open, reads_and_writes_go_to_their_connections)
{
    struct iovec *iov;
    set_up("get,set", 1000, UINT64_MAX);
    qn_client_fill(&client, 200 * QN_MS, &connection[0], &connection[1]);
    cr_assert_gt(qn_connection_state_bytes(&connection[0], &iov), 0);
    cr_assert_eq(memcmp(iov->iov_base, "*2\r\n$3\r\nGET", 11), 0);
    cr_assert_gt(qn_connection_state_bytes(&connection[1], &iov), 0);
    cr_assert_eq(memcmp(iov->iov_base, "*3\r\n$3\r\nSET", 11), 0);
    cr_assert_eq(connection[0].asked + connection[1].asked, 200);
    cr_assert_gt(connection[0].asked, 50);
    cr_assert_gt(connection[1].asked, 50);
    tear_down();
}

/* Without a connection for writes, the first write and all later requests
 * wait. */
Test(load_open, a_missing_role_holds_back_the_rest_in_order)
{
    set_up("get,set", 1000, UINT64_MAX);
    qn_client_fill(&client, 200 * QN_MS, &connection[0], NULL);
    uint32_t reads = connection[0].asked;
    cr_assert_lt(reads, 50);
    cr_assert_leq(qn_client_due(&client), 200 * QN_MS);
    qn_client_fill(&client, 200 * QN_MS, &connection[0], &connection[1]);
    cr_assert_eq(connection[0].asked + connection[1].asked, 200);
    cr_assert_gt(connection[1].asked, 50);
    tear_down();
}

/* Requests that become due together may go to several servers, one at a
 * time. */
Test(load_open, one_by_one_each_request_takes_its_connection)
{
    set_up("ping", 10, UINT64_MAX);
    client.task.one_by_one = true;
    for (uint32_t i = 0; i < 6; i++) {
        cr_assert_eq(qn_client_due(&client), (1 + 2 * i) * QN_MS / 2);
        qn_client_fill(&client, 20 * QN_MS, &connection[i % 2],
                       &connection[i % 2]);
        cr_assert_eq(connection[0].asked + connection[1].asked, i + 1);
    }
    cr_assert_eq(connection[0].asked, 3);
    tear_down();
}

Test(load_open, a_history_records_requests_and_replies)
{
    set_up("set", 10, UINT64_MAX);
    fill(1500 * QN_US); /* two */
    cr_assert_eq(feed("+OK\r\n", 2 * QN_MS), QN_OK);
    cr_assert_eq(recorder.count, 2);
    cr_assert_eq(recorded(0)->kind, QN_RECORD_SET);
    cr_assert_eq(recorded(0)->outcome, QN_RECORD_OK);
    cr_assert_eq(recorded(0)->invoked, 1500 * QN_US, "when it was sent");
    cr_assert_eq(recorded(0)->responded, 2 * QN_MS);
    cr_assert_neq(recorded(0)->value, recorded(1)->value);
    cr_assert_eq(recorded(1)->outcome, QN_RECORD_UNKNOWN);
    tear_down();
}

Test(load_open, errors_and_lost_connections_leave_outcomes_unknown)
{
    set_up("incr", 10, UINT64_MAX);
    fill(2500 * QN_US); /* three */
    cr_assert_eq(feed("-ERR no\r\n:7\r\n", 3 * QN_MS), QN_OK);
    qn_client_lost(&connection[0], &stats);
    cr_assert_eq(recorded(0)->outcome, QN_RECORD_UNKNOWN);
    cr_assert_eq(recorded(1)->outcome, QN_RECORD_OK);
    cr_assert_eq(recorded(1)->other, 7);
    cr_assert_eq(recorded(1)->value, 1);
    cr_assert(recorded(1)->key & QN_RECORD_COUNTER);
    cr_assert_eq(recorded(2)->outcome, QN_RECORD_UNKNOWN);
    tear_down();
}

Test(load_open, a_missing_key_is_recorded_as_missing)
{
    static const struct {
        const char *mix;
        const char *reply;
        enum qn_record_kind kind;
        enum qn_record_outcome outcome;
    } cases[] = {
        {"get", "$-1\r\n", QN_RECORD_GET, QN_RECORD_NIL},
        {"get", "$16\r\n000000000000002a\r\n", QN_RECORD_GET, QN_RECORD_OK},
        {"del", ":0\r\n", QN_RECORD_DEL, QN_RECORD_NIL},
        {"del", ":1\r\n", QN_RECORD_DEL, QN_RECORD_OK}};
    for (size_t i = 0; i < QN_ARRAY_COUNT(cases); i++) {
        set_up(cases[i].mix, 1, UINT64_MAX);
        fill(500 * QN_US);
        cr_assert_eq(feed(cases[i].reply, QN_MS), QN_OK);
        cr_assert_eq(recorded(0)->kind, cases[i].kind, "case %zu", i);
        cr_assert_eq(recorded(0)->outcome, cases[i].outcome, "case %zu", i);
        cr_assert_eq(recorded(0)->value, i == 1 ? 42 : 0, "case %zu", i);
        tear_down();
    }
}
