/*
 * How a supervisor takes over a running group (kvs/control/adopt.h).
 *
 * Order: the supervisor's lock first, so that of two adopters one goes on and a
 * living supervisor is never replaced; then a connection to each replica that
 * there can be; then listening (supervisor_orphans.c) until each has said all
 * it has, or has ended, or GRACE_MS have passed since the first was done.
 * Nothing of the group is touched until then: who is refused, or ends, leaves
 * orphans as they were.
 *
 *     connected --START--> adopted         state by READY
 *         |  \--pidfd-> nobody             started again
 *         \---GRACE---> late               counts as serving; others have said
 *                                          which life it is; heard when it goes
 *                                          on
 *     not connected --> late or nobody     as the group's memory says
 *                                          (kvs/supervisor/vacancy.h,
 * supervisor_late.c)
 *
 * What a replica knows of others fills the gaps: the last life of who has died
 * meanwhile, and the outbox of a dead owner of the accept word. The dead are
 * made known to all, since an idle replica looks for nobody. A life that the
 * dead supervisor was still introducing ends with it (replica_main.c); one that
 * somebody has not heard of, who stood still, is told to him now.
 *
 * Adopted replicas are no children: their ends are seen by pidfd.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/err.h"
#include "core/base/log.h"
#include "core/place/liveness.h"
#include "kvs/control/adopt.h"
#include "kvs/resources/resource_check.h"
#include "kvs/supervisor/supervisor_adopt_internal.h"

/* ---- connecting ---------------------------------------------------------- */

void qn_supervisor_connect(struct qn_supervisor *s, qn_node_t i)
{
    struct qn_adoption *a = s->adoption;
    struct qn_supervised *r = &s->replica[i];
    const struct qn_control_msg hello = {
        .kind = QN_CTL_ADOPT,
        .u.adopt = {.oldest = QN_ADOPT_OLDEST, .newest = QN_ADOPT_VERSION}};
    pid_t pid;
    int fd = qn_adopt_connect(s->opts->config, i, &pid);
    a->reach[i] =
        fd == QN_EBUSY || fd == QN_EMFILE ? QN_REACH_BUSY : QN_REACH_NOBODY;
    if (fd < 0) {
        return;
    }
    int pidfd = qn_adopt_pidfd(fd, pid);
    if (pidfd < 0 || qn_control_send(fd, &hello, -1) != QN_OK) {
        qn_supervisor_close(pidfd); /* it has just ended */
        close(fd);
        return;
    }
    qn_supervisor_close(r->pidfd);
    r->pid = pid;
    r->pidfd = pidfd;
    r->control = fd;
    a->reach[i] = QN_REACH_MET;
    a->connected[i] = a->waited[i] = true;
}

static uint32_t count(const bool *of)
{
    uint32_t n = 0;
    for (qn_node_t i = 0; i < QN_NODES_MAX; i++) {
        n += of[i];
    }
    return n;
}

static void hang_up(struct qn_supervised *r)
{
    qn_supervisor_close(r->control);
    r->control = -1;
}

/* All that `i` has said. */
static void hear(struct qn_supervisor *s, qn_node_t i)
{
    struct qn_supervised *r = &s->replica[i];
    const struct qn_control_link link = {.direction = QN_CTL_TO_SUPERVISOR,
                                         .nodes = QN_NODES_MAX};
    char fault[QN_CONTROL_FAULT_MAX];
    struct qn_control_msg e;
    int fd;
    int err = r->control < 0 ? QN_EAGAIN : QN_OK;
    while (err == QN_OK && s->adoption->err == QN_OK &&
           s->adoption->waited[i]) {
        err = qn_control_recv(r->control, &link, &e, &fd, false);
        if (err == QN_OK && !qn_supervisor_adopted_message(s, i, &e, fd)) {
            qn_supervisor_close(fd);
        }
    }
    if (err == QN_ECORRUPT) {
        qn_log(QN_LOG_ERROR, "replica %u: %s", i,
               qn_control_fault_text(&e, fault));
    }
    if (err == QN_EPEERDEAD) {
        hang_up(r);
    }
}

static void ended(struct qn_supervisor *s, qn_node_t i)
{
    struct qn_supervised *r = &s->replica[i];
    hear(s, i); /* what it knew */
    hang_up(r);
    close(r->pidfd);
    r->pidfd = -1;
    s->adoption->connected[i] = s->adoption->waited[i] = false;
    s->adoption->reach[i] = QN_REACH_NOBODY;
}

static int left_ms(const struct qn_adoption *a)
{
    if (a->end == QN_TIME_NEVER) {
        return -1;
    }
    qn_time_t now = qn_clock_now();
    return (int)((a->end - QN_MIN(now, a->end) + QN_MS - 1) / QN_MS);
}

