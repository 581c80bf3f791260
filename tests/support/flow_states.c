#include "tests/support/flow_states.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/base/assert.h"
#include "core/base/err.h"
#include "core/coll/coll_flow_internal.h"
#include "tests/support/test.h"

static const char *const role_name[] = {"root", "inner", "leaf"};
static const char *const state_name[] = {"unknown", "ended",  "failed",
                                         "late",    "awaits", "lacks some",
                                         "working", "unsent", "partly"};

static enum flow_role role_of(const struct qn_wiring *w)
{
    const uint32_t one = w->kind == QN_WIRING_RING ? 2 : 1;
    bool several = false;
    for (uint32_t s = 0; s < w->stages; s++) {
        several = several || w->stage[s].preds + w->stage[s].succs > one;
    }
    return w->root ? FLOW_ROOT : several ? FLOW_INNER : FLOW_LEAF;
}

/* ---- what exists ---- */

/* A message that says the kind may come before the member begins. */
static bool may_be_late(const struct qn_wiring *w)
{
    return w->called &&
           (w->stage[0].preds > 0 ||
            (w->kind == QN_WIRING_EXCHANGE && w->stage[1].preds > 0));
}

/* Of a broadcast successors that have ended are left out. An exchange with one
 * other member fails when that one has ended. */
static bool may_fail(const struct flow_states *t, const struct qn_wiring *w)
{
    return t->all_fail
               ? w->kind != QN_WIRING_EXCHANGE || w->preds > 1
               : w->kind != QN_WIRING_BROADCAST || (w->called && !w->root);
}

static bool exists(const struct flow_states *t, const struct qn_wiring *w,
                   enum flow_state state, uint32_t s)
{
    const struct qn_stage *stage = &w->stage[s];
    switch (state) {
    case FLOW_FAILED:
        return s == 0 && may_fail(t, w);
    case FLOW_LATE:
        return s == 0 && may_be_late(w);
    case FLOW_NONE_IN: /* the first message says that there is one */
        return stage->preds > 0 && (s > 0 || w->called);
    case FLOW_SOME_IN:
        return stage->preds > 1;
    case FLOW_WORKING:
        return stage->worked && t->works;
    case FLOW_UNSENT:
        return stage->succs > 0;
    case FLOW_PARTLY:
        return stage->succs > 1;
    default:
        return s == 0;
    }
}

static void see(struct flow_states *t, const struct qn_wiring *w, uint32_t row,
                enum flow_state from, enum flow_state to)
{
    QN_ASSERT(row < FLOW_STATES_ROWS);
    for (uint32_t state = from; state <= to; state++) {
        for (uint32_t s = 0; s < w->stages; s++) {
            if (exists(t, w, (enum flow_state)state, s)) {
                t->cell[row][role_of(w)][state][s].exists = true;
            }
        }
    }
}

/* A kind that is not known has the member's role in the first one. */
void flow_states_see(struct flow_states *t, const struct qn_coll_flow *f,
                     flow_row_fn *row_of, void *ctx)
{
    for (uint32_t i = 1; i <= f->window; i++) {
        const uint32_t number = f->completed + i;
        const struct qn_flow_slot *o = qn_flow_slot_of(f, number);
        if (qn_flow_is_known(o)) {
            see(t, f->wiring[o->kind], row_of(ctx, number, o->kind),
                FLOW_FAILED, FLOW_PARTLY);
            see(t, f->wiring[0], row_of(ctx, number, QN_FLOW_KINDS_MAX),
                FLOW_UNKNOWN, FLOW_ENDED);
        }
    }
}

/* ---- what was reached ---- */

struct of {
    const struct qn_coll_flow *f;
    const struct qn_wiring *w;
    const struct qn_flow_slot *slot;
    uint32_t number;
    struct flow_cell (*cell)[QN_STAGES_MAX]; /* [FLOW_STATES] */
};

static void count(const struct of *o, enum flow_state state, uint32_t s)
{
    o->cell[state][s].kills++;
}

static void count_waiting(const struct of *o)
{
    uint32_t s = 0;
    while (s < o->w->stages && !qn_flow_before(o->f->fired[s], o->number)) {
        s++;
    }
    if (o->w->called && qn_flow_before(o->f->begun, o->number)) {
        count(o, FLOW_LATE, 0);
    } else if (s < o->w->stages && o->slot->got[s] < o->w->stage[s].preds) {
        count(o, o->slot->got[s] == 0 ? FLOW_NONE_IN : FLOW_SOME_IN, s);
    } else if (s < o->w->stages && o->w->stage[s].worked &&
               qn_flow_before(o->f->worked, o->number)) {
        count(o, FLOW_WORKING, s);
    }
}

