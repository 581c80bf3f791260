/*
 * An operation passes through at most four phases, in this order; poll goes as
 * far as it can:
 *
 *     GATHER   a message of each child is combined with the own vector
 *     PASS     the result goes to the parent        (not at the root)
 *     AWAIT    the parent's message has the result  (all-reductions, not root)
 *     RELEASE  the result goes to each child        (all-reductions)
 *
 * A message to the parent or to a child finds no room only if that peer is
 * late: it has to read what was sent before. Down a lane, that cannot happen as
 * long as the peer flushes: it has read the last message before it sent the
 * contribution to which this one replies.
 *
 * Failure: `error` is set once and stays. An operation in progress still goes
 * on, if it does not need what was lost. When none is in progress, FAIL is sent
 * to all living neighbours, behind everything else in their lanes. A node that
 * waits for a peer reads that peer's lane, so it finds FAIL; one that waits for
 * room at its parent looks into the parent's lane then, since a failed parent
 * makes no more room.
 *
 * The missing children are a list in send order, so a poll costs one look per
 * missing child and none for the others.
 */
#include "core/coll/coll_internal.h"

#include <string.h>

#include "core/base/bits.h"

static bool is_root(const struct qn_coll *c)
{
    return c->peers == c->children;
}

static struct qn_coll_peer *parent(struct qn_coll *c)
{
    QN_DASSERT(!is_root(c));
    return &c->peer[c->children];
}

/* ---- making one ---- */

size_t qn_coll_bytes(const struct qn_tree *tree, qn_node_t self)
{
    QN_ASSERT(self < QN_ARRAY_COUNT(tree->parent));
    return sizeof(struct qn_coll) +
           (tree->child_count[self] + 1u) * sizeof(struct qn_coll_peer);
}

static bool is_member(const struct qn_tree *t, qn_node_t v)
{
    const size_t bound = QN_ARRAY_COUNT(t->parent);
    return v < bound && t->parent[v] < bound;
}

static bool add_peer(struct qn_coll *c, const struct qn_coll_opts *o,
                     qn_node_t node)
{
    c->peer[c->peers++] =
        (struct qn_coll_peer){.qp = o->qp[node], .node = node};
    return o->qp[node] != NULL;
}

int qn_coll_init(struct qn_coll *c, const struct qn_coll_opts *o)
{
    const struct qn_tree *t = o->tree;
    if (qn_tree_check(t) != QN_OK || !is_member(t, o->self)) {
        return QN_EINVAL;
    }
    *c = (struct qn_coll){.instance = o->instance,
                          .first = QN_COLL_END,
                          .used = QN_COLL_END,
                          .result = QN_OK};
    bool all = true;
    for (uint32_t i = 0; i < t->child_count[o->self]; i++) {
        all = add_peer(c, o, t->child[t->child_at[o->self] + i]) && all;
    }
    c->children = c->peers;
    if (o->self != t->root) {
        all = add_peer(c, o, t->parent[o->self]) && all;
    }
    return all ? QN_OK : QN_EINVAL;
}

/* ---- the end of an operation ---- */

static void finish(struct qn_coll *c, int result)
{
    QN_ASSERT(c->phase != QN_COLL_IDLE);
    QN_ASSERT(result != QN_OK || c->missing == 0);
    if (result != QN_OK) {
        qn_coll_set_error(c, result);
    }
    c->phase = QN_COLL_IDLE;
    c->result = result;
    if (c->error != QN_OK) {
        qn_coll_tell(c);
    }
}

/* The operation in progress waits for a message from this peer, or will send it
 * one that must not be left out. */
static bool needs(const struct qn_coll *c, const struct qn_coll_peer *p)
{
    bool is_parent = p - c->peer == c->children;
    switch (c->phase) {
    case QN_COLL_GATHER:
        return is_parent || p->missing;
    case QN_COLL_PASS:
    case QN_COLL_AWAIT:
        return is_parent;
    default:
        return false;
    }
}

void qn_coll_down(struct qn_coll *c, qn_node_t peer)
{
    for (uint32_t i = 0; i < c->peers; i++) {
        struct qn_coll_peer *p = &c->peer[i];
        if (p->node == peer && p->qp != NULL) {
            p->qp = NULL;
            qn_coll_set_error(c, QN_EPEERDEAD);
            if (needs(c, p)) {
                finish(c, QN_EPEERDEAD);
            } else if (c->phase == QN_COLL_IDLE) {
                qn_coll_tell(c);
            }
            return;
        }
    }
}

/* ---- the phases ---- */

static int gather(struct qn_coll *c)
{
    uint16_t *link = &c->first;
    while (*link != QN_COLL_END) {
        struct qn_coll_peer *p = &c->peer[*link];
        QN_DASSERT(p->missing);
        int rc = qn_coll_receive(c, p);
        if (rc == QN_EAGAIN) {
            link = &p->next;
            continue;
        }
        if (rc != QN_OK) {
            return rc;
        }
        if (!qn_coll_belongs(c, (enum qn_coll_what)c->kind)) {
            return QN_ECORRUPT;
        }
        if (c->mine.count > 0) {
            c->combine(c->mine.word, c->in.word, c->mine.count);
        }
        p->missing = false;
        c->missing--;
        *link = p->next;
    }
    QN_ASSERT((c->missing == 0) == (c->first == QN_COLL_END));
    return c->missing == 0 ? QN_OK : QN_EAGAIN;
}

