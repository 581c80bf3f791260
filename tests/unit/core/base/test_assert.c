/* What is done when an assertion fails. */
#include "core/base/assert.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/test.h"

static void end_if_said(void *ctx, const char *line)
{
    const char *said = ctx;
    _exit(strstr(line, said) != NULL && strchr(line, '\n') == NULL ? 7 : 8);
}

static void fail_again(void *ctx, const char *line)
{
    (void)ctx;
    (void)line;
    QN_ASSERT(2 + 2 == 5); /* printed: the hook is not called again */
}

static void forget(void *ctx, const char *line)
{
    (void)line;
    *(int *)ctx += 1;
}

Test(assertion, a_hook_is_told, .exit_code = 7)
{
    static char said[] = ": assertion failed: 1 + 1 == 3";
    const struct qn_assert_hook none =
        qn_assert_hook_set((struct qn_assert_hook){end_if_said, said});
    cr_assert_null(none.fn);
    QN_ASSERT(1 + 1 == 3);
}

Test(assertion, without_a_hook_the_process_is_aborted, .signal = SIGABRT)
{
    int told = 0;
    const struct qn_assert_hook first = {forget, &told};
    (void)qn_assert_hook_set(first);
    const struct qn_assert_hook was =
        qn_assert_hook_set((struct qn_assert_hook){0});
    cr_assert_eq(was.fn, forget);
    cr_assert_eq(was.ctx, &told);
    QN_ASSERT(told == 1);
}

Test(assertion, a_hook_does_not_save_the_process, .signal = SIGABRT)
{
    int told = 0;
    (void)qn_assert_hook_set((struct qn_assert_hook){forget, &told});
    QN_ASSERT(told == 1);
}

Test(assertion, a_hook_that_fails_is_not_told, .signal = SIGABRT)
{
    (void)qn_assert_hook_set((struct qn_assert_hook){fail_again, NULL});
    QN_ASSERT(1 + 1 == 3);
}
