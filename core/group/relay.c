/*
 * From the parent to the children, without waiting for any of them.
 *
 * A leaf reads whole messages in place. An inner node works frame by frame:
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
 * What a child is owed has a fixed order, `catch_up`: the ABORT of a message
 * that it will never get in full, then the rest of `body`, then the numbered
 * messages of the backlog. Only then may something new go to it, which makes
 * order and "never twice" local facts of that function. A node that is down is
 * in none of the masks.
 *
 * A numbered message that a child could not take at once goes to the backlog
 * when it is complete. Had we instead stopped reading, the child would have
 * stopped its siblings; had we dropped it, the number could never be
 * acknowledged. The number is a trailer, so that messages keep the alignment of
 * their cell.
 *
 * Bytes that arrive come from a peer that may have gone wild: they are checked
 * and, if they make no sense, treated like an ABORT. It may change them under
 * our eyes, too, hence the copy of ONLY: what was checked is what is used, by
 * us and by all below. Sizes that we computed are asserted.
 */
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
static struct qn_frame next_frame(const struct qn_context *c, uint32_t sent)
{
    uint32_t max = sent == 0 ? c->first_len : c->more_len;
    uint32_t len = QN_MIN(c->got - sent, max);
    QN_ASSERT(len > 0 && sent + len <= c->total);
    return (struct qn_frame){
        .kind = sent == 0                ? QN_FRAME_FIRST
                : sent + len == c->total ? QN_FRAME_LAST
                                         : QN_FRAME_MORE,
        .data = c->body + sent,
        .len = len,
        .total = c->total,
    };
}

/* Send of `body` what is there and finds room. */
static void send_body(struct qn_context *c, qn_node_t child)
{
    uint32_t *sent = &c->sent[child];
    while (*sent < c->got) {
        struct qn_frame f = next_frame(c, *sent);
        if (!send_frame(c, child, &f)) {
            return;
        }
        *sent += f.len;
    }
    if (*sent == c->total) {
        c->to &= ~bit(child);
    }
}

static void send_backlog(struct qn_context *c, qn_node_t child)
{
    while ((c->backlog.behind & bit(child)) != 0) {
        struct qn_slice m = qn_backlog_next(&c->backlog, child);
        c->dirty |= bit(child);
        if (qn_qp_try_send(c->qp[child], m.data, m.len) != QN_OK) {
            return;
        }
        qn_backlog_pay(&c->backlog, child);
    }
}

/* Send the child what it is owed, in order.
 * @return true if it is owed nothing more: a new message may follow. */
static bool catch_up(struct qn_context *c, qn_node_t child)
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
    return (c->backlog.behind & bit(child)) == 0;
}

void qn_relay_catch_up(struct qn_context *c)
{
    uint64_t owed = c->abort | c->to | c->backlog.behind;
    for (; owed != 0; owed &= owed - 1) {
        catch_up(c, (qn_node_t)__builtin_ctzll(owed));
    }
}

/* Nobody will get more of `body`: who began it is owed an ABORT.
 * @return who has not got all of it. */
static uint64_t give_up_body(struct qn_context *c)
{
    uint64_t left = c->to;
    for (uint64_t m = left; m != 0; m &= m - 1) {
        qn_node_t child = (qn_node_t)__builtin_ctzll(m);
        c->abort |= c->sent[child] > 0 ? bit(child) : 0;
        send_abort(c, child);
    }
    c->to = 0;
    c->open = false;
    return left;
}

static void count_drops(struct qn_context *c, uint64_t nodes)
{
    for (; nodes != 0; nodes &= nodes - 1) {
        c->drops[__builtin_ctzll(nodes)]++;
    }
}

/* --- from the parent ----------------------------------------------------- */

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
static void finish(struct qn_context *c, const uint8_t *msg, size_t len,
                   uint64_t missed)
{
    size_t payload = len;
    uint64_t number;
    if (!read_number(c, msg, &payload, &number)) {
        return;
    }
    if (number != 0) {
        c->number = number;
        missed |= msg == c->body ? give_up_body(c) : 0;
        if (missed != 0 && qn_backlog_push(&c->backlog, msg, len, missed)) {
            missed = 0;
        }
    }
    count_drops(c, missed);
    c->deliver(c->ctx, msg, payload);
}

