/*
 * Edges come in any order, each with its place among its siblings; they are
 * put into a table by (parent, place) at the end, when the numbers of children
 * are known. Two parents are found at the second line; a core without parent is
 * the root or missing; n-1 edges with one parent each that do not reach all
 * cores are a cycle, and the fault names a line of it.
 */
#include "core/plan/tree_io.h"

#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/machine/csv.h"
#include "core/topo/predict.h"

#define TREE_HEADER "parent,child,order"
#define MAP_HEADER  "logical,core"
#define NONE        QN_CORES_MAX

struct reader {
    struct qn_csv csv;
    const struct qn_machine *m;
    uint32_t root; /* as the file says; NONE: it does not */
    uint32_t root_line;
    uint32_t line[QN_CORES_MAX];     /* by child; 0: no parent yet */
    uint16_t parent[QN_CORES_MAX];   /* by child */
    uint16_t order[QN_CORES_MAX];    /* by child */
    uint32_t children[QN_CORES_MAX]; /* by parent */
};

static int parse_error(struct reader *r, uint32_t line, const char *field,
                       const char *what, uint32_t core)
{
    return qn_parse_error_set(r->csv.parse_error, r->csv.file, line, field,
                              "core %u %s", core, what);
}

static int read_core(struct reader *r, const char *name, uint32_t *index)
{
    uint32_t os = 0;
    int err = qn_csv_u32(&r->csv, name, QN_CORE_NUMBER_MAX, &os);
    if (err != QN_OK) {
        return err;
    }
    *index = qn_machine_find(r->m, os);
    return *index < r->m->n
               ? QN_OK
               : parse_error(
                     r, r->csv.line, name,
                     "is not on this machine or not of the group; use its "
                     "operating system number",
                     os);
}

/* Comments before the header; one of them may name the root. */
static int read_root(struct reader *r)
{
    static const char mark[] = "# root=";
    struct qn_csv ahead = r->csv;
    r->root = NONE;
    for (int got = qn_csv_line(&ahead); got != 0; got = qn_csv_line(&ahead)) {
        if (got < 0) {
            return got;
        }
        size_t len = qn_csv_rest(&ahead);
        if (len > 0 && *ahead.at != '#') {
            break;
        }
        if (len >= sizeof mark - 1 &&
            memcmp(ahead.at, mark, sizeof mark - 1) == 0) {
            struct qn_csv here = r->csv;
            r->csv = ahead;
            r->csv.at += sizeof mark - 1;
            int err = read_core(r, "root", &r->root);
            err = err != QN_OK ? err : qn_csv_done(&r->csv);
            r->root_line = ahead.line;
            r->csv = here;
            if (err != QN_OK) {
                return err;
            }
        }
    }
    return QN_OK;
}

static int read_edge(struct reader *r)
{
    uint32_t parent = 0, child = 0, order = 0;
    int err = read_core(r, "parent", &parent);
    err = err != QN_OK ? err : read_core(r, "child", &child);
    err = err != QN_OK ? err
                       : qn_csv_u32(&r->csv, "order", QN_CORES_MAX - 1, &order);
    err = err != QN_OK ? err : qn_csv_done(&r->csv);
    if (err != QN_OK) {
        return err;
    }
    uint32_t os = r->m->core[child].os, line = r->csv.line;
    if (child == parent) {
        return parse_error(r, line, "child", "is its own parent; a cycle", os);
    }
    if (r->line[child] != 0) {
        return parse_error(r, line, "child", "has two parents; keep one line",
                           os);
    }
    if (child == r->root) {
        return parse_error(r, line, "child", "is the root and has a parent",
                           os);
    }
    r->line[child] = line;
    r->parent[child] = (uint16_t)parent;
    r->order[child] = (uint16_t)order;
    r->children[parent]++;
    return QN_OK;
}

/* A core on a cycle that is reached from v by parents, the lowest of it. n
 * steps are enough to be on it. */
static uint32_t on_cycle(const struct reader *r, uint32_t v)
{
    for (uint32_t i = 0; i < r->m->n; i++) {
        v = r->parent[v];
    }
    uint32_t lowest = v;
    for (uint32_t u = r->parent[v]; u != v; u = r->parent[u]) {
        lowest = QN_MIN(lowest, u);
    }
    return lowest;
}

