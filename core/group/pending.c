/*
 * What is pending for the children, and sending it.
 *
 * A long message lies in `body` of the peer it comes from:
 *
 *     body  |FIRST|MORE |MORE |MORE |.....|     | <- total
 *                 ^sent[b]          ^got = sent[a]
 *
 * So cut-through and waiting for room are one mechanism: a child that keeps up
 * gets each frame as it comes, another one finds the rest in `body`. It has
 * time until the next long message needs the place.
 *
 * What a child is owed has a fixed order, `qn_pending_ready`: the ABORT of a
 * message that it will never get in full, then the rest of `body`. Only then
 * may something new go to it, which makes order and "never twice" local facts
 * of that function. A node that is down is in none of the sets.
 *
 * Usually no node is owed anything, and a turn asks several times: `owing` is
 * false then. It is set where `to` gets members, and cleared by qn_pending_pay,
 * which looks at all of them.
 *
 * Sizes that we computed are asserted.
 */
#include "core/base/assert.h"
#include "core/base/err.h"
#include "core/group/group_internal.h"

/* @return true if the child is owed no ABORT (any more). */
static bool send_abort(struct qn_context *c, qn_node_t child)
{
    static const struct qn_frame abort = {.kind = QN_FRAME_ABORT};
    if (!qn_node_set_has(&c->abort, child)) {
        return true;
    }
    /* Also if there is no room: flush then asks the child to ring. */
    qn_node_set_add(&c->dirty, child);
    if (qn_qp_try_send_frame(c->qp[child], &abort) != QN_OK) {
        return false;
    }
    qn_node_set_remove(&c->abort, child);
    return true;
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

/* Send of `body` what is there and finds room. Inlined: see qn_pending_send. */
static inline __attribute__((always_inline)) void send_body(
    struct qn_context *c, qn_node_t child)
{
    const struct qn_forward_in *in = &c->in[c->source];
    struct qn_qp *qp = c->qp[child];
    uint32_t sent = c->sent[child];
    if (sent == in->got) {
        return;
    }
    /* Also if there is no room: see send_abort. */
    qn_node_set_add(&c->dirty, child);
    while (sent < in->got) {
        struct qn_frame f = next_frame(in, sent);
        if (qn_qp_try_send_frame(qp, &f) != QN_OK) {
            break;
        }
        sent += f.len;
    }
    c->sent[child] = sent;
    if (sent == in->total) {
        qn_node_set_remove(&c->to, child);
    }
}

bool qn_pending_ready(struct qn_context *c, qn_node_t child)
{
    QN_DASSERT(c->owing || (!qn_node_set_has(&c->abort, child) &&
                            !qn_node_set_has(&c->to, child)));
    if (!send_abort(c, child)) {
        return false;
    }
    if (qn_node_set_has(&c->to, child)) {
        send_body(c, child);
    }
    return !qn_node_set_has(&c->to, child);
}

/* Word i of the set of nodes that are owed anything. */
static inline uint64_t owed_word(const struct qn_context *c, uint32_t i)
{
    return c->abort.word[i] | c->to.word[i];
}

static inline qn_node_t lowest(uint32_t i, uint64_t word)
{
    return i * 64 + (qn_node_t)__builtin_ctzll(word);
}

void qn_pending_pay(struct qn_context *c)
{
    uint64_t left = 0;
    for (uint32_t i = 0; i < c->to.words; i++) {
        for (uint64_t m = owed_word(c, i); m != 0; m &= m - 1) {
            qn_pending_ready(c, lowest(i, m));
        }
        left |= owed_word(c, i);
    }
    c->owing = left != 0;
}

static void give_up(struct qn_context *c, qn_node_t v)
{
    QN_DASSERT(c->owing); /* v is in `to` */
    qn_node_set_remove(&c->to, v);
    if (c->sent[v] > 0) {
        qn_node_set_add(&c->abort, v);
    }
    send_abort(c, v);
}

void qn_pending_drop(struct qn_context *c, const struct qn_node_set *keep)
{
    struct qn_node_iter it = qn_node_set_iter(&c->to);
    for (qn_node_t v; qn_node_iter_next(&it, &v);) {
        if (keep == NULL || !qn_node_set_has(keep, v)) {
            give_up(c, v);
            c->drops[v]++;
        }
    }
}

void qn_pending_cut(struct qn_context *c)
{
    struct qn_node_iter it = qn_node_set_iter(&c->to);
    for (qn_node_t v; qn_node_iter_next(&it, &v);) {
        give_up(c, v);
    }
}

void qn_pending_begin(struct qn_context *c)
{
    QN_DASSERT(qn_node_set_empty(&c->to));
    c->owing = true;
    for (uint32_t i = 0; i < c->child_count; i++) {
        qn_node_t child = c->child[i];
        qn_node_set_put(&c->to, child, qn_node_set_has(&c->living, child));
        c->sent[child] = 0;
    }
}

void qn_pending_send(struct qn_context *c)
{
    /* Runs once per frame of every long message: no calls but those of the
     * queuepair, and the words' addresses stay in registers. */
    const struct qn_node_set to = c->to, abort = c->abort;
    for (uint32_t i = 0; i < c->child_count; i++) {
        qn_node_t child = c->child[i];
        if (qn_node_set_has(&to, child) &&
            (!qn_node_set_has(&abort, child) || send_abort(c, child))) {
            send_body(c, child);
        }
    }
}

/* Of owed_word those for which what they are owed is here. */
static uint64_t here_word(const struct qn_context *c, uint32_t i)
{
    uint64_t here = c->abort.word[i];
    for (uint64_t m = c->to.word[i]; m != 0; m &= m - 1) {
        bool more = c->sent[lowest(i, m)] < c->in[c->source].got;
        here |= more ? m & -m : 0;
    }
    return here;
}

bool qn_pending_here(const struct qn_context *c)
{
    for (uint32_t i = 0; i < c->to.words; i++) {
        if (here_word(c, i) != 0) {
            return true;
        }
    }
    return false;
}

bool qn_pending_has_room(const struct qn_context *c)
{
    for (uint32_t i = 0; i < c->to.words; i++) {
        for (uint64_t m = here_word(c, i); m != 0; m &= m - 1) {
            if (qn_qp_room(c->qp[lowest(i, m)]) > 0) {
                return true;
            }
        }
    }
    return false;
}
