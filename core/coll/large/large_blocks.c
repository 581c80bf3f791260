/*
 * Scatter and gather: a block of each member. Positions are ranks counted from
 * the root, so that any root is position 0 and uses its own buffer directly. A
 * member of the binomial tree has, between the root and its subtree, the
 * blocks of its positions in sequence in an intermediate buffer; a leaf has
 * its block only, in the buffer of its caller.
 *
 * The root's buffer has the blocks in the order of ranks, so a range of
 * positions that passes the last rank is two pieces there.
 *
 * In a ring each member copies its block itself, from the root or to it, in
 * the order of positions: it waits for a token, and passes it on before it
 * copies if it is on the root's node or copies little; else when only
 * `threshold` bytes are left (NUMACol, 3.2). Where the root does all copies it
 * keeps the token, and a ring is as a flat tree.
 */
#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/coll/large/large_schedule_internal.h"

static bool is_tree(const struct qn_large_plan *p)
{
    return p->variant->tree == QN_LARGE_BINOMIAL;
}

static bool scatters(const struct qn_large_plan *p)
{
    return p->variant->operation == QN_LARGE_SCATTER;
}

static bool pushes(const struct qn_large_plan *p)
{
    return p->variant->direction == QN_LARGE_PUSH;
}

/* Does the root do all copies that are not of the tree? */
static bool root_copies(const struct qn_large_plan *p)
{
    return scatters(p) == pushes(p);
}

static uint32_t position_of(const struct qn_large_plan *p, uint32_t member)
{
    return (member + p->n - p->root) % p->n;
}

static uint32_t at_position(const struct qn_large_plan *p, uint32_t v)
{
    return (v + p->root) % p->n;
}

/* Bytes of all blocks of v's subtree. */
static uint64_t range_of(const struct qn_large_plan *p, uint32_t v)
{
    return qn_large_rank_span(p->n, v) * p->bytes;
}

static bool is_leaf(const struct qn_large_plan *p, uint32_t v)
{
    return qn_large_rank_span(p->n, v) == 1;
}

/* ---- the buffer of a member of the tree ---- */

/* Where the blocks of v are, `offset` bytes behind its own block. `mine`: seen
 * by v itself, else by another one. */
static struct qn_large_at blocks_at(const struct qn_large_plan *p, uint32_t v,
                                    bool mine, uint64_t offset)
{
    const enum qn_large_buffer user =
        scatters(p) == (v == 0) ? QN_LARGE_IN : QN_LARGE_OUT;
    if (!mine) {
        return qn_large_of(at_position(p, v), offset);
    }
    return qn_large_own(v == 0 || is_leaf(p, v) ? user : QN_LARGE_WORK, offset);
}

/* Copy `bytes` at `offset` behind the blocks of `v` between them and what has
 * them in sequence; at the root in at most two pieces. */
static void copy_blocks(struct qn_large_writer *w, uint32_t v, bool mine,
                        uint64_t offset, struct qn_large_at other, bool out,
                        uint64_t bytes)
{
    const struct qn_large_plan *p = w->p;
    const uint64_t all = p->n * p->bytes;
    while (bytes > 0) {
        uint64_t at = offset, piece = bytes;
        if (v == 0) { /* in the order of ranks */
            at = (offset + p->root * p->bytes) % all;
            piece = QN_MIN(bytes, all - at);
        }
        const struct qn_large_at here = blocks_at(p, v, mine, at);
        qn_large_write_copy(w, out ? other : here, out ? here : other, piece);
        offset += piece;
        other.offset += piece;
        bytes -= piece;
    }
}

/* ---- flat and ring ---- */

/* The root's own block. */
static void copy_own(struct qn_large_writer *w)
{
    const struct qn_large_plan *p = w->p;
    const uint64_t at = p->root * p->bytes;
    qn_large_write_copy(w, qn_large_own(QN_LARGE_OUT, scatters(p) ? 0 : at),
                        qn_large_own(QN_LARGE_IN, scatters(p) ? at : 0),
                        p->bytes);
}

/* The root copies each block, one member after the other. */
static void serve_all(struct qn_large_writer *w)
{
    const struct qn_large_plan *p = w->p;
    for (uint32_t v = 1; v < p->n; v++) {
        const uint32_t member = at_position(p, v);
        qn_large_write_await(w, member);
        if (scatters(p)) {
            qn_large_write_copy(w, qn_large_of(member, 0),
                                qn_large_own(QN_LARGE_IN, member * p->bytes),
                                p->bytes);
        } else {
            qn_large_write_copy(w,
                                qn_large_own(QN_LARGE_OUT, member * p->bytes),
                                qn_large_of(member, 0), p->bytes);
        }
        qn_large_write_raise(w, v);
    }
}

