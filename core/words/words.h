#ifndef QN_WORDS_H
#define QN_WORDS_H

/**
 * Messages of words: the User Dynamic Network of TILE-Gx, emulated in memory
 * that a group has in common.
 *
 * Each core has four queues of 64-bit words. Any core sends to any queue. The
 * words of one message stay together and in order; messages of one sender to
 * one queue arrive in order; none is lost. A message is there as a whole or not
 * at all, even if its sender ends in the middle. A receive takes words, not
 * messages, and takes all that it asked for or none. A send publishes and a
 * receive acquires: what was written before a message was sent is visible to
 * the node that has received it.
 *
 * Room. The words of a core that no receive has taken are bounded, and a
 * message that does not fit stays with its sender. There are two kinds of
 * device:
 *
 *   qn_words_shared   the four queues of a core share 118 words, as in the
 *                     hardware: a queue that is not read stops the others
 *   qn_words_split    each has 29 words of its own
 *
 * Incarnations. Words are delivered from the incarnation of a sender that
 * attach or up has named, to the incarnation that attached. Those of an earlier
 * one are dropped. Those of one that was not named yet stay, and take room,
 * until up names it. A sender that was stopped in the middle of a send holds up
 * the queue behind its message until it continues, or until down says that it
 * has ended.
 *
 * Threads: an attachment belongs to one thread. try_send, try_receive, empty
 * and room are wait-free; only ring makes system calls, and a receive that
 * makes room for senders that sleep.
 *
 * Source: the thesis on hybrid locks and delegation (Petrovic, EPFL), chapter
 * 6; TILE-Gx documentation for 118 words and four queues. The hardware's speed
 * is not emulated.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/base/clock.h"
#include "core/device.h"

#define QN_WORDS_QUEUES     4u
#define QN_WORDS_SHARED_MAX 118u /* words of a core, and of a message */
#define QN_WORDS_SPLIT_MAX  29u  /* the same of each queue of a split one */
#define QN_WORDS_CORES_MAX  72u  /* nodes of a device: those of an 8072 */

extern const struct qn_device_type qn_words_shared, qn_words_split;

/** Where a message goes. */
struct qn_words_target {
    qn_node_t node; /* the own one is allowed */
    uint32_t queue; /* < QN_WORDS_QUEUES */
};

/** Send a message of n words, as a whole. Does not ring.
 *  @return QN_OK; QN_EAGAIN no room, or too many others were sending;
 *          QN_EMSGSIZE n is 0 or more than there ever is room for; QN_EPEERDEAD
 *          the node has ended or was not named yet; QN_ECORRUPT the device is
 *          damaged. */
int qn_words_try_send(struct qn_device *d, struct qn_words_target to,
                      const uint64_t *words, uint32_t n);

/** Ring a node if it sleeps: after try_send.
 *  @return true: it slept, and was woken by a system call. */
bool qn_words_ring(struct qn_device *d, qn_node_t node);

/** This node will sleep until that one has made room. It then tries once more,
 *  and sleeps if there is none; every ring ends the wish. */
void qn_words_want_room(struct qn_device *d, qn_node_t node);

/** try_send and ring; waits for room on the own doorbell until `deadline` (ns,
 *  monotonic). Additional error: QN_ETIMEDOUT. A sender that waits at a node of
 *  which another node learns that it has ended gets QN_EPEERDEAD, too. */
int qn_words_send(struct qn_device *d, struct qn_words_target to,
                  const uint64_t *words, uint32_t n, qn_time_t deadline);

/** Take the next n words of an own queue.
 *  @return QN_OK; QN_EAGAIN there are fewer yet, and nothing was taken;
 *          QN_EMSGSIZE n is 0 or more than there ever is room for; QN_ECORRUPT
 *          the device is damaged. */
int qn_words_try_receive(struct qn_device *d, uint32_t queue, uint64_t *words,
                         uint32_t n);

/** try_receive; waits on the own doorbell until `deadline`. Additional error:
 *  QN_ETIMEDOUT. */
int qn_words_receive(struct qn_device *d, uint32_t queue, uint64_t *words,
                     uint32_t n, qn_time_t deadline);

/** Is there no word in an own queue? An acquire: the answer false orders as a
 *  receive does. */
bool qn_words_empty(struct qn_device *d, uint32_t queue);

/** Words that could be sent to a queue now, as far as can be seen. */
uint32_t qn_words_room(struct qn_device *d, struct qn_words_target to);

#endif
