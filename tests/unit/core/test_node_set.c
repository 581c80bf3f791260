#include "core/node_set.h"

#include <string.h>

#include "core/base/bits.h"
#include "tests/support/test.h"

/* Sizes around the boundaries of words. */
static const uint32_t sizes[] = {1,   2,   63,  64,   65,  127,
                                 128, 129, 300, 1023, 1024};

/* A set and the naive version of it. */
struct pair {
    uint32_t nodes;
    bool in[QN_MEMBERS_MAX];
    uint64_t word[QN_NODE_SET_WORDS(QN_MEMBERS_MAX)];
    struct qn_node_set set;
};

static void begin(struct pair *p, uint32_t nodes)
{
    memset(p, 0xa5, sizeof *p);
    p->nodes = nodes;
    memset(p->in, 0, sizeof p->in);
    p->set = qn_node_set_over(p->word, nodes);
}

static void put(struct pair *p, qn_node_t v, bool in)
{
    p->in[v] = in;
    if (in) {
        qn_node_set_add(&p->set, v);
    } else {
        qn_node_set_remove(&p->set, v);
    }
}

static qn_node_t naive_next(const struct pair *p, qn_node_t from)
{
    while (from < p->nodes && !p->in[from]) {
        from++;
    }
    return from < p->nodes ? from : QN_NO_MEMBER;
}

/* Every question about the set, for every node. */
static void compare(const struct pair *p)
{
    for (qn_node_t v = 0; v < p->nodes; v++) {
        cr_assert_eq(qn_node_set_has(&p->set, v), p->in[v], "node %u", v);
    }
    for (qn_node_t v = 0; v <= QN_MEMBERS_MAX + 1; v++) {
        cr_assert_eq(qn_node_set_next(&p->set, v), naive_next(p, v),
                     "%u nodes, from %u", p->nodes, v);
    }
    cr_assert_eq(qn_node_set_next(&p->set, UINT32_MAX), QN_NO_MEMBER);
    struct qn_node_iter it = qn_node_set_iter(&p->set);
    qn_node_t v = QN_NO_MEMBER, from = 0;
    while (qn_node_iter_next(&it, &v)) {
        cr_assert_eq(v, naive_next(p, from));
        from = v + 1;
    }
    cr_assert_eq(naive_next(p, from), QN_NO_MEMBER);
    cr_assert(!qn_node_iter_next(&it, &v));
    cr_assert_eq(qn_node_set_empty(&p->set), naive_next(p, 0) == QN_NO_MEMBER);
}

/* No word behind those in use was touched. */
static void check_end(const struct pair *p)
{
    for (uint32_t i = p->set.words; i < QN_ARRAY_COUNT(p->word); i++) {
        cr_assert_eq(p->word[i], UINT64_C(0xa5a5a5a5a5a5a5a5));
    }
}

Test(node_set, has_only_the_words_that_it_needs)
{
    cr_assert_eq(QN_NODE_SET_WORDS(1), 1);
    cr_assert_eq(QN_NODE_SET_WORDS(64), 1);
    cr_assert_eq(QN_NODE_SET_WORDS(65), 2);
    cr_assert_eq(QN_NODE_SET_WORDS(1023), 16);
    cr_assert_eq(QN_NODE_SET_WORDS(QN_MEMBERS_MAX), 16);
}

/* Exhaustive: all sets of one member, all without one, and all pairs of
 * neighbours at the boundaries. */
Test(node_set, one_member_more_or_less_is_seen_alone)
{
    static struct pair p;
    for (uint32_t s = 0; s < QN_ARRAY_COUNT(sizes); s++) {
        begin(&p, sizes[s]);
        compare(&p);
        for (qn_node_t v = 0; v < p.nodes; v++) {
            put(&p, v, true);
            put(&p, v, true);
            cr_assert_eq(qn_node_set_next(&p.set, 0), v);
            cr_assert_eq(qn_node_set_next(&p.set, v), v);
            cr_assert_eq(qn_node_set_next(&p.set, v + 1), QN_NO_MEMBER);
            if (v % 64 < 2 || v % 64 > 61) {
                compare(&p);
            }
            put(&p, v, false);
            cr_assert(qn_node_set_empty(&p.set));
        }
        for (qn_node_t v = 0; v < p.nodes; v++) {
            put(&p, v, true);
        }
        for (qn_node_t v = 0; v < p.nodes; v++) {
            put(&p, v, false);
            cr_assert_eq(qn_node_set_next(&p.set, v),
                         v + 1 < p.nodes ? v + 1 : QN_NO_MEMBER);
            cr_assert_eq(qn_node_set_empty(&p.set), p.nodes == 1);
            put(&p, v, true);
        }
        compare(&p);
        check_end(&p);
    }
}