/* The root is the one core without parent. */
static int find_root(struct reader *r)
{
    uint32_t last = QN_MAX(r->csv.line, 1u), root = NONE;
    for (uint32_t v = 0; v < r->m->n; v++) {
        if (r->line[v] != 0 || v == r->root) {
            continue;
        }
        if (r->root != NONE || root != NONE) {
            return parse_error(
                r, last, "child",
                "is missing: it has no parent and is not the root; "
                "add its line",
                r->m->core[v].os);
        }
        root = v;
    }
    r->root = r->root != NONE ? r->root : root;
    if (r->root != NONE) {
        return QN_OK;
    }
    uint32_t v = on_cycle(r, 0);
    return parse_error(
        r, r->line[v], "parent",
        "is on a cycle: every core has a parent; remove one line",
        r->m->core[v].os);
}

/* Children by (parent, order); then the edges are a tree or have a cycle. */
static int make_shape(struct reader *r, struct qn_shape *s)
{
    uint16_t first[QN_CORES_MAX], at[QN_CORES_MAX] = {0};
    bool taken[QN_CORES_MAX] = {false};
    uint32_t next = 0, n = r->m->n;
    for (uint32_t v = 0; v < n; v++) {
        first[v] = (uint16_t)next;
        next += r->children[v];
    }
    for (uint32_t v = 0; v < n; v++) {
        uint32_t p = r->parent[v];
        if (v == r->root) {
            continue;
        }
        if (r->order[v] >= r->children[p] || taken[first[p] + r->order[v]]) {
            return parse_error(
                r, r->line[v], "order",
                "has a place that is taken or leaves a gap; number "
                "each parent's children 0, 1, 2, ...",
                r->m->core[v].os);
        }
        taken[first[p] + r->order[v]] = true;
        at[first[p] + r->order[v]] = (uint16_t)v;
    }
    struct qn_edges e;
    qn_edges_init(&e, n);
    for (uint32_t i = 0; i + 1 < n; i++) {
        qn_edges_add(&e, r->parent[at[i]], at[i]);
    }
    return qn_shape_from_edges(s, &e, r->root);
}

/* Some core whose ancestors go round. */
static int fault_cycle(struct reader *r)
{
    uint32_t v = r->root;
    for (uint32_t u = 0; v == r->root && u < r->m->n; u++) {
        v = u;
        for (uint32_t i = 0; i < r->m->n && v != r->root; i++) {
            v = r->parent[v];
        }
    }
    v = on_cycle(r, v);
    return parse_error(r, r->line[v], "parent",
                       "is on a cycle; the root does not reach it",
                       r->m->core[v].os);
}

int qn_tree_parse_csv(struct qn_shape *s, const struct qn_machine *m,
                      const char *file, const char *bytes, size_t len,
                      struct qn_parse_error *f)
{
    struct reader r = {.m = m};
    qn_csv_init(&r.csv, file, bytes, len, f);
    int err = read_root(&r);
    err = err != QN_OK ? err : qn_csv_header(&r.csv, TREE_HEADER);
    int got = err == QN_OK;
    while (err == QN_OK && (got = qn_csv_row(&r.csv)) == 1) {
        err = read_edge(&r);
    }
    err = err != QN_OK ? err : got < 0 ? got : find_root(&r);
    if (err != QN_OK) {
        return err;
    }
    struct qn_parse_error none = {""};
    struct qn_parse_error *mine = r.csv.parse_error;
    r.csv.parse_error = &none;
    err = make_shape(&r, s);
    r.csv.parse_error = mine;
    if (err != QN_OK && none.text[0] == '\0') {
        return fault_cycle(&r);
    }
    if (err != QN_OK && mine != NULL) {
        *mine = none;
    }
    return err;
}

int qn_tree_write_csv(const struct qn_machine *m, const struct qn_shape *s,
                      FILE *f)
{
    (void)fprintf(f, "# root=%u\n" TREE_HEADER "\n", m->core[s->root].os);
    for (uint32_t v = 0; v < s->n; v++) {
        for (uint32_t k = 0; k < s->count[v]; k++) {
            (void)fprintf(f, "%u,%u,%u\n", m->core[v].os,
                          m->core[qn_shape_children(s, v)[k]].os, k);
        }
    }
    return ferror(f) ? QN_EIO : QN_OK;
}

