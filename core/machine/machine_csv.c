/*
 * Machines as folders of CSV files, the form in which machines are published
 * and compared.
 *
 * numa.csv comes first and says which cores there are; rows may be in any
 * order and are sorted by core number. pairwise.csv then fills the matrices. A
 * pair counts as read when its send cost is above 0, so that no second table
 * is needed to find pairs that are there twice or not at all. Rows usually
 * follow the cores' order, so the place of the previous number is tried before
 * a search.
 *
 * Memory is bounded by QN_CORES_MAX before anything quadratic is allocated.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/base/text.h"
#include "core/machine/machine_csv_internal.h"
#include "core/machine/machine_json_internal.h"
#include "core/machine/number.h"

#define NUMA_HEADER "core,phys,cache,node,socket"
#define PAIR_HEADER "from,to,send_cycles,receive_cycles"
#define PATH_BYTES  4096u
#define META_MAX    ((size_t)1 << 20) /* bytes */

/* A core and where it was read, until all are known. */
struct core_row {
    struct qn_machine_core core;
    uint32_t line;
};

static int read_core(struct qn_csv *c, struct qn_machine_core *core)
{
    int err = qn_csv_u32(c, "core", QN_CORE_NUMBER_MAX, &core->os);
    err = err != QN_OK ? err : qn_csv_u32(c, "phys", UINT32_MAX, &core->phys);
    err = err != QN_OK ? err : qn_csv_u32(c, "cache", UINT32_MAX, &core->cache);
    err = err != QN_OK ? err : qn_csv_u32(c, "node", UINT32_MAX, &core->node);
    err =
        err != QN_OK ? err : qn_csv_u32(c, "socket", UINT32_MAX, &core->socket);
    return err != QN_OK ? err : qn_csv_done(c);
}

static int by_number(const void *a, const void *b)
{
    const struct core_row *x = a, *y = b;
    if (x->core.os != y->core.os) {
        return x->core.os < y->core.os ? -1 : 1;
    }
    return x->line < y->line ? -1 : 1;
}

/* @return cores read, or an error. */
static int read_rows(struct qn_csv *c, struct core_row *rows)
{
    int err = qn_csv_header(c, NUMA_HEADER);
    uint32_t n = 0;
    while (err == QN_OK) {
        int got = qn_csv_row(c);
        if (got <= 0) {
            return got < 0 ? got : (int)n;
        }
        if (n == QN_CORES_MAX) {
            return qn_parse_error_set(c->parse_error, c->file, c->line, "core",
                                      "more than %u cores; leave some out",
                                      QN_CORES_MAX);
        }
        rows[n].line = c->line;
        err = read_core(c, &rows[n++].core);
    }
    return err;
}

static int make_cores(struct qn_machine **out, struct qn_csv *c,
                      struct core_row *rows)
{
    int n = read_rows(c, rows);
    if (n < 0) {
        return n;
    }
    if (n == 0) {
        return qn_parse_error_set(c->parse_error, c->file, c->line, "core",
                                  "no core at all; write one row per core");
    }
    qsort(rows, (size_t)n, sizeof *rows, by_number);
    for (int i = 1; i < n; i++) {
        if (rows[i].core.os == rows[i - 1].core.os) {
            return qn_parse_error_set(
                c->parse_error, c->file, rows[i].line, "core",
                "%u is there twice, first in line %u; remove "
                "one of the rows",
                rows[i].core.os, rows[i - 1].line);
        }
    }
    int err = qn_machine_create(out, (uint32_t)n);
    for (int i = 0; err == QN_OK && i < n; i++) {
        (*out)->core[i] = rows[i].core;
    }
    return err;
}

static int read_cores(struct qn_machine **out, struct qn_csv *c)
{
    struct core_row *rows = malloc(QN_CORES_MAX * sizeof *rows);
    if (rows == NULL) {
        return QN_ENOMEM;
    }
    int err = make_cores(out, c, rows);
    free(rows);
    return err;
}

/* One end of a pair; *guess is its index if rows are in order. */
static int read_end(struct qn_csv *c, const struct qn_machine *m,
                    const char *name, uint32_t *guess)
{
    uint32_t os = 0;
    int err = qn_csv_u32(c, name, QN_CORE_NUMBER_MAX, &os);
    if (err != QN_OK) {
        return err;
    }
    if (*guess >= m->n || m->core[*guess].os != os) {
        *guess = qn_machine_find(m, os);
    }
    if (*guess == m->n) {
        return qn_parse_error_set(c->parse_error, c->file, c->line, name,
                                  "core %u is not in numa.csv; add it there or "
                                  "remove the row",
                                  os);
    }
    return QN_OK;
}

