#ifndef QN_COLL_LARGE_PREDICT_H
#define QN_COLL_LARGE_PREDICT_H

/**
 * What a large collective takes on a described machine, predicted from its
 * schedule, and the variant that takes least.
 *
 * All members' steps are walked in the order of time: copies are priced by
 * bandwidths that they share (core/machine/bulk.h), a wait by the receive of
 * the word that it waits for. It is what `quoin sim large` simulates, without
 * its lines, its sleep and its software.
 *
 * Any thread; they allocate, and take milliseconds to seconds: for plans, not
 * for calls.
 */

#include "core/coll/large/large_schedule.h"
#include "core/machine/machine.h"

/** Sizes for which a choice is made: 16 KiB, times 4 each, to 16 MiB. */
#define QN_LARGE_CHOICES 6u

/** The variants that are predicted to take least, by operation and size. The
 *  same at all members that made it from the same machine. Predicted for root
 *  0; another root gets the same variant, over a tree of its own (up to
 *  QN_LARGE_OWN_TREES members), or over that of root 0, in which it comes above
 *  member 0: one more copy on the way. */
struct qn_large_choices {
    const struct qn_large_variant *of[QN_LARGE_OPERATIONS][QN_LARGE_CHOICES];
};

/** Where the members on the cores of m are: sockets, and memory nodes in them.
 *  @param place  [m->n] filled. */
void qn_large_places(const struct qn_machine *m, struct qn_large_place *place);

/**
 * @param m      Its cores are the members, in their order. Borrowed.
 * @param place  [m->n]; NULL: one region.
 * @param bytes  As in struct qn_large_plan.
 * @param ns     Filled: of one operation, entered and left by all, whose
 *               buffers lie where an operation before it has left them.
 * @return QN_OK; QN_EINVAL: no costs, too few members; QN_ENOMEM.
 */
int qn_large_predict(const struct qn_machine *m,
                     const struct qn_large_place *place,
                     const struct qn_large_variant *v, uint32_t root,
                     uint64_t bytes, double *ns);

/** The variant of an operation that is predicted to take least, with root 0; of
 *  equal ones the one that is taken without prices.
 *  @param push  Whether members write each other's memory.
 *  @param best  Filled. Errors as qn_large_predict. */
int qn_large_predict_best(const struct qn_machine *m,
                          const struct qn_large_place *place,
                          enum qn_large_operation op, uint64_t bytes, bool push,
                          const struct qn_large_variant **best);

/** All of them. Errors as qn_large_predict. */
int qn_large_choices_make(struct qn_large_choices *c,
                          const struct qn_machine *m,
                          const struct qn_large_place *place, bool push);

/** That of the size that is closest from above; of longer ones the longest. */
const struct qn_large_variant *qn_large_choices_of(
    const struct qn_large_choices *c, enum qn_large_operation op,
    uint64_t bytes);

#endif
