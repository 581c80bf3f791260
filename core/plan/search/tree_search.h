#ifndef QN_CORE_PLAN_SEARCH_TREE_SEARCH_H
#define QN_CORE_PLAN_SEARCH_TREE_SEARCH_H

/**
 * Local search over trees: simulated annealing with an incremental cost.
 *
 * A tree's cost is a fold from the leaves up: each core's value follows from
 * its children's, whatever happens above it. So a move changes values only on
 * the paths from where it happens to the root, and only as far as they differ.
 *
 * Moves: a subtree gets another parent; two subtrees trade places; two cores
 * do; a core goes elsewhere alone, a child inherits its place; the root and a
 * child of it change roles. Half of the moved cores are taken from the
 * critical path, half of their new neighbours from those that reach them at
 * least cost.
 *
 * One thread at a time per object; create allocates, nothing else does.
 */

#include "core/topo/shape.h"

/** What is folded. */
enum qn_fold {
    QN_FOLD_DOWN,   /* broadcast, each core busy for `start` once it has sent */
    QN_FOLD_TWICE,  /* the same + the broadcast without `start` */
    QN_FOLD_UP,     /* reduction, each core ready at `start` */
    QN_FOLD_BOTH,   /* broadcast + reduction on one tree */
    QN_FOLD_ACK,    /* acknowledged broadcast on one tree */
    QN_FOLD_COMMIT, /* acknowledged broadcast + broadcast on one tree */
    QN_FOLD_RATE,   /* cycles of the busiest core, with acknowledgements */
    QN_FOLD_STREAM  /* the same without */
};

struct qn_tree_search_opts {
    enum qn_fold fold;
    bool reversed;       /* back in time: QN_FOLD_DOWN is then a reduction with
                            q = 1, each core ready at `start` */
    bool root_free;      /* the root may change */
    double q;            /* queued factor, 0 .. 1 */
    const double *start; /* [n] cycles, for QN_FOLD_UP, _DOWN, _TWICE; NULL: 0.
                            Borrowed */
    double scale;        /* cycles, the cost of a fair tree; dearer messages
                            than twice that are all alike */
    double cap;          /* cycles that a core may spend per operation; 0: any.
                            A move may not leave a core it touches above */
    bool cap_acks;       /* which counts acknowledgements */
    bool stay;           /* a run ends where it is, not at the best it saw */
    uint64_t seed;
};

struct qn_tree_search;

/** @return QN_OK or QN_ENOMEM. O(n^2). */
int qn_tree_search_create(struct qn_tree_search **out,
                          const struct qn_machine *m,
                          const struct qn_tree_search_opts *o);

/** NULL is allowed. */
void qn_tree_search_destroy(struct qn_tree_search *x);

/** Begin at a tree over all cores. */
void qn_tree_search_load(struct qn_tree_search *x, const struct qn_shape *s);

/** Set opts.start; the next load prices with it. @param start [n]. Borrowed. */
void qn_tree_search_ready(struct qn_tree_search *x, const double *start);

/** The present cost in cycles, to about 1e-6. */
double qn_tree_search_cost(const struct qn_tree_search *x);

/**
 * Anneal, and end at the best tree seen, or where `stay` says.
 *
 * @param moves  To propose. One that sorts hundreds of siblings anew counts as
 *               several, so that time is bounded by moves on any machine.
 * @param from   First temperature, a part of the present cost.
 * @param to     Last one, 0 < to <= from.
 */
void qn_tree_search_run(struct qn_tree_search *x, uint64_t moves, double from,
                        double to);

/** The present tree, its children in the order that was priced. */
void qn_tree_search_store(const struct qn_tree_search *x, struct qn_shape *s);

#endif