int qn_csv_pair(struct qn_csv *c, const struct qn_machine *m, uint32_t *from,
                uint32_t *to)
{
    int err = read_end(c, m, "from", from);
    err = err != QN_OK ? err : read_end(c, m, "to", to);
    if (err == QN_OK && *from == *to) {
        return qn_parse_error_set(c->parse_error, c->file, c->line, "to",
                                  "core %u sends to itself; remove the row",
                                  m->core[*from].os);
    }
    return err;
}

int qn_csv_pair_again(const struct qn_csv *c, const struct qn_machine *m,
                      uint32_t u, uint32_t v)
{
    return qn_parse_error_set(c->parse_error, c->file, c->line, "from,to",
                              "the pair %u,%u is there twice; remove one row",
                              m->core[u].os, m->core[v].os);
}

int qn_csv_pair_missing(const struct qn_csv *c, const struct qn_machine *m,
                        uint32_t u, uint32_t v, const char *rule)
{
    return qn_parse_error_set(c->parse_error, c->file, QN_MAX(c->line, 1u),
                              "from,to",
                              "the file ends without the pair %u,%u; %s",
                              m->core[u].os, m->core[v].os, rule);
}

static int read_pair(struct qn_csv *c, struct qn_machine *m, uint32_t *from,
                     uint32_t *to)
{
    (*to)++;
    int err = qn_csv_pair(c, m, from, to);
    if (err != QN_OK) {
        return err;
    }
    size_t at = (size_t)*from * m->n + *to;
    if (m->send[at] > 0) {
        return qn_csv_pair_again(c, m, *from, *to);
    }
    double send = 0;
    err = qn_csv_cost(c, "send_cycles", &send);
    err =
        err != QN_OK ? err : qn_csv_cost(c, "receive_cycles", &m->receive[at]);
    m->send[at] = send;
    return err != QN_OK ? err : qn_csv_done(c);
}

static int find_missing(const struct qn_csv *c, const struct qn_machine *m)
{
    for (uint32_t u = 0; u < m->n; u++) {
        for (uint32_t v = 0; v < m->n; v++) {
            if (u != v && !(qn_send_cost(m, u, v) > 0)) {
                return qn_csv_pair_missing(
                    c, m, u, v, "each ordered pair of cores needs a row");
            }
        }
    }
    return QN_OK;
}

static int read_pairs(struct qn_csv *c, struct qn_machine *m)
{
    int err = qn_csv_header(c, PAIR_HEADER);
    uint32_t from = 0, to = 0;
    while (err == QN_OK) {
        int got = qn_csv_row(c);
        if (got <= 0) {
            return got < 0 ? got : find_missing(c, m);
        }
        err = read_pair(c, m, &from, &to);
    }
    return err;
}

/* "a/b/" and "a/b" are called b. */
static void name_after_folder(struct qn_machine *m, const char *folder)
{
    size_t end = strlen(folder);
    while (end > 1 && folder[end - 1] == '/') {
        end--;
    }
    size_t begin = end;
    while (begin > 0 && folder[begin - 1] != '/') {
        begin--;
    }
    (void)snprintf(m->name, sizeof m->name, "%.*s", (int)(end - begin),
                   folder + begin);
    qn_text_clean(m->name);
}

static void take_text(char *to, json_t *root, const char *key)
{
    const char *s = json_string_value(json_object_get(root, key));
    if (s != NULL) {
        qn_text_copy(to, QN_MACHINE_NAME_MAX + 1, s);
    }
}

static void take_number(double *to, double max, json_t *root, const char *key)
{
    double x = json_number_value(json_object_get(root, key));
    if (x > 0 && x <= max) {
        *to = x;
    }
}

/* What is in meta.json is for people; what is of use here is taken. A bandwidth
 * that cannot be is refused: a simulation would run with another one. */
