/*
 * An array in the order of sending. Messages that were sent or removed are
 * marked with QN_CTL_INVALID, which is never sent, until the array is compacted
 * at the end of the same call.
 */
#include "kvs/control/control_backlog.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/err.h"

enum { CAP_FIRST = 16 };

static void item_close(const struct qn_control_backlog_item *i)
{
    if (i->fd >= 0) {
        close(i->fd);
    }
}

static void compact(struct qn_control_backlog *b)
{
    uint32_t kept = 0;
    QN_ASSERT(b->count <= b->cap);
    for (uint32_t i = 0; i < b->count; i++) {
        if (b->item[i].msg.kind == QN_CTL_INVALID) {
            item_close(&b->item[i]);
        } else {
            b->item[kept++] = b->item[i];
        }
    }
    b->count = kept;
}

static int grow(struct qn_control_backlog *b)
{
    uint32_t cap = b->cap == 0 ? CAP_FIRST : 2 * b->cap;
    struct qn_control_backlog_item *item = realloc(b->item, cap * sizeof *item);
    if (item == NULL) {
        return QN_ENOMEM;
    }
    b->item = item;
    b->cap = cap;
    return QN_OK;
}

static int append(struct qn_control_backlog *b, const struct qn_control_msg *m,
                  int fd)
{
    int own = -1;
    QN_ASSERT(qn_control_may_send(m->kind, fd >= 0));
    if (b->count == b->cap && grow(b) != QN_OK) {
        return QN_ENOMEM;
    }
    if (fd >= 0) {
        own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        if (own < 0) {
            return QN_EMFILE;
        }
    }
    b->item[b->count++] =
        (struct qn_control_backlog_item){.msg = *m, .fd = own};
    QN_ASSERT(b->count <= b->cap);
    return QN_OK;
}

int qn_control_backlog_flush(struct qn_control_backlog *b, int control)
{
    int err = QN_OK;
    for (uint32_t i = 0; i < b->count && err == QN_OK; i++) {
        struct qn_control_backlog_item *next = &b->item[i];
        err = qn_control_send(control, &next->msg, next->fd);
        if (err == QN_OK) {
            next->msg.kind = QN_CTL_INVALID;
        }
    }
    compact(b);
    return err == QN_EAGAIN ? QN_OK : err;
}

int qn_control_backlog_send(struct qn_control_backlog *b, int control,
                            const struct qn_control_msg *m, int fd)
{
    int err = qn_control_backlog_flush(b, control);
    if (err == QN_OK) {
        err = qn_control_backlog_wait(b) ? QN_EAGAIN
                                         : qn_control_send(control, m, fd);
    }
    return err == QN_EAGAIN ? append(b, m, fd) : err;
}

/* The waiting PEER_DOWN of the incarnation that `up` announces; NULL: none
 * waits. */
static struct qn_control_msg *end_of(const struct qn_control_backlog *b,
                                     const struct qn_ctl_peer_up *up)
{
    for (uint32_t i = 0; i < b->count; i++) {
        struct qn_control_msg *m = &b->item[i].msg;
        if (m->kind == QN_CTL_PEER_DOWN && m->u.peer_down.node == up->node &&
            m->u.peer_down.incarnation == up->incarnation) {
            return m;
        }
    }
    return NULL;
}

void qn_control_backlog_skip(struct qn_control_backlog *b, qn_node_t node,
                             uint64_t needed)
{
    QN_ASSERT(node < QN_NODES_MAX);
    for (uint32_t i = 0; i < b->count; i++) {
        struct qn_control_msg *m = &b->item[i].msg;
        const struct qn_ctl_peer_up *up = &m->u.peer_up;
        struct qn_control_msg *end = m->kind == QN_CTL_PEER_UP &&
                                             up->node == node &&
                                             up->incarnation != needed
                                         ? end_of(b, up)
                                         : NULL;
        if (end != NULL) {
            m->kind = end->kind = QN_CTL_INVALID;
        }
    }
    compact(b);
}

void qn_control_backlog_free(struct qn_control_backlog *b)
{
    for (uint32_t i = 0; i < b->count; i++) {
        item_close(&b->item[i]);
    }
    free(b->item);
    *b = (struct qn_control_backlog){0};
}
