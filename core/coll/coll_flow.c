/*
 * State. All progress is by number: `fired[s]` says up to which operation stage
 * s has fired, `delivered`, `begun`, `worked` and `completed` likewise. Of an
 * operation in the window there is a slot with its kind, the messages that are
 * in (a byte per link: a message that comes twice is corrupt, and a death must
 * know which are missing), and how many of its own are not sent.
 *
 * An operation of fewer stages than others passes those that it lacks at once,
 * so operations of different kinds keep one order.
 *
 * What has fired is a queue of {operation, stage}; its head's successors are
 * sent to one after the other. One queue for all successors: a successor
 * without room holds the others back, but no longer than until it has read, and
 * it always reads (coll_flow.h, Room).
 *
 * Cumulative acknowledgements are not in that queue. Those of up to `owed` have
 * fired and those of up to `told` are sent, both numbers of one stage: ACKS.
 *
 * Numbers wrap: they are compared by difference.
 */
#include "core/coll/coll_flow.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"

static_assert((QN_STAGES_MAX & (QN_STAGES_MAX + 1)) == 0,
              "a mask of the queue");

#define ACKS 1u /* the stage of an acknowledged broadcast that goes up */

struct slot {
    uint8_t kind; /* QN_FLOW_KINDS_MAX: not known */
    bool *has;    /* [preds of any kind] by link: its message is in */
    uint32_t got[QN_STAGES_MAX]; /* messages */
    uint32_t unsent;             /* of the stages that have fired */
};

struct firing {
    uint32_t number;
    uint8_t stage;
};

struct neighbour {
    qn_node_t node;
    bool gone; /* it has ended, or takes part no more */
};

struct qn_coll_flow {
    const struct qn_wiring *wiring[QN_FLOW_KINDS_MAX];
    uint32_t kinds;
    uint32_t window;
    bool called;     /* every member begins each operation */
    bool cumulative; /* acknowledgements; elsewhere `told` is not used */
    uint32_t stages; /* of the wiring that has most */
    const struct qn_link *ack; /* cumulative: to the parent; or NULL */
    uint32_t changes;          /* inputs so far; it may wrap */

    uint32_t begun;
    uint32_t worked;
    uint32_t delivered;
    uint32_t fired[QN_STAGES_MAX];
    uint32_t told; /* the parent: all up to it are acknowledged */
    uint32_t completed;
    uint32_t highest; /* that is known here */

    int error;       /* no operation begins any more */
    uint32_t failed; /* the first that fails, once `error` is set */

    struct slot *slot;    /* [window] by number */
    struct firing *queue; /* [queue_mask + 1], at least window * stages */
    uint32_t queue_mask;
    uint32_t head, tail; /* of queue; run free */
    uint32_t at;         /* the head's next successor */

    struct neighbour *neighbour; /* [neighbours] in ascending order */
    uint32_t neighbours;
    uint32_t untold; /* neighbours before this one are told */
};

/* a is before b */
static bool before(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) < 0;
}

static struct slot *slot_of(const struct qn_coll_flow *f, uint32_t number)
{
    return &f->slot[number & (f->window - 1)];
}

/* An operation that has a slot: behind the last complete one, within the
 * window. */
static bool in_window(const struct qn_coll_flow *f, uint32_t number)
{
    return number - f->completed - 1 < f->window;
}

static bool is_known(const struct slot *s)
{
    return s->kind != QN_FLOW_KINDS_MAX;
}

/* NULL: an operation of this kind has no such stage. */
static const struct qn_stage *stage_of(const struct qn_wiring *w, uint32_t s)
{
    return s < w->stages ? &w->stage[s] : NULL;
}

/* ---- making one ---- */

static int by_node(const void *a, const void *b)
{
    const struct neighbour *x = a, *y = b;
    return x->node < y->node ? -1 : x->node > y->node;
}

static void find_neighbours(struct qn_coll_flow *f)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < f->kinds; k++) {
        for (uint32_t i = 0; i < f->wiring[k]->links; i++) {
            f->neighbour[count++].node = f->wiring[k]->link[i].node;
        }
    }
    if (count > 0) {
        qsort(f->neighbour, count, sizeof *f->neighbour, by_node);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (i == 0 || f->neighbour[i].node != f->neighbour[i - 1].node) {
            f->neighbour[f->neighbours++] = f->neighbour[i];
        }
    }
}

