#ifndef QN_LOADGEN_BARRIER_TEAM_H
#define QN_LOADGEN_BARRIER_TEAM_H

/**
 * Teams of `quoin bench barrier`: members that pass barriers on demand
 * (barrier_control.h). One thread uses a team.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/clock.h"
#include "core/place/area.h"
#include "loadgen/barrier/barrier_control.h"
#include "loadgen/barrier/barrier_subject.h"

struct qn_barrier_team {
    struct qn_area area; /* owned */
    struct qn_barrier_control *control;
    uint32_t members;
    bool processes;
    /* Of threads and processes of this program. */
    const struct qn_barrier_subject *subject; /* [subjects] kept */
    uint32_t subjects;
    void *memory[QN_BARRIER_SUBJECTS_MAX]; /* of each */
    int refused[QN_BARRIER_SUBJECTS_MAX];  /* QN_OK, or why it cannot be */
    pthread_t thread[QN_BARRIER_TEAM_MAX];
    pid_t process[QN_BARRIER_TEAM_MAX]; /* children; [0]: of a program */
    uint32_t started;
};

/** Members that run any of `subject` [subjects].
 *  @return QN_OK; QN_ENOMEM, QN_EMFILE, QN_ENOSYS, QN_EAGAIN. */
int qn_barrier_team_start(struct qn_barrier_team *t,
                          const struct qn_barrier_subject *subject,
                          uint32_t subjects, uint32_t members, uint32_t cores,
                          bool processes);

/** The same for nodes of a group of core/coll, in one process or in several:
 *  all-reductions of no words. @return as qn_barrier_team_of_program. */
int qn_barrier_team_of_coll(struct qn_barrier_team *t, uint32_t members,
                            bool processes);

/** A program that has one barrier. It gets two arguments more: the path of the
 *  control, and the number of members.
 *  @param argv  NULL at its end; the two come in front of that: room for them.
 *  @return QN_OK; QN_EIO: it ended before its members were ready. */
int qn_barrier_team_of_program(struct qn_barrier_team *t, uint32_t members,
                               char **argv);

/**
 * One round.
 *
 * @param ns  Filled: of one barrier.
 * @return QN_OK; QN_EIO: a member has ended; QN_ECORRUPT: a member left a
 *         barrier before another one had come.
 */
int qn_barrier_team_round(struct qn_barrier_team *t, uint32_t subject,
                          uint64_t count, bool check, double *ns);

/** Ends the members. */
void qn_barrier_team_end(struct qn_barrier_team *t);

#endif
