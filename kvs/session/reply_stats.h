#ifndef QN_KVS_SESSION_REPLY_STATS_H
#define QN_KVS_SESSION_REPLY_STATS_H

/** What INFO counts of replies: errors, hits and misses. Pure; one thread. */

#include "core/base/bits.h"
#include "kvs/base/buf.h"
#include "kvs/introspect/info.h"

/**
 * Count what a reply says: an error by its code; a hit or a miss of a read of
 * one key.
 *
 * @param cmd    The command that has run; NULL: none has, the request was
 *               refused.
 * @param reply  Empty: there was no memory for it; nothing is counted.
 */
void qn_reply_stats_note(struct qn_info_part *part, const struct qn_cmd *cmd,
                         struct qn_slice reply);

/** The reply that begins at `start`; empty if its memory was lacking. */
static inline struct qn_slice qn_reply_stats_slice(const struct qn_buf *b,
                                                   size_t start)
{
    return b->oom ? (struct qn_slice){0}
                  : (struct qn_slice){b->data + start, b->len - start};
}

#endif