static bool opts_ok(const struct qn_coll_flow_opts *o)
{
    bool ok = o->kinds >= 1 && o->kinds <= QN_FLOW_KINDS_MAX &&
              o->window >= 1 && o->window <= QN_FLOW_WINDOW_MAX &&
              (o->window & (o->window - 1)) == 0;
    for (uint32_t k = 1; ok && k < o->kinds; k++) {
        ok = o->wiring[k]->called == o->wiring[0]->called;
    }
    return ok &&
           (!o->cumulative || (o->kinds == 1 && !o->wiring[0]->called &&
                               o->wiring[0]->kind == QN_WIRING_ACKNOWLEDGED));
}

static bool allocate(struct qn_coll_flow *f)
{
    uint32_t preds = 1, links = 1;
    for (uint32_t k = 0; k < f->kinds; k++) {
        preds = QN_MAX(preds, f->wiring[k]->preds);
        f->stages = QN_MAX(f->stages, f->wiring[k]->stages);
        links += f->wiring[k]->links;
    }
    f->slot = calloc(f->window, sizeof *f->slot);
    f->queue_mask = f->window * (QN_STAGES_MAX + 1) - 1;
    f->queue = calloc((size_t)f->queue_mask + 1, sizeof *f->queue);
    f->neighbour = calloc(links, sizeof *f->neighbour);
    bool *has = calloc((size_t)f->window * preds, sizeof *has);
    if (f->slot == NULL || f->queue == NULL || f->neighbour == NULL ||
        has == NULL) {
        free(has);
        return false;
    }
    for (uint32_t i = 0; i < f->window; i++) {
        f->slot[i].has = has + (size_t)i * preds;
        f->slot[i].kind = QN_FLOW_KINDS_MAX;
    }
    return true;
}

int qn_coll_flow_create(struct qn_coll_flow **out,
                        const struct qn_coll_flow_opts *o)
{
    if (!opts_ok(o)) {
        return QN_EINVAL;
    }
    struct qn_coll_flow *f = calloc(1, sizeof *f);
    if (f == NULL) {
        return QN_ENOMEM;
    }
    f->kinds = o->kinds;
    f->window = o->window;
    f->called = o->wiring[0]->called;
    f->cumulative = o->cumulative;
    memcpy(f->wiring, o->wiring, o->kinds * sizeof f->wiring[0]);
    f->begun = f->worked = f->delivered = f->completed = f->highest = o->before;
    f->told = o->before;
    for (uint32_t s = 0; s < QN_STAGES_MAX; s++) {
        f->fired[s] = o->before;
    }
    if (!allocate(f)) {
        qn_coll_flow_destroy(f);
        return QN_ENOMEM;
    }
    find_neighbours(f);
    if (f->cumulative && f->wiring[0]->stage[ACKS].succs > 0) {
        f->ack = qn_wiring_succ(f->wiring[0], ACKS, 0);
    }
    *out = f;
    return QN_OK;
}

void qn_coll_flow_destroy(struct qn_coll_flow *f)
{
    if (f != NULL) {
        free(f->slot != NULL ? f->slot[0].has : NULL);
        free(f->slot);
        free(f->queue);
        free(f->neighbour);
        free(f);
    }
}

/* ---- death ---- */

static struct neighbour *find(const struct qn_coll_flow *f, qn_node_t node)
{
    const struct neighbour key = {.node = node};
    return f->neighbours == 0 ? NULL
                              : bsearch(&key, f->neighbour, f->neighbours,
                                        sizeof key, by_node);
}

bool qn_coll_flow_gone(const struct qn_coll_flow *f, qn_node_t node)
{
    const struct neighbour *n = find(f, node);
    return n == NULL || n->gone;
}

static bool is_gone(const struct qn_coll_flow *f, qn_node_t node)
{
    return f->error != QN_OK && find(f, node)->gone;
}

/* Whether a stage that has not fired lacks a message of a member, or must send
 * it one. */
static bool stage_needs(const struct slot *o, const struct qn_wiring *w,
                        uint32_t s, qn_node_t node)
{
    const struct qn_stage *stage = &w->stage[s];
    for (uint32_t i = 0; i < stage->preds; i++) {
        if (qn_wiring_pred(w, s, i)->node == node &&
            !o->has[stage->pred_at + i]) {
            return true;
        }
    }
    for (uint32_t i = 0; stage->must && i < stage->succs; i++) {
        if (qn_wiring_succ(w, s, i)->node == node) {
            return true;
        }
    }
    return false;
}

