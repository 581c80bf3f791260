#ifndef QN_LOADGEN_VERIFY_HISTORY_TEXT_H
#define QN_LOADGEN_VERIFY_HISTORY_TEXT_H

/**
 * Histories as text: one record per line, in any order.
 *
 *     # client  invoked  responded  operation -> answer
 *     1  100  200  set k7 41 -> ok
 *     2  150  260  get k7 -> 41            or -> nil
 *     3  300  410  cas k7 41 42 -> ok      or -> failed  (expected, new)
 *     3  420  430  add k7 43 -> failed     or -> ok      (only if absent)
 *     1  500  580  del k7 -> 1             or -> 0
 *     2  600  640  incr c1 1 -> 5
 *     2  700  -    set k7 44 -> ?          the connection broke
 *
 * Times are in ns. Keys are k or c and a number below 2^31. Values are signed
 * 64 bits. `#` begins a comment; empty lines are skipped. A time of `-` needs
 * the answer `?`, and vice versa.
 *
 * Pure, except for the two functions that take a FILE. One thread.
 */

#include "loadgen/verify/history/history.h"

#include <stdio.h>

enum { QN_RECORD_TEXT_MAX = 160 }; /* bytes of a line, including its NUL */

/** "k7" or "c7". @param out  [12] Filled. */
void qn_record_key_text(uint32_t key, char out[12]);

/** The operation and its answer: "set k7 41 -> ok". @param out
 *  [QN_RECORD_TEXT_MAX] Filled. */
void qn_record_call_text(const struct qn_record *r,
                         char out[QN_RECORD_TEXT_MAX]);

/** The whole line, without its end. @param out  [QN_RECORD_TEXT_MAX] Filled. */
void qn_record_text(const struct qn_record *r, char out[QN_RECORD_TEXT_MAX]);

/**
 * Read one line.
 *
 * @param line   NUL-terminated, with or without a newline. Borrowed.
 * @param out    Filled if the result is 1.
 * @param error  [error_size] Filled on QN_EINVAL: what is wrong.
 * @return 1: a record; 0: an empty line or a comment; QN_EINVAL.
 */
int qn_record_parse(const char *line, struct qn_record *out, char *error,
                    size_t error_size);

/**
 * Read lines to the end of the file.
 *
 * @param rec    Records are added.
 * @param line   Filled on QN_EINVAL: number of the line, from 1.
 * @param error  [error_size] Filled on error: what is wrong.
 * @return QN_OK; QN_EINVAL; QN_ENOMEM (or the recorder is full); QN_EIO.
 */
int qn_history_read(FILE *file, struct qn_recorder *rec, uint64_t *line,
                    char *error, size_t error_size);

/** Write a history, key by key, after qn_history_group. @return QN_OK,
 *  QN_ENOMEM, QN_EIO. */
int qn_history_write(FILE *file, const struct qn_history *h);

#endif
