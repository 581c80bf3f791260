/*
 * How a supervisor takes over a running group (kvs/control/adopt.h).
 *
 * Order: the supervisor's lock first, so that of two adopters one goes on and a
 * living supervisor is never replaced; then a connection to each replica that
 * there can be; then hearing them (supervisor_adopt_messages.c, and
 * kvs/supervision/adoption.c) until each has said all it has, or has ended, or
 * has let the others wait too long. Nothing of the group is touched until then:
 * a supervisor that is refused, or ends, leaves orphans as they were.
 *
 * Adopted replicas are no children: their ends are seen by pidfd.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/err.h"
#include "core/base/log.h"
#include "kvs/control/adopt.h"
#include "kvs/resources/resource_check.h"
#include "kvs/supervisor/supervisor_adopt_internal.h"

/* ---- connecting ---------------------------------------------------------- */

void qn_supervisor_connect(struct qn_supervisor *s, qn_node_t i)
{
    struct qn_adoption *a = s->adoption;
    struct qn_child *c = &s->child[i];
    const struct qn_control_msg hello = {
        .kind = QN_CTL_ADOPT,
        .u.adopt = {.oldest = QN_ADOPT_OLDEST, .newest = QN_ADOPT_VERSION}};
    pid_t pid;
    int fd = qn_adopt_connect(s->opts->config, i, &pid);
    a->reach[i] =
        fd == QN_EBUSY || fd == QN_EMFILE ? QN_REACH_BUSY : QN_REACH_ABSENT;
    if (fd < 0) {
        return;
    }
    int pidfd = qn_adopt_pidfd(fd, pid);
    if (pidfd < 0 || qn_control_send(fd, &hello, -1) != QN_OK) {
        qn_supervisor_close(pidfd); /* it has just ended */
        close(fd);
        return;
    }
    QN_ASSERT(c->control < 0);
    qn_supervisor_close(c->pidfd);
    c->pid = pid;
    c->pidfd = pidfd;
    c->control = fd;
    c->runs = s->machine.orphans.taken_over; /* else it is not ours yet */
    a->reach[i] = QN_REACH_MET;
    qn_supervisor_event(s,
                        (struct qn_supervision_event){
                            .kind = QN_ON_ORPHAN_MET, .node = i, .pid = pid});
}

static bool is_awaited(const struct qn_supervisor *s, qn_node_t i)
{
    return (s->machine.orphans.awaited >> i & 1) != 0;
}

/* It has said all, or the group is refused. */
static bool is_enough(const struct qn_supervisor *s, qn_node_t i)
{
    return s->adoption->err != QN_OK || !is_awaited(s, i);
}

static void hear(struct qn_supervisor *s, qn_node_t i)
{
    qn_supervisor_hear(s, i, QN_NODES_MAX, is_enough);
}

static void ended(struct qn_supervisor *s, qn_node_t i)
{
    struct qn_child *c = &s->child[i];
    QN_ASSERT(!c->runs);
    hear(s, i); /* what it knew */
    qn_supervisor_close(c->control);
    qn_supervisor_close(c->pidfd);
    c->control = c->pidfd = -1;
    s->adoption->reach[i] = QN_REACH_ABSENT;
    qn_supervisor_node_event(s, QN_ON_ORPHAN_ENDED, i);
}

/* -1: for ever. */
static int wait_ms(const struct qn_supervisor *s)
{
    int left = qn_supervisor_ms_until(s->machine.orphans.until);
    int ask = qn_supervisor_ask_wait_ms(s);
    return left < 0 ? ask : ask < 0 ? left : QN_MIN(left, ask);
}

/* @return QN_OK; QN_EABORTED: told to end. */
static int listen_once(struct qn_supervisor *s)
{
    struct pollfd p[1 + 2 * QN_NODES_MAX];
    struct pollfd *said = p + 1;
    struct pollfd *end = said + QN_NODES_MAX;
    p[0] = (struct pollfd){.fd = s->signal_fd, .events = POLLIN};
    for (qn_node_t i = 0; i < QN_NODES_MAX; i++) {
        said[i] =
            (struct pollfd){.fd = is_awaited(s, i) ? s->child[i].control : -1,
                            .events = POLLIN};
        end[i] = (struct pollfd){.fd = s->child[i].pidfd, .events = POLLIN};
    }
    int ready = poll(p, QN_ARRAY_COUNT(p), wait_ms(s));
    QN_ASSERT(ready >= 0 || errno == EINTR);
    for (qn_node_t i = 0; ready > 0 && i < QN_NODES_MAX; i++) {
        if (said[i].revents != 0) {
            hear(s, i);
        }
        if (end[i].revents != 0) {
            ended(s, i);
        }
    }
    if (ready > 0 && p[0].revents != 0) {
        snprintf(s->why, sizeof s->why,
                 "told to end before the replicas were adopted; they go on");
        return QN_EABORTED;
    }
    return s->adoption->err;
}

