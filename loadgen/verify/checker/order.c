#include "core/base/assert.h"
#include "loadgen/base/random.h"
#include "loadgen/verify/checker/search_internal.h"

#include <stdlib.h>

/*
 * The order under construction. Required operations that are not placed are in
 * two lists, by invocation and by response. Placing removes an operation,
 * undoing puts it back in reverse order, so that both cost four stores (Knuth's
 * dancing links). The counts of operations that need or mention a value, and
 * the hash of the placed set, are updated together.
 */

/* Hashes of operations and of values must be independent: otherwise (op 5
 * placed, value 7) would equal (op 7 placed, value 5). */
static const uint64_t OP_SALT = UINT64_C(0x5851f42d4c957f2d);

/* ---- lists ---- */

static void unlink_from(struct qn_search_link *l, uint32_t i)
{
    l[l[i].prev].next = l[i].next;
    l[l[i].next].prev = l[i].prev;
}

/* The reverse of unlink_from, in reverse order. */
static void relink(struct qn_search_link *l, uint32_t i)
{
    l[l[i].prev].next = i;
    l[l[i].next].prev = i;
}

static void append(struct qn_search_link *l, uint32_t end, uint32_t i)
{
    l[i] = (struct qn_search_link){.next = end, .prev = l[end].prev};
    l[l[end].prev].next = i;
    l[end].prev = i;
}

static int by_resp(const void *a, const void *b, void *ops)
{
    const struct qn_model_op *op = ops;
    qn_time_t x = op[*(const uint32_t *)a].resp;
    qn_time_t y = op[*(const uint32_t *)b].resp;
    return (x > y) - (x < y);
}

/* Link the lists; uses s->trail as scratch. */
void qn_search_link(struct qn_search *s)
{
    uint32_t end = s->m->op_count;
    uint32_t answered = 0;
    s->by_inv[end] = (struct qn_search_link){.next = end, .prev = end};
    s->by_resp[end] = (struct qn_search_link){.next = end, .prev = end};
    for (uint32_t i = 0; i < end; i++) {
        const struct qn_model_op *o = &s->m->op[i];
        if (!o->must) {
            s->optional[s->optional_count++] = i;
            continue;
        }
        append(s->by_inv, end, i);
        if (o->resp != QN_TIME_NEVER) {
            s->trail[answered++] = i;
        }
    }
    qsort_r(s->trail, answered, sizeof *s->trail, by_resp, s->m->op);
    for (uint32_t k = 0; k < answered; k++) {
        append(s->by_resp, end, s->trail[k]);
    }
}

/* ---- placing ---- */

bool qn_search_fits(const struct qn_model_op *o, const struct qn_search_at *at)
{
    switch ((enum qn_need)o->need) {
    case QN_NEED_NOTHING:
        return true;
    case QN_NEED_VALUE:
    case QN_NEED_NIL:
        return at->slot == o->need_slot;
    case QN_NEED_OTHER:
        return at->slot != o->need_slot;
    case QN_NEED_PRESENT:
        return at->slot != QN_SLOT_NIL;
    case QN_NEED_ZERO:
        return at->slot == QN_SLOT_NIL || at->value == 0;
    }
    return false;
}

struct qn_search_at qn_search_after(const struct qn_search *s,
                                    const struct qn_model_op *o,
                                    const struct qn_search_at *at)
{
    switch ((enum qn_effect)o->effect) {
    case QN_EFFECT_KEEP:
        break;
    case QN_EFFECT_WRITE:
        return (struct qn_search_at){.value = o->value, .slot = o->slot};
    case QN_EFFECT_ERASE:
        return (struct qn_search_at){.value = 0, .slot = QN_SLOT_NIL};
    case QN_EFFECT_ADD: {
        int64_t sum = (int64_t)((uint64_t)at->value + (uint64_t)o->value);
        return (struct qn_search_at){.value = sum,
                                     .slot = qn_model_find(s->m, sum)};
    }
    }
    return *at;
}

/* Add `by` to the number of operations that still need or mention the slot of
 * o. */
static void recount(struct qn_search *s, const struct qn_model_op *o,
                    uint32_t by)
{
    if (o->need_slot == QN_SLOT_NONE) {
        return;
    }
    struct qn_model_slot *slot = &s->m->slot[o->need_slot];
    if (o->must && o->need != QN_NEED_OTHER) {
        slot->readers += by;
        return;
    }
    slot->mentions += by;
    if (slot->chain >= 0) {
        s->m->chain[slot->chain].mentions += by;
    }
}

static void rehash(struct qn_search *s, uint32_t i)
{
    uint64_t state = i + OP_SALT;
    s->hash.a ^= qn_random_next(&state);
    s->hash.b ^= qn_random_next(&state);
}

void qn_search_place(struct qn_search *s, uint32_t i)
{
    const struct qn_model_op *o = &s->m->op[i];
    QN_DASSERT(qn_search_fits(o, &s->at));
    s->at = qn_search_after(s, o, &s->at);
    if (!o->must) {
        s->group[s->in_group[i]].next++;
    } else {
        unlink_from(s->by_inv, i);
        if (o->resp != QN_TIME_NEVER) {
            unlink_from(s->by_resp, i);
        }
    }
    recount(s, o, (uint32_t)-1);
    rehash(s, i);
    s->trail[s->trail_len++] = i;
}

void qn_search_undo(struct qn_search *s, const struct qn_search_frame *f)
{
    while (s->trail_len > f->trail_len) {
        uint32_t i = s->trail[--s->trail_len];
        const struct qn_model_op *o = &s->m->op[i];
        rehash(s, i);
        recount(s, o, 1);
        if (!o->must) {
            s->group[s->in_group[i]].next--;
        } else {
            if (o->resp != QN_TIME_NEVER) {
                relink(s->by_resp, i);
            }
            relink(s->by_inv, i);
        }
    }
    s->at = f->at;
}
