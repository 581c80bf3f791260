/*
 * What is looked at is listed before anything is read, because what is read
 * changes what is awaited. A member sends in one order to all its successors.
 * So one that does not read, because it awaits another member first, could hold
 * back what that one needs: where lanes may be shorter than the window, all
 * that the flow machine takes is read when there is nothing else to do. A node
 * without room is looked at too: one that takes part no more makes no room, and
 * says so in its lane.
 *
 * Every queuepair that was sent to or received from is flushed later; one that
 * had no room, too, since the flush asks for it.
 */
#include "core/coll/coll_lanes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/coll/coll_view.h"

#define LINK_BITS  10u
#define STAGE_BITS 2u

static_assert(QN_MEMBERS_MAX <= 1u << LINK_BITS, "links of a stage");
static_assert(QN_STAGES_MAX <= 1u << STAGE_BITS, "stages");
static_assert(QN_FLOW_FAIL < 16, "kinds");

struct wire {
    uint32_t number;
    uint16_t view;
    uint16_t what;
};

static_assert(sizeof(struct wire) == QN_COLL_HEAD_BYTES, "no padding");

/* ---- making one ---- */

int qn_coll_lanes_init(struct qn_coll_lanes *l,
                       const struct qn_coll_lanes_opts *o)
{
    *l = (struct qn_coll_lanes){.flow = o->flow,
                                .user = o->user,
                                .ctx = o->ctx,
                                .bound = 1,
                                .list_size = 1,
                                .blocked = QN_NO_MEMBER,
                                .view = o->view,
                                .budget = o->budget};
    for (uint32_t k = 0; k < o->kinds; k++) {
        l->list_size += o->wiring[k]->preds * QN_STAGES_MAX;
        for (uint32_t i = 0; i < o->wiring[k]->links; i++) {
            const qn_node_t node = o->wiring[k]->link[i].node;
            l->bound = QN_MAX(l->bound, node + 1);
            if (o->qp[node] == NULL) {
                return QN_EINVAL;
            }
        }
    }
    l->qp = calloc(l->bound, sizeof(struct qn_qp *));
    l->used = calloc(l->bound, sizeof *l->used);
    l->is_used = calloc(l->bound, sizeof *l->is_used);
    l->list = calloc(l->list_size, sizeof *l->list);
    l->ahead = calloc(l->bound, sizeof *l->ahead);
    if (l->qp == NULL || l->used == NULL || l->is_used == NULL ||
        l->list == NULL || l->ahead == NULL) {
        return QN_ENOMEM;
    }
    for (uint32_t k = 0; k < o->kinds; k++) {
        for (uint32_t i = 0; i < o->wiring[k]->links; i++) {
            const qn_node_t node = o->wiring[k]->link[i].node;
            l->qp[node] = o->qp[node];
        }
    }
    for (qn_node_t v = 0; o->ahead && v < l->bound; v++) {
        if (l->qp[v] != NULL) {
            l->ahead[l->aheads++] = v;
        }
    }
    return QN_OK;
}

void qn_coll_lanes_fini(struct qn_coll_lanes *l)
{
    free((void *)l->qp);
    free(l->used);
    free(l->is_used);
    free(l->list);
    free(l->ahead);
}

static void use(struct qn_coll_lanes *l, qn_node_t node)
{
    if (!l->is_used[node]) {
        l->is_used[node] = true;
        l->used[l->used_count++] = node;
    }
}

void qn_coll_lanes_use_all(struct qn_coll_lanes *l)
{
    for (qn_node_t v = 0; v < l->bound; v++) {
        if (l->qp[v] != NULL) {
            use(l, v);
        }
    }
}

/* What the flow has come to, for its user. @return whether that is new. */
static bool settle_user(struct qn_coll_lanes *l)
{
    if (l->settled_at == qn_coll_flow_changes(l->flow)) {
        return false;
    }
    l->user->settled(l->ctx);
    l->settled_at = qn_coll_flow_changes(l->flow);
    return true;
}

/* ---- receive ---- */

/* The sender takes part no more, or has given this view up. */
static void gone(struct qn_coll_lanes *l, qn_node_t node)
{
    qn_coll_flow_down(l->flow, node);
    (void)settle_user(l);
}

