#include "core/base/err.h"
#include "loadgen/base/random.h"
#include "loadgen/verify/checker/search_internal.h"

#include <stdlib.h>

/*
 * Search: depth-first, for an order of one key's operations.
 *
 * `horizon` is the earliest answer among the operations not yet placed. What
 * was asked by then is *enabled*: nothing that is left has to precede it. One
 * of the enabled ones comes next. The rules that keep the search narrow, each
 * with the reason why it loses no order:
 *
 *  1. A reader that fits is placed at once. It changes nothing, so an order
 *     that places it later can place it now.
 *  2. A value that cannot come back (REGISTER, COUNTER) is not left while
 *     somebody that must happen still needs it: he could never be placed.
 *  3. A chain (zones.c) is entered only if nothing outside of it has been
 *     answered before its last operation was asked; readers that it may
 *     satisfy aside. What has been would have to come first.
 *  4. Of all chains that begin with a set, whose operations are all enabled
 *     and whose values nobody's refusal mentions, only the one with the
 *     earliest answer is tried. Let an order place X of them first and Y, with
 *     an earlier answer, later: the whole of Y can take X's place (all of it
 *     is enabled) and X Y's (what is asked after X's first answer is asked
 *     after Y's, hence comes later anyway); what saw X in between wanted
 *     "present" or "another value", and Y is that as well. Likewise of all
 *     chains that begin with an add, and of all deletions that happened.
 *  5. An optional operation is tried only if something enabled fits after it
 *     and does not fit now. Otherwise the next one in the order either could
 *     have come before it, or overwrites it unseen, and it can be left out.
 *     Of several whose only difference is when they were asked, the first.
 *
 * A configuration that failed (the set placed, and what the register holds) is
 * remembered and not tried again. A value that nobody needs or mentions any
 * more counts as "some value", so that configurations meet again. Sets are
 * compared by 128 bits of hash: with 10^9 of them the odds of a collision,
 * which might turn "fine" into a violation, are below 10^-20.
 *
 * So a history without optional operations and refusals is walked almost
 * straight, in O(operations * those under way at once); what stops it is what
 * cannot be placed. The budget is counted in operations looked at.
 *
 *     place readers -> choices -> push frame -> place the first -> ...
 *                        | none left
 *                        v
 *     remember, pop frame, undo to the frame below, place its next choice
 */

/* Stands for all values that nobody needs or mentions. */
static const int64_t SOME_VALUE = INT64_C(-0x2545f4914f6cdd1d);

/* Rule 1. Placing a reader can only move the horizon on, and what was passed
 * over did not fit and does not fit now, so one walk is enough. */
static void place_readers(struct qn_search *s)
{
    uint32_t next;
    for (uint32_t i = qn_search_first(s->by_inv, s); i != s->m->op_count;
         i = next) {
        const struct qn_model_op *o = &s->m->op[i];
        next = s->by_inv[i].next;
        s->steps++;
        if (o->inv > qn_search_horizon(s)) {
            break;
        }
        if (o->effect == QN_EFFECT_KEEP && qn_search_fits(o, &s->at)) {
            qn_search_place(s, i);
        }
    }
}

/* ---- the walk ---- */

static struct qn_failed_key configuration(const struct qn_search *s)
{
    struct qn_search_at at = s->at;
    const struct qn_model_slot *slot = &s->m->slot[at.slot < 0 ? 0 : at.slot];
    if (s->m->class == QN_MODEL_REGISTER && at.slot != QN_SLOT_NIL &&
        slot->readers == 0 && slot->mentions == 0) {
        at = (struct qn_search_at){.value = SOME_VALUE, .slot = QN_SLOT_NONE};
    }
    uint64_t absent = at.slot == QN_SLOT_NIL;
    uint64_t state = (uint64_t)at.value;
    struct qn_failed_key key = s->hash;
    key.a ^= qn_random_next(&state) + absent;
    key.b ^= qn_random_next(&state) + absent;
    return key;
}

enum step { STEP_ON, STEP_DEAD, STEP_FINE, STEP_BUDGET, STEP_MEMORY };

static void note_stuck(struct qn_search *s)
{
    uint32_t i = qn_search_first(s->by_resp, s);
    if (i != s->m->op_count && s->m->op[i].resp >= s->stuck) {
        s->stuck = s->m->op[i].resp;
        s->stuck_op = i;
    }
}

