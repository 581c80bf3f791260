/*
 * Reading descriptions of tiled machines. The names and units of a kind's
 * parameters are a table made from the list in tiled.h; a file must have
 * exactly these. A fault names the line of its member: names are unique in such
 * a file, so the first line that quotes the name is it.
 */
#include "core/sim/timed/tiled/tiled.h"

#include <assert.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/base/text.h"
#include "core/machine/csv.h"
#include "core/sim/timed/tiled/scc.h"
#include "core/sim/timed/tiled/tilegx.h"

#define FORMAT  "quoin-tiled"
#define GHZ_MAX 1000.0

struct known {
    const char *name, *unit;
    bool zero; /* is 0 a value? */
};

#define X(id, name, unit, zero) {name, unit, zero},
static const struct known of_scc[] = {QN_SCC_MAP(X)};
static const struct known of_tilegx[] = {QN_TILEGX_MAP(X)};
#undef X

static_assert(QN_SCC_PARAMETERS <= QN_TILED_PARAMETERS_MAX, "room for them");
static_assert(QN_TILEGX_PARAMETERS <= QN_TILED_PARAMETERS_MAX, "likewise");

static const struct {
    const char *name;
    const struct known *known;
    uint32_t count;
} kind_table[QN_TILED_KINDS] = {
    [QN_TILED_SCC] = {"scc", of_scc, QN_SCC_PARAMETERS},
    [QN_TILED_TILEGX] = {"tilegx", of_tilegx, QN_TILEGX_PARAMETERS},
};

static const char *const source_name[QN_TILED_SOURCES] = {"documented",
                                                          "fitted", "assumed"};

struct document {
    const char *file, *text;
    size_t len;
    struct qn_parse_error *parse_error;
};

/* The line of the first `"name"`, 1 if there is none. */
static uint32_t line_of(const struct document *d, const char *name)
{
    size_t n = strlen(name);
    uint32_t line = 1;
    for (size_t i = 0; i + n + 2 <= d->len; i++) {
        const char *at = d->text + i;
        if (at[0] == '"' && memcmp(at + 1, name, n) == 0 && at[n + 1] == '"') {
            return line;
        }
        line += at[0] == '\n';
    }
    return 1;
}

static int fault(const struct document *d, const char *name, const char *what)
{
    return qn_parse_error_set(d->parse_error, d->file, line_of(d, name), name,
                              "%s", what);
}

const char *qn_tiled_kind_name(enum qn_tiled_kind kind)
{
    return kind_table[kind].name;
}

const char *qn_tiled_source_name(enum qn_tiled_source source)
{
    return source_name[source];
}

/* ---- the head ---- */

static int read_whole(const struct document *d, json_t *root, const char *name,
                      uint32_t *to)
{
    json_t *v = json_object_get(root, name);
    json_int_t x = json_integer_value(v);
    if (!json_is_integer(v) || x < 1 || x > QN_SIM_NODES_MAX) {
        return fault(d, name, "write a whole number from 1 to 1024");
    }
    *to = (uint32_t)x;
    return QN_OK;
}

static int read_kind(const struct document *d, json_t *root,
                     enum qn_tiled_kind *to)
{
    const char *s = json_string_value(json_object_get(root, "kind"));
    for (uint32_t i = 0; s != NULL && i < QN_TILED_KINDS; i++) {
        if (strcmp(s, kind_table[i].name) == 0) {
            *to = (enum qn_tiled_kind)i;
            return QN_OK;
        }
    }
    return fault(d, "kind", "write \"scc\" or \"tilegx\"");
}

static int check_members(const struct document *d, json_t *root)
{
    static const char *const known[] = {
        "format", "version",        "kind",      "name",      "columns",
        "rows",   "cores_per_tile", "clock_ghz", "parameters"};
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach(root, key, value)
    {
        bool found = false;
        for (uint32_t i = 0; i < QN_ARRAY_COUNT(known); i++) {
            found = found || strcmp(key, known[i]) == 0;
        }
        if (!found) {
            return fault(d, key, "unknown member; remove it or correct it");
        }
    }
    return QN_OK;
}

static int read_format(const struct document *d, json_t *root)
{
    const char *format = json_string_value(json_object_get(root, "format"));
    if (format == NULL || strcmp(format, FORMAT) != 0) {
        return fault(d, "format",
                     "this describes no tiled machine; it must say "
                     "\"format\": \"" FORMAT "\"");
    }
    if (json_integer_value(json_object_get(root, "version")) !=
        QN_TILED_VERSION) {
        return fault(d, "version", "only version 1 is known");
    }
    return check_members(d, root);
}

