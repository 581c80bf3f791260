/*
 * Tables of numbers.
 *
 * 256 cores are 65 280 rows with two costs each, and all of it must be in
 * memory in a few milliseconds. strtod needs a terminator, the locale and, with
 * glibc, about 60 ns per number; so numbers are read here by the fast path of
 * Clinger ("How to read floating point numbers accurately", 1990): up to 15
 * digits and a power of ten up to 22 are both exact doubles, and one division
 * or multiplication of exact numbers rounds once. What does not fit goes to
 * strtod, so that the result is always the nearest double.
 */
#include "core/machine/csv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/machine/machine.h"

#define DIGITS_EXACT 15    /* 10^15 < 2^53 */
#define POWER_EXACT  22    /* 10^22 = 5^22 * 2^22, 5^22 < 2^53 */
#define NUMBER_MAX   63u   /* characters of a number that is still read */
#define EXPONENT_MAX 10000 /* larger ones are zero or too large anyway */

void qn_csv_init(struct qn_csv *c, const char *file, const char *bytes,
                 size_t len, struct qn_parse_error *parse_error)
{
    *c = (struct qn_csv){.file = file,
                         .at = bytes,
                         .eol = bytes,
                         .next = bytes,
                         .end = bytes + len,
                         .parse_error = parse_error};
}

int qn_csv_line(struct qn_csv *c)
{
    if (c->next == c->end) {
        return 0;
    }
    c->line++;
    c->column = 0;
    c->at = c->next;
    const char *nl = memchr(c->at, '\n', (size_t)(c->end - c->at));
    if (nl == NULL) {
        return qn_parse_error_set(c->parse_error, c->file, c->line, NULL,
                                  "the last line has no end, so it may be cut; "
                                  "copy the file again, or end the line");
    }
    c->next = nl + 1;
    c->eol = nl > c->at && nl[-1] == '\r' ? nl - 1 : nl;
    return 1;
}

int qn_csv_row(struct qn_csv *c)
{
    int got = 0;
    do {
        got = qn_csv_line(c);
    } while (got == 1 && (c->at == c->eol || *c->at == '#'));
    return got;
}

int qn_csv_header(struct qn_csv *c, const char *names)
{
    int got = qn_csv_row(c);
    if (got < 0) {
        return got;
    }
    if (got == 0 || qn_csv_rest(c) != strlen(names) ||
        memcmp(c->at, names, strlen(names)) != 0) {
        return qn_parse_error_set(c->parse_error, c->file, QN_MAX(c->line, 1u),
                                  "header", "expected the line \"%s\"", names);
    }
    return QN_OK;
}

static bool digit(const char *p, const char *end)
{
    return p < end && *p >= '0' && *p <= '9';
}

/* The comma before every field but the first. */
static int begin_field(struct qn_csv *c, const char *name)
{
    if (c->column++ == 0) {
        return QN_OK;
    }
    if (c->at == c->eol || *c->at != ',') {
        return qn_parse_error_set(c->parse_error, c->file, c->line, name,
                                  "missing; every row needs all fields of the "
                                  "header, separated by commas");
    }
    c->at++;
    return QN_OK;
}

/* Characters up to the next comma, for the fault's text. */
static int field_length(const struct qn_csv *c, const char *from)
{
    int n = 0;
    while (from + n < c->eol && from[n] != ',' && n < 24) {
        n++;
    }
    return n;
}

static bool field_ends(const struct qn_csv *c, const char *p)
{
    return p == c->eol || *p == ',';
}

int qn_csv_u32(struct qn_csv *c, const char *name, uint32_t max, uint32_t *v)
{
    int err = begin_field(c, name);
    if (err != QN_OK) {
        return err;
    }
    const char *p = c->at;
    uint64_t x = 0;
    while (digit(p, c->eol) && x <= max) {
        x = x * 10 + (uint64_t)(*p++ - '0');
    }
    if (p == c->at || x > max || !field_ends(c, p)) {
        return qn_parse_error_set(c->parse_error, c->file, c->line, name,
                                  "\"%.*s\" is not a whole number from 0 to %u",
                                  field_length(c, c->at), c->at, max);
    }
    c->at = p;
    *v = (uint32_t)x;
    return QN_OK;
}

static const char *digits(const char *p, const char *end, uint64_t *mantissa,
                          int *count)
{
    while (digit(p, end)) {
        if (*count < DIGITS_EXACT) {
            *mantissa = *mantissa * 10 + (uint64_t)(*p - '0');
        }
        *count += *mantissa != 0 || *count > 0; /* leading zeros are free */
        p++;
    }
    return p;
}

