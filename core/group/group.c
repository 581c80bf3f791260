/*
 * One node's part in the collectives of a tree: the root's side of broadcast,
 * acknowledgements, and the turn. What passes through a node is in forward.c.
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
 * The root moves (plain contexts): what a former root had sent is still in its
 * lanes, and a node that knows the new root already sends while others have not
 * heard of it. So every lane is read and all of it delivered; only what comes
 * from the parent's lane is forwarded down the tree.
 *
 * Queuepairs that were used are marked dirty and flushed once per turn: a
 * flush costs a fence and perhaps a system call.
 */
#include "core/group/group.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/err.h"
#include "core/group/group_internal.h"

/* Peers besides the parent that a poll looks at, at most: each look is 14
 * cycles, and only a change of the root makes them send. `pending` looks at
 * all, so a node does not sleep on what its polls have not reached. */
enum { LOOKS = 2 };

/* The nodes of the subtree of `top`. */
static uint64_t subtree(const struct qn_tree *t, qn_node_t top)
{
    uint64_t mask = 0;
    for (qn_node_t v = 0; v < QN_NODES_MAX; v++) {
        qn_node_t up = v;
        while (up < QN_NODES_MAX && up != top && up != t->root) {
            up = t->parent[up];
        }
        mask |= up == top ? bit(v) : 0;
    }
    return mask;
}

static bool opts_ok(const struct qn_context_opts *o)
{
    return o->self < QN_NODES_MAX && qn_tree_check(o->tree) == QN_OK &&
           (!o->acked || o->tree->parent[o->self] != QN_NODES_MAX) &&
           o->qp != NULL && (o->deliver != NULL || o->self == o->tree->root);
}

static void take_tree(struct qn_context *c, const struct qn_tree *t)
{
    c->parent = t->parent[c->self];
    bool member = c->parent != QN_NODES_MAX;
    c->up = member && !is_root(c) ? bit(c->parent) : 0;
    c->child_count = member ? t->child_count[c->self] : 0;
    c->children = 0;
    for (uint32_t i = 0; i < c->child_count; i++) {
        qn_node_t child = t->child[t->child_at[c->self] + i];
        c->child[i] = child;
        c->children |= bit(child);
        c->below[child] = c->acked ? subtree(t, child) : 0;
    }
}

/* The nodes that are down from the beginning: peers without a queuepair. An
 * acknowledged context knows its neighbours only. */
static uint64_t absent(const struct qn_context *c)
{
    uint64_t peers = c->acked ? c->children | c->up : ~bit(c->self);
    uint64_t mask = 0;
    for (; peers != 0; peers &= peers - 1) {
        qn_node_t peer = (qn_node_t)__builtin_ctzll(peers);
        mask |= c->qp[peer] == NULL ? bit(peer) : 0;
    }
    return mask;
}

static int start(struct qn_context *c)
{
    c->down = absent(c);
    if (c->acked && c->down != 0) {
        return QN_EINVAL;
    }
    if (!qn_forward_reroot(c)) {
        return QN_ENOMEM;
    }
    return c->acked && c->cut_through != 0 ? qn_backlog_init(&c->backlog)
                                           : QN_OK;
}

int qn_context_create(struct qn_context **out, const struct qn_context_opts *o)
{
    if (!opts_ok(o)) {
        return QN_EINVAL;
    }
    struct qn_context *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return QN_ENOMEM;
    }
    c->self = o->self;
    c->qp = o->qp;
    c->deliver = o->deliver;
    c->ctx = o->ctx;
    c->acked = o->acked;
    c->listen = o->acked || o->deliver == NULL ? 0 : ~bit(o->self);
    take_tree(c, o->tree);
    int err = start(c);
    if (err != QN_OK) {
        qn_context_destroy(c);
        return err;
    }
    *out = c;
    return QN_OK;
}

void qn_context_destroy(struct qn_context *c)
{
    if (c != NULL) {
        qn_backlog_fini(&c->backlog);
        qn_forward_fini(c);
        free(c);
    }
}

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

