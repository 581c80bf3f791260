#include "paxos/log/mempool.h"

#include <malloc.h>
#include <sanitizer/asan_interface.h>
#include <stdint.h>
#include <string.h>

#include "core/base/bits.h"
#include "tests/support/test.h"

static struct qn_mempool pool;
static struct qn_alloc_limit counted; /* below it, in some */

static void setup(void)
{
    qn_mempool_init(&pool, SIZE_MAX, NULL);
}

static void teardown(void)
{
    qn_mempool_fini(&pool);
}

#define HEAD       16u /* bytes of a block before the caller's */
#define POOL(name) Test(pool, name, .init = setup, .fini = teardown)

static void *resize(void *p, size_t bytes)
{
    return pool.alloc.resize(pool.alloc.ctx, p, bytes);
}

POOL(gives_out_first_what_was_freed_last)
{
    void *a = resize(NULL, 60000);
    void *b = resize(NULL, 60000);
    resize(a, 0);
    resize(b, 0);
    cr_assert_eq(resize(NULL, 58000), b, "the same class, another size");
    cr_assert_eq(resize(NULL, 60000), a);
    cr_assert_eq(pool.kept, 0u);
    resize(a, 0);
    resize(b, 0);
}

POOL(keeps_nothing_of_what_is_huge)
{
    resize(resize(NULL, QN_MEMPOOL_MOST - HEAD + 1), 0);
    cr_assert_eq(pool.kept, 0u);
    resize(resize(NULL, QN_MEMPOOL_MOST - HEAD), 0);
    cr_assert_eq(pool.kept, QN_MEMPOOL_MOST);
}

/* A block is as long as what it is for, and at most a quarter longer. */
POOL(every_length_has_its_class)
{
    size_t kept = 0;
    for (size_t n = 1; n <= QN_MEMPOOL_MOST - HEAD; n += n / 64 + 1) {
        const size_t whole = QN_MAX(n + HEAD, QN_MEMPOOL_LEAST);
        resize(resize(NULL, n), 0);
        cr_assert_eq(qn_mempool_trim(&pool), true);
        void *p = resize(NULL, n);
        resize(p, 0);
        kept = pool.kept;
        cr_assert_geq(kept, whole, "%zu bytes", n);
        cr_assert_leq(kept, whole + whole / 4, "%zu bytes", n);
        cr_assert_eq(resize(NULL, kept - HEAD), p, "of the same class");
        resize(p, 0);
        void *longer =
            kept < QN_MEMPOOL_MOST ? resize(NULL, kept - HEAD + 1) : NULL;
        cr_assert_neq(longer, p, "of the next one");
        resize(longer, 0);
    }
    cr_assert_eq(kept, QN_MEMPOOL_MOST);
}

POOL(what_is_kept_has_a_bound_in_bytes)
{
    enum { N = 2 * QN_MEMPOOL_BYTES / 65536 };
    void *p[N];
    for (int i = 0; i < N; i++) {
        p[i] = resize(NULL, 60000);
    }
    for (int i = 0; i < N; i++) {
        resize(p[i], 0);
        cr_assert_leq(pool.kept, QN_MEMPOOL_BYTES);
    }
    cr_assert_eq(pool.kept, QN_MEMPOOL_BYTES);
}

/* A load of other sizes: what was kept for the one before goes. */
POOL(what_was_free_for_longest_goes_first)
{
    enum {
        SMALL = QN_MEMPOOL_BYTES / 4096,
        LARGE = QN_MEMPOOL_BYTES / 1048576
    };
    void *p[SMALL];
    for (int i = 0; i < SMALL; i++) {
        p[i] = resize(NULL, 4000);
    }
    for (int i = 0; i < SMALL; i++) {
        resize(p[i], 0);
    }
    cr_assert_eq(pool.kept, QN_MEMPOOL_BYTES);
    void *large[LARGE];
    for (int i = 0; i < LARGE; i++) {
        large[i] = resize(NULL, 1000000);
    }
    for (int i = 0; i < LARGE; i++) {
        resize(large[i], 0);
        cr_assert_leq(pool.kept, QN_MEMPOOL_BYTES);
    }
    for (int i = LARGE; i > 0; i--) {
        size_t kept = pool.kept;
        cr_assert_eq(resize(NULL, 1000000), large[i - 1]);
        cr_assert_lt(pool.kept, kept);
    }
    for (int i = 0; i < LARGE; i++) {
        resize(large[i], 0);
    }
}

