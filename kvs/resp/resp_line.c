/*
 * A line holds either arguments or a number.
 *
 * Inline requests are what a user types into telnet. A line is split by the
 * rules of Redis:
 *
 *   - blanks separate; several count as one. Vertical tab and form feed are
 *     skipped before an argument, but do not end one.
 *   - "..." may begin anywhere in an argument and knows \n \r \t \b \a \xHH;
 *     a backslash before any other byte stands for that byte.
 *   - '...' knows \' only.
 *   - a closing quote ends its argument: a blank or the end must follow it.
 *
 * NUL is a byte like any other (Redis never finds the end of such a line).
 *
 * An argument is never longer than its spelling, so the caller needs one
 * buffer of the line's length for all of them.
 */
#include <stdbool.h>

#include "kvs/resp/resp_internal.h"

#define INT64_DIGITS 19 /* always fit a uint64_t */

static bool is_blank(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool ends_word(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* @return 0 to 15, or -1. */
static int hex_value(uint8_t c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    uint8_t lower = c | 0x20;
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

static uint8_t escape_value(uint8_t c)
{
    switch (c) {
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    case 'b':
        return '\b';
    case 'a':
        return '\a';
    default:
        return c;
    }
}

/* One byte of a "..." string at p, which is a backslash.
 * @return the first byte after its spelling. */
static const uint8_t *unescape(const uint8_t *p, const uint8_t *end,
                               uint8_t *to)
{
    if (end - p >= 4 && p[1] == 'x') {
        int high = hex_value(p[2]);
        int low = hex_value(p[3]);
        if (high >= 0 && low >= 0) {
            *to = (uint8_t)(high * 16 + low);
            return p + 4;
        }
    }
    if (end - p >= 2) {
        *to = escape_value(p[1]);
        return p + 2;
    }
    *to = '\\';
    return p + 1;
}

/* The inside of a quoted string; p is behind the opening quote.
 * @return the first byte after the closing quote; NULL: there is none, or
 * something is glued to it. */
static const uint8_t *unquote(const uint8_t *p, const uint8_t *end,
                              uint8_t quote, uint8_t **to)
{
    while (p < end && *p != quote) {
        if (quote == '"' && *p == '\\') {
            p = unescape(p, end, (*to)++);
        } else if (quote == '\'' && end - p >= 2 && p[0] == '\\' &&
                   p[1] == '\'') {
            *(*to)++ = '\'';
            p += 2;
        } else {
            *(*to)++ = *p++;
        }
    }
    if (p == end || (p + 1 < end && !is_blank(p[1]))) {
        return NULL;
    }
    return p + 1;
}

int qn_resp_line_next(const uint8_t **at, const uint8_t *end, uint8_t *to,
                      size_t *len)
{
    const uint8_t *p = *at;
    const uint8_t *begin = to;
    while (p < end && is_blank(*p)) {
        p++;
    }
    if (p == end) {
        *at = p;
        return 0;
    }
    while (p < end && !ends_word(*p)) {
        if (*p == '"' || *p == '\'') {
            p = unquote(p + 1, end, *p, &to);
            if (p == NULL) {
                return QN_EINVAL;
            }
            break;
        }
        *to++ = *p++;
    }
    *at = p;
    *len = (size_t)(to - begin);
    return 1;
}

int qn_resp_line_number(const uint8_t *at, const uint8_t *end, int64_t *value)
{
    bool negative = at < end && *at == '-';
    at += negative;
    if (at == end || end - at > INT64_DIGITS) {
        return QN_EINVAL;
    }
    if (*at == '0' && (negative || end - at > 1)) {
        return QN_EINVAL;
    }
    uint64_t v = 0;
    for (; at < end; at++) {
        if (*at < '0' || *at > '9') {
            return QN_EINVAL;
        }
        v = v * 10 + (uint64_t)(*at - '0');
    }
    if (v > (uint64_t)INT64_MAX + negative) {
        return QN_EINVAL;
    }
    *value = (int64_t)(negative ? 0 - v : v);
    return QN_OK;
}
