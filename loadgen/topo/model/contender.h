#ifndef QN_LOADGEN_TOPO_MODEL_CONTENDER_H
#define QN_LOADGEN_TOPO_MODEL_CONTENDER_H

/**
 * A topology by its name, and what it costs: what `quoin tree` compares.
 *
 *     auto                 the planner's, for the goal that is asked for
 *     adaptive             the published generator
 *     binary sequential fibonacci mst mst2 cluster bad bad2
 *     tree:k=3             balanced, 3 children each
 *     ring:k=2             diamond ring; ",full", ",companion", ",map=MAP"
 *     FILE                 .csv: a tree in the exchange format; .json: a tree
 *                          or a plan as `quoin tree` writes it; ",up=FILE":
 *                          the tree of the way up is in another file
 *
 * Without a root that is asked for, `auto`, `adaptive` and searched maps choose
 * their own, a file has one, all others take the first core.
 *
 * A ring's map is `latency` or `busy` (searched for,
 * core/plan/diamond_ring_map.h), `identity` (the root, then the other cores
 * ascending) or a FILE. Without one it is searched for: busy for throughput and
 * stream, else latency. A map from a file has a root of its own.
 *
 * Trees go down and up; only the planner and files have two different ones.
 * Rings are acknowledged broadcasts and know no other operation.
 *
 * One thread per contender; make reads files and allocates.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/machine/machine.h"
#include "core/plan/plan.h"
#include "core/topo/diamond_ring.h"
#include "loadgen/topo/model/timeline.h"

#define QN_CONTENDER_NAME 96u

struct qn_contender_opts {
    enum qn_goal goal;   /* of the planner and of maps */
    uint32_t root;       /* index, or QN_ROOT_FREE: as said above */
    enum qn_level level; /* groups of cluster and adaptive */
    double q;            /* queued factor, 0 .. 1 */
    uint64_t seed;       /* of searches */
    uint64_t moves;      /* of each search, 0: its default */
    double busy_most;    /* qn_plan_opts.max_occupancy */
    bool one_tree;       /* of the planner */
    bool robust;         /* of the planner */
};

struct qn_contender {
    char name[QN_CONTENDER_NAME];
    struct qn_shape down; /* not of a ring */
    struct qn_shape up;
    bool two_trees;               /* up differs from down */
    bool exact;                   /* proven to be the best for its goal */
    bool provable;                /* more moves would prove the best */
    struct qn_diamond_ring *ring; /* NULL: trees; freed by qn_contender_fini */
    uint32_t root;                /* index */
};

/** What a name asks for, and so which options have a use. */
enum qn_contender_kind {
    QN_CONTENDER_PLANNED, /* auto: seed, moves, one_tree, robust */
    QN_CONTENDER_MAPPED,  /* a ring whose map is searched for: seed, moves */
    QN_CONTENDER_GROUPED, /* cluster and adaptive: level */
    QN_CONTENDER_FIXED,   /* other rules and files, and what is no name */
};

enum qn_contender_kind qn_contender_kind(const char *name);

/**
 * @param c      Filled.
 * @param name   As above. Borrowed.
 * @param fault  Filled on failure: one line that says what to do.
 * @return QN_OK; QN_EINVAL (name, file, arity), QN_ENOENT, QN_EIO, QN_EMSGSIZE,
 *         QN_ENOMEM.
 */
int qn_contender_make(struct qn_contender *c, const struct qn_machine *m,
                      const char *name, const struct qn_contender_opts *o,
                      struct qn_parse_error *parse_error);

void qn_contender_fini(struct qn_contender *c);

/** Latency, or for throughput and stream cycles of the busiest core per
 *  operation; NAN: this topology does not do that. */
double qn_contender_cost(const struct qn_contender *c,
                         const struct qn_machine *m, enum qn_goal goal,
                         double q);

/**
 * Acknowledged broadcasts one after the other: QN_PIPELINE_SIM_DEFAULT of them.
 *
 * @param cycles  Filled: per operation.
 * @return QN_OK; QN_ENOMEM.
 */
int qn_contender_burst(const struct qn_contender *c, const struct qn_machine *m,
                       double q, double *cycles);

/** Messages of the longest path that it takes for all to be informed. */
uint32_t qn_contender_depth(const struct qn_contender *c);

/** Most messages that a core sends per broadcast. */
uint32_t qn_contender_degree(const struct qn_contender *c);

/** Who is busy when. @return QN_OK; QN_ENOENT (not its operation);
 *  QN_ENOMEM. */
int qn_contender_timeline(struct qn_timeline **out,
                          const struct qn_contender *c,
                          const struct qn_machine *m, enum qn_goal goal,
                          double q);

/** Name of the i-th topology that is always compared, NULL past the last:
 *  "adaptive", the static trees, balanced ones and lean rings of up to 4. */
const char *qn_contender_name_at(uint32_t i);

/**
 * No tree can be faster: cycles, 0: nothing is known. Of a broadcast the
 * optimum for equal cores with the least costs of the machine; of a reduction
 * the same with sends and receives exchanged, as time runs backwards.
 */
double qn_contender_bound(const struct qn_machine *m, enum qn_goal goal,
                          double q);

#endif
