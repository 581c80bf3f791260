/*
 * The members that version 2 of the machine file adds. All are optional:
 *
 *     "cpu": "AMD EPYC", "measured": "2026-11-21T21:30:00Z",
 *     "transport": "ump", "clock_ghz": 2.6, "queued_factor": 0.2,
 *     "copy_gb_s": 8, "cache_gb_s": 30, "memory_gb_s": 40, "link_gb_s": 20,
 *     "cache_mib": 32,
 *     "round_trip": [[0, 290], [290, 0]], "level": [[0, 400], [420, 0]],
 *     "unstable": [[0, 1]]
 *
 * round_trip and level are matrices as `send` is, round_trip is symmetric.
 * `unstable` lists pairs of core numbers, each pair once, the lower number
 * first.
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/base/text.h"
#include "core/machine/machine_json_internal.h"
#include "core/machine/number.h"

bool qn_json_fact_known(const char *key)
{
    static const char *const known[] = {
        "cpu",           "measured",   "transport", "clock_ghz",
        "queued_factor", "round_trip", "level",     "unstable"};
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(known); i++) {
        if (strcmp(key, known[i]) == 0) {
            return true;
        }
    }
    for (uint32_t b = 0; b < QN_BANDWIDTHS; b++) {
        if (strcmp(key, qn_bandwidth_name(b)) == 0) {
            return true;
        }
    }
    return false;
}

static bool any_bandwidth(const struct qn_machine_facts *f)
{
    bool any = false;
    for (uint32_t b = 0; b < QN_BANDWIDTHS; b++) {
        any = any || f->bandwidth[b] > 0;
    }
    return any;
}

static bool any_unstable(const struct qn_machine *m)
{
    size_t n = (size_t)m->n * m->n;
    return m->facts.unstable != NULL && memchr(m->facts.unstable, true, n);
}

bool qn_json_has_facts(const struct qn_machine *m)
{
    const struct qn_machine_facts *f = &m->facts;
    return f->cpu[0] != '\0' || f->measured[0] != '\0' ||
           f->transport[0] != '\0' || f->clock_ghz > 0 ||
           f->queued_factor > 0 || any_bandwidth(f) || f->round_trip != NULL ||
           f->level != NULL || any_unstable(m);
}

static int read_text(const struct qn_json_document *d, json_t *root,
                     const char *key, char *to)
{
    json_t *value = json_object_get(root, key);
    if (value == NULL) {
        return QN_OK;
    }
    const char *s = json_string_value(value);
    if (s == NULL || strlen(s) > QN_MACHINE_NAME_MAX) {
        return qn_json_fault_member(
            d, key, "write a string of at most 63 bytes, or leave it out");
    }
    qn_text_copy(to, QN_MACHINE_NAME_MAX + 1, s);
    return QN_OK;
}

static int read_number(const struct qn_json_document *d, json_t *root,
                       const char *key, double max, double *to)
{
    json_t *value = json_object_get(root, key);
    if (value == NULL) {
        return QN_OK;
    }
    double x = json_number_value(value);
    if (!(x > 0 && x <= max)) {
        return qn_json_fault_member(
            d, key,
            max > 1 ? "write a number above 0 and up to 1000, or leave it out"
                    : "write a number above 0 and up to 1, or leave it out");
    }
    *to = x;
    return QN_OK;
}

uint32_t qn_json_read_bandwidths(json_t *root, struct qn_machine_facts *f)
{
    for (uint32_t b = 0; b < QN_BANDWIDTHS; b++) {
        json_t *value = json_object_get(root, qn_bandwidth_name(b));
        const double x = json_number_value(value);
        if (value != NULL &&
            !(x >= QN_BANDWIDTH_LEAST && x <= QN_BANDWIDTH_MOST)) {
            return b;
        }
        f->bandwidth[b] = x;
    }
    return QN_BANDWIDTHS;
}

static int read_bandwidths(const struct qn_json_document *d, json_t *root,
                           struct qn_machine_facts *f)
{
    const uint32_t bad = qn_json_read_bandwidths(root, f);
    return bad == QN_BANDWIDTHS
               ? QN_OK
               : qn_json_fault_member(d, qn_bandwidth_name(bad),
                                      QN_JSON_BANDWIDTH_HINT);
}

static int check_symmetric(const struct qn_json_document *d, const char *key,
                           const struct qn_machine *m, const double *x)
{
    for (uint32_t u = 1; u < m->n && x != NULL; u++) {
        for (uint32_t v = 0; v < u; v++) {
            const double a = x[(size_t)u * m->n + v];
            const double b = x[(size_t)v * m->n + u];
            if (a < b || a > b) {
                const struct qn_json_step way[] = {
                    {.key = key}, {.index = u}, {.index = v}};
                return qn_json_fault(d, way, 3,
                                     "the matrix must be symmetric: there and "
                                     "back is one time for both");
            }
        }
    }
    return QN_OK;
}

static int read_matrix(const struct qn_json_document *d, json_t *root,
                       const char *key, const struct qn_machine *m, double **to)
{
    if (json_object_get(root, key) == NULL) {
        return QN_OK;
    }
    *to = calloc((size_t)m->n * m->n, sizeof **to);
    return *to == NULL ? QN_ENOMEM : qn_json_read_matrix(d, root, key, m, *to);
}

/* Index of the core that value names, m->n if it names none. */
static uint32_t core_of(const struct qn_machine *m, json_t *value)
{
    json_int_t x = json_integer_value(value);
    bool number = json_is_integer(value) && x >= 0 && x <= QN_CORE_NUMBER_MAX;
    return number ? qn_machine_find(m, (uint32_t)x) : m->n;
}

