/*
 * Names are parsed only here. Options of a ring follow its name after a colon,
 * separated by commas; for a mistyped name the nearest one is suggested. A ring
 * does not determine the placement on cores, so it is evaluated with a map that
 * was searched for, like a plan.
 *
 * The bound of a reduction: if the root has all at time D, its last message
 * began to be received at D - r at the latest, so that its sender had its own
 * subtree by D - r - s, the one before by D - 2r - s, and so on: N(D) = N(D -
 * r) + N(D - r - s), the broadcast's recursion with the two costs exchanged. A
 * message costs its receiver at least q r.
 */
#include "loadgen/topo/model/topology_spec.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/base/suggest.h"
#include "core/machine/csv.h"
#include "core/plan/diamond_ring_map.h"
#include "core/plan/plan_file.h"
#include "core/plan/tree_io.h"
#include "core/topo/adaptive.h"
#include "core/topo/pipeline_sim.h"
#include "core/topo/static_trees.h"

#define FILE_MOST ((size_t)1 << 20) /* 1024 edges take 20 KB */

#define NO_TOPOLOGY                                                            \
    "not a topology; use tree:k=N or "                                         \
    "ring:k=N[,full][,companion][,map=MAP]"

static const char *const fixed[] = {
    "auto", "adaptive", "binary", "sequential", "fibonacci", "mst",
    "mst2", "cluster",  "bad",    "bad2",       "ring:k=2",  "tree:k=2",
};

static const char *const more[] = {"tree:k=1", "tree:k=3", "tree:k=4",
                                   "ring:k=1", "ring:k=2", "ring:k=3",
                                   "ring:k=4"};

const char *qn_topology_spec_name_at(uint32_t i)
{
    uint32_t statics = 0;
    while (qn_static_name_at(statics) != NULL) {
        statics++;
    }
    if (i == 0) {
        return "adaptive";
    }
    i--;
    if (i < statics) {
        return qn_static_name_at(i);
    }
    i -= statics;
    return i < QN_ARRAY_COUNT(more) ? more[i] : NULL;
}

static int wrong(struct qn_parse_error *parse_error, const char *name,
                 const char *what)
{
    return qn_parse_error_set(parse_error, name, 0, NULL, "%s", what);
}

static void take_trees(struct qn_topology_spec *c, const struct qn_shape *down,
                       const struct qn_shape *up)
{
    c->down = *down;
    c->up = *up;
    c->two_trees = !qn_shape_equal(down, up);
    c->root = down->root;
}

/* ---- by rule ---- */

static int make_plan(struct qn_topology_spec *c, const struct qn_machine *m,
                     const struct qn_topology_spec_opts *o)
{
    struct qn_plan_opts plan = QN_PLAN_OPTS_DEFAULT;
    plan.goal = o->goal;
    plan.root = o->root;
    plan.seed = o->seed;
    plan.moves = o->moves;
    plan.q = o->q;
    plan.one_tree = o->one_tree;
    plan.max_occupancy = o->busy_most;
    plan.robust = o->robust;
    struct qn_plan *p = malloc(sizeof *p);
    int err = p != NULL ? qn_plan(p, m, &plan) : QN_ENOMEM;
    if (err == QN_OK) {
        take_trees(c, &p->down, &p->up);
        c->exact = p->exact;
        c->provable = p->provable;
    }
    free(p);
    return err;
}

/* ---- files ---- */

static int other_root(const char *path, const struct qn_machine *m,
                      uint32_t root, uint32_t asked,
                      struct qn_parse_error *parse_error)
{
    return qn_parse_error_set(
        parse_error, path, 0, "root",
        "the file's root is core %u, not %u; leave out --root",
        m->core[root].os, m->core[asked].os);
}

/* FILE, or FILE,up=FILE. */
static int read_tree(struct qn_topology_spec *c, const struct qn_machine *m,
                     const char *name, uint32_t root,
                     struct qn_parse_error *parse_error)
{
    static const char mark[] = ",up=";
    const char *second = strstr(name, mark);
    size_t len = second != NULL ? (size_t)(second - name) : strlen(name);
    char path[4096];
    (void)snprintf(path, sizeof path, "%.*s", (int)QN_MIN(len, sizeof path - 1),
                   name);
    struct qn_plan_file down, up;
    int err = qn_plan_file_load(&down, path, m, parse_error);
    if (err == QN_OK && second != NULL) {
        err = qn_plan_file_load(&up, second + sizeof mark - 1, m, parse_error);
        down.up = up.down;
    }
    if (err != QN_OK) {
        return err;
    }
    if (down.up.root != down.down.root) {
        return qn_parse_error_set(
            parse_error, name, 0, "root",
            "of the tree up is core %u, not %u; both trees need one root",
            m->core[down.up.root].os, m->core[down.down.root].os);
    }
    if (root != QN_ROOT_FREE && root != down.down.root) {
        return other_root(path, m, down.down.root, root, parse_error);
    }
    take_trees(c, &down.down, &down.up);
    return QN_OK;
}

