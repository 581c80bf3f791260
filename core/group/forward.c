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
 *     body  |FIRST|MORE |MORE |MORE |.....|     | <- total
 *                 ^sent[b]          ^got = sent[a]
 *
 * So cut-through and waiting for room are one mechanism: a child that keeps up
 * gets each frame as it comes, another one finds the rest in `body`. It has
 * time until the next long message needs the place.
 *
 * Two views of one channel, and a queuepair must not be looked at through the
 * other one in the middle of a message. `inside` has the peers of which that
 * may be so: by messages from the first look until a release (a look may
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
 * What a child is owed has a fixed order, `qn_forward_ready`: the ABORT of a
 * message that it will never get in full, then the rest of `body`, then the
 * numbered messages of the backlog. Only then may something new go to it, which
 * makes order and "never twice" local facts of that function. A node that is
 * down is in none of the masks.
 *
 * A numbered message that a child could not take at once goes to the backlog
 * when it is complete. Had we instead stopped reading, the child would have
 * stopped its siblings; had we dropped it, the number could never be
 * acknowledged. The number is a trailer, so that messages keep the alignment of
 * their cell.
 *
 * Bytes that arrive come from a peer that may misbehave: they are checked and,
 * if they make no sense, treated like an ABORT. It may change them under our
 * eyes, too, hence the copy of ONLY: what was checked is what is used, by us
 * and by all below. Sizes that we computed are asserted.
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/err.h"
#include "core/group/group_internal.h"

/* --- what a child is owed ------------------------------------------------ */

static bool send_frame(struct qn_context *c, qn_node_t child,
                       const struct qn_frame *f)
{
    /* Also if there is no room: flush then asks the child to ring. */
    c->dirty |= bit(child);
    return qn_qp_try_send_frame(c->qp[child], f) == QN_OK;
}

/* @return true if the child is owed no ABORT (any more). */
static bool send_abort(struct qn_context *c, qn_node_t child)
{
    if ((c->abort & bit(child)) != 0 &&
        send_frame(c, child, &(struct qn_frame){.kind = QN_FRAME_ABORT})) {
        c->abort &= ~bit(child);
    }
    return (c->abort & bit(child)) == 0;
}

/* The next frame of `body` for a child that has `sent` bytes of it. */
static struct qn_frame next_frame(const struct qn_forward_in *in, uint32_t sent)
{
    uint32_t max = sent == 0 ? in->first_len : in->more_len;
    uint32_t len = QN_MIN(in->got - sent, max);
    QN_ASSERT(len > 0 && sent + len <= in->total);
    return (struct qn_frame){
        .kind = sent == 0                 ? QN_FRAME_FIRST
                : sent + len == in->total ? QN_FRAME_LAST
                                          : QN_FRAME_MORE,
        .data = in->body + sent,
        .len = len,
        .total = in->total,
    };
}

/* Send of `body` what is there and finds room. */
static void send_body(struct qn_context *c, qn_node_t child)
{
    const struct qn_forward_in *in = &c->in[c->source];
    uint32_t *sent = &c->sent[child];
    while (*sent < in->got) {
        struct qn_frame f = next_frame(in, *sent);
        if (!send_frame(c, child, &f)) {
            return;
        }
        *sent += f.len;
    }
    if (*sent == in->total) {
        c->to &= ~bit(child);
    }
}

static void send_backlog(struct qn_context *c, qn_node_t child)
{
    while ((c->backlog.lagging & bit(child)) != 0) {
        struct qn_slice m = qn_backlog_next(&c->backlog, child);
        c->dirty |= bit(child);
        if (qn_qp_try_send(c->qp[child], m.data, m.len) != QN_OK) {
            return;
        }
        qn_backlog_pay(&c->backlog, child);
    }
}

bool qn_forward_ready(struct qn_context *c, qn_node_t child)
{
    if (!send_abort(c, child)) {
        return false;
    }
    if ((c->to & bit(child)) != 0) {
        send_body(c, child);
        if ((c->to & bit(child)) != 0) {
            return false;
        }
    }
    send_backlog(c, child);
    return (c->backlog.lagging & bit(child)) == 0;
}

void qn_forward_catch_up(struct qn_context *c)
{
    uint64_t pending = c->abort | c->to | c->backlog.lagging;
    for (; pending != 0; pending &= pending - 1) {
        qn_forward_ready(c, (qn_node_t)__builtin_ctzll(pending));
    }
}

/* Those of `nodes` that have not got all of `body` will not get more of it: a
 * child that got its beginning gets an ABORT. @return those nodes. */
static uint64_t give_up(struct qn_context *c, uint64_t nodes)
{
    uint64_t left = c->to & nodes;
    c->to &= ~left;
    for (uint64_t m = left; m != 0; m &= m - 1) {
        qn_node_t child = (qn_node_t)__builtin_ctzll(m);
        c->abort |= c->sent[child] > 0 ? bit(child) : 0;
        send_abort(c, child);
    }
    return left;
}

static void count_drops(struct qn_context *c, uint64_t nodes)
{
    for (; nodes != 0; nodes &= nodes - 1) {
        c->drops[__builtin_ctzll(nodes)]++;
    }
}

/* --- from a peer --------------------------------------------------------- */

/* Take the trailer off. @return false: no message of a sane parent. */
static bool read_number(struct qn_context *c, const uint8_t *msg, size_t *len,
                        uint64_t *number)
{
    *number = 0;
    if (!c->acked) {
        return true;
    }
    if (*len < QN_ACKED_EXTRA) {
        return false;
    }
    *len -= QN_ACKED_EXTRA;
    memcpy(number, msg + *len, QN_ACKED_EXTRA);
    return *number == 0 || *number == c->number + 1;
}

/* A whole message is here; the children of `missed` could not take it. */
static void finish(struct qn_context *c, qn_node_t from, const uint8_t *msg,
                   size_t len, uint64_t missed)
{
    size_t payload = len;
    uint64_t number;
    if (!read_number(c, msg, &payload, &number)) {
        return;
    }
    if (number != 0) {
        c->number = number;
        missed |= msg == c->in[from].body ? give_up(c, c->to) : 0;
        if (missed != 0 && qn_backlog_push(&c->backlog, msg, len, missed)) {
            missed = 0;
        }
    }
    count_drops(c, missed);
    c->sender = from;
    c->delivering = true;
    c->deliver(c->ctx, msg, payload);
    c->delivering = false;
}

/* @return the children that could not take it. */
static uint64_t forward(struct qn_context *c, const uint8_t *msg, size_t len)
{
    uint64_t missed = 0;
    for (uint32_t i = 0; i < c->child_count; i++) {
        qn_node_t child = c->child[i];
        if ((c->down & bit(child)) != 0) {
            continue;
        }
        c->dirty |= bit(child); /* without room too: see send_frame */
        if (!qn_forward_ready(c, child) ||
            qn_qp_try_send(c->qp[child], msg, len) != QN_OK) {
            missed |= bit(child);
        }
    }
    return missed;
}

/* A message of one frame, or one that was read whole. */
static void take_whole(struct qn_context *c, qn_node_t from, const void *msg,
                       size_t len)
{
    uint8_t own[QN_INPLACE_MAX];
    const uint8_t *bytes = qn_qp_steady(msg, len, own);
    uint64_t missed = from == c->parent ? forward(c, bytes, len) : 0;
    finish(c, from, bytes, len, missed);
}

static void append(struct qn_context *c, qn_node_t from,
                   const struct qn_frame *f)
{
    struct qn_forward_in *in = &c->in[from];
    qn_copy_in(in->body + in->got, f->data, f->len); /* found by the peek */
    in->got += f->len;
    for (uint32_t i = 0; i < c->child_count && from == c->source; i++) {
        if ((c->to & bit(c->child[i])) != 0 && send_abort(c, c->child[i])) {
            send_body(c, c->child[i]);
        }
    }
}

static void take_first(struct qn_context *c, qn_node_t from,
                       const struct qn_frame *f)
{
    if (f->len == 0 || f->len >= f->total || f->total > QN_MSG_MAX) {
        return;
    }
    if (from == c->parent || from == c->source) {
        qn_forward_catch_up(c);
        count_drops(c, give_up(c, c->to));
    }
    struct qn_forward_in *in = &c->in[from];
    in->open = true;
    in->total = f->total;
    in->got = 0;
    in->first_len = f->len;
    in->more_len = 0;
    if (from == c->parent) {
        c->source = from;
        /* A child with messages in the backlog must get those first. */
        c->missed = living_children(c) & c->backlog.lagging;
        c->to = living_children(c) & ~c->missed;
        memset(c->sent, 0, sizeof c->sent);
    }
    append(c, from, f);
}

/* What was begun will never be complete. */
static void cut(struct qn_context *c, qn_node_t from)
{
    c->in[from].open = false;
    if (from == c->source) {
        give_up(c, c->to);
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
    finish(c, from, in->body, in->total, c->missed);
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

/* Nothing of `from` is half read: it may be read by the other view now. */
static void at_boundary(struct qn_context *c, qn_node_t from)
{
    c->inside &= ~bit(from);
    c->framed ^= (c->framed ^ c->cut_through) & bit(from);
}

static bool peek_message(struct qn_context *c, qn_node_t from, const void **msg,
                         size_t *len)
{
    c->inside |= bit(from); /* until it is released: a look may assemble */
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
        c->inside |= bit(from);
    } else {
        at_boundary(c, from);
    }
    return true;
}

bool qn_forward_receive(struct qn_context *c, qn_node_t from)
{
    bool got = (c->framed & bit(from)) != 0 ? receive_frame(c, from)
                                            : receive_message(c, from);
    c->dirty |= got ? bit(from) : 0;
    return got;
}

bool qn_forward_has(struct qn_context *c, qn_node_t from)
{
    const void *msg;
    size_t len;
    struct qn_frame f;
    return (c->framed & bit(from)) != 0
               ? qn_qp_peek_frame(c->qp[from], &f) == QN_OK
               : peek_message(c, from, &msg, &len);
}

uint64_t qn_forward_pending(const struct qn_context *c)
{
    uint64_t pending = c->abort | c->backlog.lagging;
    for (uint64_t m = c->to; m != 0; m &= m - 1) {
        qn_node_t child = (qn_node_t)__builtin_ctzll(m);
        pending |= c->sent[child] < c->in[c->source].got ? bit(child) : 0;
    }
    return pending;
}

/* --- changes ------------------------------------------------------------- */

/* The body of `node` is neither read nor written. */
static bool body_idle(const struct qn_context *c, qn_node_t node)
{
    return (c->framed & bit(node)) == 0 && (node != c->source || c->to == 0);
}

/* The parent gets a body: one that is no longer used, or a new one. */
static bool parent_body(struct qn_context *c)
{
    uint8_t **body = &c->in[c->parent].body;
    for (qn_node_t v = 0; v < QN_NODES_MAX && *body == NULL; v++) {
        if (body_idle(c, v)) {
            *body = c->in[v].body;
            c->in[v].body = NULL;
        }
    }
    if (*body == NULL) {
        *body = malloc(QN_MSG_MAX);
    }
    return *body != NULL;
}

bool qn_forward_reroot(struct qn_context *c)
{
    bool goes_on = c->source == c->parent || !c->in[c->source].open;
    count_drops(c, give_up(c, goes_on ? ~c->children : UINT64_MAX));
    bool inner = c->up != 0 && c->child_count > 0;
    c->cut_through = inner && parent_body(c) ? c->up : 0;
    c->framed ^= (c->framed ^ c->cut_through) & ~c->inside;
    return !inner || c->cut_through != 0;
}

void qn_forward_down(struct qn_context *c, qn_node_t peer)
{
    c->to &= ~bit(peer);
    c->missed &= ~bit(peer);
    c->abort &= ~bit(peer);
    qn_backlog_forget(&c->backlog, peer);
    if (c->in[peer].open) {
        cut(c, peer);
    }
    at_boundary(c, peer); /* the beginning of its next channel */
}

void qn_forward_fini(struct qn_context *c)
{
    for (qn_node_t v = 0; v < QN_NODES_MAX; v++) {
        free(c->in[v].body);
    }
}
