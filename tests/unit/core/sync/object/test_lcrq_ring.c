/* One ring of LCRQ: what closes it, unsafe cells, and indices that run out. */
#include <string.h>

#include "core/sync/object/lcrq_ring_internal.h"
#include "tests/support/test.h"

#define CELLS 4u

static struct lcrq_ring ring;
static struct lcrq_cell cell[CELLS];
static struct qn_delegate_stats stats;

static struct lcrq_at fresh(void)
{
    memset(&ring, 0, sizeof ring);
    memset(cell, 0, sizeof cell);
    return (struct lcrq_at){
        .ring = &ring, .cell = cell, .cells = CELLS, .stats = &stats};
}

static bool closed(void)
{
    return (qn_load(&ring.tail, QN_SEQ_CST) & LCRQ_CLOSED) != 0;
}

Test(lcrq_ring, is_closed_when_it_is_full)
{
    for (int narrow = 0; narrow < 2; narrow++) {
        struct lcrq_at at = fresh();
        for (uint64_t i = 1; i <= CELLS; i++) {
            cr_assert(lcrq_ring_put(&at, i, narrow));
        }
        cr_assert(!closed());
        cr_assert(!lcrq_ring_put(&at, 9, narrow));
        cr_assert(closed());
        cr_assert(!lcrq_ring_put(&at, 9, narrow));
        for (uint64_t i = 1; i <= CELLS; i++) {
            cr_assert_eq(lcrq_ring_take(&at, narrow), i);
        }
        cr_assert_eq(lcrq_ring_take(&at, narrow), 0);
        cr_assert(lcrq_ring_empty(&at));
        cr_assert(!lcrq_ring_put(&at, 9, narrow), "closed for ever");
    }
}

Test(lcrq_ring, the_tail_follows_dequeues_that_found_nothing)
{
    struct lcrq_at at = fresh();
    for (uint64_t i = 1; i <= 100; i++) {
        cr_assert_eq(lcrq_ring_take(&at, false), 0);
        cr_assert(lcrq_ring_empty(&at));
        cr_assert(lcrq_ring_put(&at, i, false));
        cr_assert(!lcrq_ring_empty(&at));
        cr_assert_eq(lcrq_ring_take(&at, false), i);
    }
    cr_assert(!closed());
}

/* The dequeue of index 0 stalls behind its fetch_add; that of index 4 meets the
 * value of 0 in their cell. */
Test(lcrq_ring, a_cell_with_an_earlier_value_becomes_unsafe)
{
    for (int narrow = 0; narrow < 2; narrow++) {
        struct lcrq_at at = fresh();
        cr_assert(lcrq_ring_put(&at, 7, narrow));
        (void)qn_fetch_add(&ring.head, 1, QN_SEQ_CST);
        cr_assert_eq(lcrq_take_at(&at, CELLS, narrow), 0);
        struct lcrq_content now = lcrq_cell_load(&cell[0], narrow);
        cr_assert_eq(now.turn, LCRQ_UNSAFE);
        cr_assert_eq(now.value, 7);
        cr_assert_eq(lcrq_take_at(&at, 0, narrow), 7, "its own dequeue");
        now = lcrq_cell_load(&cell[0], narrow);
        cr_assert_eq(now.turn, LCRQ_UNSAFE | CELLS);
        /* The dequeue of index 4 is over: its enqueue may not use the cell. */
        qn_store(&ring.head, CELLS + 1, QN_SEQ_CST);
        cr_assert(!lcrq_put_at(&at, CELLS, 8, narrow));
        /* That of index 8 has not begun. */
        cr_assert(lcrq_put_at(&at, 2 * CELLS, 9, narrow));
        now = lcrq_cell_load(&cell[0], narrow);
        cr_assert_eq(now.turn, 2 * CELLS, "safe again");
    }
}

Test(lcrq_ring, tries_that_all_fail_close_it)
{
    struct lcrq_at at = fresh();
    for (uint32_t i = 0; i < CELLS; i++) {
        qn_store(&cell[i].pair.first, 1000, QN_SEQ_CST); /* later ones */
    }
    qn_store(&ring.head, 100, QN_SEQ_CST);
    qn_store(&ring.tail, 100, QN_SEQ_CST);
    cr_assert(!lcrq_ring_put(&at, 1, false));
    cr_assert(closed());
}

/* Put 2, 3, ... behind 1, and take all but `lag` of them; then close it. */
static void use_ring(const struct lcrq_at *at, uint64_t lag, bool narrow)
{
    uint64_t taken = 0;
    lcrq_ring_begin(at, 1, narrow);
    for (uint64_t i = 2; i <= 20; i++) {
        cr_assert(lcrq_ring_put(at, i, narrow));
        if (i - taken > lag) {
            cr_assert_eq(lcrq_ring_take(at, narrow), ++taken);
        }
    }
    (void)qn_fetch_or(&ring.tail, LCRQ_CLOSED, QN_SEQ_CST);
    while (taken < 20) {
        cr_assert_eq(lcrq_ring_take(at, narrow), ++taken);
    }
    cr_assert_eq(lcrq_ring_take(at, narrow), 0);
}

Test(lcrq_ring, the_next_use_runs_on_behind_all_indices)
{
    for (int narrow = 0; narrow < 2; narrow++) {
        struct lcrq_at at = fresh();
        for (uint64_t use = 0; use < 50; use++) {
            use_ring(&at, use % CELLS, narrow);
        }
    }
}

Test(lcrq_ring, narrow_indices_end_and_begin_again)
{
    struct lcrq_at at = fresh();
    qn_store(&ring.head, LCRQ_NARROW_LIMIT - 2, QN_SEQ_CST);
    qn_store(&ring.tail, LCRQ_NARROW_LIMIT - 2, QN_SEQ_CST);
    cr_assert(lcrq_ring_put(&at, 1, true));
    cr_assert(lcrq_ring_put(&at, UINT32_MAX, true));
    cr_assert(!lcrq_ring_put(&at, 3, true));
    cr_assert(closed());
    cr_assert_eq(lcrq_ring_take(&at, true), 1);
    cr_assert_eq(lcrq_ring_take(&at, true), UINT32_MAX);
    cr_assert_eq(lcrq_ring_take(&at, true), 0);
    lcrq_ring_begin(&at, 4, true);
    cr_assert_eq(qn_load(&ring.head, QN_SEQ_CST), 0);
    for (uint64_t i = 5; i < 4 + CELLS; i++) {
        cr_assert(lcrq_ring_put(&at, i, true));
    }
    for (uint64_t i = 4; i < 4 + CELLS; i++) {
        cr_assert_eq(lcrq_ring_take(&at, true), i);
    }
}
