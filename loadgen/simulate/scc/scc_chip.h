#ifndef QN_LOADGEN_SIMULATE_SCC_SCC_CHIP_H
#define QN_LOADGEN_SIMULATE_SCC_SCC_CHIP_H

/**
 * The chip of transports/mpb on the timed machine: the same sources of
 * broadcasts, each access priced as on an SCC (core/sim/timed/tiled/scc.h). A
 * load of a word is the read of a flag, a drain the write of one.
 *
 * For nodes of one run. A line shows what was visible when its read began.
 */

#include "core/sim/timed/tiled/scc.h"
#include "transports/mpb/chip.h"

struct qn_scc_chip; /* opaque */

/** All buffers are 0. NULL: no memory. */
struct qn_scc_chip *qn_scc_chip_create(uint32_t nodes);
void qn_scc_chip_free(struct qn_scc_chip *c);

/** The attachment of a node, which lives as long as the chip. */
struct qn_mpb *qn_scc_chip_core(struct qn_scc_chip *c, qn_node_t node);

/** The memory of this node's next message: none of it is in the node's caches,
 *  what it moves from now on is. @return QN_OK, QN_ENOMEM: then all is
 *  fetched. */
int qn_scc_chip_message(struct qn_mpb *m, const void *message, uint32_t lines);

/** The running node waits until an interrupt has come, at most until `until`.
 */
void qn_scc_chip_wait(struct qn_mpb *m, qn_ps_t until);

#endif