static void count_sending(const struct of *o)
{
    for (uint32_t i = o->f->head; i != o->f->tail; i++) {
        const struct qn_flow_firing *q = &o->f->queue[i & o->f->queue_mask];
        if (q->number == o->number) {
            count(o,
                  i == o->f->head && o->f->at > 0 ? FLOW_PARTLY : FLOW_UNSENT,
                  q->stage);
        }
    }
}

static bool has_failed(const struct of *o)
{
    return o->f->error != QN_OK && !qn_flow_before(o->number, o->f->failed);
}

static struct of operation(struct flow_states *t, const struct qn_coll_flow *f,
                           uint32_t number, uint32_t kind, flow_row_fn *row_of,
                           void *ctx)
{
    const struct qn_wiring *w = f->wiring[kind == QN_FLOW_KINDS_MAX ? 0 : kind];
    const uint32_t row = row_of(ctx, number, kind);
    QN_ASSERT(row < FLOW_STATES_ROWS);
    return (struct of){.f = f,
                       .w = w,
                       .slot = qn_flow_slot_of(f, number),
                       .number = number,
                       .cell = t->cell[row][role_of(w)]};
}

void flow_states_kill(struct flow_states *t, const struct qn_coll_flow *f,
                      flow_row_fn *row_of, void *ctx)
{
    bool next = true;
    flow_states_see(t, f, row_of, ctx);
    struct of o = operation(t, f, f->completed, QN_FLOW_KINDS_MAX, row_of, ctx);
    count(&o, FLOW_ENDED, 0);
    for (uint32_t i = 1; i <= f->window; i++) {
        const uint32_t number = f->completed + i;
        const uint32_t kind = qn_flow_slot_of(f, number)->kind;
        o = operation(t, f, number, kind, row_of, ctx);
        if (kind == QN_FLOW_KINDS_MAX) {
            o.cell[FLOW_UNKNOWN][0].kills += next;
            next = false;
        } else if (has_failed(&o)) {
            count(&o, FLOW_FAILED, 0);
        } else {
            count_waiting(&o);
            count_sending(&o);
        }
    }
}

/* ---- the table ---- */

static uint32_t left_of(const struct flow_cell cell[QN_STAGES_MAX])
{
    uint32_t left = 0;
    for (uint32_t s = 0; s < QN_STAGES_MAX; s++) {
        left += cell[s].exists && cell[s].kills == 0;
    }
    return left;
}

uint32_t flow_states_left(const struct flow_states *t)
{
    uint32_t left = 0;
    for (uint32_t row = 0; row < FLOW_STATES_ROWS; row++) {
        for (uint32_t role = 0; role < FLOW_ROLES; role++) {
            for (uint32_t state = 0; state < FLOW_STATES; state++) {
                left += left_of(t->cell[row][role][state]);
            }
        }
    }
    return left;
}

static void expect_cell(const struct flow_cell *c, const char *where,
                        enum flow_state state, uint32_t s, bool all)
{
    if (c->exists || c->kills > 0) {
        fprintf(stderr, "  %s", state_name[state]);
        if (state >= FLOW_NONE_IN) {
            fprintf(stderr, " in %u", s);
        }
        fprintf(stderr, " %" PRIu64, c->kills);
    }
    cr_expect(!all || !c->exists || c->kills > 0, "%s: no kill when %s (%u)",
              where, state_name[state], s);
}

static bool has_some(const struct flow_states *t, uint32_t row, uint32_t role)
{
    return t->cell[row][role][FLOW_UNKNOWN][0].exists ||
           t->cell[row][role][FLOW_FAILED][0].exists;
}

void flow_states_expect(const struct flow_states *t, bool all)
{
    for (uint32_t row = 0; row < FLOW_STATES_ROWS; row++) {
        for (uint32_t role = 0; role < FLOW_ROLES; role++) {
            char where[64];
            if (!has_some(t, row, role)) {
                continue;
            }
            (void)snprintf(where, sizeof where, "%s, %s", t->name(row),
                           role_name[role]);
            fprintf(stderr, "%-24s", where);
            for (uint32_t i = 0; i < FLOW_STATES * QN_STAGES_MAX; i++) {
                const uint32_t state = i / QN_STAGES_MAX;
                expect_cell(&t->cell[row][role][state][i % QN_STAGES_MAX],
                            where, (enum flow_state)state, i % QN_STAGES_MAX,
                            all);
            }
            fprintf(stderr, "\n");
        }
    }
}
