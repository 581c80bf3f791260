/*
 * The machine file: one JSON document that can be mailed, kept and compared.
 *
 *     {"format": "quoin-machine", "version": 1, "name": "...",
 *      "units": "cycles",
 *      "cores": [{"core": 0, "phys": 0, "cache": 0, "node": 0, "socket": 0}],
 *      "send": [[0, 63.7], [61, 0]], "receive": [[0, 225.5], [220, 0]]}
 *
 * Row u of a matrix holds the costs of messages that core u sends, in the
 * order of `cores`; the diagonal is 0. One row is one line of text, so that a
 * fault's line number says which. jansson parses, but for the matrices, which
 * json_matrix.c reads; it knows lines only where the syntax is wrong, so a
 * fault in a value finds its line by json_line.c.
 *
 * Version 2 adds what is known besides the costs (machine_json_facts.c); a
 * machine of which nothing else is known is written as version 1, so that older
 * readers take it. Unknown members are an error: a mistyped name would
 * otherwise be a silent default.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/base/text.h"
#include "core/machine/csv.h"
#include "core/machine/json_line_internal.h"
#include "core/machine/machine.h"
#include "core/machine/machine_json_internal.h"
#include "core/machine/number.h"

#define FORMAT "quoin-machine"

int qn_json_fault(const struct qn_json_document *d,
                  const struct qn_json_step *steps, size_t count,
                  const char *what)
{
    char field[64];
    size_t n = 0;
    for (size_t i = 0; i < count && n < sizeof field; i++) {
        int w = steps[i].key != NULL
                    ? snprintf(field + n, sizeof field - n, "%s%s",
                               i > 0 ? "." : "", steps[i].key)
                    : snprintf(field + n, sizeof field - n, "[%zu]",
                               steps[i].index);
        n += (size_t)QN_MAX(w, 0);
    }
    return qn_parse_error_set(d->parse_error, d->file,
                              qn_json_line(d->text, d->len, steps, count),
                              field, "%s", what);
}

int qn_json_fault_member(const struct qn_json_document *d, const char *key,
                         const char *what)
{
    const struct qn_json_step step = {.key = key};
    return qn_json_fault(d, &step, 1, what);
}

static int check_members(const struct qn_json_document *d, json_t *root,
                         bool facts)
{
    static const char *const known[] = {"format", "version", "name",   "units",
                                        "cores",  "send",    "receive"};
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach(root, key, value)
    {
        bool found = facts && qn_json_fact_known(key);
        for (uint32_t i = 0; i < QN_ARRAY_COUNT(known); i++) {
            found = found || strcmp(key, known[i]) == 0;
        }
        if (!found) {
            return qn_json_fault_member(
                d, key,
                "unknown member; this version does not know "
                "it, so remove it or correct its name");
        }
    }
    return QN_OK;
}

static bool member_is(json_t *root, const char *key, const char *text)
{
    const char *s = json_string_value(json_object_get(root, key));
    return s != NULL && strcmp(s, text) == 0;
}

static int check_head(const struct qn_json_document *d, json_t *root)
{
    if (!json_is_object(root) || !member_is(root, "format", FORMAT)) {
        return qn_json_fault_member(d, "format",
                                    "this is no machine file; it must say "
                                    "\"format\": \"" FORMAT "\"");
    }
    json_t *version = json_object_get(root, "version");
    json_int_t number = json_integer_value(version);
    if (!json_is_integer(version) || number < 1 ||
        number > QN_MACHINE_JSON_VERSION) {
        return qn_json_fault_member(
            d, "version",
            "only versions 1 and 2 are known; measure the machine again or "
            "use the program that wrote the file");
    }
    if (!member_is(root, "units", "cycles")) {
        return qn_json_fault_member(d, "units", "costs must be in \"cycles\"");
    }
    if (!json_is_string(json_object_get(root, "name"))) {
        return qn_json_fault_member(d, "name",
                                    "write the machine's name as a string");
    }
    return check_members(d, root, number > 1);
}

static int read_core(const struct qn_json_document *d, json_t *list, uint32_t i,
                     struct qn_machine *m)
{
    static const char *const names[] = {"core", "phys", "cache", "node",
                                        "socket"};
    uint32_t *const to[] = {&m->core[i].os, &m->core[i].phys, &m->core[i].cache,
                            &m->core[i].node, &m->core[i].socket};
    json_t *core = json_array_get(list, i);
    for (uint32_t k = 0; k < QN_ARRAY_COUNT(names); k++) {
        const struct qn_json_step way[] = {
            {.key = "cores"}, {.index = i}, {.key = names[k]}};
        json_t *value = json_object_get(core, names[k]);
        json_int_t x = json_integer_value(value);
        json_int_t max = k == 0 ? QN_CORE_NUMBER_MAX : UINT32_MAX;
        if (!json_is_integer(value) || x < 0 || x > max) {
            return qn_json_fault(d, way, 3,
                                 k == 0 ? "write a whole number from 0 to 65535"
                                        : "write a whole number from 0 to "
                                          "4294967295");
        }
        *to[k] = (uint32_t)x;
    }
    const struct qn_json_step way[] = {
        {.key = "cores"}, {.index = i}, {.key = "core"}};
    if (i > 0 && m->core[i].os <= m->core[i - 1].os) {
        return qn_json_fault(
            d, way, 3,
            "core numbers must ascend, each only once; sort them, "
            "and the matrices with them");
    }
    if (json_object_size(core) != QN_ARRAY_COUNT(names)) {
        return qn_json_fault(
            d, way, 2,
            "a core has core, phys, cache, node and socket, and "
            "nothing else; remove the rest");
    }
    return QN_OK;
}

static int read_cores(struct qn_machine **out, const struct qn_json_document *d,
                      json_t *root)
{
    json_t *list = json_object_get(root, "cores");
    size_t n = json_array_size(list);
    if (n == 0 || n > QN_CORES_MAX) {
        return qn_json_fault_member(
            d, "cores",
            "write a list of 1 to 1024 cores; leave some out "
            "if there are more");
    }
    struct qn_machine *m = NULL;
    int err = qn_machine_create(&m, (uint32_t)n);
    for (uint32_t i = 0; err == QN_OK && i < n; i++) {
        err = read_core(d, list, i, m);
    }
    if (err != QN_OK) {
        qn_machine_destroy(m);
        return err;
    }
    qn_text_copy(m->name, sizeof m->name,
                 json_string_value(json_object_get(root, "name")));
    *out = m;
    return QN_OK;
}

static int read_row(const struct qn_json_document *d, const char *key,
                    json_t *row, uint32_t u, const struct qn_machine *m,
                    double *to)
{
    struct qn_json_step way[] = {{.key = key}, {.index = u}, {.index = 0}};
    if (json_array_size(row) != m->n) {
        return qn_json_fault(d, way, 2,
                             "the row must have one cost per core of `cores`");
    }
    for (uint32_t v = 0; v < m->n; v++) {
        json_t *value = json_array_get(row, v);
        double x = json_number_value(value);
        way[2].index = v;
        if (u == v ? !json_is_number(value) || x != 0
                   : !(x > 0 && x <= QN_COST_MAX)) {
            return qn_json_fault(
                d, way, 3,
                u == v ? "a core's cost to itself must be 0"
                       : "write cycles as a number above 0 and up "
                         "to 1e12");
        }
        to[v] = x;
    }
    return QN_OK;
}

int qn_json_read_matrix(const struct qn_json_document *d, json_t *root,
                        const char *key, const struct qn_machine *m, double *to)
{
    const struct qn_json_matrix *taken = qn_json_matrices_find(d->taken, key);
    if (taken != NULL && taken->n == m->n) {
        memcpy(to, taken->cost, (size_t)m->n * m->n * sizeof *to);
        return QN_OK;
    }
    json_t *rows = json_object_get(root, key);
    if (json_array_size(rows) != m->n) {
        return qn_json_fault_member(
            d, key, "write a list with one row per core of `cores`");
    }
    int err = QN_OK;
    for (uint32_t u = 0; err == QN_OK && u < m->n; u++) {
        err = read_row(d, key, json_array_get(rows, u), u, m,
                       to + (size_t)u * m->n);
    }
    return err;
}

static int read_machine(struct qn_machine **out,
                        const struct qn_json_document *d, json_t *root)
{
    struct qn_machine *m = NULL;
    int err = check_head(d, root);
    err = err != QN_OK ? err : read_cores(&m, d, root);
    if (err != QN_OK) {
        return err;
    }
    QN_ASSERT(m != NULL);
    err = qn_json_read_matrix(d, root, "send", m, m->send);
    err = err != QN_OK ? err
                       : qn_json_read_matrix(d, root, "receive", m, m->receive);
    err = err != QN_OK ? err : qn_json_read_facts(d, root, m);
    if (err != QN_OK) {
        qn_machine_destroy(m);
        return err;
    }
    *out = m;
    return QN_OK;
}

static const char *advice(enum json_error_code code)
{
    switch (code) {
    case json_error_premature_end_of_input:
        return "the file may be cut, copy it again";
    case json_error_duplicate_key:
        return "remove one of the two";
    case json_error_numeric_overflow:
        return "write a smaller number";
    default:
        return "this is not JSON, correct it";
    }
}

/* What jansson does not take, in the whole text, so that its place is right. */
static int fault_syntax(const char *file, const char *bytes, size_t len,
                        struct qn_parse_error *parse_error)
{
    json_error_t e;
    char name[64];
    json_t *root = json_loadb(bytes, len, JSON_REJECT_DUPLICATES, &e);
    if (root != NULL || json_error_code(&e) == json_error_out_of_memory) {
        json_decref(root);
        (void)qn_parse_error_set(parse_error, file, 0, NULL,
                                 "not enough memory");
        return QN_ENOMEM;
    }
    qn_json_name(bytes, len, (size_t)QN_MAX(e.position, 0), name, sizeof name);
    return qn_parse_error_set(parse_error, file, (uint32_t)QN_MAX(e.line, 1),
                              name[0] != '\0' ? name : "JSON", "%s; %s", e.text,
                              advice(json_error_code(&e)));
}

