/*
 * From the peers to here, and from the parent on to the children, without
 * waiting for any of them.
 *
 * Whole messages are read in place. An inner node reads its parent frame by
 * frame:
 *
 *   ONLY          copied once, sent on and delivered from the copy
 *   FIRST..LAST   copied behind each other into `body`, from where each child
 *                 in `to` is served up to `got`, its own position in `sent`
 *
 * Two views of one channel, and a queuepair must not be looked at through the
 * other one in the middle of a message. QN_VIEW_INSIDE marks the peers of which
 * that may be so: by messages from the first look until a release (a look may
 * already have consumed a part), by frames from FIRST to the end. When parent
 * or children change, the view of a peer changes at its next boundary:
 *
 *     becomes an inner node's parent   its next message may still come whole:
 *                                      then it is forwarded whole
 *     is that no more                  the rest of its message comes by frames
 *                                      into its `body`, and is only delivered
 *
 * So a `body` belongs to a peer. There is one, the parent's, and for a while
 * one more for each former parent that is in the middle of a message.
 *
 * Bytes that arrive come from a peer that may misbehave: they are checked and,
 * if they make no sense, treated like an ABORT. It may change them under our
 * eyes, too, hence the copy of ONLY: what was checked is what is used, by us
 * and by all below.
 */

#include "core/base/assert.h"
#include "core/base/err.h"
#include "core/group/group_internal.h"

/* --- from a peer --------------------------------------------------------- */

/* A whole message is here. */
static void deliver(struct qn_context *c, qn_node_t from, const uint8_t *msg,
                    size_t len)
{
    c->sender = from;
    c->delivering = true;
    qn_mark(QN_MARK_PASS);
    c->deliver(c->ctx, msg, len);
    c->delivering = false;
}

static void forward(struct qn_context *c, const uint8_t *msg, size_t len)
{
    for (uint32_t i = 0; i < c->child_count; i++) {
        qn_node_t child = c->child[i];
        if (qn_node_set_has(&c->down, child)) {
            continue;
        }
        /* Without room too: flush then asks the child to ring. */
        qn_node_set_add(&c->dirty, child);
        qn_mark(QN_MARK_PASS);
        if ((c->owing && !qn_pending_ready(c, child)) ||
            qn_qp_try_send(c->qp[child], msg, len) != QN_OK) {
            c->drops[child]++;
        }
    }
}

/* A message of one frame, or one that was read whole. */
static void take_whole(struct qn_context *c, qn_node_t from, const void *msg,
                       size_t len)
{
    uint8_t own[QN_INPLACE_MAX];
    const uint8_t *bytes = qn_qp_steady(msg, len, own);
    if (from == c->parent) {
        forward(c, bytes, len);
    }
    deliver(c, from, bytes, len);
}

static void append(struct qn_context *c, qn_node_t from,
                   const struct qn_frame *f)
{
    struct qn_forward_in *in = &c->in[from];
    qn_copy_in(in->body + in->got, f->data, f->len); /* found by the peek */
    in->got += f->len;
    if (from == c->source) {
        qn_pending_send(c);
    }
}

static void take_first(struct qn_context *c, qn_node_t from,
                       const struct qn_frame *f)
{
    if (f->len == 0 || f->len >= f->total || f->total > c->msg_max) {
        return;
    }
    if (from == c->parent || from == c->source) {
        qn_pending_catch_up(c);
        qn_pending_drop(c, NULL);
    }
    struct qn_forward_in *in = &c->in[from];
    in->open = true;
    in->total = f->total;
    in->got = 0;
    in->first_len = f->len;
    in->more_len = 0;
    if (from == c->parent) {
        c->source = from;
        qn_pending_begin(c);
    }
    append(c, from, f);
}

/* What was begun will never be complete. */
static void cut(struct qn_context *c, qn_node_t from)
{
    c->in[from].open = false;
    if (from == c->source) {
        qn_pending_cut(c);
    }
}

static void take_more(struct qn_context *c, qn_node_t from,
                      const struct qn_frame *f)
{
    struct qn_forward_in *in = &c->in[from];
    if (!in->open) {
        return;
    }
    uint32_t left = in->total - in->got;
    bool last = f->kind == QN_FRAME_LAST;
    if (f->len == 0 || (last ? f->len != left : f->len >= left)) {
        cut(c, from);
        return;
    }
    in->more_len = QN_MAX(in->more_len, f->len);
    append(c, from, f);
    if (!last) {
        return;
    }
    in->open = false;
    deliver(c, from, in->body, in->total);
}

