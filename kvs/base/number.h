#ifndef QN_KVS_BASE_NUMBER_H
#define QN_KVS_BASE_NUMBER_H

/** Numbers as Redis reads and writes them in keys' values and arguments. Pure,
 *  any thread. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/bits.h"

#define QN_NUMBER_CHARS       20u   /* longest int64: sign and 19 digits */
#define QN_NUMBER_FLOAT_CHARS 5120u /* longest long double with 17 decimals */

/** Parse the canonical form of an int64_t: no `+`, no leading zero, no `-0`,
 *  no blank. @return false: the text has another form; *out is untouched.
 *  Wait-free, O(length). */
bool qn_number_parse(struct qn_slice text, int64_t *out);

/** Write v to `to`, at least QN_NUMBER_CHARS bytes. @return bytes written, no
 *  NUL. */
size_t qn_number_format(char *to, int64_t v);

/** Parse what strtold accepts, if it spans the whole text and has no blank in
 *  front: decimal, hex, inf; not nan, and nothing that over- or underflows.
 *  Depends on the C locale. @return false: not such a number; *out is
 *  untouched. */
bool qn_number_parse_float(struct qn_slice text, long double *out);

/** Write a finite v to `to`, at least QN_NUMBER_FLOAT_CHARS bytes: fixed point
 *  with 17 decimals, trailing zeros and dot cut, never `-0`. @return bytes
 *  written, no NUL. */
size_t qn_number_format_float(char *to, long double v);

#endif