static void corrupt(struct qn_coll_lanes *l)
{
    qn_coll_flow_fail(l->flow, QN_ECORRUPT);
    (void)settle_user(l);
}

static struct qn_flow_head decode(const struct wire *w)
{
    const uint32_t link = w->what & ((1u << LINK_BITS) - 1);
    const uint32_t rest = w->what >> LINK_BITS;
    return (struct qn_flow_head){.number = w->number,
                                 .kind = (uint8_t)(rest >> STAGE_BITS),
                                 .stage =
                                     (uint8_t)(rest & ((1u << STAGE_BITS) - 1)),
                                 .link = (uint16_t)link};
}

static uint16_t encode(const struct qn_flow_head *h)
{
    return (
        uint16_t)((((uint32_t)h->kind << STAGE_BITS | h->stage) << LINK_BITS) |
                  h->link);
}

/* A whole message of this view. @return false: it stays in its lane. */
static bool take(struct qn_coll_lanes *l, qn_node_t from, const struct wire *w,
                 const uint8_t *bytes, size_t len)
{
    const struct qn_flow_head h = decode(w);
    int rc = qn_coll_flow_takes(l->flow, from, &h);
    if (rc == QN_EAGAIN) {
        return false;
    }
    if (rc == QN_OK) {
        rc = l->user->take(l->ctx, &h, bytes, len);
    }
    qn_qp_release(l->qp[from]);
    use(l, from);
    if (rc == QN_ECORRUPT) {
        corrupt(l);
    } else if (rc == QN_OK) {
        (void)qn_coll_flow_arrive(l->flow, &h);
        (void)settle_user(l);
    }
    return true;
}

/* One message of this view, or what came before it. @return true if there was
 * one. */
static bool receive(struct qn_coll_lanes *l, qn_node_t from)
{
    const void *found;
    size_t len;
    int rc = QN_EAGAIN;
    while (l->qp[from] != NULL &&
           (rc = qn_qp_peek(l->qp[from], &found, &len)) == QN_OK) {
        if (len < QN_COLL_HEAD_BYTES) {
            corrupt(l);
            return true;
        }
        const uint8_t *msg = qn_qp_steady(found, len, l->own);
        struct wire w;
        memcpy(&w, msg, sizeof w);
        if (qn_view_newer(w.view, l->view)) {
            gone(l, from); /* the message is for the next view: it stays */
            return false;
        }
        if (w.view == l->view && decode(&w).kind != QN_FLOW_FAIL) {
            return take(l, from, &w, msg + QN_COLL_HEAD_BYTES,
                        len - QN_COLL_HEAD_BYTES);
        }
        qn_qp_release(l->qp[from]);
        use(l, from);
        if (w.view == l->view) {
            gone(l, from);
            return true;
        }
    }
    if (rc == QN_EPEERDEAD) {
        gone(l, from);
    } else if (rc != QN_EAGAIN) {
        corrupt(l);
    }
    return false;
}

/* ---- send ---- */

/* As much as there is room for. @param acks  Also what may go later. @return
 * true if something went. */
static bool send_some(struct qn_coll_lanes *l, bool acks)
{
    bool moved = false;
    struct qn_flow_send s;
    l->blocked = QN_NO_MEMBER;
    while (qn_coll_flow_next(l->flow, &s) && (acks || !s.later)) {
        struct wire w = {
            .number = s.head.number, .view = l->view, .what = encode(&s.head)};
        uint8_t bare[QN_COLL_HEAD_BYTES];
        uint8_t *msg = bare;
        size_t len = 0;
        if (!s.bare) {
            msg = l->user->give(l->ctx, &s, &len) - QN_COLL_HEAD_BYTES;
        }
        memcpy(msg, &w, sizeof w);
        int rc = QN_EPEERDEAD;
        if (l->qp[s.to] != NULL) {
            use(l, s.to); /* also without room: the flush asks for it */
            rc = qn_qp_try_send(l->qp[s.to], msg, QN_COLL_HEAD_BYTES + len);
        }
        if (rc == QN_EAGAIN) {
            l->blocked = s.to;
            break;
        }
        if (rc == QN_OK) {
            qn_coll_flow_sent(l->flow);
        } else {
            gone(l, s.to);
        }
        moved = true;
    }
    return moved;
}

/* @return true if something went, or has changed: next drops what goes to the
 * dead. What the user does about it may be more to send. */
