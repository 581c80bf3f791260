/*
 * A request is parsed once, in order. Its state between two chunks is five
 * numbers: where the request begins, how far it is parsed, how many elements it
 * has, how many have arrived, and the length of the current one. Nothing is
 * parsed twice, except a header line without its end (64 KiB at most).
 *
 * The bytes are in one of two places:
 *
 *     borrowed: input -> the caller's buffer (feed .. settle)
 *     held:     input -> held.data           (room, fed, ...)
 *
 *     input   |..taken..|*3 $3 SET $1 k $9999 xxxx|
 *                       ^begin                ^at ^input_len
 *
 * and `argv` points into them. When the bytes move (settle, growth, the shift
 * to the front before more is read), the arguments parsed so far move by the
 * same distance. Growth doubles, so that costs O(1) per argument in total.
 *
 * The common case costs no call: short decimal numbers are read digit by digit
 * in place. Signs, leading zeros, long numbers and incomplete lines go to
 * slow_header(), which finds the CR first and has the error texts.
 *
 * As in Redis, the byte after a CR is skipped unchecked, and so are the two
 * bytes after a bulk. A count or length line is judged when its CR has arrived,
 * or when 64 KiB have arrived without one. Every error is therefore independent
 * of the segmentation.
 */
#include "kvs/resp/resp.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "core/base/assert.h"
#include "kvs/resp/resp_internal.h"

#define LINE_MAX    ((size_t)64 * 1024) /* bytes before CR or LF, fixed */
#define FAST_DIGITS ((size_t)9) /* a number of 9 digits fits a uint32_t */
#define ARGS_SOME                                                              \
    64 /* at first: room for the announced arguments, at                       \
          most */
#define RESTRICTED_ARGS 10
#define RESTRICTED_BULK 16384

static const char bad_count[] = "ERR Protocol error: invalid multibulk length";
static const char bad_length[] = "ERR Protocol error: invalid bulk length";

/* ---- lines -------------------------------------------------------------- */

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static int fail_expected(struct qn_resp_reader *r, uint8_t got)
{
    char c = got == '\r' || got == '\n' ? ' ' : (char)got;
    qn_resp_fail(r, QN_EINVAL, r->error_own);
    snprintf(r->error_own, sizeof r->error_own,
             "ERR Protocol error: expected '$', got '%c'", c);
    return QN_EINVAL;
}

/* The line at `at`: `type`, a number, CR and one byte. @return QN_OK and
 * *value; QN_EAGAIN; QN_EINVAL. */
static int slow_header(struct qn_resp_reader *r, uint8_t type, int64_t *value)
{
    const uint8_t *line = r->input + r->at;
    size_t there = r->input_len - r->at;
    const uint8_t *cr = memchr(line, '\r', QN_MIN(there, LINE_MAX + 1));
    if (cr == NULL && there > LINE_MAX) {
        return qn_resp_fail(
            r, QN_EINVAL,
            type == '*' ? "ERR Protocol error: too big mbulk count string"
                        : "ERR Protocol error: too big bulk count string");
    }
    if (cr == NULL || cr + 1 == line + there) {
        return QN_EAGAIN;
    }
    if (*line != type) {
        return fail_expected(r, *line);
    }
    if (qn_resp_line_number(line + 1, cr, value) != QN_OK) {
        return qn_resp_fail(r, QN_EINVAL, type == '*' ? bad_count : bad_length);
    }
    r->at += (size_t)(cr + 2 - line);
    return QN_OK;
}

/* The same for the usual line: complete, and of few digits. */
static int header(struct qn_resp_reader *r, uint8_t type, int64_t *value)
{
    const uint8_t *line = r->input + r->at;
    size_t there = r->input_len - r->at;
    if (there < 4 || line[0] != type || !is_digit(line[1])) {
        return slow_header(r, type, value);
    }
    const uint8_t *last = line + QN_MIN(there - 2, FAST_DIGITS + 1);
    const uint8_t *p = line + 2;
    int64_t v = line[1] - '0';
    while (p < last && is_digit(*p)) {
        v = v * 10 + (*p++ - '0');
    }
    if (*p != '\r' || (line[1] == '0' && p != line + 2)) {
        return slow_header(r, type, value);
    }
    r->at += (size_t)(p + 2 - line);
    *value = v;
    return QN_OK;
}

