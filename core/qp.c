/*
 * What every backend has in common: whole messages by copy, and waiting.
 *
 * A waiting call is a try call between two looks. The order is that of
 * core/wait/doorbell.h: declare sleep, then flush (this publishes the own
 * acknowledgements, rings a peer that waits for them, and says that room is
 * wanted), then try once more, then block. Flushing before the declaration
 * would lose the peer's answer to it: room made, or a reply sent, between the
 * flush and the declaration is neither rung for nor looked for.
 *
 * The doorbell is one per node and not per queuepair, so a wait may end because
 * of another channel; that is a spurious wake-up here, and the loop goes on.
 */
#include "core/qp.h"

#include <string.h>

#include "core/base/assert.h"

int qn_qp_try_send_staged(struct qn_qp *qp, const void *msg, size_t len)
{
    void *buf;
    int rc = qn_qp_try_reserve(qp, len, &buf);
    if (rc != QN_OK) {
        return rc;
    }
    if (len > 0) {
        qn_copy_out(buf, msg, len);
    }
    qn_qp_commit(qp, len);
    return QN_OK;
}

int qn_qp_try_recv(struct qn_qp *qp, void *buf, size_t cap, size_t *len)
{
    const void *msg;
    size_t n;
    int rc = qn_qp_peek(qp, &msg, &n);
    if (rc != QN_OK) {
        return rc;
    }
    if (n > cap) {
        return QN_EMSGSIZE;
    }
    if (n > 0) { /* `buf` may be NULL otherwise */
        qn_copy_in(buf, msg, n);
    }
    *len = n;
    qn_qp_release(qp);
    return QN_OK;
}

/* One attempt of a waiting call, either direction. */
struct attempt {
    const void *msg; /* send; NULL: receive */
    void *buf;
    size_t cap;  /* of buf; bytes of msg */
    size_t *len; /* receive: filled */
};

static int attempt(struct qn_qp *qp, const struct attempt *a)
{
    return a->len == NULL ? qn_qp_try_send(qp, a->msg, a->cap)
                          : qn_qp_try_recv(qp, a->buf, a->cap, a->len);
}

static int wait_for(struct qn_qp *qp, const struct attempt *a,
                    qn_time_t deadline)
{
    QN_ASSERT(qp->doorbell != NULL);
    int rc = attempt(qp, a);
    int slept = QN_OK;
    while (rc == QN_EAGAIN && slept == QN_OK) {
        qn_doorbell_arm(qp->doorbell);
        qn_qp_flush(qp);
        rc = attempt(qp, a);
        if (rc == QN_EAGAIN) {
            slept = qn_doorbell_wait(qp->doorbell, deadline);
        }
        qn_doorbell_disarm(qp->doorbell);
        if (rc == QN_EAGAIN) {
            rc = attempt(qp, a);
        }
    }
    return rc == QN_EAGAIN ? QN_ETIMEDOUT : rc;
}

int qn_qp_send(struct qn_qp *qp, const void *msg, size_t len,
               qn_time_t deadline)
{
    const struct attempt a = {.msg = msg, .cap = len};
    int rc = wait_for(qp, &a, deadline);
    qn_qp_flush(qp);
    return rc;
}

int qn_qp_recv(struct qn_qp *qp, void *buf, size_t cap, size_t *len,
               qn_time_t deadline)
{
    QN_ASSERT(len != NULL);
    const struct attempt a = {.buf = buf, .cap = cap, .len = len};
    return wait_for(qp, &a, deadline);
}

int qn_qp_drain(struct qn_qp *qp, qn_time_t deadline)
{
    QN_ASSERT(qp->doorbell != NULL);
    int slept = QN_OK;
    bool staged = qn_qp_flush(qp);
    while (staged && slept == QN_OK) {
        qn_doorbell_arm(qp->doorbell);
        staged = qn_qp_flush(qp);
        if (staged) {
            slept = qn_doorbell_wait(qp->doorbell, deadline);
        }
        qn_doorbell_disarm(qp->doorbell);
    }
    return staged && qn_qp_flush(qp) ? QN_ETIMEDOUT : QN_OK;
}
