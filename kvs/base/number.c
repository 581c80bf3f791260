/*
 * Integers are parsed strictly: a value is an integer only if writing it back
 * gives the same bytes. "007" and "+1" stay text, so OBJECT ENCODING and INCR
 * agree about what a number is. 19 digits always fit a uint64_t, so the last
 * comparison is the only overflow check.
 *
 * Floats are C's long double (80 bits on x86) through strtold and printf, as
 * in Redis: 17 decimals show what a double held, and 0.1 + 0.2 prints as 0.3.
 * All replicas run on one machine, so they agree to the bit.
 */
#include "kvs/base/number.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool qn_number_parse(struct qn_slice text, int64_t *out)
{
    const uint8_t *at = text.data;
    size_t digits = text.len;
    if (digits == 0 || digits > QN_NUMBER_CHARS) {
        return false;
    }
    bool negative = *at == '-';
    at += negative;
    digits -= negative;
    if (digits == 0 || digits == QN_NUMBER_CHARS ||
        (*at == '0' && (digits > 1 || negative))) {
        return false;
    }
    uint64_t v = 0;
    for (size_t i = 0; i < digits; i++) {
        unsigned digit = (unsigned)at[i] - '0';
        if (digit > 9) {
            return false;
        }
        v = v * 10 + digit;
    }
    if (v > (uint64_t)INT64_MAX + negative) {
        return false;
    }
    *out = negative ? (int64_t)(0 - v) : (int64_t)v;
    return true;
}

size_t qn_number_format(char *to, int64_t v)
{
    char digits[QN_NUMBER_CHARS];
    size_t n = 0;
    uint64_t rest = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    do {
        digits[n++] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest != 0);
    size_t at = 0;
    if (v < 0) {
        to[at++] = '-';
    }
    while (n > 0) {
        to[at++] = digits[--n];
    }
    return at;
}

bool qn_number_parse_float(struct qn_slice text, long double *out)
{
    char buf[QN_NUMBER_FLOAT_CHARS];
    if (text.len == 0 || text.len >= sizeof buf) {
        return false;
    }
    memcpy(buf, text.data, text.len);
    buf[text.len] = '\0';
    if (isspace((unsigned char)buf[0])) {
        return false;
    }
    char *end;
    errno = 0;
    long double v = strtold(buf, &end);
    bool lost = errno == ERANGE && (isinf(v) || v == 0);
    if ((size_t)(end - buf) != text.len || lost || isnan(v)) {
        return false;
    }
    *out = v;
    return true;
}

size_t qn_number_format_float(char *to, long double v)
{
    /* At most sign, 4933 digits, dot and 17 decimals: it always fits. */
    size_t n = (size_t)snprintf(to, QN_NUMBER_FLOAT_CHARS, "%.17Lf", v);
    while (to[n - 1] == '0') {
        n--;
    }
    if (to[n - 1] == '.') {
        n--;
    }
    if (n == 2 && to[0] == '-' && to[1] == '0') {
        to[0] = '0';
        n = 1;
    }
    return n;
}
