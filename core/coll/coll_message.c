/*
 * Every queuepair that was sent to or received from is put on the list of those
 * to be flushed; one that had no room, too, since the flush asks for it.
 */
#include "core/coll/coll_internal.h"

static size_t bytes_of(const struct qn_coll_message *m)
{
    return QN_COLL_HEAD_BYTES + (size_t)m->count * sizeof m->word[0];
}

/* ---- messages ---- */

static void use(struct qn_coll *c, struct qn_coll_peer *p)
{
    if (!p->used) {
        p->used = true;
        p->used_next = c->used;
        c->used = (uint16_t)(p - c->peer);
    }
}

int qn_coll_send(struct qn_coll *c, struct qn_coll_peer *p,
                 const struct qn_coll_message *m)
{
    QN_DASSERT(p->qp != NULL);
    QN_DASSERT(m->count <= QN_COLL_WORDS);
    use(c, p); /* also without room: the flush asks for it */
    return qn_qp_try_send(p->qp, m, bytes_of(m));
}

int qn_coll_receive(struct qn_coll *c, struct qn_coll_peer *p)
{
    const void *bytes;
    size_t len;
    int rc;
    while ((rc = qn_qp_peek(p->qp, &bytes, &len)) == QN_OK) {
        if (len < QN_COLL_HEAD_BYTES || len > sizeof c->in) {
            return QN_ECORRUPT;
        }
        (void)qn_qp_steady(bytes, len, &c->in); /* short: always a copy */
        if (len != bytes_of(&c->in)) {
            return QN_ECORRUPT;
        }
        int16_t newer = (int16_t)(uint16_t)(c->in.instance - c->instance);
        if (newer > 0) {
            return QN_EPEERDEAD; /* the peer has given this instance up; the
                                    message is for our next one */
        }
        qn_qp_release(p->qp);
        use(c, p);
        if (newer == 0) {
            return c->in.what == QN_COLL_FAIL ? QN_EPEERDEAD : QN_OK;
        }
    }
    return rc;
}

/* ---- failure ---- */

void qn_coll_tell(struct qn_coll *c)
{
    const struct qn_coll_message m = {
        .instance = c->instance, .what = QN_COLL_FAIL, .number = c->number};
    QN_ASSERT(c->error != QN_OK);
    QN_ASSERT(c->phase == QN_COLL_IDLE);
    for (uint32_t i = 0; i < c->peers && c->untold > 0; i++) {
        struct qn_coll_peer *p = &c->peer[i];
        if (!p->told &&
            (p->qp == NULL || qn_coll_send(c, p, &m) != QN_EAGAIN)) {
            p->told = true; /* or it cannot be told */
            c->untold--;
        }
    }
}

void qn_coll_set_error(struct qn_coll *c, int err)
{
    QN_ASSERT(err != QN_OK && err != QN_EAGAIN);
    if (c->error == QN_OK) {
        c->error = err;
        c->untold = c->peers;
    }
}

bool qn_coll_can_tell(struct qn_coll *c)
{
    for (uint32_t i = 0; i < c->peers && c->untold > 0; i++) {
        struct qn_coll_peer *p = &c->peer[i];
        if (!p->told && (p->qp == NULL || qn_qp_room(p->qp) > 0)) {
            return true;
        }
    }
    return false;
}
