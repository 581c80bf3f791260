/*
 * The flow machine's beginning and end, and what a death does to it: which of
 * its operations fail.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/coll/coll_flow_internal.h"

static_assert((QN_STAGES_MAX & (QN_STAGES_MAX + 1)) == 0,
              "a mask of the queue");

/* ---- making one ---- */

static int by_node(const void *a, const void *b)
{
    const struct qn_flow_neighbour *x = a, *y = b;
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
    if (f->cumulative && f->wiring[0]->stage[QN_FLOW_ACKS].succs > 0) {
        f->ack = qn_wiring_succ(f->wiring[0], QN_FLOW_ACKS, 0);
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

static struct qn_flow_neighbour *find(const struct qn_coll_flow *f,
                                      qn_node_t node)
{
    const struct qn_flow_neighbour key = {.node = node};
    return f->neighbours == 0 ? NULL
                              : bsearch(&key, f->neighbour, f->neighbours,
                                        sizeof key, by_node);
}

bool qn_coll_flow_gone(const struct qn_coll_flow *f, qn_node_t node)
{
    const struct qn_flow_neighbour *n = find(f, node);
    return n == NULL || n->gone;
}

/* Whether a stage that has not fired lacks a message of a member, or must send
 * it one. */
static bool stage_needs(const struct qn_flow_slot *o, const struct qn_wiring *w,
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
    const struct qn_flow_slot *o = qn_flow_slot_of(f, number);
    if (!qn_flow_is_known(o)) {
        return true;
    }
    const struct qn_wiring *w = f->wiring[o->kind];
    for (uint32_t s = 0; s < w->stages; s++) {
        if (qn_flow_before(f->fired[s], number) && stage_needs(o, w, s, node)) {
            return true;
        }
    }
    return false;
}

/* What has fired and must still be sent to a member. */
static void fail_queued(struct qn_coll_flow *f, qn_node_t node)
{
    if (f->ack != NULL && f->ack->node == node &&
        qn_flow_before(f->told, f->fired[QN_FLOW_ACKS]) &&
        qn_flow_before(f->told + 1, f->failed)) {
        f->failed = f->told + 1;
    }
    for (uint32_t i = f->head; i != f->tail; i++) {
        const struct qn_flow_firing *q = &f->queue[i & f->queue_mask];
        const struct qn_wiring *w =
            f->wiring[qn_flow_slot_of(f, q->number)->kind];
        const struct qn_stage *stage = &w->stage[q->stage];
        for (uint32_t j = i == f->head ? f->at : 0;
             stage->must && j < stage->succs; j++) {
            if (qn_wiring_succ(w, q->stage, j)->node == node &&
                qn_flow_before(q->number, f->failed)) {
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
    struct qn_flow_neighbour *n = find(f, node);
    if (n == NULL || n->gone) {
        return;
    }
    set_error(f, QN_EPEERDEAD);
    f->changes++;
    n->gone = true;
    for (uint32_t k = f->completed + 1; qn_flow_before(k, f->failed); k++) {
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
