#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/net/reply.h"
#include "tests/support/test.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Each reply becomes one line of text, so that whole streams can be compared:
 * "type number 'head'".
 */

struct transcript {
    char text[8192];
    size_t len;
    int err; /* the first reply */
};

static void feed(struct qn_reply_scanner *s, const char *bytes, size_t len,
                 struct transcript *t)
{
    /* An exact-size copy: reads past its end are detected, and so is a head
     * that points into released input. */
    uint8_t *input = malloc(len > 0 ? len : 1);
    memcpy(input, bytes, len);
    size_t at = 0;
    while (at < len && t->err == QN_OK) {
        struct qn_reply r;
        size_t used = 0;
        int got = qn_reply_scan(s, input + at, len - at, &used, &r);
        cr_assert(used > 0 && used <= len - at);
        at += used;
        if (got == 1) {
            int n = snprintf(t->text + t->len, sizeof t->text - t->len,
                             "%c %" PRId64 " '%.*s'\n", r.type, r.number,
                             (int)r.head_len, (const char *)r.head);
            t->len += (size_t)n;
        } else {
            cr_assert_eq(used, got == 0 ? len - (at - used) : used);
            t->err = got;
        }
    }
    memset(input, '#', len);
    free(input);
}

static void scan(const char *bytes, size_t len, struct transcript *t)
{
    struct qn_reply_scanner s = {0};
    *t = (struct transcript){.err = QN_OK};
    feed(&s, bytes, len, t);
}

static void expect(const char *bytes, const char *text)
{
    static struct transcript t;
    scan(bytes, strlen(bytes), &t);
    cr_assert_eq(t.err, QN_OK, "%s: error %d", bytes, t.err);
    cr_assert_str_eq(t.text, text, "%s: %s", bytes, t.text);
}

Test(reply, the_types_of_resp2)
{
    expect("+OK\r\n", "+ 0 'OK'\n");
    expect("+\r\n", "+ 0 ''\n");
    expect("-ERR no\r\n", "- 0 'ERR no'\n");
    expect(":42\r\n", ": 42 '42'\n");
    expect(":-1\r\n", ": -1 '-1'\n");
    expect(":9223372036854775807\r\n",
           ": 9223372036854775807 '9223372036854775807'\n");
    expect("$5\r\nhello\r\n", "$ 5 'hello'\n");
    expect("$0\r\n\r\n", "$ 0 ''\n");
    expect("$2\r\n\r\n\r\n", "$ 2 '\r\n'\n");
    expect("$-1\r\n", "_ 0 ''\n");
    expect("*-1\r\n", "_ 0 ''\n");
    expect("*0\r\n", "* 0 ''\n");
    expect("*2\r\n$1\r\na\r\n:2\r\n", "* 2 ''\n");
}

Test(reply, the_types_of_resp3)
{
    expect("_\r\n", "_ 0 ''\n");
    expect("#t\r\n", "# 0 't'\n");
    expect(",1.5\r\n", ", 0 '1.5'\n");
    expect("(123456789012345678901234567890\r\n",
           "( 0 '123456789012345678901234567890'\n");
    expect("=7\r\ntxt:abc\r\n", "= 7 'txt:abc'\n");
    expect("!6\r\nERR no\r\n", "! 6 'ERR no'\n");
    expect("%1\r\n+a\r\n*1\r\n:1\r\n", "% 1 ''\n");
    expect("~2\r\n:1\r\n:2\r\n", "~ 2 ''\n");
}

Test(reply, pushes_and_attributes_are_not_replies)
{
    expect(">2\r\n+message\r\n$1\r\na\r\n+OK\r\n", "+ 0 'OK'\n");
    expect(">0\r\n+OK\r\n", "+ 0 'OK'\n");
    expect("|1\r\n+ttl\r\n:5\r\n$1\r\na\r\n", "$ 1 'a'\n");
    expect("*2\r\n|1\r\n+ttl\r\n:5\r\n:1\r\n:2\r\n+OK\r\n",
           "* 2 ''\n+ 0 'OK'\n");
}

Test(reply, aggregates_end_with_their_last_element_at_any_depth)
{
    expect("*2\r\n*2\r\n:1\r\n*0\r\n*1\r\n*1\r\n$1\r\nx\r\n+OK\r\n",
           "* 2 ''\n+ 0 'OK'\n");
    expect("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
           "* 1 ''\n");
}

Test(reply, one_level_too_deep_is_refused)
{
    static const char deep[] =
        "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n"
        "*1\r\n:1\r\n";
    static struct transcript t;
    scan(deep, sizeof deep - 1, &t);
    cr_assert_eq(t.err, QN_ECORRUPT);
}

/* A reply with a head of `len` bytes, as a bulk or as a line. */
static size_t long_reply(char *to, size_t size, bool bulk, size_t len)
{
    int n =
        bulk ? snprintf(to, size, "$%zu\r\n", len) : snprintf(to, size, "-");
    for (size_t i = 0; i < len; i++) {
        to[n++] = (char)('a' + i % 26);
    }
    return (size_t)n +
           (size_t)snprintf(to + n, size - (size_t)n, "\r\n+OK\r\n");
}