static int read_meta(struct qn_machine *m, const char *file, const char *bytes,
                     size_t len, struct qn_parse_error *parse_error)
{
    json_error_t e;
    json_t *root = json_loadb(bytes, len, JSON_REJECT_DUPLICATES, &e);
    if (root == NULL) {
        return qn_parse_error_set(parse_error, file,
                                  (uint32_t)QN_MAX(e.line, 1), NULL,
                                  "%s; mend it or remove the file", e.text);
    }
    take_text(m->name, root, "name");
    take_text(m->facts.cpu, root, "cpu");
    take_text(m->facts.measured, root, "measured_at");
    take_text(m->facts.transport, root, "transport");
    take_number(&m->facts.clock_ghz, QN_GHZ_MAX, root, "ghz");
    take_number(&m->facts.queued_factor, 1, root, "queued_factor");
    const uint32_t bad = qn_json_read_bandwidths(root, &m->facts);
    json_decref(root);
    return bad == QN_BANDWIDTHS ? QN_OK
                                : qn_parse_error_set(parse_error, file, 1,
                                                     qn_bandwidth_name(bad),
                                                     QN_JSON_BANDWIDTH_HINT);
}

int qn_machine_parse_csv(struct qn_machine **out,
                         const struct qn_machine_text *text,
                         struct qn_parse_error *parse_error)
{
    char file[PATH_BYTES];
    struct qn_csv c;
    struct qn_machine *m = NULL;
    (void)snprintf(file, sizeof file, "%s/numa.csv", text->folder);
    qn_csv_init(&c, file, text->numa.text, text->numa.bytes, parse_error);
    int err = read_cores(&m, &c);
    if (err != QN_OK) {
        return err;
    }
    QN_ASSERT(m != NULL);
    name_after_folder(m, text->folder);
    (void)snprintf(file, sizeof file, "%s/pairwise.csv", text->folder);
    qn_csv_init(&c, file, text->pairs.text, text->pairs.bytes, parse_error);
    err = read_pairs(&c, m);
    if (err == QN_OK && text->meta.text != NULL) {
        (void)snprintf(file, sizeof file, "%s/meta.json", text->folder);
        err =
            read_meta(m, file, text->meta.text, text->meta.bytes, parse_error);
    }
    if (err == QN_OK && text->trips.text != NULL) {
        (void)snprintf(file, sizeof file, "%s/" QN_TRIPS_FILE, text->folder);
        qn_csv_init(&c, file, text->trips.text, text->trips.bytes, parse_error);
        err = qn_roundtrip_table_read(m, &c);
    }
    if (err != QN_OK) {
        qn_machine_destroy(m);
        return err;
    }
    *out = m;
    return QN_OK;
}

static int load(const char *folder, const char *file, size_t max, char **bytes,
                size_t *len, struct qn_parse_error *parse_error)
{
    char path[PATH_BYTES];
    int n = snprintf(path, sizeof path, "%s/%s", folder, file);
    if (n < 0 || (size_t)n >= sizeof path) {
        return qn_parse_error_set(parse_error, folder, 0, NULL,
                                  "the path is too long");
    }
    return qn_file_read(path, max, bytes, len, parse_error);
}

int qn_machine_load_csv(struct qn_machine **out, const char *folder,
                        struct qn_parse_error *parse_error)
{
    struct qn_machine_text t = {.folder = folder};
    const struct {
        const char *name;
        size_t max;
        bool needed;
        struct qn_machine_file *to;
    } file[] = {{"numa.csv", QN_MACHINE_FILE_MAX, true, &t.numa},
                {"pairwise.csv", QN_MACHINE_FILE_MAX, true, &t.pairs},
                {"meta.json", META_MAX, false, &t.meta},
                {QN_TRIPS_FILE, QN_MACHINE_FILE_MAX, false, &t.trips}};
    char *bytes[QN_ARRAY_COUNT(file)] = {NULL};
    int err = QN_OK;
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(file) && err == QN_OK; i++) {
        err = load(folder, file[i].name, file[i].max, &bytes[i],
                   &file[i].to->bytes, parse_error);
        err = err == QN_ENOENT && !file[i].needed ? QN_OK : err;
        file[i].to->text = bytes[i];
    }
    if (err == QN_OK) {
        err = qn_machine_parse_csv(out, &t, parse_error);
    }
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(file); i++) {
        free(bytes[i]);
    }
    return err;
}

