#include "kvs/control/news.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/err.h"

enum { CAP_FIRST = 16 };

static void item_close(const struct qn_news_item *i)
{
    if (i->fd >= 0) {
        close(i->fd);
    }
}

/* Without those that were told or taken back, which are marked by kind 0. */
static void close_up(struct qn_news *n)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n->count; i++) {
        if (n->item[i].event.kind == 0) {
            item_close(&n->item[i]);
        } else {
            n->item[kept++] = n->item[i];
        }
    }
    n->count = kept;
}

static int grow(struct qn_news *n)
{
    uint32_t cap = n->cap == 0 ? CAP_FIRST : 2 * n->cap;
    struct qn_news_item *item = realloc(n->item, cap * sizeof *item);
    if (item == NULL) {
        return QN_ENOMEM;
    }
    n->item = item;
    n->cap = cap;
    return QN_OK;
}

static int keep(struct qn_news *n, const struct qn_boot_event *e, int fd)
{
    int own = -1;
    if (n->count == n->cap && grow(n) != QN_OK) {
        return QN_ENOMEM;
    }
    if (fd >= 0) {
        own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        if (own < 0) {
            return QN_EMFILE;
        }
    }
    n->item[n->count++] = (struct qn_news_item){.event = *e, .fd = own};
    return QN_OK;
}

int qn_news_flush(struct qn_news *n, int control)
{
    int err = QN_OK;
    for (uint32_t i = 0; i < n->count && err == QN_OK; i++) {
        struct qn_news_item *next = &n->item[i];
        err = qn_boot_send(control, &next->event, next->fd);
        if (err == QN_OK) {
            next->event.kind = 0;
        }
    }
    close_up(n);
    return err == QN_EAGAIN ? QN_OK : err;
}

int qn_news_send(struct qn_news *n, int control, const struct qn_boot_event *e,
                 int fd)
{
    int err = qn_news_flush(n, control);
    if (err == QN_OK) {
        err = qn_news_wait(n) ? QN_EAGAIN : qn_boot_send(control, e, fd);
    }
    return err == QN_EAGAIN ? keep(n, e, fd) : err;
}

static bool is(const struct qn_boot_event *e, enum qn_boot_kind kind,
               qn_node_t node)
{
    return e->kind == kind && e->node == node;
}

/* The end of the life that `born` announces; NULL: that does not wait. */
static struct qn_boot_event *end_of(const struct qn_news *n,
                                    const struct qn_boot_event *born)
{
    for (uint32_t i = 0; i < n->count; i++) {
        struct qn_boot_event *e = &n->item[i].event;
        if (is(e, QN_BOOT_PEER_DOWN, born->node) &&
            e->incarnation == born->incarnation) {
            return e;
        }
    }
    return NULL;
}

void qn_news_skip(struct qn_news *n, qn_node_t node, uint64_t needed)
{
    for (uint32_t i = 0; i < n->count; i++) {
        struct qn_boot_event *born = &n->item[i].event;
        struct qn_boot_event *end =
            is(born, QN_BOOT_PEER, node) && born->incarnation != needed
                ? end_of(n, born)
                : NULL;
        if (end != NULL) {
            born->kind = end->kind = 0;
        }
    }
    close_up(n);
}

void qn_news_free(struct qn_news *n)
{
    for (uint32_t i = 0; i < n->count; i++) {
        item_close(&n->item[i]);
    }
    free(n->item);
    *n = (struct qn_news){0};
}
