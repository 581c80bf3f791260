#ifndef QN_TRANSPORTS_MPB_TWOSIDED_RIVALS_H
#define QN_TRANSPORTS_MPB_TWOSIDED_RIVALS_H

/**
 * The broadcasts that OC-Bcast is compared with, over two-sided send and
 * receive:
 *
 *   binomial            a set of nodes of which one has the message is halved,
 *                       and that one sends it to the first of the other half
 *   scatter-allgather   the same halving, but only with the slices of the other
 *                       half; then, in a ring, each node passes on to its left
 *                       what came from its right, until all have all slices
 *
 * Nodes are ranked from the root on, ascending and around. In the ring, even
 * ranks send before they receive and odd ones after it, since a send waits for
 * its receive.
 *
 * As of qn_oc: all nodes take part in each broadcast, one after the other, and
 * live. The root may change without a barrier: a message names its pair.
 *
 * Threads: one, with the attachment. Calls never wait. No allocation.
 * Source: RCCE_comm; Petrovic, EPFL thesis, 3.3.2 and 4.3.
 */

#include "transports/mpb/twosided/twosided.h"

enum qn_rival_kind { QN_RIVAL_BINOMIAL, QN_RIVAL_SCATTER_ALLGATHER };

/** What a node does next: slices `from` to `until` (not included) of all. */
struct qn_rival_move {
    uint32_t rank; /* of the peer */
    bool send;     /* else receive */
    uint32_t from, until;
};

/**
 * The i-th move of a rank, from 0; slices are as many as nodes.
 *
 * @return false: there is none. Pure. O(log nodes).
 */
bool qn_rival_move(enum qn_rival_kind kind, uint32_t nodes, uint32_t rank,
                   uint32_t i, struct qn_rival_move *out);

/** Fields are private. */
struct qn_rival {
    struct qn_two two;
    enum qn_rival_kind kind;
    bool dead; /* a node has ended */
    bool busy; /* a broadcast is not done */
    bool under_way;
    qn_node_t root;
    uint8_t *bytes; /* of the caller */
    uint32_t len;
    uint32_t move; /* its number */
};

/** @return QN_OK; QN_EINVAL: too few lines. */
int qn_rival_init(struct qn_rival *r, enum qn_rival_kind kind,
                  const struct qn_two_opts *o);

/**
 * Begin a broadcast. All nodes call it with the same root and length.
 *
 * @param bytes  [len] Read at the root, filled elsewhere. Kept until done.
 * @return QN_OK; QN_EAGAIN: the one before is not done; QN_EINVAL: root;
 *         QN_EPEERDEAD.
 */
int qn_rival_begin(struct qn_rival *r, qn_node_t root, void *bytes,
                   uint32_t len);

/** Go on. @return QN_OK: done, `bytes` belong to the caller again; QN_EAGAIN:
 *  call again; QN_EPEERDEAD. */
int qn_rival_step(struct qn_rival *r);

/** A node has ended: this session is over. */
void qn_rival_down(struct qn_rival *r);

#endif
