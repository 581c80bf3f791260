#ifndef QN_CORE_PLAN_DIAMOND_RING_MAP_H
#define QN_CORE_PLAN_DIAMOND_RING_MAP_H

/**
 * Which core plays which part in a diamond ring.
 *
 * The published rings leave that to the cores' numbers. Here it is searched
 * for, by annealing over exchanges of two cores, from the better of the map
 * that the ring has and the cores sorted by socket, node, cache and number.
 *
 * Deterministic for a seed. Allocates scratch memory; any thread.
 */

#include "core/plan/exact/optimum.h"
#include "core/topo/diamond_ring.h"

struct qn_diamond_ring_map_opts {
    bool busy;      /* make the busiest core's cycles per broadcast small, for
                       long pipelines, instead of the latency of one */
    bool one_way;   /* with `busy`: only the links count along which a broadcast
                       reaches each node once (qn_diamond_ring_edges) */
    uint32_t root;  /* index of the core that is the root, or QN_ROOT_FREE */
    uint64_t seed;  /* of the search */
    uint64_t moves; /* to propose; 0: the default, which fits in 100 ms with
                       256 cores */
    double q;       /* queued factor, 0 .. 1; for the latency */
};

/**
 * Map a ring over all cores of a machine.
 *
 * @param r     Its map is replaced; untouched on failure.
 * @param cost  Filled: cycles, as qn_pipeline_sim_ring of one operation or
 *              qn_diamond_ring_occupancy; NULL: not wanted.
 * @return QN_OK; QN_EINVAL (root, q, another number of cores, `one_way`
 *         alone); QN_ENOMEM.
 *
 * Never worse than the map it had, if that has the root. O(links) per move.
 */
int qn_diamond_ring_map(struct qn_diamond_ring *r, const struct qn_machine *m,
                        const struct qn_diamond_ring_map_opts *o, double *cost);

/** Latency of one acknowledged broadcast over a ring as it is mapped: what
 *  qn_pipeline_sim_ring says of one operation, without a queue. */
double qn_diamond_ring_latency(const struct qn_machine *m,
                               const struct qn_diamond_ring *r, double q);

#endif