/* An operation whose kind is not known may need any member. */
static bool needs(const struct qn_coll_flow *f, uint32_t number, qn_node_t node)
{
    const struct slot *o = slot_of(f, number);
    if (!is_known(o)) {
        return true;
    }
    const struct qn_wiring *w = f->wiring[o->kind];
    for (uint32_t s = 0; s < w->stages; s++) {
        if (before(f->fired[s], number) && stage_needs(o, w, s, node)) {
            return true;
        }
    }
    return false;
}

/* What has fired and must still be sent to a member. */
static void fail_queued(struct qn_coll_flow *f, qn_node_t node)
{
    if (f->ack != NULL && f->ack->node == node &&
        before(f->told, f->fired[ACKS]) && before(f->told + 1, f->failed)) {
        f->failed = f->told + 1;
    }
    for (uint32_t i = f->head; i != f->tail; i++) {
        const struct firing *q = &f->queue[i & f->queue_mask];
        const struct qn_wiring *w = f->wiring[slot_of(f, q->number)->kind];
        const struct qn_stage *stage = &w->stage[q->stage];
        for (uint32_t j = i == f->head ? f->at : 0;
             stage->must && j < stage->succs; j++) {
            if (qn_wiring_succ(w, q->stage, j)->node == node &&
                before(q->number, f->failed)) {
                f->failed = q->number;
            }
        }
    }
}

/* Later operations than those that are known here are not begun any more; where
 * each member begins them, than those begun here. */
static void set_error(struct qn_coll_flow *f, int error)
{
    if (f->error == QN_OK) {
        f->error = error;
        f->failed = (f->called ? f->begun : f->highest) + 1;
    }
}

void qn_coll_flow_down(struct qn_coll_flow *f, qn_node_t node)
{
    struct neighbour *n = find(f, node);
    if (n == NULL || n->gone) {
        return;
    }
    set_error(f, QN_EPEERDEAD);
    f->changes++;
    n->gone = true;
    for (uint32_t k = f->completed + 1; before(k, f->failed); k++) {
        if (needs(f, k, node)) {
            f->failed = k;
        }
    }
    fail_queued(f, node);
}

void qn_coll_flow_fail(struct qn_coll_flow *f, int error)
{
    QN_ASSERT(error != QN_OK && error != QN_EAGAIN);
    set_error(f, error);
    f->changes++;
    f->failed = f->completed + 1;
}

/* ---- progress ---- */

static bool fails(const struct qn_coll_flow *f, uint32_t number)
{
    return f->error != QN_OK && !before(number, f->failed);
}

static bool can_fire(const struct qn_coll_flow *f, uint32_t number, uint32_t s)
{
    if (s > 0 && f->fired[s - 1] == f->fired[s]) { /* the usual reason */
        return false;
    }
    if (!in_window(f, number) || fails(f, number)) {
        return false;
    }
    const struct slot *o = slot_of(f, number);
    if (!is_known(o)) {
        return false;
    }
    const struct qn_stage *stage = stage_of(f->wiring[o->kind], s);
    return stage == NULL || (o->got[s] == stage->preds &&
                             !(stage->begun && before(f->begun, number)) &&
                             !(stage->worked && before(f->worked, number)));
}

static void fire(struct qn_coll_flow *f, uint32_t number, uint32_t s)
{
    struct slot *o = slot_of(f, number);
    const struct qn_stage *stage = stage_of(f->wiring[o->kind], s);
    f->fired[s] = number;
    if (s == ACKS && f->cumulative) {
        return; /* `told` follows */
    }
    if (stage != NULL && stage->succs > 0) {
        QN_ASSERT(f->tail - f->head <= f->queue_mask);
        f->queue[f->tail++ & f->queue_mask] =
            (struct firing){.number = number, .stage = (uint8_t)s};
        o->unsent += stage->succs;
    }
}

/* The first stage of an operation that can be delivered now, if it is known. */
static const struct qn_stage *to_deliver(const struct qn_coll_flow *f,
                                         uint32_t number)
{
    const struct slot *o = slot_of(f, number);
    bool possible = in_window(f, number) && !fails(f, number) && is_known(o);
    return possible ? &f->wiring[o->kind]->stage[0] : NULL;
}

