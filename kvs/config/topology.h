#ifndef QN_KVS_CONFIG_TOPOLOGY_H
#define QN_KVS_CONFIG_TOPOLOGY_H

/**
 * How the server's broadcast tree is made: `--topology auto|NAME|FILE`.
 *
 *     sequential binary     by a rule that knows only how many there are: made
 *     fibonacci tree:k=N    anew for each set of living replicas and each root
 *     auto                  planned anew, likewise (core/plan/mixable_trees.h),
 * by what a message usually costs between cores that share so much (topology.c)
 *     FILE, a machine       the same, by costs as measured
 *     adaptive cluster      made once, for all replicas, by the usual costs
 *     mst mst2
 *     FILE, a tree          a plan of `quoin tree` (core/plan/plan_file.h)
 *
 * With `--machine FILE` costs are as measured, whichever of these it is.
 *
 * Trees of different moments are mixed while replicas disagree, which is safe
 * only if whoever is not the root sends to later replicas only (ordered.h). A
 * tree that was made once is therefore not bent: it says who sits where. Its
 * cores get replicas from the root down, so that every parent has a lower
 * number than its children; the root is replica 0, who leads first. What
 * happens to it when replicas are missing or another one is the root, says
 * qn_mixable_tree_from.
 *
 * Costs are about cores that work at the same time. Where replicas share cores,
 * or are not pinned, what counts is the least work: `auto` is `sequential`
 * there, and what else needs costs is refused. A tree from a file is not: it is
 * what was asked for. Nothing is predicted there.
 *
 * Called by the supervisor; the replicas inherit the result.
 */

#include "core/machine/machine.h"
#include "core/place/place.h"
#include "core/topo/tree.h"
#include "kvs/config/config.h"

struct qn_topology {
    const char *name; /* a rule of core/topo/tree.h, without the next two */
    struct qn_machine *costs; /* between replicas, index i is replica i; or
                                 NULL */
    bool measured;            /* they are, on this machine */
    bool anew;                /* each tree is planned by them */
    bool made;                /* `plan` is the tree */
    struct qn_tree plan;      /* over replicas, parents before children */
};

struct qn_topology_opts {
    const struct qn_config *config; /* checked; its text is kept */
    const struct qn_places *places; /* the cores that there are */
    struct qn_place *place;         /* [config->replicas] where each sits;
                                       changed if a tree says so */
    bool shared;                    /* replicas share cores */
};

/**
 * @param t    Filled; freed by qn_topology_fini. On failure: sequential.
 * @param why  [cap] filled with one line on failure.
 * @return QN_OK; QN_EINVAL, QN_ENOENT, QN_EIO, QN_EMSGSIZE, QN_ENOMEM.
 */
int qn_topology_make(struct qn_topology *t, const struct qn_topology_opts *o,
                     char *why, size_t cap);

void qn_topology_fini(struct qn_topology *t);

/**
 * Costs between replicas on a given machine, with costs or without: pure.
 *
 * @param costs  Filled; the labels of its cores are those of m's.
 */
int qn_topology_costs_on(struct qn_machine **costs, const struct qn_machine *m,
                         const struct qn_config *c,
                         const struct qn_place *place, char *why, size_t cap);

/** A named tree that is made once, over `costs`; `place` is put in its order.
 *  QN_OK, QN_ENOENT (no such name). Pure. */
int qn_topology_fix(struct qn_topology *t, const char *name,
                    const struct qn_machine *costs, struct qn_place *place);

/** How many replicas the tree of a file spans; 0: it is no such file, or it
 *  cannot be read. */
uint32_t qn_topology_replicas(const struct qn_config *c);

/** The i-th name, "auto" and "tree:k=N" included; NULL past the last. */
const char *qn_topology_name_at(uint32_t i);

/** Is it a name? Else it is a path. */
bool qn_topology_known(const char *text);

/** Is it the path of something that is no tree? Else costs, if they were
 *  measured, are in another file. */
bool qn_topology_is_machine(const char *text);

#endif
