/*
 * Reading prices.json of a coherent machine.
 */
#include "core/sim/timed/coherent_file.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/machine/csv.h"

#define FORMAT  "quoin-prices"
#define NAME    "prices.json"
#define MOST    ((size_t)1 << 16) /* bytes of a file */
#define GHZ_MAX 1000.0

#define X(id, name, unit, zero) {name, unit, zero},
static const struct qn_parameter_kind kind[] = {QN_COHERENT_FILE_MAP(X)};
#undef X

static int read_root(const struct qn_parameter_file *f, json_t *root,
                     struct qn_coherent_file *m)
{
    static const char *const known[] = {"format", "version", "clock_ghz",
                                        "parameters"};
    int err = qn_parameter_head(f, root, FORMAT, known, QN_ARRAY_COUNT(known));
    if (err != QN_OK) {
        return err;
    }
    m->clock_ghz = json_number_value(json_object_get(root, "clock_ghz"));
    if (!(m->clock_ghz > 0 && m->clock_ghz <= GHZ_MAX)) {
        return qn_parameter_fault(f, "clock_ghz",
                                  "write cycles per ns, above 0");
    }
    return qn_parameter_read(f, root, kind, QN_ARRAY_COUNT(kind), m->parameter);
}

int qn_coherent_file_parse(struct qn_coherent_file *out, const char *file,
                           const char *bytes, size_t len,
                           struct qn_parse_error *parse_error)
{
    const struct qn_parameter_file f = {file, bytes, len, parse_error};
    struct qn_coherent_file m = {0};
    json_t *root;
    int err = qn_parameter_parse(&f, &root);
    if (err != QN_OK) {
        return err;
    }
    err = read_root(&f, root, &m);
    json_decref(root);
    if (err == QN_OK) {
        *out = m;
    }
    return err;
}

int qn_coherent_file_load(struct qn_coherent_file *out, const char *folder,
                          struct qn_parse_error *parse_error)
{
    char path[4096];
    char *bytes = NULL;
    size_t len = 0;
    if (snprintf(path, sizeof path, "%s/" NAME, folder) >= (int)sizeof path) {
        return QN_EMSGSIZE;
    }
    int err = qn_file_read(path, MOST, &bytes, &len, parse_error);
    if (err == QN_OK) {
        err = qn_coherent_file_parse(out, path, bytes, len, parse_error);
    }
    free(bytes);
    return err;
}

struct qn_coherent_opts qn_coherent_file_opts(const struct qn_coherent_file *f)
{
    const struct qn_parameter *p = f->parameter;
    return (struct qn_coherent_opts){
        .clock_ghz = f->clock_ghz,
        .hit_cycles = p[QN_COHERENT_FILE_HIT].value,
        .rmw_cycles = p[QN_COHERENT_FILE_RMW].value,
        .fence_cycles = p[QN_COHERENT_FILE_FENCE].value,
        .clock_cycles = p[QN_COHERENT_FILE_CLOCK].value,
        .shared_store = p[QN_COHERENT_FILE_SHARED].value,
        .shared_store_cycles = p[QN_COHERENT_FILE_SHARED_LEAST].value,
        .prefetch = p[QN_COHERENT_FILE_PREFETCH].value,
        .prefetch_ahead = (uint32_t)p[QN_COHERENT_FILE_AHEAD].value,
        .memory_cycles = p[QN_COHERENT_FILE_MEMORY].value,
        .streams = (uint32_t)p[QN_COHERENT_FILE_STREAMS].value,
        .watched = p[QN_COHERENT_FILE_WATCHED].value,
        .hyper_threads = p[QN_COHERENT_FILE_HYPER].value > 0,
    };
}

qn_ps_t qn_coherent_file_ps(const struct qn_coherent_file *f,
                            enum qn_coherent_file_parameter parameter)
{
    double ps = f->parameter[parameter].value * 1000 / f->clock_ghz;
    return ps > 0 && ps < 1 ? 1 : (qn_ps_t)llround(ps);
}