/* ---- requests ----------------------------------------------------------- */

static bool grow_args(struct qn_resp_reader *r)
{
    uint32_t cap = QN_MAX(r->argv_cap * 2, QN_MIN(r->wanted, ARGS_SOME));
    struct qn_slice *old = r->argv == r->few ? NULL : r->argv;
    struct qn_slice *argv = realloc(old, cap * sizeof *argv);
    if (argv == NULL) {
        return false;
    }
    if (old == NULL) {
        memcpy(argv, r->few, sizeof r->few);
    }
    r->argv = argv;
    r->argv_cap = cap;
    return true;
}

static bool add_arg(struct qn_resp_reader *r, const uint8_t *data, size_t len)
{
    if (r->argc == r->argv_cap && !grow_args(r)) {
        return false;
    }
    r->argv[r->argc++] = (struct qn_slice){.data = data, .len = len};
    return true;
}

/* *N: begin an array request, or skip an empty one. */
static int read_count(struct qn_resp_reader *r)
{
    int64_t n = 0;
    int err = header(r, '*', &n);
    if (err != QN_OK || n <= 0) {
        return err;
    }
    if (n > r->limits->args_max) {
        return qn_resp_fail(r, QN_EINVAL, bad_count);
    }
    if (r->limits->restricted && n > RESTRICTED_ARGS) {
        return qn_resp_fail(
            r, QN_EINVAL,
            "ERR Protocol error: unauthenticated multibulk length");
    }
    r->wanted = (uint32_t)n;
    r->base = (uintptr_t)(r->input + r->begin);
    return QN_OK;
}

/* $L */
static int read_length(struct qn_resp_reader *r)
{
    int64_t len = 0;
    int err = header(r, '$', &len);
    if (err != QN_OK) {
        return err;
    }
    if (len < 0 || (uint64_t)len > r->limits->bulk_max) {
        return qn_resp_fail(r, QN_EINVAL, bad_length);
    }
    if (r->limits->restricted && len > RESTRICTED_BULK) {
        return qn_resp_fail(r, QN_EINVAL,
                            "ERR Protocol error: unauthenticated bulk length");
    }
    r->bulk_len = (size_t)len;
    return QN_OK;
}

/* The elements that are still wanted. */
static int read_args(struct qn_resp_reader *r)
{
    while (r->argc < r->wanted) {
        if (r->bulk_len == QN_RESP_NO_BULK) {
            int err = read_length(r);
            if (err != QN_OK) {
                return err;
            }
        }
        size_t len = r->bulk_len;
        if (r->input_len - r->at < len + 2) {
            return QN_EAGAIN;
        }
        if (!add_arg(r, r->input + r->at, len)) {
            return qn_resp_fail(r, QN_ENOMEM, NULL);
        }
        r->at += len + 2;
        r->bulk_len = QN_RESP_NO_BULK;
        if (len >= QN_RESP_LARGE) {
            r->is_large = true;
            r->large = QN_MAX(r->large, len);
        }
    }
    r->wanted = 0;
    return QN_OK;
}

/* What a browser sends that an attacker directs at this port. */
static bool is_http(struct qn_slice word)
{
    const char *text = (const char *)word.data;
    return (word.len == 4 && strncasecmp(text, "post", 4) == 0) ||
           (word.len == 5 && strncasecmp(text, "host:", 5) == 0);
}

