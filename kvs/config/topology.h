#ifndef QN_KVS_CONFIG_TOPOLOGY_H
#define QN_KVS_CONFIG_TOPOLOGY_H

/**
 * How the server's broadcast tree is made: `--topology auto|NAME|FILE`.
 *
 *     ring:k=N              as auto, and a diamond ring of arity N takes the
 *                           tree's place while all replicas keep up
 *                           (paxos/dissemination/ring_choice.h)
 *     sequential binary     by a rule that knows only their number: made anew
 *     fibonacci tree:k=N    for each set of living replicas and each root
 *     auto                  planned anew, likewise (core/plan/mixable_trees.h),
 *                           by the usual cost of a message between cores that
 *                           share as much (topology.c)
 *     FILE, a machine       the same, by costs as measured
 *     adaptive cluster      made once, for all replicas, by the usual costs
 *     mst mst2
 *     FILE, a tree          a plan of `quoin tree` (core/plan/plan_file.h)
 *
 * With `--machine FILE` costs are as measured, for each of these. With measured
 * costs `auto` takes a ring, too, for pipelines as long as it is predicted to
 * be faster (core/plan/ring_or_tree.h).
 *
 * A ring takes replicas in the order of their numbers, as every tree must (see
 * below). So the planner's map of it says which core each replica gets: replica
 * 0 is the root, and the others follow along the ring.
 *
 * While replicas disagree, trees of different moments are mixed. That is safe
 * only if a replica that is not the root sends only to replicas of higher
 * number (core/plan/mixable_trees.h). A tree that was made once keeps its
 * shape, and the replicas are assigned to its cores from the root down: every
 * parent has a lower number than its children, and the root is replica 0, the
 * first leader. qn_mixable_tree_from says what happens when replicas are
 * missing or another replica is the root.
 *
 * Costs assume that cores work at the same time. Where replicas share cores, or
 * are not pinned, the least work is best: there `auto` is `sequential`, and
 * other topologies that need costs are refused. A tree from a file is accepted
 * there too, because the user asked for it. Nothing is predicted there.
 *
 * Called by the supervisor; the replicas inherit the result. Blocks only to
 * read files.
 */

#include "core/machine/machine.h"
#include "core/place/place.h"
#include "core/topo/tree.h"
#include "kvs/config/config.h"

struct qn_topology {
    const char *name; /* a rule of core/topo/tree.h, without the next two */
    struct qn_machine *costs; /* between replicas, index i is replica i; or
                                 NULL */
    bool measured;            /* the costs were measured on this machine */
    bool anew;                /* each tree is planned from the costs */
    bool made;                /* `plan` is the tree */
    struct qn_tree plan;      /* over replicas, parents before children */
    uint32_t ring;            /* arity of the ring; 0: none */
    uint32_t ring_from;       /* broadcasts that must be under way at once for
                                 the ring to be taken; 1: always */
    double ring_part;         /* of the time that a long burst would take over
                                 the ring if replicas were as they were given:
                                 predicted; 1: they are; 0: no costs, no ring */
    const char *no_ring;      /* `auto`: why there is none; else NULL */
};

struct qn_topology_opts {
    const struct qn_config *config; /* checked; its text is kept */
    const struct qn_places *places; /* the cores that there are */
    struct qn_place *place;         /* [config->replicas] where each replica
                                       is; changed if a tree or the map of a
                                       ring says so */
    bool shared;                    /* replicas share cores */
};

/**
 * Choose the topology of a server.
 *
 * @param t    Filled; freed by qn_topology_fini. On failure: sequential.
 * @param why  [cap] Filled on failure: one line that says what to do.
 * @return QN_OK; QN_EINVAL: the file, or the places, do not fit; QN_ENOENT,
 *         QN_EIO, QN_EMSGSIZE: as the readers of machines and plans;
 *         QN_ENOMEM.
 */
int qn_topology_make(struct qn_topology *t, const struct qn_topology_opts *o,
                     char *why, size_t cap);

/** Free what qn_topology_make made. */
void qn_topology_fini(struct qn_topology *t);

/**
 * Costs between replicas on a given machine, which may be without costs. Pure.
 *
 * @param costs  Filled: a machine whose index i is replica i, to be destroyed
 *               by the caller; its labels are those of m's cores.
 * @param m      The machine, borrowed.
 * @param place  [c->replicas] where each replica is.
 * @param why    [cap] Filled on failure.
 * @return QN_OK; QN_EINVAL: m lacks the core of a replica; QN_ENOMEM. *costs is
 *         untouched on failure.
 */
int qn_topology_costs_on(struct qn_machine **costs, const struct qn_machine *m,
                         const struct qn_config *c,
                         const struct qn_place *place, char *why, size_t cap);

/** A named tree that is made once, over `costs`; `place` is put in its order.
 *  Pure. @return QN_OK; QN_ENOENT: no such name, and nothing has changed. */
int qn_topology_fix(struct qn_topology *t, const char *name,
                    const struct qn_machine *costs, struct qn_place *place);

/** The number of replicas that the tree of a file spans; 0: the topology is
 *  not such a file, or it cannot be read. */
uint32_t qn_topology_replicas(const struct qn_config *c);

/** Can vacant seats do no harm? Not where the tree of a file, a plan that needs
 *  a core for each seat, a ring, or measured costs, which may choose one, is
 *  asked for: rings need all their members. Pure. */
bool qn_topology_grows(const struct qn_config *c);

#define QN_TOPOLOGY_RING_MAX 8u /* arity */

/** The i-th name, "auto", "ring:k=N" and "tree:k=N" included; NULL past the
 *  last. */
const char *qn_topology_name_at(uint32_t i);

/** True if `text` is a name; else it is a path. */
bool qn_topology_known(const char *text);

/** True if `text` is the path of a file that holds no tree. Otherwise
 *  measured costs, if any, are in another file. */
bool qn_topology_is_machine(const char *text);

#endif
