#ifndef QN_PAXOS_MEMBER_DETECTOR_SUSPICION_TIMEOUT_H
#define QN_PAXOS_MEMBER_DETECTOR_SUSPICION_TIMEOUT_H

/**
 * The suspicion timeout: how long a peer may be silent before a replica
 * suspects it.
 *
 * A fixed timeout is right for one machine on one day. Where other work keeps
 * processes off their cores for longer, every leader would be deposed in its
 * turn, and no client would be served. So each false suspicion (the peer was
 * not stopped, and makes turns again) doubles the timeout, as in the detectors
 * of Chandra and Toueg (1996, section 6), up to QN_SUSPICION_TIMEOUT_FACTOR
 * times the least. It halves for each QN_SUSPICION_TIMEOUT_CALM without another
 * false suspicion.
 *
 * Often a replica can know before: if it gets its own core late, its peers do
 * so too, at other times. Then the timeout is twice the longest delay that the
 * replica had. (In a container that has used up its CPU quota, a delay is half
 * a period of 100 ms and more.) A delay above the greatest timeout counts for
 * nothing: the process, or the whole machine, had been stopped.
 *
 * There is one timeout for all peers: it is learned about the machine.
 *
 * Pure: times are arguments, and never fall. One thread.
 */

#include "core/base/clock.h"

#define QN_SUSPICION_TIMEOUT_FACTOR 16u /* times the least: a power of two */
#define QN_SUSPICION_TIMEOUT_CALM   (60 * QN_S)

/** Private. */
struct qn_suspicion_timeout {
    qn_time_t least;      /* ns */
    qn_time_t ns;         /* least..most; as of `changed_at` */
    qn_time_t changed_at; /* ns; the last change, or the last false suspicion */
};

void qn_suspicion_timeout_init(struct qn_suspicion_timeout *t, qn_time_t least);

/** Another least timeout. The present one stays what was learned about the
 *  machine, within the new limits. */
void qn_suspicion_timeout_least(struct qn_suspicion_timeout *t,
                                qn_time_t least);

/** This replica made a turn `delay` ns later than it wanted to. */
void qn_suspicion_timeout_delayed(struct qn_suspicion_timeout *t,
                                  qn_time_t delay, qn_time_t now);

/** @return ns, from `least` to the most. Changes nothing. */
qn_time_t qn_suspicion_timeout_at(const struct qn_suspicion_timeout *t,
                                  qn_time_t now);

/** @return ns, the greatest timeout: a longer silence was no false alarm. */
qn_time_t qn_suspicion_timeout_most(const struct qn_suspicion_timeout *t);

/** A suspicion was false. @return ns, the timeout from here on. */
qn_time_t qn_suspicion_timeout_raise(struct qn_suspicion_timeout *t,
                                     qn_time_t now);

#endif
