#ifndef QN_CORE_PLAN_PLAN_FILE_H
#define QN_CORE_PLAN_PLAN_FILE_H

/**
 * Trees as `quoin tree` writes them, read again: the CSV form (tree_io.h), or
 * JSON, {"format": "quoin-tree", ...} for one tree and {"format":
 * "quoin-plan", ..., "down": TREE, "up": TREE} for a plan of two. Of a plan
 * only the trees are read. A plan that is a ring is refused.
 *
 * One thread per file; reads it and allocates.
 */

#include "core/topo/shape.h"

struct qn_plan_file {
    struct qn_machine *m; /* the cores that it spans, no costs; freed by
                             qn_plan_file_fini. NULL if they were given */
    struct qn_shape down; /* over m, or over the cores that were given */
    struct qn_shape up;   /* as down, if the file has one tree */
};

/**
 * @param out   Filled; untouched on failure.
 * @param path  Borrowed.
 * @param m     The tree must span exactly its cores; NULL: any cores.
 * @return QN_OK; QN_EINVAL: unknown, missing or too many cores, two parents,
 *         cycles, orders with gaps, trees up and down with different roots;
 *         QN_ENOENT, QN_EIO, QN_EMSGSIZE, QN_ENOMEM. `parse_error` (may be
 * NULL) is filled.
 */
int qn_plan_file_load(struct qn_plan_file *out, const char *path,
                      const struct qn_machine *m,
                      struct qn_parse_error *parse_error);

void qn_plan_file_fini(struct qn_plan_file *f);

/** Does it look like one of these, cut and wrong ones included? Else it may be
 *  a machine (core/machine). A file that cannot be read does not. */
bool qn_plan_file_like(const char *path);

#endif