/* The map has its own root. */
static int read_map(struct qn_diamond_ring *r, const struct qn_machine *m,
                    const char *path, uint32_t root,
                    struct qn_parse_error *parse_error)
{
    char *bytes = NULL;
    size_t len = 0;
    int err = qn_file_read(path, FILE_MOST, &bytes, &len, parse_error);
    if (err == QN_OK) {
        err = qn_diamond_ring_parse_map(r, m, path, bytes, len, parse_error);
    }
    free(bytes);
    if (err == QN_OK && root != QN_ROOT_FREE && root != r->core[0]) {
        return other_root(path, m, r->core[0], root, parse_error);
    }
    return err;
}

/* ---- rings ---- */

/* The options after the colon. */
struct words {
    uint32_t k; /* 0: none */
    bool full, companion;
    char map[512]; /* "": searched for */
};

static bool take_word(struct words *w, const char *word, size_t len)
{
    if (len > 2 && memcmp(word, "k=", 2) == 0) {
        char *end;
        unsigned long k = strtoul(word + 2, &end, 10);
        bool once = w->k == 0;
        w->k = k <= QN_CORES_MAX ? (uint32_t)k : 0;
        return word[2] >= '0' && word[2] <= '9' && end == word + len && k > 0 &&
               once;
    }
    if (len > 4 && memcmp(word, "map=", 4) == 0 && len - 4 < sizeof w->map &&
        w->map[0] == '\0') {
        memcpy(w->map, word + 4, len - 4);
        w->map[len - 4] = '\0';
        return true;
    }
    bool full = len == 4 && memcmp(word, "full", 4) == 0;
    bool companion = len == 9 && memcmp(word, "companion", 9) == 0;
    w->full |= full;
    w->companion |= companion;
    return full || companion;
}

static bool parse_words(struct words *w, const char *text)
{
    while (*text != '\0') {
        size_t len = strcspn(text, ",");
        if (!take_word(w, text, len)) {
            return false;
        }
        text += len;
        if (*text == ',' && *++text == '\0') {
            return false; /* nothing follows */
        }
    }
    return w->k > 0;
}

/* The root is id 0, the others follow ascending. */
static void rotate(struct qn_diamond_ring *r, uint32_t root)
{
    for (uint32_t id = root; id > 0; id--) {
        r->core[id] = (uint16_t)(id - 1);
    }
    r->core[0] = (uint16_t)root;
}

/* The core of each node of the ring: from a file, by number, or searched
 * for. */
static int place(struct qn_diamond_ring *r, const struct qn_machine *m,
                 const struct words *w, const struct qn_topology_spec_opts *o,
                 struct qn_parse_error *parse_error)
{
    struct qn_diamond_ring_map_opts map = {
        .busy = o->goal == QN_GOAL_THROUGHPUT || o->goal == QN_GOAL_STREAM,
        .root = o->root,
        .seed = o->seed,
        .moves = o->moves,
        .q = o->q};
    rotate(r, o->root != QN_ROOT_FREE ? o->root : 0);
    if (strcmp(w->map, "identity") == 0) {
        return QN_OK;
    }
    if (strcmp(w->map, "latency") == 0 || strcmp(w->map, "busy") == 0) {
        map.busy = w->map[0] == 'b';
    } else if (w->map[0] != '\0') {
        return read_map(r, m, w->map, o->root, parse_error);
    }
    return qn_diamond_ring_map(r, m, &map, NULL);
}

static int make_ring(struct qn_topology_spec *c, const struct qn_machine *m,
                     const struct words *w,
                     const struct qn_topology_spec_opts *opts,
                     struct qn_parse_error *parse_error)
{
    const struct qn_diamond_ring_opts o = {
        .n = m->n, .k = w->k, .full = w->full, .companion = w->companion};
    if (o.k > QN_RING_ARITY_MAX || (o.companion && o.n < 3)) {
        return qn_parse_error_set(
            parse_error, c->name, 0, NULL,
            "k must be 1 to %u, and a companion needs 3 cores",
            QN_RING_ARITY_MAX);
    }
    int err = qn_diamond_ring_create(&c->ring, &o);
    err = err == QN_OK ? place(c->ring, m, w, opts, parse_error) : err;
    if (err == QN_OK) {
        c->root = c->ring->core[0];
    }
    return err;
}

