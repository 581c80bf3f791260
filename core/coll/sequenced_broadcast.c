/*
 * A sequence, and two sets of lanes: those of its operations, made anew for
 * each view, and those of its requests.
 */
#include "core/coll/sequenced_broadcast.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "core/base/mark.h"

/* Messages of a neighbour per poll. Over a tree all of a turn are acknowledged
 * at once. Over a ring there is nothing to combine: what is taken before the
 * first is passed on lets every member behind it wait. */
#define BUDGET_TREE 16u
#define BUDGET_RING 1u

struct qn_sequenced_broadcast {
    struct qn_sequence *s;
    struct qn_coll_lanes lanes; /* of the present view */
    struct qn_request_lanes requests;
    qn_node_t self;
    bool has_lanes;
    qn_sequenced_deliver_fn *deliver;
    void *ctx;
};

static int take(void *ctx, const struct qn_flow_head *h, const void *bytes,
                size_t len)
{
    struct qn_sequenced_broadcast *b = ctx;
    return qn_sequence_take(b->s, h, bytes, len);
}

static uint8_t *give(void *ctx, const struct qn_flow_send *s, size_t *len)
{
    struct qn_sequenced_broadcast *b = ctx;
    return qn_sequence_give(b->s, s, len);
}

static void settled(void *ctx)
{
    struct qn_sequenced_broadcast *b = ctx;
    qn_sequence_settled(b->s);
}

static const struct qn_coll_lanes_user user = {
    .take = take, .give = give, .settled = settled};

static void deliver(void *ctx, uint32_t number,
                    const struct qn_retained_message *m)
{
    struct qn_sequenced_broadcast *b = ctx;
    b->deliver(b->ctx, number, m->msg, m->len);
}

/* ---- views ---- */

/* What was read is said, and what was staged may go; the rest goes when the
 * queuepair is used again. */
static void end_lanes(struct qn_sequenced_broadcast *b)
{
    if (b->has_lanes) {
        (void)qn_coll_lanes_flush(&b->lanes);
        qn_coll_lanes_fini(&b->lanes);
        b->has_lanes = false;
    }
}

static int begin_lanes(struct qn_sequenced_broadcast *b,
                       const struct qn_view *view,
                       const struct qn_wiring *wiring, struct qn_qp **qp)
{
    const struct qn_wiring *const wirings[] = {wiring};
    const uint32_t budget =
        wiring->kind == QN_WIRING_RING ? BUDGET_RING : BUDGET_TREE;
    const struct qn_coll_lanes_opts l = {.flow = qn_sequence_flow(b->s),
                                         .wiring = wirings,
                                         .kinds = 1,
                                         .qp = qp,
                                         .view = view->number,
                                         .budget = budget,
                                         .user = &user,
                                         .ctx = b};
    b->has_lanes = true; /* fini frees what there is */
    int rc = qn_coll_lanes_init(&b->lanes, &l);
    if (rc == QN_OK) {
        qn_coll_lanes_use_all(&b->lanes);
    }
    return rc;
}

int qn_sequenced_broadcast_enter(struct qn_sequenced_broadcast *b,
                                 const struct qn_view *view,
                                 const struct qn_wiring *wiring,
                                 struct qn_qp **qp, struct qn_qp **request)
{
    struct qn_view_report report;
    if (!qn_sequence_awaits(b->s, view)) {
        return QN_EINVAL;
    }
    end_lanes(b);
    int rc = qn_sequence_enter(b->s, view, wiring);
    rc = rc == QN_OK ? begin_lanes(b, view, wiring, qp) : rc;
    if (rc != QN_OK) {
        end_lanes(b);
        qn_sequence_leave(b->s, &report);
        return rc;
    }
    qn_request_lanes_enter(&b->requests, b->self, view, request);
    return QN_OK;
}

void qn_sequenced_broadcast_leave(struct qn_sequenced_broadcast *b,
                                  struct qn_view_report *out)
{
    qn_sequence_leave(b->s, out);
}

void qn_sequenced_broadcast_down(struct qn_sequenced_broadcast *b,
                                 qn_node_t peer)
{
    qn_sequence_down(b->s, peer);
    qn_request_lanes_down(&b->requests, peer);
    if (b->has_lanes) {
        qn_coll_lanes_down(&b->lanes, peer);
    }
}

const struct qn_tag *qn_sequenced_broadcast_tags(
    const struct qn_sequenced_broadcast *b)
{
    return qn_sequence_tags(b->s);
}

/* ---- making one ---- */

