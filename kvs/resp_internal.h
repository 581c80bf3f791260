#ifndef QN_KVS_RESP_INTERNAL_H
#define QN_KVS_RESP_INTERNAL_H

/** What the RESP reader reads in lines: inline requests, numbers. Pure. */

#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"

/**
 * Take the next argument off a line, without its quotes and escapes.
 *
 * @param at   In: where to look. Filled: the first byte not used.
 * @param end  End of the line, its CR and LF not included.
 * @param to   Filled: the argument; never longer than what was used of the
 *             line.
 * @param len  Filled: its length in bytes.
 * @return 1; 0 if there is no further argument; QN_EINVAL if quotes do not
 *         balance.
 */
int qn_resp_line_next(const uint8_t **at, const uint8_t *end, uint8_t *to,
                      size_t *len);

/** A decimal number of int64_t, as strict as Redis: no sign +, no leading
 *  zero, no -0, no blanks. @return QN_OK and *value, or QN_EINVAL. */
int qn_resp_line_number(const uint8_t *at, const uint8_t *end, int64_t *value);

#endif
