#ifndef QN_LOADGEN_SIMULATE_SCC_SCC_PROBE_H
#define QN_LOADGEN_SIMULATE_SCC_SCC_PROBE_H

/** What single operations cost on a simulated SCC of 48 cores: put and get,
 *  alone and in a crowd, interrupts, and the stages of broadcasts that the
 *  closed model adds up. The machine is borrowed. */

#include "core/sim/timed/tiled/tiled.h"

#define QN_SCC_CORES 48u

struct qn_scc_transfer {
    bool put;    /* core 0 or all to the buffer of `peer`; else get from it */
    bool memory; /* the other end is own memory, else the own buffer */
    uint32_t peer, lines;
};

/** us of one transfer of core 0, alone. @return QN_OK, QN_EINVAL, QN_ENOMEM. */
int qn_scc_probe_transfer(double *us, const struct qn_tiled *m,
                          const struct qn_scc_transfer *t);

/** us of a transfer of each core, when the first `cores` repeat it without a
 *  pause: mean of each. @param us [QN_SCC_CORES] Filled as far as `cores`. */
int qn_scc_probe_crowd(double *us, const struct qn_tiled *m, uint32_t cores,
                       const struct qn_scc_transfer *t);

/** Core `source` interrupts the first `targets` cores, and itself if it is one
 *  of them. Core cycles from its first store until each of them has read and
 *  cleared the cause.
 *  @param cycles [QN_SCC_CORES] Filled as far as `targets`. */
int qn_scc_probe_interrupts(double *cycles, const struct qn_tiled *m,
                            uint32_t source, uint32_t targets);

/** The throughput of broadcasts, MB/s, in the closed model: all cores at
 *  distance one, none waits for another. */
struct qn_scc_model {
    double k2, k7, k47, scatter_allgather;
};

int qn_scc_probe_model(struct qn_scc_model *out, const struct qn_tiled *m);

#endif
