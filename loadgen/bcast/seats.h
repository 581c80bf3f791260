#ifndef QN_LOADGEN_BCAST_SEATS_H
#define QN_LOADGEN_BCAST_SEATS_H

/**
 * Which core each node of a measured group sits on, and the machine that its
 * topologies are planned on: index i of that machine is node i.
 *
 * More nodes than the machine has cores are dealt over them in turn. A message
 * between two that share a core then costs what one costs on average: there is
 * nothing that could be measured. Such a machine's cores are numbered as the
 * nodes.
 *
 * Not thread-safe; make allocates.
 */

#include <stdbool.h>

#include "core/machine/machine.h"
#include "core/node.h"

struct qn_seats {
    struct qn_machine *m; /* of `nodes` cores; own */
    uint32_t nodes;
    bool costs_known;            /* false: the machine has one core */
    uint32_t home[QN_NODES_MAX]; /* [nodes] core as the machine numbers it */
    uint32_t core[QN_NODES_MAX]; /* [nodes] CPU that each is pinned to */
    uint32_t cores;              /* different ones among them */
};

/**
 * @param s      Filled but for core and cores; qn_seats_fini frees it.
 * @param m      With costs. Borrowed.
 * @param nodes  1 .. QN_NODES_MAX. Fewer than m has cores: dealt round robin
 *               over the memory nodes.
 * @return QN_OK, QN_EINVAL, QN_ENOMEM.
 */
int qn_seats_make(struct qn_seats *s, const struct qn_machine *m,
                  uint32_t nodes);

/** Fill core and cores: home where this process may use it, else the usable
 *  ones in turn. @param usable [count] CPU numbers, count > 0. Borrowed. */
void qn_seats_sit(struct qn_seats *s, const uint32_t *usable, uint32_t count);

void qn_seats_fini(struct qn_seats *s);

#endif
