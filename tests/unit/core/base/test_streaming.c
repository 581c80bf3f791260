/* Stores past the caches, natively: the word, the whole word, and only it. */
#include "core/base/atomic.h"
#include "tests/support/test.h"

Test(streaming, stores_one_word_which_a_fence_makes_visible)
{
    alignas(QN_CACHELINE) static qn_a64 line[QN_CACHELINE / sizeof(qn_a64)];
    for (uint64_t i = 0; i < 8; i++) {
        qn_store_streaming(&line[i], UINT64_MAX - i);
        qn_fence(QN_SEQ_CST);
        for (uint64_t k = 0; k < 8; k++) {
            cr_assert_eq(qn_load(&line[k], QN_RELAXED),
                         k <= i ? UINT64_MAX - k : 0);
        }
    }
}
