#include "loadgen/engine/send_timer_internal.h"

#include "core/base/assert.h"
#include "core/base/err.h"

#include <sys/timerfd.h>
#include <unistd.h>

/*
 * Before the loop sleeps, all users that are due are called, and a timerfd is
 * set to the next one. libuv's timers and epoll's timeout count milliseconds,
 * in which hundreds of requests may be due; a timerfd counts nanoseconds and
 * has no slack. Nothing spins: arrivals that became due while the thread woke
 * up or worked go out together.
 *
 * The timer is read only when nothing else is due, since setting it again
 * makes it unreadable: one system call per sleep.
 */

static void on_timer(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    struct qn_send_timer *a = poll->data;
    a->at = QN_TIME_NEVER;
    if (qn_agenda_first(&a->crew->agenda) == QN_TIME_NEVER) {
        uint64_t expired;
        ssize_t n = read(a->fd, &expired, sizeof expired);
        QN_ASSERT(n == sizeof expired || errno == EAGAIN);
    }
}

static void on_turn(uv_prepare_t *turn)
{
    struct qn_send_timer *a = turn->data;
    struct qn_agenda *agenda = &a->crew->agenda;
    if (qn_agenda_first(agenda) == QN_TIME_NEVER) {
        return;
    }
    qn_time_t now = qn_clock_now();
    while (qn_agenda_first(agenda) <= now) {
        qn_user_pump(&a->crew->user[qn_agenda_pop(agenda)]);
    }
    qn_time_t next = qn_agenda_first(agenda);
    if (next != a->at && next != QN_TIME_NEVER) {
        const struct itimerspec when = {
            .it_value = {.tv_sec = (time_t)(next / QN_S),
                         .tv_nsec = (long)(next % QN_S)}};
        timerfd_settime(a->fd, TFD_TIMER_ABSTIME, &when, NULL);
        a->at = next;
    }
}

int qn_send_timer_init(struct qn_send_timer *a, struct qn_crew *crew)
{
    *a = (struct qn_send_timer){.crew = crew, .at = QN_TIME_NEVER};
    a->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (a->fd < 0) {
        return QN_EMFILE;
    }
    if (uv_poll_init(crew->loop, &a->poll, a->fd) != 0) {
        close(a->fd);
        return QN_EMFILE;
    }
    uv_prepare_init(crew->loop, &a->turn);
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
