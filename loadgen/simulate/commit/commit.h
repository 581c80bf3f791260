#ifndef QN_LOADGEN_SIMULATE_COMMIT_H
#define QN_LOADGEN_SIMULATE_COMMIT_H

/**
 * 1Paxos on the simulated manycore: a group of replicas, each the shipped
 * driver on a core of its own, with clients, faults and the invariants checked.
 *
 * Each replica is a node of the timed machine (core/sim/timed) and makes turns
 * as a server does: look for peers that have ended or are stalled, turn of the
 * driver, clients, flush; it spins for the spin budget before it parks. Clients
 * are closed loops inside their replica: each has one operation under way, a
 * write through the log or a linearizable read by the read index.
 *
 * A run has three parts: warm-up, load (measured), and settling, in which all
 * that was begun is applied everywhere. Then the invariants have held, or
 * `broken` says which one has not:
 *
 *   - all replicas apply one history, each command of an origin once and in
 *     order, no slot twice, stamps do not fall, and the bytes are the client's;
 *   - what is applied was published in the read index before;
 *   - a read finds every write that was answered before it began;
 *   - at the end the living replicas have applied the same, all that living
 *     ones have submitted is in it, and nothing that was not submitted.
 *
 * The same options give the same result, bit by bit (`machine.hash`).
 *
 * One run at a time, one thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/base/histogram.h"
#include "core/machine/machine.h"
#include "core/node.h"
#include "core/sim/timed/coherent.h"
#include "core/sim/timed/tiled/tiled.h"
#include "core/sim/timed/timed.h"
#include "core/topo/shape.h"
#include "transports/registry.h"

#define QN_SIM_CLIENTS_MAX 1024u /* of one replica */
#define QN_SIM_COMMAND_MAX 1024u /* bytes */

/** The tree down which decided commands travel. */
enum qn_sim_tree {
    QN_SIM_TREE_NAMED,  /* `topology`, as in core/topo/tree.h */
    QN_SIM_TREE_COSTS,  /* by the driver, from what messages cost: latency */
    QN_SIM_TREE_STREAM, /* planned for throughput (core/plan) */
    QN_SIM_TREE_SHAPE   /* `shape` */
};

struct qn_sim_commit_opts {
    const struct qn_machine *machine;      /* with costs; borrowed */
    const struct qn_coherent_opts *prices; /* NULL: defaults. Borrowed */
    const struct qn_tiled *tiled; /* NULL: a coherent machine. Else its prices
                                     count, those of library calls are in
                                     `prices`, and `machine` has its costs; a
                                     TILE-Gx. Borrowed */
    const struct qn_transport *transport; /* of lanes; NULL: ump */
    const uint32_t *core; /* [replicas] index of each one's core, distinct.
                             Borrowed. With a tree planned for throughput, or
                             a shape, the replicas are numbered anew */
    uint32_t replicas;    /* 2 .. QN_NODES_MAX */
    bool memory;          /* acceptor; else a process. Replica 0 leads first,
                             replica 1 is the first process acceptor */
    enum qn_sim_tree tree;
    const char *topology;
    const struct qn_shape *shape; /* over the cores [replicas], or with a
                                     process acceptor over all but the first,
                                     which is the leader's. Borrowed */
    uint32_t cells;               /* of a lane, a power of two; 0: 256 */

    uint64_t load;           /* mask: replicas with clients; 0: all */
    uint32_t clients;        /* of each, 1 .. QN_SIM_CLIENTS_MAX */
    double reads;            /* share of reads, 0 to 1 */
    uint32_t command_bytes;  /* 16 .. QN_SIM_COMMAND_MAX; 0: 24 */
    uint32_t batch_commands; /* of a slot, at most; 0: as shipped */
    uint64_t client_ns;      /* work of a replica for each operation */
    uint64_t warm_ns, load_ns;
    uint64_t settle_ns; /* at most; 0: one second */

    const struct qn_sim_fault *fault; /* [faults], of replicas. Borrowed */
    uint32_t faults;
    uint64_t death_ns; /* from a death until its mark can be seen (the kernel's
                          work); 0: at once */
    uint64_t seed;
    double jitter; /* as in timed.h */
    void (*event)(void *ctx, const struct qn_timed_event *e);
    void *ctx;
};

struct qn_sim_commit_result {
    struct qn_histogram *commit; /* ns from submit to apply at the origin, of
                                    writes begun and ended during the load */
    struct qn_histogram *everywhere; /* ns, of the same writes: until all
                                        replicas have applied it; of a broadcast
                                        none */
    struct qn_histogram *read;       /* ns, likewise */
    uint64_t commits; /* applied at their origin during the load */
    uint64_t reads;
    uint64_t commands, slots; /* of the whole run, warm-up included */
    uint64_t outage_ns;       /* longest time of the load in which no living
                                 replica has applied anything new */
    uint64_t missed;          /* messages of the tree that did not come down
                                 it: FETCHes; of a broadcast: lost */
    uint64_t turn_ns;         /* the longest turn of a replica, without sleep */
    uint64_t failovers;       /* changes of roles, as a living replica knows */
    uint64_t false_suspicions;      /* of all replicas */
    struct qn_timed_result machine; /* of the whole run */
    uint32_t core[QN_NODES_MAX];    /* of each replica */
    const char *broken;             /* constant text; NULL: all held */
};

/** @return QN_OK, also if something is broken; QN_EINVAL (an option),
 * QN_ENOMEM. `out` is filled on QN_OK, and freed by the next. */
int qn_sim_commit_run(struct qn_sim_commit_result *out,
                      const struct qn_sim_commit_opts *o);

/**
 * A bare broadcast on the same cores, for comparison: replica 0 sends requests,
 * as many at once as 1Paxos has slots in flight (or `clients`, if fewer);
 * replica 1 broadcasts each down the same tree and replies. Needs 3 replicas;
 * no faults, and what concerns consensus only is ignored.
 *
 * @param out  As of a commit: from request to reply. `slots` are broadcasts.
 */
int qn_sim_broadcast_run(struct qn_sim_commit_result *out,
                         const struct qn_sim_commit_opts *o);

void qn_sim_commit_free(struct qn_sim_commit_result *r);

/**
 * An order of the cores of a machine, to take the first ones of: one hardware
 * thread of each physical core before the second of any.
 *
 * @param core    [m->n] filled: indices.
 * @param spread  Dealt round robin over the memory nodes; else node by node.
 */
void qn_sim_cores(uint32_t *core, const struct qn_machine *m, bool spread);

/** Commands per second of the whole run, which ends when all replicas have
 *  applied them: what is sustained. Lanes and queues take thousands of slots
 *  more for a while. */
static inline double qn_sim_sustained(const struct qn_sim_commit_result *r)
{
    return (double)r->commands * 1e12 / (double)r->machine.clock;
}

/** Operations of a kind per second of the load. */
static inline double qn_sim_per_second(uint64_t operations, uint64_t load_ns)
{
    return load_ns == 0 ? 0 : (double)operations * 1e9 / (double)load_ns;
}

#endif
