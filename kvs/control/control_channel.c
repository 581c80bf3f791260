/*
 * SEQPACKET keeps message borders and reports the end of the other process, so
 * a message is one frame and one system call, without a length or a checksum. A
 * damaged message is a bug of the sender, or comes from a process that has
 * overwritten its own memory; it is an error here and not an assertion.
 */
#include "kvs/control/control_channel.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/err.h"

union control_block {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int))];
};

/* ---- sockets ------------------------------------------------------------- */

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

int qn_control_send(int control, const struct qn_control_msg *m, int fd)
{
    uint8_t bytes[QN_CONTROL_BYTES];
    union control_block block = {0};
    struct iovec part = {.iov_base = bytes, .iov_len = sizeof bytes};
    struct msghdr msg = {.msg_iov = &part, .msg_iovlen = 1};
    QN_ASSERT(qn_control_may_send(m->kind, fd >= 0));
    qn_control_encode(m, bytes);
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
    return n == (ssize_t)sizeof bytes ? QN_OK : error_of(errno);
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

/* One frame. @return its length, 0 at the end of the other process, or a QN_E*.
 * A frame that is cut, or that had more than one descriptor, gets the length of
 * none. */
static ssize_t receive(int control, uint8_t *bytes, int *fd, bool wait)
{
    union control_block block = {0};
    struct iovec part = {.iov_base = bytes, .iov_len = QN_CONTROL_BYTES};
    struct msghdr msg = {.msg_iov = &part,
                         .msg_iovlen = 1,
                         .msg_control = block.bytes,
                         /* without the padding, which has room for a second
                          * descriptor */
                         .msg_controllen = CMSG_LEN(sizeof(int))};
    ssize_t n;
    do {
        n = recvmsg(control, &msg,
                    MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT));
        /* The peer ended before it had read all. The kernel reports that
         * once, before the peer's last messages, which are still in the
         * queue. */
    } while (n < 0 && (errno == EINTR || errno == ECONNRESET));
    if (n < 0) {
        return error_of(errno);
    }
    *fd = take_descriptor(&msg);
    bool cut = (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
    return cut ? (ssize_t)QN_CONTROL_BYTES + 1 : n;
}

int qn_control_recv(int control, const struct qn_control_link *link,
                    struct qn_control_msg *m, int *fd, bool wait)
{
    uint8_t bytes[QN_CONTROL_BYTES];
    int with = -1;
    ssize_t n = receive(control, bytes, &with, wait);
    if (n < 0) {
        return (int)n;
    }
    if (n == 0 && with < 0) {
        return QN_EPEERDEAD;
    }
    int err = qn_control_decode(bytes, (size_t)n, with >= 0, link, m);
    if (err != QN_OK && with >= 0) {
        close(with);
        with = -1;
    }
    *fd = with;
    return err;
}

/* ---- in a replica -------------------------------------------------------- */

int qn_control_ready(const struct qn_replica_spec *spec)
{
    const struct qn_control_msg m = {.kind = QN_CTL_READY};
    return qn_control_send(spec->control, &m, -1);
}

int qn_control_draining(const struct qn_replica_spec *spec, uint32_t timeout_s)
{
    const struct qn_control_msg m = {.kind = QN_CTL_DRAINING,
                                     .u.draining.timeout_s = timeout_s};
    return qn_control_send(spec->control, &m, -1);
}

int qn_control_drained(const struct qn_replica_spec *spec,
                       uint64_t unsent_replies, bool group_stopped)
{
    const struct qn_control_msg m = {
        .kind = QN_CTL_DRAINED,
        .u.drained = {.group_stopped = group_stopped,
                      .unsent_replies = unsent_replies}};
    return qn_control_send(spec->control, &m, -1);
}

void qn_control_failed(const struct qn_replica_spec *spec, int err)
{
    QN_ASSERT(err < QN_OK);
    const struct qn_control_msg m = {.kind = QN_CTL_FAILED,
                                     .u.failed.error = err};
    /* Without a supervisor no process is left to print the error. */
    (void)qn_control_send(spec->control, &m, -1);
}

static int next(const struct qn_replica_spec *spec, struct qn_control_msg *m,
                int *fd, bool wait)
{
    const struct qn_control_link link = {.direction = QN_CTL_TO_REPLICA,
                                         .nodes = spec->nodes};
    return qn_control_recv(spec->control, &link, m, fd, wait);
}

int qn_control_next(const struct qn_replica_spec *spec,
                    struct qn_control_msg *m, int *fd)
{
    return next(spec, m, fd, false);
}

struct exchange {
    const struct qn_replica_spec *spec;
    qn_control_heard_fn *heard;
    void *ctx;
    bool started; /* START has come */
};

static int exchange_next(struct exchange *x)
{
    struct qn_control_msg m;
    int fd = -1;
    int err = next(x->spec, &m, &fd, true);
    if (err != QN_OK) {
        return err;
    }
    switch (m.kind) {
    case QN_CTL_PEER_UP:
    case QN_CTL_PEER_DOWN:
        err = x->heard(x->ctx, &m, fd);
        break;
    case QN_CTL_START:
        x->started = true;
        break;
    default:
        err = QN_EABORTED;
    }
    if (fd >= 0) {
        close(fd);
    }
    return err;
}

int qn_control_exchange(const struct qn_replica_spec *spec, int own,
                        qn_control_heard_fn *heard, void *ctx)
{
    QN_ASSERT(spec->self < spec->nodes);
    QN_ASSERT(spec->incarnation != 0);
    const struct qn_control_msg hello = {
        .kind = QN_CTL_HELLO,
        .u.hello = {.node = spec->self, .incarnation = spec->incarnation}};
    struct exchange x = {.spec = spec, .heard = heard, .ctx = ctx};
    int err = qn_control_send(spec->control, &hello, own);
    while (err == QN_OK && !x.started) {
        err = exchange_next(&x);
    }
    return err;
}
