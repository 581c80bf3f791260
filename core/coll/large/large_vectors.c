/*
 * Broadcast and reduce.
 *
 * A broadcast goes down the tree of the plan, fragment by fragment; a fragment
 * that has come goes on while the next one comes. Pulled: the k-th thing of a
 * member is that it has k fragments. Pushed: of a member with c children, that
 * it has written fragment (k - 1) / c to child (k - 1) % c.
 *
 * A reduction goes up, each subtree's result as a whole. Pulled: the parent
 * combines what lies at its children. Pushed: each child writes into a slot of
 * its parent's intermediate buffer. If the order of ranks counts, and the tree
 * is not flat, the tree is the binomial one of ranks with rank 0 as its root,
 * whose subtrees are contiguous; then rank 0 has the result, and another root
 * copies it.
 */
#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/coll/large/large_schedule_internal.h"

static bool pushes(const struct qn_large_plan *p)
{
    return p->variant->direction == QN_LARGE_PUSH;
}

/* ---- broadcast ---- */

static uint32_t index_in(const struct qn_shape *s, uint32_t child)
{
    const uint32_t parent = s->parent[child];
    uint32_t i = 0;
    while (qn_shape_children(s, parent)[i] != child) {
        i++;
    }
    return i;
}

static void pull_vector(struct qn_large_writer *w)
{
    const struct qn_large_plan *p = w->p;
    const struct qn_large_variant *v = p->variant;
    const uint32_t parent = p->tree->parent[w->self];
    const uint32_t fragments = qn_large_fragment_count(v, p->bytes);
    if (w->self == p->root) {
        return;
    }
    qn_large_write_await(w, parent);
    for (uint32_t f = 0; f < fragments; f++) {
        const uint64_t at = qn_large_fragment_at(v, p->bytes, f);
        const uint64_t end = qn_large_fragment_at(v, p->bytes, f + 1);
        if (parent != p->root) {
            qn_large_write_wait(w, parent, f + 1);
        }
        qn_large_write_copy(w, qn_large_own(QN_LARGE_OUT, at),
                            qn_large_of(parent, at), end - at);
        if (p->tree->count[w->self] > 0) {
            qn_large_write_raise(w, f + 1);
        }
    }
}

static void push_vector(struct qn_large_writer *w)
{
    const struct qn_large_plan *p = w->p;
    const struct qn_shape *s = p->tree;
    const struct qn_large_variant *v = p->variant;
    const bool root = w->self == p->root;
    const uint32_t parent = s->parent[w->self], count = s->count[w->self];
    const uint32_t index = root ? 0 : index_in(s, w->self);
    const uint32_t fragments = qn_large_fragment_count(v, p->bytes);
    for (uint32_t f = 0; f < fragments; f++) {
        const uint64_t at = qn_large_fragment_at(v, p->bytes, f);
        const uint64_t end = qn_large_fragment_at(v, p->bytes, f + 1);
        if (!root) {
            qn_large_write_wait(w, parent, f * s->count[parent] + index + 1);
        }
        for (uint32_t i = 0; i < count; i++) {
            const uint32_t child = qn_shape_children(s, w->self)[i];
            if (f == 0) {
                qn_large_write_await(w, child);
            }
            qn_large_write_copy(
                w, qn_large_of(child, at),
                qn_large_own(root ? QN_LARGE_IN : QN_LARGE_OUT, at), end - at);
            qn_large_write_raise(w, f * count + i + 1);
        }
    }
}

/* ---- reduce ---- */

/* Combined in the binomial tree of ranks. */
static bool by_rank(const struct qn_large_plan *p)
{
    return p->ordered && p->variant->tree != QN_LARGE_FLAT;
}

/* The member that has the result first. */
static uint32_t top(const struct qn_large_plan *p)
{
    return by_rank(p) ? 0 : p->root;
}

static uint32_t parent_of(const struct qn_large_plan *p, uint32_t member)
{
    return by_rank(p) ? qn_large_rank_parent(member) : p->tree->parent[member];
}

static uint32_t child_count(const struct qn_large_plan *p, uint32_t member)
{
    return by_rank(p) ? qn_large_rank_children(p->n, member)
                      : p->tree->count[member];
}

static uint32_t child_at(const struct qn_large_plan *p, uint32_t member,
                         uint32_t i)
{
    return by_rank(p) ? member + (1u << i)
                      : qn_shape_children(p->tree, member)[i];
}

/* The slot of `child` in its parent's intermediate buffer. */
static uint32_t slot_of(const struct qn_large_plan *p, uint32_t child)
{
    uint32_t i = 0;
    if (!by_rank(p)) {
        return index_in(p->tree, child);
    }
    while ((1u << i) < child - qn_large_rank_parent(child)) {
        i++;
    }
    return i;
}

/* Slots of a member's intermediate buffer: one for each child, and at a root
 * that is not the top one for the result. */
static uint32_t slot_count(const struct qn_large_plan *p, uint32_t member)
{
    const bool result = member == p->root && top(p) != p->root;
    return pushes(p) ? child_count(p, member) + result : 0;
}

