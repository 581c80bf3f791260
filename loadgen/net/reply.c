#include "loadgen/net/reply.h"

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"

#include <string.h>

/*
 * Three phases: the LINE that begins every element, the BODY of a bulk, and the
 * CRLF behind it. Aggregates are a stack of counters of missing elements.
 *
 * Lines and heads that lie in the input as a whole are used in place; only
 * those that are split between two inputs are collected in `kept`. So the
 * common case, many small replies per read, copies nothing.
 *
 * Elements of an aggregate are skipped: `out` describes the outermost reply.
 */

enum phase { LINE, BODY, CRLF_CR, CRLF_LF, BROKEN };

void qn_reply_sum_add(struct qn_reply_sum *s, const uint8_t *p, size_t len)
{
    uint64_t a = s->a;
    uint64_t b = s->b;
    for (size_t i = 0; i < len; i++) {
        a += p[i];
        b += a;
    }
    *s = (struct qn_reply_sum){a, b};
}

/* Result of a step: more bytes are needed, an element has ended, or invalid
 * bytes. */
enum step { MORE, ELEMENT, BAD };

/* Parse all of it as a decimal with an optional minus. */
static bool parse_number(const uint8_t *p, size_t len, int64_t *number)
{
    bool minus = len > 0 && p[0] == '-';
    size_t i = minus;
    if (i == len || len - i > 19) { /* 10^19 - 1 fits into 64 bits */
        return false;
    }
    uint64_t n = 0;
    for (; i < len; i++) {
        if (p[i] < '0' || p[i] > '9') {
            return false;
        }
        n = n * 10 + (uint64_t)(p[i] - '0');
    }
    if (n > (uint64_t)INT64_MAX) {
        return false;
    }
    *number = minus ? -(int64_t)n : (int64_t)n;
    return true;
}

static void describe(struct qn_reply_scanner *s, char type, int64_t number,
                     const uint8_t *head, size_t len)
{
    if (s->depth == 0) {
        s->reply = (struct qn_reply){
            .type = type,
            .number = number,
            .head = head,
            .head_len = QN_MIN(len, (size_t)QN_REPLY_HEAD_MAX),
        };
    }
}

static enum step begin_bulk(struct qn_reply_scanner *s, char type, int64_t len)
{
    if (len < 0) {
        describe(s, '_', 0, NULL, 0);
        return len == -1 ? ELEMENT : BAD;
    }
    describe(s, type, len, NULL, 0);
    s->body_left = (uint64_t)len;
    s->top = s->depth == 0;
    s->phase = len > 0 ? BODY : CRLF_CR;
    return MORE;
}

static enum step begin_aggregate(struct qn_reply_scanner *s, char type,
                                 int64_t count)
{
    bool aside = type == '>' || type == '|';
    if (count < 0) {
        describe(s, '_', 0, NULL, 0);
        return count == -1 && !aside ? ELEMENT : BAD;
    }
    if (!aside) {
        describe(s, type, count, NULL, 0);
    }
    if (count == 0) {
        return aside ? MORE : ELEMENT;
    }
    if (s->depth == QN_REPLY_DEPTH_MAX) {
        return BAD;
    }
    uint64_t per = type == '%' || type == '|' ? 2 : 1;
    s->frame[s->depth].left = (uint64_t)count * per;
    s->frame[s->depth].aside = aside;
    s->depth++;
    return MORE;
}

/* A whole line, without its CRLF. */
static enum step take_line(struct qn_reply_scanner *s, const uint8_t *line,
                           size_t len)
{
    if (len == 0) {
        return BAD;
    }
    char type = (char)line[0];
    int64_t number = 0;
    switch (type) {
    case '+':
    case '-':
    case ',':
    case '#':
    case '(':
        describe(s, type, 0, line + 1, len - 1);
        return ELEMENT;
    case '_':
        describe(s, type, 0, NULL, 0);
        return len == 1 ? ELEMENT : BAD;
    default:
        break;
    }
    if (!parse_number(line + 1, len - 1, &number)) {
        return BAD;
    }
    switch (type) {
    case ':':
        describe(s, type, number, line + 1, len - 1);
        return ELEMENT;
    case '$':
    case '=':
    case '!':
        return begin_bulk(s, type, number);
    case '*':
    case '~':
    case '%':
    case '>':
    case '|':
        return begin_aggregate(s, type, number);
    default:
        return BAD;
    }
}

