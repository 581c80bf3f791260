/*
 * SEQPACKET keeps message borders and reports the end of the other process, so
 * a message is one frame and one system call, without a length or a checksum. A
 * damaged message is a bug of the sender, or comes from a process that has
 * overwritten its own memory; it is an error here and not an assertion.
 */
#include "kvs/control/control_channel.h"

#include <string.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/err.h"
#include "core/rendezvous/fd_message.h"

/* ---- sockets ------------------------------------------------------------- */

int qn_control_send(int control, const struct qn_control_msg *m, int fd)
{
    uint8_t bytes[QN_CONTROL_BYTES];
    QN_ASSERT(qn_control_may_send(m->kind, fd >= 0));
    qn_control_encode(m, bytes);
    return qn_fd_message_send(control, (struct qn_slice){bytes, sizeof bytes},
                              &fd, fd >= 0);
}

int qn_control_recv(int control, const struct qn_control_link *link,
                    struct qn_control_msg *m, int *fd, bool wait)
{
    uint8_t bytes[QN_CONTROL_BYTES];
    struct qn_fd_message got = {.bytes = bytes, .cap = sizeof bytes};
    int err = qn_fd_message_recv(control, &got, 1, wait);
    if (err == QN_ECORRUPT) { /* it had more descriptors than any has */
        got.len = sizeof bytes + 1;
    } else if (err != QN_OK && err != QN_EMFILE) {
        return err;
    } /* QN_EMFILE: its descriptor is lost, so it is refused */
    err = qn_control_decode(bytes, got.len, got.count > 0, link, m);
    *fd = err == QN_OK && got.count > 0 ? got.fds[0] : -1;
    if (err != QN_OK) {
        qn_fd_message_close(&got);
    }
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
