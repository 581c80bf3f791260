#include "loadgen/engine/send_timer_internal.h"

#include "core/base/assert.h"
#include "core/base/err.h"

#include <sys/timerfd.h>
#include <unistd.h>

/*
 * Before the loop sleeps, all users that are due send, and a timerfd is set to
 * the next deadline. libuv's timers and the timeout of epoll count
 * milliseconds, in which hundreds of requests may be due; a timerfd counts
 * nanoseconds and has no slack. Nothing spins: requests that became due while
 * the thread woke up or worked are sent together.
 *
 * The timer is read only if no other deadline is set, since setting it again
 * makes it unreadable: one system call per sleep.
 */

static void on_timer(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    struct qn_send_timer *a = poll->data;
    a->at = QN_TIME_NEVER;
    if (qn_timer_heap_first(&a->pool->timers) == QN_TIME_NEVER) {
        uint64_t expired;
        ssize_t n = read(a->fd, &expired, sizeof expired);
        QN_ASSERT(n == sizeof expired || errno == EAGAIN);
    }
}

static void on_turn(uv_prepare_t *turn)
{
    struct qn_send_timer *a = turn->data;
    struct qn_timer_heap *timers = &a->pool->timers;
    if (qn_timer_heap_first(timers) == QN_TIME_NEVER) {
        return;
    }
    qn_time_t now = qn_clock_now();
    while (qn_timer_heap_first(timers) <= now) {
        qn_virtual_user_send_due(&a->pool->user[qn_timer_heap_pop(timers)]);
    }
    qn_time_t next = qn_timer_heap_first(timers);
    if (next != a->at && next != QN_TIME_NEVER) {
        const struct itimerspec when = {
            .it_value = {.tv_sec = (time_t)(next / QN_S),
                         .tv_nsec = (long)(next % QN_S)}};
        timerfd_settime(a->fd, TFD_TIMER_ABSTIME, &when, NULL);
        a->at = next;
    }
}

int qn_send_timer_init(struct qn_send_timer *a, struct qn_user_pool *pool)
{
    *a = (struct qn_send_timer){.pool = pool, .at = QN_TIME_NEVER};
    a->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (a->fd < 0) {
        return QN_EMFILE;
    }
    if (uv_poll_init(pool->loop, &a->poll, a->fd) != 0) {
        close(a->fd);
        return QN_EMFILE;
    }
    uv_prepare_init(pool->loop, &a->turn);
    a->poll.data = a;
    a->turn.data = a;
    return QN_OK;
}

void qn_send_timer_start(struct qn_send_timer *a)
{
    uv_prepare_start(&a->turn, on_turn);
    uv_poll_start(&a->poll, UV_READABLE, on_timer);
}

void qn_send_timer_fini(struct qn_send_timer *a)
{
    close(a->fd);
}
