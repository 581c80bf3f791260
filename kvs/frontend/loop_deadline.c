/*
 * The deadline of a turn (loop_deadline.h). Most turns set the time that is set
 * already and cost one comparison: starting a timer is a change of libuv's
 * heap.
 */
#include "kvs/frontend/loop_deadline.h"

static void on_timer(uv_timer_t *timer)
{
    struct qn_loop_deadline *a = timer->data;
    a->at = QN_TIME_NEVER;
    a->rang = true;
}

void qn_loop_deadline_init(struct qn_loop_deadline *a, uv_loop_t *loop)
{
    a->at = QN_TIME_NEVER;
    a->rang = false;
    uv_timer_init(loop, &a->timer);
    a->timer.data = a;
}

void qn_loop_deadline_set(struct qn_loop_deadline *a, qn_time_t at,
                          qn_time_t now)
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
