#include "core/coll/retained.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/err.h"

int qn_retained_init(struct qn_retained *r, uint32_t window, size_t bytes_max,
                     size_t len_max, uint32_t before)
{
    *r = (struct qn_retained){.bytes_max = bytes_max,
                              .window = window,
                              .first = before,
                              .last = before};
    if (bytes_max < qn_retained_cost(len_max)) {
        return QN_EINVAL;
    }
    r->ring_bytes = (bytes_max + 7) / 8 * 8 + qn_retained_cost(len_max);
    r->message = calloc(window, sizeof *r->message);
    r->ring = calloc(1, r->ring_bytes);
    return r->message != NULL && r->ring != NULL ? QN_OK : QN_ENOMEM;
}

void qn_retained_fini(struct qn_retained *r)
{
    free(r->message);
    free(r->ring);
}

bool qn_retained_fits(const struct qn_retained *r, size_t len)
{
    return r->last - r->first < r->window &&
           r->bytes + qn_retained_cost(len) <= r->bytes_max;
}

void qn_retained_add(struct qn_retained *r, const struct qn_tag *tag,
                     const void *msg, size_t len)
{
    const size_t cost = qn_retained_cost(len);
    QN_ASSERT(qn_retained_fits(r, len));
    if (r->ring_bytes - r->end < cost) {
        r->end = 0;
    }
    /* What is kept ends at `end` or, where it goes round, begins behind it. */
    QN_ASSERT(r->first == r->last || r->begin < r->end ||
              r->begin - r->end >= cost);
    struct qn_retained_message *m = qn_retained_at(r, ++r->last);
    *m =
        (struct qn_retained_message){.msg = r->ring + r->end + QN_RETAINED_ROOM,
                                     .len = (uint32_t)len,
                                     .tag = *tag};
    if (len > 0) {
        memcpy(m->msg, msg, len);
    }
    r->end += cost;
    r->bytes += cost;
}

/* Where the oldest one lies. */
static void find_begin(struct qn_retained *r)
{
    if (r->first == r->last) {
        r->begin = r->end = 0;
    } else {
        const uint8_t *msg = qn_retained_at(r, r->first + 1)->msg;
        r->begin = (size_t)(msg - r->ring) - QN_RETAINED_ROOM;
    }
}

void qn_retained_release(struct qn_retained *r, uint32_t number)
{
    while ((int32_t)(number - r->first) > 0) {
        QN_ASSERT(r->first != r->last);
        r->bytes -= qn_retained_cost(qn_retained_at(r, ++r->first)->len);
    }
    find_begin(r);
}
