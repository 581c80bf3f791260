/*
 * Progress of the flow machine. Its state: coll_flow_internal.h; how it is
 * made, and deaths: coll_flow_life.c.
 */
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/coll/coll_flow_internal.h"

/* An operation that has a slot: behind the last complete one, within the
 * window. */
static bool in_window(const struct qn_coll_flow *f, uint32_t number)
{
    return number - f->completed - 1 < f->window;
}

/* NULL: an operation of this kind has no such stage. */
static const struct qn_stage *stage_of(const struct qn_wiring *w, uint32_t s)
{
    return s < w->stages ? &w->stage[s] : NULL;
}

static bool is_gone(const struct qn_coll_flow *f, qn_node_t node)
{
    return f->error != QN_OK && qn_coll_flow_gone(f, node);
}

/* ---- progress ---- */

static bool fails(const struct qn_coll_flow *f, uint32_t number)
{
    return f->error != QN_OK && !qn_flow_before(number, f->failed);
}

static bool can_fire(const struct qn_coll_flow *f, uint32_t number, uint32_t s)
{
    if (s > 0 && f->fired[s - 1] == f->fired[s]) { /* the usual reason */
        return false;
    }
    if (!in_window(f, number) || fails(f, number)) {
        return false;
    }
    const struct qn_flow_slot *o = qn_flow_slot_of(f, number);
    if (!qn_flow_is_known(o)) {
        return false;
    }
    const struct qn_stage *stage = stage_of(f->wiring[o->kind], s);
    return stage == NULL ||
           (o->got[s] == stage->preds &&
            !(stage->begun && qn_flow_before(f->begun, number)) &&
            !(stage->worked && qn_flow_before(f->worked, number)));
}

static void fire(struct qn_coll_flow *f, uint32_t number, uint32_t s)
{
    struct qn_flow_slot *o = qn_flow_slot_of(f, number);
    const struct qn_wiring *w = f->wiring[o->kind];
    const struct qn_stage *stage = stage_of(w, s);
    f->fired[s] = number;
    for (uint32_t t = s + 1; /* those that it lacks */
         t >= w->stages && t < f->stages && f->fired[t] == number - 1; t++) {
        f->fired[t] = number;
    }
    if (s == QN_FLOW_ACKS && f->cumulative) {
        return; /* `told` follows */
    }
    if (stage != NULL && stage->succs > 0) {
        QN_ASSERT(f->tail - f->head <= f->queue_mask);
        f->queue[f->tail++ & f->queue_mask] =
            (struct qn_flow_firing){.number = number, .stage = (uint8_t)s};
        o->unsent += stage->succs;
    }
}

/* The first stage of an operation that can be delivered now, if it is known. */
static const struct qn_stage *to_deliver(const struct qn_coll_flow *f,
                                         uint32_t number)
{
    const struct qn_flow_slot *o = qn_flow_slot_of(f, number);
    bool possible =
        in_window(f, number) && !fails(f, number) && qn_flow_is_known(o);
    return possible ? &f->wiring[o->kind]->stage[0] : NULL;
}

static bool is_complete(const struct qn_coll_flow *f, uint32_t number)
{
    return !qn_flow_before(f->fired[f->stages - 1], number) &&
           in_window(f, number) && !fails(f, number) &&
           qn_flow_slot_of(f, number)->unsent == 0 &&
           !qn_flow_before(f->delivered, number) &&
           (f->ack == NULL || !qn_flow_before(f->told, number)) &&
           !(f->called && qn_flow_before(f->begun, number));
}

/* Operations without a delivery count as delivered once they are known. */
static void pass_undelivered(struct qn_coll_flow *f)
{
    const struct qn_stage *first;
    while ((first = to_deliver(f, f->delivered + 1)) != NULL &&
           !first->delivers) {
        f->delivered++;
    }
}

static void clear(struct qn_coll_flow *f, struct qn_flow_slot *o)
{
    memset(o->has, 0, f->wiring[o->kind]->preds * sizeof *o->has);
    memset(o->got, 0, sizeof o->got);
    o->kind = QN_FLOW_KINDS_MAX;
}

/* The latest stage first: older operations go before newer ones. One that fires
 * lets nothing fire but its operation's next stage, and its own for the next
 * operation. */
