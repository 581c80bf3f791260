#ifndef QN_WORDS_ATTACHMENT_H
#define QN_WORDS_ATTACHMENT_H

/**
 * For a device that is one of words and has something of its own for each
 * attachment: a transport whose queuepairs lie over words. Its type names these
 * functions, or functions that call them; all of words.h works on it.
 *
 * Beside words it may take whole messages, of which it is told the sender.
 *
 * Threads: as in words.h.
 */

#include "core/words/words.h"

/* Members of a device's type: those of qn_words_shared. */
size_t qn_words_bytes(const struct qn_device_opts *o);
void qn_words_format(void *memory, const struct qn_device_opts *o);
void qn_words_detach(struct qn_device *d);
void qn_words_down(struct qn_device *d, qn_node_t node);
void qn_words_up(struct qn_device *d, qn_node_t node, uint64_t inc);

/** Attach to a shared device as one of `type`, with this number of bytes behind
 * the attachment, zeroed.
 *  @return as attach of core/device.h. */
int qn_words_attach(struct qn_device **out,
                    const struct qn_device_attach_opts *o,
                    const struct qn_device_type *type, size_t behind);

/** The bytes behind an attachment, on a cache line. */
void *qn_words_behind(struct qn_device *d);

/** Take the next whole message of an own queue. words [QN_WORDS_SHARED_MAX].
 *  @return false: there is none. */
bool qn_words_take_message(struct qn_device *d, uint32_t queue, uint64_t *words,
                           uint32_t *n, qn_node_t *sender);

/** Behind a receive that found nothing: is there a reservation all the same? */
bool qn_words_held_up(const struct qn_device *d, uint32_t queue);

/** Does the device say that a node's incarnation has ended? */
bool qn_words_ended(const struct qn_device *d, qn_node_t node);

/** Is that the incarnation of a node that was named last, and not ended? */
bool qn_words_living(const struct qn_device *d, qn_node_t node, uint64_t inc);

/** Is it a device of words? Not one of a transport over words. */
bool qn_words_is(const struct qn_device *d);

/** Nodes of the device. */
uint32_t qn_words_nodes(const struct qn_device *d);

/* ---- several users of one attachment ---- */

/** A number that no other caller gets at this device, from 1 on; after 2^32 of
 *  them they repeat. Any attachment. */
uint32_t qn_words_number(struct qn_device *d);

/** Take a queue that no user of this attachment has. @return false: none is
 *  left. */
bool qn_words_take_queue(struct qn_device *d, uint32_t *queue);
void qn_words_give_queue(struct qn_device *d, uint32_t queue);

/**
 * May `words` more words lie in an own queue while its reader waits for others?
 *
 * A shared device has room for the words of all queues together, so what lies
 * in one keeps out what is for another: all that is promised fits into it. On a
 * split device a queue stops no other, and its reader may put `most` aside.
 *
 * @return false: no, and nothing has changed.
 */
bool qn_words_promise(struct qn_device *d, uint32_t queue, uint32_t words,
                      uint32_t most);
void qn_words_promise_back(struct qn_device *d, uint32_t queue, uint32_t words);

/** Words that may still be promised. */
uint32_t qn_words_unpromised(const struct qn_device *d, uint32_t queue,
                             uint32_t most);

/** Was nothing promised to this queue; of a shared device, to any? */
bool qn_words_is_unpromised(const struct qn_device *d, uint32_t queue);

/** Does a thread of this attachment sleep while it waits? It has a doorbell. */
bool qn_words_sleeps(const struct qn_device *d);

/** Sleep until there is a word in an own queue, or until `deadline` (ns,
 *  monotonic), or for no reason. Without a doorbell: a pause. */
void qn_words_wait(struct qn_device *d, uint32_t queue, qn_time_t deadline);

/** Sleep until a message of n words may fit, or for no reason. Without a
 *  doorbell: a pause. */
void qn_words_wait_room(struct qn_device *d, struct qn_words_target to,
                        uint32_t n);

/** Was damage found in the device? It ends the attachment. */
bool qn_words_corrupt(const struct qn_device *d);

#endif
