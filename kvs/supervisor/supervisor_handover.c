/*
 * One supervisor follows another that lives (`quoind --upgrade`;
 * kvs/control/adopt.h): both ends of the conversation. When the living one may
 * leave is the machine's decision (kvs/supervision/successor.c).
 *
 * The successor comes to the lock of the address, is told what the group speaks
 * and what its options are, and judges whether it can go on with that. Nothing
 * has changed until it sends START. From then on everything is as if the old
 * one had died. Should the successor die in between, the replicas are adopted
 * by any other.
 *
 *     successor                     supervisor
 *     connect, ADOPT      ->        one successor at a time
 *                         <-        ADOPT, FORMAT..., CONFIG, VOTERS, START
 *     fits? else hang up
 *     START               ->        leaves: status 0
 *     its end (pidfd)
 */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/err.h"
#include "core/base/log.h"
#include "kvs/control/adopt.h"
#include "kvs/control/formats.h"
#include "kvs/supervisor/supervisor_internal.h"

enum { PATIENCE_S = 5 }; /* with one that does not answer, or does not end */

/* ---- the one that leaves ------------------------------------------------- */

void qn_supervisor_hang_up_successor(struct qn_supervisor *s)
{
    QN_ASSERT(s->successor >= 0);
    close(s->successor);
    s->successor = -1;
}

static int say_config(struct qn_supervisor *s)
{
    const struct qn_control_msg e = {.kind = QN_CTL_CONFIG};
    int fd = qn_adopt_config_write(&s->config);
    if (fd < 0) {
        return fd;
    }
    int err = qn_control_send(s->successor, &e, fd);
    close(fd);
    return err;
}

static void hang_up_if(struct qn_supervisor *s, int err)
{
    if (err != QN_OK && err != QN_EAGAIN) {
        qn_supervisor_hang_up_successor(s);
    }
}

void qn_supervisor_answer_successor(struct qn_supervisor *s)
{
    const struct qn_control_msg own = {.kind = QN_CTL_ADOPT,
                                       .u.adopt.newest = QN_ADOPT_VERSION};
    const struct qn_control_msg voters = {
        .kind = QN_CTL_VOTERS,
        .u.voters = {.entries = s->machine.voters_entries,
                     .voters = s->machine.voters}};
    const struct qn_control_msg go = {.kind = QN_CTL_START};
    int err = qn_control_send(s->successor, &own, -1);
    if (!s->successor_speaks) { /* it sees that, and hangs up */
        hang_up_if(s, err);
        return;
    }
    err = err == QN_OK ? qn_adopt_give_formats(s->successor) : err;
    err = err == QN_OK ? say_config(s) : err;
    err = err == QN_OK ? qn_control_send(s->successor, &voters, -1) : err;
    err = err == QN_OK ? qn_control_send(s->successor, &go, -1) : err;
    hang_up_if(s, err);
}

void qn_supervisor_refuse_successor(struct qn_supervisor *s)
{
    const struct qn_control_msg busy = {.kind = QN_CTL_FAILED,
                                        .u.failed.error = QN_EBUSY};
    hang_up_if(s, qn_control_send(s->successor, &busy, -1));
}

static void on_asked(struct qn_supervisor *s, const struct qn_ctl_adopt *m)
{
    s->successor_speaks = qn_adopt_version(m->oldest, m->newest) != 0;
    qn_supervisor_node_event(s, QN_ON_SUCCESSOR_ASKS, 0);
}

void qn_supervisor_successor_turn(struct qn_supervisor *s)
{
    const struct qn_control_link link = {.direction = QN_CTL_FROM_HEIR,
                                         .nodes = QN_NODES_MAX};
    struct qn_control_msg m;
    int with = -1;
    if (s->successor < 0) {
        const int fd = qn_adopt_accept(s->lock, &s->successor_pid);
        s->successor = fd < 0 ? -1 : fd;
        return;
    }
    const int err = qn_control_recv(s->successor, &link, &m, &with, false);
    qn_supervisor_close(with);
    if (err != QN_OK) {
        hang_up_if(s, err);
    } else if (m.kind == QN_CTL_START) {
        qn_supervisor_node_event(s, QN_ON_SUCCESSOR_TAKES, 0);
    } else if (m.kind == QN_CTL_ADOPT) {
        on_asked(s, &m.u.adopt);
    }
}

