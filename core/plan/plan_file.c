/*
 * A file says edges in operating system numbers. A caller that asks for a
 * tree over any cores gets the machine of those it names: they are collected
 * first, and the tree is then checked as over any other machine.
 *
 * CSV is checked where it is parsed (tree_io.c); JSON here, where a fault
 * names the member, as jansson does not keep lines.
 */
#include "core/plan/plan_file.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/machine/csv.h"
#include "core/plan/tree_io.h"

#define FILE_MOST ((size_t)1 << 20) /* 1024 edges take 80 KB */
#define NONE      UINT32_MAX

/* Which cores are named. */
struct named {
    bool at[QN_CORE_NUMBER_MAX + 1];
    uint32_t count;
};

struct source {
    const char *file;
    const char *bytes;
    size_t len;
    json_t *json; /* NULL: CSV */
    struct qn_parse_error *parse_error;
};

static int wrong(const struct source *s, const char *field, const char *what)
{
    return qn_parse_error_set(s->parse_error, s->file, 0, field, "%s", what);
}

/* ---- which cores --------------------------------------------------------- */

static void name(struct named *n, uint32_t os)
{
    n->count += !n->at[os];
    n->at[os] = true;
}

static int names_of_csv(struct named *n, const struct source *s)
{
    static const char mark[] = "# root=";
    struct qn_csv c;
    qn_csv_init(&c, s->file, s->bytes, s->len, s->parse_error);
    int err = qn_csv_header(&c, "parent,child,order");
    int got = err == QN_OK;
    while (err == QN_OK && (got = qn_csv_row(&c)) == 1) {
        for (uint32_t i = 0; err == QN_OK && i < 2; i++) {
            uint32_t os = 0;
            err = qn_csv_u32(&c, i == 0 ? "parent" : "child",
                             QN_CORE_NUMBER_MAX, &os);
            name(n, os);
        }
    }
    if (err == QN_OK && n->count == 0 && s->len > sizeof mark - 1 &&
        memcmp(s->bytes, mark, sizeof mark - 1) == 0) {
        name(n, (uint32_t)strtoul(s->bytes + sizeof mark - 1, NULL, 10) %
                    (QN_CORE_NUMBER_MAX + 1)); /* one core, no edge */
    }
    return err != QN_OK ? err : QN_MIN(got, 0);
}

/* A number of `o`, at most `most`; NONE: it is none. */
static uint32_t number(json_t *o, const char *key, uint32_t most)
{
    json_t *v = json_object_get(o, key);
    json_int_t x = json_is_integer(v) ? json_integer_value(v) : -1;
    return x >= 0 && x <= (json_int_t)most ? (uint32_t)x : NONE;
}

static int names_of_json(struct named *n, const struct source *s, json_t *tree)
{
    size_t i;
    json_t *edge;
    uint32_t os = number(tree, "root", QN_CORE_NUMBER_MAX);
    if (os == NONE) {
        return wrong(s, "root", "is missing or no core's number");
    }
    name(n, os);
    json_array_foreach(json_object_get(tree, "edges"), i, edge)
    {
        os = number(edge, "child", QN_CORE_NUMBER_MAX);
        if (os == NONE) {
            return wrong(s, "edges", "one has no child, or no core's number");
        }
        name(n, os);
    }
    return QN_OK;
}

static int machine_of(struct qn_machine **out, const struct named *n,
                      const struct source *s)
{
    if (n->count == 0 || n->count > QN_CORES_MAX) {
        return qn_parse_error_set(s->parse_error, s->file, 0, NULL,
                                  "it spans %u cores; 1 to %u", n->count,
                                  QN_CORES_MAX);
    }
    int err = qn_machine_create(out, n->count);
    for (uint32_t os = 0, i = 0; err == QN_OK && os <= QN_CORE_NUMBER_MAX;
         os++) {
        if (n->at[os]) {
            (*out)->core[i++].os = os;
        }
    }
    return err;
}

/* ---- a tree in JSON ------------------------------------------------------ */

struct edge {
    uint32_t parent, child, order;
};