static void keep(struct qn_reply_scanner *s, const uint8_t *p, size_t len)
{
    size_t n = QN_MIN(len, sizeof s->kept - s->kept_len);
    memcpy(s->kept + s->kept_len, p, n);
    s->kept_len += (uint32_t)n;
}

static bool is_one_of(uint8_t byte, const char *types)
{
    return byte != '\0' && strchr(types, byte) != NULL;
}

/* Can `len` bytes, beginning with *p, be the start of a line? Without this
 * check, invalid bytes without an end of line would be waited for. */
static bool may_begin_line(const uint8_t *p, size_t len)
{
    enum { NUMBER_LINE_MAX = 1 + 1 + 19 + 1 }; /* type, sign, digits, CR */
    return is_one_of(*p, "+-,#(") ||
           (is_one_of(*p, "_:$=!*~%>|") && len <= NUMBER_LINE_MAX);
}

static enum step scan_line(struct qn_reply_scanner *s, const uint8_t *p,
                           size_t len, size_t *used)
{
    const uint8_t *lf = memchr(p, '\n', len);
    *used = lf == NULL ? len : (size_t)(lf - p) + 1;
    uint8_t before = s->last;
    if (lf == NULL) {
        if (!may_begin_line(s->kept_len > 0 ? s->kept : p, s->kept_len + len)) {
            return BAD;
        }
        keep(s, p, len);
        s->last = p[len - 1];
        return MORE;
    }
    if ((lf == p ? before : lf[-1]) != '\r') {
        return BAD;
    }
    s->last = 0;
    len = *used;
    if (s->kept_len > 0) {
        keep(s, p, len);
        p = s->kept;
        len = s->kept_len;
        s->kept_len = 0;
    }
    /* If `kept` has clipped the line, two bytes of text are removed instead of
     * the CRLF; both are beyond the end of the head. */
    return take_line(s, p, len - 2);
}

/* The head is used in place only if the reply ends in this input, too. */
static void scan_body(struct qn_reply_scanner *s, const uint8_t *p, size_t len,
                      size_t *used)
{
    uint64_t n = QN_MIN(s->body_left, (uint64_t)len);
    *used = (size_t)n;
    if (s->top && s->sums) {
        qn_reply_sum_add(&s->reply.sum, p, (size_t)n);
    }
    if (s->top) {
        size_t want =
            (size_t)QN_MIN((uint64_t)s->reply.number, QN_REPLY_HEAD_MAX);
        s->reply.head_len = want;
        if (n == (uint64_t)s->reply.number && len - n >= 2) {
            s->reply.head = p;
        } else if (s->kept_len < want) {
            keep(s, p, QN_MIN((size_t)n, want - s->kept_len));
            s->reply.head = s->kept;
        }
    }
    s->body_left -= n;
    if (s->body_left == 0) {
        s->phase = CRLF_CR;
    }
}

static enum step step(struct qn_reply_scanner *s, const uint8_t *p, size_t len,
                      size_t *used)
{
    *used = 1;
    switch (s->phase) {
    case LINE:
        return scan_line(s, p, len, used);
    case BODY:
        scan_body(s, p, len, used);
        return MORE;
    case CRLF_CR:
        s->phase = CRLF_LF;
        return *p == '\r' ? MORE : BAD;
    case CRLF_LF:
        s->phase = LINE;
        s->kept_len = 0; /* the bytes stay, since the head may point to them */
        return *p == '\n' ? ELEMENT : BAD;
    default:
        return BAD;
    }
}

/* Close an element, and the aggregates that end with it. True: the reply has
 * ended. */
static bool close_element(struct qn_reply_scanner *s)
{
    while (s->depth > 0) {
        if (--s->frame[s->depth - 1].left > 0) {
            return false;
        }
        s->depth--;
        if (s->frame[s->depth].aside) {
            return false;
        }
    }
    return true;
}

int qn_reply_scan(struct qn_reply_scanner *s, const uint8_t *data, size_t len,
                  size_t *used, struct qn_reply *out)
{
    size_t at = 0;
    while (at < len) {
        size_t n;
        enum step did = step(s, data + at, len - at, &n);
        QN_DASSERT(n > 0 && n <= len - at);
        at += n;
        if (did == BAD) {
            s->phase = BROKEN;
            *used = len;
            return QN_ECORRUPT;
        }
        if (did == ELEMENT && close_element(s)) {
            *used = at;
            *out = s->reply;
            return 1;
        }
    }
    *used = len;
    return 0;
}
