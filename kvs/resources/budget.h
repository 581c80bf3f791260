#ifndef QN_KVS_RESOURCES_BUDGET_H
#define QN_KVS_RESOURCES_BUDGET_H

/**
 * How much a server may store: derives `maxmemory`, the logical bytes of one
 * replica's store, from the memory that the server can have.
 *
 * All replicas together have the smaller of two numbers: the free memory of the
 * machine, and what the control group leaves. Each process has the address
 * space that `ulimit -v` allows. From these the replicas first take what does
 * not grow with the store:
 *
 *     lanes, tables               at start
 *     ring, or log                repl-backlog-size, when a replica lags
 *     values on their way         twice proto-max-bulk-len; those in an arena
 *                                 among them
 *     mapped rings, arenas        address space: its own, its peers', and one
 *                                 that has ended for each of these
 *
 * The replicas that begin the group share the rest; if the operator has set
 * --replicas-max, it is divided by that. A replica's store may take 4/11 of its
 * share: at worst the allocator loses a quarter of the store's size, a donor
 * keeps a quarter in old versions (kvs/snapshot/snapshot_content.h), and a
 * replica that fell behind builds a second store beside the old one. A single
 * replica is neither donor nor joiner.
 *
 * One more replica fits if all stores have room when they are full, without
 * second ones, and the newcomer's as above, and its donor's old versions. So a
 * group whose limit is automatic can grow from three to four replicas; a single
 * replica has the memory for itself, and its limit is lowered first.
 *
 * Pure, any thread; the caller has read the limits.
 */

#include "core/node.h"
#include "kvs/config/config.h"
#include "kvs/resources/resource_check.h"

#define QN_BUDGET_LEAST       ((uint64_t)1 << 20) /* maxmemory worth a start */
/** repl-backlog-size, when automatic. */
#define QN_BUDGET_BACKLOG     ((uint64_t)256 << 20) /* at most */
#define QN_BUDGET_BACKLOG_MIN ((uint64_t)4 << 20)   /* at least */

/** Address space of a ring's batches, of a configuration without anything
 *  automatic. */
uint64_t qn_budget_ring(const struct qn_config *c);

/** Address space of an arena, likewise. A command that is longer, or finds no
 *  room there, travels through the lanes. */
uint64_t qn_budget_arena(const struct qn_config *c);

/** The result, as text for the log. */
struct qn_budget {
    char said[QN_CONFIG_WHY_MAX]; /* the limit and where it comes from; "": as
                                     told, and it fits */
    bool beyond;                  /* it is more than fits for certain */
};

/**
 * Work out `maxmemory` and `repl-backlog-size` where they are automatic.
 *
 * @param c           Checked; the two are numbers afterwards. If the memory is
 *                    unknown, there is no limit (0).
 * @param channels  What the transport needs.
 * @param b           Filled; on failure `said` says why the server cannot
 *                    start.
 * @return QN_OK; QN_ENOMEM: not even QN_BUDGET_LEAST would be left, or the
 *         address space does not hold what is mapped.
 */
int qn_budget_make(const struct qn_resource_limits *l, struct qn_config *c,
                   const struct qn_transport_bytes *channels,
                   struct qn_budget *b);

/** Lower automatic seats until the address space holds what each process maps
 *  of all, with a whole backlog; to the number of replicas at least. */
void qn_budget_seats(const struct qn_resource_limits *l, struct qn_config *c,
                     const struct qn_transport_bytes *channels);

/** The replicas that are there when one more is to come. */
struct qn_budget_group {
    uint32_t members;            /* 1 or more */
    uint64_t used[QN_NODES_MAX]; /* [members] bytes that each has taken, its
                                    own private ones and its outbox */
    uint64_t maxmemory;          /* in force; 0: no limit */
};

/**
 * Has the machine, as it is now, the memory for one more replica when all
 * stores grow to the limit? (Address space is as for the others.) Without a
 * limit only what comes before the first key is counted.
 *
 * @param c     Without anything automatic.
 * @param fits  Filled if not: the limit with which it would have; 0: with none.
 */
bool qn_budget_one_more(const struct qn_resource_limits *l,
                        const struct qn_config *c,
                        const struct qn_transport_bytes *channels,
                        const struct qn_budget_group *g, uint64_t *fits);

/** The device of a group, if its transport has one. It is strict: what it
 *  leaves open, it does wrong now and then. Pure. */
struct qn_device_opts qn_budget_device(const struct qn_config *c);

#endif
