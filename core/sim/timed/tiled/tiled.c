/*
 * Reading descriptions of tiled machines. The names and units of a kind's
 * parameters are a table made from the list in tiled.h; a file must have
 * exactly these.
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

#define X(id, name, unit, zero) {name, unit, zero},
static const struct qn_parameter_kind of_scc[] = {QN_SCC_MAP(X)};
static const struct qn_parameter_kind of_tilegx[] = {QN_TILEGX_MAP(X)};
#undef X

static_assert(QN_SCC_PARAMETERS <= QN_TILED_PARAMETERS_MAX, "room for them");
static_assert(QN_TILEGX_PARAMETERS <= QN_TILED_PARAMETERS_MAX, "likewise");

static const struct {
    const char *name;
    const struct qn_parameter_kind *known;
    uint32_t count;
} kind_table[QN_TILED_KINDS] = {
    [QN_TILED_SCC] = {"scc", of_scc, QN_SCC_PARAMETERS},
    [QN_TILED_TILEGX] = {"tilegx", of_tilegx, QN_TILEGX_PARAMETERS},
};

const char *qn_tiled_kind_name(enum qn_tiled_kind kind)
{
    return kind_table[kind].name;
}

/* ---- the head ---- */

static int read_whole(const struct qn_parameter_file *d, json_t *root,
                      const char *name, uint32_t *to)
{
    json_t *v = json_object_get(root, name);
    json_int_t x = json_integer_value(v);
    if (!json_is_integer(v) || x < 1 || x > QN_SIM_NODES_MAX) {
        return qn_parameter_fault(d, name,
                                  "write a whole number from 1 to 1024");
    }
    *to = (uint32_t)x;
    return QN_OK;
}

static int read_kind(const struct qn_parameter_file *d, json_t *root,
                     enum qn_tiled_kind *to)
{
    const char *s = json_string_value(json_object_get(root, "kind"));
    for (uint32_t i = 0; s != NULL && i < QN_TILED_KINDS; i++) {
        if (strcmp(s, kind_table[i].name) == 0) {
            *to = (enum qn_tiled_kind)i;
            return QN_OK;
        }
    }
    return qn_parameter_fault(d, "kind", "write \"scc\" or \"tilegx\"");
}

static int read_format(const struct qn_parameter_file *d, json_t *root)
{
    static const char *const known[] = {
        "format", "version",        "kind",      "name",      "columns",
        "rows",   "cores_per_tile", "clock_ghz", "parameters"};
    return qn_parameter_head(d, root, FORMAT, known, QN_ARRAY_COUNT(known));
}

static int read_head(const struct qn_parameter_file *d, json_t *root,
                     struct qn_tiled *m)
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
        return qn_parameter_fault(d, "columns",
                                  "at most 1024 cores; write a smaller grid");
    }
    const char *name = json_string_value(json_object_get(root, "name"));
    if (name == NULL) {
        return qn_parameter_fault(d, "name",
                                  "write the machine's name as a string");
    }
    qn_text_copy(m->name, sizeof m->name, name);
    m->clock_ghz = json_number_value(json_object_get(root, "clock_ghz"));
    if (!(m->clock_ghz > 0 && m->clock_ghz <= GHZ_MAX)) {
        return qn_parameter_fault(d, "clock_ghz",
                                  "write cycles per ns, above 0");
    }
    return QN_OK;
}

static int read_parameters(const struct qn_parameter_file *d, json_t *root,
                           struct qn_tiled *m)
{
    m->parameters = kind_table[m->kind].count;
    return qn_parameter_read(d, root, kind_table[m->kind].known, m->parameters,
                             m->parameter);
}

/* ---- files ---- */

int qn_tiled_parse(struct qn_tiled *out, const char *file, const char *bytes,
                   size_t len, struct qn_parse_error *parse_error)
{
    const struct qn_parameter_file d = {file, bytes, len, parse_error};
    struct qn_tiled m = {0};
    json_t *root;
    int err = qn_parameter_parse(&d, &root);
    if (err != QN_OK) {
        return err;
    }
    err = read_head(&d, root, &m);
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
    const struct qn_parameter *p = &m->parameter[parameter];
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
    qn_parameter_print(m->parameter, m->parameters, f);
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
