#ifndef QN_PAXOS_MACHINE_QUEUE_H
#define QN_PAXOS_MACHINE_QUEUE_H

/**
 * The leader's queue: requests on their way to a slot (PROTOCOL.md 3.3).
 *
 * It holds batches, not commands: a request's command list is copied behind a
 * head of a run into the newest batch while that has room, so a batch is
 * "whatever waits when a slot is free", without a timer. A command that stays
 * in its origin's arena is in it as a reference. The oldest batch is opened
 * before it gets a slot: its references are replaced by the commands, pulled
 * over shared memory, and each is looked at again after its copy. So what is
 * decided is whole, and nothing after the decision depends on the origin; and
 * the queue takes no more memory than references do.
 *
 *     add    add    add         open           take
 *      |      |      |           |              |
 *      +------+------+--> .. --> oldest, whole -+--> slot
 *
 * Threads: that of the machine. Nothing blocks.
 */

#include <stdbool.h>

#include "paxos/log/batch.h"
#include "paxos/log/uploads.h"
#include "paxos/machine/params.h"

/** A batch that waits. */
struct qn_draft {
    struct qn_refbuf *batch; /* one reference; its commands may be references */
    uint64_t bytes;          /* once they are resolved, at most */
    bool refers;             /* some are */
};

/** The oldest draft, while it is opened: where its commands go. */
struct qn_opening {
    struct qn_refbuf *whole;   /* NULL: it has not begun */
    uint32_t at;               /* qn_batch_next in the draft */
    struct qn_command_run run; /* ... and what is left of that run */
    uint64_t done;             /* bytes of the command that was begun */
};

struct qn_queue {
    struct qn_draft *draft; /* [mask + 1]; the last one still grows */
    uint32_t mask;          /* indices below run free */
    uint32_t head, tail;
    uint64_t commands;
    struct qn_opening opening;
    bool closed; /* the oldest grows no more */
};

/** @param draft  [size] kept; a power of two. */
void qn_queue_init(struct qn_queue *q, struct qn_draft *draft, uint32_t size);

/** Drop everything. */
void qn_queue_clear(struct qn_queue *q);

static inline bool qn_queue_empty(const struct qn_queue *q)
{
    return q->head == q->tail;
}

/**
 * What a request of the incarnation {origin, inc} comes to. It is refused if a
 * reference is no place in that incarnation's arena, or if it has more than one
 * command and more bytes than a batch.
 *
 * @param u    NULL: there are no references.
 * @param out  Filled.
 * @return QN_OK; QN_ECORRUPT: refused; QN_ESTALE: it refers to an arena that
 *         cannot be had.
 */
int qn_queue_check(const struct qn_params *p, const struct qn_uploads *u,
                   qn_node_t origin, uint64_t inc, struct qn_slice commands,
                   struct qn_wants *out);

/**
 * Add a run, the commands of which may be references.
 *
 * @param w  The sum of its commands.
 * @return QN_OK; QN_ENOMEM: nothing has changed.
 */
int qn_queue_add(struct qn_queue *q, const struct qn_alloc *a,
                 const struct qn_params *p, const struct qn_command_run *g,
                 const struct qn_wants *w);

/** Bytes of the oldest batch once it is open, at most. It is not empty. */
uint64_t qn_queue_bytes(const struct qn_queue *q);

/**
 * Open the oldest batch: go on with at most `most` bytes. It grows no more.
 *
 * @param u     NULL: there are no references.
 * @param lost  QN_ESTALE: filled, the oldest run of the incarnation of which
 * a command is not to be had.
 * @return bytes that are still missing; 0: it is open. QN_ENOMEM: again later.
 *         QN_ESTALE: its origin has ended, or has freed it: drop all commands
 *         of that incarnation (qn_queue_drop).
 */
int64_t qn_queue_open(struct qn_queue *q, const struct qn_alloc *a,
                      const struct qn_uploads *u, size_t most,
                      struct qn_command_run *lost);

/** The oldest batch, which is open. Borrowed. */
struct qn_refbuf *qn_queue_head(const struct qn_queue *q);

/** Take it: the reference is the caller's. */
struct qn_refbuf *qn_queue_take(struct qn_queue *q);

/** Drop all commands of that incarnation. */
void qn_queue_drop(struct qn_queue *q, qn_node_t origin, uint64_t inc);

#endif