/* The time of one release has a bound. */
POOL(many_short_blocks_make_room_for_a_long_one_step_by_step)
{
    enum { N = QN_MEMPOOL_BYTES / QN_MEMPOOL_LEAST, LONG = 2000000 };
    const size_t step = (size_t)QN_MEMPOOL_FORGET * QN_MEMPOOL_LEAST;
    static void *p[N];
    for (int i = 0; i < N; i++) {
        p[i] = resize(NULL, 1);
    }
    for (int i = 0; i < N; i++) {
        resize(p[i], 0);
    }
    size_t kept = QN_MEMPOOL_BYTES;
    for (; kept > QN_MEMPOOL_BYTES - QN_MEMPOOL_MOST + step; kept -= step) {
        cr_assert_eq(pool.kept, kept);
        resize(resize(NULL, LONG), 0);
    }
    resize(resize(NULL, LONG), 0);
    cr_assert_eq(pool.kept, QN_MEMPOOL_BYTES, "the long one is kept");
}

#ifdef __SANITIZE_ADDRESS__
POOL(a_kept_block_is_as_forbidden_as_a_freed_one)
{
    char *p = resize(NULL, 100);
    resize(p, 0);
    cr_assert_eq(__asan_region_is_poisoned(p, 112), p + 32, "behind the links");
    cr_assert_eq(resize(NULL, 100), p);
    cr_assert_null(__asan_region_is_poisoned(p, 112));
    resize(p, 0);
}
#endif

/* What a service keeps of them is no block that the pool would miss. */
Test(mempool, long_blocks_are_exact_if_so_said, .fini = teardown)
{
    qn_mempool_init(&pool, 50000, NULL);
    resize(resize(NULL, 49000), 0);
    size_t kept = pool.kept;
    cr_assert_neq(kept, 0u);
    uint8_t *p = resize(NULL, 50000);
    memset(p, 1, 50000);
    cr_assert_leq(malloc_usable_size(p - 16), 50000u + 64);
    p = resize(p, 3u << 20);
    cr_assert_eq(p[49999], 1);
    resize(p, 0);
    cr_assert_eq(pool.kept, kept);
}

/* Through all classes and both ends: what was written stays. */
POOL(growing_keeps_the_bytes)
{
    size_t len = 1;
    uint8_t *p = resize(NULL, len);
    p[0] = 1;
    while (len < 4 * (size_t)QN_MEMPOOL_MOST) {
        size_t more = len + len / 2 + 1;
        p = resize(p, more);
        memset(p + len, (int)(more % 251), more - len);
        len = more;
        for (size_t at = 1, end = 2; at < len; at = end, end += end / 2 + 1) {
            cr_assert_eq(p[at], end % 251, "byte %zu of %zu", at, len);
        }
    }
    resize(p, 0);
}

POOL(blocks_are_aligned_and_do_not_overlap)
{
    enum { N = 64 };
    uint8_t *p[N];
    for (size_t i = 0; i < N; i++) {
        p[i] = resize(NULL, 300 * i + 1);
        cr_assert_eq((uintptr_t)p[i] % 16, 0u);
        memset(p[i], (int)i, 300 * i + 1);
    }
    for (size_t i = 0; i < N; i++) {
        cr_assert_eq(p[i][0], i);
        cr_assert_eq(p[i][300 * i], i);
        resize(p[i], 0);
    }
}

POOL(has_no_block_larger_than_the_longest_refbuf)
{
    cr_assert_null(resize(NULL, sizeof(struct qn_refbuf) + QN_REFBUF_MAX + 1));
    cr_assert_null(resize(NULL, SIZE_MAX));
    cr_assert_null(resize(NULL, SIZE_MAX / 2));
    resize(NULL, 0);
}

/* What a block of `bytes` takes, as it is kept. */
static size_t block_bytes(size_t bytes)
{
    resize(resize(NULL, bytes), 0);
    size_t kept = pool.kept;
    qn_mempool_fini(&pool);
    return kept;
}

POOL(a_block_is_at_most_a_quarter_longer_than_asked_for)
{
    for (size_t bytes = 4096; bytes < QN_MEMPOOL_MOST - 64; bytes += 1021) {
        size_t block = block_bytes(bytes);
        cr_assert_geq(block, bytes + 16);
        cr_assert_leq(block, (bytes + 64) * 5 / 4, "%zu: %zu", bytes, block);
    }
    /* A value of 64 KiB with what is around it. */
    cr_assert_eq(block_bytes(65536 + 128), 81920u);
}

