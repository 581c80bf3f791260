#ifndef QN_CORE_PLAN_SEARCH_TREE_SEARCH_INTERNAL_H
#define QN_CORE_PLAN_SEARCH_TREE_SEARCH_INTERNAL_H

/**
 * The parts of local search: tree_search.c (setting up, annealing),
 * tree_search_fold.c (values), tree_search_links.c (the tree, and taking moves
 * back), tree_search_moves.c.
 *
 * Costs are integers, in steps that are chosen so that no sum over a path can
 * overflow; cores are 16 bits; a core's cell fits one cache line. With 256
 * cores all cells stay in the first level cache.
 */

#include "core/plan/search/anneal.h"
#include "core/plan/search/tree_search.h"

#define QN_NONE            UINT16_MAX /* no core */
#define QN_NEAR_MAX        8u         /* near senders kept per core */
/* A move that passes so many siblings counts as one more: their cost, 0.2 us,
 * is about that of a move. */
#define QN_PASSED_PER_MOVE 128u

struct qn_edge {
    uint32_t send, receive;           /* parent to child */
    uint32_t back_send, back_receive; /* child to parent */
};

struct qn_cell {
    struct qn_edge e;  /* from the parent; zeros for the root */
    uint32_t value;    /* of the subtree */
    uint32_t second;   /* of the subtree, of folds that sum two costs */
    uint32_t key;      /* children are sorted by it, largest first */
    uint32_t lag;      /* the part of any cost through this core that lies
                          between it and its parent; as of the last fold */
    uint16_t parent;   /* itself for the root */
    uint16_t first;    /* child */
    uint16_t next;     /* sibling */
    uint16_t prev;     /* sibling */
    uint16_t critical; /* child that the value hangs on; as of the last fold */
};

struct qn_tree_search_undo {
    uint16_t v;
    bool link; /* a core was linked elsewhere; else a value was folded */
    uint16_t parent, prev;
    uint32_t value, second;
};

struct qn_tree_search {
    struct qn_tree_search_opts o;
    uint32_t n, root;
    double unit;  /* steps per cycle */
    uint32_t q;   /* queued factor in 1/1024 */
    uint32_t cap; /* steps, 0: any */
    struct qn_anneal anneal;
    struct qn_tree_search_undo *log; /* of the present move */
    uint32_t logged, log_max;
    uint64_t passed; /* siblings that linked cores were compared with */
    uint64_t paid;   /* of these: counted as moves */
    uint32_t *start; /* [n] steps */
    uint16_t *near;  /* [n * near_count] senders that reach a core at least
                        cost */
    uint32_t near_count;
    struct qn_edge *edge; /* [n * n] row: parent */
    uint16_t best_parent[QN_CORES_MAX];
    uint32_t best_root;
    struct qn_cell cell[QN_CORES_MAX];
};

/* tree_search_fold.c */

/** Value of v from its children's, whose lags it sets. */
uint32_t qn_tree_search_fold(struct qn_tree_search *x, uint32_t v,
                             uint32_t *second);

/** The key by which a cell is sorted among its siblings. */
uint32_t qn_tree_search_key(const struct qn_tree_search *x,
                            const struct qn_cell *c);

/** What the two functions below may not exceed if the cost is not to exceed
 *  `limit`; UINT32_MAX: they say nothing about this fold. */
uint32_t qn_tree_search_bound(const struct qn_tree_search *x, uint32_t limit);

/** About the first value of the whole tree if a subtree of value `value` with v
 * on top hung below u, and `without` (may be QN_NONE) did not: all on its own
 * path. */
uint32_t qn_tree_search_lower_bound(const struct qn_tree_search *x, uint32_t v,
                                    uint32_t value, uint32_t u,
                                    uint32_t without);

/** The same if v took the place of w, with its children. */
uint32_t qn_tree_search_instead(const struct qn_tree_search *x, uint32_t v,
                                uint32_t w);

/** Whether all cores that the logged move touched are within the cap. */
bool qn_tree_search_within_cap(const struct qn_tree_search *x);

/** Steps of the whole tree. */
uint32_t qn_tree_search_total(const struct qn_tree_search *x);

/* tree_search_links.c */

/** v, with its subtree, becomes a child of p; logged. */
void qn_tree_search_attach(struct qn_tree_search *x, uint32_t v, uint32_t p);

/** v leaves its parent and is the root; logged. */
void qn_tree_search_make_root(struct qn_tree_search *x, uint32_t v);

/** v's children have changed: fold from there up as far as values differ. */
void qn_tree_search_update_path(struct qn_tree_search *x, uint32_t v);

/** Take back all that is logged. */
void qn_tree_search_undo(struct qn_tree_search *x);

/** Build the tree from parents and fold all of it. */
void qn_tree_search_set(struct qn_tree_search *x, const uint16_t *parent,
                        uint32_t root);

/** @param list [n] filled. @return how many children. */
uint32_t qn_tree_search_children(const struct qn_tree_search *x, uint32_t v,
                                 uint16_t *list);

/* tree_search_moves.c */

/** Draw a move and make it, logged. @return false: it was impossible, or its
 *  bound exceeded the limit; nothing has changed. */
bool qn_tree_search_propose(struct qn_tree_search *x, uint32_t limit);

#endif
