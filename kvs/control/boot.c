/*
 * Messages between supervisor and replica.
 *
 * SEQPACKET keeps message borders and tells the end of the other process, so a
 * message is one struct and one system call, and nothing needs a length or a
 * checksum. Both ends are the same program: what arrives damaged is a bug or a
 * replica that has overwritten its own memory, hence an error and not an
 * assertion.
 */
#include "kvs/control/boot.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/err.h"

union control_block {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int))];
};

static int error_of(int e)
{
    switch (e) {
    case EAGAIN:
    case ETOOMANYREFS: /* descriptors under way; they will arrive */
        return QN_EAGAIN;
    case EPIPE:
    case ECONNRESET:
        return QN_EPEERDEAD;
    default:
        return QN_EIO;
    }
}

int qn_boot_send(int control, const struct qn_boot_event *e, int fd)
{
    union control_block block = {0};
    struct iovec part = {.iov_base = (void *)(uintptr_t)e,
                         .iov_len = sizeof *e};
    struct msghdr msg = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd >= 0) {
        msg.msg_control = block.bytes;
        msg.msg_controllen = sizeof block.bytes;
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(c), &fd, sizeof fd);
    }
    ssize_t n;
    do {
        n = sendmsg(control, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof *e ? QN_OK : error_of(errno);
}

static int take_descriptor(struct msghdr *msg)
{
    int fd = -1;
    struct cmsghdr *c = CMSG_FIRSTHDR(msg);
    if (c != NULL && c->cmsg_level == SOL_SOCKET &&
        c->cmsg_type == SCM_RIGHTS) {
        memcpy(&fd, CMSG_DATA(c), sizeof fd);
    }
    return fd;
}

int qn_boot_recv(int control, struct qn_boot_event *e, int *fd, bool wait)
{
    struct qn_boot_event got;
    union control_block block = {0};
    struct iovec part = {.iov_base = &got, .iov_len = sizeof got};
    struct msghdr msg = {.msg_iov = &part,
                         .msg_iovlen = 1,
                         .msg_control = block.bytes,
                         .msg_controllen = sizeof block.bytes};
    ssize_t n;
    do {
        n = recvmsg(control, &msg,
                    MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT));
        /* The peer ended and had not read all: said once, before its own last
         * words, which are still in the queue. */
    } while (n < 0 && (errno == EINTR || errno == ECONNRESET));
    if (n < 0) {
        return error_of(errno);
    }
    int with = take_descriptor(&msg);
    if (n != (ssize_t)sizeof got ||
        (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
        if (with >= 0) {
            close(with);
        }
        return n == 0 ? QN_EPEERDEAD : QN_ECORRUPT;
    }
    *e = got;
    *fd = with;
    return QN_OK;
}

static int tell(const struct qn_boot *b, struct qn_boot_event e, int fd)
{
    e.node = b->self;
    e.incarnation = b->incarnation;
    return qn_boot_send(b->control, &e, fd);
}

int qn_boot_notify(const struct qn_boot *b, enum qn_boot_kind kind,
                   uint64_t value)
{
    QN_ASSERT(kind == QN_BOOT_READY || kind == QN_BOOT_DRAINING ||
              kind == QN_BOOT_SHUTDOWN);
    return tell(b, (struct qn_boot_event){.kind = kind, .value = value}, -1);
}

int qn_boot_drained(const struct qn_boot *b, uint64_t unanswered,
                    bool group_stopped)
{
    const struct qn_boot_event e = {
        .kind = QN_BOOT_DRAINED, .error = group_stopped, .value = unanswered};
    return tell(b, e, -1);
}

void qn_boot_failed(const struct qn_boot *b, int err)
{
    const struct qn_boot_event e = {.kind = QN_BOOT_FAILED, .error = err};
    (void)tell(b, e, -1); /* nobody left to hear: so be it */
}

int qn_boot_next_event(const struct qn_boot *b, struct qn_boot_event *e,
                       int *fd)
{
    return qn_boot_recv(b->control, e, fd, false);
}

int qn_boot_map(const struct qn_boot *b, const struct qn_boot_event *e, int fd,
                const struct qn_outbox_opts *like, struct qn_outbox **out)
{
    struct qn_outbox_opts expect = *like;
    bool self = e->node == b->self && e->incarnation == b->incarnation;
    if (fd < 0 || e->node >= b->nodes || self || e->incarnation == 0) {
        return QN_ECORRUPT;
    }
    expect.node = e->node;
    expect.incarnation = e->incarnation;
    return qn_outbox_map(out, fd, &expect);
}

/* One message of the exchange. *more: GO has not come. */
static int exchange_next(const struct qn_boot *b,
                         const struct qn_outbox_opts *like,
                         int (*heard)(void *, const struct qn_boot_event *,
                                      struct qn_outbox *, int),
                         void *ctx, bool *more)
{
    struct qn_boot_event e;
    struct qn_outbox *peer = NULL;
    int fd = -1;
    int err = qn_boot_recv(b->control, &e, &fd, true);
    if (err != QN_OK) {
        return err;
    }
    switch (e.kind) {
    case QN_BOOT_PEER:
        err = qn_boot_map(b, &e, fd, like, &peer);
        err = err == QN_OK ? heard(ctx, &e, peer, fd) : err;
        break;
    case QN_BOOT_PEER_DOWN:
        err = heard(ctx, &e, NULL, -1);
        break;
    case QN_BOOT_GO:
        *more = false;
        break;
    default:
        err = QN_EABORTED;
    }
    if (fd >= 0) {
        close(fd);
    }
    return err;
}

int qn_boot_exchange(const struct qn_boot *b, const struct qn_outbox *own,
                     const struct qn_outbox_opts *like,
                     int (*heard)(void *ctx, const struct qn_boot_event *e,
                                  struct qn_outbox *peer, int fd),
                     void *ctx)
{
    const struct qn_boot_event hello = {.kind = QN_BOOT_HELLO};
    bool more = true;
    int err = tell(b, hello, qn_outbox_fd(own));
    while (err == QN_OK && more) {
        err = exchange_next(b, like, heard, ctx, &more);
    }
    return err;
}
