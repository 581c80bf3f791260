#ifndef QN_LOADGEN_BCAST_CORE_MAPPING_H
#define QN_LOADGEN_BCAST_CORE_MAPPING_H

/**
 * Maps the nodes of a measured group to cores, and makes the machine on which
 * its topologies are planned: index i of that machine is node i.
 *
 * If there are more nodes than cores, the cores are dealt to the nodes in turn.
 * A message between two nodes on the same core then has the average cost, since
 * it cannot be measured; the cores of such a machine have the numbers of the
 * nodes.
 *
 * Not thread-safe; make allocates.
 */

#include <stdbool.h>

#include "core/machine/machine.h"
#include "core/node.h"

struct qn_core_mapping {
    struct qn_machine *m; /* machine of `nodes` cores; own */
    uint32_t nodes;
    bool costs_known;            /* false: the machine has one core */
    uint32_t home[QN_NODES_MAX]; /* [nodes] core number on the machine */
    uint32_t core[QN_NODES_MAX]; /* [nodes] CPU to which each node is pinned */
    uint32_t cores;              /* number of different CPUs among them */
};

/**
 * Make the mapping.
 *
 * @param s      Filled, except core and cores; qn_core_mapping_fini frees it.
 * @param m      With costs. Borrowed.
 * @param nodes  1 .. QN_NODES_MAX. If fewer than m has cores: dealt round robin
 *               over the memory nodes.
 * @return QN_OK, QN_EINVAL, QN_ENOMEM.
 */
int qn_core_mapping_make(struct qn_core_mapping *s, const struct qn_machine *m,
                         uint32_t nodes);

/** Fill core and cores: home if this process may use it, else the usable CPUs
 *  in turn. @param usable [count] CPU numbers, count > 0. Borrowed. */
void qn_core_mapping_assign(struct qn_core_mapping *s, const uint32_t *usable,
                            uint32_t count);

void qn_core_mapping_fini(struct qn_core_mapping *s);

#endif