static int listen_to_all(struct qn_supervisor *s)
{
    int err = QN_OK;
    while (err == QN_OK &&
           (qn_supervision_awaits_orphans(&s->machine, qn_clock_now()) ||
            qn_supervisor_all_busy(s))) {
        err = listen_once(s);
        qn_supervisor_ask_again(s);
    }
    return err;
}

/* ---- the group is ours --------------------------------------------------- */

/* From here on the group is this supervisor's. The order is the machine's
 * (kvs/supervision/supervision_event.h). */
static void take_over(struct qn_supervisor *s)
{
    s->config = s->adoption->config;
    s->listen.port = s->config.unixsocket[0] == '\0' ? s->config.port : 0;
    const struct qn_supervision_opts opts =
        qn_supervisor_machine_opts(&s->config);
    const uint64_t met = s->machine.orphans.connected;
    QN_ASSERT(s->adoption->configured);
    qn_resource_check_raise_files(&s->config);
    if (qn_supervisor_seat(s) != QN_OK) {
        qn_log(QN_LOG_WARN, "%s; new replicas use another tree", s->why);
        s->why[0] = '\0';
    }
    qn_supervisor_event(s, (struct qn_supervision_event){
                               .kind = QN_ON_TAKE_OVER, .opts = &opts});
    for (qn_node_t i = 0; i < qn_config_seats(&s->config); i++) {
        s->child[i].runs = (met >> i & 1) != 0;
        if (!s->child[i].runs) {
            qn_supervisor_account_for(s, i);
        }
    }
    for (qn_node_t i = 0; i < qn_config_seats(&s->config); i++) {
        qn_supervisor_node_event(s, QN_ON_CATCH_UP, i);
    }
    (void)qn_supervisor_pass(s); /* else later replicas pass nothing on */
    qn_supervisor_node_event(s, QN_ON_TAKEN_OVER, 0);
}

void qn_supervisor_adoption_end(struct qn_supervisor *s)
{
    free(s->adoption);
    s->adoption = NULL;
}

int qn_supervisor_lock(struct qn_supervisor *s, const struct qn_config *c)
{
    int fd = qn_adopt_lock(c, &s->lock_file);
    if (fd >= 0) {
        s->lock = fd;
        return QN_OK;
    }
    char shown[QN_LISTEN_SHOWN_MAX];
    if (fd == QN_EADDRINUSE) {
        snprintf(s->why, sizeof s->why,
                 "a quoind serves %s already; stop it, or choose another "
                 "address",
                 qn_listen_shown(c, c->port, shown));
    }
    return fd;
}

static int connect_to_all(struct qn_supervisor *s)
{
    s->adoption = calloc(1, sizeof *s->adoption);
    if (s->adoption == NULL) {
        return QN_ENOMEM;
    }
    for (qn_node_t i = 0; i < QN_NODES_MAX; i++) {
        qn_supervisor_connect(s, i);
    }
    if (s->machine.orphans.connected != 0 || !s->opts->upgrade ||
        qn_supervisor_all_busy(s)) {
        return QN_OK;
    }
    snprintf(s->why, sizeof s->why,
             "no quoind runs there that could be upgraded; start it without "
             "--upgrade");
    return QN_ENOENT;
}

/* Those that were met have said which group they are, and are of it; and it can
 * be upgraded, if that is wanted. */
static int has_group(struct qn_supervisor *s)
{
    const struct qn_adoption *a = s->adoption;
    const uint64_t connected = s->machine.orphans.connected;
    if (a->configured &&
        connected << (QN_NODES_MAX - qn_config_seats(&a->config)) != 0) {
        return s->opts->upgrade ? qn_supervisor_upgrade_fits(
                                      s, s->machine.voters_entries != 0
                                             ? s->machine.voters
                                             : qn_config_taken(&a->config))
                                : QN_OK;
    }
    snprintf(s->why, sizeof s->why,
             "cannot adopt the replicas that run there: what they say of their "
             "group is damaged; end them, then start this quoind again");
    return QN_ECORRUPT;
}

int qn_supervisor_adopt(struct qn_supervisor *s)
{
    int err = s->opts->upgrade ? qn_supervisor_succeed(s) : QN_OK;
    if (err != QN_OK) {
        return err;
    }
    err = qn_supervisor_lock(s, s->opts->config);
    if (err != QN_OK) {
        return err == QN_ENOENT ? QN_OK
                                : err; /* listening says what is wrong */
    }
    err = connect_to_all(s);
    if (err == QN_OK) {
        err = listen_to_all(s);
    }
    if (err == QN_OK && s->machine.orphans.connected != 0) {
        err = has_group(s);
    }
    if (err == QN_OK && s->machine.orphans.connected != 0) {
        take_over(s);
    }
    if (err != QN_OK || s->machine.adopted == 0 ||
        qn_supervision_adoption_is_over(&s->machine)) {
        qn_supervisor_adoption_end(s);
    }
    return err;
}
