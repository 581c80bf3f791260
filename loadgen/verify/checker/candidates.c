#include "core/base/assert.h"
#include "loadgen/verify/checker/search_internal.h"

#include <stdlib.h>

/*
 * Candidates for the next operation: rules 2 to 5 of search.c.
 *
 * Optional operations stay open until the end of the history, so there may be
 * many of them if a server failed often. They are grouped: members of a group
 * differ only in their invocation time, so the first one that is not placed
 * stands for all. Groups that need a certain value are found by that value.
 */

/* ---- groups ---- */

/* Distinguishes optional operations, apart from their time. Values that no
 * operation saw are equal, unless an operation mentions them. */
static int64_t own_value(const struct qn_model *m, const struct qn_model_op *o)
{
    bool unseen = m->class == QN_MODEL_REGISTER &&
                  o->effect == QN_EFFECT_WRITE &&
                  m->slot[o->slot].mentions == 0;
    return unseen || o->effect == QN_EFFECT_ERASE ? 0 : o->value;
}

static int32_t own_slot(const struct qn_model_op *o)
{
    return o->need == QN_NEED_VALUE ? o->need_slot : QN_SLOT_NONE;
}

static int compare_groups(const struct qn_model *m, uint32_t i, uint32_t j)
{
    const struct qn_model_op *a = &m->op[i];
    const struct qn_model_op *b = &m->op[j];
    if (own_slot(a) != own_slot(b)) {
        return own_slot(a) < own_slot(b) ? -1 : 1;
    }
    if (a->need != b->need || a->effect != b->effect) {
        return (a->need * 8 + a->effect) - (b->need * 8 + b->effect);
    }
    int64_t x = own_value(m, a);
    int64_t y = own_value(m, b);
    return (x > y) - (x < y);
}

/* By group, then by index, which is the order of invocation. */
static int by_group(const void *a, const void *b, void *model)
{
    uint32_t i = *(const uint32_t *)a;
    uint32_t j = *(const uint32_t *)b;
    int c = compare_groups(model, i, j);
    return c != 0 ? c : (i > j) - (i < j);
}

void qn_search_group_optional(struct qn_search *s)
{
    qsort_r(s->optional, s->optional_count, sizeof *s->optional, by_group,
            s->m);
    for (uint32_t k = 0; k < s->optional_count; k++) {
        uint32_t i = s->optional[k];
        if (k == 0 || compare_groups(s->m, s->optional[k - 1], i) != 0) {
            s->group[s->group_count++] = (struct qn_search_group){
                .next = k, .slot = own_slot(&s->m->op[i])};
        }
        s->group[s->group_count - 1].end = k + 1;
        s->in_group[i] = s->group_count - 1;
    }
    for (int32_t slot = 0; slot < s->m->slot_count; slot++) {
        s->group_of[slot] = s->group_count;
    }
    for (uint32_t g = s->group_count; g-- > 0;) {
        if (s->group[g].slot != QN_SLOT_NONE) {
            s->group_of[s->group[g].slot] = g;
        }
    }
}

/* ---- candidates ---- */

/* Rule 2. */
static bool may_leave(const struct qn_search *s, const struct qn_model_op *o)
{
    int32_t slot = s->at.slot;
    if (slot == QN_SLOT_NONE || !qn_model_leaves_for_good(s->m, slot)) {
        return true;
    }
    bool itself = o->must && o->need_slot == slot;
    return s->m->slot[slot].readers == itself;
}

static bool belongs(const struct qn_search *s, const struct qn_model_op *o,
                    int32_t chain)
{
    int32_t slot = o->effect == QN_EFFECT_WRITE ? o->slot
                   : o->need == QN_NEED_VALUE   ? o->need_slot
                                                : QN_SLOT_NONE;
    return slot != QN_SLOT_NONE && s->m->slot[slot].chain == chain;
}

