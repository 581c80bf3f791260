/*
 * Each builder works on ranks: rank 0 is the root, the others are the other
 * cores in ascending order. With the first core as root a rank is an index.
 *
 * Spanning trees are Prim's, on directed weights s + r, the sender inside. A
 * core outside remembers its best sender inside; ties go to the sender that
 * was attached first, then to the lower core, so a newer sender replaces an
 * older one only if it is strictly better. In the capped variants a sender
 * retires with its second child, and the cores that had chosen it choose again.
 *
 * Balanced trees are a family, not a name: their arity is read from the name.
 */
#include "core/topo/static_trees.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"

struct ranks {
    const struct qn_machine *m; /* NULL for the plain trees */
    enum qn_level level;
    uint32_t n;
    uint32_t arity;              /* of a balanced tree */
    uint16_t core[QN_CORES_MAX]; /* by rank */
};

/* Rank i sends to k*i+1, ..., k*i+k. */
static void build_balanced(struct qn_edges *e, const struct ranks *r)
{
    for (uint32_t i = 1; i < r->n; i++) {
        qn_edges_add(e, (i - 1) / r->arity, i);
    }
}

/* Cores of an F-tree of order h: F(h+2) - 1. */
static uint32_t fibonacci_size(uint32_t h)
{
    uint32_t a = 0, b = 1; /* sizes of orders h-1 and h, from h = 1 */
    for (uint32_t i = 1; i < h; i++) {
        uint32_t c = a + b + 1;
        a = b;
        b = c;
    }
    return b;
}

/* A node of order h has children of order h-1 and h-2. A queue visits nodes by
 * depth, and within a depth in preorder, which is how they are numbered. */
static void build_fibonacci(struct qn_edges *e, const struct ranks *r)
{
    uint32_t order[QN_CORES_MAX], known = 1, h = 1;
    while (fibonacci_size(h) < r->n) {
        h++;
    }
    order[0] = h;
    for (uint32_t i = 0; i < known; i++) {
        for (uint32_t less = 1; less <= 2; less++) {
            if (order[i] > less && known < r->n) {
                order[known] = order[i] - less;
                qn_edges_add(e, i, known++);
            }
        }
    }
}

/* The root sends to all others. */
static void build_sequential(struct qn_edges *e, const struct ranks *r)
{
    for (uint32_t i = 1; i < r->n; i++) {
        qn_edges_add(e, 0, i);
    }
}

struct prim {
    const struct ranks *r;
    double sign;                     /* 1: cheapest edge, -1: dearest */
    uint32_t cap;                    /* children */
    uint32_t attached;               /* ranks inside */
    uint16_t inside[QN_CORES_MAX];   /* [attached], in order of attachment */
    uint32_t children[QN_CORES_MAX]; /* by place in `inside` */
    uint32_t best[QN_CORES_MAX];     /* by rank outside: a place */
    double weight[QN_CORES_MAX];     /* of that edge, times sign */
    bool in[QN_CORES_MAX];
};

static double edge_weight(const struct prim *p, uint32_t place, uint32_t rank)
{
    const struct ranks *r = p->r;
    uint32_t u = r->core[p->inside[place]], v = r->core[rank];
    return p->sign * (qn_send_cost(r->m, u, v) + qn_receive_cost(r->m, u, v));
}

static void offer(struct prim *p, uint32_t place, uint32_t rank)
{
    double w = edge_weight(p, place, rank);
    if (p->best[rank] == QN_CORES_MAX || w < p->weight[rank]) {
        p->best[rank] = place;
        p->weight[rank] = w;
    }
}

static void attach(struct prim *p, uint32_t rank)
{
    uint32_t place = p->attached++;
    p->in[rank] = true;
    p->inside[place] = (uint16_t)rank;
    p->children[place] = 0;
    for (uint32_t v = 0; v < p->r->n; v++) {
        if (!p->in[v]) {
            offer(p, place, v);
        }
    }
}

/* A sender is full: cores that had chosen it look at all others again. */
static void retire(struct prim *p, uint32_t place)
{
    for (uint32_t v = 0; v < p->r->n; v++) {
        if (p->in[v] || p->best[v] != place) {
            continue;
        }
        p->best[v] = QN_CORES_MAX;
        for (uint32_t u = 0; u < p->attached; u++) {
            if (p->children[u] < p->cap) {
                offer(p, u, v);
            }
        }
    }
}

static uint32_t next_rank(const struct prim *p)
{
    uint32_t x = QN_CORES_MAX;
    for (uint32_t v = 0; v < p->r->n; v++) {
        if (p->in[v] || p->best[v] == QN_CORES_MAX) {
            continue;
        }
        if (x == QN_CORES_MAX || p->weight[v] < p->weight[x] ||
            (!(p->weight[v] > p->weight[x]) && p->best[v] < p->best[x])) {
            x = v;
        }
    }
    QN_ASSERT(x != QN_CORES_MAX);
    return x;
}

