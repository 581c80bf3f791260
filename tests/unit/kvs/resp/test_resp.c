#include "kvs/resp/resp.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/support/resp_trace.h"
#include "tests/support/test.h"

#define MB             ((uint64_t)1024 * 1024)
#define LINE_MAX_BYTES ((size_t)64 * 1024)

static const struct qn_resp_limits usual = {
    .bulk_max = 64 * MB, .args_max = 1048576, .buffer_max = 1024 * MB};
static const struct qn_resp_limits restricted = {.bulk_max = 64 * MB,
                                                 .args_max = 1048576,
                                                 .buffer_max = 1024 * MB,
                                                 .restricted = true};

/* Tapes of the same stream in all modes, whole and byte by byte, are equal to
 * the text. */
static void check(const struct qn_resp_limits *limits, const void *bytes,
                  size_t n, const char *expected, size_t expected_len)
{
    size_t one = 1;
    for (int mode = 0; mode < QN_RESP_TRACE_MODES; mode++) {
        struct qn_buf whole = {0};
        struct qn_buf bytewise = {0};
        qn_resp_trace_record(&whole, limits, (enum qn_resp_trace_mode)mode,
                             bytes, n, qn_resp_chop_whole, NULL);
        cr_assert(whole.len == expected_len &&
                      memcmp(whole.data, expected, expected_len) == 0,
                  "mode %d, %.60s: got %.200s, expected %.200s", mode,
                  (const char *)bytes, (const char *)whole.data, expected);
        qn_resp_trace_record(&bytewise, limits, (enum qn_resp_trace_mode)mode,
                             bytes, n, qn_resp_chop_every, &one);
        cr_assert(bytewise.len == expected_len &&
                      memcmp(bytewise.data, expected, expected_len) == 0,
                  "mode %d, %.60s byte by byte: got %.200s, expected %.200s",
                  mode, (const char *)bytes, (const char *)bytewise.data,
                  expected);
        qn_buf_free(&whole);
        qn_buf_free(&bytewise);
    }
}

#define CHECK_LIMITS(limits, stream, tape)                                     \
    check((limits), (stream), sizeof(stream) - 1, (tape), sizeof(tape) - 1)
#define CHECK(stream, tape) CHECK_LIMITS(&usual, stream, tape)

/* ---- what a request is --------------------------------------------------- */

Test(resp, array_of_bulks_is_a_request)
{
    CHECK("*1\r\n$4\r\nPING\r\n", "1 4:PING\nmore\n");
    CHECK("*3\r\n$3\r\nSET\r\n$1\r\na\r\n$2\r\nxy\r\n",
          "3 3:SET 1:a 2:xy\nmore\n");
    CHECK("*10\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n"
          "$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$12\r\nabcdefghijkl\r\n",
          "10 0: 0: 0: 0: 0: 0: 0: 0: 0: 12:abcdefghijkl\nmore\n");
}

Test(resp, bulks_carry_any_bytes)
{
    CHECK("*2\r\n$4\r\nECHO\r\n$8\r\n\0\r\n$3\r\n*\r\n",
          "2 4:ECHO 8:\0\r\n$3\r\n*\nmore\n");
}

Test(resp, requests_follow_each_other_in_order)
{
    CHECK("*1\r\n$4\r\nPING\r\nGET a\r\n*2\r\n$3\r\nGET\r\n$1\r\nb\r\nPING\n",
          "1 4:PING\n2 3:GET 1:a\n2 3:GET 1:b\n1 4:PING\nmore\n");
}

Test(resp, empty_requests_are_skipped)
{
    CHECK("", "more\n");
    CHECK("\r\n", "more\n");
    CHECK("\n", "more\n");
    CHECK("  \t \r\n", "more\n");
    CHECK("*0\r\n", "more\n");
    CHECK("*-1\r\n", "more\n");
    CHECK("*-10\r\n", "more\n");
    CHECK("*-9223372036854775808\r\n", "more\n");
    CHECK("\r\n*0\r\n*-10\r\n\nPING\r\n*-1\r\n\r\n", "1 4:PING\nmore\n");
}

