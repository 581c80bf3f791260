/*
 * Fuzzing machine files. The first byte says which reader: j a JSON document, x
 * XML of hwloc, s its synthetic text, m a meta.json or t a roundtrip.csv beside
 * tables that are right; any other the two CSV files one after the other, cut
 * at a line of dashes. What is accepted must be a machine within its limits and
 * read back as it was written; what is refused must say so in one line.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "core/base/text.h"
#include "core/discover/topology.h"
#include "core/machine/json_matrix_internal.h"
#include "core/machine/machine.h"
#include "tests/fuzz/fuzz.h"

/* hwloc forgets 32 bytes of memory that a wrong synthetic text attaches. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libhwloc.so\n";
}

static void must(bool ok)
{
    if (!ok) {
        abort();
    }
}

static int parse_csv(struct qn_machine **m, const char *text, size_t n,
                     struct qn_parse_error *f)
{
    static const char cut[] = "---\n";
    const char *at = memmem(text, n, cut, sizeof cut - 1);
    size_t numa = at != NULL ? (size_t)(at - text) : n;
    size_t skip = at != NULL ? numa + sizeof cut - 1 : n;
    const struct qn_machine_text t = {
        .folder = "f", .numa = {text, numa}, .pairs = {text + skip, n - skip}};
    return qn_machine_parse_csv(m, &t, f);
}

static void must_read_back(const struct qn_machine *m)
{
    struct qn_machine *again = NULL;
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    must(f != NULL && qn_machine_write_json(m, f) == QN_OK && fclose(f) == 0);
    must(qn_machine_parse_json(&again, "f", text, len, NULL) == QN_OK);
    size_t bytes = sizeof *m->send * m->n * m->n;
    must(again->n == m->n && memcmp(again->send, m->send, bytes) == 0);
    must(memcmp(again->receive, m->receive, bytes) == 0);
    must((again->facts.round_trip != NULL) == (m->facts.round_trip != NULL));
    must(again->facts.round_trip == NULL ||
         memcmp(again->facts.round_trip, m->facts.round_trip, bytes) == 0);
    for (uint32_t u = 0; u < m->n; u++) {
        for (uint32_t v = 0; v < m->n; v++) {
            must(qn_machine_unstable(m, u, v) ==
                 qn_machine_unstable(again, u, v));
        }
    }
    qn_machine_destroy(again);
    free(text);
}

/* A matrix that was read fast is what a parser reads. */
static void must_be_equal(const struct qn_json_matrix *m, json_t *rows)
{
    must(json_array_size(rows) == m->n);
    for (uint32_t u = 0; u < m->n; u++) {
        json_t *row = json_array_get(rows, u);
        must(json_array_size(row) == m->n);
        for (uint32_t v = 0; v < m->n; v++) {
            double x = json_number_value(json_array_get(row, v));
            must(!(x < m->cost[(size_t)u * m->n + v]) &&
                 !(x > m->cost[(size_t)u * m->n + v]));
        }
    }
}

/* Without its matrices the text is JSON if it was JSON with them. */
static void must_agree_with_a_parser(const char *text, size_t n)
{
    struct qn_json_matrices t;
    must(qn_json_matrices_take(text, n, &t) == QN_OK && t.len <= n);
    json_t *whole = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
    json_t *rest = json_loadb(t.rest, t.len, JSON_REJECT_DUPLICATES, NULL);
    must((whole == NULL) == (rest == NULL));
    for (uint32_t i = 0; whole != NULL && i < QN_JSON_MATRICES; i++) {
        if (t.of[i].cost != NULL) {
            must_be_equal(&t.of[i],
                          json_object_get(whole, qn_json_matrix_key(i)));
        }
    }
    json_decref(whole);
    json_decref(rest);
    qn_json_matrices_fini(&t);
}

static int parse_beside(struct qn_machine **m, uint8_t kind, const char *text,
                        size_t n, struct qn_parse_error *f)
{
    static const char numa[] = "core,phys,cache,node,socket\n0,0,0,0,0\n"
                               "1,1,0,0,0\n";
    static const char pairs[] = "from,to,send_cycles,receive_cycles\n0,1,2,3\n"
                                "1,0,2,3\n";
    const struct qn_machine_text t = {.folder = "f",
                                      .numa = {numa, sizeof numa - 1},
                                      .pairs = {pairs, sizeof pairs - 1},
                                      .meta = {kind == 'm' ? text : NULL, n},
                                      .trips = {kind == 't' ? text : NULL, n}};
    return qn_machine_parse_csv(m, &t, f);
}

/* hwloc's text ends at a NUL. */
static int parse_synthetic(struct qn_machine **m, const char *text, size_t n,
                           struct qn_parse_error *f)
{
    char *copy = strndup(text, n);
    must(copy != NULL);
    int err = qn_machine_synthetic(m, copy, f);
    free(copy);
    return err;
}

static int parse(struct qn_machine **m, uint8_t kind, const char *text,
                 size_t n, struct qn_parse_error *f)
{
    switch (kind) {
    case 'j':
        return qn_machine_parse_json(m, "f", text, n, f);
    case 'x':
        return qn_machine_parse_xml(m, "f", text, n, f);
    case 's':
        return parse_synthetic(m, text, n, f);
    case 'm':
    case 't':
        return parse_beside(m, kind, text, n, f);
    default:
        return parse_csv(m, text, n, f);
    }
}

/* What only hwloc has seen: cores and no costs. */
static void must_ascend(const struct qn_machine *m)
{
    must(m->n >= 1 && m->n <= QN_CORES_MAX);
    for (uint32_t i = 0; i < m->n; i++) {
        must(m->core[i].os <= QN_CORE_NUMBER_MAX);
        must(i == 0 || m->core[i].os > m->core[i - 1].os);
    }
}

static void must_be_printable(const struct qn_machine *m)
{
    const char *const texts[] = {m->name, m->facts.cpu, m->facts.measured,
                                 m->facts.transport};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char copy[QN_MACHINE_NAME_MAX + 1];
        qn_text_copy(copy, sizeof copy, texts[i]);
        must(strcmp(copy, texts[i]) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n == 0) {
        return 0;
    }
    (void)setenv("HWLOC_HIDE_ERRORS", "2", 0); /* as the programs do */
    (void)setenv("HWLOC_LIBXML", "0", 0);
    /* A copy of exact size: a sanitizer sees a byte read behind it. */
    char *text = malloc(n);
    must(text != NULL);
    memcpy(text, data + 1, n - 1);
    if (data[0] == 'j') {
        must_agree_with_a_parser(text, n - 1);
    }
    struct qn_machine *m = NULL;
    struct qn_parse_error f = {""};
    if (parse(&m, data[0], text, n - 1, &f) == QN_OK) {
        must_be_printable(m);
        if (qn_machine_has_costs(m) && m->n > 1) {
            must(qn_machine_check(m) == QN_OK);
            must_read_back(m);
        } else {
            must_ascend(m);
        }
        qn_machine_destroy(m);
    } else {
        must(m == NULL && f.text[0] != '\0' && strchr(f.text, '\n') == NULL);
    }
    free(text);
    return 0;
}
