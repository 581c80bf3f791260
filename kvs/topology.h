#ifndef QN_KVS_TOPOLOGY_H
#define QN_KVS_TOPOLOGY_H

/**
 * How the server's broadcast tree is made: `--topology auto|NAME|FILE`.
 *
 * NAME is one of the trees that need no costs (core/topo/tree.h). `auto` and
 * FILE, a machine's file or folder (core/machine), plan the tree anew for each
 * set of living replicas and each root (core/topo/ordered.h), by what a message
 * costs between the replicas' cores: as measured in FILE, or for `auto` as
 * usual for cores that share so much (topology.c).
 *
 * A plan is about cores that work at the same time. Where replicas share cores,
 * or are not pinned, what counts is the least work: `auto` is `sequential`
 * there, and FILE is refused.
 *
 * Called once, by the supervisor; the replicas inherit the costs.
 */

#include "core/machine/machine.h"
#include "core/place/place.h"
#include "kvs/config.h"

/**
 * Costs between the replicas.
 *
 * @param costs   Filled: index i is replica i; freed by qn_machine_destroy.
 *                NULL: there is no plan, the tree is qn_topology_name.
 * @param c       Checked. Borrowed.
 * @param place   [c->replicas] where each sits. Borrowed.
 * @param shared  Replicas share cores.
 * @param why     [cap] filled with one line on failure.
 * @return QN_OK; QN_EINVAL, QN_ENOENT, QN_EIO, QN_ENOMEM.
 */
int qn_topology_costs(struct qn_machine **costs, const struct qn_config *c,
                      const struct qn_place *place, bool shared, char *why,
                      size_t cap);

/** The same on a given machine, with costs or without: pure. */
int qn_topology_costs_on(struct qn_machine **costs, const struct qn_machine *m,
                         const struct qn_config *c,
                         const struct qn_place *place, char *why, size_t cap);

/** The tree without costs: a name in core/topo/tree.h. */
const char *qn_topology_name(const struct qn_config *c);

/** Is it a name, or "auto"? Else it is a path. */
bool qn_topology_known(const char *text);

#endif
