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
 * Draining is two steps (kvs/control/control_protocol.h), and has a limit
 * (supervisor_drain.c). A replica that says DRAINED without being asked was
 * told to leave by an operator (SIGTERM to its process); it is let go at once.
 *
 * A replica that ended is started again (supervisor_lives.c).
 */
#include "kvs/supervisor/supervisor_internal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/err.h"
#include "core/base/log.h"
#include "kvs/supervisor/ready.h"
#include "paxos/wire/msg.h"

/** Lives that are loading have so long to find that they need no snapshot. */
#define GRACE   ((qn_time_t)2 * QN_S)
#define LOOK_MS 50u /* meanwhile */
/** Who stood still for hundreds of messages is told the rest so soon after it
 *  goes on. */
#define NEWS_MS 100

static void finish(struct qn_supervisor *s, int status)
{
    if (!s->over) {
        s->over = true;
        s->status = status;
    }
}

/* There is no memory or descriptor for what it must hear of, so it could not be
 * told what has become of the others: better a new life. */
static void give_up(struct qn_supervisor *s, qn_node_t to, int err)
{
    qn_log(QN_LOG_ERROR, "replica %u cannot be told what it must hear of: %s",
           to, qn_strerror(err));
    if (!s->served) { /* it would wait for its peers for ever */
        qn_supervisor_blame(s, to, err);
        finish(s, QN_SUPERVISOR_NOT_BEGUN);
    } else {
        qn_supervisor_kill(&s->replica[to], SIGKILL);
    }
}

/* An end is dealt with when it is reported. */
static void told(struct qn_supervisor *s, qn_node_t to, int err)
{
    if (err != QN_OK && err != QN_EPEERDEAD) {
        give_up(s, to, err);
    }
}

void qn_supervisor_send(struct qn_supervisor *s, qn_node_t to,
                        const struct qn_control_msg *e, int fd)
{
    struct qn_supervised *r = &s->replica[to];
    if (r->control >= 0) {
        told(s, to, qn_control_backlog_send(&r->news, r->control, e, fd));
    }
}

/* Who has no room is looked at in time and not polled: what is missing may be
 * room for descriptors under way, of which poll knows nothing. */
static void news_turn(struct qn_supervisor *s)
{
    for (qn_node_t i = 0; i < s->config.replicas; i++) {
        struct qn_supervised *r = &s->replica[i];
        if (r->control >= 0 && qn_control_backlog_wait(&r->news)) {
            told(s, i, qn_control_backlog_flush(&r->news, r->control));
        }
    }
}

static int news_wait_ms(const struct qn_supervisor *s)
{
    for (qn_node_t i = 0; i < s->config.replicas; i++) {
        if (qn_control_backlog_wait(&s->replica[i].news)) {
            return NEWS_MS;
        }
    }
    return -1;
}

void qn_supervisor_say(struct qn_supervisor *s, qn_node_t to,
                       enum qn_control_kind kind)
{
    const struct qn_control_msg e = {.kind = kind};
    qn_supervisor_send(s, to, &e, -1);
}

