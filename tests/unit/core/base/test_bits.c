#include "core/base/bits.h"
#include "tests/support/test.h"

Test(bits, powers_of_two_are_recognised)
{
    cr_assert(!qn_is_pow2(0));
    for (int i = 0; i < 64; i++) {
        uint64_t p = (uint64_t)1 << i;
        cr_assert(qn_is_pow2(p), "2^%d", i);
        cr_assert(i < 2 || !qn_is_pow2(p + 1), "2^%d + 1", i);
        cr_assert(i < 2 || !qn_is_pow2(p - 1), "2^%d - 1", i);
    }
}

Test(bits, align_up_reaches_the_next_multiple_and_keeps_multiples)
{
    cr_assert_eq(qn_align_up(0, 64), 0);
    cr_assert_eq(qn_align_up(1, 64), 64);
    cr_assert_eq(qn_align_up(64, 64), 64);
    cr_assert_eq(qn_align_up(65, 64), 128);
}

struct outer {
    int first;
    char member;
};

Test(bits, container_of_finds_the_start)
{
    struct outer o = {0};
    cr_assert_eq(QN_CONTAINER_OF(&o.member, struct outer, member), &o);
}
