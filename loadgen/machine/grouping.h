#ifndef QN_LOADGEN_MACHINE_GROUPING_H
#define QN_LOADGEN_MACHINE_GROUPING_H

/**
 * Cores in the order of the hierarchy, and the distance of two cores. Pure, any
 * thread.
 */

#include "core/machine/machine.h"

/** Closest level that two cores share. */
enum qn_distance {
    QN_SAME_CORE, /* two threads of a physical core */
    QN_SAME_CACHE,
    QN_SAME_NODE,    /* and socket */
    QN_SAME_SOCKET,  /* another node of the same socket */
    QN_OTHER_SOCKET, /* the node may still be the same */
    QN_DISTANCES,
};

/** "same core", ...; NULL past the last. */
const char *qn_distance_name(uint32_t distance);

enum qn_distance qn_distance_of(const struct qn_machine *m, uint32_t u,
                                uint32_t v);

/** Indices of the cores by socket, node, cache, physical core and number.
 *  @param order  [m->n] Filled. */
void qn_grouping_order(const struct qn_machine *m, uint32_t *order);

/** Number of sockets, nodes, caches and physical cores. */
struct qn_grouping_counts {
    uint32_t sockets, nodes, caches, phys;
};
void qn_grouping_count(const struct qn_machine *m,
                       struct qn_grouping_counts *c);

/** Costs of one distance, over ordered pairs. */
struct qn_range {
    double least, median, most;
};
struct qn_distance_costs {
    uint32_t pairs;    /* ordered pairs; 0: nothing else is filled */
    uint32_t unstable; /* unstable pairs */
    struct qn_range send, receive;
    struct qn_range round_trip; /* 0 if unknown */
};

/** @param costs  [QN_DISTANCES] Filled. @return QN_OK or QN_ENOMEM. */
int qn_grouping_costs(const struct qn_machine *m,
                      struct qn_distance_costs *costs);

#endif
