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
static void note_known(struct qn_supervisor *s, qn_node_t from,
                       const struct qn_boot_event *e)
{
    uint64_t *known = &s->replica[from].knows[e->node];
    *known = QN_MAX(*known, e->incarnation);
}

static void note_word(struct qn_supervisor *s, const struct qn_boot_event *e,
                      int fd)
{
    struct qn_kept *w = &s->adoption->word;
    if (fd >= 0 && w->outbox_fd < 0 && s->commons != NULL &&
        qn_supervisor_owns_word(s, e->node, e->incarnation)) {
        *w = (struct qn_kept){.node = e->node,
                              .incarnation = e->incarnation,
                              .outbox_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0)};
    }
}

/* `fd` is taken. */
static void on_adopt(struct qn_supervisor *s, qn_node_t from,
                     const struct qn_boot_event *e, int fd)
{
    if (qn_adopt_version(e->value, e->value) == 0) {
        snprintf(s->why, sizeof s->why,
                 "replica %u there is of another version (it speaks %llu, this "
                 "quoind %u to %u); start the quoind that it is of",
                 from, (unsigned long long)e->value, QN_ADOPT_OLDEST,
                 QN_ADOPT_VERSION);
        refuse(s, QN_EINVAL);
    }
    take(&s->commons_fd, fd);
}

static void note_format(struct qn_spoken *spoken, const struct qn_boot_event *e)
{
    spoken->version[e->node] = (uint32_t)QN_MIN(e->value, UINT32_MAX);
    spoken->count = QN_MAX(spoken->count, e->node + 1);
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
    err = fd < 0 || s->commons_fd < 0
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
    qn_supervisor_say(s, from, QN_BOOT_GO);
    qn_log(QN_LOG_INFO, "replica %u (process %d) is adopted now", from,
           (int)r->pid);
}

/* Messages with a descriptor that is kept. `fd` is taken. */
static void on_given(struct qn_supervisor *s, qn_node_t from,
                     const struct qn_boot_event *e, int fd)
{
    switch (e->kind) {
    case QN_BOOT_ADOPT:
        on_adopt(s, from, e, fd);
        break;
    case QN_BOOT_LOCK:
        take(&s->listen.lock, fd);
        break;
    case QN_BOOT_LISTEN:
        qn_listen_adopt(&s->listen, e->node, (enum qn_listen_kind)e->value, fd);
        break;
    case QN_BOOT_BELL:
        take(&s->doorbell_fd[e->node], fd);
        break;
    default: /* PEER, HELLO */
        note_known(s, from, e);
        note_word(s, e, fd);
        note_life(s, e->node, e->incarnation, fd);
    }
}

bool qn_supervisor_adopted_message(struct qn_supervisor *s, qn_node_t from,
                                   const struct qn_boot_event *e, int fd)
{
    struct qn_adoption *a = s->adoption;
    if (a == NULL || !a->waited[from] || s->replica[from].pidfd < 0) {
        return false;
    }
    switch (e->node < QN_NODES_MAX ? e->kind : 0) {
    case QN_BOOT_ADOPT:
    case QN_BOOT_LOCK:
    case QN_BOOT_LISTEN:
    case QN_BOOT_BELL:
    case QN_BOOT_PEER:
    case QN_BOOT_HELLO:
        if (fd >= 0) {
            on_given(s, from, e, fd);
        }
        return true;
    case QN_BOOT_CONFIG:
        on_config(s, from, fd);
        break;
    case QN_BOOT_FORMAT:
        note_format(&a->spoken[from], e);
        break;
    case QN_BOOT_PEER_DOWN:
        note_known(s, from, e);
        note_life(s, e->node, e->incarnation, -1);
        break;
    case QN_BOOT_READY:
        a->ready[from] = true;
        break;
    case QN_BOOT_GO:
        done(s, from);
        break;
    default:
        return false;
    }
    qn_supervisor_close(fd);
    return true;
}