/* -1: for ever. */
static int wait_ms(const struct qn_supervisor *s)
{
    int left = left_ms(s->adoption);
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
        bool waited = s->adoption->waited[i];
        said[i] = (struct pollfd){.fd = waited ? s->replica[i].control : -1,
                                  .events = POLLIN};
        end[i] = (struct pollfd){.fd = s->replica[i].pidfd, .events = POLLIN};
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
    const struct qn_adoption *a = s->adoption;
    int err = QN_OK;
    while (err == QN_OK && ((count(a->waited) > 0 && left_ms(a) != 0) ||
                            qn_supervisor_all_busy(s))) {
        err = listen_once(s);
        qn_supervisor_ask_again(s);
    }
    return err;
}

/* ---- the group is ours --------------------------------------------------- */

static void adopt_one(struct qn_supervisor *s, qn_node_t i)
{
    struct qn_adoption *a = s->adoption;
    struct qn_supervised *r = &s->replica[i];
    r->incarnation = a->inc[i];
    r->outbox_fd = a->outbox[i];
    a->outbox[i] = -1;
    r->state = a->waited[i] || a->ready[i] ? QN_SUPERVISED_SERVING
                                           : QN_SUPERVISED_STARTING;
    r->hears = true;
    r->born = qn_clock_now();
    s->adopted++;
    if (!a->waited[i]) {
        qn_supervisor_say(s, i, QN_CTL_START);
    } else {
        qn_log(QN_LOG_WARN,
               "replica %u (process %d) stands still; it is adopted when it "
               "goes on",
               i, (int)r->pid);
    }
}

static void replace_one(struct qn_supervisor *s, qn_node_t i)
{
    struct qn_supervised *r = &s->replica[i];
    r->incarnation = r->ended = s->adoption->inc[i];
    bool left = qn_liveness_left(s->commons, i, r->ended);
    r->restart_at = s->config.restart && !left ? 0 : QN_TIME_NEVER;
    qn_supervisor_say_down(s, i, r->ended);
    if (left) {
        qn_log(QN_LOG_INFO,
               "replica %u was told to leave; it is not started again", i);
    }
}

/* The life that owns the accept word, if it is dead. */
static void keep_word(struct qn_supervisor *s)
{
    struct qn_kept *w = &s->adoption->word;
    const struct qn_supervised *r = &s->replica[w->node];
    if (w->outbox_fd >= 0 &&
        (r->state == QN_SUPERVISED_ENDED || r->incarnation != w->incarnation)) {
        s->kept = *w;
        w->outbox_fd = -1;
    }
}

static void begin(struct qn_supervisor *s)
{
    struct qn_adoption *a = s->adoption;
    a->begun = true;
    s->config = a->config;
    s->listen.port = s->config.unixsocket[0] == '\0' ? s->config.port : 0;
    qn_resource_check_raise_files(&s->config);
    if (qn_supervisor_seat(s) != QN_OK) {
        qn_log(QN_LOG_WARN, "%s; new lives use another tree", s->why);
        s->why[0] = '\0';
    }
    for (qn_node_t i = 0; i < s->config.replicas; i++) {
        s->lives = QN_MAX(s->lives, a->inc[i]);
        if (a->connected[i]) {
            adopt_one(s, i);
        }
    }
    for (qn_node_t i = 0; i < s->config.replicas; i++) {
        if (!a->connected[i] && !qn_supervisor_unmet(s, i)) {
            replace_one(s, i);
        }
    }
    keep_word(s);
    for (qn_node_t i = 0; i < s->config.replicas; i++) {
        if (a->connected[i] && !a->waited[i]) {
            qn_supervisor_catch_up(s, i);
        }
    }
    (void)qn_supervisor_pass(s); /* else nothing is passed on to later lives */
}

void qn_supervisor_adoption_end(struct qn_supervisor *s)
{
    struct qn_adoption *a = s->adoption;
    for (qn_node_t i = 0; a != NULL && i < QN_NODES_MAX; i++) {
        qn_supervisor_close(a->outbox[i]);
    }
    if (a != NULL) {
        qn_supervisor_close(a->word.outbox_fd);
    }
    free(a);
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

static struct qn_adoption *adoption_create(void)
{
    struct qn_adoption *a = calloc(1, sizeof *a);
    if (a != NULL) {
        a->end = QN_TIME_NEVER;
        a->word.outbox_fd = -1;
        for (qn_node_t i = 0; i < QN_NODES_MAX; i++) {
            a->outbox[i] = -1;
        }
    }
    return a;
}

static int connect_to_all(struct qn_supervisor *s)
{
    s->adoption = adoption_create();
    if (s->adoption == NULL) {
        return QN_ENOMEM;
    }
    for (qn_node_t i = 0; i < QN_NODES_MAX; i++) {
        qn_supervisor_connect(s, i);
    }
    if (count(s->adoption->connected) > 0 || !s->opts->upgrade ||
        qn_supervisor_all_busy(s)) {
        return QN_OK;
    }
    snprintf(s->why, sizeof s->why,
             "no quoind runs there that could be upgraded; start it without "
             "--upgrade");
    return QN_ENOENT;
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
    if (err == QN_OK && count(s->adoption->connected) > 0) {
        begin(s);
    }
    if (err != QN_OK ||
        count(s->adoption->waited) + count(s->adoption->unmet) == 0) {
        qn_supervisor_adoption_end(s);
    }
    return err;
}
