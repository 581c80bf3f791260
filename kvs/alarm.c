/*
 * The deadline of a turn (alarm.h). Most turns set the time that is set already
 * and cost one comparison: starting a timer is a change of libuv's heap.
 */
#include "kvs/alarm.h"

static void on_timer(uv_timer_t *timer)
{
    struct qn_alarm *a = timer->data;
    a->at = QN_TIME_NEVER;
    a->rang = true;
}

void qn_alarm_init(struct qn_alarm *a, uv_loop_t *loop)
{
    a->at = QN_TIME_NEVER;
    a->rang = false;
    uv_timer_init(loop, &a->timer);
    a->timer.data = a;
}

void qn_alarm_set(struct qn_alarm *a, qn_time_t at, qn_time_t now)
{
    a->rang = false;
    if (at == a->at) {
        return;
    }
    a->at = at;
    if (at == QN_TIME_NEVER) {
        uv_timer_stop(&a->timer);
        return;
    }
    /* Rounded up: a timer that fires early would only fire again. */
    uint64_t ms = at <= now ? 0 : (at - now + QN_MS - 1) / QN_MS;
    uv_update_time(a->timer.loop);
    uv_timer_start(&a->timer, on_timer, ms, 0);
}
