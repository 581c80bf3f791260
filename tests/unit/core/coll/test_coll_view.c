#include "core/base/err.h"
#include "core/coll/coll_view.h"
#include "tests/support/test.h"

Test(coll_view, the_member_that_has_most_sends_again_what_another_lacks)
{
    const struct qn_view_report report[] = {{.member = 70, .delivered = 12},
                                            {.member = 3, .delivered = 15},
                                            {.member = 9, .delivered = 15},
                                            {.member = 1, .delivered = 14}};
    struct qn_view v;
    cr_assert_eq(qn_view_decide(&v, 8, report, 4), QN_OK);
    cr_assert_eq(v.number, 8);
    cr_assert_eq(v.root, 3, "the first of two");
    cr_assert_eq(v.before, 12);
    cr_assert_eq(v.done, 15);
    cr_assert(qn_view_has(&v, 70) && qn_view_has(&v, 1));
    cr_assert(!qn_view_has(&v, 2) && !qn_view_has(&v, QN_NO_MEMBER));
}

Test(coll_view, numbers_may_wrap)
{
    const struct qn_view_report report[] = {
        {.member = 0, .delivered = UINT32_MAX, .released = UINT32_MAX - 3},
        {.member = 1, .delivered = 2, .released = UINT32_MAX}};
    struct qn_view v;
    cr_assert_eq(qn_view_decide(&v, 1, report, 2), QN_OK);
    cr_assert_eq(v.root, 1);
    cr_assert_eq(v.before, UINT32_MAX);
    cr_assert_eq(v.done, 2);
}

Test(coll_view, reports_that_cannot_be_are_refused)
{
    struct qn_view_report report[] = {
        {.member = 0, .delivered = 3, .released = 0},
        {.member = 1, .delivered = 9, .released = 4}};
    struct qn_view v = {.number = 77};
    cr_assert_eq(qn_view_decide(&v, 1, report, 0), QN_EINVAL);
    cr_assert_eq(qn_view_decide(&v, 1, report, 2), QN_ECORRUPT,
                 "4 was released, and one lacks it");
    report[1].member = QN_MEMBERS_MAX;
    cr_assert_eq(qn_view_decide(&v, 1, report, 2), QN_EINVAL);
    cr_assert_eq(v.number, 77, "untouched");
}
