#ifndef QN_PAXOS_APPLY_APPLY_FAILURE_H
#define QN_PAXOS_APPLY_APPLY_FAILURE_H

/**
 * What a member does when its service cannot apply a decided command.
 *
 * The command is decided, so it can neither be refused nor left out: without it
 * this state would differ from the others'.
 *
 *     QN_ENOMEM        nothing has changed, so the command is asked again, for
 *                      QN_APPLY_AGAIN_FOR
 *     any other error, this state is LOST: it is not served or given to others
 *     or that long     any more, and its member does not propose itself as
 *                      leader. A state is fetched from a member that has
 *                      applied that slot
 *     no such member   the group is STOPPED, as no state goes on. Each status
 *                      names slot and error. Withdrawn if a member has it
 *                      after all
 *     lost twice       the member ENDS with QN_EAPPLY: for one slot, or without
 *                      a slot applied in between. So each snapshot is followed
 *                      by progress, and none is fetched for the same slot again
 *     state transfer   the member ENDS with its error
 *     has given up
 *
 *     OK <--> SHORT
 *      |        |
 *      v        v     installed
 *      LOST -----------------------> OK
 *      ^  |
 *      |  v
 *     STOPPED        LOST, STOPPED --> ENDED
 *
 * A slot is never skipped: a state goes on behind the slot up to which it was
 * applied, or is replaced by one that contains it.
 *
 * Pure: no clock, no allocation; times are arguments. One thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/base/clock.h"
#include "core/node.h"

/** For so long a command is asked again for lack of memory ... */
#define QN_APPLY_AGAIN_FOR ((qn_time_t)1000 * QN_MS)
/** ... so often. */
#define QN_APPLY_AGAIN     QN_MS

enum qn_apply_phase {
    QN_APPLY_OK,
    QN_APPLY_SHORT,   /* of memory; what follows waits */
    QN_APPLY_LOST,    /* a state is fetched, or waited for */
    QN_APPLY_STOPPED, /* no member has a state behind `slot` */
    QN_APPLY_ENDED    /* with `ended` */
};

/** All zero: nothing has failed yet. To be read; written by the calls below.
 */
struct qn_apply_failure {
    enum qn_apply_phase phase;
    qn_slot_t slot;     /* that failed last; 0: none ever did */
    int error;          /* of its apply */
    int ended;          /* ENDED: QN_EAPPLY, or that of state transfer */
    qn_time_t since;    /* SHORT: ns, of the first refusal */
    qn_time_t again_at; /* SHORT: ns, when to ask again */
    qn_slot_t lost;     /* the slot that cost the last state; 0: none did */
    bool advanced;      /* a slot was applied since */
    uint64_t donors;    /* LOST: mask of members that can give a state; 0: one
                           may yet apply that slot */
};

/** What to do after an apply. */
enum qn_apply_verdict {
    QN_APPLY_GO_ON,  /* it was applied */
    QN_APPLY_REPEAT, /* the same command, at `again_at`; nothing behind it */
    QN_APPLY_DROP    /* the state, and all that is to be applied to it */
};

/**
 * The service has answered. Phase OK or SHORT, and then it is the same command.
 *
 * @param slot  Of the command.
 * @param err   QN_OK, or its error.
 */
enum qn_apply_verdict qn_apply_failure_result(struct qn_apply_failure *f,
                                              qn_slot_t slot, int err,
                                              qn_time_t now);

/** All of a slot was applied. */
void qn_apply_failure_slot_end(struct qn_apply_failure *f);

/** The other members, as far as known. */
struct qn_apply_members {
    uint64_t living;          /* mask: have not ended for certain. One that is
                                 stalled lives */
    uint64_t incomplete;      /* mask: have said that they have no whole state
                                 themselves */
    const qn_slot_t *applied; /* [members of `living`] up to where */
};

/** LOST or STOPPED: where can a state come from? Called when that may have
 *  changed. In other phases nothing is done. O(members). */
void qn_apply_failure_look(struct qn_apply_failure *f,
                           const struct qn_apply_members *m);

/** A snapshot was installed: of the slot that failed, or a later one. Not when
 *  ENDED. */
void qn_apply_failure_installed(struct qn_apply_failure *f);

/** LOST or STOPPED: state transfer gave up, after donors or this member have
 *  failed with `err`. In other phases nothing is done. */
void qn_apply_failure_gave_up(struct qn_apply_failure *f, int err);

/** Is the state whole, so that it may be served, be given to others, and its
 *  member may lead? */
static inline bool qn_apply_failure_whole(const struct qn_apply_failure *f)
{
    return f->phase <= QN_APPLY_SHORT;
}

#endif