Test(node_set, a_member_may_be_removed_when_the_iterator_has_come_to_it)
{
    static struct pair p;
    begin(&p, 300);
    for (qn_node_t v = 0; v < 300; v += 3) {
        put(&p, v, true);
    }
    struct qn_node_iter it = qn_node_set_iter(&p.set);
    uint32_t count = 0;
    for (qn_node_t v; qn_node_iter_next(&it, &v); count++) {
        cr_assert_eq(v, 3 * count);
        put(&p, v, false);
    }
    cr_assert_eq(count, 100);
    cr_assert(qn_node_set_empty(&p.set));
}

static uint32_t draw(uint64_t *r, uint32_t below)
{
    *r = *r * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)((*r >> 33) % below);
}

static void fill(struct pair *p, uint64_t *r)
{
    begin(p, p->nodes);
    for (uint32_t i = draw(r, p->nodes + 1); i > 0; i--) {
        put(p, draw(r, p->nodes), true);
    }
}

Test(node_set, random_changes_agree_with_the_naive_set)
{
    static struct pair p;
    uint64_t r = 7;
    for (uint32_t s = 0; s < QN_ARRAY_COUNT(sizes); s++) {
        begin(&p, sizes[s]);
        for (uint32_t i = 0; i < 4000; i++) {
            qn_node_t v = draw(&r, p.nodes);
            bool in = draw(&r, 2) == 0;
            if (draw(&r, 2) == 0) {
                put(&p, v, in);
            } else {
                p.in[v] = in;
                qn_node_set_put(&p.set, v, in);
            }
            cr_assert_eq(qn_node_set_has(&p.set, v), in);
            if (i % 400 == 0) {
                compare(&p);
            }
        }
        compare(&p);
        check_end(&p);
    }
}

static bool naive_within(const struct pair *a, const struct pair *b)
{
    bool within = true;
    for (qn_node_t v = 0; v < a->nodes; v++) {
        within &= !a->in[v] || b->in[v];
    }
    return within;
}

Test(node_set, sets_of_two_sets_agree_with_the_naive_ones)
{
    static struct pair a, b;
    uint64_t r = 1;
    for (uint32_t s = 0; s < QN_ARRAY_COUNT(sizes); s++) {
        for (uint32_t i = 0; i < 50; i++) {
            a.nodes = b.nodes = sizes[s];
            fill(&a, &r);
            fill(&b, &r);
            cr_assert_eq(qn_node_set_within(&a.set, &b.set),
                         naive_within(&a, &b));
            for (qn_node_t v = 0; v < a.nodes; v++) {
                a.in[v] = i % 4 == 0   ? a.in[v] || b.in[v]
                          : i % 4 == 1 ? a.in[v] && !b.in[v]
                          : i % 4 == 2 ? a.in[v] && b.in[v]
                                       : b.in[v];
            }
            if (i % 4 == 0) {
                qn_node_set_unite(&a.set, &b.set);
            } else if (i % 4 == 1) {
                qn_node_set_subtract(&a.set, &b.set);
            } else if (i % 4 == 2) {
                qn_node_set_intersect(&a.set, &b.set);
            } else {
                qn_node_set_copy(&a.set, &b.set);
            }
            cr_assert_eq(qn_node_set_within(&a.set, &b.set),
                         naive_within(&a, &b));
            compare(&a);
            compare(&b);
            struct qn_node_set same = qn_node_set_of(a.word, a.nodes);
            cr_assert(qn_node_set_within(&same, &a.set));
            qn_node_set_clear(&a.set);
            cr_assert(qn_node_set_empty(&a.set));
            check_end(&a);
        }
    }
}

Test(node_set, more_nodes_than_members_is_our_own_mistake, .signal = SIGABRT)
{
    uint64_t word[QN_NODE_SET_WORDS(QN_MEMBERS_MAX) + 1];
    (void)qn_node_set_over(word, QN_MEMBERS_MAX + 1);
}
