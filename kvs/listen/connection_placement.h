#ifndef QN_KVS_LISTEN_CONNECTION_PLACEMENT_H
#define QN_KVS_LISTEN_CONNECTION_PLACEMENT_H

/**
 * Which replica a new connection should land on: the decision, and the same
 * decision as a program for the kernel.
 *
 * Near means the same NUMA node: a replica's store and buffers are homed there.
 * Within a node all replicas are equally good, on whatever core they run (a
 * client on a replica's own core would only compete with it). A connection goes
 * to the replicas of the node of the client's core, or, if there are none, to
 * those of the nearest nodes; among equally near replicas the choice is random
 * and even. Without a map of the machine all replicas are equally near, so a
 * machine of one node is not asked where its clients run.
 *
 * The program is classic BPF for SO_ATTACH_REUSEPORT_CBPF. It runs on the core
 * that handles the first packet of a connection, which for loopback is the
 * client's, else the one that the network card's interrupts go to. Its result
 * is the index of a socket, which is the replica's id: sockets are bound in the
 * order of ids and never closed while the group runs.
 *
 * Threads: any; pure except qn_connection_placement_attach. Nothing blocks.
 */

#include <linux/filter.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/node.h"
#include "core/place/place.h"

#define QN_CONNECTION_PLACEMENT_INSNS 4096u /* the kernel's limit */

/** The machine, as far as it is known, and the places of the replicas. */
struct qn_connection_placement {
    uint32_t nodes;                /* replicas */
    int home[QN_NODES_MAX];        /* NUMA node of each replica; -1: unknown,
                                      any */
    const struct qn_numa_map *map; /* borrowed; NULL: all are equally near */
};

/** The replicas that are nearest to `cpu` among those of `open` (mask, not 0).
 *  @return mask, not 0. O(nodes). */
uint64_t qn_connection_placement_near(const struct qn_connection_placement *p,
                                      uint32_t cpu, uint64_t open);

/**
 * The decision as a program.
 *
 * @param open   Mask of the replicas that take connections, not 0.
 * @param out    [QN_CONNECTION_PLACEMENT_INSNS] filled.
 * @return instructions; 0: it would be longer than the kernel allows.
 */
uint32_t qn_connection_placement_program(
    const struct qn_connection_placement *p, uint64_t open,
    struct sock_filter *out);

/** Attach a program to the SO_REUSEPORT group of socket `fd`, in place of an
 *  earlier one. count 0: no program, the kernel spreads over all. @return
 *  false: the kernel refuses it. */
bool qn_connection_placement_attach(int fd, struct sock_filter *program,
                                    uint32_t count);

#endif