int qn_context_bcast(struct qn_context *c, const struct qn_slice *parts,
                     uint32_t count, uint64_t *dropped)
{
    QN_ASSERT(!c->delivering);
    if (!is_root(c)) {
        return QN_EPERM;
    }
    size_t len = size_of(parts, count) + (c->acked ? QN_ACKED_EXTRA : 0);
    if (len > QN_MSG_MAX) {
        return QN_EMSGSIZE;
    }
    uint64_t full = 0;
    uint64_t pending =
        c->abort | c->to; /* of the time before it was the root */
    for (uint32_t i = 0; i < c->child_count; i++) {
        qn_node_t child = c->child[i];
        void *buf;
        if ((c->down & bit(child)) != 0) {
            continue;
        }
        c->dirty |= bit(child);
        if (((pending & bit(child)) == 0 || qn_forward_ready(c, child)) &&
            qn_qp_try_reserve(c->qp[child], len, &buf) == QN_OK) {
            publish(c, child, buf, parts, count, 0);
        } else {
            full |= bit(child);
            c->drops[child]++;
        }
    }
    if (dropped != NULL) {
        *dropped = full;
    }
    return QN_OK;
}

/* A child counts while any node at or below it lives; it can speak for them
 * only while it lives itself. */
static bool counts(const struct qn_context *c, qn_node_t child)
{
    return (c->below[child] & ~c->down) != 0;
}

