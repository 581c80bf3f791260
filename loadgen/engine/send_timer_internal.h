#ifndef QN_LOADGEN_ENGINE_SEND_TIMER_INTERNAL_H
#define QN_LOADGEN_ENGINE_SEND_TIMER_INTERNAL_H

/**
 * Lets the users of a pool send when their schedules say so, to the
 * microsecond. One thread: the loop's.
 */

#include "loadgen/engine/conn_internal.h"

/** Private. */
struct qn_send_timer {
    struct qn_user_pool *pool;
    uv_prepare_t turn; /* called before the loop sleeps */
    uv_poll_t poll;    /* polls the timer */
    int fd;            /* a timerfd */
    qn_time_t at;      /* deadline that is set; QN_TIME_NEVER: none */
};

/** Make the timer on the loop of the pool, not started. The owner of the loop
 *  closes the handles, then calls qn_send_timer_fini. @return QN_OK or
 *  QN_EMFILE. */
int qn_send_timer_init(struct qn_send_timer *a, struct qn_user_pool *pool);

void qn_send_timer_start(struct qn_send_timer *a);

void qn_send_timer_fini(struct qn_send_timer *a);

#endif
