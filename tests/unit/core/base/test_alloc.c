/* Allocators with a limit, in front of one that counts by itself. */
#include "core/base/alloc.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/atomic.h"
#include "tests/support/test.h"

enum { HEAD = QN_ALLOC_LIMIT_HEAD, LIMIT = 1000 };

/* The allocator below: what it was asked for, and when it fails. */
static struct {
    size_t bytes; /* out */
    int blocks;
    bool fails;
} below;

/* A block remembers its length in front, as the one in front of it does. */
static void *below_resize(void *ctx, void *p, size_t bytes)
{
    size_t *old = p != NULL ? (size_t *)p - 2 : NULL;
    cr_assert_eq(ctx, &below);
    if (bytes == 0) {
        cr_assert_not_null(old);
        below.bytes -= *old;
        below.blocks--;
        free(old);
        return NULL;
    }
    if (below.fails) {
        return NULL;
    }
    below.bytes -= old != NULL ? *old : 0;
    below.blocks += old == NULL;
    below.bytes += bytes;
    size_t *at = realloc(old, 2 * sizeof *at + bytes);
    cr_assert_not_null(at);
    *at = bytes;
    return at + 2;
}

static const struct qn_alloc under = {below_resize, &below};
static struct qn_alloc_limit l;

static void setup(void)
{
    memset(&below, 0, sizeof below);
    qn_alloc_limit_init(&l, &under, LIMIT);
}

#define CASE(name) Test(alloc, name, .init = setup)

static void *resize(void *p, size_t bytes)
{
    return l.alloc.resize(l.alloc.ctx, p, bytes);
}

CASE(all_of_the_limit_can_be_had_and_no_byte_more)
{
    cr_assert_null(resize(NULL, LIMIT - HEAD + 1), "one byte too many");
    void *p = resize(NULL, LIMIT - HEAD);
    cr_assert_not_null(p);
    cr_assert_eq(l.used, (size_t)LIMIT);
    cr_assert_null(resize(NULL, 1));
    cr_assert_eq(l.refused, 2u);
    cr_assert_eq(l.blocks, 1u);
    cr_assert_null(resize(p, 0));
    cr_assert_eq(l.used + l.blocks + below.bytes, 0u);
    cr_assert_eq(l.most, (size_t)LIMIT);
}

CASE(a_block_that_grows_is_counted_once)
{
    char *p = resize(NULL, 600);
    memset(p, 'x', 600);
    p = resize(p, LIMIT - HEAD);
    cr_assert_not_null(p, "600 + 984 would be above the limit");
    cr_assert_eq(p[0] + p[599], 2 * 'x');
    cr_assert_null(resize(p, LIMIT - HEAD + 1));
    cr_assert_eq(p[599], 'x', "as it was");
    p = resize(p, 10);
    cr_assert_eq(l.used, 10u + HEAD);
    resize(p, 0);
}

/* What is as long as all memory does not wrap around. */
CASE(no_length_overflows)
{
    void *p = resize(NULL, 1);
    cr_assert_null(resize(NULL, SIZE_MAX));
    cr_assert_null(resize(NULL, SIZE_MAX - HEAD + 1));
    cr_assert_null(resize(p, SIZE_MAX));
    l.limit = SIZE_MAX;
    cr_assert_null(resize(p, SIZE_MAX));
    cr_assert_null(resize(NULL, SIZE_MAX - 2 * HEAD));
    resize(p, 0);
    cr_assert_eq(l.used, 0u);
    qn_alloc_limit_init(&l, &under, HEAD);
    cr_assert_null(resize(NULL, 1), "a head alone is no room");
    qn_alloc_limit_init(&l, &under, 0);
    cr_assert_null(resize(NULL, 1));
}

CASE(what_the_other_allocator_refuses_changes_nothing)
{
    char *p = resize(NULL, 100);
    memset(p, 'y', 100);
    below.fails = true;
    cr_assert_null(resize(NULL, 10));
    cr_assert_null(resize(p, 200));
    cr_assert_null(resize(p, 50));
    cr_assert_eq(l.used, 100u + HEAD);
    cr_assert_eq(l.most, 100u + HEAD);
    cr_assert_eq(l.blocks, 1u);
    cr_assert_eq(l.refused, 0u, "not by the limit");
    cr_assert_eq(p[0] + p[99], 2 * 'y');
    resize(p, 0);
}

CASE(nothing_is_freed_as_realloc_does)
{
    cr_assert_null(resize(NULL, 0));
    cr_assert_eq(l.blocks, 0u);
    cr_assert_null(qn_alloc_malloc.resize(NULL, NULL, 0));
}

CASE(blocks_are_aligned_as_those_of_malloc)
{
    void *p[20];
    for (size_t i = 0; i < 20; i++) {
        p[i] = resize(NULL, i + 1);
        cr_assert_eq((uintptr_t)p[i] % alignof(max_align_t), 0u);
    }
    for (size_t i = 0; i < 20; i++) {
        resize(p[i], 0);
    }
}