static void build_prim(struct qn_edges *e, const struct ranks *r, double sign,
                       uint32_t cap)
{
    struct prim p = {.r = r, .sign = sign, .cap = cap};
    for (uint32_t v = 0; v < r->n; v++) {
        p.best[v] = QN_CORES_MAX;
    }
    attach(&p, 0);
    while (p.attached < r->n) {
        uint32_t x = next_rank(&p), place = p.best[x];
        qn_edges_add(e, p.inside[place], x);
        p.children[place]++;
        attach(&p, x);
        if (p.children[place] == cap) {
            retire(&p, place);
        }
    }
}

static void build_mst(struct qn_edges *e, const struct ranks *r)
{
    build_prim(e, r, 1, UINT32_MAX);
}

static void build_mst2(struct qn_edges *e, const struct ranks *r)
{
    build_prim(e, r, 1, 2);
}

static void build_bad(struct qn_edges *e, const struct ranks *r)
{
    build_prim(e, r, -1, UINT32_MAX);
}

static void build_bad2(struct qn_edges *e, const struct ranks *r)
{
    build_prim(e, r, -1, 2);
}

/* The first rank of v's group. */
static uint32_t coordinator(const struct ranks *r, uint32_t v)
{
    uint32_t group = qn_machine_group(r->m, r->level, r->core[v]), u = 0;
    while (qn_machine_group(r->m, r->level, r->core[u]) != group) {
        u++;
    }
    return u;
}

/* Coordinators form a heap; each then sends to the rest of its group. */
static void build_cluster(struct qn_edges *e, const struct ranks *r)
{
    uint32_t head[QN_CORES_MAX], heads = 0, own[QN_CORES_MAX];
    for (uint32_t v = 0; v < r->n; v++) {
        own[v] = coordinator(r, v);
        if (own[v] == v) {
            head[heads++] = v;
        }
    }
    for (uint32_t i = 1; i < heads; i++) {
        qn_edges_add(e, head[(i - 1) / 2], head[i]);
    }
    for (uint32_t v = 0; v < r->n; v++) {
        if (own[v] != v) {
            qn_edges_add(e, own[v], v);
        }
    }
}

static const struct builder {
    const char *name;
    void (*build)(struct qn_edges *e, const struct ranks *r);
    uint32_t arity;
} builders[] = {
    {"sequential", build_sequential, 0},
    {"binary", build_balanced, 2},
    {"fibonacci", build_fibonacci, 0},
    {"mst", build_mst, 0},
    {"mst2", build_mst2, 0},
    {"cluster", build_cluster, 0},
    {"bad", build_bad, 0},
    {"bad2", build_bad2, 0},
};

const char *qn_static_name_at(uint32_t i)
{
    return i < QN_ARRAY_COUNT(builders) ? builders[i].name : NULL;
}

uint32_t qn_static_arity(const char *name)
{
    static const char prefix[] = "tree:k=";
    const char *digits = name + sizeof prefix - 1;
    if (strncmp(name, prefix, sizeof prefix - 1) != 0 || *digits < '1' ||
        *digits > '9') {
        return 0;
    }
    char *end;
    unsigned long k = strtoul(digits, &end, 10);
    return *end == '\0' && k <= QN_CORES_MAX ? (uint32_t)k : 0;
}

/* One of the first `among`, or a balanced tree. build NULL: there is none. */
static struct builder find(const char *name, uint32_t among)
{
    uint32_t k = qn_static_arity(name);
    if (k > 0) {
        return (struct builder){name, build_balanced, k};
    }
    for (uint32_t i = 0; i < among; i++) {
        if (strcmp(builders[i].name, name) == 0) {
            return builders[i];
        }
    }
    return (struct builder){.build = NULL};
}

int qn_static_ranks(struct qn_edges *e, const char *name, uint32_t n)
{
    const struct builder b = find(name, QN_STATIC_TREES_PLAIN);
    if (b.build == NULL) {
        return QN_ENOENT;
    }
    if (n == 0 || n > QN_CORES_MAX) {
        return QN_EINVAL;
    }
    const struct ranks r = {.n = n, .arity = b.arity};
    qn_edges_init(e, n);
    b.build(e, &r);
    return QN_OK;
}

int qn_static_build(struct qn_shape *s, const struct qn_machine *m,
                    const char *name, uint32_t root, enum qn_level level)
{
    const struct builder b = find(name, QN_ARRAY_COUNT(builders));
    if (b.build == NULL) {
        return QN_ENOENT;
    }
    if (root >= m->n || level >= QN_LEVELS) {
        return QN_EINVAL;
    }
    struct ranks r = {.m = m, .level = level, .n = m->n, .arity = b.arity};
    for (uint32_t i = 0; i < m->n; i++) {
        r.core[i] = (uint16_t)(i == 0 ? root : i <= root ? i - 1 : i);
    }
    struct qn_edges e;
    qn_edges_init(&e, m->n);
    b.build(&e, &r);
    for (uint32_t i = 0; i < e.count; i++) {
        e.parent[i] = r.core[e.parent[i]];
        e.child[i] = r.core[e.child[i]];
    }
    return qn_shape_from_edges(s, &e, root);
}