static void fire_all(struct qn_coll_flow *f)
{
    uint32_t s = f->stages;
    while (s > 0) {
        if (!can_fire(f, f->fired[s - 1] + 1, s - 1)) {
            s--;
            continue;
        }
        fire(f, f->fired[s - 1] + 1, s - 1);
        s = QN_MIN(s + 1, f->stages);
    }
}

static bool complete_some(struct qn_coll_flow *f)
{
    const uint32_t before_it = f->completed;
    while (is_complete(f, f->completed + 1)) {
        f->completed++;
        clear(f, qn_flow_slot_of(f, f->completed));
    }
    return f->completed != before_it;
}

static void settle(struct qn_coll_flow *f)
{
    f->changes++;
    do {
        fire_all(f);
        pass_undelivered(f);
    } while (complete_some(f));
}

/* After what makes no stage fire, unless the window moves. */
static void settle_complete(struct qn_coll_flow *f)
{
    f->changes++;
    if (complete_some(f)) {
        settle(f);
    }
}

static void learn_kind(struct qn_coll_flow *f, uint32_t number, uint32_t kind)
{
    qn_flow_slot_of(f, number)->kind = (uint8_t)kind;
    if (qn_flow_before(f->highest, number)) {
        f->highest = number;
    }
}

/* ---- inputs ---- */

int qn_coll_flow_begin(struct qn_coll_flow *f, uint32_t kind, uint32_t *number)
{
    QN_ASSERT(kind < f->kinds);
    const struct qn_wiring *w = f->wiring[kind];
    if (!w->called && !w->root) {
        return QN_EPERM;
    }
    if (f->error != QN_OK) {
        return f->error;
    }
    const uint32_t next = f->begun + 1;
    if (!in_window(f, next)) {
        return QN_EAGAIN;
    }
    const struct qn_flow_slot *o = qn_flow_slot_of(f, next);
    if (qn_flow_is_known(o) && o->kind != kind) {
        qn_coll_flow_fail(f, QN_ECORRUPT);
        return QN_ECORRUPT;
    }
    learn_kind(f, next, kind);
    f->begun = next;
    *number = next;
    settle(f);
    return QN_OK;
}

static bool is_cumulative(const struct qn_coll_flow *f,
                          const struct qn_flow_head *h)
{
    return f->cumulative && h->kind == 0 && h->stage == QN_FLOW_ACKS;
}

/* What is acknowledged, of operations that do not fail. */
static uint32_t acked_by(const struct qn_coll_flow *f,
                         const struct qn_flow_head *h)
{
    return fails(f, h->number) ? f->failed - 1 : h->number;
}

/* A child acknowledges only what it was sent. The root knows what that is; with
 * another tree down than up an inner member may not have it yet. */
static int takes_acks(const struct qn_coll_flow *f, qn_node_t from,
                      const struct qn_flow_head *h)
{
    const struct qn_wiring *w = f->wiring[0];
    const struct qn_stage *stage = &w->stage[QN_FLOW_ACKS];
    const uint32_t number = acked_by(f, h);
    const struct qn_flow_slot *o = qn_flow_slot_of(f, number);
    if (h->link >= stage->preds ||
        qn_wiring_pred(w, QN_FLOW_ACKS, h->link)->node != from ||
        (w->root && qn_flow_before(f->begun, number))) {
        return QN_ECORRUPT;
    }
    if (in_window(f, number) && !o->has[stage->pred_at + h->link]) {
        return QN_OK;
    }
    return fails(f, h->number) ? QN_EPEERDEAD : QN_ECORRUPT;
}

/* A child has acknowledged all that it had not before, up to this one. */
static void take_acks(struct qn_coll_flow *f, const struct qn_flow_head *h)
{
    const uint32_t link = f->wiring[0]->stage[QN_FLOW_ACKS].pred_at + h->link;
    for (uint32_t k = acked_by(f, h); in_window(f, k); k--) {
        struct qn_flow_slot *o = qn_flow_slot_of(f, k);
        if (o->has[link]) {
            break;
        }
        learn_kind(f, k, 0);
        o->has[link] = true;
        o->got[QN_FLOW_ACKS]++;
    }
    settle(f);
}

