#ifndef QN_CORE_TOPO_PIPELINE_SIM_H
#define QN_CORE_TOPO_PIPELINE_SIM_H

/**
 * Pipelines of operations under the machine model, by event simulation.
 *
 * Each core is a server; a message enters its queue when it is visible;
 * service is in order of visibility, ties by lower sender, then lower
 * operation. All that a message triggers belongs to the same service. The root
 * issues operation b+1 through its own queue, with an entry that is visible at
 * the end of the service that issued b. (TREES.md, Pipelines.)
 *
 * Deterministic, any thread; allocates its queue and counters.
 */

#include "core/topo/diamond_ring.h"
#include "core/topo/shape.h"

#define QN_PIPELINE_SIM_DEFAULT 128u  /* operations */
#define QN_PIPELINE_SIM_MAX     4096u /* operations */

struct qn_pipeline_sim_opts {
    uint32_t ops; /* 1 .. QN_PIPELINE_SIM_MAX */
    double work;  /* cycles of local work per core and operation, >= 0 */
    double q;     /* queued factor, 0 .. 1 */
};

/**
 * A tree. Without acknowledgements an operation is complete when every core
 * has received and worked; with them (BT) cores forward, work, and acknowledge
 * once their own work and all children's acknowledgements are done.
 *
 * @param cycles  Filled: completion of the last operation. ops / *cycles is
 *                the burst throughput; with ops = 1 it is the latency.
 * @return QN_OK, QN_EINVAL (opts), QN_ENOMEM.
 */
int qn_pipeline_sim_tree(const struct qn_machine *m, const struct qn_shape *s,
                         bool acks, const struct qn_pipeline_sim_opts *o,
                         double *cycles);

/** Acknowledged broadcasts that go down one tree and are answered along another
 *  one with the same root; as above. */
int qn_pipeline_sim_trees(const struct qn_machine *m,
                          const struct qn_shape *down,
                          const struct qn_shape *up,
                          const struct qn_pipeline_sim_opts *o, double *cycles);

/** A diamond ring (DR): the root sends and then works; the others work on the
 *  first message and forward on the last. */
int qn_pipeline_sim_ring(const struct qn_machine *m,
                         const struct qn_diamond_ring *r,
                         const struct qn_pipeline_sim_opts *o, double *cycles);

#endif
