#include "kvs/resp/reply.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/test.h"

/* What was written so far is exactly `text`; then start again. */
static void expect_bytes(struct qn_buf *b, const char *text, size_t len)
{
    cr_assert_eq(b->len, len, "got %zu bytes, expected %zu: %.*s", b->len, len,
                 (int)b->len, (const char *)b->data);
    cr_assert_eq(memcmp(b->data, text, len), 0, "got %.*s", (int)b->len,
                 (const char *)b->data);
    b->len = 0;
}

#define EXPECT(b, text) expect_bytes((b), (text), sizeof(text) - 1)

Test(reply, status_is_a_plus_line)
{
    struct qn_buf b = {0};
    qn_reply_ok(&b);
    EXPECT(&b, "+OK\r\n");
    qn_reply_status(&b, "PONG");
    EXPECT(&b, "+PONG\r\n");
    qn_reply_status(&b, "");
    EXPECT(&b, "+\r\n");
    qn_buf_free(&b);
}

Test(reply, error_is_one_line_whatever_the_text)
{
    struct qn_buf b = {0};
    qn_reply_error(&b, "ERR syntax error");
    EXPECT(&b, "-ERR syntax error\r\n");
    qn_reply_error(&b, "ERR unknown command '%.128s', %d", "a\r\nb\n", 7);
    EXPECT(&b, "-ERR unknown command 'a  b ', 7\r\n");
    qn_buf_free(&b);
}

/* Lengths around the first guess of the formatting buffer. */
Test(reply, error_of_any_length_is_whole)
{
    char text[1200];
    char line[1203];
    for (size_t n = 0; n < sizeof text; n++) {
        memset(text, 'x', n);
        text[n] = '\0';
        struct qn_buf b = {0};
        qn_reply_error(&b, "%s", text);
        int len = snprintf(line, sizeof line, "-%s", text);
        memcpy(line + len, "\r\n", 2);
        expect_bytes(&b, line, (size_t)len + 2);
        qn_buf_free(&b);
    }
}

static void check_int(struct qn_buf *b, int64_t v)
{
    char text[32];
    int n = snprintf(text, sizeof text, ":%" PRId64 "\r\n", v);
    qn_reply_int(b, v);
    expect_bytes(b, text, (size_t)n);
}

/* Compared with printf: small ones, around each power of ten, the ends. */
Test(reply, int_equals_printf)
{
    struct qn_buf b = {0};
    for (int64_t v = -11000; v <= 11000; v++) {
        check_int(&b, v);
    }
    for (int64_t p = 10; p <= INT64_MAX / 10; p *= 10) {
        for (int64_t d = -2; d <= 2; d++) {
            check_int(&b, p + d);
            check_int(&b, -(p + d));
        }
    }
    check_int(&b, INT64_MAX);
    check_int(&b, INT64_MIN);
    check_int(&b, INT64_MIN + 1);
    uint64_t x = 88172645463325252U;
    for (int i = 0; i < 20000; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        check_int(&b, (int64_t)(x >> (x & 63)));
    }
    qn_buf_free(&b);
}

Test(reply, bulk_carries_any_bytes)
{
    struct qn_buf b = {0};
    qn_reply_bulk(&b, NULL, 0);
    EXPECT(&b, "$0\r\n\r\n");
    qn_reply_bulk(&b, "a\0\r\nb", 5);
    EXPECT(&b, "$5\r\na\0\r\nb\r\n");
    qn_reply_bulk_str(&b, "bar");
    EXPECT(&b, "$3\r\nbar\r\n");
    qn_buf_free(&b);
}

Test(reply, bulk_of_any_length_is_whole)
{
    char data[4200];
    char head[32];
    for (size_t i = 0; i < sizeof data; i++) {
        data[i] = (char)(i * 7);
    }
    for (size_t n = 0; n <= sizeof data; n += n < 300 ? 1 : 97) {
        struct qn_buf b = {0};
        qn_reply_bulk(&b, data, n);
        int h = snprintf(head, sizeof head, "$%zu\r\n", n);
        cr_assert_eq(b.len, (size_t)h + n + 2);
        cr_assert_eq(memcmp(b.data, head, (size_t)h), 0);
        cr_assert_eq(memcmp(b.data + h, data, n), 0);
        cr_assert_eq(memcmp(b.data + (size_t)h + n, "\r\n", 2), 0);
        qn_buf_free(&b);
    }
}