int qn_coll_flow_takes(const struct qn_coll_flow *f, qn_node_t from,
                       const struct qn_flow_head *h)
{
    if (is_cumulative(f, h)) {
        return takes_acks(f, from, h);
    }
    if (fails(f, h->number)) {
        return QN_EPEERDEAD;
    }
    if (qn_flow_before(f->completed + f->window, h->number)) {
        return QN_EAGAIN;
    }
    if (h->kind >= f->kinds || !in_window(f, h->number)) {
        return QN_ECORRUPT;
    }
    const struct qn_flow_slot *o = qn_flow_slot_of(f, h->number);
    const struct qn_wiring *w = f->wiring[h->kind];
    const struct qn_stage *stage = stage_of(w, h->stage);
    bool ok = stage != NULL && h->link < stage->preds &&
              (!qn_flow_is_known(o) || o->kind == h->kind) &&
              qn_wiring_pred(w, h->stage, h->link)->node == from &&
              !o->has[stage->pred_at + h->link];
    return ok ? QN_OK : QN_ECORRUPT;
}

bool qn_coll_flow_arrive(struct qn_coll_flow *f, const struct qn_flow_head *h)
{
    if (is_cumulative(f, h)) {
        take_acks(f, h);
        return false;
    }
    struct qn_flow_slot *o = qn_flow_slot_of(f, h->number);
    const struct qn_stage *stage = &f->wiring[h->kind]->stage[h->stage];
    const bool known = qn_flow_is_known(o);
    bool *has = &o->has[stage->pred_at + h->link];
    QN_DASSERT(in_window(f, h->number));
    QN_ASSERT(!*has);
    learn_kind(f, h->number, h->kind);
    *has = true;
    const bool first = o->got[h->stage]++ == 0;
    if (known && o->got[h->stage] < stage->preds) {
        f->changes++; /* others are missing */
    } else {
        settle(f);
    }
    return first;
}

void qn_coll_flow_worked(struct qn_coll_flow *f, uint32_t number)
{
    QN_ASSERT(!qn_flow_before(f->delivered, number));
    if (qn_flow_before(f->worked, number)) {
        f->worked = number;
        settle(f);
    }
}

/* ---- outputs ---- */

/* The payload is here with the first message, or from the start. */
bool qn_coll_flow_deliver(struct qn_coll_flow *f, uint32_t *number)
{
    const uint32_t next = f->delivered + 1;
    const struct qn_stage *first = to_deliver(f, next);
    const struct qn_flow_slot *o = qn_flow_slot_of(f, next);
    if (first == NULL ||
        (o->got[0] == 0 &&
         !(f->wiring[o->kind]->root && !qn_flow_before(f->begun, next)))) {
        return false;
    }
    QN_ASSERT(first->delivers);
    f->delivered = next;
    *number = next;
    pass_undelivered(f);
    settle_complete(f); /* no stage waits for it */
    return true;
}

/* The next neighbour that is to be told that this member takes part no more,
 * when all that can be completed is. */
static bool next_to_tell(struct qn_coll_flow *f, struct qn_flow_send *send)
{
    if (f->error == QN_OK || f->completed + 1 != f->failed) {
        return false;
    }
    while (f->untold < f->neighbours && f->neighbour[f->untold].gone) {
        f->untold++;
    }
    if (f->untold == f->neighbours) {
        return false;
    }
    *send = (struct qn_flow_send){
        .to = f->neighbour[f->untold].node,
        .head = {.number = f->failed, .kind = QN_FLOW_FAIL},
        .bare = true};
    return true;
}

static void drop_head_successor(struct qn_coll_flow *f)
{
    const struct qn_flow_firing *q = &f->queue[f->head & f->queue_mask];
    struct qn_flow_slot *o = qn_flow_slot_of(f, q->number);
    QN_ASSERT(o->unsent > 0);
    o->unsent--;
    if (++f->at == f->wiring[o->kind]->stage[q->stage].succs) {
        f->at = 0;
        f->head++;
    }
    settle_complete(f);
}

/* Up to where this member may acknowledge. */
static uint32_t ackable(const struct qn_coll_flow *f)
{
    const uint32_t fired = f->fired[QN_FLOW_ACKS];
    return fails(f, fired) ? f->failed - 1 : fired;
}

