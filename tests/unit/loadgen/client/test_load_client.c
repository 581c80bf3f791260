#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/client/client.h"
#include "tests/support/test.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * A client against a server in this file: it parses each batch with a parser of
 * its own, records which keys were set, and replies.
 */

enum { KEYS_MAX = 1000, BYTES_MAX = 1 << 20 };

struct server {
    uint32_t set_count[KEYS_MAX]; /* how often each key was set */
    uint32_t requests;
    uint32_t pings;
    uint32_t incrs;
    uint64_t value_size; /* the reply to GET */
    uint64_t key_shift;  /* GET of key i returns the value of key i + shift */
    char replies[BYTES_MAX];
    size_t len;
};

static struct server server;
static struct qn_stats stats;
static struct qn_workload workload;
static struct qn_client client;
static struct qn_connection_state connection;

/* Parses one bulk string of a request; advances *p. */
static struct qn_slice take_bulk(const char **p)
{
    cr_assert_eq(**p, '$');
    char *end;
    size_t len = strtoul(*p + 1, &end, 10);
    cr_assert(strncmp(end, "\r\n", 2) == 0);
    struct qn_slice bulk = {(const uint8_t *)end + 2, len};
    cr_assert(strncmp(end + 2 + len, "\r\n", 2) == 0);
    *p = end + 2 + len + 2;
    return bulk;
}

static uint64_t take_key(const char **p, char letter)
{
    struct qn_slice key = take_bulk(p);
    cr_assert_eq(key.len, workload.opts.key_size.max);
    cr_assert_eq(key.data[0], letter);
    uint64_t number = 0;
    for (size_t i = 1; i < key.len; i++) {
        number = number * 10 + (uint64_t)(key.data[i] - '0');
    }
    cr_assert_lt(number, workload.opts.keys);
    return number;
}

static void take_set(struct server *s, const char **p)
{
    uint64_t key = take_key(p, 'k');
    struct qn_slice value = take_bulk(p);
    cr_assert_eq(value.len, workload.opts.value_size.max);
    char digits[24];
    snprintf(digits, sizeof digits, "%020" PRIu64, key);
    size_t mark = QN_MIN(value.len, (size_t)QN_MARK_PLAIN);
    cr_assert(memcmp(value.data, digits + 20 - mark, mark) == 0);
    s->set_count[key]++;
}

static void answer(struct server *s, const char *text)
{
    size_t len = strlen(text);
    memcpy(s->replies + s->len, text, len);
    s->len += len;
}

/* GET: the value's mark and its filler, which has the same end in all
 * values. */
static void answer_get(struct server *s, uint64_t key)
{
    if (s->set_count[key] == 0) {
        answer(s, "$-1\r\n");
        return;
    }
    char head[64];
    snprintf(head, sizeof head, "$%" PRIu64 "\r\n", s->value_size);
    answer(s, head);
    static const char filler[] = "quoin ";
    size_t mark = QN_MIN(s->value_size, (uint64_t)QN_MARK_PLAIN);
    snprintf(head, sizeof head, "%020" PRIu64, key + s->key_shift);
    answer(s, head + 20 - mark);
    for (uint64_t i = mark; i < s->value_size; i++) {
        char c[2] = {filler[5 - (s->value_size - 1 - i) % 6], '\0'};
        answer(s, c);
    }
    answer(s, "\r\n");
}

static void serve_one(struct server *s, const char **p)
{
    cr_assert_eq(**p, '*');
    unsigned long words = strtoul(*p + 1, (char **)p, 10);
    *p += 2;
    struct qn_slice name = take_bulk(p);
    s->requests++;
    if (name.len == 3 && memcmp(name.data, "GET", 3) == 0) {
        answer_get(s, take_key(p, 'k'));
    } else if (name.len == 3 && memcmp(name.data, "SET", 3) == 0) {
        cr_assert_eq(words, 3);
        take_set(s, p);
        answer(s, "+OK\r\n");
    } else if (name.len == 4 && memcmp(name.data, "MSET", 4) == 0) {
        cr_assert_eq(words, 1 + 2 * workload.opts.mset_keys);
        for (unsigned long i = 1; i < words; i += 2) {
            take_set(s, p);
        }
        answer(s, "+OK\r\n");
    } else if (name.len == 4 && memcmp(name.data, "INCR", 4) == 0) {
        take_key(p, 'c');
        s->incrs++;
        answer(s, ":1\r\n");
    } else {
        cr_assert(name.len == 4 && memcmp(name.data, "PING", 4) == 0);
        s->pings++;
        answer(s, "+PONG\r\n");
    }
}