static void take_only(struct qn_context *c, struct qn_frame f)
{
    uint64_t missed = 0;
    uint8_t own[QN_INPLACE_MAX];
    QN_ASSERT(f.len <= QN_INPLACE_MAX);
    f.data = qn_qp_steady(f.data, f.len, own);
    for (uint32_t i = 0; i < c->child_count; i++) {
        qn_node_t child = c->child[i];
        if ((c->down & bit(child)) == 0 &&
            (!catch_up(c, child) || !send_frame(c, child, &f))) {
            missed |= bit(child);
        }
    }
    finish(c, f.data, f.len, missed);
}

static void append(struct qn_context *c, const struct qn_frame *f)
{
    qn_copy_in(c->body + c->got, f->data, f->len); /* found by the peek */
    c->got += f->len;
    for (uint32_t i = 0; i < c->child_count; i++) {
        if ((c->to & bit(c->child[i])) != 0 && send_abort(c, c->child[i])) {
            send_body(c, c->child[i]);
        }
    }
}

static void take_first(struct qn_context *c, const struct qn_frame *f)
{
    if (f->len == 0 || f->len >= f->total || f->total > QN_MSG_MAX) {
        return;
    }
    qn_relay_catch_up(c);
    count_drops(c, give_up_body(c));
    c->open = true;
    c->total = f->total;
    c->got = 0;
    c->first_len = f->len;
    c->more_len = 0;
    /* Who is owed a message of the backlog must get that one first. */
    c->missed = living_children(c) & c->backlog.behind;
    c->to = living_children(c) & ~c->missed;
    memset(c->sent, 0, sizeof c->sent);
    append(c, f);
}

static void take_more(struct qn_context *c, const struct qn_frame *f)
{
    if (!c->open) {
        return;
    }
    uint32_t left = c->total - c->got;
    bool last = f->kind == QN_FRAME_LAST;
    if (f->len == 0 || (last ? f->len != left : f->len >= left)) {
        give_up_body(c);
        return;
    }
    c->more_len = QN_MAX(c->more_len, f->len);
    append(c, f);
    if (!last) {
        return;
    }
    c->open = false;
    finish(c, c->body, c->total, c->missed);
}

static void take_frame(struct qn_context *c, const struct qn_frame *f)
{
    /* What was begun and is not continued will never be complete. */
    if (c->open && f->kind != QN_FRAME_MORE && f->kind != QN_FRAME_LAST) {
        give_up_body(c);
    }
    switch (f->kind) {
    case QN_FRAME_ONLY:
        take_only(c, *f);
        break;
    case QN_FRAME_FIRST:
        take_first(c, f);
        break;
    case QN_FRAME_MORE:
    case QN_FRAME_LAST:
        take_more(c, f);
        break;
    case QN_FRAME_ABORT:
        break;
    }
}

bool qn_relay_receive(struct qn_context *c)
{
    struct qn_qp *qp = c->qp[c->parent];
    if (c->body != NULL) {
        struct qn_frame f;
        if (qn_qp_peek_frame(qp, &f) != QN_OK) {
            return false;
        }
        take_frame(c, &f);
        qn_qp_release_frame(qp);
    } else {
        const void *msg;
        size_t len;
        if (qn_qp_peek(qp, &msg, &len) != QN_OK) {
            return false;
        }
        uint8_t own[QN_INPLACE_MAX];
        finish(c, qn_qp_steady(msg, len, own), len, 0);
        qn_qp_release(qp);
    }
    c->dirty |= bit(c->parent);
    return true;
}

uint64_t qn_relay_owed(const struct qn_context *c)
{
    uint64_t owed = c->abort | c->backlog.behind;
    for (uint64_t m = c->to; m != 0; m &= m - 1) {
        qn_node_t child = (qn_node_t)__builtin_ctzll(m);
        owed |= c->sent[child] < c->got ? bit(child) : 0;
    }
    return owed;
}

void qn_relay_down(struct qn_context *c, qn_node_t peer)
{
    c->to &= ~bit(peer);
    c->missed &= ~bit(peer);
    c->abort &= ~bit(peer);
    qn_backlog_forget(&c->backlog, peer);
    if (peer == c->parent && c->open) {
        give_up_body(c);
    }
}
