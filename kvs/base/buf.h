#ifndef QN_KVS_BASE_BUF_H
#define QN_KVS_BASE_BUF_H

/**
 * A growable byte string: replies are written into one.
 *
 * Lack of memory is sticky: `oom` is set, later appends do nothing, and the
 * owner of the connection closes it. So is one byte more than `max`. One
 * thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct qn_buf {
    uint8_t *data; /* [cap] */
    size_t len;    /* bytes in use */
    size_t cap;
    size_t max; /* bytes it may hold; 0: any number. Set by its owner */
    bool oom;   /* an append failed */
    bool full;  /* because of `max` */
    bool error; /* an error reply was written, or there was no room for it;
                   cleared by the owner */
};

/** Make room for n more bytes. @return where they go, NULL on lack of memory.
 *  The caller adds to `len` what it wrote. */
uint8_t *qn_buf_reserve(struct qn_buf *b, size_t n);

/** Free the memory; the buffer may be used again, with the same `max`. */
void qn_buf_free(struct qn_buf *b);

static inline void qn_buf_append(struct qn_buf *b, const void *p, size_t n)
{
    if (n == 0)
        return; /* an empty buffer has no place to point to */
    uint8_t *to = b->cap - b->len >= n && !b->oom ? b->data + b->len
                                                  : qn_buf_reserve(b, n);
    if (to != NULL) {
        memcpy(to, p, n);
        b->len += n;
    }
}

#endif