static void take_frame(struct qn_context *c, qn_node_t from,
                       const struct qn_frame *f)
{
    if (c->in[from].open && f->kind != QN_FRAME_MORE &&
        f->kind != QN_FRAME_LAST) {
        cut(c, from);
    }
    switch (f->kind) {
    case QN_FRAME_ONLY:
        QN_ASSERT(f->len <= QN_INPLACE_MAX);
        take_whole(c, from, f->data, f->len);
        break;
    case QN_FRAME_FIRST:
        take_first(c, from, f);
        break;
    case QN_FRAME_MORE:
    case QN_FRAME_LAST:
        take_more(c, from, f);
        break;
    case QN_FRAME_ABORT:
        break;
    }
}

/* --- the two views ------------------------------------------------------- */

static inline bool is_framed(const struct qn_context *c, qn_node_t peer)
{
    return (c->view[peer] & QN_VIEW_FRAMED) != 0;
}

/* Nothing of `from` is half read: it may be read by the other view now. */
static void at_boundary(struct qn_context *c, qn_node_t from)
{
    c->view[from] = from == c->cut_through ? QN_VIEW_FRAMED : 0;
}

static bool peek_message(struct qn_context *c, qn_node_t from, const void **msg,
                         size_t *len)
{
    /* Until it is released: a look may assemble. */
    c->view[from] |= QN_VIEW_INSIDE;
    return qn_qp_peek(c->qp[from], msg, len) == QN_OK;
}

static bool receive_message(struct qn_context *c, qn_node_t from)
{
    const void *msg;
    size_t len;
    if (!peek_message(c, from, &msg, &len)) {
        return false;
    }
    take_whole(c, from, msg, len);
    qn_qp_release(c->qp[from]);
    at_boundary(c, from);
    return true;
}

static bool receive_frame(struct qn_context *c, qn_node_t from)
{
    struct qn_frame f;
    if (qn_qp_peek_frame(c->qp[from], &f) != QN_OK) {
        return false;
    }
    take_frame(c, from, &f);
    qn_qp_release_frame(c->qp[from]);
    if (f.kind == QN_FRAME_FIRST || f.kind == QN_FRAME_MORE) {
        c->view[from] |= QN_VIEW_INSIDE;
    } else {
        at_boundary(c, from);
    }
    return true;
}

bool qn_forward_receive(struct qn_context *c, qn_node_t from)
{
    bool got =
        is_framed(c, from) ? receive_frame(c, from) : receive_message(c, from);
    if (got) {
        qn_node_set_add(&c->dirty, from);
    }
    return got;
}

bool qn_forward_has(struct qn_context *c, qn_node_t from)
{
    const void *msg;
    size_t len;
    struct qn_frame f;
    return is_framed(c, from) ? qn_qp_peek_frame(c->qp[from], &f) == QN_OK
                              : peek_message(c, from, &msg, &len);
}

/* --- changes ------------------------------------------------------------- */

/* The body of `node` is neither read nor written. */
static bool body_idle(const struct qn_context *c, qn_node_t node)
{
    return !is_framed(c, node) &&
           (node != c->source || qn_node_set_empty(&c->to));
}

/* The parent gets a body: one that is no longer used, or a new one. */
static bool parent_body(struct qn_context *c)
{
    uint8_t **body = &c->in[c->parent].body;
    for (qn_node_t v = 0; v < c->members && *body == NULL; v++) {
        if (body_idle(c, v)) {
            *body = c->in[v].body;
            c->in[v].body = NULL;
        }
    }
    if (*body == NULL) {
        *body = c->alloc->resize(c->alloc->ctx, NULL, c->msg_max);
    }
    return *body != NULL;
}

bool qn_forward_reroot(struct qn_context *c)
{
    bool goes_on = c->source == c->parent || !c->in[c->source].open;
    qn_pending_drop(c, goes_on ? &c->children : NULL);
    bool inner = c->parent != QN_NO_MEMBER && !is_root(c) && c->child_count > 0;
    c->cut_through = inner && parent_body(c) ? c->parent : QN_NO_MEMBER;
    for (qn_node_t v = 0; v < c->members; v++) {
        /* What is in the middle of a message stays as it is. */
        if ((c->view[v] & QN_VIEW_INSIDE) == 0) {
            at_boundary(c, v);
        }
    }
    return !inner || c->cut_through != QN_NO_MEMBER;
}

void qn_forward_down(struct qn_context *c, qn_node_t peer)
{
    qn_node_set_remove(&c->to, peer);
    qn_node_set_remove(&c->abort, peer);
    if (c->in[peer].open) {
        cut(c, peer);
    }
    at_boundary(c, peer); /* the beginning of its next channel */
}

void qn_forward_fini(struct qn_context *c)
{
    for (qn_node_t v = 0; v < c->members; v++) {
        qn_alloc_free(c->alloc, c->in[v].body);
    }
}
