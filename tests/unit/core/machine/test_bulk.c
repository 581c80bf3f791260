/* Prices of bulk copies, by hand: four cores, of which 0 and 1 are on memory
 * node 0, 2 and 3 on node 1; each has a cache of its own. A line of the closest
 * core takes 8 ns (8 GB/s), of another node 16; a memory node has 16 GB/s, 4 ns
 * per line, a link 4 GB/s, 16 ns. Calls of calloc are wrapped, and may fail. */
#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "core/machine/bulk.h"
#include "tests/support/test.h"

#define PIECE   QN_BULK_PIECE
#define LINES   (PIECE / 64)
#define NS      UINT64_C(1000) /* ps */
#define CALLOCS 5              /* of qn_bulk_create */

static uint32_t succeed = UINT32_MAX; /* calls of calloc that still succeed */
static uint32_t fail;                 /* and that fail behind them */

void *__real_calloc(size_t n, size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);

void *__wrap_calloc(size_t n, size_t bytes)
{
    if (succeed == 0 && fail > 0) {
        fail--;
        return NULL;
    }
    succeed -= succeed > 0;
    return __real_calloc(n, bytes);
}

static struct qn_machine *machine(void)
{
    struct qn_machine *m = NULL;
    cr_assert_eq(qn_machine_create(&m, 4), QN_OK);
    for (uint32_t u = 0; u < 4; u++) {
        m->core[u].node = u / 2;
        m->core[u].cache = u;
        for (uint32_t v = 0; v < 4; v++) {
            m->send[u * 4 + v] = u == v ? 0 : 10;
            m->receive[u * 4 + v] = u == v ? 0 : u / 2 == v / 2 ? 100 : 200;
        }
    }
    m->facts.clock_ghz = 2;
    m->facts.bandwidth[QN_BANDWIDTH_COPY] = 8;
    m->facts.bandwidth[QN_BANDWIDTH_CACHE] = 32;
    m->facts.bandwidth[QN_BANDWIDTH_MEMORY] = 16;
    m->facts.bandwidth[QN_BANDWIDTH_LINK] = 4;
    m->facts.bandwidth[QN_BANDWIDTH_HOLDS] = 1;
    cr_assert_eq(qn_machine_check(m), QN_OK);
    return m;
}

static const uint32_t core[] = {0, 1, 2, 3};

static struct qn_bulk *bulk(void)
{
    struct qn_machine *m = machine();
    struct qn_bulk *b = NULL;
    cr_assert_eq(qn_bulk_create(&b, m, core, 4), QN_OK);
    qn_machine_destroy(m);
    return b;
}

/* Pages of a member: the first number names its memory. */
static struct qn_bulk_request copy(uint32_t by, uint32_t owner, uint64_t from,
                                   uint64_t to)
{
    return (struct qn_bulk_request){.by = by,
                                    .owner = owner,
                                    .taker = by,
                                    .from =
                                        ((uint64_t)owner << 32) + from * PIECE,
                                    .to = ((uint64_t)by << 32) + to * PIECE,
                                    .bytes = PIECE};
}

static uint64_t piece(struct qn_bulk *b, struct qn_bulk_request c)
{
    const uint64_t now = UINT64_C(1) << 40; /* what was before is over */
    qn_bulk_rest(b);
    return (qn_bulk_piece(b, &c, now) - now) / LINES;
}

Test(bulk, from_memory_a_piece_takes_what_the_slowest_part_needs)
{
    struct qn_bulk *b = bulk();
    /* Read 4, fetched and written back 8: 12 beside the core's 8. */
    cr_expect_eq(piece(b, copy(0, 1, 0, 9)), 12 * NS);
    /* Of the other node: 16 of the core, 16 of the link; its own node 8. */
    cr_expect_eq(piece(b, copy(0, 2, 0, 10)), 16 * NS);
    qn_bulk_destroy(b);
}

Test(bulk, from_and_to_the_own_cache_only_the_core_counts)
{
    struct qn_bulk *b = bulk();
    (void)piece(b, copy(0, 2, 0, 9));
    cr_expect_eq(piece(b, copy(0, 2, 0, 9)), 8 * NS);
    qn_bulk_destroy(b);
}

Test(bulk, what_a_core_has_written_comes_from_its_cache)
{
    struct qn_bulk *b = bulk();
    (void)piece(b, copy(1, 1, 0, 1));
    (void)piece(b, copy(0, 1, 5, 9));
    /* A cache gives a line in 2 ns, memory is not asked: the core's 8. */
    cr_expect_eq(piece(b, copy(0, 1, 1, 9)), 8 * NS);
    qn_bulk_destroy(b);
}

Test(bulk, a_write_takes_copies_from_other_caches)
{
    struct qn_bulk *b = bulk();
    (void)piece(b, copy(0, 2, 0, 9));
    cr_expect_eq(piece(b, copy(0, 2, 0, 9)), 8 * NS);
    (void)piece(b, copy(2, 2, 7, 0));
    cr_expect_eq(piece(b, copy(0, 2, 0, 9)), 16 * NS, "it is fetched again");
    qn_bulk_destroy(b);
}

