#ifndef QN_SYNC_PORT_H
#define QN_SYNC_PORT_H

/**
 * A port: one thread's end for messages of words (core/words/words.h), by which
 * locks and delegation reach it.
 *
 * A port has one queue of its thread's attachment, and an address: that node
 * and that queue. Several locks and objects may share it, also nested. Each
 * message begins with a word that says what it is and for which object, and a
 * wait for one message puts aside what is for another (the stash). Without that
 * an ALLOW for one lock is taken for another's, and both have two owners.
 *
 *     63            32 31    24 23  16 15       0
 *     |     object     |  tag  | kind |  address |     of the sender
 *
 *     SUCCESSOR  1 word   of a lock: the sender waits behind the receiver
 *     ALLOW      1 word   of a lock: the receiver has it
 *     REQUEST    3 words  of a delegate: place << 16 | op, argument
 *     REPLY      2 words  result; the request's tag
 *
 * Room. While its thread waits, what may come for others must find room: at the
 * core, and in the stash. So each lock, object or server that uses a port
 * promises first how many words it may be sent at most, and is refused with
 * QN_EDQUOT if these do not fit: on a shared device 118 for all ports of the
 * attachment; on a split one QN_SYNC_STASH for each port. So the stash is never
 * full. After a refusal take a split device, a port of its own for the object,
 * or fewer clients.
 *
 * Threads: a port belongs to the thread of its attachment.
 */

#include "core/base/atomic.h"
#include "core/wait/baton.h"
#include "core/words/words.h"

/* Words: requests of all 72 nodes, and some locks. */
#define QN_SYNC_STASH 256u
#define QN_SYNC_WORDS 3u /* of the longest message */

/** The lock's two differ in the lowest bit. */
enum qn_sync_kind {
    QN_SYNC_SUCCESSOR = 2,
    QN_SYNC_ALLOW = 3,
    QN_SYNC_REQUEST = 4,
    QN_SYNC_REPLY = 5,
};

/** Fields are private. */
struct qn_sync_port {
    struct qn_device *device; /* kept */
    uint32_t queue;
    uint32_t address;
    uint32_t count; /* words in the stash */
    uint64_t stash[QN_SYNC_STASH];
};

/** Begin to use a queue of an attachment.
 *  @param d  Of words, kept until close. With a doorbell, unless its machine
 *            waits for words by itself.
 *  @return QN_OK; QN_EAGAIN: all queues of the core are in use; QN_EINVAL: the
 *          device is none of words. */
int qn_sync_port_open(struct qn_sync_port *p, struct qn_device *d);

/** All that was joined through it has been left. */
void qn_sync_port_close(struct qn_sync_port *p);

/** So many words more may be on their way to this port.
 *  @return QN_OK; QN_EDQUOT: they would not fit. */
int qn_sync_promise(struct qn_sync_port *p, uint32_t words);
/** As qn_sync_promise, of a server, which waits for nothing but requests. So it
 *  is refused only if something else was promised; alone it takes all.
 *  @param words  In: what may be sent to it. Filled: what was promised. */
int qn_sync_promise_server(struct qn_sync_port *p, uint32_t *words);
void qn_sync_promise_back(struct qn_sync_port *p, uint32_t words);

/** The number of an object among all that use its device: the first client
 *  that asks gives it one.
 *  @param number  Shared, 0 at first. Any thread. */
uint32_t qn_sync_object(struct qn_sync_port *p, qn_a32 *number);

/** First word of a message from this port. */
static inline uint64_t qn_sync_head(const struct qn_sync_port *p,
                                    uint32_t object, enum qn_sync_kind kind,
                                    uint32_t tag)
{
    return (uint64_t)object << 32 | (uint64_t)(tag & 0xff) << 24 |
           (uint64_t)kind << 16 | p->address;
}

static inline uint32_t qn_sync_head_address(uint64_t head)
{
    return head & 0xffff;
}

static inline uint32_t qn_sync_head_kind(uint64_t head)
{
    return head >> 16 & 0xff;
}

static inline uint32_t qn_sync_head_tag(uint64_t head)
{
    return head >> 24 & 0xff;
}

/** What a receive may compare of heads. */
#define QN_SYNC_OBJECT (UINT64_C(0xffffffff) << 32)
#define QN_SYNC_TAG    (UINT64_C(0xff) << 24)
#define QN_SYNC_KIND   (UINT64_C(0xff) << 16)
#define QN_SYNC_LOCK   (UINT64_C(0xfe) << 16) /* either kind of a lock */

/** Send a message, as a whole, and wake its receiver. Waits for room there.
 *  release. What is for a node that has ended is dropped.
 *  @param waits  Counts the wake-up: of the caller's next receive, which waits
 *                longer behind one. */
void qn_sync_send(struct qn_sync_port *p, uint32_t address,
                  const uint64_t *words, uint32_t n,
                  struct qn_wait_stats *waits);

/** The same to a thread that does not sleep at its port; the caller wakes it.
 */
void qn_sync_send_silently(struct qn_sync_port *p, uint32_t address,
                           const uint64_t *words, uint32_t n);

/** Take the oldest message whose head agrees with `want` in the bits of `mask`.
 *  acquire. Never waits.
 *  @param words  [QN_SYNC_WORDS] Filled if there is one.
 *  @return whether there was one. */
bool qn_sync_try_receive(struct qn_sync_port *p, uint64_t want, uint64_t mask,
                         uint64_t *words);

/** The same; waits for it. @param waits  Counts what that costs. */
void qn_sync_receive(struct qn_sync_port *p, uint64_t want, uint64_t mask,
                     uint64_t *words, struct qn_wait_stats *waits);

#endif
