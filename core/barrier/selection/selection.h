#ifndef QN_BARRIER_SELECTION_SELECTION_H
#define QN_BARRIER_SELECTION_SELECTION_H

/**
 * Which barrier suits a machine: each form of core/barrier is predicted by the
 * prices of the machine model, and the one that takes least is chosen, with the
 * tree that is planned for it.
 *
 *     qn_barrier_select(&selection, machine, members);
 *     struct qn_barrier_opts opts = {.members = members, .own_cores = ...};
 *     qn_barrier_selection_apply(&selection, &opts);
 *     qn_barrier_format(memory, bytes, &opts);
 *
 * The machine is measured at the start (core/discover) or read from a file. A
 * flag that u raises for v costs send(u, v), and v then receive(u, v), as a
 * message does; nothing else is priced. Members that share cores take central:
 * any of them passes it by one operation, once all have been dispatched.
 */

#include "core/barrier/barrier.h"
#include "core/machine/machine.h"

#define QN_BARRIER_FORMS 4u

/** Plain data. Large (8 KB), because of the tree. */
struct qn_barrier_selection {
    const char *form;
    bool shared_cores; /* there are more members than cores: none is priced */
    double cycles[QN_BARRIER_FORMS]; /* predicted, in the order of
                                        qn_barrier_forms; 0: not */
    struct qn_shape tree;            /* of the form `tree` */
};

/**
 * Choose.
 *
 * @param out      Filled; untouched on failure.
 * @param m        Member i runs on core i, where there is one for each. With
 *                 costs, if there are several. Borrowed.
 * @param members  1 .. QN_BARRIER_MEMBERS_MAX; fewer than cores: the first
 *                 ones.
 * @return QN_OK; QN_EINVAL: no such number of members, or no costs; QN_ENOMEM.
 *
 * Any thread; allocates and frees. Plans a tree: up to 0.1 s of 256 members.
 * The same input, the same selection.
 */
int qn_barrier_select(struct qn_barrier_selection *out,
                      const struct qn_machine *m, uint32_t members);

/** Set the form and the tree of opts; it points into the selection. */
void qn_barrier_selection_apply(const struct qn_barrier_selection *c,
                                struct qn_barrier_opts *opts);

/** Say why, in one line without its end: the form, and what was predicted for
 *  each. @param text [bytes] filled, cut if it does not fit. */
void qn_barrier_selection_explain(const struct qn_barrier_selection *c,
                                  char *text, size_t bytes);

#endif