static void serve(struct server *s, const struct iovec *iov, int count)
{
    static char batch[BYTES_MAX];
    size_t len = 0;
    for (int i = 0; i < count; i++) {
        cr_assert_lt(len + iov[i].iov_len, sizeof batch);
        memcpy(batch + len, iov[i].iov_base, iov[i].iov_len);
        len += iov[i].iov_len;
    }
    batch[len] = '\0';
    s->len = 0;
    for (const char *p = batch; p < batch + len;) {
        serve_one(s, &p);
    }
}

static void set_up(const char *mix, uint64_t keys, uint64_t value_size,
                   uint32_t depth)
{
    char error[160];
    struct qn_workload_opts opts = {
        .keys = keys,
        .key_size = qn_sizes_fixed(8),
        .value_size = qn_sizes_fixed(value_size),
        .mset_keys = 3,
    };
    cr_assert_eq(qn_mix_parse(&opts.mix, mix, error, sizeof error), QN_OK);
    cr_assert_eq(qn_workload_init(&workload, &opts), QN_OK);
    const struct qn_client_opts client_opts = {
        .workload = &workload, .depth_max = depth, .clients = 1, .seed = 1};
    cr_assert_eq(qn_client_init(&client, &client_opts), QN_OK);
    cr_assert_eq(qn_connection_state_init(&connection, &client), QN_OK);
    server.value_size = value_size;
}

static void tear_down(void)
{
    qn_connection_state_fini(&connection);
    qn_client_fini(&client);
    qn_workload_fini(&workload);
}

static void begin(uint32_t depth, uint64_t requests)
{
    const struct qn_client_task task = {.depth = depth, .requests = requests};
    qn_client_begin(&client, &task);
}

static void begin_preload(uint32_t depth, uint64_t first, uint64_t step)
{
    uint64_t keys = workload.opts.keys;
    const struct qn_client_task task = {
        .depth = depth,
        .requests = (keys - first + step - 1) / step,
        .preload = true,
        .first_key = first,
        .step = step,
    };
    qn_client_begin(&client, &task);
}

static int fill(qn_time_t now, struct iovec **iov)
{
    qn_client_fill(&client, now, &connection, &connection);
    return qn_connection_state_bytes(&connection, iov);
}

static int feed(const char *bytes, size_t len, qn_time_t now)
{
    return qn_client_feed(&connection, (const uint8_t *)bytes, len, now,
                          &stats);
}

/* One batch: sent at time 0, answered at time `took`. */
static void exchange(qn_time_t took)
{
    struct iovec *iov;
    int count = fill(0, &iov);
    serve(&server, iov, count);
    cr_assert_eq(feed(server.replies, server.len, took), QN_OK);
    cr_assert(qn_client_idle(&client));
}

static void run(void)
{
    while (!qn_client_done(&client)) {
        exchange(1);
    }
}

Test(load_client, sends_exactly_what_its_task_says)
{
    set_up("get,set,mset,incr,ping", 100, 16, 7);
    begin(7, 1000);
    run();
    cr_assert_eq(server.requests, 1000);
    uint64_t ops = 0;
    for (int op = QN_OP_GET; op <= QN_OP_PING; op++) {
        cr_assert_eq(stats.op[op].errors + stats.op[op].wrong, 0, "%s",
                     stats.first_wrong);
        cr_assert_gt(stats.op[op].ops, 100, "each of five gets its share");
        ops += stats.op[op].ops;
    }
    cr_assert_eq(ops, 1000);
    cr_assert_eq(stats.op[QN_OP_PING].ops, server.pings);
    cr_assert_eq(stats.op[QN_OP_INCR].ops, server.incrs);
    tear_down();
}

/* Two requests per operation, in batches of four that include the second
 * requests; the operation ends with the last reply. */
Test(load_client, an_operation_of_two_requests_counts_once)
{
    set_up("rmw", 100, 16, 4);
    begin(4, 6);
    run();
    cr_assert_eq(server.requests, 12);
    cr_assert_eq(stats.op[QN_OP_RMW].ops, 6);
    cr_assert_eq(stats.op[QN_OP_RMW].latency.count, 6);
    cr_assert_eq(stats.op[QN_OP_GET].ops + stats.op[QN_OP_SET].ops, 0);
    tear_down();
}

Test(load_client, the_latency_of_two_requests_runs_from_the_first)
{
    struct iovec *iov;
    set_up("rmw", 100, 16, 1);
    begin(1, 1);
    qn_client_fill(&client, 1000, &connection, &connection);
    cr_assert_eq(feed("$-1\r\n", 5, 1100), QN_OK);
    cr_assert(!qn_client_done(&client));
    cr_assert_eq(qn_client_due(&client), 0);
    qn_client_fill(&client, 1200, &connection, &connection);
    cr_assert_gt(qn_connection_state_bytes(&connection, &iov), 0);
    cr_assert_eq(feed("+OK\r\n", 5, 1500), QN_OK);
    cr_assert(qn_client_done(&client));
    cr_assert_eq(qn_histogram_quantile(&stats.op[QN_OP_RMW].latency, 1), 500);
    tear_down();
}

