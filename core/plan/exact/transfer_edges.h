#ifndef QN_CORE_PLAN_EXACT_TRANSFER_EDGES_H
#define QN_CORE_PLAN_EXACT_TRANSFER_EDGES_H

/**
 * The hand-overs of a small group: of all ways in which its broadcast trees can
 * grow, those that may still be part of one that ends in time.
 *
 * A state is a core that is informed and free, and a set that it has to have
 * informed; a hand-over is a step from there: the core sends to a child, which
 * takes over a part of the set, and keeps the rest. The recursion over subsets
 * (subset_dp.h) looks at all of them each time. A search that asks again and
 * again, with tails that only grow, keeps a list of those that are left: a
 * hundredth of them, soon.
 *
 * Lists lie in an arena one behind the other and begin with the latest sets, so
 * that backwards every state has its value before it is needed.
 *
 * One thread at a time per object; init allocates, nothing else does.
 */

#include <stddef.h>

#include "core/plan/exact/subset_dp.h"

#define QN_TRANSFER_EDGES_MAX 12u /* cores; states fit in 16 bits */

struct qn_transfer_edge {
    uint16_t from, child, rest; /* states */
    uint16_t edge;              /* sender * n + receiver */
};

/** A list, and where there is room for a smaller one. */
struct qn_transfer_edge_list {
    struct qn_transfer_edge *at;
    size_t count;
    struct qn_transfer_edge *room;
};

struct qn_transfer_edges {
    const struct qn_machine *m;
    struct qn_transfer_edge *arena;
    uint16_t top;     /* the state in which the root has informed no core */
    double *left;     /* [states] least cycles until all tails are over */
    double *since;    /* [states] least cycles until it may come to that */
    uint32_t *choice; /* [states] hand-over that attains `left` */
    uint16_t *state;  /* [n << n] row: core, column: set */
};

/** @param m  Kept until fini, at most QN_TRANSFER_EDGES_MAX cores.
 *  @return QN_OK or QN_ENOMEM. */
int qn_transfer_edge_init(struct qn_transfer_edges *x,
                          const struct qn_machine *m);

/** After a failed init, too. */
void qn_transfer_edge_fini(struct qn_transfer_edges *x);

/**
 * List what may end within the limit.
 *
 * @param s      Filled for this root; its value is within the limit.
 * @param limit  Cycles.
 */
void qn_transfer_edge_collect(struct qn_transfer_edges *x,
                              const struct qn_subset_dp *s, uint32_t root,
                              double limit, struct qn_transfer_edge_list *list);

/**
 * Least cycles until all tails are over.
 *
 * @param tail  [n] none is less than when the list was made.
 * @param idle  [n] filled if the result is finite: when each core has sent its
 *              last message in a tree that attains it.
 * @return More than the limit that the list was made with, or
 *         QN_SUBSETS_NEVER, if there is none within it.
 */
double qn_transfer_edge_price(struct qn_transfer_edges *x,
                              const struct qn_transfer_edge_list *list,
                              const double *tail, double *idle);

/** That tree, if nothing was done since. */
void qn_transfer_edge_tree(const struct qn_transfer_edges *x,
                           const struct qn_transfer_edge_list *list,
                           uint32_t root, struct qn_shape *s);

/**
 * Drop what can no longer end within the limit, of a list just priced. The
 * dropped remain in place for
 * callers that know the longer list, and the shorter one lies behind; unless
 * little was dropped, then nothing is.
 *
 * @param limit  At least what it was priced at.
 * @param idle   [n] filled: no tree within the limit lets a core go earlier.
 */
void qn_transfer_edge_trim(struct qn_transfer_edges *x,
                           struct qn_transfer_edge_list *list, double limit,
                           double *idle);

#endif