static bool send_all(struct qn_coll_lanes *l, bool acks)
{
    bool moved = send_some(l, acks);
    while (settle_user(l)) {
        moved = true;
        (void)send_some(l, acks);
    }
    return moved;
}

void qn_coll_lanes_send(struct qn_coll_lanes *l)
{
    (void)send_all(l, false);
}

void qn_coll_lanes_down(struct qn_coll_lanes *l, qn_node_t node)
{
    if (node < l->bound) {
        l->qp[node] = NULL;
    }
    gone(l, node);
    (void)send_all(l, true); /* what neighbours are told goes at once */
}

/* ---- turns ---- */

static bool list(void *ctx, qn_node_t node)
{
    struct qn_coll_lanes *l = ctx;
    QN_ASSERT(l->listed < l->list_size);
    l->list[l->listed++] = node;
    return false;
}

static void list_awaited(struct qn_coll_lanes *l)
{
    if (!l->is_listed || l->listed_at != qn_coll_flow_changes(l->flow) ||
        l->blocked != QN_NO_MEMBER) {
        l->listed = 0;
        (void)qn_coll_flow_awaited(l->flow, list, l);
        l->listed_at = qn_coll_flow_changes(l->flow);
        l->is_listed = l->blocked == QN_NO_MEMBER;
        if (l->blocked != QN_NO_MEMBER) {
            (void)list(l, l->blocked);
        }
    }
}

static bool receive_from(struct qn_coll_lanes *l, const qn_node_t *list,
                         uint32_t count)
{
    bool moved = false;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t left = l->budget;
        while (left > 0 && receive(l, list[i])) {
            moved = true;
            left--;
        }
    }
    return moved;
}

bool qn_coll_lanes_poll(struct qn_coll_lanes *l)
{
    l->flushed = false;
    list_awaited(l);
    bool moved = receive_from(l, l->list, l->listed);
    moved = send_all(l, false) || moved;
    if (!moved && l->aheads > 0) {
        moved = receive_from(l, l->ahead, l->aheads);
        moved = send_all(l, false) || moved;
    }
    return moved;
}

/* The lane has something that poll would do something with. */
static bool has_message(struct qn_coll_lanes *l, qn_node_t from)
{
    const void *found;
    size_t len;
    struct wire w;
    if (l->qp[from] == NULL) {
        return false;
    }
    int rc = qn_qp_peek(l->qp[from], &found, &len);
    if (rc != QN_OK || len < QN_COLL_HEAD_BYTES) {
        return rc != QN_EAGAIN;
    }
    memcpy(&w, qn_qp_steady(found, len, l->own), sizeof w);
    const struct qn_flow_head h = decode(&w);
    if (qn_view_newer(w.view, l->view)) { /* it stays in its lane */
        return !qn_coll_flow_gone(l->flow, from);
    }
    return w.view != l->view || h.kind == QN_FLOW_FAIL ||
           qn_coll_flow_takes(l->flow, from, &h) != QN_EAGAIN;
}

static bool any_has(struct qn_coll_lanes *l, const qn_node_t *list,
                    uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (has_message(l, list[i])) {
            return true;
        }
    }
    return false;
}

bool qn_coll_lanes_pending(struct qn_coll_lanes *l)
{
    struct qn_flow_send s;
    const bool more = qn_coll_flow_next(l->flow, &s);
    if (settle_user(l) || l->flushed) {
        return true;
    }
    if (more && (l->qp[s.to] == NULL || qn_qp_room(l->qp[s.to]) > 0 ||
                 has_message(l, s.to))) {
        return true;
    }
    list_awaited(l);
    return any_has(l, l->list, l->listed) || any_has(l, l->ahead, l->aheads);
}

bool qn_coll_lanes_flush(struct qn_coll_lanes *l)
{
    struct qn_flow_send s;
    l->flushed = send_all(l, true) || l->flushed;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < l->used_count; i++) {
        const qn_node_t node = l->used[i];
        l->is_used[node] = l->qp[node] != NULL && qn_qp_flush(l->qp[node]);
        if (l->is_used[node]) {
            l->used[kept++] = node;
        }
    }
    l->used_count = kept;
    return kept > 0 || qn_coll_flow_next(l->flow, &s);
}
