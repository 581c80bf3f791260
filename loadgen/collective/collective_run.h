#ifndef QN_LOADGEN_COLLECTIVE_RUN_H
#define QN_LOADGEN_COLLECTIVE_RUN_H

/**
 * One group of nodes that runs all forms in turn, and the times that its root
 * has measured.
 *
 * A turn runs each form once. The turn before tells how many operations take
 * about QN_COLLECTIVE_FORM_NS. Between two forms the
 * nodes meet; the meeting counts with the form before it, for a form that only
 * sends ends with it. Since forms are interleaved, a drift of the machine
 * counts for all of them.
 */

#include "loadgen/collective/collective_form.h"

#define QN_COLLECTIVE_TURNS_MAX 1000u
#define QN_COLLECTIVE_FORM_NS   (2 * QN_MS)

struct qn_collective_run_opts {
    const struct qn_transport *transport; /* kept for the call, as all here */
    uint32_t nodes;
    const uint32_t *core; /* [nodes] CPU of each */
    bool processes;
    uint32_t turns; /* maximum */
    double seconds; /* maximum of all turns */
    bool quick;     /* few operations in each turn, to see that it works */
    uint32_t forms; /* mask of those that run */
    struct qn_collective_opts collective;
};

struct qn_collective_result {
    uint32_t turns;
    uint64_t wrong[QN_NODES_MAX]; /* results, by node */
    /* ns per operation */
    double ns[QN_COLLECTIVE_TURNS_MAX][QN_COLLECTIVE_FORMS_MAX];
};

/** @param r  Filled; memory shared with children if there are processes.
 *  @return QN_OK; QN_EINVAL, QN_ENOMEM, QN_EMFILE, QN_ENOSYS; QN_EIO: a node
 *  failed. */
int qn_collective_run(struct qn_collective_result *r,
                      const struct qn_collective_run_opts *o);

#endif
