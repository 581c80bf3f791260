#ifndef QN_LOADGEN_TOPO_MODEL_SWEEP_H
#define QN_LOADGEN_TOPO_MODEL_SWEEP_H

/**
 * All machines of a folder, all topologies, all operations, groups of every
 * size: predicted costs, and their ratios to the planner's.
 *
 * A group of size g is the first g of a machine's cores dealt round robin over
 * its memory nodes (cores.h). Groups are shared among threads; the result does
 * not depend on the number of threads.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "loadgen/topo/model/topology_spec.h"

#define QN_SWEEP_TOPOS    24u
#define QN_SWEEP_GOALS    6u /* from broadcast to throughput */
#define QN_SWEEP_MACHINES 256u

/** The first two rows: planned with a free root, and with the first core as
 *  root. */
enum { QN_SWEEP_AUTO, QN_SWEEP_AUTO_FIRST, QN_SWEEP_OTHERS };

struct qn_sweep_group {
    uint32_t machine; /* index */
    uint32_t size;    /* cores */
    double cost[QN_SWEEP_TOPOS]
               [QN_SWEEP_GOALS]; /* cycles; NAN: operation not supported */
};

struct qn_sweep_opts {
    const char *folder;             /* folder of machines, or one machine */
    const char *sizes;              /* "2,4,8-16", "full"; NULL: all from 2 */
    uint32_t threads;               /* at least 1 */
    bool live;                      /* a line of progress on stderr */
    struct qn_topology_spec_opts o; /* goal and root are set here */
};

struct qn_sweep {
    uint32_t machines;
    struct qn_machine *machine[QN_SWEEP_MACHINES]; /* by file name */
    uint32_t topos;
    const char *topo[QN_SWEEP_TOPOS]; /* names */
    uint32_t groups;
    struct qn_sweep_group *group; /* [groups] by machine, then size */
    double seconds;               /* duration of planning */
    uint32_t threads;
};

/**
 * @param out    Filled; freed by qn_sweep_destroy.
 * @param fault  Filled on failure.
 * @return QN_OK; QN_ENOENT (no machine found), QN_EINVAL (invalid file or
 *         `sizes`), QN_EIO, QN_EMSGSIZE, QN_ENOMEM.
 */
int qn_sweep_run(struct qn_sweep **out, const struct qn_sweep_opts *o,
                 struct qn_parse_error *parse_error);

/** NULL is allowed. */
void qn_sweep_destroy(struct qn_sweep *s);

/** @return whether the topology is a static tree rooted at the first core. */
bool qn_sweep_is_static(const struct qn_sweep *s, uint32_t topo);

/**
 * Geometric mean of a topology's cost over that of `auto`.
 *
 * @param machine  Index; UINT32_MAX: each machine counts once.
 * @param size     Cores; 0: all sizes; UINT32_MAX: whole machines only.
 * @return NAN if there is none.
 */
double qn_sweep_times(const struct qn_sweep *s, uint32_t topo, uint32_t goal,
                      uint32_t machine, uint32_t size);

/** The same ratio for the best static tree of each group, relative to row
 *  `than`. */
double qn_sweep_gain(const struct qn_sweep *s, uint32_t than, uint32_t goal,
                     uint32_t size);

/** Writes the tables. */
void qn_sweep_write_text(const struct qn_sweep *s, FILE *to);

/** Writes machine,cores,size,topology,op,cycles,times_auto: one line per
 *  number. */
void qn_sweep_write_csv(const struct qn_sweep *s, FILE *to);

#endif