static int read_edge(struct edge *e, const struct source *s,
                     const struct qn_machine *m, json_t *from, size_t i)
{
    char field[32];
    (void)snprintf(field, sizeof field, "edges[%zu]", i);
    uint32_t parent = number(from, "parent", QN_CORE_NUMBER_MAX);
    uint32_t child = number(from, "child", QN_CORE_NUMBER_MAX);
    e->order = number(from, "order", QN_CORES_MAX);
    if (parent == NONE || child == NONE || e->order == NONE) {
        return wrong(s, field,
                     "needs parent, child and order, which are numbers");
    }
    e->parent = qn_machine_find(m, parent);
    e->child = qn_machine_find(m, child);
    if (e->parent == m->n || e->child == m->n) {
        return qn_parse_error_set(
            s->parse_error, s->file, 0, field,
            "core %u is not on this machine or not of the "
            "group; use its operating system number",
            e->parent == m->n ? parent : child);
    }
    return QN_OK;
}

static int by_place(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;
    return x->parent != y->parent ? (x->parent > y->parent ? 1 : -1)
           : x->order != y->order ? (x->order > y->order ? 1 : -1)
                                  : 0;
}

/* Edges by parent and order; each parent's are numbered 0, 1, 2, ... */
static int shape_of(struct qn_shape *out, const struct source *s,
                    const struct qn_machine *m, struct edge *e, uint32_t root)
{
    struct qn_edges edges;
    uint32_t next = 0;
    qsort(e, m->n - 1, sizeof *e, by_place);
    qn_edges_init(&edges, m->n);
    for (uint32_t i = 0; i + 1 < m->n; i++) {
        next = i > 0 && e[i].parent == e[i - 1].parent ? next + 1 : 0;
        if (e[i].order != next) {
            return qn_parse_error_set(
                s->parse_error, s->file, 0, "order",
                "core %u's children are not numbered 0, 1, 2, "
                "...",
                m->core[e[i].parent].os);
        }
        qn_edges_add(&edges, e[i].parent, e[i].child);
    }
    return qn_shape_from_edges(out, &edges, root) == QN_OK
               ? QN_OK
               : wrong(s, "edges",
                       "no tree: a core has two parents, or the root does not "
                       "reach it");
}

static int read_tree(struct qn_shape *out, const struct source *s,
                     const struct qn_machine *m, json_t *tree)
{
    QN_ASSERT(m != NULL);
    json_t *edges = json_object_get(tree, "edges"), *from;
    uint32_t root = number(tree, "root", QN_CORE_NUMBER_MAX);
    uint32_t index = root != NONE ? qn_machine_find(m, root) : m->n;
    size_t i;
    if (index == m->n) {
        return wrong(s, "root",
                     "is missing, or no core of this machine or of "
                     "the group");
    }
    if (!json_is_array(edges) || json_array_size(edges) != m->n - 1) {
        return qn_parse_error_set(
            s->parse_error, s->file, 0, "edges",
            "there are %zu, and %u cores; a tree has one less "
            "than cores",
            json_array_size(edges), m->n);
    }
    struct edge e[QN_CORES_MAX];
    json_array_foreach(edges, i, from)
    {
        int err = read_edge(&e[i], s, m, from, i);
        if (err != QN_OK) {
            return err;
        }
    }
    return shape_of(out, s, m, e, index);
}

/* ---- a file -------------------------------------------------------------- */

static const char *format_of(json_t *json)
{
    const char *text = json_string_value(json_object_get(json, "format"));
    return text != NULL ? text : "";
}

/* The trees of the document; `up` may be `down`. */
static int find_trees(const struct source *s, json_t **down, json_t **up)
{
    const char *format = format_of(s->json);
    bool plan = strcmp(format, "quoin-plan") == 0;
    if (!plan && strcmp(format, "quoin-tree") != 0) {
        return wrong(s, "format", "must be quoin-tree or quoin-plan");
    }
    if (number(s->json, "version", 1) != 1) {
        return wrong(s, "version", "must be 1");
    }
    *down = plan ? json_object_get(s->json, "down") : s->json;
    *up = plan ? json_object_get(s->json, "up") : s->json;
    if (plan && json_object_get(s->json, "ring") != NULL) {
        return wrong(s, "ring", "is no tree; ask quoin tree for one");
    }
    return json_is_object(*down) && json_is_object(*up)
               ? QN_OK
               : wrong(s, "down", "a plan has the trees down and up");
}

