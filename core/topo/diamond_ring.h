#ifndef QN_TOPO_DIAMOND_RING_H
#define QN_TOPO_DIAMOND_RING_H

/**
 * Diamond rings: acknowledged broadcast over a scatter tree and its mirror
 * image, glued at center nodes; TREES.md has the rules for every n and k.
 *
 * Ids are logical, 0 is the root: [gather | center | scatter] above it, so
 * that every message goes from a higher to a lower id (the root counts as n,
 * and the companion is last). `core` maps ids to the indices of a machine.
 *
 * Immutable once made, any thread; create allocates.
 */

#include <stdbool.h>

#include "core/machine/machine.h"
#include "core/topo/shape.h"

#define QN_RING_ARITY_MAX 64u

struct qn_diamond_ring_opts {
    uint32_t n;     /* nodes, 1 .. QN_CORES_MAX */
    uint32_t k;     /* arity, 1 .. QN_RING_ARITY_MAX */
    bool full;      /* keep every direct link of rings without center */
    bool companion; /* node n-1 gathers for the root; needs n >= 3 */
};

struct qn_diamond_ring {
    struct qn_diamond_ring_opts o;
    uint32_t levels;   /* l; 0 for a root alone */
    uint32_t scatter;  /* S, nodes; as many gather */
    uint32_t rings;    /* R = k^l */
    uint32_t centers;  /* m, 1 .. 2R; 0 for a root alone */
    uint32_t messages; /* links in all */
    uint32_t *first;   /* [n+1] of each id in `next`; first[n] == messages */
    uint16_t *next;    /* [messages] successors, in sending order */
    uint32_t *preds;   /* [n] messages that each id receives per broadcast */
    uint16_t *core;    /* [n] by id; the identity when created */
};

/** @return QN_OK, QN_EINVAL (n, k, companion of less than 3), QN_ENOMEM. */
int qn_diamond_ring_create(struct qn_diamond_ring **out,
                           const struct qn_diamond_ring_opts *o);

/** NULL is allowed. */
void qn_diamond_ring_destroy(struct qn_diamond_ring *r);

/** N of "ring:k=N", 1 .. QN_RING_ARITY_MAX; 0: it is no such name. */
uint32_t qn_diamond_ring_arity(const char *name);

/**
 * The links of a lean ring along which a broadcast reaches every node once: a
 * spanning tree. Links back to the root are left out, and of several
 * predecessors the one of highest id counts.
 *
 * Edges are over ranks: the root is rank 0, id x is rank n - x. So each edge
 * goes from a lower to a higher rank. No allocation.
 *
 * @param e  Filled.
 * @return QN_OK; QN_EINVAL: n is not 1 .. QN_CORES_MAX, or k is not 1 ..
 *         QN_RING_ARITY_MAX. O(n + k).
 */
int qn_diamond_ring_edges(struct qn_edges *e, uint32_t k, uint32_t n);

/** Cycles that the busiest core spends per broadcast: sum of receives and
 *  sends. The machine has n cores. O(messages). */
double qn_diamond_ring_occupancy(const struct qn_machine *m,
                                 const struct qn_diamond_ring *r);

#endif
