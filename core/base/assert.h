#ifndef QN_BASE_ASSERT_H
#define QN_BASE_ASSERT_H

/**
 * Assertions: for what only our own code can get wrong.
 *
 * QN_ASSERT stays on in release builds. QN_DASSERT is for per-element checks
 * on hot paths: checked in debug builds, elsewhere only compiled, so that it
 * cannot rot. A failure prints one line and aborts. What a user, a file or a
 * peer can send is never asserted; it is checked and returned as an error.
 */

#include <stdbool.h>

/** Print `file:line: function: expr` to stderr and abort. */
_Noreturn void qn_assert_fail(const char *expr, const char *file, int line,
                              const char *func);

#define QN_ASSERT(expr)                                                        \
    (__builtin_expect(!!(expr), 1)                                             \
         ? (void)0                                                             \
         : qn_assert_fail(#expr, __FILE__, __LINE__, __func__))

#ifdef QN_DEBUG
#define QN_DASSERT(expr) QN_ASSERT(expr)
#else
#define QN_DASSERT(expr) ((void)sizeof((expr) ? 1 : 0))
#endif

#endif
