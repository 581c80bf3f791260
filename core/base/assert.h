#ifndef QN_BASE_ASSERT_H
#define QN_BASE_ASSERT_H

/**
 * Assertions: for what only our own code can get wrong.
 *
 * QN_ASSERT stays on in release builds. QN_DASSERT is for per-element checks
 * on hot paths: checked in debug builds, elsewhere only compiled, so that it
 * cannot rot. A failure prints one line, or tells a hook, and aborts. What a
 * user, a file or a peer can send is never asserted; it is checked and returned
 * as an error.
 */

#include <stdbool.h>

/** Told of a failure before the process is aborted; `line` is borrowed. */
typedef void qn_assert_fn(void *ctx, const char *line);

struct qn_assert_hook {
    qn_assert_fn *fn; /* NULL: the line is printed */
    void *ctx;
};

/** From here on failures of the calling thread are told to `h` and not printed.
 *  @return the hook that it had. */
struct qn_assert_hook qn_assert_hook_set(struct qn_assert_hook h);

/** Print `file:line: function: expr` to stderr, or tell the hook, and abort.
 *  Cold: what leads to it lies apart from the code that runs. */
__attribute__((cold)) _Noreturn void qn_assert_fail(const char *expr,
                                                    const char *file, int line,
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
