#ifndef QN_LOADGEN_ENGINE_SEND_TIMER_INTERNAL_H
#define QN_LOADGEN_ENGINE_SEND_TIMER_INTERNAL_H

/**
 * Calls the users of a crew when their schedules say so, to the microsecond.
 * One thread: the loop's.
 */

#include "loadgen/engine/conn_internal.h"

/** Private. */
struct qn_send_timer {
    struct qn_crew *crew;
    uv_prepare_t turn; /* before the loop sleeps */
    uv_poll_t poll;    /* on the timer */
    int fd;            /* a timerfd */
    qn_time_t at;      /* what it is set to; QN_TIME_NEVER: nothing */
};

/** On the crew's loop; it calls nobody yet. The handles are closed by the
 *  loop's owner, then qn_send_timer_fini.
 *  @return QN_OK or QN_EMFILE. */
int qn_send_timer_init(struct qn_send_timer *a, struct qn_crew *crew);

void qn_send_timer_start(struct qn_send_timer *a);

void qn_send_timer_fini(struct qn_send_timer *a);

#endif
