#ifndef QN_CORE_MACHINE_PARSE_ERROR_H
#define QN_CORE_MACHINE_PARSE_ERROR_H

/**
 * What is wrong with a file that a person has to mend: one line,
 * "FILE:LINE: FIELD: what is wrong and what to do".
 *
 * Readers fill it when they return an error; the caller prints it. Plain data,
 * any thread, no allocation.
 */

#include <stdint.h>

#define QN_PARSE_ERROR_BYTES 400u

struct qn_parse_error {
    char text[QN_PARSE_ERROR_BYTES]; /* one line without newline, NUL-terminated
                                      */
};

/**
 * Fill a fault.
 *
 * @param f     Filled; NULL: nothing happens.
 * @param file  Name as the user knows it.
 * @param line  From 1; 0: the file as a whole, no number is written.
 * @param field Name of the field, NULL: none.
 * @param fmt   printf's, what is wrong and what to do. What is not printable
 *              (core/base/text.h) comes out as '?', so that a damaged file
 *              cannot write to the terminal.
 * @return QN_EINVAL, so that a reader can return what this returns.
 */
int qn_parse_error_set(struct qn_parse_error *f, const char *file,
                       uint32_t line, const char *field, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

#endif
