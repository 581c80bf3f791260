/* What the RESP reader allocates. Its calls of realloc() come here (the linker
 * wraps them), so that each can be counted and refused. */
#include <stdio.h>
#include <stdlib.h>

#include "kvs/resp/resp.h"
#include "tests/support/resp_trace.h"
#include "tests/support/test.h"

#define KB ((size_t)1024)
#define MB (1024 * KB)

static size_t largest;      /* bytes asked for in one call */
static size_t calls;        /* of realloc */
static size_t failing_call; /* the one that is refused, from 1; 0: none */

void *__real_realloc(void *p, size_t n);
void *__wrap_realloc(void *p, size_t n);

void *__wrap_realloc(void *p, size_t n)
{
    calls++;
    largest = QN_MAX(largest, n);
    return calls == failing_call ? NULL : __real_realloc(p, n);
}

static const struct qn_resp_limits limits = {
    .bulk_max = 512 * MB, .args_max = 1048576, .buffer_max = 1024 * MB};

static void feed(struct qn_resp_reader *r, const char *text)
{
    qn_resp_feed(r, (const uint8_t *)text, strlen(text));
}

/* Put n bytes through room. */
static void push(struct qn_resp_reader *r, const uint8_t *bytes, size_t n)
{
    while (n != 0) {
        size_t size = 0;
        uint8_t *room = qn_resp_room(r, &size);
        cr_assert_not_null(room);
        cr_assert_geq(size, (size_t)1);
        size = QN_MIN(size, n);
        memcpy(room, bytes, size);
        qn_resp_fed(r, size);
        bytes += size;
        n -= size;
    }
}

static void expect_nothing_held(const struct qn_resp_reader *r)
{
    cr_assert_not(qn_resp_holds(r));
    cr_assert_null(r->held.data);
    cr_assert_null(r->line.data);
    cr_assert(r->argv == r->few);
}

Test(resp_memory, what_was_run_is_freed_though_more_may_come)
{
    struct qn_resp_reader r;
    struct qn_resp_req req;
    qn_resp_init(&r, &limits);
    static const char head[] = "*2\r\n$3\r\nDEL\r\n$1048576\r\n";
    size_t n = sizeof head - 1 + MB + 2;
    uint8_t *bytes = malloc(n);
    cr_assert_not_null(bytes);
    memset(bytes, 'x', n);
    memcpy(bytes, head, sizeof head - 1);
    feed(&r, "*2\r");
    cr_assert_eq(qn_resp_next(&r, &req), QN_EAGAIN);
    cr_assert_eq(qn_resp_settle(&r), QN_OK);
    push(&r, bytes + 3, n - 3);
    cr_assert_eq(qn_resp_next(&r, &req), QN_OK);
    cr_assert_eq(req.argv[1].len, MB);
    qn_resp_put_back(&r);
    cr_assert_eq(qn_resp_settle(&r), QN_OK);
    cr_assert_eq(qn_resp_next(&r, &req), QN_OK);
    cr_assert_eq(req.argv[1].len, MB);
    cr_assert_eq(qn_resp_settle(&r), QN_OK);
    expect_nothing_held(&r);
    qn_resp_free(&r);
    free(bytes);
}

Test(resp_memory, idle_reader_holds_none)
{
    struct qn_resp_reader r;
    struct qn_resp_req req;
    qn_resp_init(&r, &limits);
    expect_nothing_held(&r);
    feed(&r, "*9\r\n$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n"
             "$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n$1\r\na\r\necho 'x'\r\nPI");
    cr_assert_eq(qn_resp_next(&r, &req), QN_OK);
    cr_assert_eq(req.argc, 9U);
    cr_assert_eq(qn_resp_next(&r, &req), QN_OK);
    cr_assert_eq(qn_resp_next(&r, &req), QN_EAGAIN);
    cr_assert_eq(qn_resp_settle(&r), QN_OK);
    cr_assert(qn_resp_holds(&r));
    cr_assert_leq(r.held.cap, (size_t)64);
    push(&r, (const uint8_t *)"NG\r\n", 4);
    cr_assert_eq(qn_resp_next(&r, &req), QN_OK);
    cr_assert_eq(qn_resp_next(&r, &req), QN_EAGAIN);
    expect_nothing_held(&r);
    qn_resp_free(&r);
}

Test(resp_memory, usual_requests_allocate_nothing)
{
    struct qn_resp_reader r;
    struct qn_resp_req req;
    qn_resp_init(&r, &limits);
    calls = 0;
    for (int i = 0; i < 10; i++) {
        feed(&r, "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$2\r\nxy\r\n"
                 "*2\r\n$3\r\nGET\r\n$1\r\na\r\n");
        while (qn_resp_next(&r, &req) == QN_OK) {
        }
        cr_assert_eq(qn_resp_settle(&r), QN_OK);
    }
    cr_assert_eq(calls, (size_t)0);
    qn_resp_free(&r);
}

