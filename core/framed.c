#include "core/framed.h"

void *qn_framed_alloc(size_t bytes, const struct qn_qp_opts *o,
                      const struct qn_qp_ops *ops, uint32_t first, uint32_t any)
{
    /* A line of its own: two ends in one process belong to two threads. */
    size_t end = qn_align_up(bytes, QN_CACHELINE);
    uint32_t msg_max = o->msg_max != 0 ? o->msg_max : QN_MSG_MAX;
    size_t buffer = qn_align_up(msg_max, QN_CACHELINE);
    const struct qn_alloc *a = qn_alloc_or_malloc(o->alloc);
    struct qn_framed *q = qn_alloc_lines(a, end + 2 * buffer);
    if (q == NULL) {
        return NULL;
    }
    q->qp = (struct qn_qp){.ops = ops, .doorbell = o->doorbell, .alloc = a};
    q->limits =
        (struct qn_frame_limits){.first = first, .any = any, .msg = msg_max};
    q->ringer = o->ringer;
    q->stage = (uint8_t *)q + end;
    q->whole = q->stage + buffer;
    return q;
}

void qn_framed_down(struct qn_qp *qp)
{
    struct qn_framed *q = qn_framed_of(qp);
    if (q->status == QN_OK) {
        q->status = QN_EPEERDEAD;
        q->staged = 0;
        q->starved = false;
    }
}

void qn_framed_close(struct qn_qp *qp)
{
    /* What was sent can still be received. */
    qn_alloc_free_lines(qp->alloc, qn_framed_of(qp));
}

struct qn_qp_traffic qn_framed_traffic(const struct qn_qp *qp)
{
    return ((const struct qn_framed *)(const void *)qp)->traffic;
}
