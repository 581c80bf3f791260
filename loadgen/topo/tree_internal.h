#ifndef QN_LOADGEN_TOPO_TREE_INTERNAL_H
#define QN_LOADGEN_TOPO_TREE_INTERNAL_H

/** Parts of `quoin tree`: its wishes, what it compares, who writes what. */

#include <stdio.h>

#include "loadgen/topo/contender.h"

#define QN_TREE_ALGOS_MAX 32u
#define QN_TREE_RIVALS    64u

/** What one run is about. */
struct qn_tree_job {
    const struct qn_machine *m; /* restricted to the cores asked for */
    struct qn_contender_opts o;
    const char *goal;           /* its name */
    double bound;               /* cycles */
    struct qn_contender *rival; /* [count]; the first is the plan */
    double *cost;               /* [count] cycles, NAN: not its operation */
    uint32_t count;
};

/** A table of all rivals, the bound, the plan's edges. */
void qn_tree_write_text(const struct qn_tree_job *j, FILE *to);

/** The same as one JSON object. @return QN_OK or QN_EIO. */
int qn_tree_write_plan_json(const struct qn_tree_job *j, FILE *to);

/** The plan as Graphviz. @return QN_OK or QN_EIO. */
int qn_tree_write_plan_dot(const struct qn_tree_job *j, FILE *to);

#endif