Test(resp, unfinished_request_is_held)
{
    CHECK("P", "held\n");
    CHECK("*", "held\n");
    CHECK("*1", "held\n");
    CHECK("*1\r", "held\n");
    CHECK("*1\r\n", "held\n");
    CHECK("*1\r\n$", "held\n");
    CHECK("*1\r\n$4\r", "held\n");
    CHECK("*1\r\n$4\r\nPING", "held\n");
    CHECK("*1\r\n$4\r\nPING\r", "held\n");
    CHECK("PING\n*1\r\n$4\r\nPING\r", "1 4:PING\nheld\n");
}

/* Redis looks at neither: framing is by length. */
Test(resp, bytes_after_cr_and_after_a_bulk_are_not_looked_at)
{
    CHECK("*1\rx$4\ryPINGab*1\r\n$2\r\nab\r\n", "1 4:PING\n1 2:ab\nmore\n");
}

/* ---- inline -------------------------------------------------------------- */

Test(resp, inline_splits_at_blanks)
{
    CHECK("PING\r\n", "1 4:PING\nmore\n");
    CHECK("PING\n", "1 4:PING\nmore\n");
    CHECK("  SET \t a   1  \r\n", "3 3:SET 1:a 1:1\nmore\n");
    CHECK("a\vb c\fd\r\n", "2 3:a\vb 3:c\fd\nmore\n");
    CHECK("\v\fa\r\n", "1 1:a\nmore\n");
    CHECK("a\rb\n", "2 1:a 1:b\nmore\n");
    CHECK("a\r\r\n", "1 1:a\nmore\n");
    CHECK("a\0b\n", "1 3:a\0b\nmore\n");
    CHECK("$3\r\n", "1 2:$3\nmore\n");
    CHECK("a b c d e f g h i j\n",
          "10 1:a 1:b 1:c 1:d 1:e 1:f 1:g 1:h 1:i 1:j\nmore\n");
}

Test(resp, inline_understands_double_quotes)
{
    CHECK("\"\"\r\n", "1 0:\nmore\n");
    CHECK("a \"b c\" d\r\n", "3 1:a 3:b c 1:d\nmore\n");
    CHECK("\"\\n\\r\\t\\b\\a\\\"\\\\\"\n", "1 7:\n\r\t\b\a\"\\\nmore\n");
    CHECK("\"\\x41\\xfF\\x00\"\n", "1 3:A\xff\0\nmore\n");
    CHECK("\"\\xg1\\x4\\q'\"\n", "1 7:xg1x4q'\nmore\n");
    CHECK("ab\"c d\"\n", "1 5:abc d\nmore\n");
}

Test(resp, inline_understands_single_quotes)
{
    CHECK("''\n", "1 0:\nmore\n");
    CHECK("'a b' 'c'\n", "2 3:a b 1:c\nmore\n");
    CHECK("'\\''\n", "1 1:'\nmore\n");
    CHECK("'\\n\\x41\"'\n", "1 7:\\n\\x41\"\nmore\n");
    CHECK("x'y z'\n", "1 4:xy z\nmore\n");
}

Test(resp, quotes_must_balance_and_end_an_argument)
{
#define UNBALANCED "ERR Protocol error: unbalanced quotes in request\n"
    CHECK("\"\n", UNBALANCED);
    CHECK("'\r\n", UNBALANCED);
    CHECK("SET a \"b\r\n", UNBALANCED);
    CHECK("'\\'\n", UNBALANCED);
    CHECK("\"\\\"\n", UNBALANCED);
    CHECK("\"\\\n", UNBALANCED);
    CHECK("\"a\"b\n", UNBALANCED);
    CHECK("'a''b'\n", UNBALANCED);
    CHECK("\"a\"\vb\n", "2 1:a 1:b\nmore\n");
    CHECK("PING\n\"\nPING\n", "1 4:PING\n" UNBALANCED);
}

Test(resp, http_ends_the_stream_without_an_answer)
{
    CHECK("POST / HTTP/1.1\r\n", "http\n");
    CHECK("post\r\n", "http\n");
    CHECK("GET / HTTP/1.1\r\nAccept: *\r\nHost: a\r\nPING\r\n",
          "3 3:GET 1:/ 8:HTTP/1.1\n2 7:Accept: 1:*\nhttp\n");
    CHECK("hOsT: a\n", "http\n");
    CHECK("POSTS a\nHost a\n", "2 5:POSTS 1:a\n2 4:Host 1:a\nmore\n");
    CHECK("*1\r\n$4\r\nPOST\r\n", "1 4:POST\nmore\n");
}