/* One view of all nodes; which of them is the root only the wiring says. */
static struct qn_sequenced_views_opts one_view(
    const struct qn_sequenced_broadcast_opts *o)
{
    struct qn_sequenced_views_opts v = {.self = o->wiring->root ? 0 : 1,
                                        .members = 2,
                                        .incarnation = 1,
                                        .view = {.number = o->view}};
    memset(v.view.member, 255, sizeof v.view.member);
    return v;
}

static int make(struct qn_sequenced_broadcast *b,
                const struct qn_sequenced_broadcast_opts *o,
                const struct qn_sequenced_views_opts *v)
{
    const struct qn_sequence_opts s = {.self = v->self,
                                       .members = v->members,
                                       .incarnation = v->incarnation,
                                       .window = o->window,
                                       .len_max = o->bytes_max,
                                       .bytes_max = o->window_bytes,
                                       .credit = v->credit,
                                       .delivered = v->delivered,
                                       .tag = v->tag,
                                       .deliver = deliver,
                                       .ctx = b};
    int rc = qn_sequence_create(&b->s, &s);
    rc = rc == QN_OK ? qn_request_lanes_init(&b->requests, b->s,
                                             v->credit > 0 ? v->members : 0)
                     : rc;
    return rc == QN_OK ? qn_sequenced_broadcast_enter(b, &v->view, o->wiring,
                                                      o->qp, v->request)
                       : rc;
}

int qn_sequenced_broadcast_create(struct qn_sequenced_broadcast **out,
                                  const struct qn_sequenced_broadcast_opts *o)
{
    const struct qn_sequenced_views_opts one = one_view(o);
    const struct qn_sequenced_views_opts *v =
        o->views != NULL ? o->views : &one;
    if (o->deliver == NULL || (v->credit > 0 && v->request == NULL)) {
        return QN_EINVAL;
    }
    struct qn_sequenced_broadcast *b =
        aligned_alloc(alignof(struct qn_sequenced_broadcast), sizeof *b);
    if (b == NULL) {
        return QN_ENOMEM;
    }
    *b = (struct qn_sequenced_broadcast){
        .self = v->self, .deliver = o->deliver, .ctx = o->ctx};
    int rc = make(b, o, v);
    if (rc != QN_OK) {
        qn_sequenced_broadcast_destroy(b);
        return rc;
    }
    *out = b;
    return QN_OK;
}

void qn_sequenced_broadcast_destroy(struct qn_sequenced_broadcast *b)
{
    if (b != NULL) {
        if (b->has_lanes) {
            qn_coll_lanes_fini(&b->lanes);
        }
        qn_request_lanes_fini(&b->requests);
        qn_sequence_destroy(b->s);
        free(b);
    }
}

/* ---- the calls ---- */

int qn_sequenced_broadcast_send(struct qn_sequenced_broadcast *b,
                                const void *msg, size_t len, uint32_t *number)
{
    int rc = qn_sequence_send(b->s, msg, len, number);
    if (rc == QN_OK) {
        qn_coll_lanes_send(&b->lanes);
    }
    return rc;
}

int qn_sequenced_broadcast_submit(struct qn_sequenced_broadcast *b,
                                  const void *msg, size_t len, uint64_t *number)
{
    return qn_sequence_submit(b->s, msg, len, number);
}

uint64_t qn_sequenced_broadcast_ended(const struct qn_sequenced_broadcast *b)
{
    return qn_sequence_ended(b->s);
}

uint32_t qn_sequenced_broadcast_acked(const struct qn_sequenced_broadcast *b)
{
    return qn_coll_flow_completed(qn_sequence_flow(b->s));
}

int qn_sequenced_broadcast_error(const struct qn_sequenced_broadcast *b)
{
    return qn_coll_flow_error(qn_sequence_flow(b->s));
}

bool qn_sequenced_broadcast_poll(struct qn_sequenced_broadcast *b)
{
    qn_mark(QN_MARK_POLL);
    const bool moved = qn_request_lanes_poll(&b->requests);
    return (b->has_lanes && qn_coll_lanes_poll(&b->lanes)) || moved;
}

bool qn_sequenced_broadcast_pending(struct qn_sequenced_broadcast *b)
{
    return (b->has_lanes && qn_coll_lanes_pending(&b->lanes)) ||
           qn_request_lanes_pending(&b->requests);
}

bool qn_sequenced_broadcast_flush(struct qn_sequenced_broadcast *b)
{
    const bool waits = b->has_lanes && qn_coll_lanes_flush(&b->lanes);
    return qn_request_lanes_flush(&b->requests) || waits;
}
