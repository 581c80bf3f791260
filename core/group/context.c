/*
 * How a context is made, and what changes it: another tree, and nodes that end
 * and come back.
 *
 * Everything that is by node or by child lies behind the context in one piece
 * of memory, as long as the number of members asks for: `lay_out` runs once
 * without memory, to add the lengths up, and once with it. The words of the
 * sets come first, beside each other: with at most 64 members all of them are
 * two lines.
 *
 * What a turn asks again and again (which peers to look at, whether the parent
 * lives, which children count) changes only here, so it is computed here.
 *
 * A peer without a queuepair is like one that is down: it is not looked at, and
 * nothing is sent to it. So a node of a large tree has queuepairs to its
 * neighbours, and the price of a turn is that of those.
 *
 * The root moves: what a former root had sent is still in its lanes, and a node
 * that knows the new root already sends while others have not heard of it. So
 * every lane is read and all of it delivered; only what comes from the parent's
 * lane is forwarded down the tree.
 */
#include <assert.h>

#include "core/base/assert.h"
#include "core/base/atomic.h"
#include "core/base/err.h"
#include "core/group/group_internal.h"

static_assert(QN_MEMBERS_MAX >= QN_NODES_MAX, "the default is in range");

/* --- memory -------------------------------------------------------------- */

struct memory {
    uint8_t *base; /* NULL: only add up */
    size_t used;   /* bytes */
};

static void *take(struct memory *m, size_t bytes)
{
    void *at = m->base != NULL ? m->base + m->used : NULL;
    m->used += qn_align_up(bytes, sizeof(uint64_t));
    return at;
}

static struct qn_node_set take_set(struct memory *m, uint32_t members)
{
    uint32_t words = QN_NODE_SET_WORDS(members);
    return qn_node_set_of(take(m, words * sizeof(uint64_t)), members);
}

static void lay_out(struct qn_context *c, struct memory *m)
{
    struct qn_node_set *const sets[] = {&c->children, &c->down,   &c->listen,
                                        &c->dirty,    &c->living, &c->others,
                                        &c->to,       &c->abort};
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(sets); i++) {
        *sets[i] = take_set(m, c->members);
    }
    c->child = take(m, c->members * sizeof *c->child);
    c->sent = take(m, c->members * sizeof *c->sent);
    c->drops = take(m, c->members * sizeof *c->drops);
    c->in = take(m, c->members * sizeof *c->in);
    c->view = take(m, c->members * sizeof *c->view);
}

static struct qn_context *allocate(const struct qn_alloc *a, uint32_t members)
{
    struct qn_context c = {.members = members};
    struct memory m = {.used = sizeof c};
    lay_out(&c, &m);
    size_t bytes = qn_align_up(m.used, QN_CACHELINE);
    struct qn_context *made = qn_alloc_lines(a, bytes);
    if (made == NULL) {
        return NULL;
    }
    *made = c;
    made->alloc = a;
    m = (struct memory){(uint8_t *)made, sizeof c};
    lay_out(made, &m);
    QN_ASSERT(m.used <= bytes);
    return made;
}

/* --- the tree ------------------------------------------------------------ */

void qn_context_derive(struct qn_context *c)
{
    bool has_parent = c->parent != QN_NO_MEMBER && !is_root(c);
    c->parent_lives = has_parent && !qn_node_set_has(&c->down, c->parent);
    qn_node_set_copy(&c->living, &c->children);
    qn_node_set_subtract(&c->living, &c->down);
    qn_node_set_copy(&c->others, &c->listen);
    qn_node_set_subtract(&c->others, &c->down);
    if (has_parent) {
        qn_node_set_remove(&c->others, c->parent);
    }
}

static void take_tree(struct qn_context *c, const struct qn_tree *t)
{
    bool member = qn_tree_has(t, c->self);
    c->parent = t->parent[c->self];
    c->child_count = member ? t->child_count[c->self] : 0;
    qn_node_set_clear(&c->children);
    for (uint32_t i = 0; i < c->child_count; i++) {
        c->child[i] = t->child[t->child_at[c->self] + i];
        qn_node_set_add(&c->children, c->child[i]);
    }
}

/* --- create -------------------------------------------------------------- */

static bool opts_ok(const struct qn_context_opts *o, uint32_t members)
{
    return members <= QN_MEMBERS_MAX && o->self < members &&
           qn_tree_check(o->tree) == QN_OK &&
           qn_tree_bound(o->tree) <= members &&
           (o->bcast != NULL || o->qp != NULL) &&
           (o->deliver != NULL || o->self == o->tree->root) &&
           (o->msg_max == 0 ||
            (o->msg_max >= QN_INPLACE_MAX && o->msg_max <= QN_MSG_MAX));
}

/* The nodes that are down from the beginning: peers without a queuepair. With
 * the broadcast of a device none has one. */
static void find_absent(struct qn_context *c)
{
    for (qn_node_t v = 0; v < c->members; v++) {
        if (v != c->self && (c->bcast != NULL || c->qp[v] == NULL)) {
            qn_node_set_add(&c->down, v);
        }
    }
}

int qn_context_create(struct qn_context **out, const struct qn_context_opts *o)
{
    uint32_t members = o->members != 0 ? o->members : QN_NODES_MAX;
    if (!opts_ok(o, members)) {
        return QN_EINVAL;
    }
    struct qn_context *c = allocate(qn_alloc_or_malloc(o->alloc), members);
    if (c == NULL) {
        return QN_ENOMEM;
    }
    c->self = o->self;
    c->qp = o->qp;
    c->bcast = o->bcast;
    c->deliver = o->deliver;
    c->ctx = o->ctx;
    c->msg_max = o->msg_max != 0 ? o->msg_max : QN_MSG_MAX;
    for (qn_node_t v = 0; v < members && o->deliver != NULL; v++) {
        qn_node_set_put(&c->listen, v, v != o->self);
    }
    take_tree(c, o->tree);
    find_absent(c);
    qn_context_derive(c);
    if (!qn_forward_reroot(c)) {
        qn_context_destroy(c);
        return QN_ENOMEM;
    }
    *out = c;
    return QN_OK;
}

void qn_context_destroy(struct qn_context *c)
{
    if (c != NULL) {
        qn_forward_fini(c);
        qn_alloc_free_lines(c->alloc, c);
    }
}

/* --- nodes come and go --------------------------------------------------- */

void qn_context_down(struct qn_context *c, qn_node_t peer)
{
    QN_ASSERT(peer < c->members);
    QN_ASSERT(peer != c->self);
    qn_node_set_add(&c->down, peer);
    qn_node_set_remove(&c->dirty, peer);
    qn_context_derive(c);
    qn_forward_down(c, peer);
}

void qn_context_up(struct qn_context *c, qn_node_t peer)
{
    QN_ASSERT(peer < c->members);
    QN_ASSERT(peer != c->self);
    if (c->bcast != NULL) {
        return; /* the device is told */
    }
    QN_ASSERT(c->qp[peer] != NULL);
    /* What is under way began before its new incarnation: it is in no set. */
    qn_node_set_remove(&c->down, peer);
    qn_context_derive(c);
}

int qn_context_reroot(struct qn_context *c, const struct qn_tree *tree)
{
    QN_ASSERT(!c->delivering);
    if (qn_tree_check(tree) != QN_OK || qn_tree_bound(tree) > c->members ||
        (c->deliver == NULL && tree->root != c->self)) {
        return QN_EINVAL;
    }
    take_tree(c, tree);
    qn_context_derive(c);
    (void)qn_forward_reroot(c); /* without memory it forwards whole messages */
    return QN_OK;
}
