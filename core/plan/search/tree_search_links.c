/*
 * Siblings are a doubly linked list, sorted by key. Every change is logged
 * before it is made: a core's old parent and left neighbour, or a core's old
 * values. Taken back in reverse, each neighbour is there again when it is
 * needed. Lags and critical children are not logged: they follow from one more
 * fold of each core that was folded.
 */
#include "core/base/assert.h"
#include "core/base/err.h"
#include "core/plan/search/tree_search_internal.h"

static void unlink_core(struct qn_tree_search *x, uint32_t v)
{
    struct qn_cell *c = &x->cell[v];
    if (c->prev != QN_NONE) {
        x->cell[c->prev].next = c->next;
    } else {
        x->cell[c->parent].first = c->next;
    }
    if (c->next != QN_NONE) {
        x->cell[c->next].prev = c->prev;
    }
}

static void link_after(struct qn_tree_search *x, uint32_t v, uint32_t p,
                       uint16_t prev)
{
    struct qn_cell *c = &x->cell[v];
    uint16_t *from = prev != QN_NONE ? &x->cell[prev].next : &x->cell[p].first;
    c->parent = (uint16_t)p;
    c->prev = prev;
    c->next = *from;
    *from = (uint16_t)v;
    if (c->next != QN_NONE) {
        x->cell[c->next].prev = (uint16_t)v;
    }
}

static void link_sorted(struct qn_tree_search *x, uint32_t v, uint32_t p)
{
    uint16_t prev = QN_NONE, next = x->cell[p].first;
    while (next != QN_NONE && x->cell[next].key > x->cell[v].key) {
        prev = next;
        next = x->cell[next].next;
        x->passed++;
    }
    link_after(x, v, p, prev);
}

static struct qn_tree_search_undo *new_change(struct qn_tree_search *x)
{
    QN_ASSERT(x->logged < x->log_max);
    return &x->log[x->logged++];
}

/* Log where v is, and take it from there. */
static void leave(struct qn_tree_search *x, uint32_t v)
{
    const struct qn_cell *c = &x->cell[v];
    *new_change(x) = (struct qn_tree_search_undo){
        .v = (uint16_t)v, .link = true, .parent = c->parent, .prev = c->prev};
    if (c->parent != v) {
        unlink_core(x, v);
    }
}

static void set_edge(struct qn_tree_search *x, uint32_t v, uint32_t p)
{
    x->cell[v].e = x->edge[(size_t)p * x->n + v];
}

static void be_root(struct qn_tree_search *x, uint32_t v)
{
    struct qn_cell *c = &x->cell[v];
    c->parent = (uint16_t)v;
    c->prev = c->next = QN_NONE;
    c->e = (struct qn_edge){0, 0, 0, 0};
    x->root = v;
}

void qn_tree_search_attach(struct qn_tree_search *x, uint32_t v, uint32_t p)
{
    leave(x, v);
    set_edge(x, v, p);
    x->cell[v].key = qn_tree_search_key(x, &x->cell[v]);
    link_sorted(x, v, p);
}

void qn_tree_search_make_root(struct qn_tree_search *x, uint32_t v)
{
    leave(x, v);
    be_root(x, v);
}

/* v's value has changed, so perhaps its place among its siblings. */
static void reposition(struct qn_tree_search *x, uint32_t v)
{
    struct qn_cell *c = &x->cell[v];
    c->key = qn_tree_search_key(x, c);
    if ((c->prev != QN_NONE && x->cell[c->prev].key < c->key) ||
        (c->next != QN_NONE && x->cell[c->next].key > c->key)) {
        uint32_t p = c->parent;
        leave(x, v);
        link_sorted(x, v, p);
    }
}

void qn_tree_search_update_path(struct qn_tree_search *x, uint32_t v)
{
    for (;;) {
        struct qn_cell *c = &x->cell[v];
        uint32_t second, value = qn_tree_search_fold(x, v, &second);
        *new_change(x) = (struct qn_tree_search_undo){
            .v = (uint16_t)v, .value = c->value, .second = c->second};
        if (value == c->value && second == c->second) {
            return;
        }
        c->value = value;
        c->second = second;
        if (v == x->root) {
            return;
        }
        reposition(x, v);
        v = c->parent;
    }
}