/* Numbers that this node (unless root) and all below it have delivered. */
static uint64_t gathered(const struct qn_context *c)
{
    uint64_t least = c->number;
    for (uint32_t i = 0; i < c->child_count; i++) {
        if (counts(c, c->child[i])) {
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

static bool cut_off(const struct qn_context *c)
{
    for (uint32_t i = 0; i < c->child_count; i++) {
        if ((c->down & bit(c->child[i])) != 0 && counts(c, c->child[i])) {
            return true;
        }
    }
    return false;
}

int qn_context_bcast_acked(struct qn_context *c, const struct qn_slice *parts,
                           uint32_t count, uint64_t *number)
{
    if (!is_root(c) || !c->acked) {
        return QN_EPERM;
    }
    size_t len = size_of(parts, count) + QN_ACKED_EXTRA;
    if (len > QN_MSG_MAX) {
        return QN_EMSGSIZE;
    }
    if (cut_off(c)) {
        return QN_EPEERDEAD;
    }
    if (!window_open(c, len)) {
        return QN_EAGAIN;
    }
    void *buf[QN_NODES_MAX];
    c->dirty |= living_children(c);
    for (uint32_t i = 0; i < c->child_count; i++) {
        /* A reserve that is not committed is forgotten. */
        if ((c->down & bit(c->child[i])) == 0 &&
            qn_qp_try_reserve(c->qp[c->child[i]], len, &buf[i]) != QN_OK) {
            return QN_EAGAIN;
        }
    }
    uint64_t before = c->bytes[c->number % QN_ACKED_COUNT];
    c->number++;
    c->bytes[c->number % QN_ACKED_COUNT] = before + len;
    for (uint32_t i = 0; i < c->child_count; i++) {
        if ((c->down & bit(c->child[i])) == 0) {
            publish(c, c->child[i], buf[i], parts, count, c->number);
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
    c->dirty |= bit(child);
    return true;
}

/* True if the parent has not heard all. */
static bool untold(const struct qn_context *c)
{
    return c->acked && parent_alive(c) && gathered(c) > c->told;
}

/* Acknowledge what is new. Numbers are cumulative: what finds no room now is
 * part of the next one. @return true while something waits for room. */
static bool tell(struct qn_context *c)
{
    if (!untold(c)) {
        return false;
    }
    uint64_t number = gathered(c);
    c->dirty |= bit(c->parent);
    if (qn_qp_try_send(c->qp[c->parent], &number, sizeof number) != QN_OK) {
        return true;
    }
    c->told = number;
    return false;
}

/* --- one turn ------------------------------------------------------------ */

static uint64_t others(const struct qn_context *c)
{
    return c->listen & ~c->down & ~c->up;
}

static uint32_t poll_parent(struct qn_context *c, uint32_t budget)
{
    uint32_t n = 0;
    while (n < budget && parent_alive(c) && qn_forward_receive(c, c->parent)) {
        n++;
    }
    return n;
}

/* Usually there is nothing. The first peer to look at changes each time, so a
 * peer that always has something starves no other. */
static uint32_t poll_others(struct qn_context *c, uint32_t budget)
{
    uint32_t n = 0;
    uint64_t left = others(c);
    for (uint32_t i = 0; i < LOOKS && left != 0 && n < budget; i++) {
        uint64_t after = left & UINT64_MAX << c->cursor;
        qn_node_t from = (qn_node_t)__builtin_ctzll(after != 0 ? after : left);
        while (n < budget && qn_forward_receive(c, from)) {
            n++;
        }
        left &= ~bit(from);
        c->cursor = (from + 1) % QN_NODES_MAX;
    }
    return n;
}

uint32_t qn_context_poll(struct qn_context *c, uint32_t budget)
{
    uint32_t n = 0;
    QN_ASSERT(!c->delivering);
    qn_forward_catch_up(c);
    c->parent_first = !c->parent_first;
    if (c->parent_first) {
        n = poll_parent(c, budget);
        n += poll_others(c, budget - n);
    } else {
        n = poll_others(c, budget);
        n += poll_parent(c, budget - n);
    }
    if (c->acked) {
        for (uint64_t m = living_children(c); m != 0; m &= m - 1) {
            while (n < budget && hear(c, (qn_node_t)__builtin_ctzll(m))) {
                n++;
            }
        }
    }
    return n;
}

/* A peer has sent something. */
static bool peer_has(struct qn_context *c)
{
    uint64_t m = (c->listen | c->up) & ~c->down;
    for (; m != 0; m &= m - 1) {
        if (qn_forward_has(c, (qn_node_t)__builtin_ctzll(m))) {
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
    for (uint64_t m = c->acked ? living_children(c) : 0; m != 0; m &= m - 1) {
        if (qn_qp_peek(c->qp[__builtin_ctzll(m)], &msg, &len) == QN_OK) {
            return true;
        }
    }
    return false;
}

/* Something waited for room, and there is room. The look after the request to
 * be rung for it: see qn_qp_flush. */
static bool room_came(struct qn_context *c)
{
    uint64_t wait = qn_forward_pending(c) | (untold(c) ? bit(c->parent) : 0);
    for (; wait != 0; wait &= wait - 1) {
        if (qn_qp_room(c->qp[__builtin_ctzll(wait)]) > 0) {
            return true;
        }
    }
    return false;
}

bool qn_context_pending(struct qn_context *c)
{
    return peer_has(c) || child_has(c) || room_came(c);
}

bool qn_context_flush(struct qn_context *c)
{
    qn_forward_catch_up(c);
    bool waits = tell(c);
    for (uint64_t m = c->dirty; m != 0; m &= m - 1) {
        qn_node_t peer = (qn_node_t)__builtin_ctzll(m);
        if (qn_qp_flush(c->qp[peer])) {
            waits = true;
        } else {
            c->dirty &= ~bit(peer);
        }
    }
    return qn_forward_pending(c) != 0 || waits;
}

/* --- nodes come and go --------------------------------------------------- */

void qn_context_down(struct qn_context *c, qn_node_t peer)
{
    QN_ASSERT(peer < QN_NODES_MAX && peer != c->self);
    c->down |= bit(peer);
    c->dirty &= ~bit(peer);
    qn_forward_down(c, peer);
}

int qn_context_up(struct qn_context *c, qn_node_t peer)
{
    QN_ASSERT(peer < QN_NODES_MAX && peer != c->self);
    if (c->acked) {
        return QN_EPERM;
    }
    QN_ASSERT(c->qp[peer] != NULL);
    /* What is under way began before its new incarnation: it is in no mask. */
    c->down &= ~bit(peer);
    return QN_OK;
}

int qn_context_reroot(struct qn_context *c, const struct qn_tree *tree)
{
    QN_ASSERT(!c->delivering);
    if (c->acked) {
        return QN_EPERM;
    }
    if (qn_tree_check(tree) != QN_OK ||
        (c->deliver == NULL && tree->root != c->self)) {
        return QN_EINVAL;
    }
    take_tree(c, tree);
    (void)qn_forward_reroot(c); /* without memory it forwards whole messages */
    return QN_OK;
}

qn_node_t qn_context_sender(const struct qn_context *c)
{
    return c->sender;
}

uint64_t qn_context_drops(const struct qn_context *c, qn_node_t peer)
{
    QN_ASSERT(peer < QN_NODES_MAX);
    return c->drops[peer];
}
