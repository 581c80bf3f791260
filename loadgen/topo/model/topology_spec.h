#ifndef QN_LOADGEN_TOPO_MODEL_TOPOLOGY_SPEC_H
#define QN_LOADGEN_TOPO_MODEL_TOPOLOGY_SPEC_H

/**
 * A topology by its name, and its cost: what `quoin tree` compares.
 *
 *     auto                 planned for the requested operation
 *     adaptive             the published generator
 *     binary sequential fibonacci mst mst2 cluster bad bad2
 *     tree:k=3             balanced, 3 children each
 *     ring:k=2             diamond ring; ",full", ",companion", ",map=MAP"
 *     FILE                 .csv: a tree in the exchange format; .json: a tree
 *                          or a plan as `quoin tree` writes it; ",up=FILE":
 *                          the tree of the way up is in another file
 *
 * If no root is given, `auto`, `adaptive` and searched maps choose their own, a
 * file contains one, and all others use the first core.
 *
 * A ring's map is `latency` or `busy` (searched for,
 * core/plan/diamond_ring_map.h), `identity` (the root, then the other cores
 * ascending) or a FILE. Without a map it is searched for: busy for throughput
 * and stream, else latency. A map from a file has its own root.
 *
 * Trees are used in both directions; only the planner and files have two
 * different ones. Rings support acknowledged broadcasts and no other operation.
 *
 * One thread per topology; qn_topology_spec_make reads files and allocates.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/machine/machine.h"
#include "core/plan/plan.h"
#include "core/topo/diamond_ring.h"
#include "loadgen/topo/model/timeline.h"

#define QN_TOPOLOGY_SPEC_NAME 96u

struct qn_topology_spec_opts {
    enum qn_goal goal;   /* of the planner and of maps */
    uint32_t root;       /* index, or QN_ROOT_FREE: see above */
    enum qn_level level; /* groups of cluster and adaptive */
    double q;            /* queued factor, 0 .. 1 */
    uint64_t seed;       /* of searches */
    uint64_t moves;      /* of each search, 0: its default */
    double busy_most;    /* qn_plan_opts.max_occupancy */
    bool one_tree;       /* of the planner */
    bool robust;         /* of the planner */
};

struct qn_topology_spec {
    char name[QN_TOPOLOGY_SPEC_NAME];
    struct qn_shape down; /* not of a ring */
    struct qn_shape up;
    bool two_trees; /* up differs from down */
    bool exact;     /* proven optimal for its goal */
    bool provable;  /* more moves can prove optimality */
    struct qn_diamond_ring
        *ring;     /* NULL: trees; freed by qn_topology_spec_fini */
    uint32_t root; /* index */
};

/** The kind of a name, and so which options have an effect. */
enum qn_topology_spec_kind {
    QN_TOPOLOGY_SPEC_PLANNED, /* auto: seed, moves, one_tree, robust */
    QN_TOPOLOGY_SPEC_MAPPED, /* a ring whose map is searched for: seed, moves */
    QN_TOPOLOGY_SPEC_GROUPED, /* cluster and adaptive: level */
    QN_TOPOLOGY_SPEC_FIXED,   /* other rules, files, and invalid names */
};

enum qn_topology_spec_kind qn_topology_spec_kind(const char *name);

/**
 * @param c      Filled.
 * @param name   See above. Borrowed.
 * @param fault  Filled on failure: one line that says what to do.
 * @return QN_OK; QN_EINVAL (name, file, arity), QN_ENOENT, QN_EIO, QN_EMSGSIZE,
 *         QN_ENOMEM.
 */
int qn_topology_spec_make(struct qn_topology_spec *c,
                          const struct qn_machine *m, const char *name,
                          const struct qn_topology_spec_opts *o,
                          struct qn_parse_error *parse_error);

void qn_topology_spec_fini(struct qn_topology_spec *c);

/** Latency, or for throughput and stream cycles of the busiest core per
 *  operation; NAN: the topology does not support the operation. */
double qn_topology_spec_cost(const struct qn_topology_spec *c,
                             const struct qn_machine *m, enum qn_goal goal,
                             double q);

/**
 * A sequence of QN_PIPELINE_SIM_DEFAULT acknowledged broadcasts.
 *
 * @param cycles  Filled: per operation.
 * @return QN_OK; QN_ENOMEM.
 */
int qn_topology_spec_burst(const struct qn_topology_spec *c,
                           const struct qn_machine *m, double q,
                           double *cycles);

/** Messages on the longest path until all cores are informed. */
uint32_t qn_topology_spec_depth(const struct qn_topology_spec *c);

/** The largest number of messages that a core sends per broadcast. */
uint32_t qn_topology_spec_degree(const struct qn_topology_spec *c);

/** The timeline of one operation. @return QN_OK; QN_ENOENT (operation not
 *  supported); QN_ENOMEM. */
int qn_topology_spec_timeline(struct qn_timeline **out,
                              const struct qn_topology_spec *c,
                              const struct qn_machine *m, enum qn_goal goal,
                              double q);

/** Name of the i-th topology that is always compared, NULL past the last:
 *  "adaptive", the static trees, balanced ones and lean rings of up to 4. */
const char *qn_topology_spec_name_at(uint32_t i);

/**
 * A lower bound for all trees: cycles; 0: no bound is known. For a broadcast
 * the optimum for equal cores with the smallest costs of the machine; for a
 * reduction the same with sends and receives exchanged, as time runs backwards.
 */
double qn_topology_spec_bound(const struct qn_machine *m, enum qn_goal goal,
                              double q);

#endif