/* A header that only announces a size. */
Test(resp_memory, announced_sizes_allocate_nothing)
{
    struct qn_resp_reader r;
    struct qn_resp_req req;
    qn_resp_init(&r, &limits);
    largest = 0;
    feed(&r, "*1048576\r\n$3\r\nSET\r\n$536870912\r\n");
    cr_assert_eq(qn_resp_next(&r, &req), QN_EAGAIN);
    cr_assert_eq(qn_resp_settle(&r), QN_OK);
    push(&r, (const uint8_t *)"x", 1);
    cr_assert_eq(qn_resp_next(&r, &req), QN_EAGAIN);
    cr_assert_leq(largest, 33 * KB);
    qn_resp_free(&r);
}

/* Chunks as sockets give them: memory is at most twice what arrived, the room
 * ends where the bulk ends, and the number of calls is logarithmic. */
Test(resp_memory, large_bulk_grows_as_it_arrives)
{
    static uint8_t chunk[10 * KB];
    const size_t total = 16 * MB;
    struct qn_resp_reader r;
    struct qn_resp_req req;
    qn_resp_init(&r, &limits);
    feed(&r, "*2\r\n$4\r\nECHO\r\n$16777216\r\n");
    cr_assert_eq(qn_resp_next(&r, &req), QN_EAGAIN);
    cr_assert_eq(qn_resp_settle(&r), QN_OK);
    calls = 0;
    for (size_t arrived = 0; arrived < total + 2;) {
        size_t size = 0;
        uint8_t *room = qn_resp_room(&r, &size);
        cr_assert_not_null(room);
        cr_assert_leq(size, total + 2 - arrived);
        cr_assert_leq(r.held.cap, 2 * arrived + 64 * KB);
        size = QN_MIN(size, sizeof chunk);
        memset(room, (int)(arrived >> 10), size);
        qn_resp_fed(&r, size);
        arrived += size;
        cr_assert_eq(qn_resp_next(&r, &req),
                     arrived < total + 2 ? QN_EAGAIN : QN_OK);
    }
    cr_assert_leq(calls, (size_t)14);
    cr_assert_eq(req.argv[0].len, (size_t)4);
    cr_assert_eq(memcmp(req.argv[0].data, "ECHO", 4), 0);
    cr_assert_eq(req.argv[1].len, total);
    cr_assert_eq(qn_resp_next(&r, &req), QN_EAGAIN);
    expect_nothing_held(&r);
    qn_resp_free(&r);
}

/* A bulk of `len` bytes: fed as far as is worth it, the rest into room. @return
 * the most that was held of it. */
static size_t send_bulk(struct qn_resp_reader *r, size_t len, size_t *fed)
{
    static uint8_t turn[128 * KB];
    struct qn_resp_req req;
    size_t most = 0;
    size_t head = (size_t)snprintf((char *)turn, 64, "*1\r\n$%zu\r\n", len);
    size_t left = head + len + 2;
    *fed = QN_MIN(qn_resp_feed_max(r, sizeof turn), left);
    qn_resp_feed(r, turn, *fed);
    cr_assert(qn_resp_wants(r));
    cr_assert_eq(qn_resp_settle(r), QN_OK);
    for (left -= *fed; left != 0;) {
        size_t size = 0;
        uint8_t *room = qn_resp_room(r, &size);
        cr_assert_not_null(room);
        memset(room, 'x', QN_MIN(size, left));
        qn_resp_fed(r, QN_MIN(size, left));
        left -= QN_MIN(size, left);
        most = QN_MAX(most, r->held.cap);
    }
    cr_assert_not(qn_resp_wants(r));
    cr_assert_eq(qn_resp_next(r, &req), QN_OK);
    cr_assert_eq(req.argv[0].len, len);
    cr_assert_eq(qn_resp_settle(r), QN_OK);
    expect_nothing_held(r);
    return most;
}

/* The second large bulk of a connection is read into its place without any
 * growth, and little of it is read elsewhere. A small request ends that. */
Test(resp_memory, large_bulk_gets_its_room_at_once_if_one_came_before)
{
    struct qn_resp_reader r;
    struct qn_resp_req req;
    size_t fed = 0;
    qn_resp_init(&r, &limits);
    send_bulk(&r, MB, &fed);
    cr_assert_eq(fed, 128 * KB);
    calls = 0;
    size_t most = send_bulk(&r, MB, &fed);
    cr_assert_eq(calls, (size_t)1);
    cr_assert_leq(fed, 4 * KB);
    cr_assert_leq(most, MB + 64);
    feed(&r, "PING\r\n");
    cr_assert_eq(qn_resp_next(&r, &req), QN_OK);
    cr_assert_eq(qn_resp_settle(&r), QN_OK);
    send_bulk(&r, 200 * KB, &fed);
    cr_assert_eq(fed, 128 * KB);
    qn_resp_free(&r);
}

/* Not more than 1 MiB, whatever came before: the header alone reserves it. */
Test(resp_memory, longer_bulks_grow_as_they_arrive_again)
{
    struct qn_resp_reader r;
    size_t fed = 0;
    qn_resp_init(&r, &limits);
    send_bulk(&r, 8 * MB, &fed);
    feed(&r, "*1\r\n$8388608\r\n");
    cr_assert(qn_resp_wants(&r));
    cr_assert_eq(qn_resp_settle(&r), QN_OK);
    cr_assert_leq(r.held.cap, 64 * KB);
    qn_resp_free(&r);
}

