#ifndef QN_TRANSPORTS_MPB_OCBCAST_OCBCAST_H
#define QN_TRANSPORTS_MPB_OCBCAST_OCBCAST_H

/**
 * OC-Bcast, synchronous: a broadcast through message buffers, in which all
 * nodes of a chip take part, one after the other, each time with a root of its
 * own. A tree of fan-out k; a node gets a chunk from its parent's buffer into
 * its own, tells the parent, wakes its children, and copies the chunk to
 * memory. Two buffers, so that a node may get a chunk while its children still
 * read the one before.
 *
 * Lines of a node, from `first` on:
 *
 *     notify     1        (b, n): chunk n of broadcast b is in the parent's
 *                         buffer. Written by the parent or a sibling
 *     done       k        child i has got chunk n
 *     barrier    log2     of the rounds of the barrier
 *     buffers    2 * m    chunk n is in buffer n modulo 2
 *
 *     flag       63 .. 32 broadcast | 31 .. 16 chunk, from 1 | 15 .. 0 session
 *
 * The published form is wrong where the root changes: a fast node may notify
 * a node that is still in the broadcast before, which then takes old bytes, or
 * waits for ever when its own parent writes over that flag. Here a barrier
 * stands in front of each broadcast whose root is not the last one's.
 *
 * Broadcasts are numbered with 32 bits that wrap, and flags compared by
 * subtraction. A line that no broadcast has written for long would be taken for
 * one that is ahead; so each 2^30 broadcasts all nodes meet in two barriers,
 * and clear their lines in between.
 *
 * All nodes must live. If one ends, all others are told (qn_oc_down), and a new
 * session is made when it is back; flags of another session are as none.
 *
 * Threads: one, with the attachment. Calls never wait: begin, then step until
 * it is done. No allocation.
 * Source: Petrovic, EPFL thesis, 4.2 and 4.3; emulated SCC.
 */

#include <stdbool.h>

#include "transports/mpb/chip.h"
#include "transports/mpb/ocbcast/oc_tree.h"

#define QN_OC_ROUNDS_MAX 6u  /* of a barrier of 48 */
#define QN_OC_CHUNK_MAX  96u /* lines; more makes the pipeline longer only */
#define QN_OC_RENEWAL    (UINT32_C(1) << 30) /* broadcasts */

struct qn_oc_opts {
    struct qn_mpb *chip;   /* kept */
    uint32_t first, lines; /* of each node's buffer, for this alone */
    uint32_t k;            /* fan-out, 1 .. nodes - 1 */
    uint32_t session;      /* its low 16 bits differ from all sessions whose
                              flags may still be there. The same at all nodes */
};

enum qn_oc_phase {
    QN_OC_IDLE,
    QN_OC_BARRIER,
    QN_OC_ROOM,   /* for the chunk: children still read the one before last */
    QN_OC_CHUNK,  /* is to come, and to go on */
    QN_OC_FINISH, /* children still read */
};

/** Fields are private. */
struct qn_oc {
    struct qn_mpb *chip;
    struct qn_oc_tree tree;
    uint32_t notify, done, barrier, buffer; /* lines */
    uint32_t chunk_lines, rounds, session;
    enum qn_oc_phase phase;
    bool dead;         /* a member has ended */
    bool rooted;       /* tree.root is that of the broadcast before */
    bool renews;       /* lines are cleared in front of this one */
    bool second;       /* barrier of this broadcast */
    uint32_t number;   /* of the broadcast, from 1 */
    uint8_t *bytes;    /* of the caller */
    uint32_t len;      /* of it */
    uint32_t chunk;    /* from 1 */
    uint32_t chunks;   /* of this broadcast */
    uint32_t round;    /* of the barrier */
    bool told;         /* in this round */
    uint32_t children; /* of this node */
    uint32_t waits;    /* the child that is looked at */
};

/** The longest chunk in so many lines, in lines; 0: there is no room. */
uint32_t qn_oc_chunk_lines(uint32_t nodes, uint32_t lines, uint32_t k);

/** @return QN_OK; QN_EINVAL: k, or too few lines. */
int qn_oc_init(struct qn_oc *oc, const struct qn_oc_opts *o);

/**
 * Begin a broadcast. All nodes call it with the same root and length.
 *
 * @param bytes  [len] Read at the root, filled elsewhere. Kept until done.
 * @return QN_OK; QN_EAGAIN: the one before is not done; QN_EMSGSIZE: more than
 *         65535 chunks; QN_EINVAL: root; QN_EPEERDEAD.
 */
int qn_oc_begin(struct qn_oc *oc, qn_node_t root, void *bytes, uint32_t len);

/** Go on. @return QN_OK: done, `bytes` belong to the caller again; QN_EAGAIN:
 *  call again; QN_EPEERDEAD. */
int qn_oc_step(struct qn_oc *oc);

/** For tests, before the first begin and the same at all nodes: so many
 *  broadcasts have been. */
void qn_oc_number_at(struct qn_oc *oc, uint32_t number);

/** A node has ended: this session is over. */
void qn_oc_down(struct qn_oc *oc);

#endif