/* Rule 3. */
static bool may_enter(struct qn_search *s, int32_t chain)
{
    qn_time_t last = s->m->chain[chain].inv_max;
    uint32_t end = s->m->op_count;
    for (uint32_t i = qn_search_first(s->by_resp, s); i != end;
         i = s->by_resp[i].next) {
        const struct qn_model_op *o = &s->m->op[i];
        s->steps++;
        if (o->resp >= last) {
            break;
        }
        bool waits = o->effect == QN_EFFECT_KEEP &&
                     (o->need == QN_NEED_OTHER || o->need == QN_NEED_PRESENT);
        if (!waits && !belongs(s, o, chain)) {
            return false;
        }
    }
    return true;
}

/* The chain that begins with o; -1: o continues a chain, or is not a write. */
static int32_t begins(const struct qn_search *s, const struct qn_model_op *o)
{
    bool head =
        o->need == QN_NEED_NOTHING || (o->need == QN_NEED_NIL && s->m->erases);
    if (s->m->class != QN_MODEL_REGISTER || !o->must ||
        o->effect != QN_EFFECT_WRITE || !head) {
        return -1;
    }
    return s->m->slot[o->slot].chain;
}

/* Latest time at which o, or the chain that it begins, can be placed. */
static qn_time_t deadline(const struct qn_search *s, uint32_t i)
{
    const struct qn_model_op *o = &s->m->op[i];
    int32_t chain = begins(s, o);
    return chain >= 0 ? s->m->chain[chain].resp_min : o->resp;
}

/* Classes of rule 4; CLASS_NONE: always a candidate. */
enum { CLASS_NONE, CLASS_SET, CLASS_ADD, CLASS_DEL, CLASS_COUNT };

static int class_of(const struct qn_search *s, const struct qn_model_op *o)
{
    if (s->m->class != QN_MODEL_REGISTER) {
        return CLASS_NONE;
    }
    if (o->effect == QN_EFFECT_ERASE) {
        return CLASS_DEL;
    }
    int32_t chain = begins(s, o);
    if (chain < 0 || s->m->chain[chain].mentions != 0 ||
        s->m->chain[chain].inv_max > qn_search_horizon(s)) {
        return CLASS_NONE;
    }
    return o->need == QN_NEED_NOTHING ? CLASS_SET : CLASS_ADD;
}

static bool push_candidate(struct qn_search *s, uint32_t i)
{
    if (s->pool_len == s->pool_room) {
        uint64_t room = 2 * s->pool_room + 64;
        uint32_t *pool = realloc(s->pool, room * sizeof *pool);
        if (pool == NULL) {
            return false;
        }
        s->pool = pool;
        s->pool_room = room;
    }
    s->pool[s->pool_len++] = i;
    return true;
}

/* Push required operations that can come next. `waiting`: an enabled operation
 * does not fit. Returns false without memory. */
static bool candidates_required(struct qn_search *s, bool *waiting)
{
    uint32_t best[CLASS_COUNT];
    for (int a = 0; a < CLASS_COUNT; a++) {
        best[a] = s->m->op_count;
    }
    uint32_t end = s->m->op_count;
    qn_time_t until = qn_search_horizon(s);
    *waiting = false;
    for (uint32_t i = qn_search_first(s->by_inv, s); i != end;
         i = s->by_inv[i].next) {
        const struct qn_model_op *o = &s->m->op[i];
        s->steps++;
        if (o->inv > until) {
            break;
        }
        if (!qn_search_fits(o, &s->at)) {
            *waiting = true;
            continue;
        }
        int32_t chain = begins(s, o);
        if (!may_leave(s, o) || (chain >= 0 && !may_enter(s, chain))) {
            continue;
        }
        int a = class_of(s, o);
        if (a == CLASS_NONE) {
            if (!push_candidate(s, i)) {
                return false;
            }
        } else if (best[a] == end || deadline(s, i) < deadline(s, best[a])) {
            best[a] = i;
        }
    }
    bool ok = true;
    for (int a = CLASS_NONE + 1; a < CLASS_COUNT; a++) {
        ok = ok && (best[a] == end || push_candidate(s, best[a]));
    }
    return ok;
}

/* The operation that stands for group g; op_count: none is enabled. `skip`
 * operations are passed over. */