static int read_head(const struct document *d, json_t *root, struct qn_tiled *m)
{
    int err = read_format(d, root);
    err = err ? err : read_kind(d, root, &m->kind);
    err = err ? err : read_whole(d, root, "columns", &m->grid.columns);
    err = err ? err : read_whole(d, root, "rows", &m->grid.rows);
    err = err ? err
              : read_whole(d, root, "cores_per_tile", &m->grid.cores_per_tile);
    if (err != QN_OK) {
        return err;
    }
    if ((uint64_t)m->grid.columns * m->grid.rows * m->grid.cores_per_tile >
        QN_SIM_NODES_MAX) {
        return fault(d, "columns", "at most 1024 cores; write a smaller grid");
    }
    const char *name = json_string_value(json_object_get(root, "name"));
    if (name == NULL) {
        return fault(d, "name", "write the machine's name as a string");
    }
    qn_text_copy(m->name, sizeof m->name, name);
    m->clock_ghz = json_number_value(json_object_get(root, "clock_ghz"));
    if (!(m->clock_ghz > 0 && m->clock_ghz <= GHZ_MAX)) {
        return fault(d, "clock_ghz", "write cycles per ns, above 0");
    }
    return QN_OK;
}

/* ---- parameters ---- */

static bool read_source(json_t *member, enum qn_tiled_source *to)
{
    const char *s = json_string_value(json_object_get(member, "source"));
    for (uint32_t i = 0; s != NULL && i < QN_TILED_SOURCES; i++) {
        if (strcmp(s, source_name[i]) == 0) {
            *to = (enum qn_tiled_source)i;
            return true;
        }
    }
    return false;
}

static int read_parameter(const struct document *d, json_t *member,
                          const struct known *k, struct qn_tiled_parameter *p)
{
    json_t *value = json_object_get(member, "value");
    const char *unit = json_string_value(json_object_get(member, "unit"));
    const char *note = json_string_value(json_object_get(member, "note"));
    p->name = k->name;
    p->unit = k->unit;
    p->value = json_number_value(value);
    if (!json_is_number(value) || !(k->zero ? p->value >= 0 : p->value > 0) ||
        p->value > QN_TILED_VALUE_MAX) {
        return fault(d, k->name,
                     k->zero ? "write its value as a number from 0 to 1e9"
                             : "write its value, above 0 and up to 1e9");
    }
    if (unit == NULL || strcmp(unit, k->unit) != 0) {
        return qn_parse_error_set(d->parse_error, d->file, line_of(d, k->name),
                                  k->name, "its unit must be \"%s\"", k->unit);
    }
    if (!read_source(member, &p->source)) {
        return fault(d, k->name,
                     "its source must be \"documented\", \"fitted\" or "
                     "\"assumed\"");
    }
    if (note == NULL || json_object_size(member) != 4) {
        return fault(d, k->name,
                     "a parameter has value, unit, source and note, and "
                     "nothing else");
    }
    qn_text_copy(p->note, sizeof p->note, note);
    return QN_OK;
}

/* Members that are no parameter of the kind. Called when all of its own are
 * there. */
static int fault_unknown(const struct document *d, json_t *all,
                         const struct qn_tiled *m)
{
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach(all, key, value)
    {
        bool found = false;
        for (uint32_t i = 0; i < m->parameters; i++) {
            found = found || strcmp(m->parameter[i].name, key) == 0;
        }
        if (!found) {
            return fault(d, key, "this kind has no such parameter; remove it");
        }
    }
    return QN_OK;
}

static int read_parameters(const struct document *d, json_t *root,
                           struct qn_tiled *m)
{
    json_t *all = json_object_get(root, "parameters");
    const struct known *known = kind_table[m->kind].known;
    uint32_t fitted = 0;
    for (m->parameters = 0; m->parameters < kind_table[m->kind].count;
         m->parameters++) {
        const struct known *k = &known[m->parameters];
        struct qn_tiled_parameter *p = &m->parameter[m->parameters];
        json_t *member = json_object_get(all, k->name);
        if (member == NULL) {
            return qn_parse_error_set(
                d->parse_error, d->file, line_of(d, "parameters"), k->name,
                "this parameter is missing; each of its kind must be there");
        }
        int err = read_parameter(d, member, k, p);
        if (err != QN_OK) {
            return err;
        }
        fitted += p->source == QN_TILED_FITTED;
    }
    if (fitted > QN_TILED_FITTED_MAX) {
        return fault(d, "parameters", "at most four may be fitted");
    }
    return fault_unknown(d, all, m);
}

