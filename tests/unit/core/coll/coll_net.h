#ifndef QN_TESTS_UNIT_CORE_COLL_COLL_NET_H
#define QN_TESTS_UNIT_CORE_COLL_COLL_NET_H

/**
 * A tree of collectives over inmemory_qp, in one thread, for the tests of this
 * folder. Channels exist along the edges only, if nothing is exchanged.
 */

#include "core/coll/coll.h"
#include "core/coll/coll_view.h"
#include "core/coll/payload/operators.h"
#include "tests/support/inmemory_transport.h"

#define COLL_NODES 16u
#define COLL_CELLS 16u /* of a channel */

/** The head of a message. */
struct coll_head {
    uint32_t number;
    uint16_t view;
    uint16_t what; /* kind, stage, link: COLL_WHAT */
};

#define COLL_WHAT(kind, stage, link)                                           \
    ((uint16_t)((unsigned)(kind) << 12 | (unsigned)(stage) << 10 | (link)))

struct coll_node {
    struct qn_coll *c; /* NULL: the node has ended */
    struct qn_qp *qp[QN_NODES_MAX];
    uint64_t out; /* of the operation that coll_start has started */
    int rc;       /* of the last poll */
};

struct coll_net {
    struct qn_tree tree; /* down */
    struct qn_tree up;
    uint32_t window, bytes_max; /* 0: the default */
    bool alike;                 /* for coll_again */
    bool exchange;              /* likewise; channels between all nodes then */
    struct coll_node node[COLL_NODES];
    uint64_t random;
};

/** Nodes 0 .. n-1, root 0, of a named tree. Freed by coll_free. */
struct coll_net *coll_new(const char *shape, uint32_t n);

/** Two chains from the same root, the other nodes in these orders. */
struct coll_net *coll_chains(const qn_node_t *down, const qn_node_t *up,
                             uint32_t n, uint32_t window);

/** A random tree over nodes 0 .. n-1 with any root. */
struct coll_net *coll_random(uint32_t n, uint64_t seed);

/** A pair of random trees with the same root. */
struct coll_net *coll_random_pair(uint32_t n, uint64_t seed, uint32_t window,
                                  uint32_t bytes_max);

/** A random tree, and all-reductions that do not go over it. */
struct coll_net *coll_exchange(uint32_t n, uint64_t seed, uint32_t window,
                               uint32_t bytes_max);
void coll_free(struct coll_net *net);

/** Below `bound`. */
uint32_t coll_draw(struct coll_net *net, uint32_t bound);

/** Start a sum of one word at one node, or a broadcast of one; fails the test
 * if it is refused. */
void coll_start(struct coll_net *net, qn_node_t v, enum qn_coll_what what,
                uint64_t word);

/** Poll and flush one node. @return what poll says. */
int coll_turn(struct coll_net *net, qn_node_t v);

/** Turn all living nodes often enough for every operation that can complete. */
void coll_settle(struct coll_net *net);

/** The node ends; its neighbours are told only by coll_tell. */
void coll_die(struct coll_net *net, qn_node_t v);

/** All living nodes hear of the end of `v`, whose channels are then closed. */
void coll_tell(struct coll_net *net, qn_node_t v);

/** Make the collectives of the living nodes again, on another tree, over new
 *  channels where there is none. */
void coll_again(struct coll_net *net, const qn_node_t *order, uint32_t n,
                uint16_t view);

/** The living members leave their views, and enter the next one, over a chain
 * in this order. @return what was decided. */
struct qn_view coll_next_view(struct coll_net *net, const qn_node_t *order,
                              uint32_t n, uint16_t view);

/** The end of `from` in the channel to `to`. */
struct qn_qp *coll_qp(struct coll_net *net, qn_node_t from, qn_node_t to);

/** What node `v` contributes to operation `k`. */
uint64_t coll_contribution(qn_node_t v, uint32_t k);

/** x -> a*x + b, one after the other: associative, and no order but one is
 *  right. Two words each. */
extern const struct qn_operator coll_maps;

#endif
