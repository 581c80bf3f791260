/*
 * The operations of a member, and the lanes of its present view.
 */
#include "core/coll/coll_internal.h"

#include <stdlib.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/base/mark.h"

static int take(void *ctx, const struct qn_flow_head *h, const void *bytes,
                size_t len)
{
    struct qn_coll *c = ctx;
    return qn_operations_take(c->operations, h, bytes, len);
}

static uint8_t *give(void *ctx, const struct qn_flow_send *s, size_t *len)
{
    struct qn_coll *c = ctx;
    return qn_operations_give(c->operations, s, len);
}

static void settled(void *ctx)
{
    struct qn_coll *c = ctx;
    qn_operations_settled(c->operations);
}

static const struct qn_coll_lanes_user user = {
    .take = take, .give = give, .settled = settled};

/* ---- making one ---- */

static int make_lanes(struct qn_coll *c, struct qn_qp **qp, uint16_t view)
{
    const struct qn_coll_lanes_opts l = {
        .flow = qn_operations_flow(c->operations),
        .wiring = qn_operations_wiring(c->operations),
        .kinds = qn_operations_kinds(c->operations),
        .qp = qp,
        .view = view,
        .budget = 1,
        .ahead = c->window > 1 || c->views,
        .user = &user,
        .ctx = c};
    int rc = qn_coll_lanes_init(&c->lanes, &l);
    c->has_lanes = rc == QN_OK;
    if (!c->has_lanes) {
        qn_coll_lanes_fini(&c->lanes);
    }
    return rc;
}

/* What was read is said, and what was staged may go; the rest goes when the
 * queuepair is used again. */
static void end_lanes(struct qn_coll *c)
{
    if (c->has_lanes) {
        (void)qn_coll_lanes_flush(&c->lanes);
        qn_coll_lanes_fini(&c->lanes);
        c->has_lanes = false;
    }
}

int qn_coll_create(struct qn_coll **out, const struct qn_coll_opts *o)
{
    struct qn_coll *c = aligned_alloc(alignof(struct qn_coll), sizeof *c);
    if (c == NULL) {
        return QN_ENOMEM;
    }
    *c = (struct qn_coll){.doorbell = o->doorbell,
                          .backoff = o->backoff,
                          .self = o->self,
                          .window = o->window == 0 ? 1 : o->window,
                          .views = o->alike};
    const struct qn_operations_opts operations = {
        .first = {.self = o->self, .down = o->down, .up = o->up},
        .window = c->window,
        .bytes_max = o->bytes_max == 0 ? 8 * QN_COLL_WORDS : o->bytes_max,
        .head_bytes = QN_COLL_HEAD_BYTES,
        .before = o->before,
        .alike = o->alike,
        .exchange = o->exchange,
        .number = o->view};
    int rc = operations.bytes_max <= QN_COLL_PAYLOAD_MAX
                 ? qn_operations_create(&c->operations, &operations)
                 : QN_EINVAL;
    rc = rc == QN_OK ? make_lanes(c, o->qp, o->view) : rc;
    if (rc != QN_OK) {
        qn_coll_destroy(c);
        return rc;
    }
    *out = c;
    return QN_OK;
}

void qn_coll_destroy(struct qn_coll *c)
{
    if (c != NULL) {
        if (c->has_lanes) {
            qn_coll_lanes_fini(&c->lanes);
        }
        qn_operations_destroy(c->operations);
        free(c);
    }
}

/* ---- views ---- */

int qn_coll_leave(struct qn_coll *c, struct qn_view_report *out)
{
    return qn_operations_leave(c->operations, out);
}

static bool same_members(const struct qn_view *view, const struct qn_tree *t)
{
    bool same = true;
    for (qn_node_t v = 0; same && v < QN_MEMBERS_MAX; v++) {
        same = qn_view_has(view, v) == qn_tree_has(t, v);
    }
    return same;
}

