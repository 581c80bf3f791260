/* Messages with descriptors (fd_message.h). */
#include "core/rendezvous/fd_message.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/err.h"

union control_block {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(QN_FD_MESSAGE_MAX * sizeof(int))];
};

static int error_of(int e)
{
    switch (e) {
    case EAGAIN:
    case ENOBUFS:
    case ETOOMANYREFS: /* descriptors under way; they will arrive */
        return QN_EAGAIN;
    case EPIPE:
    case ECONNRESET:
        return QN_EPEERDEAD;
    default:
        return QN_EIO;
    }
}

int qn_fd_message_send(int socket, struct qn_slice bytes, const int *fds,
                       uint32_t count)
{
    union control_block block = {0};
    struct iovec part = {.iov_base = (void *)(uintptr_t)bytes.data,
                         .iov_len = bytes.len};
    struct msghdr msg = {.msg_iov = &part, .msg_iovlen = 1};
    QN_ASSERT(bytes.len > 0 && count <= QN_FD_MESSAGE_MAX);
    if (count > 0) {
        msg.msg_control = block.bytes;
        msg.msg_controllen = CMSG_SPACE(count * sizeof *fds);
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(count * sizeof *fds);
        memcpy(CMSG_DATA(c), fds, count * sizeof *fds);
    }
    ssize_t n;
    do {
        n = sendmsg(socket, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    return n == (ssize_t)bytes.len ? QN_OK : error_of(errno);
}

static void take_descriptors(struct msghdr *msg, struct qn_fd_message *m)
{
    const struct cmsghdr *c = CMSG_FIRSTHDR(msg);
    if (c != NULL && c->cmsg_level == SOL_SOCKET &&
        c->cmsg_type == SCM_RIGHTS) {
        m->count = (uint32_t)((c->cmsg_len - CMSG_LEN(0)) / sizeof m->fds[0]);
        memcpy(m->fds, CMSG_DATA(c), m->count * sizeof m->fds[0]);
    }
}

int qn_fd_message_recv(int socket, struct qn_fd_message *m, uint32_t most,
                       bool wait)
{
    union control_block block = {0};
    struct iovec part = {.iov_base = m->bytes, .iov_len = m->cap};
    QN_ASSERT(most <= QN_FD_MESSAGE_MAX);
    m->count = 0;
    struct msghdr msg = {.msg_iov = &part,
                         .msg_iovlen = 1,
                         .msg_control = most > 0 ? block.bytes : NULL,
                         /* without the padding, which has room for one more
                          * descriptor */
                         .msg_controllen =
                             most > 0 ? CMSG_LEN(most * sizeof m->fds[0]) : 0};
    ssize_t n;
    do {
        n = recvmsg(socket, &msg,
                    MSG_CMSG_CLOEXEC | MSG_TRUNC | (wait ? 0 : MSG_DONTWAIT));
        /* The peer ended before it had read all. The kernel reports that
         * once, before the peer's last messages, which are still in the
         * queue. */
    } while (n < 0 && (errno == EINTR || errno == ECONNRESET));
    if (n < 0) {
        return error_of(errno);
    }
    m->len = (size_t)n;
    take_descriptors(&msg, m);
    if ((msg.msg_flags & MSG_CTRUNC) != 0) {
        int err = m->count < most ? QN_EMFILE : QN_ECORRUPT;
        qn_fd_message_close(m);
        return err;
    }
    return n == 0 && m->count == 0 ? QN_EPEERDEAD : QN_OK;
}

void qn_fd_message_close(struct qn_fd_message *m)
{
    for (uint32_t i = 0; i < m->count; i++) {
        close(m->fds[i]);
    }
    m->count = 0;
}
