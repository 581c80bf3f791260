/*
 * One node's part in the broadcasts of a tree: the root's side, and the turn.
 * What passes through a node is in forward.c; how a context is made, and what
 * changes it, in context.c.
 *
 * The root reserves, copies and commits in each child's queuepair, which keeps
 * what does not fit yet (core/qp.h): no state here, and nothing but the cells
 * themselves is touched for a message of a few cells.
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

/* Fill a reserved message and publish it. */
static void publish(struct qn_context *c, qn_node_t child, uint8_t *buf,
                    const struct qn_slice *parts, uint32_t count)
{
    qn_mark(QN_MARK_PASS);
    size_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (parts[i].len > 0) {
            memcpy(buf + at, parts[i].data, parts[i].len);
            at += parts[i].len;
        }
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
    size_t len = size_of(parts, count);
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
            publish(c, child, buf, parts, count);
            continue;
        }
        c->drops[child]++;
        if (dropped != NULL) {
            qn_node_set_add(dropped, child);
        }
    }
    return QN_OK;
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
    return n;
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

/* Something waited for room, and there is room. The look after the request to
 * be rung for it: see qn_qp_flush. */
static bool room_came(const struct qn_context *c)
{
    return c->owing && qn_pending_has_room(c);
}

bool qn_context_pending(struct qn_context *c)
{
    if (c->bcast != NULL) {
        return qn_device_bcast_pending(c->bcast);
    }
    return peer_has(c) || room_came(c);
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
    bool waits = false;
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