/* Random blocks that come, grow, shrink and go: the one below has what is
 * counted, never more than the limit, and what was refused would not fit.
 * @param head  Bytes in front of each block: 0 if its length is told. */
static void random_schedule(size_t head)
{
    enum { BLOCKS = 12, STEPS = 20000 };
    void *p[BLOCKS] = {0};
    size_t len[BLOCKS] = {0};
    unsigned seed = 1;
    uint64_t refused = 0, unmet = 0;
    struct qn_alloc_unmet u;
    qn_alloc_unmet_init(&u, &l.alloc);
    for (int k = 0; k < STEPS; k++) {
        int i = rand_r(&seed) % BLOCKS;
        size_t bytes = (size_t)rand_r(&seed) % 300;
        bytes += p[i] == NULL && bytes == 0;
        size_t had = p[i] != NULL ? len[i] + head : 0;
        below.fails = rand_r(&seed) % 16 == 0;
        bool beyond = bytes != 0 && l.used - had + bytes + head > LIMIT;
        void *q = head == 0 ? qn_alloc_resize(&u.alloc, p[i], len[i], bytes)
                            : u.alloc.resize(u.alloc.ctx, p[i], bytes);
        cr_assert_eq(q == NULL, bytes == 0 || beyond || below.fails, "%d", k);
        if (bytes == 0 || q != NULL) {
            p[i] = q;
            len[i] = bytes;
        }
        refused += beyond;
        unmet += bytes != 0 && q == NULL;
        size_t sum = 0;
        int out = 0;
        for (int j = 0; j < BLOCKS; j++) {
            sum += p[j] != NULL ? len[j] + head : 0;
            out += p[j] != NULL;
        }
        cr_assert_eq(l.used, sum, "step %d", k);
        cr_assert_eq(below.bytes, sum, "step %d", k);
        cr_assert_eq(l.blocks, (uint64_t)out);
        cr_assert_eq(below.blocks, out);
        cr_assert_leq(sum, (size_t)LIMIT);
    }
    cr_assert_eq(l.refused, refused);
    cr_assert_eq(u.unmet, unmet);
    cr_assert_gt(refused, 100u);
    cr_assert_gt(unmet, refused);
    cr_assert_gt(l.most, (size_t)LIMIT * 9 / 10);
    below.fails = false;
    for (int i = 0; i < BLOCKS; i++) {
        (void)(head == 0 && p[i] != NULL
                   ? qn_alloc_resize(&u.alloc, p[i], len[i], 0)
                   : u.alloc.resize(u.alloc.ctx, p[i], 0));
    }
    cr_assert_eq(below.bytes, 0u);
}

CASE(no_schedule_comes_above_the_limit)
{
    random_schedule(HEAD);
}

CASE(nor_one_of_blocks_whose_length_is_told_which_have_no_head)
{
    random_schedule(0);
}

/* ---- whole blocks -------------------------------------------------------- */

static bool is_zero(const uint8_t *p, size_t bytes)
{
    while (bytes > 0 && p[bytes - 1] == 0) {
        bytes--;
    }
    return bytes == 0;
}

CASE(options_without_an_allocator_mean_mallocs)
{
    cr_assert_eq(qn_alloc_or_malloc(NULL), &qn_alloc_malloc);
    cr_assert_eq(qn_alloc_or_malloc(&under), &under);
}

CASE(a_zeroed_block_is_zero_and_the_allocators)
{
    static const struct qn_alloc *const from[] = {&qn_alloc_malloc, &under};
    for (int i = 0; i < 2; i++) {
        uint8_t *p = qn_alloc_zeroed(from[i], 300);
        cr_assert_not_null(p);
        memset(p, 0xff, 300);
        qn_alloc_free(from[i], p);
        p = qn_alloc_zeroed(from[i], 300); /* perhaps the same one */
        cr_assert(is_zero(p, 300));
        cr_assert_eq(below.blocks, i);
        qn_alloc_free(from[i], p);
        qn_alloc_free(from[i], NULL);
        cr_assert_eq(below.blocks, 0);
    }
    below.fails = true;
    cr_assert_null(qn_alloc_zeroed(&under, 300));
}

CASE(lines_are_aligned_and_zero)
{
    for (size_t bytes = 1; bytes < 300; bytes += 7) {
        void *before =
            qn_alloc_zeroed(&under, bytes); /* others lie elsewhere */
        uint8_t *p = qn_alloc_lines(&under, bytes);
        cr_assert_not_null(p);
        cr_assert_eq((uintptr_t)p % QN_CACHELINE, 0);
        cr_assert(is_zero(p, bytes));
        memset(p, 0xff, bytes);
        qn_alloc_free_lines(&under, p);
        qn_alloc_free_lines(&under, NULL);
        qn_alloc_free(&under, before);
        cr_assert_eq(below.blocks, 0);
        cr_assert_eq(below.bytes, 0);
    }
    below.fails = true;
    cr_assert_null(qn_alloc_lines(&under, 1));
}