static void write_pairs(const struct qn_machine *m, FILE *f)
{
    (void)fputs(PAIR_HEADER "\n", f);
    for (uint32_t u = 0; u < m->n; u++) {
        for (uint32_t v = 0; v < m->n; v++) {
            if (u == v) {
                continue;
            }
            (void)fprintf(f, "%u,%u,", m->core[u].os, m->core[v].os);
            qn_number_write(f, qn_send_cost(m, u, v));
            (void)fputc(',', f);
            qn_number_write(f, qn_receive_cost(m, u, v));
            (void)fputc('\n', f);
        }
    }
}

int qn_machine_write_csv(const struct qn_machine *m, FILE *numa, FILE *pairs)
{
    (void)fputs(NUMA_HEADER "\n", numa);
    for (uint32_t i = 0; i < m->n; i++) {
        const struct qn_machine_core *c = &m->core[i];
        (void)fprintf(numa, "%u,%u,%u,%u,%u\n", c->os, c->phys, c->cache,
                      c->node, c->socket);
    }
    write_pairs(m, pairs);
    return ferror(numa) || ferror(pairs) ? QN_EIO : QN_OK;
}

static FILE *open_in(const char *folder, const char *file)
{
    char path[PATH_BYTES];
    int n = snprintf(path, sizeof path, "%s/%s", folder, file);
    return n > 0 && (size_t)n < sizeof path ? fopen(path, "we") : NULL;
}

static void write_meta_text(const char *key, const char *s, FILE *f)
{
    if (s[0] != '\0') {
        (void)fprintf(f, ",\n \"%s\": ", key);
        qn_json_write_string(f, s);
    }
}

static void write_meta_number(const char *key, double x, FILE *f)
{
    if (x > 0) {
        (void)fprintf(f, ",\n \"%s\": ", key);
        qn_number_write(f, x);
    }
}

static void write_meta(const struct qn_machine *m, FILE *f)
{
    (void)fputs("{\n \"name\": ", f);
    qn_json_write_string(f, m->name);
    (void)fprintf(f, ",\n \"cores\": %u,\n \"units\": \"cycles\"", m->n);
    write_meta_text("cpu", m->facts.cpu, f);
    write_meta_text("measured_at", m->facts.measured, f);
    write_meta_text("transport", m->facts.transport, f);
    write_meta_number("ghz", m->facts.clock_ghz, f);
    write_meta_number("queued_factor", m->facts.queued_factor, f);
    for (uint32_t b = 0; b < QN_BANDWIDTHS; b++) {
        write_meta_number(qn_bandwidth_name(b), m->facts.bandwidth[b], f);
    }
    (void)fputs("\n}\n", f);
}

/* @return whether all that was written has arrived. */
static bool close_file(FILE *f)
{
    bool ok = f != NULL && !ferror(f);
    return f != NULL && fclose(f) == 0 && ok;
}

/* Of another machine that was in this folder. */
static bool remove_trips(const char *folder)
{
    char path[PATH_BYTES];
    (void)snprintf(path, sizeof path, "%s/" QN_TRIPS_FILE, folder);
    return remove(path) == 0 || errno == ENOENT;
}

static bool save_trips(const struct qn_machine *m, const char *folder)
{
    if (!qn_roundtrip_table_known(m)) {
        return remove_trips(folder);
    }
    FILE *f = open_in(folder, QN_TRIPS_FILE);
    if (f != NULL) {
        qn_roundtrip_table_write(m, f);
    }
    return close_file(f);
}

int qn_machine_save_csv(const struct qn_machine *m, const char *folder,
                        struct qn_parse_error *parse_error)
{
    FILE *numa = open_in(folder, "numa.csv");
    FILE *pairs = open_in(folder, "pairwise.csv");
    FILE *meta = open_in(folder, "meta.json");
    int cause = errno;
    bool open = numa != NULL && pairs != NULL && meta != NULL;
    if (open) {
        (void)qn_machine_write_csv(m, numa, pairs);
        write_meta(m, meta);
        errno = EIO;
    }
    bool ok = close_file(numa);
    ok = close_file(pairs) && ok;
    ok = close_file(meta) && ok;
    ok = ok && save_trips(m, folder);
    if (!ok) {
        (void)qn_parse_error_set(parse_error, folder, 0, NULL,
                                 "cannot write there: %s",
                                 strerror(open ? errno : cause));
        return !open && cause == ENOENT ? QN_ENOENT : QN_EIO;
    }
    return QN_OK;
}
