#include "paxos/driver/sendq.h"

#include "core/base/assert.h"
#include "core/base/bits.h"

static struct qn_msg *at(const struct qn_sendq *q, uint32_t i)
{
    return &q->msg[i & (q->cap - 1)];
}

/* The relations that hold between two calls. */
static void check(const struct qn_sendq *q)
{
    QN_DASSERT(q->cap == 0 || qn_is_pow2(q->cap));
    QN_DASSERT(qn_sendq_count(q) <= q->cap);
    QN_DASSERT(q->bytes <= q->most);
    QN_DASSERT(!qn_sendq_empty(q) || q->bytes == 0);
    QN_DASSERT(!qn_sendq_empty(q) || q->offset == 0);
    QN_DASSERT(q->offset == 0 || q->offset < at(q, q->head)->body.len);
    QN_DASSERT(q->offset <= q->bytes);
}

static int grow(struct qn_sendq *q)
{
    uint32_t cap = q->cap == 0 ? 16 : q->cap * 2;
    QN_ASSERT(cap > q->cap);
    const struct qn_alloc *a = qn_alloc_or_malloc(q->alloc);
    struct qn_msg *msg = a->resize(a->ctx, NULL, cap * sizeof *msg);
    if (msg == NULL) {
        return QN_ENOMEM;
    }
    for (uint32_t i = q->head; i != q->tail; i++) {
        msg[i & (cap - 1)] = *at(q, i);
    }
    qn_alloc_free(a, q->msg);
    q->msg = msg;
    q->cap = cap;
    return QN_OK;
}

int qn_sendq_push(struct qn_sendq *q, const struct qn_msg *m)
{
    if (q->tail - q->head == q->cap && grow(q) != QN_OK) {
        return QN_ENOMEM;
    }
    *at(q, q->tail++) = *m;
    q->bytes += m->body.len;
    q->most = QN_MAX(q->most, q->bytes);
    if (m->refbuf != NULL) {
        qn_refbuf_ref(m->refbuf);
    }
    check(q);
    return QN_OK;
}

void qn_sendq_drop(struct qn_sendq *q, uint8_t kind)
{
    uint32_t kept = q->offset != 0 ? q->head + 1 : q->head;
    for (uint32_t i = kept; i != q->tail; i++) {
        struct qn_msg *m = at(q, i);
        if (m->kind == kind) {
            q->bytes -= m->body.len;
            qn_refbuf_unref(m->refbuf);
        } else {
            *at(q, kept++) = *m;
        }
    }
    q->tail = kept;
    check(q);
}

qn_slot_t qn_sendq_slot(const struct qn_sendq *q)
{
    QN_ASSERT(!qn_sendq_empty(q));
    return at(q, q->head)->slot;
}

void qn_sendq_fragment(const struct qn_sendq *q, struct qn_msg *fragment)
{
    QN_ASSERT(!qn_sendq_empty(q));
    uint32_t offset = q->offset;
    bool some = qn_msg_cut(at(q, q->head), QN_FRAGMENT_MAX, &offset, fragment);
    QN_ASSERT(some);
}

void qn_sendq_sent(struct qn_sendq *q, const struct qn_msg *fragment)
{
    struct qn_msg *m = at(q, q->head);
    QN_DASSERT(!qn_sendq_empty(q));
    q->offset += (uint32_t)fragment->body.len;
    QN_ASSERT(q->offset <= m->body.len);
    if (q->offset == m->body.len) {
        q->bytes -= m->body.len;
        qn_refbuf_unref(m->refbuf);
        q->head++;
        q->offset = 0;
    }
    check(q);
}

void qn_sendq_free(struct qn_sendq *q)
{
    for (; q->head != q->tail; q->head++) {
        qn_refbuf_unref(at(q, q->head)->refbuf);
    }
    qn_alloc_free(qn_alloc_or_malloc(q->alloc), q->msg);
    *q = (struct qn_sendq){.alloc = q->alloc, .most = q->most};
}