Test(load_client, the_same_seed_sends_the_same_requests)
{
    static char first[BYTES_MAX];
    struct iovec *iov;
    set_up("get,set", 1000, 16, 100);
    begin(100, 100);
    fill(0, &iov);
    size_t len = iov->iov_len;
    memcpy(first, iov->iov_base, len);
    tear_down();
    set_up("get,set", 1000, 16, 100);
    begin(100, 100);
    fill(0, &iov);
    cr_assert_eq(iov->iov_len, len);
    cr_assert_arr_eq(iov->iov_base, first, len);
    tear_down();
}

Test(load_client, every_key_is_requested)
{
    set_up("set", 100, 16, 50);
    begin(50, 5000);
    run();
    for (int i = 0; i < 100; i++) {
        cr_assert_gt(server.set_count[i], 10, "key %d", i);
    }
    tear_down();
}

Test(load_client, preload_sets_each_key_of_its_share_once)
{
    set_up("get", 100, 16, 8);
    begin_preload(8, 1, 3);
    run();
    for (uint32_t i = 0; i < 100; i++) {
        cr_assert_eq(server.set_count[i], i % 3 == 1, "key %u", i);
    }
    tear_down();
}

Test(load_client, preload_repeats_what_a_lost_connection_left_open)
{
    struct iovec *iov;
    set_up("get", 10, 16, 4);
    begin_preload(4, 0, 1);
    exchange(1); /* keys 0 to 3 */
    fill(0, &iov);
    cr_assert_eq(feed("+OK\r\n+OK\r\n+O", 12, 1), QN_OK); /* keys 4 and 5 */
    qn_client_lost(&connection, &stats);
    cr_assert(qn_client_idle(&client));
    cr_assert_eq(stats.unanswered, 0);
    run();
    for (int i = 0; i < 10; i++) {
        cr_assert_eq(server.set_count[i], i != 4 && i != 5, "key %d", i);
    }
    tear_down();
}

/* Sizes around the mark, the inline limit and one far larger. */
Test(load_client, values_of_every_size_are_requested_and_checked)
{
    static const uint64_t sizes[] = {0,
                                     1,
                                     QN_MARK_PLAIN - 1,
                                     QN_MARK_PLAIN,
                                     QN_MARK_PLAIN + 1,
                                     QN_VALUE_INLINE_MAX,
                                     QN_VALUE_INLINE_MAX + 1,
                                     20000};
    for (size_t i = 0; i < QN_ARRAY_COUNT(sizes); i++) {
        memset(&stats, 0, sizeof stats);
        set_up("get,set,mset", 10, sizes[i], 5);
        begin_preload(5, 0, 1);
        run();
        begin(5, 50);
        run();
        for (int op = 0; op < QN_OP_COUNT; op++) {
            cr_assert_eq(stats.op[op].wrong, 0, "size %" PRIu64 ": %s",
                         sizes[i], stats.first_wrong);
        }
        cr_assert_gt(stats.op[QN_OP_GET].ops, 0);
        cr_assert_eq(stats.op[QN_OP_GET].misses, 0);
        tear_down();
    }
}

Test(load_client, a_value_of_another_size_is_wrong)
{
    set_up("get", 10, 16, 1);
    begin_preload(1, 0, 1);
    run();
    server.value_size = 17;
    begin(1, 1);
    run();
    cr_assert_eq(stats.op[QN_OP_GET].wrong, 1);
    cr_assert_eq(stats.op[QN_OP_GET].ops, 0);
    cr_assert(strstr(stats.first_wrong, "number 17") != NULL, "%s",
              stats.first_wrong);
    tear_down();
}

Test(load_client, a_value_of_another_key_is_wrong)
{
    set_up("get", 10, 16, 1);
    begin_preload(1, 0, 1);
    run();
    server.key_shift = 1;
    begin(1, 1);
    run();
    cr_assert_eq(stats.op[QN_OP_GET].wrong, 1);
    tear_down();
}

