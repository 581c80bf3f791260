#ifndef QN_CORE_PLAN_TREE_IO_H
#define QN_CORE_PLAN_TREE_IO_H

/**
 * Topologies as files: the CSV form that tools exchange, JSON and Graphviz.
 *
 * A tree is an optional line "# root=CORE", the header `parent,child,order` and
 * one line per edge, in operating system numbers; `order` is the position
 * among the parent's children, from 0. A ring's map is `logical,core`.
 *
 * Readers check everything and answer a bad file with one line (fault.h).
 * Nothing here allocates except the writers' streams; any thread.
 */

#include "core/topo/diamond_ring.h"
#include "core/topo/shape.h"

/**
 * Read a tree over all cores of a machine (restrict it first for a subset).
 *
 * @param s      Filled; untouched on failure.
 * @param file   Name for faults.
 * @param bytes  [len] borrowed.
 * @return QN_OK, or QN_EINVAL with `parse_error` (may be NULL) filled: unknown
 * or missing cores, two parents, cycles, orders with gaps, wrong root.
 */
int qn_tree_parse_csv(struct qn_shape *s, const struct qn_machine *m,
                      const char *file, const char *bytes, size_t len,
                      struct qn_parse_error *parse_error);

/** @return QN_OK or QN_EIO. What is written reads back equal. */
int qn_tree_write_csv(const struct qn_machine *m, const struct qn_shape *s,
                      FILE *f);

/** {"format": "quoin-tree", "version": 1, "root", "latency",
 * "edges":
 *  [{"parent", "child", "order", "informed"}]}: cycles under the model. */
int qn_tree_write_json(const struct qn_machine *m, const struct qn_shape *s,
                       FILE *f);

/** Graphviz: cores boxed by memory node, edges labelled with their order.
 *  @param name  Of the graph: letters. */
int qn_tree_write_dot(const struct qn_machine *m, const struct qn_shape *s,
                      const char *name, FILE *f);

/** Read a ring's map into r->core; untouched on failure. Errors as above. */
int qn_diamond_ring_parse_map(struct qn_diamond_ring *r,
                              const struct qn_machine *m, const char *file,
                              const char *bytes, size_t len,
                              struct qn_parse_error *parse_error);

/** @return QN_OK or QN_EIO. */
int qn_diamond_ring_write_map(const struct qn_machine *m,
                              const struct qn_diamond_ring *r, FILE *f);

#endif
