/* Store buffers and stride prefetchers of coherent machines, alone. */
#include "core/base/err.h"
#include "core/sim/timed/prefetch.h"
#include "core/sim/timed/store_buffer.h"
#include "tests/support/test.h"

Test(store_buffer, a_store_waits_for_the_oldest_when_it_is_full)
{
    struct qn_store_buffer b;
    cr_assert_eq(qn_store_buffer_init(&b, 2, 2), QN_OK);
    qn_store_buffer_put(&b, 1, 100);
    qn_store_buffer_put(&b, 1, 250);
    cr_assert_eq(qn_store_buffer_enter(&b, 1, 50), 100);
    cr_assert_eq(qn_store_buffer_enter(&b, 1, 120), 120);
    cr_assert_eq(qn_store_buffer_enter(&b, 0, 50), 50, "that of another node");
    qn_store_buffer_put(&b, 1, 300);
    cr_assert_eq(qn_store_buffer_enter(&b, 1, 120), 250);
    qn_store_buffer_fini(&b);
}

Test(store_buffer, it_is_drained_when_the_newest_is_visible)
{
    struct qn_store_buffer b;
    cr_assert_eq(qn_store_buffer_init(&b, 1, QN_STORE_BUFFER_MAX), QN_OK);
    cr_assert_eq(qn_store_buffer_drained(&b, 0, 7), 7);
    qn_store_buffer_put(&b, 0, 100);
    cr_assert_eq(qn_store_buffer_drained(&b, 0, 7), 100);
    cr_assert_eq(qn_store_buffer_drained(&b, 0, 101), 101);
    qn_store_buffer_extend(&b, 0, 140);
    cr_assert_eq(qn_store_buffer_drained(&b, 0, 7), 140);
    qn_store_buffer_clear(&b, 1);
    cr_assert_eq(qn_store_buffer_drained(&b, 0, 7), 7);
    qn_store_buffer_fini(&b);
}

Test(store_buffer, without_entries_no_store_is_waited_for)
{
    struct qn_store_buffer b;
    cr_assert_eq(qn_store_buffer_init(&b, 4, 0), QN_OK);
    cr_assert_eq(qn_store_buffer_drained(&b, 3, 7), 7);
    qn_store_buffer_clear(&b, 4);
    qn_store_buffer_fini(&b);
}

static uintptr_t asked(const uintptr_t *misses, uint32_t n)
{
    struct qn_prefetch f = {0};
    for (uint32_t i = 0; i < n; i++) {
        f.lines = 0;
        f.line[0] = (struct qn_prefetch_line){0};
        qn_prefetch_miss(&f, 1, misses[i], (qn_ps_t)(100 * i));
    }
    return f.lines != 0 ? f.line[0].base : 0;
}

Test(prefetch, two_equal_strides_are_a_stream)
{
    cr_assert_eq(asked((uintptr_t[]){1000, 1001}, 2), 0);
    cr_assert_eq(asked((uintptr_t[]){1000, 1001, 1002}, 3), 1003);
    cr_assert_eq(asked((uintptr_t[]){1000, 1001, 1003}, 3), 0);
    cr_assert_eq(asked((uintptr_t[]){1000, 1001, 1002, 1003}, 4), 1004);
    cr_assert_eq(asked((uintptr_t[]){1000, 998, 996}, 3), 994);
}

Test(prefetch, a_stride_is_at_most_half_of_a_page)
{
    cr_assert_eq(asked((uintptr_t[]){1000, 1032, 1064}, 3), 1096);
    cr_assert_eq(asked((uintptr_t[]){1000, 1033, 1066}, 3), 0);
    cr_assert_eq(asked((uintptr_t[]){1000, 967, 934}, 3), 0);
    cr_assert_eq(asked((uintptr_t[]){1000, 1000, 1000}, 3), 0);
}

static bool is_asked(struct qn_prefetch *f, uintptr_t line)
{
    return qn_prefetch_find(f, line, QN_PREFETCH_ASKED) != NULL;
}

Test(prefetch, a_stream_asks_for_several_lines_and_for_each_once)
{
    struct qn_prefetch f = {0};
    for (uintptr_t line = 1000; line < 1004; line++) {
        qn_prefetch_miss(&f, 3, line, 100);
    }
    cr_assert_eq(f.lines, 3, "as many as it may ask for");
    cr_assert(is_asked(&f, 1004) && is_asked(&f, 1005) && is_asked(&f, 1006));
    qn_prefetch_drop(&f, qn_prefetch_find(&f, 1005, QN_PREFETCH_ASKED));
    cr_assert_not(is_asked(&f, 1005));
    cr_assert_eq(f.lines, 2);
}

Test(prefetch, a_stream_whose_lines_are_stored_to_asks_for_lines_to_write)
{
    struct qn_prefetch f = {0};
    qn_prefetch_miss(&f, 1, 1000, 0);
    qn_prefetch_stored(&f, 999);
    qn_prefetch_miss(&f, 1, 1001, 0);
    cr_assert_not(f.writes, "another line was stored to");
    qn_prefetch_stored(&f, 1001);
    qn_prefetch_miss(&f, 1, 1002, 0);
    cr_assert(f.writes);
    qn_prefetch_miss(&f, 1, 1003, 0);
    cr_assert_not(f.writes);
}