int qn_coll_enter(struct qn_coll *c, const struct qn_view *view,
                  const struct qn_coll_view_opts *o)
{
    struct qn_view_report report;
    const struct qn_operations_view operations = {
        .self = c->self, .down = o->down, .up = o->up};
    int rc = qn_operations_await(c->operations, view);
    if (rc != QN_OK) {
        return rc;
    }
    (void)qn_coll_leave(c, &report);
    if (!same_members(view, o->down)) {
        return QN_EINVAL;
    }
    end_lanes(c);
    rc = qn_operations_enter(c->operations, view, &operations);
    rc = rc == QN_OK ? make_lanes(c, o->qp, view->number) : rc;
    if (rc != QN_OK) {
        (void)qn_coll_leave(c, &report);
        return rc;
    }
    qn_coll_lanes_use_all(&c->lanes);
    return QN_OK;
}

/* ---- the calls ---- */

int qn_coll_start(struct qn_coll *c, const struct qn_coll_call *call,
                  uint32_t *number)
{
    return qn_operations_start(c->operations, call, number);
}

uint32_t qn_coll_last(const struct qn_coll *c)
{
    return qn_operations_last(c->operations);
}

int qn_coll_state(const struct qn_coll *c, uint32_t number)
{
    return qn_operations_state(c->operations, number);
}

int qn_coll_poll(struct qn_coll *c)
{
    qn_mark(QN_MARK_POLL);
    c->moved = c->has_lanes && qn_coll_lanes_poll(&c->lanes);
    return qn_coll_state(c, qn_coll_last(c));
}

bool qn_coll_moved(const struct qn_coll *c)
{
    return c->moved;
}

int qn_coll_test(struct qn_coll *c, uint32_t number)
{
    c->moved = c->has_lanes && qn_coll_lanes_poll(&c->lanes);
    (void)qn_coll_flush(c);
    return qn_coll_state(c, number);
}

/* In an exchange all members send at about the same time, so what is missing
 * from another core comes soon; over a tree most of what is missing waits for a
 * node of this core. (4 nodes on two cores, in the time that none takes:
 * exchanges 0.86 with 4 looks, 1.05 with 16; acknowledged broadcasts 1.10 with
 * 4.) */
#define EXCHANGE_LOOKS 4u

static struct qn_backoff_opts backoff_of(struct qn_coll *c, uint32_t number)
{
    const struct qn_coll_flow *f = qn_operations_flow(c->operations);
    struct qn_backoff_opts o = c->backoff;
    if (qn_coll_flow_kind(f, number) == QN_WIRING_EXCHANGE) {
        o.looks = QN_MAX(o.looks, EXCHANGE_LOOKS);
    }
    return o;
}

int qn_coll_wait(struct qn_coll *c, uint32_t number, qn_time_t deadline)
{
    QN_ASSERT(c->doorbell != NULL);
    const struct qn_backoff_opts opts = backoff_of(c, number);
    struct qn_backoff backoff;
    int rc, slept = QN_OK;
    qn_backoff_init(&backoff, &opts);
    while ((rc = qn_coll_test(c, number)) == QN_EAGAIN && slept == QN_OK) {
        if (c->moved) {
            qn_backoff_reset(&backoff);
            continue;
        }
        if (qn_backoff_again(&backoff)) {
            continue;
        }
        qn_backoff_reset(&backoff);
        qn_doorbell_arm(c->doorbell);
        (void)qn_coll_flush(c);
        if (!qn_coll_pending(c)) {
            slept = qn_doorbell_wait(c->doorbell, deadline);
        }
        qn_doorbell_disarm(c->doorbell);
    }
    return rc == QN_EAGAIN ? QN_ETIMEDOUT : rc;
}

bool qn_coll_pending(struct qn_coll *c)
{
    return c->has_lanes && qn_coll_lanes_pending(&c->lanes);
}

bool qn_coll_flush(struct qn_coll *c)
{
    return c->has_lanes && qn_coll_lanes_flush(&c->lanes);
}

void qn_coll_down(struct qn_coll *c, qn_node_t peer)
{
    if (c->has_lanes) {
        qn_coll_lanes_down(&c->lanes, peer);
    }
    qn_operations_down(c->operations, peer);
    if (c->has_lanes) {
        qn_coll_lanes_send(&c->lanes);
    }
}
