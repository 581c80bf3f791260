/*
 * The supervisor.
 *
 * State is what each replica was last known to be:
 *
 *     STARTING --READY--> SERVING --DRAINED--> DRAINED --exit--> ENDED
 *         \________________________\______________________exit____/
 *
 * and whether the whole is to end. Everything happens in answer to one of three
 * things that poll() reports: a signal (read from a signalfd, so that nothing
 * runs in a handler), a message of a replica, or the end of a process. What was
 * said before an end is read before the end is dealt with.
 *
 * Draining is two steps (kvs/boot.h), and has a limit (supervisor_drain.c). A
 * replica that says DRAINED without being asked was told to leave by an
 * operator (SIGTERM to its process); it is let go at once.
 *
 * A replica that ended is not started again here. Its sockets are closed, so
 * that the kernel gives its share of new connections to the others.
 */
#include "kvs/supervisor_internal.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/err.h"
#include "core/base/log.h"
#include "kvs/ready.h"

static uint32_t count(const struct qn_supervisor *s,
                      enum qn_supervised_state from,
                      enum qn_supervised_state to)
{
    uint32_t n = 0;
    for (qn_node_t i = 0; i < s->config.replicas; i++) {
        n += s->replica[i].state >= from && s->replica[i].state <= to;
    }
    return n;
}

static void finish(struct qn_supervisor *s, int status)
{
    if (!s->over) {
        s->over = true;
        s->status = status;
    }
}

void qn_supervisor_say(struct qn_supervisor *s, qn_node_t to,
                       enum qn_boot_kind kind, qn_node_t about, int fd)
{
    const struct qn_boot_event e = {.kind = kind,
                                    .node = about,
                                    .incarnation =
                                        s->replica[about].incarnation};
    if (s->replica[to].control < 0) {
        return;
    }
    int err = qn_boot_send(s->replica[to].control, &e, fd);
    if (err == QN_OK || err == QN_EPEERDEAD) {
        return; /* an end is dealt with when it is reported */
    }
    qn_log(QN_LOG_ERROR, "replica %u does not take messages: %s", to,
           qn_strerror(err));
    if (!s->served) { /* it would wait for its peers for ever */
        qn_supervisor_blame(s, to, err);
        finish(s, QN_SUPERVISOR_NOT_BEGUN);
    }
}

void qn_supervisor_say_all(struct qn_supervisor *s, enum qn_boot_kind kind)
{
    for (qn_node_t i = 0; i < s->config.replicas; i++) {
        qn_supervisor_say(s, i, kind, i, -1);
    }
}

static void say_others(struct qn_supervisor *s, enum qn_boot_kind kind,
                       qn_node_t about, int fd)
{
    for (qn_node_t i = 0; i < s->config.replicas; i++) {
        if (i != about) {
            qn_supervisor_say(s, i, kind, about, fd);
        }
    }
}

/* ---- what replicas say --------------------------------------------------- */

static void announce(struct qn_supervisor *s)
{
    struct qn_place place[QN_NODES_MAX];
    for (qn_node_t i = 0; i < s->config.replicas; i++) {
        place[i] = s->replica[i].place;
    }
    s->served = true;
    if (s->config.replicas == 1) {
        qn_log(QN_LOG_WARN, "one replica: nothing is replicated");
    }
    qn_ready_print(s->opts->ready, &s->config, &s->listen, place);
}

static void on_message(struct qn_supervisor *s, qn_node_t from,
                       const struct qn_boot_event *e, int fd)
{
    struct qn_supervised *r = &s->replica[from];
    switch (e->kind) {
    case QN_BOOT_HELLO:
        if (fd >= 0 && r->state == QN_SUPERVISED_STARTING) {
            say_others(s, QN_BOOT_PEER, from, fd);
        }
        break;
    case QN_BOOT_READY:
        r->state = QN_MAX(r->state, QN_SUPERVISED_SERVING);
        if (!s->served && count(s, QN_SUPERVISED_SERVING,
                                QN_SUPERVISED_SERVING) == s->config.replicas) {
            announce(s);
        }
        break;
    case QN_BOOT_DRAINING:
        qn_supervisor_drain_limit(s, e->value);
        break;
    case QN_BOOT_DRAINED:
        qn_supervisor_drained(s, from, e->value);
        break;
    case QN_BOOT_SHUTDOWN:
        if (!s->draining) {
            qn_supervisor_drain(s);
        }
        break;
    case QN_BOOT_FAILED:
        qn_supervisor_blame(s, from, (int)e->error);
        break;
    default:
        qn_log(QN_LOG_ERROR, "replica %u says what nobody understands (%u)",
               from, e->kind);
    }
}

/* All that has arrived. */
static void listen_to(struct qn_supervisor *s, qn_node_t from)
{
    struct qn_supervised *r = &s->replica[from];
    struct qn_boot_event e;
    int fd;
    while (r->control >= 0) {
        int err = qn_boot_recv(r->control, &e, &fd, false);
        if (err == QN_EAGAIN) {
            return;
        }
        if (err == QN_EPEERDEAD) { /* its end is reported by SIGCHLD */
            close(r->control);
            r->control = -1;
            return;
        }
        if (err == QN_OK) {
            on_message(s, from, &e, fd);
            if (fd >= 0) {
                close(fd);
            }
        }
    }
}

