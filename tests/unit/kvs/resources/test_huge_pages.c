/* When quoind asks for huge huge_pages, and what it says to the C library. */
#include "kvs/resources/huge_pages.h"

#include <string.h>

#include "tests/support/test.h"

#define BY_REQUEST "always [madvise] never\n"

Test(huge_pages, are_asked_for_where_they_come_by_request)
{
    char value[64];
    cr_assert(qn_huge_pages_wanted(BY_REQUEST, NULL, value, sizeof value));
    cr_assert_str_eq(value, "glibc.malloc.hugetlb=1");
}

Test(huge_pages, are_not_asked_for_where_all_have_them_or_nobody)
{
    char value[64];
    cr_assert_not(qn_huge_pages_wanted("[always] madvise never\n", NULL, value,
                                       sizeof value));
    cr_assert_not(qn_huge_pages_wanted("always madvise [never]\n", NULL, value,
                                       sizeof value));
    cr_assert_not(qn_huge_pages_wanted("", NULL, value, sizeof value));
}

Test(huge_pages, other_tunables_stay)
{
    char value[64];
    cr_assert(qn_huge_pages_wanted(BY_REQUEST, "glibc.malloc.perturb=1", value,
                                   sizeof value));
    cr_assert_str_eq(value, "glibc.malloc.perturb=1:glibc.malloc.hugetlb=1");
}

Test(huge_pages, who_has_decided_is_not_asked_again)
{
    char value[64];
    cr_assert_not(qn_huge_pages_wanted(BY_REQUEST, "glibc.malloc.hugetlb=0",
                                       value, sizeof value));
    cr_assert_not(qn_huge_pages_wanted(BY_REQUEST,
                                       "glibc.malloc.perturb=1:"
                                       "glibc.malloc.hugetlb=1",
                                       value, sizeof value));
}

Test(huge_pages, too_long_an_environment_is_left_alone)
{
    char value[16];
    cr_assert_not(qn_huge_pages_wanted(BY_REQUEST, NULL, value, sizeof value));
}
