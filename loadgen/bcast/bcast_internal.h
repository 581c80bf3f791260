#ifndef QN_LOADGEN_BCAST_INTERNAL_H
#define QN_LOADGEN_BCAST_INTERNAL_H

/** Parts of `quoin bench broadcast`, `ack`, `reduce`, `allreduce`, `barrier`
 * and `commit`: their options, results, and the report (bcast_report.c). */

#include <stdio.h>

#include "loadgen/bcast/bcast_run.h"
#include "loadgen/bcast/core_mapping.h"
#include "loadgen/bcast/rank.h"
#include "loadgen/topo/model/topology_names.h"
#include "loadgen/topo/model/topology_spec.h"

#define QN_BCAST_MAX QN_RANK_MAX /* topologies */

/** One topology. */
struct qn_bcast_row {
    struct qn_topology_spec plan;
    struct qn_tree tree;          /* of a ring: its members and root */
    double cycles;                /* predicted; NAN: unknown */
    double occupancy;             /* cycles of the busiest core; NAN: unknown */
    struct qn_operation_result d; /* measured */
    bool known;                   /* measured completely, not interrupted */
};

/** What is measured. */
struct qn_bcast_kind {
    enum qn_collective op;
    const char *program; /* "quoin bench ack", first words of each line */
    const char *name;    /* "ack", in JSON */
    const char *title;   /* "acknowledged broadcast" */
    const char *latency; /* what the latency is */
    const char *shared;  /* the same if nodes share cores; NULL: the same */
    const char *summary; /* for --help */
    uint64_t size_max;   /* bytes; 0: no --size */
    bool window;         /* --window */
    bool pthread;        /* beside pthread_barrier */
};

struct qn_bcast {
    /* options */
    const struct qn_bcast_kind *kind;
    const char *machine, *cores, *format, *plot;
    struct qn_topology_names algos;
    uint64_t nodes, root, size, window, sources;
    double seconds;
    /* state */
    struct qn_core_mapping mapping;
    uint32_t usable; /* cores of this process */
    bool shared;     /* fewer cores than nodes */
    bool interrupted;
    struct qn_bcast_row *row; /* [count]; own */
    uint32_t count;
    struct qn_bcast_row pthread; /* the yardstick; no plan and no prediction */
};

/** By its name (asserted). */
const struct qn_bcast_kind *qn_bcast_kind(const char *name);

/** Predicted ns of a number of cycles; NAN if the clock is unknown. */
double qn_bcast_ns(const struct qn_bcast *b, double cycles);

/** Rank correlation of measured and predicted latency over the topologies; NAN:
 *  undefined. */
double qn_bcast_correlation(const struct qn_bcast *b);

/** @return QN_OK or QN_EIO. */
int qn_bcast_report(const struct qn_bcast *b, FILE *to);

/** A picture of the latencies (bcast_plot.c). The caller checks ferror(). */
void qn_bcast_plot(const struct qn_bcast *b, FILE *to);

#endif
