#ifndef QN_TRANSPORTS_MPB_OCBCAST_OC_ASYNC_H
#define QN_TRANSPORTS_MPB_OCBCAST_OC_ASYNC_H

/**
 * OC-Bcast, asynchronous: any node may broadcast at any time. A parent puts a
 * chunk into its buffer and interrupts its children; each gets the chunk and
 * tells the parent; when all have told, the buffer is free.
 *
 * A node has one buffer, for chunks of all sources. A chunk that finds it free,
 * and no other chunk waiting, goes from the parent's buffer into the own one
 * and on; any other is got into private memory and waits for the buffer.
 * That path never waits, so a node takes interrupts also while it waits for its
 * children: two that broadcast to each other would wait for ever otherwise.
 *
 * Window: a source has at most QN_OC_WINDOW chunks on their way. Each member
 * says, in a word of the source's buffer, up to which chunk it has received
 * all; so what waits in any node is bounded, by the window times the number of
 * sources, and no forwarder refuses anything. The source keeps what is on its
 * way, and sends it again when nodes have ended or come, so what it sends to a
 * member that lives arrives there, whichever node dies in between.
 *
 * Guarantee: the messages of one source arrive in order, whole and once, and
 * without a gap, at each member that lives, from the first one on that is sent
 * after the source was told of that member (qn_device_up). There is no order
 * between sources. What a source had on its way when it died may be missing at
 * some. A member that stalls and is not told to be dead stops the others'
 * sends.
 *
 * Lines of a node, from `first` on:
 *
 *     done       n / 4    a word per member: the use that it has got as a child
 *     received   n / 4    the same, about the chunks of this node
 *     head       1        of the chunk in the buffer (oc_head.h)
 *     buffer     m
 *
 *     done, received   63 .. 32 number | 31 .. 16 this node | 15 .. 0 writer
 *
 * In print a child writes the flag of its place. A child that was given up may
 * tell late, and then it would write over what the next tree's child has told
 * there; a word of its own is harmless.
 *
 * What `done` says is compared with the use, for equality. A child that tells
 * nothing for all of the 2^32 - 1 numbers of uses, and is a child again in
 * precisely that one, would be taken for one that has told: a chance of 2^-32.
 *
 * The head is looked at a second time after the get: a node that reads for its
 * predecessor, or what is a successor's, finds out.
 *
 * Threads: one, with the attachment. Nothing waits, nothing but create
 * allocates.
 * Source: Petrovic, EPFL thesis, 4.5; the window, the trees of living members,
 * the incarnations and what is sent again are not in it.
 */

#include <stdbool.h>

#include "core/device_bcast.h"
#include "transports/mpb/chip.h"

#define QN_OC_WINDOW      4u /* chunks of a source on their way */
#define QN_OC_FANOUT_MAX  47u
#define QN_OC_PAYLOAD_MAX 96u /* lines of a chunk */

struct qn_oc_async_opts {
    struct qn_device *device; /* an mpb, kept */
    uint32_t first, lines;    /* of each node's buffer; 0, 0: those that the
                                 queuepairs leave */
    uint32_t k;               /* fan-out, 1 .. nodes - 1 */
    uint32_t msg_max;         /* bytes of the longest message; 0: QN_MSG_MAX */
    uint32_t start;           /* numbers begin behind it; tests choose it */
};

/** Chunks that wait for the own buffer: now, and the most so far. */
struct qn_oc_queued {
    uint32_t now, most, limit;
};

/** @return QN_OK; QN_EINVAL: no mpb, k, msg_max, or too few lines; QN_ENOMEM.
 */
int qn_oc_async_create(struct qn_device_bcast **out,
                       const struct qn_oc_async_opts *o);

/** Look: have all children that live got what is in the own buffer? */
bool qn_oc_async_told(struct qn_device_bcast *b);

struct qn_oc_queued qn_oc_async_queued(const struct qn_device_bcast *b);

#endif
