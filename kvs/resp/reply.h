#ifndef QN_KVS_RESP_REPLY_H
#define QN_KVS_RESP_REPLY_H

/** RESP writers: append one reply element to a buffer (kvs/resp/RESP.md,
 *  section 2). `proto` is 2 or 3. A NULL buffer is allowed everywhere and
 *  means that no client waits for the reply. A writer appends a whole element
 *  or, when memory is short, nothing (kvs/base/buf.h: `oom`); it never
 *  blocks. One thread per buffer. */

#include <stdint.h>

#include "core/base/bits.h"
#include "kvs/base/buf.h"

void qn_reply_status(struct qn_buf *b, const char *text); /* +text */
void qn_reply_ok(struct qn_buf *b);                       /* +OK */
/** -text, printf style; CR and LF in it become blanks. `fmt` begins with the
 *  code: "ERR ...". Sets b->error, even if the buffer accepts no bytes. */
void qn_reply_error(struct qn_buf *b, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/** There is no store yet. Clients retry on exactly this code. */
#define QN_REPLY_LOADING "LOADING Redis is loading the dataset in memory"
void qn_reply_int(struct qn_buf *b, int64_t v); /* :v */
/** $len and `len` bytes of `data`. */
void qn_reply_bulk(struct qn_buf *b, const void *data, size_t len);
/** The same with NUL-terminated text. */
void qn_reply_bulk_str(struct qn_buf *b, const char *text);
void qn_reply_null(struct qn_buf *b, uint8_t proto);       /* $-1 or _ */
void qn_reply_null_array(struct qn_buf *b, uint8_t proto); /* *-1 or _ */
/** The header of an array; the caller writes n elements behind it. */
void qn_reply_array(struct qn_buf *b, size_t n);
/** The header of a map; 2 * pairs elements follow. RESP2: an array. */
void qn_reply_map(struct qn_buf *b, uint8_t proto, size_t pairs);
/** The header of a set; n elements follow. RESP2: an array. */
void qn_reply_set(struct qn_buf *b, uint8_t proto, size_t n);
/** Human-readable text of `len` bytes: bulk in RESP2, verbatim `txt:` in
 *  RESP3. */
void qn_reply_text(struct qn_buf *b, uint8_t proto, const char *text,
                   size_t len);

#endif
