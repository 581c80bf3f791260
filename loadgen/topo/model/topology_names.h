#ifndef QN_LOADGEN_TOPO_MODEL_TOPOLOGY_NAMES_H
#define QN_LOADGEN_TOPO_MODEL_TOPOLOGY_NAMES_H

/**
 * Lists of topologies as options have them: "auto,ring:k=2,full,mst" are three.
 * A word that is an option of the topology before it (full, companion, map=,
 * up=) does not begin another. One thread; add allocates.
 */

#include <stddef.h>

/** All zero at first. Fields are private. */
struct qn_topology_names {
    char *text; /* names, each ends with 0; own */
    size_t bytes;
};

/** Append the names of a list. @return QN_OK or QN_ENOMEM. */
int qn_topology_names_add(struct qn_topology_names *n, const char *list);

/** The name behind `name`, or the first if that is NULL. @return NULL: there is
 *  none. */
const char *qn_topology_names_next(const struct qn_topology_names *n,
                                   const char *name);

void qn_topology_names_fini(struct qn_topology_names *n);

#endif