static bool next_ack(const struct qn_coll_flow *f, struct qn_flow_send *send)
{
    const struct qn_link *l = f->ack;
    if (l == NULL || !qn_flow_before(f->told, ackable(f)) ||
        is_gone(f, l->node)) {
        return false;
    }
    *send = (struct qn_flow_send){
        .to = l->node,
        .head = {.number = ackable(f), .stage = l->stage, .link = l->there},
        .stage = QN_FLOW_ACKS,
        .bare = true,
        .later = true};
    return true;
}

static __attribute__((noinline)) bool find_next(struct qn_coll_flow *f,
                                                struct qn_flow_send *send)
{
    while (f->head != f->tail) {
        const struct qn_flow_firing *q = &f->queue[f->head & f->queue_mask];
        const uint32_t kind = qn_flow_slot_of(f, q->number)->kind;
        const struct qn_link *l =
            qn_wiring_succ(f->wiring[kind], q->stage, f->at);
        if (fails(f, q->number) || is_gone(f, l->node)) {
            drop_head_successor(f);
            continue;
        }
        *send = (struct qn_flow_send){.to = l->node,
                                      .head = {.number = q->number,
                                               .kind = (uint8_t)kind,
                                               .stage = l->stage,
                                               .link = l->there},
                                      .stage = q->stage,
                                      .bare = l->bare};
        return true;
    }
    return next_ack(f, send) || next_to_tell(f, send);
}

/* Mostly there is none. */
bool qn_coll_flow_next(struct qn_coll_flow *f, struct qn_flow_send *send)
{
    if (f->head == f->tail && f->ack == NULL && f->error == QN_OK) {
        return false;
    }
    return find_next(f, send);
}

void qn_coll_flow_sent(struct qn_coll_flow *f)
{
    if (f->head != f->tail) {
        drop_head_successor(f);
    } else if (f->ack != NULL && qn_flow_before(f->told, ackable(f))) {
        f->told = ackable(f);
        settle(f);
    } else {
        QN_ASSERT(f->untold < f->neighbours);
        f->untold++;
    }
}

int qn_coll_flow_state(const struct qn_coll_flow *f, uint32_t number)
{
    if (!qn_flow_before(f->completed, number)) {
        return QN_OK;
    }
    return fails(f, number) ? f->error : QN_EAGAIN;
}

uint32_t qn_coll_flow_changes(const struct qn_coll_flow *f)
{
    return f->changes;
}

uint32_t qn_coll_flow_completed(const struct qn_coll_flow *f)
{
    return f->completed;
}

int qn_coll_flow_error(const struct qn_coll_flow *f)
{
    return f->error;
}

uint32_t qn_coll_flow_kind(const struct qn_coll_flow *f, uint32_t number)
{
    return in_window(f, number) ? qn_flow_slot_of(f, number)->kind
                                : QN_FLOW_KINDS_MAX;
}

static bool await_stage(const struct qn_wiring *w, const struct qn_flow_slot *o,
                        uint32_t s, bool (*look)(void *, qn_node_t), void *ctx)
{
    const struct qn_stage *stage = stage_of(w, s);
    for (uint32_t i = 0; stage != NULL && i < stage->preds; i++) {
        if ((!qn_flow_is_known(o) || !o->has[stage->pred_at + i]) &&
            look(ctx, qn_wiring_pred(w, s, i)->node)) {
            return true;
        }
    }
    return false;
}

bool qn_coll_flow_awaited(const struct qn_coll_flow *f,
                          bool (*look)(void *ctx, qn_node_t node), void *ctx)
{
    for (uint32_t s = 0; s < f->stages; s++) {
        const uint32_t number = f->fired[s] + 1;
        if ((f->called && qn_flow_before(f->begun, number)) ||
            !in_window(f, number) || fails(f, number)) {
            continue;
        }
        const struct qn_flow_slot *o = qn_flow_slot_of(f, number);
        const uint32_t first = qn_flow_is_known(o) ? o->kind : 0;
        const uint32_t end = qn_flow_is_known(o) ? first + 1 : f->kinds;
        for (uint32_t k = first; k < end; k++) {
            if (await_stage(f->wiring[k], o, s, look, ctx)) {
                return true;
            }
        }
    }
    return false;
}
