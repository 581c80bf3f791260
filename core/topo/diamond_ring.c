/*
 * Diamond rings, for every n and k.
 *
 *     S = k + ... + k^(l-1), R = k^l, V = 1 + 2S + R, c = n - V, m = R + c
 *
 * with the least l for which -R < c <= R. Rings q = 0 .. R-1 leave the gather
 * side through up(q) = (S+q) div k. Centers are dealt evenly: ring q owns the
 * centers first(q) .. first(q+1)-1, first(q) = q*m div R, so each ring has 0
 * or 1 of them, or 1 or 2.
 *
 * Lean rings drop the direct link of an empty ring when its group (k
 * consecutive rings, which share both ends) still has a center: the gather
 * node hears of the same scatter node anyway. A whole empty group keeps one.
 *
 * With a companion the ring is made on n-1 nodes; nodes that would send to
 * the root send to node n-1, and that to the root.
 *
 * Links are emitted several times by the same code: to count and to fill; or
 * for the tree of a broadcast, to find the predecessor of each node that
 * counts, and then to add its edge. Links come by ascending id, so the last
 * predecessor is that of highest id.
 */
#include "core/topo/diamond_ring.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"

struct builder {
    struct qn_diamond_ring *r;
    uint32_t n; /* nodes of the ring proper */
    uint32_t from;
    uint32_t count;
    bool fill;
    uint16_t *parent;       /* [n] by id: is found; NULL */
    struct qn_edges *edges; /* are added, those of `parent`; NULL */
};

static uint32_t rank_of(const struct builder *b, uint32_t id)
{
    return id == 0 ? 0 : b->n - id;
}

static void tree_link(struct builder *b, uint32_t to)
{
    if (to == 0) {
        return; /* it has been everywhere */
    }
    if (b->edges == NULL) {
        b->parent[to] = (uint16_t)b->from;
    } else if (b->parent[to] == b->from) {
        qn_edges_add(b->edges, rank_of(b, b->from), rank_of(b, to));
    }
}

static void link_to(struct builder *b, uint32_t to)
{
    struct qn_diamond_ring *r = b->r;
    if (b->from == 0 && to == 0) {
        return; /* l = 1: the root would send to itself */
    }
    to = to == 0 && r->o.companion && b->from != b->n ? b->n : to;
    if (b->parent != NULL) {
        tree_link(b, to);
    } else if (b->fill) {
        r->next[b->count] = (uint16_t)to;
        r->preds[to]++;
    }
    b->count++;
}

static uint32_t first_center(const struct qn_diamond_ring *r, uint32_t q)
{
    QN_ASSERT(r->rings > 0);
    return (uint32_t)((uint64_t)q * r->centers / r->rings);
}

static uint32_t up(const struct qn_diamond_ring *r, uint32_t q)
{
    QN_ASSERT(r->o.k > 0);
    return (r->scatter + q) / r->o.k;
}

static bool has_center(const struct qn_diamond_ring *r, uint32_t q)
{
    return first_center(r, q) < first_center(r, q + 1);
}

/* Whether ring q, which has no center, keeps its direct link. */
static bool keeps_link(const struct qn_diamond_ring *r, uint32_t q)
{
    uint32_t begin = q / r->o.k * r->o.k, end = begin + r->o.k;
    bool empty = first_center(r, begin) == first_center(r, end);
    return r->o.full || (empty && q == end - 1);
}

/* The root is j = 0, a scatter node its mirrored index. */
static void link_scatter(struct builder *b, uint32_t j)
{
    const struct qn_diamond_ring *r = b->r;
    for (uint32_t i = 1; i <= r->o.k; i++) {
        uint32_t x = r->o.k * j + i;
        if (x <= r->scatter) {
            link_to(b, b->n - x);
            continue;
        }
        uint32_t q = r->scatter + r->rings - x;
        if (has_center(r, q)) {
            link_to(b, r->scatter + first_center(r, q + 1));
        } else if (keeps_link(r, q)) {
            link_to(b, up(r, q));
        }
    }
}

static void link_center(struct builder *b, uint32_t t)
{
    const struct qn_diamond_ring *r = b->r;
    uint32_t q = (uint32_t)(((uint64_t)(t + 1) * r->rings - 1) / r->centers);
    link_to(b, t > first_center(r, q) ? b->from - 1 : up(r, q));
}