Test(load_client, replies_of_the_wrong_type_are_wrong)
{
    static const struct {
        const char *mix;
        const char *reply;
    } cases[] = {
        {"get", "+OK\r\n"},     {"get", ":1\r\n"},       {"get", "*0\r\n"},
        {"set", "+QUEUED\r\n"}, {"set", "$2\r\nOK\r\n"}, {"set", "_\r\n"},
        {"mset", ":1\r\n"},     {"incr", "+OK\r\n"},     {"ping", "+OK\r\n"},
    };
    for (size_t i = 0; i < QN_ARRAY_COUNT(cases); i++) {
        struct iovec *iov;
        memset(&stats, 0, sizeof stats);
        set_up(cases[i].mix, 10, 16, 1);
        begin(1, 1);
        fill(0, &iov);
        cr_assert_eq(feed(cases[i].reply, strlen(cases[i].reply), 1), QN_OK);
        cr_assert_neq(stats.first_wrong[0], '\0', "%s answered %s",
                      cases[i].mix, cases[i].reply);
        cr_assert_neq(strstr(stats.first_wrong, cases[i].mix), NULL);
        tear_down();
    }
}

Test(load_client, a_missing_key_is_a_miss_and_no_error)
{
    set_up("get", 10, 16, 1);
    begin(1, 1);
    run();
    cr_assert_eq(stats.op[QN_OP_GET].ops, 1);
    cr_assert_eq(stats.op[QN_OP_GET].misses, 1);
    tear_down();
}

Test(load_client, errors_are_counted_separately_and_the_first_is_kept)
{
    struct iovec *iov;
    set_up("set", 10, 16, 3);
    begin(3, 3);
    fill(0, &iov);
    static const char replies[] = "-OOM full\r\n+OK\r\n-ERR other\r\n";
    cr_assert_eq(feed(replies, sizeof replies - 1, 5), QN_OK);
    cr_assert_eq(stats.op[QN_OP_SET].errors, 2);
    cr_assert_eq(stats.op[QN_OP_SET].ops, 1);
    cr_assert_eq(stats.op[QN_OP_SET].latency.count, 1);
    cr_assert_str_eq(stats.first_error, "OOM full");
    tear_down();
}

Test(load_client, latency_runs_from_the_batch_to_each_reply)
{
    struct iovec *iov;
    set_up("ping", 10, 16, 2);
    begin(2, 2);
    fill(1000, &iov);
    cr_assert_eq(feed("+PONG\r\n+PO", 10, 1100), QN_OK);
    cr_assert(!qn_client_idle(&client));
    cr_assert_eq(feed("NG\r\n", 4, 1500), QN_OK);
    cr_assert(qn_client_idle(&client));
    const struct qn_histogram *h = &stats.op[QN_OP_PING].latency;
    cr_assert_eq(qn_histogram_quantile(h, 0.5), 100);
    cr_assert_eq(qn_histogram_quantile(h, 1), 500);
    tear_down();
}

Test(load_client, a_lost_connection_leaves_requests_unanswered)
{
    struct iovec *iov;
    set_up("ping", 10, 16, 5);
    begin(5, 20);
    fill(0, &iov);
    cr_assert_eq(feed("+PONG\r\n+PO", 10, 1), QN_OK);
    qn_client_lost(&connection, &stats);
    cr_assert_eq(stats.unanswered, 4);
    /* The incomplete reply is dropped, the rest of the task continues. */
    run();
    cr_assert_eq(stats.op[QN_OP_PING].ops, 16);
    tear_down();
}

Test(load_client, an_unexpected_reply_ends_the_connection)
{
    set_up("ping", 10, 16, 1);
    begin(1, 1);
    exchange(1);
    cr_assert_eq(feed("+PONG\r\n", 7, 1), QN_ECORRUPT);
    cr_assert_str_eq(stats.first_error, "unexpected reply: '+PONG..'");
    tear_down();
}

Test(load_client, an_invalid_reply_ends_the_connection)
{
    struct iovec *iov;
    set_up("ping", 10, 16, 1);
    begin(1, 1);
    fill(0, &iov);
    cr_assert_eq(feed("HTTP/1.1 400\r\n", 14, 1), QN_ECORRUPT);
    cr_assert_str_eq(stats.first_error, "reply is not RESP: 'HTTP/1.1 400..'");
    tear_down();
}

Test(load_client, the_greeting_is_not_counted)
{
    set_up("ping", 10, 16, 1);
    begin(1, 1);
    qn_client_greet(&connection);
    cr_assert_eq(feed("%1\r\n+proto\r\n:3\r\n", 16, 1), QN_OK);
    cr_assert(qn_client_idle(&client));
    run();
    cr_assert_eq(stats.op[QN_OP_PING].ops, 1);
    tear_down();
}

Test(load_client, a_refused_greeting_reports_the_reason)
{
    set_up("ping", 10, 16, 1);
    qn_client_greet(&connection);
    cr_assert_eq(feed("-NOAUTH please\r\n", 16, 1), QN_EPERM);
    cr_assert_str_eq(stats.first_error, "NOAUTH please");
    tear_down();
}