void qn_supervisor_say_all(struct qn_supervisor *s, enum qn_control_kind kind)
{
    for (qn_node_t i = 0; i < s->config.replicas; i++) {
        qn_supervisor_say(s, i, kind);
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
    if (s->adopted == 0 && s->budget.said[0] != '\0') {
        qn_log(s->budget.beyond ? QN_LOG_WARN : QN_LOG_INFO, "%s",
               s->budget.said);
    }
    qn_ready_print(s->opts->ready, &s->config, &s->listen, place, s->adopted);
}

static void on_ready(struct qn_supervisor *s, qn_node_t from)
{
    qn_supervisor_ready(s, from);
    if (!s->served &&
        qn_supervisor_count(s, QN_SUPERVISED_SERVING, QN_SUPERVISED_SERVING) ==
            s->config.replicas) {
        announce(s);
        qn_supervisor_say_all(s, QN_CTL_READY); /* accept */
    }
}

static void on_failed(struct qn_supervisor *s, qn_node_t from, int err)
{
    if (s->served) {
        s->replica[from].error = err; /* told with its end */
    } else {
        qn_supervisor_blame(s, from, err);
    }
}

/* `fd` is taken, -1: none. */
static void on_message(struct qn_supervisor *s, qn_node_t from,
                       const struct qn_control_msg *e, int fd)
{
    if (qn_supervisor_adopted_message(s, from, e, fd)) {
        return;
    }
    switch (e->kind) {
    case QN_CTL_HELLO:
        if (s->replica[from].outbox_fd < 0) {
            qn_supervisor_hello(s, from, fd);
            fd = -1;
        }
        break;
    case QN_CTL_READY:
        on_ready(s, from);
        break;
    case QN_CTL_DRAINING:
        qn_supervisor_drain_limit(s, e->u.draining.timeout_s);
        break;
    case QN_CTL_DRAINED:
        s->stopped = s->stopped || e->u.drained.group_stopped;
        qn_supervisor_drained(s, from, e->u.drained.unsent_replies);
        break;
    case QN_CTL_ROLES:
        qn_supervisor_upgrade_roles(s, from, &e->u.roles);
        break;
    case QN_CTL_RECOVER:
        qn_supervisor_recover(s, from, &e->u.recover);
        break;
    case QN_CTL_RECOVERABLE:
        qn_supervisor_recoverable(s, from, &e->u.recoverable);
        break;
    case QN_CTL_RECOVERED:
        qn_supervisor_recovered(s, from, &e->u.recovered);
        break;
    case QN_CTL_FAILED:
        on_failed(s, from, (int)e->u.failed.error);
        break;
    default:
        qn_log(QN_LOG_ERROR, "replica %u: unexpected control message %s", from,
               qn_control_name((uint32_t)e->kind));
    }
    if (fd >= 0) {
        close(fd);
    }
}

/* All that has arrived. */
static void listen_to(struct qn_supervisor *s, qn_node_t from)
{
    struct qn_supervised *r = &s->replica[from];
    const struct qn_control_link link = {.direction = QN_CTL_TO_SUPERVISOR,
                                         .nodes = s->config.replicas};
    char fault[QN_CONTROL_FAULT_MAX];
    struct qn_control_msg e;
    int fd;
    while (r->control >= 0) {
        int err = qn_control_recv(r->control, &link, &e, &fd, false);
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
        } else {
            qn_log(QN_LOG_ERROR, "replica %u: %s", from,
                   qn_control_fault_text(&e, fault));
        }
    }
}

/* ---- ends ---------------------------------------------------------------- */

/* Nobody complete is left, but lives that are on their way. With the memory
 * acceptor they go on by themselves if the ring of the last leader reaches back
 * to the first slot; that shows at once, or never. */
static bool may_go_on(struct qn_supervisor *s)
{
    bool some = s->config.memory_acceptor && !s->draining &&
                qn_supervisor_count(s, QN_SUPERVISED_STARTING,
                                    QN_SUPERVISED_STARTING) != 0;
    if (some && s->lost_at == QN_TIME_NEVER) {
        s->lost_at = qn_clock_now() + GRACE;
        qn_log(QN_LOG_WARN,
               "no complete replica is left; those that are "
               "loading have %u s to find that they need none",
               (unsigned)(GRACE / QN_S));
    }
    return some && qn_clock_now() < s->lost_at;
}

/* The last words, for when all processes have ended. What was shown is the
 * least that was decided. */
static void note_lost(struct qn_supervisor *s)
{
    uint64_t epoch;
    uint64_t hi;
    qn_load_pair(qn_commons_word(s->commons), &epoch, &hi);
    /* relaxed: a number for people. */
    uint64_t shown = qn_load(qn_commons_read_index(s->commons), QN_RELAXED);
    s->lost_upto = QN_MAX(hi, shown <= QN_SLOT_MAX ? shown : 0);
    s->lost = true;
}

static void say_lost(const struct qn_supervisor *s)
{
    bool any = s->last_end[0] != '\0';
    qn_log(QN_LOG_ERROR,
           "all data is lost: %s%s, and no complete replica is left. All "
           "positions up to %llu had been decided. Start quoind again: it "
           "begins empty",
           any ? s->last_end : "none that was found is complete",
           any ? ", the last one that had it" : "",
           (unsigned long long)s->lost_upto);
}

