#ifndef QN_KVS_RESOURCES_BUDGET_H
#define QN_KVS_RESOURCES_BUDGET_H

/**
 * How much a server may store: from the memory that it can have to the logical
 * bytes of one replica's store, `maxmemory`.
 *
 * Memory is the least of what the machine has free and what the control group
 * leaves, for all replicas together; and for each process the address space
 * that `ulimit -v` allows. Of it the replicas take first what does not grow
 * with the store:
 *
 *     lanes, tables               at start
 *     ring, or log                repl-backlog-size, when somebody lags
 *     values on their way         twice proto-max-bulk-len; those in an arena
 *                                 among them
 *     mapped rings, arenas        address space: its own, its peers', and one
 *                                 that has ended for each of these
 *
 * What is left is shared by all. Of its share a replica's store may take 4/11:
 * the allocator loses a quarter of that beside it at worst, a donor keeps a
 * quarter in old versions (kvs/snapshot/state_transfer.h), and who fell behind
 * builds a second store beside the old one. One replica alone has neither
 * donors nor joiners.
 *
 * Pure, but for the limits that the caller has read.
 */

#include "kvs/config/config.h"
#include "kvs/resources/resource_check.h"

#define QN_BUDGET_LEAST       ((uint64_t)1 << 20) /* maxmemory worth a start */
/** repl-backlog-size, when automatic. */
#define QN_BUDGET_BACKLOG     ((uint64_t)256 << 20) /* at most */
#define QN_BUDGET_BACKLOG_MIN ((uint64_t)4 << 20)   /* at least */

/** Address space of a ring's batches, of a configuration without anything
 *  automatic. */
uint64_t qn_budget_ring(const struct qn_config *c);

/** Of an arena's commands, likewise. A longer one, or one for which there is no
 *  place, travels through the lanes. */
uint64_t qn_budget_arena(const struct qn_config *c);

/** What was worked out, for people. */
struct qn_budget {
    char said[QN_CONFIG_WHY_MAX]; /* the limit and where it comes from; "": as
                                     told, and it fits */
    bool beyond;                  /* it is more than fits for certain */
};

/**
 * Work out `maxmemory` and `repl-backlog-size` where they are automatic.
 *
 * @param c           Checked; the two are numbers afterwards. Where nothing is
 *                    known of the memory there is no limit (0).
 * @param lane_bytes  Of one lane, from the transport.
 * @param b           Filled; on failure `said` is why the server cannot start.
 * @return QN_OK; QN_ENOMEM: not even QN_BUDGET_LEAST would be left, or the
 *         address space does not hold what is mapped.
 */
int qn_budget_make(const struct qn_resource_limits *l, struct qn_config *c,
                   size_t lane_bytes, struct qn_budget *b);

#endif
