#ifndef QN_NODE_SET_H
#define QN_NODE_SET_H

/**
 * Sets of nodes of a topology: bits in words of 64 that belong to the caller.
 *
 *     uint64_t word[QN_NODE_SET_WORDS(100)];
 *     struct qn_node_set s = qn_node_set_over(word, 100);     empty
 *     qn_node_set_add(&s, 99);
 *     qn_node_set_next(&s, 0);                                99
 *
 * A set has only the words that its members need. With at most 64 nodes that is
 * one, and each operation costs what it costs on a uint64_t, but for one load
 * of the word's address. What a set costs does not depend on its members but on
 * its words: 16 of them at QN_MEMBERS_MAX.
 *
 * Sets in one operation have the same number of words (asserted in debug
 * builds, like the bounds: these are per-element checks of hot paths).
 *
 * A struct copied by assignment is a second name of the same set.
 *
 * Pure: no allocation. One thread per set, as for any plain variable.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/base/assert.h"
#include "core/node.h"

/** Words of a set of the nodes 0 .. `nodes` - 1. */
#define QN_NODE_SET_WORDS(nodes) (((nodes) + 63u) / 64u)

/** Node v is bit v % 64 of word v / 64. A hot loop may use
 *  the words themselves, of several sets at once. */
struct qn_node_set {
    uint64_t *word; /* [words], of the caller. Kept */
    uint32_t words; /* at least one */
};

static inline void qn_node_set_clear(struct qn_node_set *s)
{
    s->word[0] = 0; /* usually the only one: no call of memset for it */
    for (uint32_t i = 1; i < s->words; i++) {
        s->word[i] = 0;
    }
}

/** The set that the words are, whatever they hold: of nodes below `nodes`.
 *  @param word   [QN_NODE_SET_WORDS(nodes)] Kept.
 *  @param nodes  1 .. QN_MEMBERS_MAX. */
static inline struct qn_node_set qn_node_set_of(uint64_t *word, uint32_t nodes)
{
    QN_ASSERT(nodes >= 1);
    QN_ASSERT(nodes <= QN_MEMBERS_MAX);
    return (struct qn_node_set){word, QN_NODE_SET_WORDS(nodes)};
}

/** The same, empty. */
static inline struct qn_node_set qn_node_set_over(uint64_t *word,
                                                  uint32_t nodes)
{
    struct qn_node_set s = qn_node_set_of(word, nodes);
    qn_node_set_clear(&s);
    return s;
}

static inline bool qn_node_set_has(const struct qn_node_set *s, qn_node_t v)
{
    QN_DASSERT(v / 64 < s->words);
    return (s->word[v / 64] >> (v % 64) & 1) != 0;
}

static inline void qn_node_set_add(struct qn_node_set *s, qn_node_t v)
{
    QN_DASSERT(v / 64 < s->words);
    s->word[v / 64] |= UINT64_C(1) << (v % 64);
}

static inline void qn_node_set_remove(struct qn_node_set *s, qn_node_t v)
{
    QN_DASSERT(v / 64 < s->words);
    s->word[v / 64] &= ~(UINT64_C(1) << (v % 64));
}

/** Add v if `in`, else remove it. */
static inline void qn_node_set_put(struct qn_node_set *s, qn_node_t v, bool in)
{
    qn_node_set_remove(s, v);
    s->word[v / 64] |= (uint64_t)in << (v % 64);
}

static inline bool qn_node_set_empty(const struct qn_node_set *s)
{
    uint64_t any = s->word[0];
    for (uint32_t i = 1; i < s->words; i++) {
        any |= s->word[i];
    }
    return any == 0;
}

/** to = from */
static inline void qn_node_set_copy(struct qn_node_set *to,
                                    const struct qn_node_set *from)
{
    QN_DASSERT(to->words == from->words);
    for (uint32_t i = 0; i < to->words; i++) {
        to->word[i] = from->word[i];
    }
}

/** s = s and what is in `other` */
static inline void qn_node_set_unite(struct qn_node_set *s,
                                     const struct qn_node_set *other)
{
    QN_DASSERT(s->words == other->words);
    for (uint32_t i = 0; i < s->words; i++) {
        s->word[i] |= other->word[i];
    }
}

/** s = s without what is in `other` */
static inline void qn_node_set_subtract(struct qn_node_set *s,
                                        const struct qn_node_set *other)
{
    QN_DASSERT(s->words == other->words);
    for (uint32_t i = 0; i < s->words; i++) {
        s->word[i] &= ~other->word[i];
    }
}

/** s = what is in s and in `other` */
static inline void qn_node_set_intersect(struct qn_node_set *s,
                                         const struct qn_node_set *other)
{
    QN_DASSERT(s->words == other->words);
    for (uint32_t i = 0; i < s->words; i++) {
        s->word[i] &= other->word[i];
    }
}

/** True if all members of s are in `other`. */
static inline bool qn_node_set_within(const struct qn_node_set *s,
                                      const struct qn_node_set *other)
{
    uint64_t outside = 0;
    QN_DASSERT(s->words == other->words);
    for (uint32_t i = 0; i < s->words; i++) {
        outside |= s->word[i] & ~other->word[i];
    }
    return outside == 0;
}

/** The members in ascending order, as they were when their word was reached: a
 *  member may be removed meanwhile, and one that is added may be missed.
 *
 *      struct qn_node_iter it = qn_node_set_iter(&s);
 *      for (qn_node_t v; qn_node_iter_next(&it, &v);) ...
 *
 *  Fields are private. */
struct qn_node_iter {
    const struct qn_node_set *set; /* borrowed */
    uint32_t i;
    uint64_t left; /* of word i */
};

static inline struct qn_node_iter qn_node_set_iter(const struct qn_node_set *s)
{
    return (struct qn_node_iter){s, 0, s->word[0]};
}

/** @return false: there are no more, and *v is as it was. */
static inline bool qn_node_iter_next(struct qn_node_iter *it, qn_node_t *v)
{
    while (it->left == 0) {
        if (++it->i >= it->set->words) {
            return false;
        }
        it->left = it->set->word[it->i];
    }
    *v = it->i * 64 + (qn_node_t)__builtin_ctzll(it->left);
    it->left &= it->left - 1;
    return true;
}

/** The lowest member that is at least `from`, which may be anything; or
 *  QN_NO_MEMBER. O(words) at worst. */
static inline qn_node_t qn_node_set_next(const struct qn_node_set *s,
                                         qn_node_t from)
{
    uint32_t i = from / 64;
    if (i >= s->words) {
        return QN_NO_MEMBER;
    }
    uint64_t m = s->word[i] & UINT64_MAX << (from % 64);
    while (m == 0) {
        if (++i == s->words) {
            return QN_NO_MEMBER;
        }
        m = s->word[i];
    }
    return i * 64 + (qn_node_t)__builtin_ctzll(m);
}

#endif