/* The default limits, met exactly with real bytes. */
Test(resp_memory, largest_argument_and_most_arguments, .timeout = 60)
{
    struct qn_resp_limits usual = limits;
    usual.bulk_max = 64 * MB;
    struct qn_resp_reader r;
    struct qn_resp_req req;
    qn_resp_init(&r, &usual);
    uint8_t *bytes = calloc(1, 64 * MB + 2);
    cr_assert_not_null(bytes);
    for (size_t len = 64 * MB - 1; len <= 64 * MB; len++) {
        char head[32];
        snprintf(head, sizeof head, "*1\r\n$%zu\r\n", len);
        push(&r, (const uint8_t *)head, strlen(head));
        cr_assert_eq(qn_resp_next(&r, &req), QN_EAGAIN);
        push(&r, bytes, len + 2);
        cr_assert_eq(qn_resp_next(&r, &req), QN_OK);
        cr_assert_eq(req.argv[0].len, len);
        cr_assert_eq(qn_resp_next(&r, &req), QN_EAGAIN);
    }
    free(bytes);
    static const uint8_t arg[] = "$1\r\nx\r\n";
    push(&r, (const uint8_t *)"*1048576\r\n", 10);
    for (uint32_t i = 0; i < 1048576; i++) {
        push(&r, arg, sizeof arg - 1);
        if (i % 1000 == 0) {
            cr_assert_eq(qn_resp_next(&r, &req), QN_EAGAIN);
        }
    }
    cr_assert_eq(qn_resp_next(&r, &req), QN_OK);
    cr_assert_eq(req.argc, 1048576U);
    for (uint32_t i = 0; i < req.argc; i++) {
        cr_assert(req.argv[i].len == 1 && req.argv[i].data[0] == 'x');
    }
    cr_assert_eq(qn_resp_next(&r, &req), QN_EAGAIN);
    expect_nothing_held(&r);
    qn_resp_free(&r);
}

Test(resp_memory, room_ends_at_buffer_max)
{
    static uint8_t bytes[100 * KB];
    struct qn_resp_limits small = limits;
    small.buffer_max = 50 * KB;
    struct qn_resp_reader r;
    struct qn_resp_req req;
    qn_resp_init(&r, &small);
    push(&r, (const uint8_t *)"*1\r\n$102400\r\n", 13);
    cr_assert_eq(qn_resp_next(&r, &req), QN_EAGAIN);
    push(&r, bytes, 50 * KB - 13);
    size_t n = 0;
    cr_assert_eq(qn_resp_next(&r, &req), QN_EAGAIN);
    cr_assert_null(qn_resp_room(&r, &n));
    qn_resp_free(&r);
}

/* Refuse each call in turn: the reader reports it, or did not need it, and
 * what came before is right. Leaks are found by the sanitizer. */
Test(resp_memory, every_refused_allocation_is_reported)
{
    struct qn_buf stream = {0};
    struct qn_buf whole = {0};
    struct qn_buf tape = {0};
    qn_buf_append(&stream, "echo 'a b'\r\n*70\r\n", 17);
    for (int i = 0; i < 70; i++) {
        qn_buf_append(&stream, "$1\r\nz\r\n", 7);
    }
    qn_buf_append(&stream, "*2\r\n$1\r\na\r\n$70000\r\n", 19);
    cr_assert_not_null(qn_buf_reserve(&stream, 70002));
    memset(stream.data + stream.len, 'y', 70002);
    stream.len += 70002;
    cr_assert_not_null(qn_buf_reserve(&whole, 1 * MB));
    cr_assert_not_null(qn_buf_reserve(&tape, 1 * MB));
    size_t step = 777;
    qn_resp_trace_record(&whole, &limits, QN_RESP_TRACE_ROOM, stream.data,
                         stream.len, qn_resp_chop_every, &step);
    const char *end = qn_strerror(QN_ENOMEM);
    for (int mode = 0; mode < QN_RESP_TRACE_MODES; mode++) {
        for (size_t k = 1;; k++) {
            tape.len = calls = 0;
            failing_call = k;
            qn_resp_trace_record(&tape, &limits, (enum qn_resp_trace_mode)mode,
                                 stream.data, stream.len, qn_resp_chop_every,
                                 &step);
            failing_call = 0;
            if (calls < k) {
                cr_assert_gt(k, (size_t)5);
                cr_assert_eq(tape.len, whole.len);
                break;
            }
            size_t n = strlen(end) + 1;
            cr_assert(tape.len >= n &&
                          memcmp(tape.data + tape.len - n, end, n - 1) == 0,
                      "mode %d, call %zu", mode, k);
            cr_assert_eq(memcmp(tape.data, whole.data, tape.len - n), 0);
        }
    }
    qn_buf_free(&stream);
    qn_buf_free(&whole);
    qn_buf_free(&tape);
}