/* ---- malformed ----------------------------------------------------------- */

#define BAD_COUNT  "ERR Protocol error: invalid multibulk length\n"
#define BAD_LENGTH "ERR Protocol error: invalid bulk length\n"

Test(resp, count_must_be_a_number)
{
    CHECK("*\r\n", BAD_COUNT);
    CHECK("*a\r\n", BAD_COUNT);
    CHECK("*1a\r\n", BAD_COUNT);
    CHECK("* 1\r\n", BAD_COUNT);
    CHECK("*1 \r\n", BAD_COUNT);
    CHECK("*+1\r\n", BAD_COUNT);
    CHECK("*01\r\n", BAD_COUNT);
    CHECK("*00\r\n", BAD_COUNT);
    CHECK("*-\r\n", BAD_COUNT);
    CHECK("*-0\r\n", BAD_COUNT);
    CHECK("*-01\r\n", BAD_COUNT);
    CHECK("*--1\r\n", BAD_COUNT);
    CHECK("*1\0\r\n", BAD_COUNT);
    CHECK("*\n1\r\n", BAD_COUNT);
    CHECK("*9223372036854775807\r\n", BAD_COUNT);
    CHECK("*9223372036854775808\r\n", BAD_COUNT);
    CHECK("*-9223372036854775809\r\n", BAD_COUNT);
    CHECK("*18446744073709551617\r\n", BAD_COUNT);
    CHECK("PING\r\n*x\r\nPING\r\n", "1 4:PING\n" BAD_COUNT);
}

Test(resp, count_is_limited)
{
    struct qn_resp_limits three = usual;
    three.args_max = 3;
    CHECK_LIMITS(&three, "*2\r\n$1\r\na\r\n$1\r\nb\r\n", "2 1:a 1:b\nmore\n");
    CHECK_LIMITS(&three, "*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n",
                 "3 1:a 1:b 1:c\nmore\n");
    CHECK_LIMITS(&three, "*4\r\n", BAD_COUNT);
    CHECK("*1048575\r\n", "held\n");
    CHECK("*1048576\r\n", "held\n");
    CHECK("*1048577\r\n", BAD_COUNT);
    CHECK("*4294967297\r\n", BAD_COUNT);
}

Test(resp, elements_must_be_bulks)
{
    CHECK("*1\r\n:1\r\n", "ERR Protocol error: expected '$', got ':'\n");
    CHECK("*2\r\n$1\r\na\r\nb\r\n",
          "ERR Protocol error: expected '$', got 'b'\n");
    CHECK("*1\r\n*1\r\n", "ERR Protocol error: expected '$', got '*'\n");
    CHECK("*1\r\n\r\n", "ERR Protocol error: expected '$', got ' '\n");
    CHECK("*1\r\n\n\r\n", "ERR Protocol error: expected '$', got ' '\n");
    CHECK("*1\r\n\xff\r\n", "ERR Protocol error: expected '$', got '\xff'\n");
    /* The line is judged when it is complete. */
    CHECK("*1\r\nx", "held\n");
    CHECK("*1\r\nx\r", "held\n");
}

Test(resp, length_must_be_a_number)
{
    CHECK("*1\r\n$\r\n", BAD_LENGTH);
    CHECK("*1\r\n$a\r\n", BAD_LENGTH);
    CHECK("*1\r\n$1a\r\n", BAD_LENGTH);
    CHECK("*1\r\n$ 1\r\n", BAD_LENGTH);
    CHECK("*1\r\n$+1\r\n", BAD_LENGTH);
    CHECK("*1\r\n$01\r\n", BAD_LENGTH);
    CHECK("*1\r\n$-1\r\n", BAD_LENGTH);
    CHECK("*1\r\n$-0\r\n", BAD_LENGTH);
    CHECK("*1\r\n$1\0\r\n", BAD_LENGTH);
    CHECK("*1\r\n$-9223372036854775808\r\n", BAD_LENGTH);
    CHECK("*1\r\n$9223372036854775807\r\n", BAD_LENGTH);
    CHECK("*1\r\n$18446744073709551615\r\n", BAD_LENGTH);
    CHECK("*1\r\n$18446744073709551617\r\n", BAD_LENGTH);
    CHECK("*2\r\n$1\r\na\r\n$-1\r\n", BAD_LENGTH);
}

