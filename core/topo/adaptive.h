#ifndef QN_TOPO_ADAPTIVE_H
#define QN_TOPO_ADAPTIVE_H

/**
 * The published adaptive tree, exactly: base algorithm, reordering, shuffling
 * (Kaestle et al., "Machine-Aware Atomic Broadcast Trees for Multicores", OSDI
 * 2016, with the corrections that TREES.md names).
 *
 * Pure, any thread, no allocation. Ties go to the lower core everywhere.
 */

#include "core/topo/shape.h"

/** By what a core's children are sorted, largest first. */
enum qn_key {
    QN_KEY_PUBLISHED, /* cost of the child's subtree, T(c) */
    QN_KEY_OPTIMAL    /* r(v,c) + T(c): exactly optimal for a fixed tree */
};

/** The core with the least sum of send costs to all others. O(n^2). */
uint32_t qn_adaptive_root(const struct qn_machine *m);

/**
 * The base algorithm: an event simulation in which every idle informed core
 * serves the dearest core of its own group or of a group not yet reached; of
 * the latter the member that is cheapest to send to.
 *
 * @param clock  [n] filled: when each core is informed, as the generator
 *               reckons; NULL: not wanted.
 * @return QN_OK, QN_EINVAL (root or level). O(n^2).
 */
int qn_adaptive_base(struct qn_shape *s, const struct qn_machine *m,
                     uint32_t root, enum qn_level level, double *clock);

/** Sort each core's children by `key`, bottom up; kept only if the broadcast
 *  does not get slower. @return whether it was kept. O(n log n) and up to
 *  O(n^2) for one core with many children. */
bool qn_adaptive_reorder(struct qn_shape *s, const struct qn_machine *m,
                         enum qn_key key);

/** Reorder, then move the last informed core to where it would be informed
 *  first, as long as that helps, at most 4n times. @return moves made. */
uint32_t qn_adaptive_shuffle(struct qn_shape *s, const struct qn_machine *m,
                             enum qn_key key);

/**
 * The whole generator: base, then shuffled with both keys; the better tree, the
 * one by the published key if they are equal.
 *
 * @return QN_OK, QN_EINVAL (root or level).
 */
int qn_adaptive_build(struct qn_shape *s, const struct qn_machine *m,
                      uint32_t root, enum qn_level level);

#endif
