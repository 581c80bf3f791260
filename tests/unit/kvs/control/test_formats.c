/* Which groups a build can join. */
#include "kvs/control/formats.h"

#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "tests/support/test.h"

static char why[256];

/* A build that can write two versions of one format, and knows another one that
 * older builds did not. */
static const struct qn_format_range later[] = {
    {"hand-over", 2, 2}, {"outbox", 3, 4}, {"notes", 0, 1}};

static int fit(const uint32_t *spoken, uint32_t count)
{
    why[0] = '\0';
    return qn_formats_fit_ranges(later, QN_ARRAY_COUNT(later), spoken, count,
                                 why, sizeof why);
}

Test(formats, what_lies_in_all_ranges_fits)
{
    const uint32_t older[] = {2, 3};
    const uint32_t newest[] = {2, 4, 1};
    cr_assert_eq(fit(older, 2), QN_OK, "%s", why);
    cr_assert_eq(fit(newest, 3), QN_OK, "%s", why);
    cr_assert_str_eq(why, "");
}

Test(formats, what_lies_outside_of_one_is_refused_and_named)
{
    const uint32_t too_old[] = {2, 2};
    const uint32_t too_new[] = {2, 5};
    cr_assert_eq(fit(too_old, 2), QN_EINVAL);
    cr_assert(
        strstr(why,
               "version 2 of the outbox format, this quoind speaks 3 to 4"),
        "%s", why);
    cr_assert_eq(fit(too_new, 2), QN_EINVAL);
    cr_assert(strstr(why, "version 5 of the outbox"), "%s", why);
    cr_assert(strchr(why, '\n') == NULL);
}

Test(formats, one_that_the_group_does_not_name_is_version_0)
{
    const uint32_t spoken[] = {2};
    cr_assert_eq(fit(spoken, 1), QN_EINVAL);
    cr_assert(strstr(why, "version 0 of the outbox"), "%s", why);
}

Test(formats, one_that_is_unknown_here_is_refused)
{
    const uint32_t spoken[] = {2, 3, 1, 7};
    cr_assert_eq(fit(spoken, 4), QN_EINVAL);
    cr_assert(strstr(why, "version 7 of the unknown format"), "%s", why);
}

Test(formats, a_build_can_join_its_own)
{
    uint32_t spoken[QN_FORMATS];
    for (uint32_t i = 0; i < QN_FORMATS; i++) {
        const struct qn_format_range *r = qn_format_at(i);
        cr_assert(r->oldest <= r->newest && r->newest > 0, "%s", r->name);
        spoken[i] = r->newest;
    }
    cr_assert_null(qn_format_at(QN_FORMATS));
    cr_assert_eq(qn_formats_fit(spoken, QN_FORMATS, why, sizeof why), QN_OK);
}