static int split_line(struct qn_resp_reader *r, const uint8_t *p,
                      const uint8_t *end)
{
    r->line.len = 0;
    uint8_t *to = qn_buf_reserve(&r->line, (size_t)(end - p) + 1);
    if (to == NULL) {
        return qn_resp_fail(r, QN_ENOMEM, NULL);
    }
    size_t len = 0;
    int more = 0;
    while ((more = qn_resp_line_next(&p, end, to, &len)) > 0) {
        if (!add_arg(r, to, len)) {
            return qn_resp_fail(r, QN_ENOMEM, NULL);
        }
        to += len;
    }
    if (more < 0) {
        return qn_resp_fail(r, QN_EINVAL,
                            "ERR Protocol error: unbalanced quotes in request");
    }
    if (r->argc != 0 && is_http(r->argv[0])) {
        return qn_resp_fail(r, QN_EPERM, NULL);
    }
    return QN_OK;
}

/* An inline request: a line up to LF. */
static int read_line(struct qn_resp_reader *r)
{
    const uint8_t *line = r->input + r->at;
    size_t there = r->input_len - r->at;
    const uint8_t *lf = memchr(line, '\n', QN_MIN(there, LINE_MAX + 1));
    if (lf == NULL) {
        return there > LINE_MAX
                   ? qn_resp_fail(r, QN_EINVAL,
                                  "ERR Protocol error: too big inline request")
                   : QN_EAGAIN;
    }
    r->at += (size_t)(lf + 1 - line);
    return split_line(r, line, lf > line && lf[-1] == '\r' ? lf - 1 : lf);
}

/* ---- the reader --------------------------------------------------------- */

void qn_resp_init(struct qn_resp_reader *r, const struct qn_resp_limits *limits)
{
    QN_ASSERT(limits != NULL);
    *r = (struct qn_resp_reader){
        .limits = limits, .bulk_len = QN_RESP_NO_BULK, .taken = SIZE_MAX};
    r->argv = r->few;
    r->argv_cap = QN_RESP_ARGS_INLINE;
}

void qn_resp_free(struct qn_resp_reader *r)
{
    qn_resp_fail(r, QN_EINVAL, NULL);
}

/* Parse up to the end of a request. @return QN_OK: it is whole; else as
 * qn_resp_next. */
static int advance(struct qn_resp_reader *r)
{
    while (!r->whole) {
        int err = QN_OK;
        if (r->wanted == 0) {
            r->argc = 0;
            r->begin = r->at;
            if (r->at == r->input_len) {
                return QN_EAGAIN;
            }
            err = r->input[r->at] == '*' ? read_count(r) : read_line(r);
        }
        if (err == QN_OK && r->wanted != 0) {
            err = read_args(r);
        }
        if (err != QN_OK) {
            return err;
        }
        r->whole = r->argc != 0;
    }
    return QN_OK;
}

bool qn_resp_wants(struct qn_resp_reader *r)
{
    return r->error == 0 && advance(r) == QN_EAGAIN;
}

int qn_resp_next(struct qn_resp_reader *r, struct qn_resp_req *req)
{
    int err = r->error != 0 ? r->error : advance(r);
    if (err == QN_EAGAIN && r->begin == r->input_len) {
        qn_resp_drop(r);
    }
    if (err != QN_OK) {
        return err;
    }
    r->whole = false;
    r->taken = r->begin;
    r->begin = r->at;
    r->was_large = r->is_large;
    r->is_large = false;
    req->argv = r->argv;
    req->argc = r->argc;
    return QN_OK;
}

bool qn_resp_peek(struct qn_resp_reader *r, struct qn_resp_req *req)
{
    if (r->error != 0 || advance(r) != QN_OK) {
        return false;
    }
    *req = (struct qn_resp_req){.argv = r->argv, .argc = r->argc};
    return true;
}

void qn_resp_put_back(struct qn_resp_reader *r)
{
    QN_ASSERT(r->taken < r->at && r->wanted == 0);
    r->at = r->begin = r->taken;
    r->taken = SIZE_MAX;
    r->argc = 0;
}

const char *qn_resp_error(const struct qn_resp_reader *r)
{
    return r->error_text;
}
