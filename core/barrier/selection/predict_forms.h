#ifndef QN_BARRIER_SELECTION_PREDICT_FORMS_H
#define QN_BARRIER_SELECTION_PREDICT_FORMS_H

/**
 * What an episode of a form takes, in cycles of the machine model: all members
 * enter at once, member i on core i; until the last one has left. A tree's is
 * that of the planner (core/plan).
 *
 * Pure, any thread. m has costs, and 2 .. QN_CORES_MAX cores.
 */

#include "core/machine/machine.h"

/** O(n^2). */
double qn_barrier_predict_central(const struct qn_machine *m);

/** O(n log n). */
double qn_barrier_predict_dissemination(const struct qn_machine *m);

/** O(n log n). About 50 KB of stack. */
double qn_barrier_predict_mcs(const struct qn_machine *m);

#endif
