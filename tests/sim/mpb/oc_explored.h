#ifndef QN_TESTS_SIM_OC_EXPLORED_H
#define QN_TESTS_SIM_OC_EXPLORED_H

/** Asynchronous OC-Bcast of two nodes, for the schedule explorer. */

#include "core/sim/explore/explore.h"

/** Both send, both receive, both sleep when nothing is pending. */
bool oc_both_broadcast(struct qn_explored *out);

/** A reader of a dead parent's buffer, which its successor writes to. */
bool oc_a_successor_overwrites(struct qn_explored *out);

#endif
