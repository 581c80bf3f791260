#ifndef QN_COLL_RETAINED_H
#define QN_COLL_RETAINED_H

/**
 * What a member has got of a sequence and keeps, because another may lack it:
 * messages in the order of their numbers, in a ring of bytes. Bounded twice, by
 * messages and by bytes.
 *
 *     released | kept, and can be sent again | the next one
 *              first                         last
 *
 * A message lies in one piece, behind room for what is in front of it on its
 * way. One that does not fit behind the others lies at the beginning, and the
 * gap is lost until it is passed; so the ring has room for one message more
 * than its bound says.
 *
 * Members of a sequence have the same bounds. Then a message that the root may
 * keep, because it has released what all have, has room at every member that
 * has heard up to where all have come: messages carry that.
 *
 * Threads: one. Nothing but init allocates.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/coll/sequencer.h"

#define QN_RETAINED_ROOM 24u /* bytes in front of a message */

struct qn_retained_message {
    uint8_t *msg; /* behind QN_RETAINED_ROOM bytes that may be written to */
    uint32_t len;
    struct qn_tag tag;
};

/** Fields are private. */
struct qn_retained {
    struct qn_retained_message *message; /* [window] by number */
    uint8_t *ring;                       /* [ring_bytes] */
    size_t ring_bytes, bytes_max;
    size_t begin, end;    /* in the ring; equal if it is empty */
    size_t bytes;         /* of what is kept */
    uint32_t window;      /* a power of two */
    uint32_t first, last; /* kept are those after `first` */
};

/** Bytes that a message of that length counts as. */
static inline size_t qn_retained_cost(size_t len)
{
    return QN_RETAINED_ROOM + (len + 7) / 8 * 8;
}

/** @param window     Messages at most; a power of two.
 *  @param bytes_max  qn_retained_cost of all at most; at least that of one.
 *  @param len_max    Of one message.
 *  @param before     The number before the first.
 *  @return QN_OK; QN_EINVAL: bytes_max; QN_ENOMEM. `fini` frees what there is
 *  in any case. */
int qn_retained_init(struct qn_retained *r, uint32_t window, size_t bytes_max,
                     size_t len_max, uint32_t before);
void qn_retained_fini(struct qn_retained *r);

/** Whether a message of that length may be kept now. */
bool qn_retained_fits(const struct qn_retained *r, size_t len);

/** Keep the next message. It must fit.
 *  @param msg  [len] borrowed. */
void qn_retained_add(struct qn_retained *r, const struct qn_tag *tag,
                     const void *msg, size_t len);

/** All members have what is up to `number`, which is kept here or was. */
void qn_retained_release(struct qn_retained *r, uint32_t number);

/** A message that is kept. */
static inline struct qn_retained_message *qn_retained_at(
    const struct qn_retained *r, uint32_t number)
{
    return &r->message[number & (r->window - 1)];
}

#endif
