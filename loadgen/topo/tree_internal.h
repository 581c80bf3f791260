#ifndef QN_LOADGEN_TOPO_TREE_INTERNAL_H
#define QN_LOADGEN_TOPO_TREE_INTERNAL_H

/** Parts of `quoin tree`: its options, what it compares, and its output. */

#include <stdio.h>

#include "loadgen/topo/model/topology_spec.h"

#define QN_TREE_ALGOS_MAX 32u
#define QN_TREE_RIVALS    64u

/** The input and the results of one run. */
struct qn_tree_job {
    const struct qn_machine *m; /* restricted to the cores asked for */
    struct qn_topology_spec_opts o;
    const char *goal;               /* name of the operation */
    double bound;                   /* cycles */
    struct qn_topology_spec *rival; /* [count]; the first is the plan */
    double *cost;                   /* cycles; NAN: operation not supported */
    uint32_t count;
};

struct qn_compare;
struct qn_sweep;

#define QN_TREE_ROOT_NONE UINT64_MAX

#define QN_TREE_MACHINES                                                       \
    "live (measured now), a machine file, or a folder with numa.csv and "      \
    "pairwise.csv"

/** The command line, and the state that follows from it. */
struct qn_tree_command {
    const char *machine, *cores, *format, *output, *up_file;
    const char *algo[QN_TREE_ALGOS_MAX];
    uint32_t algos;
    enum qn_goal goal;
    enum qn_level level;
    uint64_t root, seed, moves;
    double q;
    bool explain, compare, one_tree, robust;
    struct qn_compare *compared;
    const char *sweep, *sizes;
    uint64_t threads;
    struct qn_sweep *sweep_result;
    struct qn_machine *m;
    struct qn_tree_job job;
    struct qn_topology_spec rival[QN_TREE_RIVALS];
    double cost[QN_TREE_RIVALS];
};

/** Runs the command and frees what it allocated in c. @return the exit status,
 *  after a line on stderr if it is not 0. */
int qn_tree_run(struct qn_tree_command *c);

/** A table of all rivals, the bound, the plan's edges. */
void qn_tree_write_text(const struct qn_tree_job *j, FILE *to);

/** The same as one JSON object. @return QN_OK or QN_EIO. */
int qn_tree_write_plan_json(const struct qn_tree_job *j, FILE *to);

/** The plan as Graphviz. @return QN_OK or QN_EIO. */
int qn_tree_write_plan_dot(const struct qn_tree_job *j, FILE *to);

#endif