Test(reply, null_depends_on_the_protocol)
{
    struct qn_buf b = {0};
    qn_reply_null(&b, 2);
    EXPECT(&b, "$-1\r\n");
    qn_reply_null(&b, 3);
    EXPECT(&b, "_\r\n");
    qn_reply_null_array(&b, 2);
    EXPECT(&b, "*-1\r\n");
    qn_reply_null_array(&b, 3);
    EXPECT(&b, "_\r\n");
    qn_buf_free(&b);
}

Test(reply, aggregates_depend_on_the_protocol)
{
    struct qn_buf b = {0};
    qn_reply_array(&b, 0);
    EXPECT(&b, "*0\r\n");
    qn_reply_array(&b, 1048576);
    EXPECT(&b, "*1048576\r\n");
    qn_reply_map(&b, 2, 7);
    EXPECT(&b, "*14\r\n");
    qn_reply_map(&b, 3, 7);
    EXPECT(&b, "%7\r\n");
    qn_reply_set(&b, 2, 10);
    EXPECT(&b, "*10\r\n");
    qn_reply_set(&b, 3, 10);
    EXPECT(&b, "~10\r\n");
    qn_buf_free(&b);
}

Test(reply, text_is_verbatim_in_resp3)
{
    struct qn_buf b = {0};
    qn_reply_text(&b, 2, "a b\r\n", 5);
    EXPECT(&b, "$5\r\na b\r\n\r\n");
    qn_reply_text(&b, 3, "a b\r\n", 5);
    EXPECT(&b, "=9\r\ntxt:a b\r\n\r\n");
    qn_reply_text(&b, 3, "", 0);
    EXPECT(&b, "=4\r\ntxt:\r\n");
    qn_buf_free(&b);
}

/* One reply of each kind. */
static void write_all(struct qn_buf *b, uint8_t proto)
{
    qn_reply_status(b, "QUEUED");
    qn_reply_ok(b);
    qn_reply_error(b, "ERR %s", "no such key");
    qn_reply_int(b, -42);
    qn_reply_bulk(b, "value", 5);
    qn_reply_bulk_str(b, "text");
    qn_reply_null(b, proto);
    qn_reply_null_array(b, proto);
    qn_reply_array(b, 12);
    qn_reply_map(b, proto, 3);
    qn_reply_set(b, proto, 4);
    qn_reply_text(b, proto, "info", 4);
}

Test(reply, null_buffer_means_nobody_waits)
{
    write_all(NULL, 2);
    write_all(NULL, 3);
}

/* Elements follow each other without a gap, also across growth. */
Test(reply, replies_are_appended)
{
    struct qn_buf once = {0};
    struct qn_buf many = {0};
    write_all(&once, 3);
    for (int i = 0; i < 500; i++) {
        write_all(&many, 3);
    }
    cr_assert_eq(many.len, once.len * 500);
    for (size_t i = 0; i < 500; i++) {
        cr_assert_eq(memcmp(many.data + i * once.len, once.data, once.len), 0);
    }
    qn_buf_free(&once);
    qn_buf_free(&many);
}

Test(reply, lack_of_memory_leaves_whole_elements)
{
    struct qn_buf b = {0};
    qn_reply_ok(&b);
    b.oom = true;
    write_all(&b, 2);
    write_all(&b, 3);
    EXPECT(&b, "+OK\r\n");
    qn_buf_free(&b);
}

Test(reply, a_bound_is_reached_in_whole_elements_and_never_passed)
{
    for (size_t max = 64; max < 400; max++) {
        struct qn_buf b = {.max = max};
        while (!b.oom) {
            qn_reply_bulk(&b, "0123456789", 10);
            cr_assert_leq(b.cap, QN_MAX(max, (size_t)64));
        }
        cr_assert(b.full);
        cr_assert_leq(b.len, max);
        cr_assert_eq(b.len % 17, 0u); /* $10, ten bytes, two CRLF */
        qn_buf_free(&b);
        cr_assert_not(b.oom || b.full);
        cr_assert_eq(b.max, max);
    }
}
