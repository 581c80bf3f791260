#ifndef QN_GROUP_BACKLOG_INTERNAL_H
#define QN_GROUP_BACKLOG_INTERNAL_H

/**
 * Numbered broadcasts that an inner node still owes to some of its children.
 *
 * A bounded FIFO of whole messages. Each entry has the set of children that
 * have not got it; entries leave at the front once every child has them. The
 * window of the root (QN_ACKED_COUNT, QN_ACKED_BYTES) bounds what can be owed
 * at any time, so with a sane root a push never fails.
 *
 * One thread. No allocation but in reserve.
 */

#include <stdbool.h>

#include "core/base/bits.h"
#include "core/group/group.h"
#include "core/node_set.h"

/** Bytes of all messages of at most `msg_max` bytes that a window holds. */
static inline uint32_t qn_backlog_window(uint32_t msg_max)
{
    return QN_MIN(QN_ACKED_BYTES, QN_ACKED_COUNT * msg_max);
}

/** Bytes of the ring. An entry is contiguous. Where the ring wraps, less than
 *  one message is wasted; with this much room a message always fits while all
 *  entries together stay within the window: see backlog.c. */
static inline uint32_t qn_backlog_bytes(uint32_t msg_max)
{
    return qn_backlog_window(msg_max) + msg_max;
}

/* Fields are private. */
struct qn_backlog {
    uint8_t *bytes;             /* [size], of `pending`; NULL: never used */
    uint32_t size;              /* bytes of the ring */
    uint32_t first, count;      /* entries, free-running index and number */
    struct qn_node_set lagging; /* nodes that are owed at least one entry */
    uint64_t *pending; /* [QN_ACKED_COUNT][lagging.words], owned: nodes that are
                          owed an entry */
    struct {
        uint32_t at, len; /* in bytes */
    } entry[QN_ACKED_COUNT];
};

/** A backlog that is empty and has no room.
 *  @param lagging  An empty set of the nodes that may ever be owed an entry.
 *                  Its words are kept. */
void qn_backlog_init(struct qn_backlog *b, struct qn_node_set lagging);

/** Make room for a window of messages of at most `msg_max` bytes.
 *  @return QN_OK, QN_ENOMEM. */
int qn_backlog_reserve(struct qn_backlog *b, uint32_t msg_max);
void qn_backlog_fini(struct qn_backlog *b);

/** Append a message owed to the nodes of `pending`, not empty; bytes copied.
 *  @return false if it does not fit. */
bool qn_backlog_push(struct qn_backlog *b, const void *msg, size_t len,
                     const struct qn_node_set *pending);

/** The oldest message owed to `node`, which is behind; borrowed until it is
 *  paid. */
struct qn_slice qn_backlog_next(const struct qn_backlog *b, qn_node_t node);

/** `node` got what qn_backlog_next said. */
void qn_backlog_pay(struct qn_backlog *b, qn_node_t node);

/** `node` is owed nothing any more. */
void qn_backlog_forget(struct qn_backlog *b, qn_node_t node);

#endif
