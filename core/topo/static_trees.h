#ifndef QN_CORE_TOPO_STATIC_TREES_H
#define QN_CORE_TOPO_STATIC_TREES_H

/**
 * The static trees: shapes that are not searched for. `binary`, `fibonacci`,
 * `sequential` and `tree:k=N`, balanced with N children each, know only the
 * number of cores; `mst`, `mst2`, `bad`, `bad2` look at costs, `cluster` at
 * groups. TREES.md says what each is.
 *
 * Ranks: the root first, then the other cores ascending. Pure, any thread.
 */

#include "core/topo/shape.h"

/** Name of the i-th static tree, NULL past the last; without `tree:k=N`. The
 *  first QN_STATIC_TREES_PLAIN know only n. */
const char *qn_static_name_at(uint32_t i);
#define QN_STATIC_TREES_PLAIN 3u

/** N of "tree:k=N", 1 .. QN_CORES_MAX; 0: it is no such name. */
uint32_t qn_static_arity(const char *name);

/** Edges over ranks 0 .. n-1 of a tree that knows only n. @return QN_OK,
 *  QN_ENOENT (no such name), QN_EINVAL (n). O(n). */
int qn_static_ranks(struct qn_edges *e, const char *name, uint32_t n);

/**
 * A static tree over all cores of a machine.
 *
 * @param s     Filled; untouched on failure.
 * @param root  Index; 0, the first core, is the default of the published trees.
 * @param level Groups of `cluster`; the others do not look at it.
 * @return QN_OK; QN_ENOENT unknown name; QN_EINVAL root or level.
 *
 * O(n), mst and bad O(n^2), mst2 and bad2 up to O(n^3).
 */
int qn_static_build(struct qn_shape *s, const struct qn_machine *m,
                    const char *name, uint32_t root, enum qn_level level);

#endif