int qn_tree_write_json(const struct qn_machine *m, const struct qn_shape *s,
                       FILE *f)
{
    double at[QN_CORES_MAX];
    double latency = qn_predict_broadcast(m, s, at, NULL);
    const char *comma = "";
    (void)fprintf(
        f,
        "{\"format\": \"quoin-tree\", \"version\": 1,\n \"root\": %u, "
        "\"latency\": %.15g,\n \"edges\": [",
        m->core[s->root].os, latency);
    for (uint32_t v = 0; v < s->n; v++) {
        for (uint32_t k = 0; k < s->count[v]; k++) {
            uint32_t c = qn_shape_children(s, v)[k];
            (void)fprintf(f,
                          "%s\n  {\"parent\": %u, \"child\": %u, \"order\": "
                          "%u, \"informed\": %.15g}",
                          comma, m->core[v].os, m->core[c].os, k, at[c]);
            comma = ",";
        }
    }
    (void)fputs("]}\n", f);
    return ferror(f) ? QN_EIO : QN_OK;
}

/* The box of v's memory node, drawn when v is the first of it. */
static void write_box(const struct qn_machine *m, uint32_t v, FILE *f)
{
    for (uint32_t u = 0; u < v; u++) {
        if (m->core[u].node == m->core[v].node) {
            return;
        }
    }
    (void)fprintf(f, "  subgraph cluster_%u {\n    label=\"node %u\";\n   ",
                  m->core[v].node, m->core[v].node);
    for (uint32_t u = v; u < m->n; u++) {
        if (m->core[u].node == m->core[v].node) {
            (void)fprintf(f, " %u;", m->core[u].os);
        }
    }
    (void)fputs("\n  }\n", f);
}

int qn_tree_write_dot(const struct qn_machine *m, const struct qn_shape *s,
                      const char *name, FILE *f)
{
    (void)fprintf(f, "digraph %s {\n  node [shape=circle];\n", name);
    for (uint32_t v = 0; v < s->n; v++) {
        write_box(m, v, f);
    }
    (void)fprintf(f, "  %u [shape=doublecircle];\n", m->core[s->root].os);
    for (uint32_t v = 0; v < s->n; v++) {
        for (uint32_t k = 0; k < s->count[v]; k++) {
            (void)fprintf(f, "  %u -> %u [label=\"%u\"];\n", m->core[v].os,
                          m->core[qn_shape_children(s, v)[k]].os, k);
        }
    }
    (void)fputs("}\n", f);
    return ferror(f) ? QN_EIO : QN_OK;
}

static int read_place(struct reader *r, uint16_t *core, bool *used)
{
    uint32_t id = 0, index = 0;
    int err = qn_csv_u32(&r->csv, "logical", r->m->n - 1, &id);
    err = err != QN_OK ? err : read_core(r, "core", &index);
    err = err != QN_OK ? err : qn_csv_done(&r->csv);
    if (err != QN_OK) {
        return err;
    }
    if (r->line[id] != 0) {
        return qn_parse_error_set(r->csv.parse_error, r->csv.file, r->csv.line,
                                  "logical", "%u is there twice; keep one line",
                                  id);
    }
    if (used[index]) {
        return parse_error(r, r->csv.line, "core",
                           "is there twice; keep one line",
                           r->m->core[index].os);
    }
    r->line[id] = r->csv.line;
    used[index] = true;
    core[id] = (uint16_t)index;
    return QN_OK;
}

int qn_diamond_ring_parse_map(struct qn_diamond_ring *ring,
                              const struct qn_machine *m, const char *file,
                              const char *bytes, size_t len,
                              struct qn_parse_error *f)
{
    struct reader r = {.m = m};
    uint16_t core[QN_CORES_MAX];
    bool used[QN_CORES_MAX] = {false};
    qn_csv_init(&r.csv, file, bytes, len, f);
    int err = qn_csv_header(&r.csv, MAP_HEADER);
    int got = err == QN_OK;
    while (err == QN_OK && (got = qn_csv_row(&r.csv)) == 1) {
        err = read_place(&r, core, used);
    }
    err = err != QN_OK ? err : QN_MIN(got, 0);
    for (uint32_t id = 0; err == QN_OK && id < ring->o.n; id++) {
        if (id >= m->n || r.line[id] == 0) {
            err = qn_parse_error_set(f, file, r.csv.line, "logical",
                                     "%u is missing; add its line", id);
        }
    }
    if (err == QN_OK) {
        memcpy(ring->core, core, ring->o.n * sizeof *core);
    }
    return err;
}

int qn_diamond_ring_write_map(const struct qn_machine *m,
                              const struct qn_diamond_ring *r, FILE *f)
{
    (void)fputs(MAP_HEADER "\n", f);
    for (uint32_t id = 0; id < r->o.n; id++) {
        (void)fprintf(f, "%u,%u\n", id, m->core[r->core[id]].os);
    }
    return ferror(f) ? QN_EIO : QN_OK;
}