static int pass(struct qn_coll *c)
{
    c->mine.what = (uint8_t)c->kind;
    int rc = qn_coll_send(c, parent(c), &c->mine);
    if (rc != QN_EAGAIN) {
        return rc;
    }
    rc = qn_coll_receive(c, parent(c)); /* has it failed? */
    return rc == QN_OK ? QN_ECORRUPT : rc;
}

static int await(struct qn_coll *c)
{
    int rc = qn_coll_receive(c, parent(c));
    if (rc != QN_OK) {
        return rc;
    }
    if (!qn_coll_belongs(c, QN_COLL_DOWN)) {
        return QN_ECORRUPT;
    }
    memcpy(c->mine.word, c->in.word, c->in.count * sizeof c->in.word[0]);
    return QN_OK;
}

/* A child that cannot be sent to is left out: all have entered, so the
 * operation is complete here. */
static int release(struct qn_coll *c)
{
    c->mine.what = QN_COLL_DOWN;
    for (; c->at < c->children; c->at++) {
        struct qn_coll_peer *p = &c->peer[c->at];
        int rc = p->qp != NULL ? qn_coll_send(c, p, &c->mine) : QN_OK;
        if (rc == QN_EAGAIN) {
            return rc;
        }
        if (rc != QN_OK) {
            qn_coll_set_error(c, rc);
        }
    }
    return QN_OK;
}

static int advance(struct qn_coll *c)
{
    int rc = QN_OK;
    if (c->phase == QN_COLL_GATHER) {
        rc = gather(c);
        c->phase = rc != QN_OK   ? QN_COLL_GATHER
                   : !is_root(c) ? QN_COLL_PASS
                                 : QN_COLL_RELEASE;
    }
    if (c->phase == QN_COLL_PASS) {
        rc = pass(c);
        c->phase = rc != QN_OK ? QN_COLL_PASS : QN_COLL_AWAIT;
    }
    if (rc != QN_OK || c->kind == QN_COLL_REDUCE) {
        return rc;
    }
    if (c->phase == QN_COLL_AWAIT) {
        rc = await(c);
        c->phase = rc != QN_OK ? QN_COLL_AWAIT : QN_COLL_RELEASE;
    }
    return c->phase == QN_COLL_RELEASE ? release(c) : rc;
}

/* ---- the calls ---- */

int qn_coll_start(struct qn_coll *c, enum qn_coll_kind kind,
                  qn_coll_combine *combine, const uint64_t *word,
                  uint32_t count)
{
    QN_ASSERT(c->phase == QN_COLL_IDLE);
    if (count > QN_COLL_WORDS) {
        return QN_EINVAL;
    }
    if (c->error != QN_OK) {
        return c->error;
    }
    c->number++;
    c->kind = kind;
    c->combine = combine;
    c->mine = (struct qn_coll_message){
        .instance = c->instance, .count = (uint8_t)count, .number = c->number};
    memcpy(c->mine.word, word != NULL ? word : c->mine.word,
           count * sizeof *word);
    for (uint16_t i = 0; i < c->children; i++) {
        c->peer[i].missing = true;
        c->peer[i].next = i + 1 < c->children ? (uint16_t)(i + 1) : QN_COLL_END;
    }
    c->missing = c->children;
    c->first = c->children > 0 ? 0 : QN_COLL_END;
    c->at = 0;
    c->phase = QN_COLL_GATHER;
    return QN_OK;
}

int qn_coll_poll(struct qn_coll *c)
{
    qn_mark(QN_MARK_POLL);
    if (c->phase == QN_COLL_IDLE) {
        if (c->untold > 0) {
            qn_coll_tell(c);
        }
        return c->result;
    }
    int rc = advance(c);
    if (rc != QN_EAGAIN) {
        finish(c, rc);
    }
    return rc;
}

const uint64_t *qn_coll_value(const struct qn_coll *c)
{
    QN_ASSERT(c->phase == QN_COLL_IDLE);
    QN_ASSERT(c->result == QN_OK);
    return c->mine.word;
}

static bool has_message(struct qn_coll_peer *p)
{
    const void *bytes;
    size_t len;
    return qn_qp_peek(p->qp, &bytes, &len) != QN_EAGAIN;
}

/* A child's message is there, or none is missing. */
static bool can_gather(struct qn_coll *c)
{
    for (uint16_t i = c->first; i != QN_COLL_END; i = c->peer[i].next) {
        if (has_message(&c->peer[i])) {
            return true;
        }
    }
    return c->missing == 0;
}

bool qn_coll_pending(struct qn_coll *c)
{
    switch (c->phase) {
    case QN_COLL_GATHER:
        return can_gather(c);
    case QN_COLL_PASS:
        return qn_qp_room(parent(c)->qp) > 0 || has_message(parent(c));
    case QN_COLL_AWAIT:
        return has_message(parent(c));
    case QN_COLL_RELEASE:
        return c->at == c->children || c->peer[c->at].qp == NULL ||
               qn_qp_room(c->peer[c->at].qp) > 0;
    default:
        return qn_coll_can_tell(c);
    }
}

bool qn_coll_flush(struct qn_coll *c)
{
    if (c->phase == QN_COLL_IDLE && c->untold > 0) {
        qn_coll_tell(c);
    }
    uint16_t *link = &c->used;
    while (*link != QN_COLL_END) {
        struct qn_coll_peer *p = &c->peer[*link];
        if (p->qp != NULL && qn_qp_flush(p->qp)) {
            link = &p->used_next;
        } else {
            p->used = false;
            *link = p->used_next;
        }
    }
    return c->used != QN_COLL_END || c->untold > 0;
}