/* ---- the successor ------------------------------------------------------- */

struct succession {
    int fd;
    int pidfd; /* of the one that leaves */
    pid_t pid;
    qn_time_t until; /* ns */
    uint32_t spoken[QN_CTL_FORMATS_MAX];
    uint32_t count;
    uint64_t voters; /* mask */
    bool whole;      /* all is said */
    bool gone;       /* it has died meanwhile */
};

int qn_supervisor_upgrade_fits(struct qn_supervisor *s, uint64_t voters)
{
    if ((voters & (voters - 1)) != 0) {
        return QN_OK;
    }
    snprintf(s->why, sizeof s->why,
             "cannot upgrade a single-replica server in place: no other "
             "replica holds its data. Stop it, then start this version");
    return QN_EINVAL;
}

static int refuse(struct qn_supervisor *s, int err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static int refuse(struct qn_supervisor *s, int err, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(s->why, sizeof s->why, fmt, args);
    va_end(args);
    return err;
}

static int on_options(struct qn_supervisor *s, int fd)
{
    struct qn_config group;
    int err = qn_adopt_config_read(&group, fd, s->why, sizeof s->why);
    if (err == QN_OK) {
        err = qn_adopt_config_merge(&group, s->opts->config, s->why,
                                    sizeof s->why);
    }
    return err;
}

static int on_whole(struct qn_supervisor *s, struct succession *x)
{
    int err = qn_formats_fit(x->spoken, x->count, s->why, sizeof s->why);
    x->whole = true;
    return err == QN_OK ? qn_supervisor_upgrade_fits(s, x->voters) : err;
}

static int on_said(struct qn_supervisor *s, struct succession *x,
                   const struct qn_control_msg *e, int fd)
{
    switch (e->kind) {
    case QN_CTL_ADOPT:
        return qn_adopt_version(e->u.adopt.newest, e->u.adopt.newest) != 0
                   ? QN_OK
                   : refuse(s, QN_EINVAL,
                            "the quoind there is of another version (it speaks "
                            "%llu, this one %u to %u); nothing has changed",
                            (unsigned long long)e->u.adopt.newest,
                            QN_ADOPT_OLDEST, QN_ADOPT_VERSION);
    case QN_CTL_FORMAT:
        x->spoken[e->u.format.format] = e->u.format.version;
        x->count = QN_MAX(x->count, e->u.format.format + 1);
        return QN_OK;
    case QN_CTL_CONFIG:
        return on_options(s, fd);
    case QN_CTL_VOTERS:
        x->voters = e->u.voters.voters;
        return QN_OK;
    case QN_CTL_START:
        return on_whole(s, x);
    default:
        return refuse(s, QN_EBUSY,
                      "the quoind there is not serving just now, or is ending; "
                      "try again");
    }
}

/* Wait for something, or for the end of that process. */
static int wait_for(struct qn_supervisor *s, const struct succession *x,
                    const char *what)
{
    struct pollfd p[3] = {{.fd = s->signal_fd, .events = POLLIN},
                          {.fd = x->pidfd, .events = POLLIN},
                          {.fd = x->fd, .events = POLLIN}};
    qn_time_t now = qn_clock_now();
    qn_time_t left = x->until - QN_MIN(now, x->until);
    int n = poll(p, 3, (int)((left + QN_MS - 1) / QN_MS));
    QN_ASSERT(n >= 0 || errno == EINTR);
    if (p[0].revents != 0) {
        return refuse(s, QN_EABORTED,
                      "told to end before the group was taken over; it goes "
                      "on");
    }
    if (n == 0) {
        return refuse(s, QN_ETIMEDOUT,
                      "the quoind there (process %d) %s; its replicas go on",
                      (int)x->pid, what);
    }
    return QN_OK;
}

static int hear_all(struct qn_supervisor *s, struct succession *x)
{
    const struct qn_control_link link = {.direction = QN_CTL_TO_HEIR,
                                         .nodes = QN_NODES_MAX};
    char fault[QN_CONTROL_FAULT_MAX];
    struct qn_control_msg e;
    int with = -1;
    int err = QN_OK;
    while (err == QN_OK && !x->whole && !x->gone) {
        err = wait_for(s, x, "does not answer");
        int got = err == QN_OK ? qn_control_recv(x->fd, &link, &e, &with, false)
                               : QN_EAGAIN;
        if (got == QN_OK) {
            err = on_said(s, x, &e, with);
            if (with >= 0) {
                close(with);
            }
        }
        if (got == QN_ECORRUPT) {
            err = refuse(s, got, "the quoind there: %s; nothing has changed",
                         qn_control_fault_text(&e, fault));
        }
        x->gone = got != QN_OK && got != QN_EAGAIN;
    }
    return err;
}

/* It has what it needs to end, or has ended. */
static int see_it_go(struct qn_supervisor *s, struct succession *x)
{
    const struct qn_control_msg go = {.kind = QN_CTL_START};
    struct pollfd end = {.fd = x->pidfd, .events = POLLIN};
    int err = QN_OK;
    (void)qn_control_send(x->fd, &go, -1); /* or it is dead already */
    close(x->fd);
    x->fd = -1;
    while (err == QN_OK && poll(&end, 1, 0) == 0) {
        err = wait_for(s, x, "does not leave");
    }
    return err;
}

static int not_reached(struct qn_supervisor *s, int err)
{
    char name[QN_CONFIG_TEXT_MAX];
    const struct qn_config *c = s->opts->config;
    if (err == QN_EADDRINUSE) {
        return refuse(s, err,
                      "the quoind there cannot hand over: it is of an older "
                      "version, or another user's; kill -9 it (its replicas go "
                      "on), then start this one again");
    }
    if (err == QN_EBUSY) {
        return refuse(s, err,
                      "the quoind there takes no connection: it is stalled, "
                      "or others ask it; try again");
    }
    if (err == QN_ENOENT && c->port == 0 &&
        qn_listen_name(c, name, sizeof name) == QN_ENOENT) {
        return refuse(s, QN_EINVAL,
                      "--upgrade: give the --port of the running server");
    }
    return err == QN_ENOENT ? QN_OK : err; /* then there may be orphans */
}

int qn_supervisor_succeed(struct qn_supervisor *s)
{
    const struct qn_control_msg hello = {
        .kind = QN_CTL_ADOPT,
        .u.adopt = {.oldest = QN_ADOPT_OLDEST, .newest = QN_ADOPT_VERSION}};
    struct succession x = {.until = qn_clock_now() + PATIENCE_S * QN_S};
    x.fd = qn_adopt_succeed(s->opts->config, &x.pid);
    if (x.fd < 0) {
        return not_reached(s, x.fd);
    }
    x.pidfd = qn_adopt_pidfd(x.fd, x.pid);
    x.gone = x.pidfd < 0 || qn_control_send(x.fd, &hello, -1) != QN_OK;
    int err = hear_all(s, &x);
    if (err == QN_OK && x.pidfd >= 0) {
        err = see_it_go(s, &x);
    }
    if (err == QN_OK) {
        fprintf(s->opts->ready, "upgrade: process %d has handed over\n",
                (int)x.pid);
        fflush(s->opts->ready);
    }
    if (x.fd >= 0) {
        close(x.fd);
    }
    if (x.pidfd >= 0) {
        close(x.pidfd);
    }
    return err;
}