/* ---- files ---- */

int qn_tiled_parse(struct qn_tiled *out, const char *file, const char *bytes,
                   size_t len, struct qn_parse_error *parse_error)
{
    const struct document d = {file, bytes, len, parse_error};
    struct qn_tiled m = {0};
    json_error_t e;
    json_t *root = json_loadb(bytes, len, JSON_REJECT_DUPLICATES, &e);
    if (root == NULL) {
        bool full = json_error_code(&e) == json_error_out_of_memory;
        (void)qn_parse_error_set(parse_error, file, (uint32_t)QN_MAX(e.line, 1),
                                 "JSON", "%s; correct it", e.text);
        return full ? QN_ENOMEM : QN_EINVAL;
    }
    int err = read_head(&d, root, &m);
    err = err ? err : read_parameters(&d, root, &m);
    json_decref(root);
    if (err == QN_OK) {
        *out = m;
    }
    return err;
}

int qn_tiled_load(struct qn_tiled *out, const char *path,
                  struct qn_parse_error *parse_error)
{
    char *bytes = NULL;
    size_t len = 0;
    int err = qn_file_read(path, QN_TILED_FILE_MAX, &bytes, &len, parse_error);
    if (err == QN_OK) {
        err = qn_tiled_parse(out, path, bytes, len, parse_error);
    }
    free(bytes);
    return err;
}

bool qn_tiled_is(const char *path)
{
    char *bytes = NULL;
    size_t len = 0;
    if (qn_file_read(path, QN_TILED_FILE_MAX, &bytes, &len, NULL) != QN_OK) {
        return false; /* longer than such a file can be, or not there */
    }
    json_t *root = json_loadb(bytes, len, 0, NULL);
    const char *format = json_string_value(json_object_get(root, "format"));
    bool is = format != NULL && strcmp(format, FORMAT) == 0;
    json_decref(root);
    free(bytes);
    return is;
}

/* ---- values ---- */

double qn_tiled_value(const struct qn_tiled *m, uint32_t parameter)
{
    QN_ASSERT(parameter < m->parameters);
    return m->parameter[parameter].value;
}

qn_ps_t qn_tiled_ps(const struct qn_tiled *m, uint32_t parameter)
{
    QN_ASSERT(parameter < m->parameters);
    const struct qn_tiled_parameter *p = &m->parameter[parameter];
    bool cycles = strcmp(p->unit, "cycles") == 0;
    QN_ASSERT(cycles || strcmp(p->unit, "ns") == 0);
    double ps = p->value * 1000 / (cycles ? m->clock_ghz : 1);
    return p->value > 0 && ps < 1 ? 1 : (qn_ps_t)llround(ps);
}

void qn_tiled_print(const struct qn_tiled *m, FILE *f)
{
    (void)fprintf(f, "%s: %s, %u x %u tiles of %u, %g GHz\n", m->name,
                  qn_tiled_kind_name(m->kind), m->grid.columns, m->grid.rows,
                  m->grid.cores_per_tile, m->clock_ghz);
    for (uint32_t i = 0; i < m->parameters; i++) {
        const struct qn_tiled_parameter *p = &m->parameter[i];
        (void)fprintf(f, "  %-12s %8g %-8s %-10s  %s\n", p->name, p->value,
                      p->unit, qn_tiled_source_name(p->source), p->note);
    }
}

/* ---- price lists ---- */

static bool cores_good(const struct qn_tiled *m, const uint32_t *core,
                       uint32_t nodes)
{
    uint32_t cores = qn_grid_cores(&m->grid);
    bool good = nodes >= 1 && nodes <= cores;
    for (uint32_t i = 0; i < nodes && good; i++) {
        good = core[i] < cores;
        for (uint32_t j = 0; j < i && good; j++) {
            good = core[i] != core[j];
        }
    }
    return good;
}

int qn_tiled_prices(struct qn_prices **out, const struct qn_tiled *m,
                    const uint32_t *core, uint32_t nodes)
{
    if (!cores_good(m, core, nodes)) {
        return QN_EINVAL;
    }
    return m->kind == QN_TILED_SCC ? qn_scc_create(out, m, core, nodes)
                                   : qn_tilegx_create(out, m, core, nodes);
}
