#include "core/base/assert.h"

#include <stdio.h>
#include <stdlib.h>

static _Thread_local struct qn_assert_hook hook;

struct qn_assert_hook qn_assert_hook_set(struct qn_assert_hook h)
{
    const struct qn_assert_hook former = hook;
    hook = h;
    return former;
}

_Noreturn void qn_assert_fail(const char *expr, const char *file, int line,
                              const char *func)
{
    const struct qn_assert_hook h = hook;
    if (h.fn != NULL) {
        char text[512];
        snprintf(text, sizeof text, "%s:%d: %s: assertion failed: %s", file,
                 line, func, expr);
        hook.fn = NULL; /* what fails in it is printed */
        h.fn(h.ctx, text);
    } else {
        fprintf(stderr, "%s:%d: %s: assertion failed: %s\n", file, line, func,
                expr);
    }
    abort();
}
