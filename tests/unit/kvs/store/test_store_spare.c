#include "kvs/store/store_spare.h"

#include <stdlib.h>

#include "tests/support/test.h"

enum { BLOCK = 1040, FEW = 8 };

static const uint64_t SHARES = BLOCK + 16 * QN_SPARE_SIZES; /* BLOCK's list */

/* Blocks of `bytes`, kept in order. */
static void keep(struct qn_spares *s, void *block[FEW], uint64_t bytes)
{
    for (int i = 0; i < FEW; i++) {
        block[i] = malloc(bytes);
        cr_assert_not_null(block[i]);
        cr_assert(qn_spares_keep(s, block[i], bytes), "block %d", i);
    }
}

static void free_all(struct qn_spares *s)
{
    for (void *b; (b = qn_spares_any(s)) != NULL;) {
        free(b);
    }
    cr_assert_eq(s->kept, 0U);
}

/* One round of calls over all lists. @return blocks that were given up. */
static int look_around(struct qn_spares *s)
{
    int given = 0;
    for (uint32_t i = 0; i < QN_SPARE_SIZES; i++) {
        for (void *b; (b = qn_spares_old(s)) != NULL; given++) {
            free(b);
        }
    }
    return given;
}

Test(store_spare, takes_what_was_kept_last_of_that_size)
{
    struct qn_spares s = {.max = 1 << 20};
    void *block[FEW];
    keep(&s, block, BLOCK);
    cr_assert_null(qn_spares_take(&s, BLOCK + 16));
    cr_assert_null(qn_spares_take(&s, SHARES));
    for (int i = FEW - 1; i >= 0; i--) {
        cr_assert_eq(qn_spares_take(&s, BLOCK), block[i]);
        free(block[i]);
    }
    cr_assert_null(qn_spares_take(&s, BLOCK));
    cr_assert_eq(s.kept, 0U);
}

Test(store_spare, sizes_of_one_list_are_not_mixed)
{
    struct qn_spares s = {.max = 1 << 20};
    void *block[FEW];
    void *other = malloc(SHARES);
    keep(&s, block, BLOCK);
    cr_assert_not(qn_spares_keep(&s, other, SHARES));
    free_all(&s);
    cr_assert(qn_spares_keep(&s, other, SHARES));
    cr_assert_null(qn_spares_take(&s, BLOCK));
    cr_assert_eq(qn_spares_take(&s, SHARES), other);
    free(other);
}

Test(store_spare, bytes_are_bounded)
{
    struct qn_spares s = {.max = FEW * BLOCK};
    void *block[FEW];
    void *more = malloc(BLOCK + 16);
    keep(&s, block, BLOCK);
    cr_assert_not(qn_spares_keep(&s, more, BLOCK));
    cr_assert_not(qn_spares_keep(&s, more, BLOCK + 16));
    cr_assert_eq(s.kept, s.max);
    free_all(&s);
    s.max = 0;
    cr_assert_not(qn_spares_keep(&s, more, BLOCK));
    free(more);
}

Test(store_spare, what_nobody_takes_is_given_up)
{
    struct qn_spares s = {.max = 1 << 20};
    void *block[FEW], *wanted[FEW];
    keep(&s, block, BLOCK);
    keep(&s, wanted, BLOCK + 16);
    void *b = qn_spares_take(&s, BLOCK + 16);
    cr_assert_eq(look_around(&s), FEW);
    cr_assert(qn_spares_keep(&s, b, BLOCK + 16));
    cr_assert_eq(look_around(&s), FEW);
    cr_assert_eq(s.kept, 0U);
    keep(&s, block, SHARES);
    free_all(&s);
}
