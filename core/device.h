#ifndef QN_DEVICE_H
#define QN_DEVICE_H

/**
 * Devices: what connects the cores of a machine that has no coherent memory,
 * or that has something better: message buffers, hardware queues. They are
 * emulated in one piece of memory that is common to a group; a backend lives in
 * transports/ beside its queuepair.
 *
 *     once per group:       bytes, format
 *     once per incarnation: attach ... detach
 *     once per end of a peer's incarnation: down; before its next one: up
 *
 * A device outlives its nodes. What an incarnation has left in it (registers
 * that it held, ranges that it had reserved, interrupts on their way) is
 * repaired by the others, each for what it shares with that node, and only
 * after `down`: until then a silent node may be stalled and go on at any time.
 * After it, the incarnation makes no access any more. Words that several nodes
 * write carry the incarnation that wrote them, at least its low bits, so that
 * nothing of another incarnation is taken for this one's.
 *
 * All nodes can write all of it: a stray store of one can damage the traffic of
 * all. What is found there is loaded once and checked, as with lanes.
 *
 * Threads: one attachment belongs to one thread; attachments of different nodes
 * run concurrently. `format` runs alone. down, up and the rest make no system
 * call but to ring.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/node.h"
#include "core/wait/doorbell.h"

/** What a group asks of a device; the same for all its nodes. */
struct qn_device_opts {
    uint32_t nodes; /* 2 to what the device has cores for */
    uint32_t lanes; /* queuepairs of each pair of nodes, 1 .. QN_LANES */
    bool strict;    /* do what the hardware may do and coherent memory does not:
                       stale reads, stores that stay in a buffer */
    uint64_t seed;  /* of what strict leaves open */
};

struct qn_device_attach_opts {
    void *memory;                      /* shared, kept: formatted */
    const struct qn_device_opts *opts; /* as it was formatted; borrowed */
    qn_node_t self;
    const uint64_t *incarnation;  /* [nodes], borrowed: [self] is not 0; 0: that
                                     node is not there yet, see up */
    struct qn_doorbell *doorbell; /* own; NULL: no waiting forms. Kept */
    struct qn_doorbell_handle *ringer; /* [nodes], kept, may be shared with
                                    queuepairs; NULL: no peer is rung. One is
                                    used from attach or up to down */
};

struct qn_device; /* what follows its fields is the backend's */

/** A kind of device. All members are set. */
struct qn_device_type {
    const char *name;
    /** Bytes of memory that such a device needs, page aligned.
     *  @return 0 if the device cannot serve these options (too many nodes). */
    size_t (*bytes)(const struct qn_device_opts *o);
    /** Bring zeroed memory of so many bytes into its first state. */
    void (*format)(void *memory, const struct qn_device_opts *o);
    /** Begin as the next incarnation of a node. Repairs nothing that a peer
     *  repairs when it is told (down); what lies in this node's own part is of
     *  another incarnation and ignored. What former incarnations may hold for
     *  ever because all that knew them have ended, it releases.
     *  @return QN_OK, QN_EINVAL, QN_ECORRUPT (formatted otherwise), QN_ENOMEM.
     */
    int (*attach)(struct qn_device **out,
                  const struct qn_device_attach_opts *o);
    /** Close all queuepairs on it first. The memory is not freed. */
    void (*detach)(struct qn_device *d);
    /** That incarnation of a peer has ended: repair what this node shares with
     *  it. Its queuepair is told by qn_qp_down as well, before or after. */
    void (*down)(struct qn_device *d, qn_node_t node);
    /** The next incarnation of a peer begins, before anything of it is used.
     * All before it have ended, also those that this node was never told of. */
    void (*up)(struct qn_device *d, qn_node_t node, uint64_t inc);
};

struct qn_device {
    const struct qn_device_type *type;
    qn_node_t self;
};

static inline void qn_device_down(struct qn_device *d, qn_node_t node)
{
    d->type->down(d, node);
}

static inline void qn_device_up(struct qn_device *d, qn_node_t node,
                                uint64_t inc)
{
    d->type->up(d, node, inc);
}

/** NULL is fine. */
static inline void qn_device_detach(struct qn_device *d)
{
    if (d != NULL) {
        d->type->detach(d);
    }
}

#endif