Test(resp, length_is_limited)
{
    struct qn_resp_limits four = usual;
    four.bulk_max = 4;
    CHECK_LIMITS(&four, "*1\r\n$3\r\nabc\r\n", "1 3:abc\nmore\n");
    CHECK_LIMITS(&four, "*1\r\n$4\r\nabcd\r\n", "1 4:abcd\nmore\n");
    CHECK_LIMITS(&four, "*1\r\n$5\r\n", BAD_LENGTH);
    CHECK("*1\r\n$67108864\r\n", "held\n");
    CHECK("*1\r\n$67108865\r\n", BAD_LENGTH);
    CHECK("*1\r\n$9999999999\r\n", BAD_LENGTH);
}

Test(resp, before_login_requests_are_small)
{
    CHECK_LIMITS(&restricted, "*10\r\n", "held\n");
    CHECK_LIMITS(&restricted, "*11\r\n",
                 "ERR Protocol error: unauthenticated multibulk length\n");
    CHECK_LIMITS(&restricted, "*1048577\r\n", BAD_COUNT);
    CHECK_LIMITS(&restricted, "*1\r\n$16384\r\n", "held\n");
    CHECK_LIMITS(&restricted, "*1\r\n$16385\r\n",
                 "ERR Protocol error: unauthenticated bulk length\n");
    CHECK_LIMITS(&restricted, "*1\r\n$67108865\r\n", BAD_LENGTH);
}

/* A line of `n` bytes before CR (or LF), `head` first, then `fill`. */
static void check_line(const char *head, char fill, size_t n, const char *end,
                       const char *expected)
{
    size_t head_len = strlen(head);
    size_t prefix = strncmp(head, "*1\r\n", 4) == 0 ? 4 : 0;
    size_t total = prefix + n + strlen(end);
    char *bytes = malloc(total + 1);
    cr_assert_not_null(bytes);
    memset(bytes, fill, total);
    memcpy(bytes, head, head_len);
    memcpy(bytes + prefix + n, end, strlen(end) + 1);
    struct qn_buf tape = {0};
    size_t sizes[] = {total, 4096, 65536, 65537, 1000};
    for (size_t i = 0; i < QN_ARRAY_COUNT(sizes); i++) {
        for (int mode = 0; mode < QN_RESP_TRACE_MODES; mode++) {
            tape.len = 0;
            qn_resp_trace_record(&tape, &usual, (enum qn_resp_trace_mode)mode,
                                 (uint8_t *)bytes, total, qn_resp_chop_every,
                                 &sizes[i]);
            cr_assert(tape.len >= strlen(expected) &&
                          memcmp(tape.data + tape.len - strlen(expected),
                                 expected, strlen(expected)) == 0,
                      "line of %zu, chops of %zu, mode %d: got %.60s", n,
                      sizes[i], mode, (const char *)tape.data);
        }
    }
    qn_buf_free(&tape);
    free(bytes);
}

Test(resp, lines_are_limited)
{
    const size_t max = LINE_MAX_BYTES;
    const char *count = "ERR Protocol error: too big mbulk count string\n";
    const char *length = "ERR Protocol error: too big bulk count string\n";
    const char *line = "ERR Protocol error: too big inline request\n";
    check_line("*", '1', max - 1, "\r\n", BAD_COUNT);
    check_line("*", '1', max, "\r\n", BAD_COUNT);
    check_line("*", '1', max, "", "held\n");
    check_line("*", '1', max + 1, "", count);
    check_line("*", '1', max + 1, "\r\n", count);
    check_line("*1\r\n$", '1', max - 1, "\r\n", BAD_LENGTH);
    check_line("*1\r\n$", '1', max, "\r\n", BAD_LENGTH);
    check_line("*1\r\n$", '1', max + 1, "", length);
    check_line("*1\r\nx", '1', max + 1, "", length);
    check_line("a ", 'b', max - 1, "\n", "b\nmore\n");
    check_line("a ", 'b', max, "\n", "b\nmore\n");
    check_line("a ", 'b', max, "", "held\n");
    check_line("a ", 'b', max + 1, "", line);
    check_line("a ", 'b', max + 1, "\n", line);
    check_line("a ", 'b', max - 1, "\r\n", "b\nmore\n");
    check_line("a ", 'b', max, "\r\n", line); /* CR counts: LF ends it */
    check_line("", ' ', max, "\n", "more\n");
}

