/*
 * Fragments: cut a long message, and join it again (msg.h).
 *
 * The body of ACCEPT, LEARN and FILL is exactly one batch, so the joined bytes
 * are a batch that the log can keep as it is: nothing is copied a second time.
 * On a reliable channel the fragments arrive in order. On a broadcast tree some
 * may be missing; then the whole message counts as lost, as a short LEARN would
 * be, and the joiner waits for the next first fragment.
 */
#include "paxos/wire/msg.h"

#include <string.h>

/* What a LEARN says of the tree is put into it when it leaves. */
static size_t head_most(const struct qn_msg *m)
{
    struct qn_msg longest = *m;
    if (m->kind == QN_MSG_LEARN) {
        longest.learn.alive = UINT64_MAX - 1; /* in 8 bytes */
    }
    return qn_msg_head_size(&longest);
}

bool qn_msg_cut(const struct qn_msg *whole, size_t max, uint32_t *offset,
                struct qn_msg *fragment)
{
    size_t len = whole->body.len;
    QN_ASSERT((whole->flags & QN_MSG_FRAGMENT) == 0);
    QN_ASSERT(max > QN_HEAD_MAX);
    if (head_most(whole) + len <= max) {
        /* As it is; a body of 0 bytes is sent once. */
        *fragment = *whole;
        bool first = *offset == 0;
        *offset = (uint32_t)len + 1;
        return first;
    }
    if (*offset >= len) {
        return false;
    }
    *fragment = *whole;
    fragment->flags |= QN_MSG_FRAGMENT;
    fragment->total = (uint32_t)len;
    fragment->offset = *offset;
    size_t n = QN_MIN(max - head_most(fragment), len - *offset);
    QN_ASSERT(n < len); /* a real part: a whole message has no offset */
    fragment->body = (struct qn_slice){whole->body.data + *offset, n};
    *offset += (uint32_t)n;
    return true;
}

void qn_joiner_reset(struct qn_joiner *j)
{
    qn_refbuf_unref(j->refbuf);
    *j = (struct qn_joiner){0};
}

static bool continues(const struct qn_joiner *j, const struct qn_msg *m)
{
    return j->refbuf != NULL && j->refbuf->len == m->offset &&
           j->total == m->total && j->kind == m->kind && j->slot == m->slot;
}

static int begin(struct qn_joiner *j, const struct qn_alloc *a,
                 const struct qn_msg *m)
{
    qn_joiner_reset(j);
    struct qn_refbuf *b = qn_refbuf_create(a, m->total);
    if (b == NULL) {
        return QN_ENOMEM;
    }
    *j = (struct qn_joiner){
        .refbuf = b, .total = m->total, .kind = m->kind, .slot = m->slot};
    return QN_OK;
}

int qn_joiner_take(struct qn_joiner *j, const struct qn_alloc *a,
                   struct qn_msg *m)
{
    if (j->whole) {
        qn_joiner_reset(j);
    }
    if ((m->flags & QN_MSG_FRAGMENT) == 0) {
        return QN_OK;
    }
    if (m->offset == 0) {
        int err = begin(j, a, m);
        if (err != QN_OK) {
            return err;
        }
    } else if (!continues(j, m)) {
        qn_joiner_reset(j);
        return QN_EAGAIN;
    }
    QN_ASSERT(j->refbuf->refs == 1); /* no reader before it is whole */
    QN_ASSERT(m->offset == j->refbuf->len);
    QN_ASSERT(m->body.len <= j->refbuf->cap - j->refbuf->len);
    memcpy(j->refbuf->bytes + j->refbuf->len, m->body.data, m->body.len);
    j->refbuf->len += (uint32_t)m->body.len;
    if (j->refbuf->len < j->total) {
        return QN_EAGAIN;
    }
    QN_ASSERT(j->refbuf->len == j->total);
    m->flags &= (uint8_t)~QN_MSG_FRAGMENT;
    m->offset = 0;
    m->body = (struct qn_slice){j->refbuf->bytes, j->refbuf->len};
    m->refbuf = j->refbuf;
    j->whole = true;
    return qn_msg_check_body(m);
}
