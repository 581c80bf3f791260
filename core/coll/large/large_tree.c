/*
 * lead[k][x] is the leader of x's group at level k: of all (the root), of its
 * node, of its region, and x itself. The group of a leader L at level k is
 * made of the leaders of the level below that follow L, and L is the root of
 * their tree. So three levels are one loop.
 */
#include "core/coll/large/large_tree.h"

#include "core/base/assert.h"

#define LEVELS 3u

struct builder {
    const struct qn_large_place *place;
    uint32_t n, root;
    enum qn_large_tree kind;
    struct qn_edges edges;
    uint16_t lead[LEVELS + 1][QN_CORES_MAX];
    uint16_t group[QN_CORES_MAX];
};

static bool same_node(const struct builder *b, uint32_t x, uint32_t y)
{
    return b->place == NULL || b->place[x].node == b->place[y].node;
}

static bool same_region(const struct builder *b, uint32_t x, uint32_t y)
{
    return same_node(b, x, y) &&
           (b->place == NULL || b->place[x].region == b->place[y].region);
}

static uint32_t first_like(const struct builder *b, uint32_t x,
                           bool (*same)(const struct builder *, uint32_t,
                                        uint32_t))
{
    uint32_t y = 0;
    while (!same(b, x, y)) {
        y++;
    }
    return y;
}

static void choose_leaders(struct builder *b)
{
    for (uint32_t x = 0; x < b->n; x++) {
        const uint32_t of_node =
            same_node(b, x, b->root) ? b->root : first_like(b, x, same_node);
        b->lead[0][x] = (uint16_t)b->root;
        b->lead[1][x] = (uint16_t)of_node;
        b->lead[2][x] = (uint16_t)(same_region(b, x, of_node)
                                       ? of_node
                                       : first_like(b, x, same_region));
        b->lead[LEVELS][x] = (uint16_t)x;
    }
}

/* The tree of one group, its leader first and then by rank. */
static void connect(struct builder *b, uint32_t level, uint32_t leader)
{
    uint32_t count = 0;
    const bool flat = level == LEVELS - 1 && b->kind == QN_LARGE_BINOMIAL_FLAT;
    b->group[count++] = (uint16_t)leader;
    for (uint32_t x = 0; x < b->n; x++) {
        if (x != leader && b->lead[level][x] == leader &&
            b->lead[level + 1][x] == x) {
            b->group[count++] = (uint16_t)x;
        }
    }
    for (uint32_t v = 1; v < count; v++) {
        const uint32_t parent = flat ? 0 : qn_large_rank_parent(v);
        qn_edges_add(&b->edges, b->group[parent], b->group[v]);
    }
}

/* Children with deeper subtrees first; else in the order of edges. */
static void sort_children(struct qn_shape *s)
{
    uint16_t order[QN_CORES_MAX];
    uint32_t height[QN_CORES_MAX] = {0};
    const uint32_t reached = qn_shape_order(s, order);
    QN_ASSERT(reached == s->n);
    for (uint32_t i = s->n - 1; i > 0; i--) {
        const uint32_t parent = s->parent[order[i]];
        if (height[parent] <= height[order[i]]) {
            height[parent] = height[order[i]] + 1;
        }
    }
    for (uint32_t v = 0; v < s->n; v++) {
        uint16_t *child = s->child + s->first[v];
        for (uint32_t i = 1; i < s->count[v]; i++) {
            const uint16_t c = child[i];
            uint32_t j = i;
            for (; j > 0 && height[child[j - 1]] < height[c]; j--) {
                child[j] = child[j - 1];
            }
            child[j] = c;
        }
    }
}

static void finish(struct qn_shape *s, const struct qn_edges *e, uint32_t root)
{
    const int rc = qn_shape_from_edges(s, e, root);
    QN_ASSERT(rc == 0);
    sort_children(s);
}

void qn_large_tree_build(struct qn_shape *s, const struct qn_large_place *place,
                         uint32_t n, uint32_t root, enum qn_large_tree kind)
{
    struct builder b;
    QN_ASSERT(n >= 1 && n <= QN_CORES_MAX);
    QN_ASSERT(root < n);
    b.place = place;
    b.n = n;
    b.root = root;
    b.kind = kind;
    qn_edges_init(&b.edges, n);
    if (kind == QN_LARGE_FLAT || kind == QN_LARGE_RING) {
        for (uint32_t i = 1; i < n; i++) {
            qn_edges_add(&b.edges, root, (root + i) % n);
        }
    } else {
        choose_leaders(&b);
        for (uint32_t level = 0; level < LEVELS; level++) {
            for (uint32_t x = 0; x < n; x++) {
                if (b.lead[level][x] == x) {
                    connect(&b, level, x);
                }
            }
        }
    }
    finish(s, &b.edges, root);
}

void qn_large_tree_reroot(struct qn_shape *s, uint32_t root)
{
    struct qn_edges e;
    const uint32_t old = s->root;
    if (root == old) {
        return;
    }
    qn_edges_init(&e, s->n);
    qn_edges_add(&e, root, old);
    for (uint32_t v = 0; v < s->n; v++) {
        for (uint32_t i = 0; i < s->count[v]; i++) {
            const uint32_t child = qn_shape_children(s, v)[i];
            if (child != root) {
                qn_edges_add(&e, v, child);
            }
        }
    }
    finish(s, &e, root);
}

uint32_t qn_large_tree_regions(const struct qn_large_place *place, uint32_t n)
{
    const struct builder b = {.place = place};
    uint32_t regions = 0;
    for (uint32_t x = 0; x < n; x++) {
        regions += first_like(&b, x, same_region) == x;
    }
    return regions;
}
