#include "kvs/frontend/intake.h"

#include <string.h>

#include "core/base/atomic.h"
#include "core/base/bits.h"
#include "tests/support/test.h"

enum { MANY = 1000 };

/* Read `n` bytes, at most what is offered, all of them `deferred_read`. */
static struct qn_intake_chunk *read_some(struct qn_intake *i, size_t n,
                                         uint8_t deferred_read, uint8_t **at)
{
    size_t room = 0;
    *at = qn_intake_room(i, &room);
    cr_assert_not_null(*at);
    cr_assert_geq(room, (size_t)QN_INTAKE_LEAST);
    memset(*at, deferred_read, n);
    return qn_intake_take(i, n);
}

Test(intake, reads_lie_one_behind_the_other)
{
    struct qn_intake i = {0};
    struct qn_intake_chunk *chunk[3];
    uint8_t *at[3];
    for (uint8_t k = 0; k < 3; k++) {
        chunk[k] = read_some(&i, 100, k, &at[k]);
    }
    for (uint8_t k = 0; k < 3; k++) {
        cr_assert_eq((uintptr_t)at[k] % 16, 0U);
        cr_assert_eq(at[k][0], k);
        cr_assert_eq(at[k][99], k);
        cr_assert_eq(at[k] - at[0], k * 2 * QN_CACHELINE);
        qn_intake_give(&i, chunk[k]);
    }
    qn_intake_fini(&i);
}

Test(intake, room_that_was_not_taken_is_offered_again)
{
    struct qn_intake i = {0};
    size_t n = 0;
    const uint8_t *first = qn_intake_room(&i, &n);
    cr_assert_eq(qn_intake_room(&i, &n), first);
    qn_intake_fini(&i);
}

Test(intake, chunk_that_nobody_uses_is_used_again)
{
    struct qn_intake i = {0};
    uint8_t *first = NULL, *at = NULL;
    qn_intake_give(&i, read_some(&i, 5000, 1, &first));
    for (int k = 0; k < MANY; k++) {
        qn_intake_give(&i, read_some(&i, 5000, 1, &at));
        cr_assert_eq(at, first);
    }
    cr_assert_eq(i.spares, 0U);
    qn_intake_fini(&i);
}

/* A connection that is not run for long keeps its bytes, and its chunk only. */
Test(intake, bytes_stay_until_they_are_given_back)
{
    struct qn_intake i = {0};
    uint8_t *kept = NULL, *at = NULL;
    struct qn_intake_chunk *chunk = read_some(&i, 3000, 0xaa, &kept);
    for (int k = 0; k < MANY; k++) {
        struct qn_intake_chunk *c = read_some(&i, QN_INTAKE_LEAST, 0x55, &at);
        qn_intake_give(&i, c);
    }
    for (size_t k = 0; k < 3000; k++) {
        cr_assert_eq(kept[k], 0xaa);
    }
    qn_intake_give(&i, chunk);
    cr_assert_leq(i.spares, 2U);
    qn_intake_fini(&i);
}

Test(intake, few_free_chunks_are_kept)
{
    static struct qn_intake_chunk *chunk[MANY];
    struct qn_intake i = {0};
    uint8_t *at = NULL;
    for (int k = 0; k < MANY; k++) {
        chunk[k] = read_some(&i, QN_INTAKE_LEAST, 1, &at);
    }
    for (int k = 0; k < MANY; k++) {
        qn_intake_give(&i, chunk[k]);
    }
    cr_assert_eq(i.spares, QN_INTAKE_SPARES);
    qn_intake_fini(&i);
}