static int make_with_words(struct qn_topology_spec *c,
                           const struct qn_machine *m, const char *words,
                           const struct qn_topology_spec_opts *o,
                           struct qn_parse_error *parse_error)
{
    struct words w = {0};
    return parse_words(&w, words) ? make_ring(c, m, &w, o, parse_error)
                                  : wrong(parse_error, c->name, NO_TOPOLOGY);
}

/* ---- by name ---- */

static bool is_file(const char *name)
{
    size_t len = strlen(name);
    return strchr(name, '/') != NULL ||
           (len > 4 && strcmp(name + len - 4, ".csv") == 0) ||
           (len > 5 && strcmp(name + len - 5, ".json") == 0);
}

enum qn_topology_spec_kind qn_topology_spec_kind(const char *name)
{
    struct words w = {0};
    if (strncmp(name, "ring:", 5) == 0 && parse_words(&w, name + 5)) {
        bool search = w.map[0] == '\0' || strcmp(w.map, "latency") == 0 ||
                      strcmp(w.map, "busy") == 0;
        return search ? QN_TOPOLOGY_SPEC_MAPPED : QN_TOPOLOGY_SPEC_FIXED;
    }
    return strcmp(name, "auto") == 0 ? QN_TOPOLOGY_SPEC_PLANNED
           : strcmp(name, "adaptive") == 0 || strcmp(name, "cluster") == 0
               ? QN_TOPOLOGY_SPEC_GROUPED
               : QN_TOPOLOGY_SPEC_FIXED;
}

static int unknown(struct qn_parse_error *parse_error, const char *name)
{
    const char *near =
        qn_suggest(name, fixed, sizeof fixed[0], QN_ARRAY_COUNT(fixed));
    return qn_parse_error_set(
        parse_error, name[0] != '\0' ? name : "''", 0, NULL,
        near != NULL ? "unknown topology; did you mean %s?"
                     : "unknown topology; a file's name ends "
                       "in .csv or .json, --help lists the "
                       "others",
        near);
}

int qn_topology_spec_make(struct qn_topology_spec *c,
                          const struct qn_machine *m, const char *name,
                          const struct qn_topology_spec_opts *o,
                          struct qn_parse_error *parse_error)
{
    *c = (struct qn_topology_spec){.root = 0};
    (void)snprintf(c->name, sizeof c->name, "%s", name);
    uint32_t root = o->root;
    int err = QN_ENOENT;
    if (strcmp(name, "auto") == 0) {
        err = make_plan(c, m, o);
    } else if (strcmp(name, "adaptive") == 0) {
        err = qn_adaptive_build(
            &c->down, m, root != QN_ROOT_FREE ? root : qn_adaptive_root(m),
            o->level);
    } else if (strncmp(name, "ring:", 5) == 0) {
        err = make_with_words(c, m, name + 5, o, parse_error);
    } else if (strncmp(name, "tree:", 5) == 0 && qn_static_arity(name) == 0) {
        err = wrong(parse_error, name, NO_TOPOLOGY);
    } else if (is_file(name)) {
        return read_tree(c, m, name, root, parse_error);
    } else {
        err = qn_static_build(&c->down, m, name,
                              root != QN_ROOT_FREE ? root : 0, o->level);
        if (err == QN_ENOENT) {
            return unknown(parse_error, name);
        }
    }
    if (err == QN_OK && c->ring == NULL && c->up.n == 0) {
        take_trees(c, &c->down, &c->down);
    }
    if (err != QN_OK) {
        qn_topology_spec_fini(c);
    }
    if (err == QN_ENOMEM) {
        (void)wrong(parse_error, name, "out of memory");
    }
    return err;
}

void qn_topology_spec_fini(struct qn_topology_spec *c)
{
    qn_diamond_ring_destroy(c->ring);
    c->ring = NULL;
}

/* ---- costs ---- */

double qn_topology_spec_cost(const struct qn_topology_spec *c,
                             const struct qn_machine *m, enum qn_goal goal,
                             double q)
{
    if (c->ring == NULL) {
        return qn_plan_cost(m, &c->down, &c->up, goal, q);
    }
    const struct qn_pipeline_sim_opts once = {.ops = 1, .q = q};
    double cycles = NAN;
    if (goal == QN_GOAL_THROUGHPUT) {
        cycles = qn_diamond_ring_occupancy(m, c->ring);
    } else if (goal == QN_GOAL_ACK &&
               qn_pipeline_sim_ring(m, c->ring, &once, &cycles) != QN_OK) {
        cycles = NAN;
    }
    return cycles;
}

