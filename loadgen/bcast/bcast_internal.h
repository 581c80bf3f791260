#ifndef QN_LOADGEN_BCAST_INTERNAL_H
#define QN_LOADGEN_BCAST_INTERNAL_H

/** Parts of `quoin bench broadcast|ack`: its wishes, what it measures, and the
 *  report (bcast_report.c). */

#include <stdio.h>

#include "loadgen/bcast/drill.h"
#include "loadgen/bcast/rank.h"
#include "loadgen/bcast/seats.h"
#include "loadgen/topo/model/contender.h"

#define QN_BCAST_MAX QN_RANK_MAX /* topologies */

/** One topology. */
struct qn_bcast_row {
    struct qn_contender plan;
    struct qn_tree tree;
    double cycles;     /* predicted; NAN: unknown */
    double occupancy;  /* cycles of the busiest core; NAN: unknown */
    struct qn_drill d; /* measured */
    bool known;        /* measured in full, not cut off */
};

struct qn_bcast {
    /* options */
    const char *program; /* "quoin bench ack", before each line */
    bool acked;
    const char *machine, *cores, *format;
    char *algos; /* names, each ends with 0; own */
    size_t algos_bytes;
    uint64_t nodes, root, size, window;
    double seconds;
    /* what comes of them */
    struct qn_seats seats;
    uint32_t usable; /* cores of this process */
    bool shared;     /* fewer than nodes */
    bool interrupted;
    struct qn_bcast_row *row; /* [count]; own */
    uint32_t count;
};

/** Predicted ns of so many cycles; NAN if the clock is unknown. */
double qn_bcast_ns(const struct qn_bcast *b, double cycles);

/** Order of the topologies by measured and by predicted latency; NAN: says
 *  nothing. */
double qn_bcast_correlation(const struct qn_bcast *b);

/** @return QN_OK or QN_EIO. */
int qn_bcast_report(const struct qn_bcast *b, FILE *to);

#endif
