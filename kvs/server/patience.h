#ifndef QN_KVS_SERVER_PATIENCE_H
#define QN_KVS_SERVER_PATIENCE_H

/**
 * How long a replica bears the silence of a peer before it suspects it.
 *
 * A fixed time is right for one machine on one day: where work outside the
 * server keeps processes off their cores for longer, every leader is deposed in
 * its turn, and nobody is served. So each suspicion that proves wrong (the
 * peer had not stopped, it makes turns again) doubles the time, as in the
 * detectors of Chandra and Toueg (1996, section 6), to at most
 * QN_PATIENCE_MOST times the least; and as machines get quiet again, it halves
 * for each QN_PATIENCE_CALM without another.
 *
 * Often one can know before: where a replica itself gets its core late, so do
 * its peers, at other times. It bears twice the longest delay that it had. (In
 * a container that has used up its time, that is half of a period of 100 ms and
 * more.) What is longer than the most that is borne was no delay: it had been
 * stopped, or the machine had.
 *
 * One for all peers: it is the machine that is learned about, not a peer.
 *
 * Pure: times are arguments. One thread.
 */

#include "core/base/clock.h"

#define QN_PATIENCE_MOST 16u /* times the least: a power of two */
#define QN_PATIENCE_CALM (60 * QN_S)

/** Private. */
struct qn_patience {
    qn_time_t least; /* ns */
    qn_time_t ns;    /* as of `since` */
    qn_time_t since; /* it changed last, or was wrong last */
};

void qn_patience_init(struct qn_patience *p, qn_time_t least);

/** This replica made a turn so much later than it wanted to, ns. */
void qn_patience_late(struct qn_patience *p, qn_time_t delay, qn_time_t now);

/** @return ns, `least` to QN_PATIENCE_MOST times that. `now` never falls. */
qn_time_t qn_patience_at(struct qn_patience *p, qn_time_t now);

/** A suspicion was wrong. @return what it is from here on. */
qn_time_t qn_patience_wrong(struct qn_patience *p, qn_time_t now);

#endif
