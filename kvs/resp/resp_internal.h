#ifndef QN_KVS_RESP_RESP_INTERNAL_H
#define QN_KVS_RESP_RESP_INTERNAL_H

/**
 * What the parts of the RESP reader share:
 *
 *     resp.c       requests: found, taken, put back
 *     resp_room.c  the memory that a socket is read into, and what is kept
 *     resp_line.c  what is read in lines: inline requests, numbers. Pure
 */

#include "kvs/resp/resp.h"

#define QN_RESP_LARGE   ((size_t)32 * 1024) /* a bulk with room of its own */
#define QN_RESP_NO_BULK SIZE_MAX

/* ---- resp_room.c --------------------------------------------------------- */

/** Free the memory: all was taken, or the stream is over. */
void qn_resp_drop(struct qn_resp_reader *r);

/** The stream is over. @return `error` */
int qn_resp_fail(struct qn_resp_reader *r, int error, const char *text);

/* ---- resp_line.c --------------------------------------------------------- */

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
