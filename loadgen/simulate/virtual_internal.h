#ifndef QN_LOADGEN_SIMULATE_VIRTUAL_INTERNAL_H
#define QN_LOADGEN_SIMULATE_VIRTUAL_INTERNAL_H

/**
 * What the programs of the nodes share: one run at a time.
 *
 * What nodes tell each other beside the simulated memory (when an operation
 * began, when a node had it) stands in arrays with a place per operation: code
 * between two accesses runs ahead of the others' time, so a single variable
 * would be overwritten too early.
 */

#include "loadgen/simulate/net/edges.h"
#include "loadgen/simulate/virtual.h"

struct qn_context;
struct qn_coll;
struct qn_sequenced_broadcast;
struct qn_wiring;

struct qn_virtual_member {
    struct qn_context *context;               /* of broadcasts */
    struct qn_sequenced_broadcast *sequenced; /* of acknowledged ones */
    struct qn_wiring *wiring;                 /* of it */
    bool is_root;                             /* of it */
    struct qn_coll *coll;                     /* of reductions and barriers */
    uint64_t got; /* broadcasts: number of the next message */
};

struct qn_virtual_world {
    const struct qn_virtual_opts *o;
    struct qn_virtual_result *r;
    struct qn_edges_device device;
    struct qn_edges_net net;
    struct qn_virtual_member *member; /* [n] */
    uint32_t total;                   /* operations, warm ones counted in */
    qn_ps_t *began;                   /* [total] at the node that was first */
    qn_ps_t *ended;                   /* [total] at the node that was last */
    uint32_t *reached;                /* [total] nodes for which it has ended */
};

extern struct qn_virtual_world qn_virtual_world;

/** The running node begins an operation, at its time. */
void qn_virtual_begin(uint64_t number);

/** The operation has ended for the running node. */
void qn_virtual_end(uint64_t number);

/** The programs. open prepares a node outside of a run, close frees. */
int qn_broadcast_open(uint32_t node);
void qn_broadcast_close(uint32_t node);
void qn_broadcast_node(uint32_t node);
int qn_collective_open(uint32_t node);
void qn_collective_close(uint32_t node);
void qn_collective_node(uint32_t node);
int qn_channel_open(uint32_t node);
void qn_channel_close(uint32_t node);
void qn_channel_node(uint32_t node);

#endif
