/*
 * What orphans say to who adopts them (kvs/control/adopt.h), each in order: its
 * version and formats, the group's configuration, sockets and doorbells, the
 * lives that it knows, and that this is all.
 *
 * What does not fit this program refuses the whole group, with a reason. Who
 * goes on when the others are adopted already says the same, and is adopted
 * then; of what it knows only its own state is news.
 */
#include <fcntl.h>
#include <stdio.h>

#include "core/base/assert.h"
#include "core/base/err.h"
#include "core/base/log.h"
#include "kvs/control/adopt.h"
#include "kvs/control/formats.h"
#include "kvs/supervisor/supervisor_adopt_internal.h"

enum { GRACE_MS = 500 };

static void take(int *at, int fd)
{
    if (*at < 0) {
        *at = fd;
    } else {
        qn_supervisor_close(fd);
    }
}

static int refuse(struct qn_supervisor *s, int err)
{
    s->adoption->err = err;
    return err;
}

/* `fd` is taken; -1: none. */
static void note_life(struct qn_supervisor *s, qn_node_t node, uint64_t inc,
                      int fd)
{
    struct qn_adoption *a = s->adoption;
    if (a->begun || inc < a->inc[node]) {
        qn_supervisor_close(fd);
        return;
    }
    if (inc > a->inc[node]) {
        a->inc[node] = inc;
        qn_supervisor_close(a->outbox[node]);
        a->outbox[node] = -1;
    }
    take(&a->outbox[node], fd);
}

/* What the dead supervisor has told it. */
static void note_known(struct qn_supervisor *s, qn_node_t from, qn_node_t node,
                       uint64_t inc)
{
    uint64_t *known = &s->replica[from].knows[node];
    *known = QN_MAX(*known, inc);
}

static void note_word(struct qn_supervisor *s, qn_node_t node, uint64_t inc,
                      int fd)
{
    struct qn_kept *w = &s->adoption->word;
    if (w->outbox_fd < 0 && s->commons != NULL &&
        qn_supervisor_owns_word(s, node, inc)) {
        *w = (struct qn_kept){.node = node,
                              .incarnation = inc,
                              .outbox_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0)};
    }
}

/* `fd` is taken. */
static void on_adopt(struct qn_supervisor *s, qn_node_t from,
                     const struct qn_ctl_adopt *e, int fd)
{
    if (qn_adopt_version(e->newest, e->newest) == 0) {
        snprintf(s->why, sizeof s->why,
                 "replica %u there is of another version (it speaks %llu, this "
                 "quoind %u to %u); start the quoind that it is of",
                 from, (unsigned long long)e->newest, QN_ADOPT_OLDEST,
                 QN_ADOPT_VERSION);
        refuse(s, QN_EINVAL);
    }
    take(&s->commons_fd, fd);
}

static void note_format(struct qn_spoken *spoken, const struct qn_ctl_format *e)
{
    spoken->version[e->format] = e->version;
    spoken->count = QN_MAX(spoken->count, e->format + 1);
}

static void on_config(struct qn_supervisor *s, qn_node_t from, int fd)
{
    struct qn_adoption *a = s->adoption;
    const struct qn_spoken *spoken = &a->spoken[from];
    int err =
        qn_formats_fit(spoken->version, spoken->count, s->why, sizeof s->why);
    if (err != QN_OK) {
        refuse(s, err);
        return;
    }
    if (a->configured || a->begun) {
        return;
    }
    err = s->commons_fd < 0
              ? QN_ECORRUPT
              : qn_adopt_config_read(&a->config, fd, s->why, sizeof s->why);
    if (err == QN_OK) {
        err = qn_adopt_config_merge(&a->config, s->opts->config, s->why,
                                    sizeof s->why);
    }
    if (err == QN_OK && s->opts->upgrade) {
        err = qn_supervisor_upgrade_fits(s, &a->config);
    }
    if (err == QN_OK) {
        err = qn_commons_map(&s->commons, s->commons_fd, a->config.replicas);
    }
    if (err != QN_OK) {
        if (s->why[0] == '\0') {
            snprintf(s->why, sizeof s->why,
                     "cannot adopt the replicas that run there: %s",
                     qn_strerror(err));
        }
        refuse(s, err);
        return;
    }
    a->configured = true;
}

static void done(struct qn_supervisor *s, qn_node_t from)
{
    struct qn_adoption *a = s->adoption;
    struct qn_supervised *r = &s->replica[from];
    a->waited[from] = false;
    if (!a->begun) {
        if (a->end == QN_TIME_NEVER) {
            a->end = qn_clock_now() + GRACE_MS * QN_MS;
        }
        return;
    }
    if (!a->ready[from]) {
        r->state = QN_SUPERVISED_STARTING;
    }
    qn_supervisor_catch_up(s, from);
    qn_supervisor_say(s, from, QN_CTL_START);
    qn_log(QN_LOG_INFO, "replica %u (process %d) is adopted now", from,
           (int)r->pid);
}

/* `fd` is taken: of its outbox. */
static void on_life(struct qn_supervisor *s, qn_node_t from, qn_node_t node,
                    uint64_t inc, int fd)
{
    note_known(s, from, node, inc);
    note_word(s, node, inc, fd);
    note_life(s, node, inc, fd);
}

/* Messages with a descriptor that is kept. `fd` is taken. */
static void on_given(struct qn_supervisor *s, qn_node_t from,
                     const struct qn_control_msg *e, int fd)
{
    switch (e->kind) {
    case QN_CTL_ADOPT:
        on_adopt(s, from, &e->u.adopt, fd);
        break;
    case QN_CTL_LOCK:
        take(&s->listen.lock, fd);
        break;
    case QN_CTL_LISTEN:
        qn_listen_adopt(&s->listen, e->u.listen.node, e->u.listen.kind, fd);
        break;
    case QN_CTL_DOORBELL:
        take(&s->doorbell_fd[e->u.doorbell.node], fd);
        break;
    case QN_CTL_PEER_UP:
        on_life(s, from, e->u.peer_up.node, e->u.peer_up.incarnation, fd);
        break;
    default:
        QN_ASSERT(e->kind == QN_CTL_HELLO);
        on_life(s, from, e->u.hello.node, e->u.hello.incarnation, fd);
    }
}

bool qn_supervisor_adopted_message(struct qn_supervisor *s, qn_node_t from,
                                   const struct qn_control_msg *e, int fd)
{
    const struct qn_ctl_peer_down *down = &e->u.peer_down;
    struct qn_adoption *a = s->adoption;
    if (a == NULL || !a->waited[from] || s->replica[from].pidfd < 0) {
        return false;
    }
    switch (e->kind) {
    case QN_CTL_ADOPT:
    case QN_CTL_LOCK:
    case QN_CTL_LISTEN:
    case QN_CTL_DOORBELL:
    case QN_CTL_PEER_UP:
    case QN_CTL_HELLO:
        on_given(s, from, e, fd);
        return true;
    case QN_CTL_CONFIG:
        on_config(s, from, fd);
        break;
    case QN_CTL_FORMAT:
        note_format(&a->spoken[from], &e->u.format);
        break;
    case QN_CTL_PEER_DOWN:
        note_known(s, from, down->node, down->incarnation);
        note_life(s, down->node, down->incarnation, -1);
        break;
    case QN_CTL_READY:
        a->ready[from] = true;
        break;
    case QN_CTL_START:
        done(s, from);
        break;
    default:
        return false;
    }
    qn_supervisor_close(fd);
    return true;
}