/* ---- an allocator of its own --------------------------------------------- */

static void begin_counted(void)
{
    qn_alloc_limit_init(&counted, &qn_alloc_malloc, SIZE_MAX);
    qn_mempool_init(&pool, SIZE_MAX, &counted.alloc);
}

/* Also those that would be mapped, and are resized or kept. */
Test(pool, all_blocks_come_from_the_allocator_below, .init = begin_counted)
{
    static const size_t bytes[] = {100, 5000, 70000, 1 << 20, 5 << 20};
    void *p[5];
    size_t sum = 0;
    for (int i = 0; i < 5; i++) {
        p[i] = resize(NULL, bytes[i]);
        memset(p[i], i, bytes[i]);
        sum += bytes[i];
        cr_assert_geq(counted.used, sum);
    }
    cr_assert_eq(counted.blocks, 5);
    uint8_t *longer = resize(p[4], 6 << 20);
    cr_assert_eq(longer[0], 4);
    cr_assert_eq(longer[(5 << 20) - 1], 4);
    cr_assert_geq(counted.used, sum + (1 << 20));
    resize(longer, 0);
    for (int i = 0; i < 4; i++) {
        resize(p[i], 0);
    }
    cr_assert_gt(pool.kept, 0);
    qn_mempool_fini(&pool);
    cr_assert_eq(counted.used, 0);
}

Test(pool, without_memory_below_it_gives_none_and_changes_nothing)
{
    qn_alloc_limit_init(&counted, &qn_alloc_malloc, 1 << 20);
    qn_mempool_init(&pool, SIZE_MAX, &counted.alloc);
    uint8_t *p = resize(NULL, 700000);
    memset(p, 7, 700000);
    cr_assert_null(resize(NULL, 700000));
    cr_assert_null(resize(p, 5 << 20));
    cr_assert_eq(p[699999], 7);
    resize(p, 0);
    qn_mempool_fini(&pool);
    cr_assert_eq(counted.used, 0);
}

Test(pool, what_is_kept_goes_where_there_is_no_memory)
{
    qn_alloc_limit_init(&counted, &qn_alloc_malloc, 1 << 20);
    qn_mempool_init(&pool, SIZE_MAX, &counted.alloc);
    resize(resize(NULL, 300000), 0);
    resize(resize(NULL, 500000), 0);
    cr_assert_gt(pool.kept, 800000);
    void *p = resize(NULL, 700000); /* of another size than those */
    cr_assert_not_null(p);
    cr_assert_eq(pool.kept, 0u, "either of them is too much");
    cr_assert(!qn_mempool_trim(&pool), "there is none");
    resize(p, 0);
    cr_assert(qn_mempool_trim(&pool));
    cr_assert_eq(counted.used, 0);
}

/* As a group asks: what no kept block can make good is counted, and no more is.
 */
Test(pool, what_had_no_memory_is_counted_where_it_is_asked_through_a_count)
{
    struct qn_alloc_unmet u;
    qn_alloc_limit_init(&counted, &qn_alloc_malloc, 1 << 20);
    qn_alloc_unmet_init(&u, &counted.alloc);
    qn_mempool_init(&pool, SIZE_MAX, &u.alloc);
    void *p = resize(NULL, 700000);
    cr_assert_not_null(p);
    cr_assert_eq(u.unmet, 0);
    cr_assert_null(resize(NULL, 700000));
    cr_assert_eq(u.unmet, 1);
    cr_assert_null(resize(p, 5 << 20), "grown in its place, and copied");
    cr_assert_geq(u.unmet, 2);
    resize(p, 0);
    qn_mempool_fini(&pool);
    cr_assert_eq(counted.used, 0);
}

Test(pool, over_a_count_of_mallocs_it_maps_as_over_malloc)
{
    struct qn_alloc_unmet u;
    qn_alloc_unmet_init(&u, &qn_alloc_malloc);
    qn_mempool_init(&pool, SIZE_MAX, &u.alloc);
    cr_assert_eq(pool.under, &qn_alloc_malloc);
    uint8_t *p = resize(NULL, 8 << 20);
    memset(p, 3, 8 << 20);
    p = resize(p, 9 << 20);
    cr_assert_eq(p[(8 << 20) - 1], 3);
    resize(p, 0);
    cr_assert_eq(u.unmet, 0);
    qn_mempool_fini(&pool);
}
