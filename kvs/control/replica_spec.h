#ifndef QN_KVS_CONTROL_REPLICA_SPEC_H
#define QN_KVS_CONTROL_REPLICA_SPEC_H

/**
 * The parameters of a replica process.
 *
 * The supervisor forks the process, names it and pins it; its sockets are
 * listening already. After that the two exchange messages over `control`, a
 * Unix SEQPACKET socket (kvs/control/control_protocol.h).
 *
 * Threads: written before the process starts, and only read afterwards.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/base/clock.h"
#include "core/node.h"
#include "core/place/place.h"
#include "kvs/config/config.h"
#include "kvs/config/topology.h"
#include "kvs/listen/connection_placement.h"

/** Descriptors are open until the process ends; the struct and what it points
 *  to exist as long. */
struct qn_replica_spec {
    const struct qn_config *config; /* kept; checked, nothing left automatic */
    qn_node_t self;
    uint32_t nodes;                  /* seats, taken or vacant */
    uint64_t seats;                  /* mask: taken, its own among them. Lanes
                                        to these are there from the beginning */
    uint64_t incarnation;            /* its own, never 0 */
    bool first;                      /* an initial member of the group */
    int control;                     /* see qn_control_next */
    int listen_shared[QN_NODES_MAX]; /* listening. TCP: one for each seat, with
                                  SO_REUSEPORT; Unix: one in all places; -1:
                                  none, in a group of a former build */
    /* Unix socket, connections placed near (kvs/listen/fd_passing.h): */
    int pass_from[QN_NODES_MAX]; /* of each; -1: none */
    int pass_to[QN_NODES_MAX];
    int listen_own;                /* the replica's own port or PATH.self; -1 */
    int lock;                      /* of the address; -1: it has none */
    int commons_fd;                /* qn_commons_map */
    int record_fd;                 /* of this voter's record, an area of
                                      QN_COMMONS_RECORD_BYTES; -1: the record
                                      lies in the commons */
    int doorbell_fd[QN_NODES_MAX]; /* eventfd of each node, non-blocking */
    struct qn_place place;         /* where this process is pinned */
    struct qn_connection_placement placement; /* of new connections */
    int numa_node[QN_NODES_MAX]; /* of each node, for qn_outbox_opts; -1 */
    const struct qn_topology *topology; /* the broadcast tree */
    uint32_t cores;                     /* more replicas share cores */
    uint32_t tcp_port; /* really bound, shared; 0: Unix socket */
    uint32_t own_port; /* really bound, own; 0: none */
};

#endif