/* Arrive somewhere: place readers, list the choices, push a frame. */
static enum step arrive(struct qn_search *s)
{
    place_readers(s);
    if (qn_search_first(s->by_inv, s) == s->m->op_count) {
        return STEP_FINE;
    }
    if (qn_failed_has(&s->failed, configuration(s))) {
        return STEP_DEAD;
    }
    uint64_t from = s->pool_len;
    if (!qn_search_choose(s)) {
        return STEP_MEMORY;
    }
    if (s->pool_len == from) {
        note_stuck(s);
        return STEP_DEAD;
    }
    s->frame[s->depth++] = (struct qn_search_frame){
        .at = s->at, .trail_len = s->trail_len, .from = from, .next = from};
    return STEP_ON;
}

/* Go to the next choice there is; STEP_DEAD: there is none left at all. */
static enum step proceed(struct qn_search *s)
{
    while (s->depth > 0) {
        struct qn_search_frame *f = &s->frame[s->depth - 1];
        qn_search_undo(s, f);
        /* The pool's end is the end of the choices of the topmost frame. */
        if (f->next < s->pool_len) {
            qn_search_place(s, s->pool[f->next++]);
            return STEP_ON;
        }
        int err = qn_failed_add(&s->failed, configuration(s));
        if (err != QN_OK) {
            return err == QN_ENOMEM ? STEP_MEMORY : STEP_BUDGET;
        }
        s->pool_len = f->from;
        s->depth--;
    }
    return STEP_DEAD;
}

static enum step walk(struct qn_search *s, uint64_t steps_max)
{
    for (;;) {
        enum step step = arrive(s);
        if (step == STEP_ON || step == STEP_DEAD) {
            step = proceed(s);
        }
        if (step != STEP_ON) {
            return step;
        }
        if (s->steps > steps_max) {
            return STEP_BUDGET;
        }
    }
}

/* ---- making and ending ---- */

static int begin(struct qn_search *s, struct qn_model *m, uint64_t failed_max)
{
    size_t n = (size_t)m->op_count + 1;
    *s = (struct qn_search){.m = m, .at = {.slot = QN_SLOT_NIL}};
    qn_failed_init(&s->failed, failed_max);
    s->by_inv = malloc(n * sizeof *s->by_inv);
    s->by_resp = malloc(n * sizeof *s->by_resp);
    s->optional = malloc(n * sizeof *s->optional);
    s->group = malloc(n * sizeof *s->group);
    s->group_of = malloc((size_t)m->slot_count * sizeof *s->group_of);
    s->in_group = malloc(n * sizeof *s->in_group);
    s->trail = malloc(n * sizeof *s->trail);
    s->frame = malloc(n * sizeof *s->frame);
    if (s->by_inv == NULL || s->by_resp == NULL || s->optional == NULL ||
        s->group == NULL || s->group_of == NULL || s->in_group == NULL ||
        s->trail == NULL || s->frame == NULL) {
        return QN_ENOMEM;
    }
    qn_search_link(s);
    qn_search_group_optional(s);
    return QN_OK;
}

static void end(struct qn_search *s)
{
    free(s->by_inv);
    free(s->by_resp);
    free(s->optional);
    free(s->group);
    free(s->group_of);
    free(s->in_group);
    free(s->trail);
    free(s->frame);
    free(s->pool);
    qn_failed_fini(&s->failed);
}

int qn_search_check(struct qn_model *m, const struct qn_linear_opts *opts,
                    struct qn_linear_result *out)
{
    struct qn_search s;
    int err = begin(&s, m, opts->failed_max);
    if (err == QN_OK) {
        enum step step = walk(&s, opts->steps_max);
        err = step == STEP_MEMORY ? QN_ENOMEM : QN_OK;
        out->steps = s.steps;
        out->verdict = step == STEP_FINE     ? QN_LINEARIZABLE
                       : step == STEP_BUDGET ? QN_LINEAR_UNDECIDED
                                             : QN_NOT_LINEARIZABLE;
    }
    if (err == QN_OK && out->verdict == QN_NOT_LINEARIZABLE) {
        out->reason = QN_ANOMALY_SEARCH;
        out->core[0] = m->op[s.stuck_op].record;
        out->core_count = 1;
    }
    end(&s);
    return err;
}
