#include "core/base/err.h"
#include "loadgen/base/random.h"
#include "loadgen/verify/checker/search_internal.h"

#include <stdlib.h>

/*
 * Depth-first search for an order of the operations of one key.
 *
 * `horizon` is the earliest response of the operations not yet placed.
 * Operations invoked by then are *enabled*: no remaining operation has to
 * precede them. One of the enabled operations comes next. The rules that keep
 * the search narrow, each with the reason why it loses no order:
 *
 * 1. A reader that fits is placed at once. It changes nothing, so an order
 *     that places it later can place it now.
 * 2. A value that cannot return (REGISTER, COUNTER) is not replaced while a
 *     required operation still needs it: that operation could never be placed.
 * 3. A chain (zones.c) is entered only if no operation outside of it has
 *     responded before the last operation of the chain was invoked, except
 *     readers that the chain may satisfy. Such an operation would have to come
 *     first.
 * 4. Of all chains that begin with a set, whose operations are all enabled
 *     and whose values are not mentioned by a refusal, only the one with the
 *     earliest response is tried. Let an order place X of them first and Y,
 * with an earlier response, later: the whole of Y can take the place of X (all
 * of it is enabled) and X that of Y (operations invoked after the first
 * response of X were invoked after that of Y, hence come later anyway); an
 * operation that saw X in between needed "present" or "another value", and Y
 * satisfies that, too. The same holds for all chains that begin with an add,
 * and for all deletions that happened.
 * 5. An optional operation is tried only if an enabled operation fits after it
 *     that does not fit now. Otherwise the next one in the order could have
 * come before it, or overwrites it unseen, and it can be left out. Of several
 *     that differ only in their invocation time, the first one is tried.
 *
 * A state that failed (the placed set, and the content of the register) is
 * stored and not visited again. A value that no operation needs or mentions any
 * more counts as "some value", so that states coincide. Sets are compared by
 * 128 bits of hash: with 10^9 of them the probability of a collision, which
 * might turn LINEARIZABLE into a violation, is below 10^-20.
 *
 * So a history without optional operations and refusals is walked almost
 * without backtracking, in O(operations * concurrency); only an operation that
 * cannot be placed stops it. The budget counts visited operations.
 *
 *     place readers -> candidates -> push frame -> place the first -> ...
 *                          | none left
 *                          v
 *     store the state, pop the frame, undo to the frame below, place its next
 */

/* Stands for all values that no operation needs or mentions. */
static const int64_t SOME_VALUE = INT64_C(-0x2545f4914f6cdd1d);

/* Rule 1. Placing a reader can only move the horizon forward, and the
 * operations passed over did not fit and do not fit now, so one walk is
 * enough. */
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

static struct qn_visited_key configuration(const struct qn_search *s)
{
    struct qn_search_at at = s->at;
    const struct qn_model_slot *slot = &s->m->slot[at.slot < 0 ? 0 : at.slot];
    if (s->m->class == QN_MODEL_REGISTER && at.slot != QN_SLOT_NIL &&
        slot->readers == 0 && slot->mentions == 0) {
        at = (struct qn_search_at){.value = SOME_VALUE, .slot = QN_SLOT_NONE};
    }
    uint64_t absent = at.slot == QN_SLOT_NIL;
    uint64_t state = (uint64_t)at.value;
    struct qn_visited_key key = s->hash;
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

/* Enter a state: place readers, list the candidates, push a frame. */
static enum step arrive(struct qn_search *s)
{
    place_readers(s);
    if (qn_search_first(s->by_inv, s) == s->m->op_count) {
        return STEP_FINE;
    }
    if (qn_visited_states_has(&s->visited, configuration(s))) {
        return STEP_DEAD;
    }
    uint64_t from = s->pool_len;
    if (!qn_search_candidates(s)) {
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

/* Go to the next candidate; STEP_DEAD: none is left. */
static enum step proceed(struct qn_search *s)
{
    while (s->depth > 0) {
        struct qn_search_frame *f = &s->frame[s->depth - 1];
        qn_search_undo(s, f);
        /* The end of the pool is the end of the candidates of the topmost
         * frame. */
        if (f->next < s->pool_len) {
            qn_search_place(s, s->pool[f->next++]);
            return STEP_ON;
        }
        int err = qn_visited_states_add(&s->visited, configuration(s));
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

/* ---- init and fini ---- */

static int begin(struct qn_search *s, struct qn_model *m, uint64_t visited_max)
{
    size_t n = (size_t)m->op_count + 1;
    *s = (struct qn_search){.m = m, .at = {.slot = QN_SLOT_NIL}};
    qn_visited_states_init(&s->visited, visited_max);
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
    qn_visited_states_fini(&s->visited);
}

int qn_search_check(struct qn_model *m, const struct qn_linear_opts *opts,
                    struct qn_linear_result *out)
{
    struct qn_search s;
    int err = begin(&s, m, opts->visited_max);
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