Test(resp, error_is_sticky)
{
    struct qn_resp_reader r;
    struct qn_resp_req req;
    size_t n = 0;
    qn_resp_init(&r, &usual);
    const uint8_t bytes[] = "*1\r\n-\r\nPING\r\n";
    qn_resp_feed(&r, bytes, sizeof bytes - 1);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(qn_resp_next(&r, &req), QN_EINVAL);
        cr_assert_str_eq(qn_resp_error(&r),
                         "ERR Protocol error: expected '$', got '-'");
    }
    cr_assert_eq(qn_resp_settle(&r), QN_OK);
    cr_assert_not(qn_resp_holds(&r));
    qn_resp_feed(&r, bytes, sizeof bytes - 1);
    cr_assert_null(qn_resp_room(&r, &n));
    cr_assert_eq(qn_resp_next(&r, &req), QN_EINVAL);
    qn_resp_free(&r);
}

Test(resp, limits_may_change_between_calls)
{
    struct qn_resp_limits limits = restricted;
    struct qn_resp_reader r;
    struct qn_resp_req req;
    qn_resp_init(&r, &limits);
    const uint8_t first[] = "PING\r\n";
    const uint8_t second[] = "*11\r\n";
    qn_resp_feed(&r, first, sizeof first - 1);
    cr_assert_eq(qn_resp_next(&r, &req), QN_OK);
    cr_assert_eq(qn_resp_settle(&r), QN_OK);
    limits.restricted = false;
    qn_resp_feed(&r, second, sizeof second - 1);
    cr_assert_eq(qn_resp_next(&r, &req), QN_EAGAIN);
    cr_assert_eq(qn_resp_settle(&r), QN_OK);
    qn_resp_free(&r);
}

/* ---- segmentations
 * ----------------------------------------------------------- */

/* Streams that between them take every path of the reader. */
static const struct qn_slice corpus[] = {
#define STREAM(text)                                                           \
    {                                                                          \
        (const uint8_t *)(text), sizeof(text) - 1                              \
    }
    STREAM("*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n"
           "*2\r\n$3\r\nGET\r\n$1\r\na\r\n"
           "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n2\r\n"
           "*2\r\n$3\r\nGET\r\n$1\r\na\r\n"),
    STREAM("*12\r\n$4\r\nMSET\r\n$0\r\n\r\n$1\r\n1\r\n$2\r\n\r\n\r\n$1\r\n2\r\n"
           "$1\r\nc\r\n$1\r\n3\r\n$1\r\nd\r\n$1\r\n4\r\n$1\r\ne\r\n"
           "$10\r\n0123456789\r\n$1\r\nf\r\n*1\r\n$4\r\nPING\r\n"),
    STREAM("set a \"b \\x41\\n\" 'c\\'d'\r\n\r\nget a\n*-1\r\n*0\r\nPING\r\n"),
    STREAM("PING\r\n*2\r\n$4\r\nECHO\r\n$1\r\nx\r\n*1\r\n$-1\r\nPING\r\n"),
    STREAM("*1\r\n$4\r\nPING\r\n*2\r\n$4\r\nECHO\r\nhello\r\n"),
    STREAM("*1\r\n$4\r\nPING\r\n*9223372036854775808\r\n"),
    STREAM("GET / HTTP/1.0\r\nHost: x\r\n\r\nPING\r\n"),
    STREAM("PING\r\nECHO \"a\r\nPING\r\n"),
    STREAM("*1\rx$4\ryPINGab*1\r\n$2\r\nab\r\n*1\r\n$1\r\n"),
};

/* Every split point of every stream, in all modes, with the same tape. */
Test(resp, every_split_point_gives_the_same_requests)
{
    struct qn_buf whole = {0};
    struct qn_buf cut = {0};
    for (size_t i = 0; i < QN_ARRAY_COUNT(corpus); i++) {
        whole.len = 0;
        qn_resp_trace_record(&whole, &usual, QN_RESP_TRACE_ROOM, corpus[i].data,
                             corpus[i].len, qn_resp_chop_whole, NULL);
        for (size_t at = 1; at < corpus[i].len; at++) {
            for (int mode = 0; mode < QN_RESP_TRACE_MODES; mode++) {
                size_t split = at;
                cut.len = 0;
                qn_resp_trace_record(
                    &cut, &usual, (enum qn_resp_trace_mode)mode, corpus[i].data,
                    corpus[i].len, qn_resp_chop_cut_at, &split);
                cr_assert(cut.len == whole.len &&
                              memcmp(cut.data, whole.data, cut.len) == 0,
                          "stream %zu cut at %zu, mode %d", i, at, mode);
            }
        }
    }
    qn_buf_free(&whole);
    qn_buf_free(&cut);
}