static void undo_link(struct qn_tree_search *x,
                      const struct qn_tree_search_undo *e)
{
    struct qn_cell *c = &x->cell[e->v];
    if (c->parent != e->v) {
        unlink_core(x, e->v);
    }
    if (e->parent == e->v) {
        be_root(x, e->v);
        return;
    }
    if (c->parent != e->parent) {
        set_edge(x, e->v, e->parent);
    }
    link_after(x, e->v, e->parent, e->prev);
}

void qn_tree_search_undo(struct qn_tree_search *x)
{
    for (uint32_t i = x->logged; i-- > 0;) {
        const struct qn_tree_search_undo *e = &x->log[i];
        struct qn_cell *c = &x->cell[e->v];
        if (e->link) {
            undo_link(x, e);
        } else {
            c->value = e->value;
            c->second = e->second;
        }
        c->key = qn_tree_search_key(x, c);
    }
    for (uint32_t i = 0; i < x->logged; i++) {
        uint32_t second;
        if (!x->log[i].link) {
            (void)qn_tree_search_fold(x, x->log[i].v, &second);
        }
    }
    x->logged = 0;
}

uint32_t qn_tree_search_children(const struct qn_tree_search *x, uint32_t v,
                                 uint16_t *list)
{
    uint32_t count = 0;
    for (uint16_t c = x->cell[v].first; c != QN_NONE; c = x->cell[c].next) {
        list[count++] = c;
    }
    return count;
}

/* Cores from the root down. */
static void order_cores(const struct qn_tree_search *x, uint16_t *order)
{
    uint32_t n = 1;
    order[0] = (uint16_t)x->root;
    for (uint32_t i = 0; i < n; i++) {
        n += qn_tree_search_children(x, order[i], order + n);
    }
    QN_ASSERT(n == x->n);
}

static void sort_children(struct qn_tree_search *x, uint32_t v)
{
    uint16_t list[QN_CORES_MAX];
    uint32_t count = qn_tree_search_children(x, v, list);
    x->cell[v].first = QN_NONE;
    for (uint32_t k = count; k-- > 0;) {
        x->cell[list[k]].key = qn_tree_search_key(x, &x->cell[list[k]]);
        link_sorted(x, list[k], v);
    }
}

void qn_tree_search_set(struct qn_tree_search *x, const uint16_t *parent,
                        uint32_t root)
{
    uint16_t order[QN_CORES_MAX];
    for (uint32_t v = 0; v < x->n; v++) {
        x->cell[v].first = QN_NONE;
    }
    be_root(x, root);
    for (uint32_t v = x->n; v-- > 0;) {
        if (v != root) {
            set_edge(x, v, parent[v]);
            link_after(x, v, parent[v], QN_NONE);
        }
    }
    order_cores(x, order);
    for (uint32_t i = x->n; i-- > 0;) {
        struct qn_cell *c = &x->cell[order[i]];
        sort_children(x, order[i]);
        c->value = qn_tree_search_fold(x, order[i], &c->second);
    }
}

void qn_tree_search_load(struct qn_tree_search *x, const struct qn_shape *s)
{
    QN_ASSERT(s->n == x->n);
    qn_tree_search_set(x, s->parent, s->root);
}

void qn_tree_search_store(const struct qn_tree_search *x, struct qn_shape *s)
{
    struct qn_edges e;
    qn_edges_init(&e, x->n);
    for (uint32_t v = 0; v < x->n; v++) {
        for (uint16_t c = x->cell[v].first; c != QN_NONE; c = x->cell[c].next) {
            qn_edges_add(&e, v, c);
        }
    }
    int err = qn_shape_from_edges(s, &e, x->root);
    QN_ASSERT(err == QN_OK);
}
