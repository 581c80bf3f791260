/*
 * One node's part in the collectives of a tree: the root's side of broadcast,
 * acknowledgements, and the turn. What passes through a node is in forward.c;
 * how a context is made, and what changes it, in context.c.
 *
 * The root reserves, copies and commits in each child's queuepair, which keeps
 * what does not fit yet (core/qp.h): no state here, and nothing but the cells
 * themselves is touched for a message of a few cells.
 *
 * Numbers: the root's window is what is sent and not acknowledged, in count
 * and in bytes. It bounds what any inner node can owe its children, so their
 * backlogs have a fixed size and never overflow. Acknowledgements are
 * cumulative; one that finds no room is simply part of the next.
 *
 * No node speaks for a dead child's subtree, so the subtree holds `acked` back
 * while any node in it lives. The alternative, to count it out, would say
 * "delivered by all" of a message that living nodes never got.
 *
 * Queuepairs that were used are marked dirty and flushed once per turn: a
 * flush costs a fence and perhaps a system call.
 */
#include "core/group/group.h"

#include <string.h>

#include "core/base/assert.h"
#include "core/base/err.h"
#include "core/group/group_internal.h"

/* Peers besides the parent that a poll looks at, at most: each look is 14
 * cycles, and only a change of the root makes them send. `pending` looks at
 * all, so a node does not sleep on what its polls have not reached. */
enum { LOOKS = 2 };

/* --- root ---------------------------------------------------------------- */

static size_t size_of(const struct qn_slice *parts, uint32_t count)
{
    size_t len = 0;
    for (uint32_t i = 0; i < count; i++) {
        len += parts[i].len;
    }
    return len;
}

/* Fill a reserved message and publish it. `number` is 0 for a plain one. */
static void publish(struct qn_context *c, qn_node_t child, uint8_t *buf,
                    const struct qn_slice *parts, uint32_t count,
                    uint64_t number)
{
    qn_mark(QN_MARK_PASS);
    size_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (parts[i].len > 0) {
            memcpy(buf + at, parts[i].data, parts[i].len);
            at += parts[i].len;
        }
    }
    if (c->acked) {
        memcpy(buf + at, &number, QN_ACKED_EXTRA);
        at += QN_ACKED_EXTRA;
    }
    qn_qp_commit(c->qp[child], at);
}

/* All get it, or none. */
static int bcast_by_device(struct qn_context *c, const struct qn_slice *parts,
                           uint32_t count, struct qn_node_set *dropped)
{
    int rc = qn_device_bcast_try_send(c->bcast, parts, count);
    if (rc != QN_EAGAIN) {
        return rc;
    }
    for (uint32_t i = 0; i < c->child_count; i++) {
        c->drops[c->child[i]]++;
        if (dropped != NULL) {
            qn_node_set_add(dropped, c->child[i]);
        }
    }
    return QN_OK;
}

int qn_context_bcast(struct qn_context *c, const struct qn_slice *parts,
                     uint32_t count, struct qn_node_set *dropped)
{
    QN_ASSERT(!c->delivering);
    if (!is_root(c)) {
        return QN_EPERM;
    }
    size_t len = size_of(parts, count) + (c->acked ? QN_ACKED_EXTRA : 0);
    if (len > c->msg_max) {
        return QN_EMSGSIZE;
    }
    if (dropped != NULL) {
        QN_ASSERT(dropped->words == c->down.words);
        qn_node_set_clear(dropped);
    }
    if (c->bcast != NULL) {
        return bcast_by_device(c, parts, count, dropped);
    }
    for (uint32_t i = 0; i < c->child_count; i++) {
        qn_node_t child = c->child[i];
        void *buf;
        if (qn_node_set_has(&c->down, child)) {
            continue;
        }
        qn_node_set_add(&c->dirty, child);
        /* Of the time before it was the root a child may be owed something. */
        if ((!c->owing || qn_pending_ready(c, child)) &&
            qn_qp_try_reserve(c->qp[child], len, &buf) == QN_OK) {
            publish(c, child, buf, parts, count, 0);
            continue;
        }
        c->drops[child]++;
        if (dropped != NULL) {
            qn_node_set_add(dropped, child);
        }
    }
    return QN_OK;
}