/* A prefix of a stream gives a prefix of its requests. */
Test(resp, every_prefix_gives_a_prefix_of_the_requests)
{
    struct qn_buf whole = {0};
    struct qn_buf part = {0};
    for (size_t i = 0; i < QN_ARRAY_COUNT(corpus); i++) {
        whole.len = 0;
        qn_resp_trace_record(&whole, &usual, QN_RESP_TRACE_ROOM, corpus[i].data,
                             corpus[i].len, qn_resp_chop_whole, NULL);
        for (size_t n = 0; n < corpus[i].len; n++) {
            part.len = 0;
            qn_resp_trace_record(&part, &usual, QN_RESP_TRACE_FEED,
                                 corpus[i].data, n, qn_resp_chop_whole, NULL);
            cr_assert(part.len >= 5);
            bool waits = memcmp(part.data + part.len - 5, "held\n", 5) == 0 ||
                         memcmp(part.data + part.len - 5, "more\n", 5) == 0;
            size_t requests = waits ? part.len - 5 : part.len;
            cr_assert(memcmp(part.data, whole.data, requests) == 0,
                      "stream %zu, prefix of %zu", i, n);
        }
    }
    qn_buf_free(&whole);
    qn_buf_free(&part);
}

static uint64_t next_random(uint64_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x >> 16;
}

/* One random request; arguments of all magnitudes up to `max`. */
static void append_request(struct qn_buf *b, uint64_t *x, size_t max)
{
    char text[32];
    size_t argc = 1 + (next_random(x) % 8 == 0 ? next_random(x) % 40
                                               : next_random(x) % 4);
    int n = snprintf(text, sizeof text, "*%zu\r\n", argc);
    qn_buf_append(b, text, (size_t)n);
    for (size_t i = 0; i < argc; i++) {
        size_t bits = next_random(x) % 18;
        size_t len = (size_t)(next_random(x) & ((1U << bits) - 1)) % (max + 1);
        n = snprintf(text, sizeof text, "$%zu\r\n", len);
        qn_buf_append(b, text, (size_t)n);
        uint8_t *to = qn_buf_reserve(b, len + 2);
        for (size_t j = 0; j < len; j++) {
            to[j] = (uint8_t)(j * 31 + i);
        }
        memcpy(to + len, "\r\n", 2);
        b->len += len + 2;
    }
}

/* Large and small requests mixed, random chops against the whole stream. */
Test(resp, random_segmentations_give_the_same_requests, .timeout = 60)
{
    uint64_t x = 0x9e3779b97f4a7c15U;
    struct qn_buf stream = {0};
    struct qn_buf whole = {0};
    struct qn_buf cut = {0};
    for (int round = 0; round < 60; round++) {
        stream.len = whole.len = 0;
        for (int i = 0; i < 20; i++) {
            append_request(&stream, &x, round % 2 == 0 ? 200 : 131072);
            if (next_random(&x) % 4 == 0) {
                qn_buf_append(&stream, "ECHO \"a b\"\r\n", 12);
            }
        }
        qn_resp_trace_record(&whole, &usual, QN_RESP_TRACE_ROOM, stream.data,
                             stream.len, qn_resp_chop_whole, NULL);
        for (int mode = 0; mode < QN_RESP_TRACE_MODES; mode++) {
            cut.len = 0;
            qn_resp_trace_record(&cut, &usual, (enum qn_resp_trace_mode)mode,
                                 stream.data, stream.len, qn_resp_chop_random,
                                 &x);
            cr_assert(cut.len == whole.len &&
                          memcmp(cut.data, whole.data, cut.len) == 0,
                      "round %d, mode %d", round, mode);
        }
    }
    qn_buf_free(&stream);
    qn_buf_free(&whole);
    qn_buf_free(&cut);
}
