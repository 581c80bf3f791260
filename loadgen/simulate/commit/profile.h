#ifndef QN_LOADGEN_SIMULATE_COMMIT_PROFILE_H
#define QN_LOADGEN_SIMULATE_COMMIT_PROFILE_H

/** Where the virtual time of a run went: by replica, and by cache line. One
 *  thread. */

#include <stdio.h>

#include "loadgen/simulate/commit/commit.h"

struct qn_sim_profile; /* opaque */

/** @return QN_OK or QN_ENOMEM. */
int qn_sim_profile_create(struct qn_sim_profile **out);
void qn_sim_profile_destroy(struct qn_sim_profile *p);

/** For `event` of struct qn_sim_commit_opts; `ctx` is the profile. */
void qn_sim_profile_event(void *ctx, const struct qn_timed_event *e);

/** A line per replica; then the lines that took the most time, per slot. Lines
 *  are numbered in the order of their first touch. */
void qn_sim_profile_print(const struct qn_sim_profile *p,
                          const struct qn_sim_commit_result *r, FILE *to);

#endif