/* Where a member's subtree is combined. */
static struct qn_large_at result_at(const struct qn_large_plan *p,
                                    uint32_t member)
{
    if (member == top(p) && member == p->root) {
        return qn_large_own(QN_LARGE_OUT, 0);
    }
    return child_count(p, member) == 0
               ? qn_large_own(QN_LARGE_IN, 0)
               : qn_large_own(QN_LARGE_WORK, slot_count(p, member) * p->bytes);
}

/* The contribution of a child, when it has come. */
static struct qn_large_at from_child(struct qn_large_writer *w, uint32_t child)
{
    qn_large_write_wait(w, child, 1);
    return pushes(w->p)
               ? qn_large_own(QN_LARGE_WORK, slot_of(w->p, child) * w->p->bytes)
               : qn_large_of(child, 0);
}

struct sum {
    struct qn_large_at to, left;
    uint32_t terms;
};

/* The first two are combined into `to`, so that neither is copied before. */
static void add(struct qn_large_writer *w, struct sum *s,
                struct qn_large_at term)
{
    if (s->terms++ > 0) {
        qn_large_write(w, &(struct qn_large_step){.kind = QN_LARGE_COMBINE,
                                                  .bytes = w->p->bytes,
                                                  .to = s->to,
                                                  .left = s->left,
                                                  .from = term});
    }
    s->left = s->terms == 1 ? term : s->to;
}

/* A flat tree in rank order: the root's own contribution in its turn. */
static void combine_flat_in_order(struct qn_large_writer *w, struct sum *s)
{
    for (uint32_t x = 0; x < w->p->n; x++) {
        add(w, s,
            x == w->self ? qn_large_own(QN_LARGE_IN, 0) : from_child(w, x));
    }
}

static void combine(struct qn_large_writer *w)
{
    const struct qn_large_plan *p = w->p;
    struct sum s = {.to = result_at(p, w->self)};
    if (p->ordered && !by_rank(p) && w->self == p->root) {
        combine_flat_in_order(w, &s);
    } else {
        add(w, &s, qn_large_own(QN_LARGE_IN, 0));
        for (uint32_t i = 0; i < child_count(p, w->self); i++) {
            add(w, &s, from_child(w, child_at(p, w->self, i)));
        }
    }
    if (s.terms == 1 && s.to.buffer != QN_LARGE_IN) {
        qn_large_write_copy(w, s.to, s.left, p->bytes);
    }
}

/* Hand the subtree's result to `to`, where it has slot `slot`. */
static void hand_up(struct qn_large_writer *w, uint32_t to, uint32_t slot)
{
    const struct qn_large_plan *p = w->p;
    if (pushes(p)) {
        qn_large_write_await(w, to);
        qn_large_write_copy(w, qn_large_of(to, slot * p->bytes),
                            result_at(p, w->self), p->bytes);
    }
    qn_large_write_raise(w, 1);
}

static void reduce(struct qn_large_writer *w)
{
    const struct qn_large_plan *p = w->p;
    const uint32_t slot = child_count(p, p->root); /* of the result */
    combine(w);
    if (w->self != top(p)) {
        hand_up(w, parent_of(p, w->self), slot_of(p, w->self));
    } else if (w->self != p->root) {
        hand_up(w, p->root, slot);
    }
    if (w->self == p->root && w->self != top(p)) {
        qn_large_write_wait(w, top(p), 1);
        qn_large_write_copy(w, qn_large_own(QN_LARGE_OUT, 0),
                            pushes(p)
                                ? qn_large_own(QN_LARGE_WORK, slot * p->bytes)
                                : qn_large_of(top(p), 0),
                            p->bytes);
    }
}

/* ---- both ---- */

void qn_large_vectors(struct qn_large_writer *w)
{
    if (w->p->variant->operation == QN_LARGE_REDUCE) {
        reduce(w);
    } else if (pushes(w->p)) {
        push_vector(w);
    } else {
        pull_vector(w);
    }
}

void qn_large_vectors_left(struct qn_large_writer *w)
{
    const struct qn_large_plan *p = w->p;
    if (p->variant->operation == QN_LARGE_REDUCE) {
        if (w->self != top(p)) {
            qn_large_write_until_done(w, parent_of(p, w->self));
        } else if (w->self != p->root) {
            qn_large_write_until_done(w, p->root);
        }
        return;
    }
    for (uint32_t i = 0; i < p->tree->count[w->self]; i++) {
        qn_large_write_until_done(w, qn_shape_children(p->tree, w->self)[i]);
    }
}

enum qn_large_buffer qn_large_vectors_show(const struct qn_large_plan *p,
                                           uint32_t member)
{
    if (p->variant->operation == QN_LARGE_BROADCAST) {
        return member == p->root ? QN_LARGE_IN : QN_LARGE_OUT;
    }
    return pushes(p) ? QN_LARGE_WORK : result_at(p, member).buffer;
}

uint64_t qn_large_vectors_work(const struct qn_large_plan *p, uint32_t self)
{
    if (p->variant->operation == QN_LARGE_BROADCAST) {
        return 0;
    }
    const bool own = result_at(p, self).buffer == QN_LARGE_WORK;
    return (slot_count(p, self) + own) * p->bytes;
}
