#ifndef QN_GROUP_BACKLOG_INTERNAL_H
#define QN_GROUP_BACKLOG_INTERNAL_H

/**
 * Numbered broadcasts that an inner node still owes to some of its children.
 *
 * A bounded FIFO of whole messages. Each entry has the mask of children that
 * have not got it; entries leave at the front once every child has them. The
 * window of the root (QN_ACKED_COUNT, QN_ACKED_BYTES) bounds what can be owed
 * at any time, so with a sane root a push never fails.
 *
 * One thread. No allocation after init.
 */

#include <stdbool.h>

#include "core/base/bits.h"
#include "core/group/group.h"

/* An entry is contiguous. Where the ring of bytes wraps, less than one message
 * is wasted; with this much room a message always fits while all entries
 * together stay within QN_ACKED_BYTES: see backlog.c. */
#define QN_BACKLOG_BYTES (QN_ACKED_BYTES + QN_MSG_MAX)

/* Fields are private. */
struct qn_backlog {
    uint8_t *bytes;        /* [QN_BACKLOG_BYTES], owned; NULL: never used */
    uint32_t first, count; /* entries, free-running index and number */
    uint64_t lagging;      /* nodes that are owed at least one entry */
    struct {
        uint32_t at, len; /* in bytes */
        uint64_t pending; /* nodes */
    } entry[QN_ACKED_COUNT];
};

/** @return QN_OK, QN_ENOMEM. */
int qn_backlog_init(struct qn_backlog *b);
void qn_backlog_fini(struct qn_backlog *b);

/** Append a message owed to the nodes of `pending`, not empty; bytes copied.
 *  @return false if it does not fit. */
bool qn_backlog_push(struct qn_backlog *b, const void *msg, size_t len,
                     uint64_t pending);

/** The oldest message owed to `node`, which is behind; borrowed until it is
 *  paid. */
struct qn_slice qn_backlog_next(const struct qn_backlog *b, qn_node_t node);

/** `node` got what qn_backlog_next said. */
void qn_backlog_pay(struct qn_backlog *b, qn_node_t node);

/** `node` is owed nothing any more. */
void qn_backlog_forget(struct qn_backlog *b, qn_node_t node);

#endif