Test(reply, heads_are_cut_at_their_maximum_for_every_split)
{
    static char bytes[1024];
    static struct transcript want;
    static struct transcript got;
    for (size_t len = QN_REPLY_HEAD_MAX - 3; len < QN_REPLY_HEAD_MAX + 6;
         len++) {
        for (int bulk = 0; bulk < 2; bulk++) {
            size_t n = long_reply(bytes, sizeof bytes, bulk == 1, len);
            scan(bytes, n, &want);
            size_t head = QN_MIN(len, (size_t)QN_REPLY_HEAD_MAX);
            cr_assert_eq(want.err, QN_OK);
            cr_assert(strncmp(strchr(want.text, '\'') + 1, strchr(bytes, 'a'),
                              head) == 0);
            cr_assert_eq(strchr(want.text, '\'')[head + 1], '\'');
            for (size_t cut = 0; cut <= n; cut++) {
                struct qn_reply_scanner s = {0};
                got = (struct transcript){.err = QN_OK};
                feed(&s, bytes, cut, &got);
                feed(&s, bytes + cut, n - cut, &got);
                cr_assert_str_eq(got.text, want.text, "%zu bytes, cut at %zu",
                                 len, cut);
            }
        }
    }
}

static const char stream[] =
    "+OK\r\n$16\r\n0123456789abcdef\r\n$-1\r\n:7\r\n-ERR bad\r\n$0\r\n\r\n"
    "*3\r\n$1\r\na\r\n$-1\r\n*2\r\n:1\r\n+x\r\n>1\r\n+push\r\n%1\r\n+k\r\n_\r\n"
    "|1\r\n+a\r\n:1\r\n=5\r\ntxt:a\r\n#f\r\n*0\r\n+END\r\n";

static const char stream_text[] =
    "+ 0 'OK'\n$ 16 '0123456789abcdef'\n_ 0 ''\n: 7 '7'\n- 0 'ERR bad'\n"
    "$ 0 ''\n* 3 ''\n% 1 ''\n= 5 'txt:a'\n# 0 'f'\n* 0 ''\n+ 0 'END'\n";

/* All cuts of the stream into three parts, and into equal pieces of each
 * size. */
Test(reply, every_split_of_a_stream_gives_the_same_replies)
{
    static struct transcript t;
    size_t len = sizeof stream - 1;
    for (size_t a = 0; a <= len; a++) {
        for (size_t b = a; b <= len; b++) {
            struct qn_reply_scanner s = {0};
            t = (struct transcript){.err = QN_OK};
            feed(&s, stream, a, &t);
            feed(&s, stream + a, b - a, &t);
            feed(&s, stream + b, len - b, &t);
            cr_assert_str_eq(t.text, stream_text, "cuts at %zu and %zu", a, b);
        }
    }
    for (size_t piece = 1; piece <= len; piece++) {
        struct qn_reply_scanner s = {0};
        t = (struct transcript){.err = QN_OK};
        for (size_t at = 0; at < len; at += piece) {
            feed(&s, stream + at, QN_MIN(piece, len - at), &t);
        }
        cr_assert_str_eq(t.text, stream_text, "pieces of %zu", piece);
    }
}

/* The sum of a bulk is the same for every split, and differs from that of
 * another bulk. */
Test(reply, a_bulk_has_the_sum_of_its_bytes_if_asked_for)
{
    char bytes[320];
    int len = snprintf(bytes, sizeof bytes, "$300\r\n%0300d\r\n", 7);
    struct qn_reply_sum want = {0, 0};
    struct qn_reply r;
    size_t used;
    qn_reply_sum_add(&want, (const uint8_t *)strstr(bytes, "\r\n") + 2, 300);
    for (int cut = 0; cut < len; cut++) {
        struct qn_reply_scanner s = {.sums = true};
        const uint8_t *p = (const uint8_t *)bytes;
        cr_assert_eq(qn_reply_scan(&s, p, (size_t)cut, &used, &r), 0);
        cr_assert_eq(qn_reply_scan(&s, p + cut, (size_t)(len - cut), &used, &r),
                     1);
        cr_assert(r.sum.a == want.a && r.sum.b == want.b, "cut at %d", cut);
        s.sums = false;
        cr_assert_eq(qn_reply_scan(&s, p, (size_t)len, &used, &r), 1);
        cr_assert_eq(r.sum.a, 0);
    }
}

static const char *const malformed[] = {
    "\r\n",
    "OK\r\n",
    "+OK\n",
    "\n",
    "$x\r\n",
    "$\r\n",
    "$-2\r\n",
    "*-2\r\n",
    ">-1\r\n",
    ":\r\n",
    ":1a\r\n",
    ":-\r\n",
    ":+1\r\n",
    "_x\r\n",
    "$1\r\nab\r\n",
    "$1\r\na\n",
    "$1\r\na\rx",
    ":9223372036854775808\r\n",
    "?5\r\n",
    "$99999999999999999999\r\n",
    /* No end of line: the parser does not wait for it. */
    "ggggggggg",
    "\377g",
    ":-123456789012345678901",
    "+OK\r\nggg",
};

Test(reply, invalid_input_is_refused_for_every_split_and_permanently)
{
    static struct transcript t;
    for (size_t i = 0; i < QN_ARRAY_COUNT(malformed); i++) {
        size_t len = strlen(malformed[i]);
        for (size_t cut = 0; cut <= len; cut++) {
            struct qn_reply_scanner s = {0};
            t = (struct transcript){.err = QN_OK};
            feed(&s, malformed[i], cut, &t);
            feed(&s, malformed[i] + cut, len - cut, &t);
            cr_assert_eq(t.err, QN_ECORRUPT, "case %zu, cut at %zu", i, cut);
            t.err = QN_OK;
            feed(&s, "+OK\r\n", 5, &t);
            cr_assert_eq(t.err, QN_ECORRUPT, "case %zu is not sticky", i);
        }
    }
}
