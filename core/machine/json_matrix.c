/*
 * Four matrices of 256 cores are 260 000 numbers. A JSON parser makes an object
 * of each and asks strtod, 80 ms in all, which is most of what a plan may take;
 * read as what they are, rows of numbers, they take 5. So the members that are
 * matrices are parsed here and cut out, and a parser gets the rest.
 *
 * Only what is beyond doubt is taken. On the smallest deviation (a negative
 * number, a ragged row, a word) the matrix stays where it is: the parser and
 * the reader behind it then say what is wrong and where, and nothing is said
 * twice. A valid value is replaced by a valid value where strings and brackets
 * before it are those of JSON, so the rest is right or wrong as the whole was.
 *
 * Newlines of what is cut out stay, so that lines keep their numbers.
 */
#include "core/machine/json_matrix_internal.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/machine/csv.h"
#include "core/machine/json_line_internal.h"
#include "core/machine/machine.h"

struct reader {
    const char *at;
    const char *end;
};

const char *qn_json_matrix_key(uint32_t i)
{
    static const char *const keys[QN_JSON_MATRICES] = {"send", "receive",
                                                       "round_trip", "level"};
    QN_ASSERT(i < QN_JSON_MATRICES);
    return keys[i];
}

static bool is_digit(const struct reader *r, const char *p)
{
    return p < r->end && *p >= '0' && *p <= '9';
}

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/* Behind blanks, take c if it is there. */
static bool take(struct reader *r, char c)
{
    while (r->at < r->end && is_space(*r->at)) {
        r->at++;
    }
    if (r->at == r->end || *r->at != c) {
        return false;
    }
    r->at++;
    return true;
}

/* A number as JSON writes it, which is stricter than decimals are: no zeros
 * before it, and digits on both sides of the point. */
static bool take_number(struct reader *r, double *x)
{
    while (r->at < r->end && is_space(*r->at)) {
        r->at++;
    }
    const char *p = r->at;
    while (is_digit(r, p)) {
        p++;
    }
    if (p == r->at || (*r->at == '0' && p - r->at > 1) ||
        (p < r->end && *p == '.' && !is_digit(r, p + 1))) {
        return false;
    }
    p = qn_decimal_parse(r->at, r->end, x);
    r->at = p != NULL ? p : r->at;
    return p != NULL;
}

/* The row u of m, whose length is known. */
static bool take_row(struct reader *r, struct qn_json_matrix *m, uint32_t u)
{
    double *row = m->cost + (size_t)u * m->n;
    bool ok = take(r, '[');
    for (uint32_t v = 0; ok && v < m->n; v++) {
        ok = (v == 0 || take(r, ',')) && take_number(r, &row[v]) &&
             (u == v ? !(row[v] > 0) : row[v] > 0 && row[v] <= QN_COST_MAX);
    }
    return ok && take(r, ']');
}

/* Numbers of the first row: commas up to the end of it, and one more. */
static uint32_t count_row(struct reader r)
{
    uint32_t n = 1;
    bool ok = take(&r, '[');
    for (; ok && r.at < r.end && *r.at != ']' && n <= QN_CORES_MAX; r.at++) {
        n += *r.at == ',';
    }
    return n;
}

/* At a value: take it if it is a matrix, then r is behind it. @return QN_OK,
 * also if it is none, or QN_ENOMEM. */
static int take_matrix(struct reader *r, struct qn_json_matrix *out)
{
    struct reader w = *r;
    if (!take(&w, '[')) {
        return QN_OK;
    }
    struct qn_json_matrix m = {.n = count_row(w)};
    if (m.n > QN_CORES_MAX) {
        return QN_OK;
    }
    m.cost = malloc((size_t)m.n * m.n * sizeof *m.cost);
    if (m.cost == NULL) {
        return QN_ENOMEM;
    }
    bool ok = true;
    for (uint32_t u = 0; ok && u < m.n; u++) {
        ok = (u == 0 || take(&w, ',')) && take_row(&w, &m, u);
    }
    if (!ok || !take(&w, ']')) {
        free(m.cost);
        return QN_OK;
    }
    *out = m;
    *r = w;
    return QN_OK;
}

/* ---- the document around them ---- */

/* Append what is there up to `to`; of a matrix, its brackets and newlines. */
static void keep(struct qn_json_matrices *t, const char *from, const char *to)
{
    memcpy(t->rest + t->len, from, (size_t)(to - from));
    t->len += (size_t)(to - from);
}

static void keep_outline(struct qn_json_matrices *t, const char *from,
                         const char *to)
{
    t->rest[t->len++] = '[';
    const char *p = memchr(from, '\n', (size_t)(to - from));
    while (p != NULL) {
        t->rest[t->len++] = '\n';
        p = memchr(p + 1, '\n', (size_t)(to - p) - 1);
    }
    t->rest[t->len++] = ']';
}

/* Which matrix the name [key, end) is, quotes included; none: the number of
 * them. One that was taken already is there twice, which the parser tells. */
static uint32_t which(const struct qn_json_matrices *t, const char *key,
                      const char *end)
{
    for (uint32_t i = 0; i < QN_JSON_MATRICES; i++) {
        const char *name = qn_json_matrix_key(i);
        size_t len = strlen(name);
        if (t->of[i].cost == NULL && (size_t)(end - key) == len + 2 &&
            memcmp(key + 1, name, len) == 0) {
            return i;
        }
    }
    return QN_JSON_MATRICES;
}

/* Members of the root, one after the other, until something is odd. */
static int take_members(struct reader *r, struct qn_json_matrices *t)
{
    const char *kept = r->at;
    int err = QN_OK;
    bool more = take(r, '{');
    while (more && err == QN_OK && take(r, '"')) {
        const char *key = r->at - 1;
        r->at = qn_json_skip_value(key, r->end);
        uint32_t i = which(t, key, r->at);
        if (!take(r, ':')) {
            break;
        }
        const char *value = r->at;
        if (i < QN_JSON_MATRICES) {
            err = take_matrix(r, &t->of[i]);
        }
        if (i < QN_JSON_MATRICES && t->of[i].cost != NULL) {
            keep(t, kept, value);
            keep_outline(t, value, r->at);
            kept = r->at;
        } else {
            while (r->at < r->end && is_space(*r->at)) {
                r->at++;
            }
            r->at = qn_json_skip_value(r->at, r->end);
        }
        more = take(r, ',');
    }
    keep(t, kept, r->end);
    return err;
}

int qn_json_matrices_take(const char *text, size_t len,
                          struct qn_json_matrices *out)
{
    struct reader r = {text, text + len};
    *out = (struct qn_json_matrices){.rest = malloc(len + 1)};
    if (out->rest == NULL) {
        return QN_ENOMEM;
    }
    int err = take_members(&r, out);
    if (err != QN_OK) {
        qn_json_matrices_fini(out);
    }
    return err;
}

const struct qn_json_matrix *qn_json_matrices_find(
    const struct qn_json_matrices *t, const char *key)
{
    for (uint32_t i = 0; i < QN_JSON_MATRICES; i++) {
        if (strcmp(key, qn_json_matrix_key(i)) == 0) {
            return t->of[i].cost != NULL ? &t->of[i] : NULL;
        }
    }
    return NULL;
}

void qn_json_matrices_fini(struct qn_json_matrices *t)
{
    for (uint32_t i = 0; i < QN_JSON_MATRICES; i++) {
        free(t->of[i].cost);
    }
    free(t->rest);
    *t = (struct qn_json_matrices){0};
}
