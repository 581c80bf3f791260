#ifndef QN_BASE_LOG_H
#define QN_BASE_LOG_H

/**
 * Log lines to a callback.
 *
 * A library never prints: it hands a finished line to the program's
 * callback. Without a callback lines are dropped. The callback is set once,
 * before other threads exist, and must itself be callable from any thread.
 */

#include <stdarg.h>

enum qn_log_level {
    QN_LOG_DEBUG,
    QN_LOG_INFO,
    QN_LOG_WARN,
    QN_LOG_ERROR,
};

typedef void qn_log_fn(void *ctx, enum qn_log_level level, const char *line);

/** Set the callback (NULL: none) and the lowest level it wants. */
void qn_log_set(qn_log_fn *fn, void *ctx, enum qn_log_level lowest);

/** One line, printf style, no newline; cut at 1023 bytes. */
__attribute__((cold)) void qn_log(enum qn_log_level level, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/** Where the lines of one object go: to a callback of its own, each of them;
 * or, without one (all zero), where those of the process go. `fn` is called in
 * the object's thread, from inside its calls. */
struct qn_log_sink {
    qn_log_fn *fn;
    void *ctx;
};

__attribute__((cold)) void qn_log_to(const struct qn_log_sink *to,
                                     enum qn_log_level level, const char *fmt,
                                     ...) __attribute__((format(printf, 3, 4)));

#endif
