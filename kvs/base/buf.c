#include "kvs/base/buf.h"

#include <stdlib.h>

uint8_t *qn_buf_reserve(struct qn_buf *b, size_t n)
{
    if (b->oom) {
        return NULL;
    }
    if (b->cap - b->len >= n && b->data != NULL) {
        return b->data + b->len;
    }
    if (b->max != 0 && (b->len > b->max || n > b->max - b->len)) {
        b->oom = b->full = true;
        return NULL;
    }
    size_t cap = b->cap < 64 ? 64 : b->cap;
    while (cap - b->len < n) {
        if (cap > SIZE_MAX / 2) {
            b->oom = true;
            return NULL;
        }
        cap *= 2;
    }
    if (b->max != 0 && cap > b->max) {
        cap = b->max;
    }
    uint8_t *data = realloc(b->data, cap);
    if (data == NULL) {
        b->oom = true;
        return NULL;
    }
    b->data = data;
    b->cap = cap;
    return data + b->len;
}

void qn_buf_free(struct qn_buf *b)
{
    free(b->data);
    *b = (struct qn_buf){.max = b->max};
}