int qn_machine_parse_json(struct qn_machine **out, const char *file,
                          const char *bytes, size_t len,
                          struct qn_parse_error *parse_error)
{
    struct qn_json_matrices taken;
    int err = qn_json_matrices_take(bytes, len, &taken);
    if (err != QN_OK) {
        (void)qn_parse_error_set(parse_error, file, 0, NULL,
                                 "not enough memory");
        return err;
    }
    const struct qn_json_document d = {file, bytes, len, &taken, parse_error};
    json_t *root =
        json_loadb(taken.rest, taken.len, JSON_REJECT_DUPLICATES, NULL);
    err = root != NULL ? read_machine(out, &d, root)
                       : fault_syntax(file, bytes, len, parse_error);
    json_decref(root);
    qn_json_matrices_fini(&taken);
    return err;
}

int qn_machine_load_json(struct qn_machine **out, const char *path,
                         struct qn_parse_error *parse_error)
{
    char *bytes = NULL;
    size_t len = 0;
    int err =
        qn_file_read(path, QN_MACHINE_FILE_MAX, &bytes, &len, parse_error);
    if (err == QN_OK) {
        err = qn_machine_parse_json(out, path, bytes, len, parse_error);
    }
    free(bytes);
    return err;
}

void qn_json_write_matrix(const struct qn_machine *m, const char *key,
                          const double *cost, FILE *f)
{
    (void)fprintf(f, " \"%s\": [", key);
    for (uint32_t u = 0; u < m->n; u++) {
        for (uint32_t v = 0; v < m->n; v++) {
            (void)fputs(v > 0 ? "," : u > 0 ? ",\n  [" : "\n  [", f);
            qn_number_write(f, cost[(size_t)u * m->n + v]);
        }
        (void)fputc(']', f);
    }
    (void)fputc(']', f);
}

int qn_machine_write_json(const struct qn_machine *m, FILE *f)
{
    (void)fprintf(f, "{\"format\": \"" FORMAT "\", \"version\": %d,\n",
                  qn_json_has_facts(m) ? QN_MACHINE_JSON_VERSION : 1);
    (void)fputs(" \"name\": ", f);
    qn_json_write_string(f, m->name);
    (void)fputs(",\n \"units\": \"cycles\",\n \"cores\": [", f);
    for (uint32_t i = 0; i < m->n; i++) {
        const struct qn_machine_core *c = &m->core[i];
        (void)fprintf(f,
                      "%s\n  {\"core\": %u, \"phys\": %u, \"cache\": %u, "
                      "\"node\": %u, \"socket\": %u}",
                      i > 0 ? "," : "", c->os, c->phys, c->cache, c->node,
                      c->socket);
    }
    (void)fputs("],\n", f);
    qn_json_write_matrix(m, "send", m->send, f);
    (void)fputs(",\n", f);
    qn_json_write_matrix(m, "receive", m->receive, f);
    qn_json_write_facts(m, f);
    (void)fputs("}\n", f);
    return ferror(f) ? QN_EIO : QN_OK;
}
