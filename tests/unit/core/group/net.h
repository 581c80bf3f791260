#ifndef QN_TESTS_UNIT_CORE_GROUP_NET_H
#define QN_TESTS_UNIT_CORE_GROUP_NET_H

/**
 * A tree of contexts over inmemory_qp, in one thread, for the tests of this
 * folder.
 *
 * Message number `id` of length `len` has the bytes (id * 31 + i): so each
 * byte that arrives can be checked, and `id` read from the first one. A node
 * checks every message whole when it is delivered, and logs its id.
 */

#include "core/group/group.h"
#include "tests/support/inmemory_transport.h"

#define NET_NODES 16u
#define NET_LOG   1024u

struct net_node {
    struct qn_qp *qp[QN_NODES_MAX];
    struct qn_context *context;
    uint32_t count;
    uint8_t id[NET_LOG];     /* of the messages delivered, in order */
    qn_node_t from[NET_LOG]; /* whose lane it came by */
    size_t len[NET_LOG];
};

struct net {
    struct qn_tree tree;
    struct net_node node[NET_NODES];
};

struct net_opts {
    const char *shape;
    uint32_t n;
    uint32_t cells, cell_bytes; /* of each channel */
};

/** The contexts' deliver function; ctx is the struct net_node. */
void net_deliver(void *ctx, const void *msg, size_t len);

/** Nodes 0..n-1, root 0. Freed by net_free. */
struct net *net_new(const struct net_opts *o);
void net_free(struct net *net);

/** As net_new, with a channel between every two nodes. */
struct net *net_mesh(const struct net_opts *o);

/** The tree is another one from now on, for `node`; net_reroot_all: for all
 *  that live, and for net_bcast. */
void net_reroot(struct net *net, qn_node_t node, const char *shape,
                const qn_node_t *order, uint32_t n);
void net_reroot_all(struct net *net, const char *shape, const qn_node_t *order,
                    uint32_t n);

/** In a mesh: `node` ends, its peers are told, its channels closed. */
void net_die(struct net *net, qn_node_t node);

/** It comes back: new channels to all that live, and a context on the present
 *  tree; its log goes on. */
void net_revive(struct net *net, qn_node_t node, uint32_t cells,
                uint32_t cell_bytes);

/** Make all contexts again over the same queuepairs, on another tree whose
 *  edges all have queuepairs. */
void net_reshape(struct net *net, const char *shape, const qn_node_t *order,
                 uint32_t n);

/** Give the nodes `a` and `b` a new channel, as a new incarnation would have.
 */
void net_connect(struct net *net, qn_node_t a, qn_node_t b, uint32_t cells,
                 uint32_t cell_bytes);

/** Broadcast message `id` from the root; two parts, cut anywhere. */
int net_bcast(struct net *net, uint8_t id, size_t len, uint64_t *dropped);

/** Poll and flush one node. @return true if it received anything. */
bool net_turn(struct net *net, qn_node_t node);

/** Turn all nodes until no frame moves any more. */
void net_settle(struct net *net);

/** The end of `from` in the channel to `to`. */
struct qn_qp *net_qp(struct net *net, qn_node_t from, qn_node_t to);

#endif
