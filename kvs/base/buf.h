#ifndef QN_KVS_BASE_BUF_H
#define QN_KVS_BASE_BUF_H

/**
 * A growable byte string for replies.
 *
 * Failure is sticky: when memory is short, or the string would exceed `max`,
 * `oom` is set and later appends do nothing. The owner looks once, at the end,
 * and closes the connection. One thread. No function blocks; growth allocates.
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

/** Make room for n more bytes. The caller adds to `len` what it wrote.
 *  @return where they go, valid until the next append; NULL: memory is short,
 *          or `max` would be exceeded; `oom` is set and the bytes are
 *          untouched. Amortized O(1) per byte. */
uint8_t *qn_buf_reserve(struct qn_buf *b, size_t n);

/** Free the memory and clear the errors. The buffer may be used again, with
 *  the same `max`. */
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