static void link_all(struct builder *b)
{
    struct qn_diamond_ring *r = b->r;
    b->count = 0;
    for (b->from = 0; b->from < b->n; b->from++) {
        uint32_t id = b->from;
        if (b->fill) {
            r->first[id] = b->count;
        }
        if (id == 0) {
            link_scatter(b, 0);
        } else if (id <= r->scatter) {
            link_to(b, (id - 1) / r->o.k);
        } else if (id <= r->scatter + r->centers) {
            link_center(b, id - r->scatter - 1);
        } else {
            link_scatter(b, b->n - id);
        }
    }
    if (r->o.companion) { /* b->from == b->n */
        if (b->fill) {
            r->first[b->n] = b->count;
        }
        link_to(b, 0);
    }
    r->messages = b->count;
}

/* Levels, scatter nodes, rings and centers of n >= 2 nodes. */
static void measure(struct qn_diamond_ring *r, uint32_t n)
{
    uint32_t s = 0, rings = r->o.k, l = 1;
    while (n > 1 + 2 * s + 2 * rings) {
        s += rings;
        rings *= r->o.k;
        l++;
    }
    r->levels = l;
    r->scatter = s;
    r->rings = rings;
    r->centers = n - 1 - 2 * s;
    QN_ASSERT(r->centers >= 1 && r->centers <= 2 * rings);
}

static bool allocate(struct qn_diamond_ring *r)
{
    r->first = calloc(r->o.n + 1, sizeof *r->first);
    r->next = calloc(QN_MAX(r->messages, 1u), sizeof *r->next);
    r->preds = calloc(r->o.n, sizeof *r->preds);
    r->core = calloc(r->o.n, sizeof *r->core);
    return r->first != NULL && r->next != NULL && r->preds != NULL &&
           r->core != NULL;
}

int qn_diamond_ring_create(struct qn_diamond_ring **out,
                           const struct qn_diamond_ring_opts *o)
{
    if (o->n == 0 || o->n > QN_CORES_MAX || o->k == 0 ||
        o->k > QN_RING_ARITY_MAX || (o->companion && o->n < 3)) {
        return QN_EINVAL;
    }
    struct qn_diamond_ring *r = calloc(1, sizeof *r);
    if (r == NULL) {
        return QN_ENOMEM;
    }
    r->o = *o;
    struct builder b = {.r = r, .n = o->n - o->companion};
    if (b.n > 1) {
        measure(r, b.n);
        link_all(&b);
    }
    if (!allocate(r)) {
        qn_diamond_ring_destroy(r);
        return QN_ENOMEM;
    }
    b.fill = true;
    if (b.n > 1) {
        link_all(&b);
    }
    r->first[o->n] = r->messages;
    for (uint32_t i = 0; i < o->n; i++) {
        r->core[i] = (uint16_t)i;
    }
    *out = r;
    return QN_OK;
}

void qn_diamond_ring_destroy(struct qn_diamond_ring *r)
{
    if (r != NULL) {
        free(r->first);
        free(r->next);
        free(r->preds);
        free(r->core);
        free(r);
    }
}

uint32_t qn_diamond_ring_arity(const char *name)
{
    static const char prefix[] = "ring:k=";
    const char *digits = name + sizeof prefix - 1;
    if (strncmp(name, prefix, sizeof prefix - 1) != 0 || *digits < '1' ||
        *digits > '9') {
        return 0;
    }
    char *end;
    unsigned long k = strtoul(digits, &end, 10);
    return *end == '\0' && k <= QN_RING_ARITY_MAX ? (uint32_t)k : 0;
}

int qn_diamond_ring_edges(struct qn_edges *e, uint32_t k, uint32_t n)
{
    uint16_t parent[QN_CORES_MAX] = {0};
    struct qn_diamond_ring r = {.o = {.n = n, .k = k}};
    struct builder b = {.r = &r, .n = n, .parent = parent};
    if (n == 0 || n > QN_CORES_MAX || k == 0 || k > QN_RING_ARITY_MAX) {
        return QN_EINVAL;
    }
    qn_edges_init(e, n);
    if (n > 1) {
        measure(&r, n);
        link_all(&b);
        b.edges = e;
        link_all(&b);
    }
    QN_ASSERT(e->count == n - 1);
    return QN_OK;
}

double qn_diamond_ring_occupancy(const struct qn_machine *m,
                                 const struct qn_diamond_ring *r)
{
    double busy[QN_CORES_MAX] = {0}, most = 0;
    QN_ASSERT(m->n == r->o.n);
    for (uint32_t id = 0; id < r->o.n; id++) {
        for (uint32_t i = r->first[id]; i < r->first[id + 1]; i++) {
            uint32_t u = r->core[id], v = r->core[r->next[i]];
            busy[u] += qn_send_cost(m, u, v);
            busy[v] += qn_receive_cost(m, u, v);
        }
    }
    for (uint32_t v = 0; v < m->n; v++) {
        most = QN_MAX(most, busy[v]);
    }
    return most;
}