/* A member copies a part of its own block. */
static void serve_self(struct qn_large_writer *w, uint64_t from, uint64_t bytes)
{
    const struct qn_large_plan *p = w->p;
    const struct qn_large_at far =
        qn_large_of(p->root, w->self * p->bytes + from);
    if (scatters(p)) {
        qn_large_write_copy(w, qn_large_own(QN_LARGE_OUT, from), far, bytes);
    } else {
        qn_large_write_copy(w, far, qn_large_own(QN_LARGE_IN, from), bytes);
    }
}

static bool passes_early(const struct qn_large_plan *p, uint32_t self)
{
    return p->bytes < p->threshold || p->place == NULL ||
           p->place[self].node == p->place[p->root].node;
}

/* The first thing of a member is that it has passed the token, the second that
 * it has copied all. */
static void copy_in_turn(struct qn_large_writer *w)
{
    const struct qn_large_plan *p = w->p;
    const uint32_t v = position_of(p, w->self);
    const bool ring = p->variant->tree == QN_LARGE_RING;
    const uint64_t before =
        !ring || passes_early(p, w->self) ? 0 : p->bytes - p->threshold;
    qn_large_write_await(w, p->root);
    if (ring && v > 1) {
        qn_large_write_wait(w, at_position(p, v - 1), 1);
    }
    serve_self(w, 0, before);
    qn_large_write_raise(w, 1);
    serve_self(w, before, p->bytes - before);
    qn_large_write_raise(w, 2);
}

static void one_by_one(struct qn_large_writer *w)
{
    const struct qn_large_plan *p = w->p;
    const uint32_t v = position_of(p, w->self);
    if (v == 0) {
        copy_own(w);
    }
    if (root_copies(p)) {
        if (v == 0) {
            serve_all(w);
        } else if (scatters(p)) {
            qn_large_write_wait(w, p->root, v);
        }
    } else if (v != 0) {
        copy_in_turn(w);
    } else if (!scatters(p)) {
        for (uint32_t i = 1; i < p->n; i++) {
            qn_large_write_wait(w, at_position(p, i), 2);
        }
    }
}

/* ---- scatter over the tree ---- */

static void take_own_block(struct qn_large_writer *w, uint32_t v)
{
    if (v == 0) {
        copy_own(w);
    } else if (!is_leaf(w->p, v)) {
        qn_large_write_copy(w, qn_large_own(QN_LARGE_OUT, 0),
                            qn_large_own(QN_LARGE_WORK, 0), w->p->bytes);
    }
}

/* The k-th thing of a member is that it has k fragments of its range. */
static void pull_range(struct qn_large_writer *w, uint32_t v)
{
    const struct qn_large_plan *p = w->p;
    const uint32_t parent = qn_large_rank_parent(v);
    const uint64_t range = range_of(p, v), above = (v - parent) * p->bytes;
    const uint32_t count = qn_large_fragment_count(p->variant, range);
    qn_large_write_await(w, at_position(p, parent));
    for (uint32_t f = 0; f < count; f++) {
        const uint64_t at = qn_large_fragment_at(p->variant, range, f);
        const uint64_t end = qn_large_fragment_at(p->variant, range, f + 1);
        if (parent != 0) {
            const uint32_t k = qn_large_fragments_of(
                p->variant, range_of(p, parent), above + end);
            qn_large_write_wait(w, at_position(p, parent), k);
        }
        copy_blocks(w, parent, false, above + at, blocks_at(p, v, true, at),
                    true, end - at);
        qn_large_write_raise(w, f + 1);
    }
}

/* The k-th thing of a member is that it has served k children, of which the
 * last positions are the most. */
static void push_ranges(struct qn_large_writer *w, uint32_t v)
{
    const struct qn_large_plan *p = w->p;
    const uint32_t count = qn_large_rank_children(p->n, v);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t child = v + (1u << (count - 1 - i));
        qn_large_write_await(w, at_position(p, child));
        copy_blocks(w, v, true, (child - v) * p->bytes,
                    blocks_at(p, child, false, 0), true, range_of(p, child));
        qn_large_write_raise(w, i + 1);
    }
}

static void scatter_tree(struct qn_large_writer *w)
{
    const struct qn_large_plan *p = w->p;
    const uint32_t v = position_of(p, w->self);
    const uint32_t parent = qn_large_rank_parent(v);
    if (v != 0 && !pushes(p)) {
        pull_range(w, v);
    } else if (v != 0) {
        uint32_t behind = 0; /* children of the parent behind this one */
        while ((1u << behind) < v - parent) {
            behind++;
        }
        qn_large_write_wait(w, at_position(p, parent),
                            qn_large_rank_children(p->n, parent) - behind);
    }
    if (pushes(p)) {
        push_ranges(w, v);
    }
    take_own_block(w, v);
}