/* ---- ends ---------------------------------------------------------------- */

static void report_end(const struct qn_supervisor *s, qn_node_t i, int status)
{
    char how[64];
    const struct qn_supervised *r = &s->replica[i];
    uint32_t left = count(s, QN_SUPERVISED_STARTING, QN_SUPERVISED_DRAINED);
    if (WIFSIGNALED(status)) {
        snprintf(how, sizeof how, "was ended by signal %d (%s)",
                 WTERMSIG(status), strsignal(WTERMSIG(status)));
    } else {
        snprintf(how, sizeof how, "has ended with status %d",
                 WEXITSTATUS(status));
    }
    qn_log(QN_LOG_WARN, "replica %u (process %d) %s; %u of %u go on", i,
           (int)r->pid, how, left, s->config.replicas);
}

static void on_end(struct qn_supervisor *s, qn_node_t i, int status)
{
    struct qn_supervised *r = &s->replica[i];
    listen_to(s, i); /* its last words */
    bool wanted =
        s->draining && r->state == QN_SUPERVISED_DRAINED && status == 0;
    s->undrained =
        s->undrained || (s->draining && r->state != QN_SUPERVISED_DRAINED);
    r->state = QN_SUPERVISED_ENDED;
    if (r->control >= 0) {
        close(r->control);
        r->control = -1;
    }
    qn_listen_close_node(&s->listen, i);
    if (!s->served && !s->draining) {
        qn_supervisor_blame(s, i, QN_EPEERDEAD);
        finish(s, QN_SUPERVISOR_NOT_BEGUN);
        return;
    }
    if (!wanted && !r->killed) {
        report_end(s, i, status);
    }
    say_others(s, QN_BOOT_PEER_DOWN, i, -1);
    if (s->draining) {
        qn_supervisor_drain_check(s);
    }
    if (count(s, QN_SUPERVISED_STARTING, QN_SUPERVISED_DRAINED) == 0) {
        finish(s, s->draining ? qn_supervisor_drain_status(s)
                              : QN_SUPERVISOR_LOST);
    }
}

static void reap(struct qn_supervisor *s)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        for (qn_node_t i = 0; i < s->config.replicas; i++) {
            if (s->replica[i].pid == pid &&
                s->replica[i].state != QN_SUPERVISED_ENDED) {
                on_end(s, i, status);
            }
        }
    }
}

static void on_signal(struct qn_supervisor *s, int signum)
{
    if (signum == SIGCHLD) {
        reap(s);
    } else if (s->draining) {
        finish(s, 128 + signum);
    } else if (s->served) {
        qn_supervisor_drain(s);
    } else {
        finish(s, QN_SUPERVISOR_DRAINED); /* not begun: nothing is drained */
    }
}

/* ---- life ---------------------------------------------------------------- */

static void listen_to_signals(struct qn_supervisor *s)
{
    struct signalfd_siginfo info;
    while (!s->over &&
           read(s->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        on_signal(s, (int)info.ssi_signo);
    }
}

static void turn(struct qn_supervisor *s)
{
    struct pollfd p[1 + QN_NODES_MAX];
    uint32_t n = s->config.replicas;
    p[0] = (struct pollfd){.fd = s->signal_fd, .events = POLLIN};
    for (qn_node_t i = 0; i < n; i++) {
        /* a negative descriptor is skipped by poll */
        p[1 + i] =
            (struct pollfd){.fd = s->replica[i].control, .events = POLLIN};
    }
    int ready = poll(p, 1 + n, qn_supervisor_drain_wait_ms(s));
    QN_ASSERT(ready >= 0 || errno == EINTR);
    for (qn_node_t i = 0; ready > 0 && i < n; i++) {
        if (p[1 + i].revents != 0) {
            listen_to(s, i);
        }
    }
    if (ready > 0 && p[0].revents != 0) {
        listen_to_signals(s);
    }
    qn_supervisor_drain_turn(s);
}

int qn_supervisor_run(const struct qn_supervisor_opts *opts, char *why,
                      size_t cap)
{
    struct qn_supervisor *s = qn_supervisor_create();
    if (s == NULL) {
        snprintf(why, cap, "out of memory");
        return QN_SUPERVISOR_NOT_BEGUN;
    }
    int status = QN_SUPERVISOR_NOT_BEGUN;
    if (qn_supervisor_plan(s, opts) == QN_OK) {
        if (qn_supervisor_start(s) != QN_OK) {
            finish(s, QN_SUPERVISOR_NOT_BEGUN);
        }
        while (!s->over) {
            turn(s);
        }
        qn_supervisor_end(s);
        status = s->status;
    }
    if (status == QN_SUPERVISOR_NOT_BEGUN) {
        snprintf(why, cap, "%s", s->why);
    }
    free(s);
    return status;
}
