#ifndef QN_LOADGEN_ALARM_INTERNAL_H
#define QN_LOADGEN_ALARM_INTERNAL_H

/**
 * Calls the users of a crew when their schedules say so, to the microsecond.
 * One thread: the loop's.
 */

#include "loadgen/conn_internal.h"

/** Private. */
struct qn_alarm {
    struct qn_crew *crew;
    uv_prepare_t turn; /* before the loop sleeps */
    uv_poll_t poll;    /* on the timer */
    int fd;            /* a timerfd */
    qn_time_t at;      /* what it is set to; QN_TIME_NEVER: nothing */
};

/** On the crew's loop; it calls nobody yet. The handles are closed by the
 *  loop's owner, then qn_alarm_fini.
 *  @return QN_OK or QN_EMFILE. */
int qn_alarm_init(struct qn_alarm *a, struct qn_crew *crew);

void qn_alarm_start(struct qn_alarm *a);

void qn_alarm_fini(struct qn_alarm *a);

#endif