static uint32_t candidate(struct qn_search *s, uint32_t g, uint32_t skip)
{
    const struct qn_search_group *group = &s->group[g];
    s->steps++;
    if (group->next + skip < group->end) {
        uint32_t i = s->optional[group->next + skip];
        if (s->m->op[i].inv <= qn_search_horizon(s)) {
            return i;
        }
    }
    return s->m->op_count;
}

/* Next group whose operations may fit if the register holds `slot`: first those
 * that need no value, then those that need this one. */
static uint32_t next_group(const struct qn_search *s, uint32_t g, int32_t slot)
{
    g++;
    if (g < s->group_count && s->group[g].slot == QN_SLOT_NONE) {
        return g;
    }
    if (slot == QN_SLOT_NONE) {
        return s->group_count;
    }
    bool was_none = s->group[g - 1].slot == QN_SLOT_NONE;
    g = was_none ? s->group_of[slot] : g;
    return g < s->group_count && s->group[g].slot == slot ? g : s->group_count;
}

static uint32_t first_group(const struct qn_search *s, int32_t slot)
{
    if (s->group_count > 0 && s->group[0].slot == QN_SLOT_NONE) {
        return 0;
    }
    return slot == QN_SLOT_NONE ? s->group_count : s->group_of[slot];
}

static bool must_newly_fits(struct qn_search *s,
                            const struct qn_search_at *then)
{
    uint32_t end = s->m->op_count;
    qn_time_t until = qn_search_horizon(s);
    for (uint32_t j = qn_search_first(s->by_inv, s); j != end;
         j = s->by_inv[j].next) {
        const struct qn_model_op *o = &s->m->op[j];
        s->steps++;
        if (o->inv > until) {
            break;
        }
        if (!qn_search_fits(o, &s->at) && qn_search_fits(o, then)) {
            return true;
        }
    }
    return false;
}

/* Does an enabled operation fit after optional operation i that does not fit
 * now? An addition always fits, but its result depends on the register. */
static bool newly_fits(struct qn_search *s, uint32_t i,
                       const struct qn_search_at *then)
{
    if (must_newly_fits(s, then)) {
        return true;
    }
    for (uint32_t g = first_group(s, then->slot); g != s->group_count;
         g = next_group(s, g, then->slot)) {
        uint32_t j = candidate(s, g, s->in_group[i] == g);
        if (j == s->m->op_count) {
            continue;
        }
        const struct qn_model_op *o = &s->m->op[j];
        if (o->effect == QN_EFFECT_ADD ||
            (!qn_search_fits(o, &s->at) && qn_search_fits(o, then))) {
            return true;
        }
    }
    return false;
}

/* Rule 5. */
static bool candidates_optional(struct qn_search *s)
{
    for (uint32_t g = first_group(s, s->at.slot); g != s->group_count;
         g = next_group(s, g, s->at.slot)) {
        uint32_t i = candidate(s, g, 0);
        if (i == s->m->op_count) {
            continue;
        }
        const struct qn_model_op *o = &s->m->op[i];
        if (!qn_search_fits(o, &s->at) || !may_leave(s, o)) {
            continue;
        }
        struct qn_search_at then = qn_search_after(s, o, &s->at);
        if (newly_fits(s, i, &then) && !push_candidate(s, i)) {
            return false;
        }
    }
    return true;
}

/* Most urgent candidate first: an existing order is then found at once, in all
 * but the rarest cases. */
static void sort_candidates(struct qn_search *s, uint64_t from)
{
    for (uint64_t k = from + 1; k < s->pool_len; k++) {
        uint32_t i = s->pool[k];
        qn_time_t d = deadline(s, i);
        uint64_t to = k;
        for (; to > from && deadline(s, s->pool[to - 1]) > d; to--) {
            s->pool[to] = s->pool[to - 1];
        }
        s->pool[to] = i;
    }
}

bool qn_search_candidates(struct qn_search *s)
{
    uint64_t from = s->pool_len;
    bool waiting;
    if (!candidates_required(s, &waiting) ||
        (waiting && !candidates_optional(s))) {
        return false;
    }
    sort_candidates(s, from);
    return true;
}