/* Numbers that this node (unless root) and all below it have delivered. A child
 * counts while any node at or below it lives; it can speak for them only while
 * it lives itself. */
static uint64_t gathered(const struct qn_context *c)
{
    uint64_t least = c->number;
    for (uint32_t i = 0; i < c->child_count; i++) {
        if (qn_node_set_has(&c->counts, c->child[i])) {
            least = QN_MIN(least, c->heard[c->child[i]]);
        }
    }
    return least;
}

uint64_t qn_context_acked(const struct qn_context *c)
{
    return gathered(c);
}

/* Room in the window for `len` more bytes. */
static bool window_open(const struct qn_context *c, size_t len)
{
    uint64_t done = gathered(c);
    uint64_t last = c->number;
    return last - done < QN_ACKED_COUNT &&
           c->bytes[last % QN_ACKED_COUNT] - c->bytes[done % QN_ACKED_COUNT] +
                   len <=
               QN_ACKED_BYTES;
}

int qn_context_bcast_acked(struct qn_context *c, const struct qn_slice *parts,
                           uint32_t count, uint64_t *number)
{
    if (!is_root(c) || !c->acked) {
        return QN_EPERM;
    }
    size_t len = size_of(parts, count) + QN_ACKED_EXTRA;
    if (len > c->msg_max) {
        return QN_EMSGSIZE;
    }
    if (c->cut_off) {
        return QN_EPEERDEAD;
    }
    if (!window_open(c, len)) {
        return QN_EAGAIN;
    }
    qn_node_set_unite(&c->dirty, &c->living);
    for (uint32_t i = 0; i < c->child_count; i++) {
        /* A reserve that is not committed is forgotten. */
        if (qn_node_set_has(&c->living, c->child[i]) &&
            qn_qp_try_reserve(c->qp[c->child[i]], len, &c->reserved[i]) !=
                QN_OK) {
            return QN_EAGAIN;
        }
    }
    uint64_t before = c->bytes[c->number % QN_ACKED_COUNT];
    c->number++;
    c->bytes[c->number % QN_ACKED_COUNT] = before + len;
    for (uint32_t i = 0; i < c->child_count; i++) {
        if (qn_node_set_has(&c->living, c->child[i])) {
            publish(c, c->child[i], c->reserved[i], parts, count, c->number);
        }
    }
    *number = c->number;
    return QN_OK;
}

/* --- acknowledgements ---------------------------------------------------- */

/* Receive one acknowledgement. @return false: none. */
static bool hear(struct qn_context *c, qn_node_t child)
{
    const void *msg;
    size_t len;
    uint64_t number;
    if (qn_qp_peek(c->qp[child], &msg, &len) != QN_OK) {
        return false;
    }
    if (len == sizeof number) {
        qn_copy_in(&number, msg, sizeof number); /* found by the peek */
        if (number > c->heard[child] && number <= c->number) {
            c->heard[child] = number;
        }
    }
    qn_qp_release(c->qp[child]);
    qn_node_set_add(&c->dirty, child);
    return true;
}

/* True if the parent has not heard all. */
static bool untold(const struct qn_context *c)
{
    return c->acked && c->parent_lives && gathered(c) > c->told;
}

/* Acknowledge what is new. Numbers are cumulative: what finds no room now is
 * part of the next one. @return true while something waits for room. */
static bool tell(struct qn_context *c)
{
    if (!untold(c)) {
        return false;
    }
    uint64_t number = gathered(c);
    qn_node_set_add(&c->dirty, c->parent);
    if (qn_qp_try_send(c->qp[c->parent], &number, sizeof number) != QN_OK) {
        return true;
    }
    c->told = number;
    return false;
}

/* --- one turn ------------------------------------------------------------ */

static uint32_t poll_parent(struct qn_context *c, uint32_t budget)
{
    uint32_t n = 0;
    while (n < budget && c->parent_lives && qn_forward_receive(c, c->parent)) {
        n++;
    }
    return n;
}

/* Usually there is nothing. The first peer to look at changes each time, so a
 * peer that always has something starves no other. */