/* Nobody is left who has the data; what others have said is heard first. */
static void check_lost(struct qn_supervisor *s)
{
    for (qn_node_t i = 0; i < s->config.replicas; i++) {
        listen_to(s, i);
    }
    enum qn_supervised_state least =
        s->draining ? QN_SUPERVISED_STARTING : QN_SUPERVISED_SERVING;
    if (qn_supervisor_count(s, least, QN_SUPERVISED_DRAINED) != 0) {
        s->lost_at = QN_TIME_NEVER;
    } else if (!may_go_on(s)) {
        if (!s->draining && !s->over) {
            note_lost(s);
        }
        finish(s, s->draining ? qn_supervisor_drain_status(s)
                              : QN_SUPERVISOR_LOST);
    }
}

static void on_end(struct qn_supervisor *s, qn_node_t i, int status)
{
    listen_to(s, i); /* its last words */
    if (!s->served && !s->draining) {
        s->replica[i].state = QN_SUPERVISED_ENDED;
        qn_supervisor_blame(s, i, QN_EPEERDEAD);
        finish(s, QN_SUPERVISOR_NOT_BEGUN);
        return;
    }
    qn_supervisor_ended(s, i, status);
    if (s->draining) {
        qn_supervisor_drain_check(s);
    }
    check_lost(s);
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

/* -1: never. */
static int sooner(int a, int b)
{
    return a < 0 ? b : b < 0 ? a : QN_MIN(a, b);
}

/* Milliseconds poll may sleep; -1: for ever. */
static int wait_ms(const struct qn_supervisor *s)
{
    int drain = qn_supervisor_drain_wait_ms(s);
    int lives = qn_supervisor_lives_wait_ms(s);
    int wait = sooner(sooner(drain, lives), qn_supervisor_upgrade_wait_ms(s));
    wait = sooner(wait, news_wait_ms(s));
    wait = sooner(wait, qn_supervisor_late_wait_ms(s));
    return s->lost_at == QN_TIME_NEVER ? wait
                                       : (int)QN_MIN((unsigned)wait, LOOK_MS);
}

static void turn(struct qn_supervisor *s)
{
    struct pollfd p[2 + 2 * QN_NODES_MAX];
    uint32_t n = s->config.replicas;
    struct pollfd *heir = &p[1 + 2 * n];
    p[0] = (struct pollfd){.fd = s->signal_fd, .events = POLLIN};
    for (qn_node_t i = 0; i < n; i++) {
        /* a negative descriptor is skipped by poll */
        p[1 + i] =
            (struct pollfd){.fd = s->replica[i].control, .events = POLLIN};
        p[1 + n + i] =
            (struct pollfd){.fd = s->replica[i].pidfd, .events = POLLIN};
    }
    *heir = (struct pollfd){.fd = s->heir >= 0 ? s->heir : s->lock,
                            .events = POLLIN};
    int ready = poll(p, 2 + 2 * n, wait_ms(s));
    QN_ASSERT(ready >= 0 || errno == EINTR);
    for (qn_node_t i = 0; ready > 0 && i < n; i++) {
        if (p[1 + i].revents != 0) {
            listen_to(s, i);
        }
    }
    for (qn_node_t i = 0; ready > 0 && !s->over && i < n; i++) {
        if (p[1 + n + i].revents != 0) {
            on_end(s, i, 0);
        }
    }
    if (ready > 0 && p[0].revents != 0) {
        listen_to_signals(s);
    }
    if (ready > 0 && !s->over && heir->revents != 0) {
        qn_supervisor_heir_turn(s);
    }
    news_turn(s);
    qn_supervisor_drain_turn(s);
    qn_supervisor_upgrade_turn(s);
    qn_supervisor_recover_turn(s);
    qn_supervisor_late_turn(s);
    qn_supervisor_lives_turn(s);
    if (s->lost_at != QN_TIME_NEVER && !s->over) {
        check_lost(s);
    }
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
        } else if (s->adopted > 0) {
            announce(s);
            check_lost(s);
            if (opts->upgrade) {
                qn_supervisor_upgrade_begin(s);
            }
        }
        while (!s->over) {
            turn(s);
        }
        qn_supervisor_end(s);
        if (s->lost) {
            say_lost(s);
        }
        status = s->status;
    }
    if (status == QN_SUPERVISOR_NOT_BEGUN) {
        snprintf(why, cap, "%s", s->why);
    }
    qn_topology_fini(&s->topology);
    free(s);
    return status;
}
