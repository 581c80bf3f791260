#ifndef QN_LOADGEN_BARRIER_TEAM_INTERNAL_H
#define QN_LOADGEN_BARRIER_TEAM_INTERNAL_H

/** What teams in a child of their own have in common. */

#include "loadgen/barrier/barrier_team.h"

/** A control, and no member yet. @return QN_OK, or an error: there is nothing
 * to end. */
int qn_barrier_team_prepare(struct qn_barrier_team *t, uint32_t members);

/** process[0] has been forked: wait until its members are ready. @return QN_OK;
 *  QN_EAGAIN: it was not; QN_EIO: it has ended. On failure the team has ended.
 */
int qn_barrier_team_ready(struct qn_barrier_team *t);

#endif