static uint32_t poll_others(struct qn_context *c, uint32_t budget)
{
    uint32_t n = 0;
    qn_node_t first = QN_NO_MEMBER;
    for (uint32_t i = 0; i < LOOKS && n < budget; i++) {
        qn_node_t from = qn_node_set_next(&c->others, c->cursor);
        if (from == QN_NO_MEMBER) {
            from = qn_node_set_next(&c->others, 0);
        }
        if (from == first) {
            break; /* all were looked at, or there are none */
        }
        first = i == 0 ? from : first;
        while (n < budget && qn_forward_receive(c, from)) {
            n++;
        }
        c->cursor = from + 1;
    }
    return n;
}

static uint32_t poll_acknowledgements(struct qn_context *c, uint32_t budget)
{
    uint32_t n = 0;
    struct qn_node_iter it = qn_node_set_iter(&c->living);
    for (qn_node_t v; qn_node_iter_next(&it, &v);) {
        while (n < budget && hear(c, v)) {
            n++;
        }
    }
    return n;
}

static void deliver_of_device(void *ctx, qn_node_t source, const void *msg,
                              size_t len)
{
    struct qn_context *c = ctx;
    if (c->deliver != NULL) {
        c->sender = source;
        c->delivering = true;
        c->deliver(c->ctx, msg, len);
        c->delivering = false;
    }
}

uint32_t qn_context_poll(struct qn_context *c, uint32_t budget)
{
    qn_mark(QN_MARK_POLL);
    uint32_t n = 0;
    QN_ASSERT(!c->delivering);
    if (c->bcast != NULL) {
        return qn_device_bcast_poll(c->bcast, budget, deliver_of_device, c);
    }
    qn_pending_catch_up(c);
    c->parent_first = !c->parent_first;
    if (c->parent_first) {
        n = poll_parent(c, budget);
        n += poll_others(c, budget - n);
    } else {
        n = poll_others(c, budget);
        n += poll_parent(c, budget - n);
    }
    return c->acked ? n + poll_acknowledgements(c, budget - n) : n;
}

/* A peer has sent something. */
static bool peer_has(struct qn_context *c)
{
    if (c->parent_lives && qn_forward_has(c, c->parent)) {
        return true;
    }
    struct qn_node_iter it = qn_node_set_iter(&c->others);
    for (qn_node_t v; qn_node_iter_next(&it, &v);) {
        if (qn_forward_has(c, v)) {
            return true;
        }
    }
    return false;
}

/* A child has acknowledged something. */
static bool child_has(struct qn_context *c)
{
    const void *msg;
    size_t len;
    struct qn_node_iter it = qn_node_set_iter(&c->living);
    for (qn_node_t v; qn_node_iter_next(&it, &v);) {
        if (qn_qp_peek(c->qp[v], &msg, &len) == QN_OK) {
            return true;
        }
    }
    return false;
}

/* Something waited for room, and there is room. The look after the request to
 * be rung for it: see qn_qp_flush. */
static bool room_came(struct qn_context *c)
{
    return (c->owing && qn_pending_has_room(c)) ||
           (untold(c) && qn_qp_room(c->qp[c->parent]) > 0);
}

bool qn_context_pending(struct qn_context *c)
{
    if (c->bcast != NULL) {
        return qn_device_bcast_pending(c->bcast);
    }
    return peer_has(c) || (c->acked && child_has(c)) || room_came(c);
}

static inline uint32_t lowest_bit(uint64_t word)
{
    return (uint32_t)__builtin_ctzll(word);
}

bool qn_context_flush(struct qn_context *c)
{
    if (c->bcast != NULL) {
        return qn_device_bcast_flush(c->bcast);
    }
    qn_pending_catch_up(c);
    bool waits = tell(c);
    for (uint32_t i = 0; i < c->dirty.words; i++) {
        uint64_t staged = 0;
        for (uint64_t m = c->dirty.word[i]; m != 0; m &= m - 1) {
            bool stays = qn_qp_flush(c->qp[i * 64 + lowest_bit(m)]);
            staged |= stays ? m & -m : 0;
        }
        c->dirty.word[i] = staged;
        waits |= staged != 0;
    }
    return qn_pending_any(c) || waits;
}

qn_node_t qn_context_sender(const struct qn_context *c)
{
    return c->sender;
}

uint64_t qn_context_drops(const struct qn_context *c, qn_node_t peer)
{
    QN_ASSERT(peer < c->members);
    return c->drops[peer];
}
