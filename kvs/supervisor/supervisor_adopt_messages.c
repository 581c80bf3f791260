/*
 * What the replicas of a group that is taken over say about what they share
 * (kvs/control/adopt.h): their version and formats, the group's configuration,
 * sockets and doorbells. What they say about incarnations goes to the machine.
 *
 * What does not fit this program refuses the whole group, with a reason. A
 * stalled replica says the same when it resumes, and is adopted then; what it
 * shares is known by then.
 */
#include <stdio.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/base/log.h"
#include "core/place/area.h"
#include "kvs/control/adopt.h"
#include "kvs/control/formats.h"
#include "kvs/supervisor/supervisor_adopt_internal.h"

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

static void note_format(struct qn_spoken *spoken, const struct qn_ctl_format *f)
{
    spoken->version[f->format] = f->version;
    spoken->count = QN_MAX(spoken->count, f->format + 1);
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
    if (a->configured || s->machine.orphans.taken_over) {
        return;
    }
    err = s->commons_fd < 0
              ? QN_ECORRUPT
              : qn_adopt_config_read(&a->config, fd, s->why, sizeof s->why);
    if (err == QN_OK) {
        err = qn_adopt_config_merge(&a->config, s->opts->config, s->why,
                                    sizeof s->why);
    }
    if (err == QN_OK) {
        err = qn_commons_map(&s->commons, s->commons_fd,
                             qn_config_seats(&a->config),
                             qn_supervisor_channels(s, &a->config).device);
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

/* What is not such an area is as good as lost. `fd` is taken. */
static void on_record(struct qn_supervisor *s, qn_node_t from, int fd)
{
    struct qn_area record;
    int err = qn_area_map(&record, fd, QN_COMMONS_RECORD_BYTES);
    qn_area_destroy(&record);
    if (err == QN_OK) {
        take(&s->record_fd[from], fd);
    } else {
        qn_supervisor_close(fd);
    }
}

bool qn_supervisor_adopt_message(struct qn_supervisor *s, qn_node_t from,
                                 const struct qn_control_msg *m, int fd)
{
    struct qn_adoption *a = s->adoption;
    if ((s->machine.orphans.awaited >> from & 1) == 0) {
        return false;
    }
    QN_ASSERT(a != NULL);
    switch (m->kind) {
    case QN_CTL_ADOPT:
        on_adopt(s, from, &m->u.adopt, fd);
        return true;
    case QN_CTL_LOCK:
        take(&s->listen.lock, fd);
        return true;
    case QN_CTL_RECORD:
        on_record(s, from, fd);
        return true;
    case QN_CTL_LISTEN:
        qn_listen_adopt(&s->listen, m->u.listen.node, m->u.listen.kind, fd);
        return true;
    case QN_CTL_DOORBELL:
        take(&s->doorbell_fd[m->u.doorbell.node], fd);
        return true;
    case QN_CTL_CONFIG:
        on_config(s, from, fd);
        qn_supervisor_close(fd);
        return true;
    case QN_CTL_FORMAT:
        note_format(&a->spoken[from], &m->u.format);
        return true;
    default:
        return false;
    }
}