int qn_topology_spec_burst(const struct qn_topology_spec *c,
                           const struct qn_machine *m, double q, double *cycles)
{
    const struct qn_pipeline_sim_opts many = {.ops = QN_PIPELINE_SIM_DEFAULT,
                                              .q = q};
    int err = c->ring != NULL
                  ? qn_pipeline_sim_ring(m, c->ring, &many, cycles)
                  : qn_pipeline_sim_trees(m, &c->down, &c->up, &many, cycles);
    if (err == QN_OK) {
        *cycles /= many.ops;
    }
    return err;
}

uint32_t qn_topology_spec_depth(const struct qn_topology_spec *c)
{
    if (c->ring == NULL) {
        return qn_shape_depth(&c->down);
    }
    /* Ids descend along every path; the companion comes last. */
    uint32_t hops[QN_CORES_MAX] = {0}, n = c->ring->o.n, most = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t id = i == 0 ? 0 : n - i;
        for (uint32_t e = c->ring->first[id]; e < c->ring->first[id + 1]; e++) {
            uint32_t to = c->ring->next[e];
            if (to != 0) {
                hops[to] = QN_MAX(hops[to], hops[id] + 1);
                most = QN_MAX(most, hops[to]);
            }
        }
    }
    return most;
}

uint32_t qn_topology_spec_degree(const struct qn_topology_spec *c)
{
    uint32_t most = 0;
    if (c->ring != NULL) {
        for (uint32_t id = 0; id < c->ring->o.n; id++) {
            most = QN_MAX(most, c->ring->first[id + 1] - c->ring->first[id]);
        }
        return most;
    }
    for (uint32_t v = 0; v < c->down.n; v++) {
        most = QN_MAX(most, (uint32_t)c->down.count[v]);
    }
    return most;
}

int qn_topology_spec_timeline(struct qn_timeline **out,
                              const struct qn_topology_spec *c,
                              const struct qn_machine *m, enum qn_goal goal,
                              double q)
{
    if (c->ring == NULL) {
        return qn_timeline_trees(out, m, &c->down, &c->up, goal, q);
    }
    return goal == QN_GOAL_ACK || goal == QN_GOAL_THROUGHPUT
               ? qn_timeline_ring(out, m, c->ring, q)
               : QN_ENOENT;
}

/* ---- bounds ---- */

static void least_costs(const struct qn_machine *m, double *s, double *r)
{
    *s = QN_COST_MAX;
    *r = QN_COST_MAX;
    for (size_t i = 0; i < (size_t)m->n * m->n; i++) {
        if (i / m->n != i % m->n) {
            *s = QN_MIN(*s, m->send[i]);
            *r = QN_MIN(*r, m->receive[i]);
        }
    }
}

/* The broadcast's bound for n equal cores with send cost s and receive cost
 * r. */
static double equal_bound(uint32_t n, double s, double r)
{
    double again[QN_CORES_MAX], fresh[QN_CORES_MAX], last = 0;
    uint32_t sent = 0, told = 1, a = 0, f = 0;
    fresh[0] = 0;
    while (told < n) {
        bool old = a < sent && (f == told || again[a] <= fresh[f]);
        double t = old ? again[a++] : fresh[f++];
        again[sent++] = t + s;
        last = fresh[told++] = t + s + r;
    }
    return last;
}

double qn_topology_spec_bound(const struct qn_machine *m, enum qn_goal goal,
                              double q)
{
    double s, r, n = m->n;
    if (m->n == 1) {
        return 0;
    }
    least_costs(m, &s, &r);
    double down = equal_bound(m->n, s, r);
    double up = equal_bound(m->n, q * r, s);
    /* The core that is informed last answers after that. */
    double acked = down + s + q * r;
    switch (goal) {
    case QN_GOAL_BROADCAST:
        return down;
    case QN_GOAL_REDUCE:
        return up;
    case QN_GOAL_BARRIER:
        return up + down;
    case QN_GOAL_ACK:
        return acked;
    case QN_GOAL_2PC:
        return acked + down;
    case QN_GOAL_THROUGHPUT: /* 2 (n-1) messages, dealt evenly */
        return 2 * (n - 1) * (s + r) / n;
    case QN_GOAL_STREAM:
        return (n - 1) * (s + r) / n;
    default:
        return 0;
    }
}
