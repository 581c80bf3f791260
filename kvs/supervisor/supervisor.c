/*
 * The main loop of the supervisor: poll, turn what it reports into events of
 * the machine (kvs/supervision), and sleep until the machine's deadline.
 *
 * Order within one round: messages, ends of adopted processes, signals (among
 * them ends of children), the successor, then TIMER. Messages that a process
 * sent before its end are read before its end is dealt with. When any process
 * has ended, all that other replicas have said is read before TIMER, in which
 * the machine judges whether the data is lost.
 */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/base/log.h"
#include "core/place/liveness.h"
#include "kvs/supervisor/supervisor_internal.h"

/* ---- what happens -------------------------------------------------------- */

/* All that has arrived. */
static void hear(struct qn_supervisor *s, qn_node_t from)
{
    qn_supervisor_hear(s, from, qn_config_seats(&s->config), NULL);
}

static void on_end(struct qn_supervisor *s, qn_node_t i, int status)
{
    struct qn_child *c = &s->child[i];
    const uint64_t incarnation = s->machine.replica[i].incarnation;
    QN_ASSERT(c->runs);
    hear(s, i); /* its last words */
    c->runs = false;
    qn_supervisor_event(
        s, (struct qn_supervision_event){
               .kind = QN_ON_EXIT,
               .node = i,
               .number = status,
               .shut_down = c->pidfd >= 0 &&
                            qn_liveness_left(s->commons, i, incarnation)});
}

/* @return true: a process has ended. */
static bool reap(struct qn_supervisor *s)
{
    int status;
    pid_t pid;
    bool any = false;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        for (qn_node_t i = 0; i < qn_config_seats(&s->config); i++) {
            const struct qn_child *c = &s->child[i];
            if (c->pid == pid && c->runs && c->pidfd < 0) {
                on_end(s, i, status);
                any = true;
            }
        }
    }
    return any;
}

static bool hear_signals(struct qn_supervisor *s)
{
    struct signalfd_siginfo info;
    bool any = false;
    while (!s->over &&
           read(s->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        if ((int)info.ssi_signo == SIGCHLD) {
            any = reap(s) || any;
        } else {
            qn_supervisor_event(
                s, (struct qn_supervision_event){
                       .kind = QN_ON_SIGNAL, .number = (int)info.ssi_signo});
        }
    }
    return any;
}

/* ---- one round ----------------------------------------------------------- */

/* Descriptors of one poll; a negative one is skipped. */
struct watched {
    struct pollfd signals;
    struct pollfd successor;
    struct pollfd control[QN_NODES_MAX];
    struct pollfd end[QN_NODES_MAX];
};

#define WATCHED_COUNT (2u + 2u * QN_NODES_MAX)
static_assert(sizeof(struct watched) == WATCHED_COUNT * sizeof(struct pollfd),
              "one array for poll");

static void watch(const struct qn_supervisor *s, struct watched *w)
{
    w->signals = (struct pollfd){.fd = s->signal_fd, .events = POLLIN};
    w->successor = (struct pollfd){
        .fd = s->successor >= 0 ? s->successor : s->lock, .events = POLLIN};
    for (qn_node_t i = 0; i < QN_NODES_MAX; i++) {
        const bool ours = i < qn_config_seats(&s->config);
        w->control[i] = (struct pollfd){.fd = ours ? s->child[i].control : -1,
                                        .events = POLLIN};
        w->end[i] = (struct pollfd){.fd = ours ? s->child[i].pidfd : -1,
                                    .events = POLLIN};
    }
}

int qn_supervisor_ms_until(qn_time_t at)
{
    const qn_time_t now = qn_clock_now();
    if (at == QN_TIME_NEVER) {
        return -1;
    }
    const qn_time_t left = at - QN_MIN(now, at);
    return (int)QN_MIN((left + QN_MS - 1) / QN_MS, (qn_time_t)INT32_MAX);
}

/* -1: never. */
static int sooner(int a, int b)
{
    return a < 0 ? b : b < 0 ? a : QN_MIN(a, b);
}

/* Milliseconds poll may sleep; -1: for ever. */
static int wait_ms(const struct qn_supervisor *s)
{
    const int wait = sooner(qn_supervisor_ms_until(s->actions.deadline),
                            qn_supervisor_flush_wait_ms(s));
    return sooner(wait, qn_supervisor_unreached_wait_ms(s));
}

static void turn(struct qn_supervisor *s)
{
    struct watched w;
    watch(s, &w);
    const int ready =
        poll((struct pollfd *)(void *)&w, WATCHED_COUNT, wait_ms(s));
    bool ended = false;
    QN_ASSERT(ready >= 0 || errno == EINTR);
    for (qn_node_t i = 0; ready > 0 && i < qn_config_seats(&s->config); i++) {
        if (w.control[i].revents != 0) {
            hear(s, i);
        }
    }
    for (qn_node_t i = 0;
         ready > 0 && !s->over && i < qn_config_seats(&s->config); i++) {
        if (w.end[i].revents != 0) {
            on_end(s, i, 0);
            ended = true;
        }
    }
    if (ready > 0 && w.signals.revents != 0) {
        ended = hear_signals(s) || ended;
    }
    if (ready > 0 && !s->over && w.successor.revents != 0) {
        qn_supervisor_successor_turn(s);
    }
    for (qn_node_t i = 0; ended && i < qn_config_seats(&s->config); i++) {
        hear(s, i);
    }
    qn_supervisor_flush(s);
    qn_supervisor_unreached_turn(s);
    qn_supervisor_node_event(s, QN_ON_TIMER, 0);
}

/* ---- from start to end --------------------------------------------------- */

static void begin_upgrade(struct qn_supervisor *s)
{
    struct qn_supervision_event e = {.kind = QN_ON_UPGRADE};
    for (qn_node_t i = 0; i < qn_config_seats(&s->config); i++) {
        const bool same =
            s->child[i].runs && qn_supervisor_same_program(s->child[i].pid);
        e.same_program |= same ? (uint64_t)1 << i : 0;
    }
    qn_supervisor_event(s, e);
}

/* A group that was taken over: is it complete, and is it to be upgraded? */
static void go_on(struct qn_supervisor *s)
{
    for (qn_node_t i = 0; i < qn_config_seats(&s->config); i++) {
        hear(s, i);
    }
    if (s->opts->upgrade) { /* before missing replicas are started */
        begin_upgrade(s);
    }
    qn_supervisor_node_event(s, QN_ON_TIMER, 0);
}

static int run(struct qn_supervisor *s)
{
    char last_words[512];
    if (qn_supervisor_start(s) != QN_OK) {
        s->over = true;
        s->status = QN_SUPERVISOR_NOT_BEGUN;
    } else if (s->machine.adopted > 0) {
        go_on(s);
    }
    while (!s->over) {
        turn(s);
    }
    qn_supervisor_end(s);
    if (qn_supervision_last_words(&s->machine, last_words, sizeof last_words)) {
        qn_log(QN_LOG_ERROR, "%s", last_words);
    }
    return s->status;
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
        status = run(s);
    }
    if (status == QN_SUPERVISOR_NOT_BEGUN) {
        snprintf(why, cap, "%s", s->why);
    }
    qn_topology_fini(&s->topology);
    free(s);
    return status;
}