static const char *exponent(const char *p, const char *end, int *e)
{
    if (p == end || (*p != 'e' && *p != 'E')) {
        return p;
    }
    const char *q = p + 1;
    bool negative = q < end && *q == '-';
    q += q < end && (*q == '-' || *q == '+');
    if (!digit(q, end)) {
        return NULL;
    }
    int x = 0;
    for (; digit(q, end); q++) {
        x = QN_MIN(x * 10 + (*q - '0'), EXPONENT_MAX);
    }
    *e += negative ? -x : x;
    return q;
}

/* Numbers that the fast path cannot round. */
static const char *slow_parse(const char *p, const char *end, double *v)
{
    char copy[NUMBER_MAX + 1];
    size_t n = (size_t)(end - p);
    if (n > NUMBER_MAX) {
        return NULL;
    }
    memcpy(copy, p, n);
    copy[n] = '\0';
    char *stop = NULL;
    *v = strtod(copy, &stop);
    return stop == copy + n ? end : NULL;
}

const char *qn_decimal_parse(const char *p, const char *end, double *v)
{
    static const double power[POWER_EXACT + 1] = {
        1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
        1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    uint64_t mantissa = 0;
    int count = 0, e = 0;
    const char *q = digits(p, end, &mantissa, &count);
    const char *start = q;
    bool any = q > p;
    if (q < end && *q == '.') {
        q = digits(q + 1, end, &mantissa, &count);
        any = any || q > start + 1;
        e = -(int)(q - start - 1);
    }
    if (!any) {
        return NULL;
    }
    q = exponent(q, end, &e);
    if (q == NULL) {
        return NULL;
    }
    if (count > DIGITS_EXACT || e > POWER_EXACT || e < -POWER_EXACT) {
        return slow_parse(p, q, v);
    }
    double x = (double)mantissa;
    *v = e < 0 ? x / power[-e] : x * power[e];
    return q;
}

int qn_csv_cost(struct qn_csv *c, const char *name, double *v)
{
    int err = begin_field(c, name);
    if (err != QN_OK) {
        return err;
    }
    double x = 0;
    const char *p = qn_decimal_parse(c->at, c->eol, &x);
    /* Written so that a NaN fails too. */
    if (p == NULL || !field_ends(c, p) || !(x > 0 && x <= QN_COST_MAX)) {
        return qn_parse_error_set(
            c->parse_error, c->file, c->line, name,
            "\"%.*s\" is not a cost; write cycles as a decimal "
            "number above 0 and up to 1e12",
            field_length(c, c->at), c->at);
    }
    c->at = p;
    *v = x;
    return QN_OK;
}

int qn_csv_done(struct qn_csv *c)
{
    if (c->at == c->eol) {
        return QN_OK;
    }
    return qn_parse_error_set(c->parse_error, c->file, c->line, NULL,
                              "too many fields; the header has %u", c->column);
}

static int read_failed(const char *path, int err,
                       struct qn_parse_error *parse_error)
{
    (void)qn_parse_error_set(parse_error, path, 0, NULL, "%s", strerror(err));
    return err == ENOENT ? QN_ENOENT : QN_EIO;
}

static int read_all(FILE *f, const char *path, size_t max, char **bytes,
                    size_t *len, struct qn_parse_error *parse_error)
{
    struct stat st;
    if (fstat(fileno(f), &st) != 0 || S_ISDIR(st.st_mode)) {
        return read_failed(path, EISDIR, parse_error);
    }
    /* The size is a first guess: pipes have none. */
    size_t cap = (size_t)QN_MAX(st.st_size, 4095) + 1, n = 0;
    char *buf = NULL;
    for (;;) {
        char *more = cap > max + 1 ? NULL : realloc(buf, cap);
        if (more == NULL) {
            free(buf);
            (void)qn_parse_error_set(
                parse_error, path, 0, NULL,
                "larger than %zu bytes, the most that is read", max);
            return cap > max + 1 ? QN_EMSGSIZE : QN_ENOMEM;
        }
        buf = more;
        n += fread(buf + n, 1, cap - n, f);
        if (n < cap) {
            break;
        }
        cap = cap < max && cap * 2 > max ? max + 1 : cap * 2;
    }
    if (ferror(f)) {
        free(buf);
        return read_failed(path, EIO, parse_error);
    }
    *bytes = buf;
    *len = n;
    return QN_OK;
}

int qn_file_read(const char *path, size_t max, char **bytes, size_t *len,
                 struct qn_parse_error *parse_error)
{
    FILE *f = fopen(path, "rbe");
    if (f == NULL) {
        return read_failed(path, errno, parse_error);
    }
    int err = read_all(f, path, max, bytes, len, parse_error);
    (void)fclose(f);
    return err;
}