/* ---- gather over the tree ---- */

static void put_own_block(struct qn_large_writer *w, uint32_t v)
{
    if (v == 0) {
        copy_own(w);
    } else if (!is_leaf(w->p, v)) {
        qn_large_write_copy(w, qn_large_own(QN_LARGE_WORK, 0),
                            qn_large_own(QN_LARGE_IN, 0), w->p->bytes);
    }
}

static void pull_ranges(struct qn_large_writer *w, uint32_t v)
{
    const struct qn_large_plan *p = w->p;
    for (uint32_t i = 0; i < qn_large_rank_children(p->n, v); i++) {
        const uint32_t child = v + (1u << i);
        qn_large_write_wait(w, at_position(p, child), 1);
        copy_blocks(w, v, true, (child - v) * p->bytes,
                    blocks_at(p, child, false, 0), false, range_of(p, child));
    }
    qn_large_write_raise(w, 1);
}

/* Until the children have pushed the first `end` bytes of v's range. */
static void await_children(struct qn_large_writer *w, uint32_t v, uint64_t end)
{
    const struct qn_large_plan *p = w->p;
    for (uint32_t i = 0; i < qn_large_rank_children(p->n, v); i++) {
        const uint32_t child = v + (1u << i);
        const uint64_t before = (child - v) * p->bytes;
        if (before < end || p->bytes == 0) {
            const uint64_t range = range_of(p, child);
            qn_large_write_wait(
                w, at_position(p, child),
                qn_large_fragments_of(p->variant, range,
                                      QN_MIN(range, end - before)));
        }
    }
}

/* The k-th thing of a member is that k fragments of its range are at its
 * parent. */
static void push_range(struct qn_large_writer *w, uint32_t v)
{
    const struct qn_large_plan *p = w->p;
    const uint32_t parent = qn_large_rank_parent(v);
    const uint64_t range = range_of(p, v), above = (v - parent) * p->bytes;
    const uint32_t count = qn_large_fragment_count(p->variant, range);
    qn_large_write_await(w, at_position(p, parent));
    for (uint32_t f = 0; f < count; f++) {
        const uint64_t at = qn_large_fragment_at(p->variant, range, f);
        const uint64_t end = qn_large_fragment_at(p->variant, range, f + 1);
        await_children(w, v, end);
        copy_blocks(w, parent, false, above + at, blocks_at(p, v, true, at),
                    false, end - at);
        qn_large_write_raise(w, f + 1);
    }
}

static void gather_tree(struct qn_large_writer *w)
{
    const struct qn_large_plan *p = w->p;
    const uint32_t v = position_of(p, w->self);
    put_own_block(w, v);
    if (!pushes(p)) {
        pull_ranges(w, v);
    } else if (v != 0) {
        push_range(w, v);
    } else {
        await_children(w, 0, p->n * p->bytes);
    }
}

/* ---- both ---- */

void qn_large_blocks(struct qn_large_writer *w)
{
    if (!is_tree(w->p)) {
        one_by_one(w);
    } else if (scatters(w->p)) {
        scatter_tree(w);
    } else {
        gather_tree(w);
    }
}

void qn_large_blocks_left(struct qn_large_writer *w)
{
    const struct qn_large_plan *p = w->p;
    const uint32_t v = position_of(p, w->self);
    if (!scatters(p)) {
        if (v != 0) {
            qn_large_write_until_done(
                w,
                is_tree(p) ? at_position(p, qn_large_rank_parent(v)) : p->root);
        }
    } else if (is_tree(p)) {
        for (uint32_t i = 0; i < qn_large_rank_children(p->n, v); i++) {
            qn_large_write_until_done(w, at_position(p, v + (1u << i)));
        }
    } else {
        for (uint32_t i = 1; v == 0 && i < p->n; i++) {
            qn_large_write_until_done(w, at_position(p, i));
        }
    }
}

enum qn_large_buffer qn_large_blocks_show(const struct qn_large_plan *p,
                                          uint32_t member)
{
    const uint32_t v = position_of(p, member);
    if (v != 0 && is_tree(p) && !is_leaf(p, v)) {
        return QN_LARGE_WORK;
    }
    return scatters(p) == (v == 0) ? QN_LARGE_IN : QN_LARGE_OUT;
}

uint64_t qn_large_blocks_work(const struct qn_large_plan *p, uint32_t self)
{
    const uint32_t v = position_of(p, self);
    return v != 0 && is_tree(p) && !is_leaf(p, v) ? range_of(p, v) : 0;
}
