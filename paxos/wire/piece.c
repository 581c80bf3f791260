/*
 * Pieces: cutting a long message and joining it again (msg.h).
 *
 * The body of ACCEPT, LEARN and FILL is exactly one batch, so joined bytes are
 * a batch that the log can keep as it is: nothing is copied a second time.
 * On a reliable channel the pieces arrive in order; on a broadcast tree some
 * may be missing, and then the whole message counts as lost, as a short LEARN
 * would be: the joiner waits for the next first piece.
 */
#include "paxos/wire/msg.h"

#include <string.h>

bool qn_msg_cut(const struct qn_msg *whole, size_t max, uint32_t *offset,
                struct qn_msg *piece)
{
    size_t head = qn_msg_head_size(whole);
    size_t len = whole->body.len;
    QN_ASSERT((whole->flags & QN_MSG_PIECE) == 0 && max > QN_HEAD_MAX);
    if (head + len <= max) { /* as it is; a body of 0 bytes is sent once */
        *piece = *whole;
        bool first = *offset == 0;
        *offset = (uint32_t)len + 1;
        return first;
    }
    if (*offset >= len) {
        return false;
    }
    *piece = *whole;
    piece->flags |= QN_MSG_PIECE;
    piece->total = (uint32_t)len;
    piece->offset = *offset;
    size_t room = max - qn_msg_head_size(piece);
    size_t n = QN_MIN(room, len - *offset);
    piece->body = (struct qn_slice){whole->body.data + *offset, n};
    *offset += (uint32_t)n;
    return true;
}

void qn_joiner_reset(struct qn_joiner *j)
{
    qn_blob_unref(j->blob);
    *j = (struct qn_joiner){0};
}

static bool continues(const struct qn_joiner *j, const struct qn_msg *m)
{
    return j->blob != NULL && j->blob->len == m->offset &&
           j->total == m->total && j->kind == m->kind && j->slot == m->slot;
}

static int begin(struct qn_joiner *j, const struct qn_alloc *a,
                 const struct qn_msg *m)
{
    qn_joiner_reset(j);
    struct qn_blob *b = qn_blob_create(a, m->total);
    if (b == NULL) {
        return QN_ENOMEM;
    }
    *j = (struct qn_joiner){
        .blob = b, .total = m->total, .kind = m->kind, .slot = m->slot};
    return QN_OK;
}

int qn_joiner_take(struct qn_joiner *j, const struct qn_alloc *a,
                   struct qn_msg *m)
{
    if (j->whole) {
        qn_joiner_reset(j);
    }
    if ((m->flags & QN_MSG_PIECE) == 0) {
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
    memcpy(j->blob->bytes + j->blob->len, m->body.data, m->body.len);
    j->blob->len += (uint32_t)m->body.len;
    if (j->blob->len < j->total) {
        return QN_EAGAIN;
    }
    m->flags &= (uint8_t)~QN_MSG_PIECE;
    m->offset = 0;
    m->body = (struct qn_slice){j->blob->bytes, j->blob->len};
    m->blob = j->blob;
    j->whole = true;
    return qn_msg_check_body(m);
}