static int read_unstable_pair(const struct qn_json_document *d, json_t *pair,
                              size_t at, struct qn_machine *m)
{
    const struct qn_json_step way[] = {{.key = "unstable"}, {.index = at}};
    uint32_t u = core_of(m, json_array_get(pair, 0));
    uint32_t v = core_of(m, json_array_get(pair, 1));
    if (json_array_size(pair) != 2 || u == m->n || v == m->n || u >= v) {
        return qn_json_fault(d, way, 2,
                             "write two cores of `cores`, the lower first");
    }
    bool *one = &m->facts.unstable[(size_t)u * m->n + v];
    if (*one) {
        return qn_json_fault(d, way, 2, "the pair is there twice; remove one");
    }
    *one = m->facts.unstable[(size_t)v * m->n + u] = true;
    return QN_OK;
}

static int read_unstable(const struct qn_json_document *d, json_t *root,
                         struct qn_machine *m)
{
    json_t *list = json_object_get(root, "unstable");
    if (list == NULL) {
        return QN_OK;
    }
    if (!json_is_array(list)) {
        return qn_json_fault_member(d, "unstable", "write a list of pairs");
    }
    m->facts.unstable = calloc((size_t)m->n * m->n, sizeof(bool));
    int err = m->facts.unstable != NULL ? QN_OK : QN_ENOMEM;
    size_t at = 0;
    for (; err == QN_OK && at < json_array_size(list); at++) {
        err = read_unstable_pair(d, json_array_get(list, at), at, m);
    }
    return err;
}

int qn_json_read_facts(const struct qn_json_document *d, json_t *root,
                       struct qn_machine *m)
{
    struct qn_machine_facts *f = &m->facts;
    int err = read_text(d, root, "cpu", f->cpu);
    err = err ? err : read_text(d, root, "measured", f->measured);
    err = err ? err : read_text(d, root, "transport", f->transport);
    err = err ? err
              : read_number(d, root, "clock_ghz", QN_GHZ_MAX, &f->clock_ghz);
    err =
        err ? err : read_number(d, root, "queued_factor", 1, &f->queued_factor);
    err = err ? err : read_bandwidths(d, root, f);
    err = err ? err : read_matrix(d, root, "round_trip", m, &f->round_trip);
    err = err ? err : check_symmetric(d, "round_trip", m, f->round_trip);
    err = err ? err : read_matrix(d, root, "level", m, &f->level);
    return err ? err : read_unstable(d, root, m);
}

static void write_text(const char *key, const char *s, FILE *f)
{
    if (s[0] != '\0') {
        (void)fprintf(f, ",\n \"%s\": ", key);
        qn_json_write_string(f, s);
    }
}

static void write_number(const char *key, double x, FILE *f)
{
    if (x > 0) {
        (void)fprintf(f, ",\n \"%s\": ", key);
        qn_number_write(f, x);
    }
}

static void write_unstable(const struct qn_machine *m, FILE *f)
{
    const char *before = ",\n \"unstable\": [";
    for (uint32_t u = 0; u < m->n; u++) {
        for (uint32_t v = u + 1; v < m->n; v++) {
            if (qn_machine_unstable(m, u, v)) {
                (void)fprintf(f, "%s[%u, %u]", before, m->core[u].os,
                              m->core[v].os);
                before = ",\n  ";
            }
        }
    }
    if (any_unstable(m)) {
        (void)fputc(']', f);
    }
}

void qn_json_write_facts(const struct qn_machine *m, FILE *f)
{
    write_text("cpu", m->facts.cpu, f);
    write_text("measured", m->facts.measured, f);
    write_text("transport", m->facts.transport, f);
    write_number("clock_ghz", m->facts.clock_ghz, f);
    write_number("queued_factor", m->facts.queued_factor, f);
    for (uint32_t b = 0; b < QN_BANDWIDTHS; b++) {
        write_number(qn_bandwidth_name(b), m->facts.bandwidth[b], f);
    }
    if (m->facts.round_trip != NULL) {
        (void)fputs(",\n", f);
        qn_json_write_matrix(m, "round_trip", m->facts.round_trip, f);
    }
    if (m->facts.level != NULL) {
        (void)fputs(",\n", f);
        qn_json_write_matrix(m, "level", m->facts.level, f);
    }
    write_unstable(m, f);
}
