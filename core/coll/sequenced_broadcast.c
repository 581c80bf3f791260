/*
 * One kind of operation and its payloads: a message is kept from when it first
 * comes until this member has passed it on to all, and has got what it waits
 * for. On a ring several copies may come; the first is kept.
 */
#include "core/coll/sequenced_broadcast.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/base/mark.h"

#define BUDGET 16u /* messages of a neighbour per poll */

struct kept {
    uint8_t *msg; /* behind room for the head */
    uint32_t len;
    bool is_here;
};

struct qn_sequenced_broadcast {
    struct qn_coll_flow *flow;
    struct qn_coll_lanes lanes;
    const struct qn_wiring *wiring;
    qn_sequenced_deliver_fn *deliver;
    void *ctx;
    uint32_t window, bytes_max;
    uint32_t completed;
    struct kept *kept; /* [window] by number */
    uint8_t *buffers;
};

static struct kept *kept_of(const struct qn_sequenced_broadcast *b,
                            uint32_t number)
{
    return &b->kept[number & (b->window - 1)];
}

static int take(void *ctx, const struct qn_flow_head *h, const void *bytes,
                size_t len)
{
    struct qn_sequenced_broadcast *b = ctx;
    struct kept *k = kept_of(b, h->number);
    if (b->wiring->stage[h->stage].payload == QN_PAYLOAD_NONE) {
        return len == 0 ? QN_OK : QN_ECORRUPT;
    }
    if (len > b->bytes_max || (k->is_here && len != k->len)) {
        return QN_ECORRUPT;
    }
    if (!k->is_here) {
        memcpy(k->msg, bytes, len);
        k->len = (uint32_t)len;
        k->is_here = true;
    }
    return QN_OK;
}

static uint8_t *give(void *ctx, const struct qn_flow_send *s, size_t *len)
{
    const struct qn_sequenced_broadcast *b = ctx;
    const struct kept *k = kept_of(b, s->head.number);
    bool bare = b->wiring->stage[s->stage].payload == QN_PAYLOAD_NONE;
    *len = bare ? 0 : k->len;
    return k->msg;
}

static void settled(void *ctx)
{
    struct qn_sequenced_broadcast *b = ctx;
    uint32_t number;
    while (qn_coll_flow_deliver(b->flow, &number)) {
        const struct kept *k = kept_of(b, number);
        b->deliver(b->ctx, number, k->msg, k->len);
        qn_coll_flow_worked(b->flow, number);
    }
    while (b->completed != qn_coll_flow_completed(b->flow)) {
        kept_of(b, ++b->completed)->is_here = false;
    }
}

static const struct qn_coll_lanes_user user = {
    .take = take, .give = give, .settled = settled};

static bool make_buffers(struct qn_sequenced_broadcast *b)
{
    const size_t stride = QN_COLL_HEAD_BYTES + (b->bytes_max + 7) / 8 * 8;
    b->kept = calloc(b->window, sizeof *b->kept);
    b->buffers = calloc(b->window, stride);
    for (uint32_t i = 0; b->kept != NULL && i < b->window; i++) {
        b->kept[i].msg = b->buffers + i * stride + QN_COLL_HEAD_BYTES;
    }
    return b->kept != NULL && b->buffers != NULL;
}

static bool wiring_ok(const struct qn_wiring *w)
{
    return w->kind == QN_WIRING_RING ||
           (w->kind == QN_WIRING_ACKNOWLEDGED && !w->called);
}

static int make(struct qn_sequenced_broadcast *b,
                const struct qn_sequenced_broadcast_opts *o)
{
    const struct qn_wiring *const wiring[] = {o->wiring};
    const struct qn_coll_flow_opts f = {.wiring = wiring,
                                        .kinds = 1,
                                        .window = o->window,
                                        .cumulative = o->wiring->kind ==
                                                      QN_WIRING_ACKNOWLEDGED};
    int rc = qn_coll_flow_create(&b->flow, &f); /* checks the window */
    if (rc != QN_OK) {
        return rc;
    }
    const struct qn_coll_lanes_opts l = {.flow = b->flow,
                                         .wiring = wiring,
                                         .kinds = 1,
                                         .qp = o->qp,
                                         .view = o->view,
                                         .budget = BUDGET,
                                         .user = &user,
                                         .ctx = b};
    rc = qn_coll_lanes_init(&b->lanes, &l);
    return rc == QN_OK && !make_buffers(b) ? QN_ENOMEM : rc;
}

int qn_sequenced_broadcast_create(struct qn_sequenced_broadcast **out,
                                  const struct qn_sequenced_broadcast_opts *o)
{
    if (!wiring_ok(o->wiring) || o->bytes_max > QN_COLL_PAYLOAD_MAX ||
        o->deliver == NULL) {
        return QN_EINVAL;
    }
    struct qn_sequenced_broadcast *b =
        aligned_alloc(alignof(struct qn_sequenced_broadcast), sizeof *b);
    if (b == NULL) {
        return QN_ENOMEM;
    }
    *b = (struct qn_sequenced_broadcast){.wiring = o->wiring,
                                         .deliver = o->deliver,
                                         .ctx = o->ctx,
                                         .window = o->window,
                                         .bytes_max = o->bytes_max};
    int rc = make(b, o);
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
        qn_coll_lanes_fini(&b->lanes);
        qn_coll_flow_destroy(b->flow);
        free(b->kept);
        free(b->buffers);
        free(b);
    }
}

int qn_sequenced_broadcast_send(struct qn_sequenced_broadcast *b,
                                const void *msg, size_t len, uint32_t *number)
{
    uint32_t next;
    if (len > b->bytes_max) {
        return QN_EMSGSIZE;
    }
    int rc = qn_coll_flow_begin(b->flow, 0, &next);
    if (rc != QN_OK) {
        return rc;
    }
    struct kept *k = kept_of(b, next);
    if (len > 0) {
        memcpy(k->msg, msg, len);
    }
    k->len = (uint32_t)len;
    k->is_here = true;
    if (number != NULL) {
        *number = next;
    }
    settled(b);
    qn_coll_lanes_send(&b->lanes);
    return QN_OK;
}

uint32_t qn_sequenced_broadcast_acked(const struct qn_sequenced_broadcast *b)
{
    return qn_coll_flow_completed(b->flow);
}

int qn_sequenced_broadcast_error(const struct qn_sequenced_broadcast *b)
{
    return qn_coll_flow_error(b->flow);
}

bool qn_sequenced_broadcast_poll(struct qn_sequenced_broadcast *b)
{
    qn_mark(QN_MARK_POLL);
    return qn_coll_lanes_poll(&b->lanes);
}

bool qn_sequenced_broadcast_pending(struct qn_sequenced_broadcast *b)
{
    return qn_coll_lanes_pending(&b->lanes);
}

bool qn_sequenced_broadcast_flush(struct qn_sequenced_broadcast *b)
{
    return qn_coll_lanes_flush(&b->lanes);
}

void qn_sequenced_broadcast_down(struct qn_sequenced_broadcast *b,
                                 qn_node_t peer)
{
    qn_coll_lanes_down(&b->lanes, peer);
}
