#ifndef QN_KVS_INTROSPECT_INFO_INTERNAL_H
#define QN_KVS_INTROSPECT_INFO_INTERNAL_H

/** What the files that write INFO share: info.c has the sections of Redis and
 *  chooses among sections; info_quoin.c has the section Quoin. */

#include "kvs/introspect/info.h"

/** Append one line and CRLF. */
void qn_info_line(struct qn_buf *b, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/** Append the line "name:v". */
void qn_info_count(struct qn_buf *b, const char *name, uint64_t v);

/** NULL: "". */
const char *qn_info_text_of(const char *text);

/** The lines of the section Quoin. */
void qn_info_quoin(struct qn_buf *b, const struct qn_info *i);

#endif