static int read_json(struct qn_plan_file *out, const struct source *s,
                     const struct qn_machine *m, struct named *n)
{
    json_t *down = NULL, *up = NULL;
    int err = find_trees(s, &down, &up);
    if (err == QN_OK && m == NULL) {
        err = names_of_json(n, s, down);
        err = err == QN_OK ? machine_of(&out->m, n, s) : err;
        m = out->m;
    }
    err = err == QN_OK ? read_tree(&out->down, s, m, down) : err;
    err = err == QN_OK ? read_tree(&out->up, s, m, up) : err;
    return err == QN_OK && out->up.root != out->down.root
               ? wrong(s, "root", "of down and up differ; they must be one")
               : err;
}

static int read_csv(struct qn_plan_file *out, const struct source *s,
                    const struct qn_machine *m, struct named *n)
{
    int err = m == NULL ? names_of_csv(n, s) : QN_OK;
    if (err == QN_OK && m == NULL) {
        err = machine_of(&out->m, n, s);
        m = out->m;
    }
    if (err == QN_OK) {
        err = qn_tree_parse_csv(&out->down, m, s->file, s->bytes, s->len,
                                s->parse_error);
    }
    out->up = out->down;
    return err;
}

static bool is_json(const char *bytes, size_t len)
{
    size_t i = 0;
    while (i < len && memchr(" \t\r\n", bytes[i], 4) != NULL) {
        i++;
    }
    return i < len && bytes[i] == '{';
}

static int parse(struct qn_plan_file *out, struct source *s,
                 const struct qn_machine *m)
{
    struct named *n = calloc(1, sizeof *n);
    json_error_t e;
    int err = n != NULL ? QN_OK : QN_ENOMEM;
    if (err == QN_OK && is_json(s->bytes, s->len)) {
        s->json = json_loadb(s->bytes, s->len, JSON_REJECT_DUPLICATES, &e);
        err = s->json != NULL
                  ? read_json(out, s, m, n)
                  : qn_parse_error_set(s->parse_error, s->file,
                                       (uint32_t)QN_MAX(e.line, 1), "JSON",
                                       "%s; the file may be cut, copy it "
                                       "again, or correct it",
                                       e.text);
    } else if (err == QN_OK) {
        err = read_csv(out, s, m, n);
    }
    json_decref(s->json);
    free(n);
    return err;
}

int qn_plan_file_load(struct qn_plan_file *out, const char *path,
                      const struct qn_machine *m,
                      struct qn_parse_error *parse_error)
{
    char *bytes = NULL;
    size_t len = 0;
    struct qn_plan_file f = {.m = NULL};
    int err = qn_file_read(path, FILE_MOST, &bytes, &len, parse_error);
    struct source s = {path, bytes, len, NULL, parse_error};
    err = err == QN_OK ? parse(&f, &s, m) : err;
    free(bytes);
    if (err == QN_OK) {
        *out = f;
    } else {
        qn_machine_destroy(f.m);
    }
    if (err == QN_ENOMEM) {
        (void)wrong(&s, NULL, "out of memory");
    }
    return err;
}

void qn_plan_file_fini(struct qn_plan_file *f)
{
    qn_machine_destroy(f->m);
    f->m = NULL;
}

bool qn_plan_file_like(const char *path)
{
    char *bytes = NULL;
    size_t len = 0;
    json_error_t e;
    if (qn_file_read(path, FILE_MOST, &bytes, &len, NULL) != QN_OK) {
        return false;
    }
    bool like = len > 0 && !is_json(bytes, len);
    if (!like && len > 0) {
        json_t *json = json_loadb(bytes, len, 0, &e);
        const char *format = format_of(json);
        like = json == NULL ? memmem(bytes, len, "quoin-machine", 13) == NULL
                            : strcmp(format, "quoin-tree") == 0 ||
                                  strcmp(format, "quoin-plan") == 0;
        json_decref(json);
    }
    free(bytes);
    return like;
}