static bool is_complete(const struct qn_coll_flow *f, uint32_t number)
{
    return !before(f->fired[f->stages - 1], number) && in_window(f, number) &&
           !fails(f, number) && slot_of(f, number)->unsent == 0 &&
           !before(f->delivered, number) &&
           (f->ack == NULL || !before(f->told, number)) &&
           !(f->called && before(f->begun, number));
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

static void clear(struct qn_coll_flow *f, struct slot *o)
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
        clear(f, slot_of(f, f->completed));
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
    slot_of(f, number)->kind = (uint8_t)kind;
    if (before(f->highest, number)) {
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
    const struct slot *o = slot_of(f, next);
    if (is_known(o) && o->kind != kind) {
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
    return f->cumulative && h->kind == 0 && h->stage == ACKS;
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
    const struct qn_stage *stage = &w->stage[ACKS];
    const uint32_t number = acked_by(f, h);
    const struct slot *o = slot_of(f, number);
    if (h->link >= stage->preds ||
        qn_wiring_pred(w, ACKS, h->link)->node != from ||
        (w->root && before(f->begun, number))) {
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
    const uint32_t link = f->wiring[0]->stage[ACKS].pred_at + h->link;
    for (uint32_t k = acked_by(f, h); in_window(f, k); k--) {
        struct slot *o = slot_of(f, k);
        if (o->has[link]) {
            break;
        }
        learn_kind(f, k, 0);
        o->has[link] = true;
        o->got[ACKS]++;
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
    if (before(f->completed + f->window, h->number)) {
        return QN_EAGAIN;
    }
    if (h->kind >= f->kinds || !in_window(f, h->number)) {
        return QN_ECORRUPT;
    }
    const struct slot *o = slot_of(f, h->number);
    const struct qn_wiring *w = f->wiring[h->kind];
    const struct qn_stage *stage = stage_of(w, h->stage);
    bool ok = stage != NULL && h->link < stage->preds &&
              (!is_known(o) || o->kind == h->kind) &&
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
    struct slot *o = slot_of(f, h->number);
    const struct qn_stage *stage = &f->wiring[h->kind]->stage[h->stage];
    const bool known = is_known(o);
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
    QN_ASSERT(!before(f->delivered, number));
    if (before(f->worked, number)) {
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
    const struct slot *o = slot_of(f, next);
    if (first == NULL || (o->got[0] == 0 && !(f->wiring[o->kind]->root &&
                                              !before(f->begun, next)))) {
        return false;
    }
    QN_ASSERT(first->delivers);
    f->delivered = next;
    *number = next;
    settle(f);
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
    const struct firing *q = &f->queue[f->head & f->queue_mask];
    struct slot *o = slot_of(f, q->number);
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
    const uint32_t fired = f->fired[ACKS];
    return fails(f, fired) ? f->failed - 1 : fired;
}

static bool next_ack(const struct qn_coll_flow *f, struct qn_flow_send *send)
{
    const struct qn_link *l = f->ack;
    if (l == NULL || !before(f->told, ackable(f)) || is_gone(f, l->node)) {
        return false;
    }
    *send = (struct qn_flow_send){
        .to = l->node,
        .head = {.number = ackable(f), .stage = l->stage, .link = l->there},
        .stage = ACKS,
        .bare = true,
        .later = true};
    return true;
}

bool qn_coll_flow_next(struct qn_coll_flow *f, struct qn_flow_send *send)
{
    while (f->head != f->tail) {
        const struct firing *q = &f->queue[f->head & f->queue_mask];
        const uint32_t kind = slot_of(f, q->number)->kind;
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

void qn_coll_flow_sent(struct qn_coll_flow *f)
{
    if (f->head != f->tail) {
        drop_head_successor(f);
    } else if (f->ack != NULL && before(f->told, ackable(f))) {
        f->told = ackable(f);
        settle(f);
    } else {
        QN_ASSERT(f->untold < f->neighbours);
        f->untold++;
    }
}

int qn_coll_flow_state(const struct qn_coll_flow *f, uint32_t number)
{
    if (!before(f->completed, number)) {
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
    return in_window(f, number) ? slot_of(f, number)->kind : QN_FLOW_KINDS_MAX;
}

static bool await_stage(const struct qn_wiring *w, const struct slot *o,
                        uint32_t s, bool (*look)(void *, qn_node_t), void *ctx)
{
    const struct qn_stage *stage = stage_of(w, s);
    for (uint32_t i = 0; stage != NULL && i < stage->preds; i++) {
        if ((!is_known(o) || !o->has[stage->pred_at + i]) &&
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
        if (!in_window(f, number) || fails(f, number) ||
            (f->called && before(f->begun, number))) {
            continue;
        }
        const struct slot *o = slot_of(f, number);
        const uint32_t first = is_known(o) ? o->kind : 0;
        const uint32_t end = is_known(o) ? first + 1 : f->kinds;
        for (uint32_t k = first; k < end; k++) {
            if (await_stage(f->wiring[k], o, s, look, ctx)) {
                return true;
            }
        }
    }
    return false;
}