Test(bulk, a_cache_holds_so_much_and_no_more)
{
    struct qn_bulk *b = bulk();
    const uint64_t pages = (1 << 20) / PIECE;
    (void)piece(b, copy(0, 2, 0, 9));
    for (uint64_t i = 1; i < pages - 2; i++) {
        (void)piece(b, copy(0, 2, i, 9)); /* into one page */
    }
    cr_expect_eq(piece(b, copy(0, 2, 0, 9)), 8 * NS);
    for (uint64_t i = 100; i < 100 + pages; i++) {
        (void)piece(b, copy(0, 2, i, 9));
    }
    cr_expect_eq(piece(b, copy(0, 2, 0, 9)), 16 * NS);
    qn_bulk_destroy(b);
}

Test(bulk, copies_at_once_share_a_memory_node_and_a_link)
{
    struct qn_bulk *b = bulk();
    const struct qn_bulk_request near[] = {copy(0, 0, 0, 9), copy(1, 0, 1, 9)};
    const struct qn_bulk_request far[] = {copy(2, 0, 2, 9), copy(3, 0, 3, 9)};
    const uint64_t one = LINES * NS;
    cr_expect_eq(qn_bulk_piece(b, &near[0], 0), 12 * one);
    cr_expect_eq(qn_bulk_piece(b, &near[1], 0), 24 * one);
    qn_bulk_reset(b);
    cr_expect_eq(qn_bulk_piece(b, &far[0], 0), 16 * one);
    cr_expect_eq(qn_bulk_piece(b, &far[1], 0), 32 * one);
    qn_bulk_destroy(b);
}

Test(bulk, a_push_writes_memory_of_the_other_node_over_its_link)
{
    struct qn_bulk *b = bulk();
    struct qn_bulk_request c = copy(0, 0, 0, 0);
    c.taker = 3;
    c.to = (UINT64_C(3) << 32);
    (void)piece(b, copy(0, 0, 0, 9)); /* its source is in the cache */
    cr_expect_eq(piece(b, c), 16 * NS);
    qn_bulk_destroy(b);
}

Test(bulk, without_bandwidths_they_follow_from_costs)
{
    struct qn_machine *m = machine();
    struct qn_bulk *b = NULL;
    memset(m->facts.bandwidth, 0, sizeof m->facts.bandwidth);
    cr_assert_eq(qn_bulk_create(&b, m, core, 4), QN_OK);
    /* A line: 100 cycles / 8 at 2 GHz, 6.25 ns. Memory serves two cores,
     * 3.125: it reads and writes three times. */
    cr_expect_eq(piece(b, copy(0, 1, 0, 9)), 9375);
    /* A link has half of memory's: 6.25, and a far line takes 12.5. */
    cr_expect_eq(piece(b, copy(0, 2, 0, 9)), 12500);
    qn_bulk_destroy(b);
    qn_machine_destroy(m);
}

Test(bulk, the_table_grows_and_forgets_nothing)
{
    struct qn_bulk *b = bulk();
    (void)piece(b, copy(1, 1, 0, 1));
    for (uint64_t i = 10; i < 5000; i++) {
        (void)piece(b, copy(3, 3, i, i));
    }
    cr_expect_eq(piece(b, copy(1, 1, 0, 1)), 8 * NS);
    qn_bulk_destroy(b);
}

/* Two entries for each page: 1024 pages fill half of the first table, and it
 * wants a larger one. */
Test(bulk, without_memory_for_more_it_forgets_what_lies_in_caches)
{
    struct qn_bulk *b = bulk();
    succeed = 0;
    fail = UINT32_MAX;
    (void)piece(b, copy(1, 1, 0, 1));
    for (uint64_t i = 2; i < 1023; i++) {
        (void)piece(b, copy(3, 3, i, i));
    }
    cr_expect_eq(piece(b, copy(1, 1, 0, 1)), 8 * NS, "it has room");
    (void)piece(b, copy(3, 3, 1023, 1023));
    cr_expect_eq(piece(b, copy(1, 1, 0, 1)), 12 * NS, "as if new");
    cr_expect_eq(piece(b, copy(1, 1, 0, 1)), 8 * NS, "it goes on");
    fail = 0;
    qn_bulk_destroy(b);
}

Test(bulk, without_memory_none_is_made)
{
    struct qn_machine *m = machine();
    struct qn_bulk *b = NULL;
    for (uint32_t k = 0; k < CALLOCS; k++) {
        succeed = k;
        fail = 1;
        cr_expect_eq(qn_bulk_create(&b, m, core, 4), QN_ENOMEM, "%u", k);
        cr_expect_null(b);
        cr_expect_eq(fail, 0, "fewer are made");
    }
    cr_expect_eq(qn_bulk_create(&b, m, core, 4), QN_OK);
    qn_bulk_destroy(b);
    qn_machine_destroy(m);
}

Test(bulk, no_member_a_core_that_there_is_not_and_no_costs_are_refused)
{
    struct qn_machine *m = machine(), *bare = NULL;
    struct qn_bulk *b = NULL;
    const uint32_t wrong[] = {0, 4};
    cr_expect_eq(qn_bulk_create(&b, m, core, 0), QN_EINVAL);
    cr_expect_eq(qn_bulk_create(&b, m, wrong, 2), QN_EINVAL);
    cr_assert_eq(qn_machine_create(&bare, 2), QN_OK);
    cr_expect_eq(qn_bulk_create(&b, bare, core, 2), QN_EINVAL);
    cr_expect_null(b);
    qn_bulk_destroy(NULL);
    qn_machine_destroy(bare);
    qn_machine_destroy(m);
}
