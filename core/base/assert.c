#include "core/base/assert.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void qn_assert_fail(const char *expr, const char *file, int line,
                              const char *func)
{
    fprintf(stderr, "%s:%d: %s: assertion failed: %s\n", file, line, func,
            expr);
    abort();
}
