#include "core/base/assert.h"
#include "core/base/err.h"
#include "loadgen/verify/checker/model_internal.h"

#include <stdlib.h>
#include <string.h>

/*
 * Converts records to needs and effects (see the table in the header).
 *
 * Gets without an answer carry no information and are dropped here. An exchange
 * or an add without an answer is optional even if it reached the server, since
 * it may have been refused.
 *
 * In class REGISTER, an optional write whose value was seen has happened. If it
 * is an exchange, the value that it replaced existed, so its writer has
 * happened, too, and so on: `settle` follows these links.
 */

/* Counters with steps up to this, 2^30 times, from at most COUNT_MAX, do not
 * wrap: they only rise. */
static const int64_t STEP_MAX = INT64_C(1) << 31;
static const int64_t COUNT_MAX = INT64_C(1) << 61;

/* ---- values and slots ---- */

static uint64_t hash(int64_t value)
{
    uint64_t z = (uint64_t)value * UINT64_C(0x9e3779b97f4a7c15);
    return z ^ (z >> 32);
}

int32_t qn_model_find(const struct qn_model *m, int64_t value)
{
    for (uint64_t at = hash(value);; at++) {
        int32_t s = m->table[at & m->table_mask];
        if (s == QN_SLOT_NONE || m->slot[s].value == value) {
            return s;
        }
    }
}

static int32_t slot_of(struct qn_model *m, int64_t value)
{
    uint64_t at = hash(value);
    for (;; at++) {
        int32_t s = m->table[at & m->table_mask];
        if (s == QN_SLOT_NONE) {
            break;
        }
        if (m->slot[s].value == value) {
            return s;
        }
    }
    int32_t s = m->slot_count++;
    m->slot[s] = (struct qn_model_slot){
        .value = value, .writer = -1, .chain = -1, .next = -1};
    m->table[at & m->table_mask] = s;
    return s;
}

/* ---- operations ---- */

static void need_value(struct qn_model *m, struct qn_model_op *o, int64_t value)
{
    o->need = QN_NEED_VALUE;
    o->need_slot = slot_of(m, value);
}

static void write_value(struct qn_model *m, struct qn_model_op *o,
                        int64_t value)
{
    o->effect = QN_EFFECT_WRITE;
    o->value = value;
    o->slot = slot_of(m, value);
}

static void need_nil(struct qn_model_op *o)
{
    o->need = QN_NEED_NIL;
    o->need_slot = QN_SLOT_NIL;
}

static void from_get(struct qn_model *m, struct qn_model_op *o,
                     const struct qn_record *r)
{
    if (r->outcome == QN_RECORD_NIL) {
        need_nil(o);
    } else {
        need_value(m, o, r->value);
    }
}

static void from_add(struct qn_model *m, struct qn_model_op *o,
                     const struct qn_record *r)
{
    if (r->outcome == QN_RECORD_FAILED) {
        o->need = QN_NEED_PRESENT;
    } else {
        need_nil(o);
        write_value(m, o, r->value);
    }
}

static void from_cas(struct qn_model *m, struct qn_model_op *o,
                     const struct qn_record *r)
{
    need_value(m, o, r->other);
    if (r->outcome == QN_RECORD_FAILED) {
        o->need = QN_NEED_OTHER;
    } else {
        write_value(m, o, r->value);
    }
}

static void from_del(struct qn_model_op *o, const struct qn_record *r)
{
    if (r->outcome == QN_RECORD_NIL) {
        need_nil(o);
    } else {
        o->need = QN_NEED_PRESENT;
        o->effect = QN_EFFECT_ERASE;
    }
}

static void from_incr(struct qn_model *m, struct qn_model_op *o,
                      const struct qn_record *r)
{
    if (r->outcome == QN_RECORD_UNKNOWN) {
        o->effect = QN_EFFECT_ADD;
        o->value = r->value;
        return;
    }
    if (r->other == r->value) {
        o->need = QN_NEED_ZERO;
    } else {
        uint64_t before = (uint64_t)r->other - (uint64_t)r->value;
        need_value(m, o, (int64_t)before);
    }
    write_value(m, o, r->other);
}

static void add_op(struct qn_model *m, const struct qn_record *r, uint32_t i)
{
    bool unknown = r->outcome == QN_RECORD_UNKNOWN;
    if (unknown && r->kind == QN_RECORD_GET) {
        return;
    }
    struct qn_model_op *o = &m->op[m->op_count++];
    *o = (struct qn_model_op){.inv = r->invoked,
                              .resp = unknown ? QN_TIME_NEVER : r->responded,
                              .need_slot = QN_SLOT_NONE,
                              .slot = QN_SLOT_NONE,
                              .record = i,
                              .must = !unknown};
    switch ((enum qn_record_kind)r->kind) {
    case QN_RECORD_GET:
        from_get(m, o, r);
        break;
    case QN_RECORD_SET:
        write_value(m, o, r->value);
        break;
    case QN_RECORD_ADD:
        from_add(m, o, r);
        break;
    case QN_RECORD_CAS:
        from_cas(m, o, r);
        break;
    case QN_RECORD_DEL:
        from_del(o, r);
        break;
    case QN_RECORD_INCR:
        from_incr(m, o, r);
        break;
    case QN_RECORD_KIND_COUNT:
        QN_ASSERT(false);
    }
}

static int by_inv(const void *a, const void *b)
{
    const struct qn_model_op *x = a;
    const struct qn_model_op *y = b;
    if (x->inv != y->inv) {
        return x->inv < y->inv ? -1 : 1;
    }
    return (x->record > y->record) - (x->record < y->record);
}

/* ---- class of the key ---- */

static enum qn_model_class classify(struct qn_model *m,
                                    const struct qn_record *records, size_t n)
{
    bool register_only = true;
    bool counter_only = true;
    for (size_t i = 0; i < n; i++) {
        const struct qn_record *r = &records[i];
        register_only &= r->kind != QN_RECORD_INCR;
        counter_only &=
            r->kind == QN_RECORD_GET ||
            (r->kind == QN_RECORD_INCR && r->value > 0 &&
             r->value <= STEP_MAX && r->other >= 0 && r->other <= COUNT_MAX);
    }
    for (uint32_t i = 0; i < m->op_count; i++) {
        const struct qn_model_op *o = &m->op[i];
        m->erases |= o->effect == QN_EFFECT_ERASE;
        m->conditions |=
            o->need == QN_NEED_OTHER ||
            (o->need == QN_NEED_PRESENT && o->effect == QN_EFFECT_KEEP);
        if (o->effect == QN_EFFECT_WRITE) {
            register_only &= m->slot[o->slot].writer < 0;
            m->slot[o->slot].writer = (int32_t)i;
        }
    }
    return register_only  ? QN_MODEL_REGISTER
           : counter_only ? QN_MODEL_COUNTER
                          : QN_MODEL_GENERAL;
}

bool qn_model_leaves_for_good(const struct qn_model *m, int32_t s)
{
    if (m->class == QN_MODEL_REGISTER) {
        return s != QN_SLOT_NIL || !m->erases;
    }
    return m->class == QN_MODEL_COUNTER;
}

/* Optional writers of values that were seen have happened. */
static void settle(struct qn_model *m)
{
    for (uint32_t i = 0; i < m->op_count; i++) {
        const struct qn_model_op *o = &m->op[i];
        while (o->must && o->need == QN_NEED_VALUE) {
            int32_t w = m->slot[o->need_slot].writer;
            if (w < 0 || m->op[w].must) {
                break;
            }
            m->op[w].must = true;
            o = &m->op[w];
        }
    }
}

static void count(struct qn_model *m)
{
    for (uint32_t i = 0; i < m->op_count; i++) {
        struct qn_model_op *o = &m->op[i];
        if (o->need == QN_NEED_ZERO && m->class == QN_MODEL_COUNTER) {
            need_nil(o); /* a counter that exists is above 0 */
        }
        if (o->need_slot == QN_SLOT_NONE) {
            continue;
        }
        if (o->need == QN_NEED_OTHER || !o->must) {
            m->slot[o->need_slot].mentions++;
        } else {
            m->slot[o->need_slot].readers++;
        }
    }
}

static int allocate(struct qn_model *m, size_t n)
{
    uint64_t slots = 2 * n + 1;
    m->table_mask = 7;
    while (m->table_mask < 2 * slots) {
        m->table_mask = 2 * m->table_mask + 1;
    }
    m->op = malloc((n + 1) * sizeof *m->op);
    m->slot = malloc(slots * sizeof *m->slot);
    m->table = malloc((m->table_mask + 1) * sizeof *m->table);
    if (m->op == NULL || m->slot == NULL || m->table == NULL) {
        qn_model_fini(m);
        return QN_ENOMEM;
    }
    memset(m->table, 0xff, (m->table_mask + 1) * sizeof *m->table);
    m->slot[QN_SLOT_NIL] =
        (struct qn_model_slot){.writer = -1, .chain = -1, .next = -1};
    m->slot_count = 1;
    return QN_OK;
}

int qn_model_init(struct qn_model *m, const struct qn_record *records, size_t n,
                  bool general)
{
    *m = (struct qn_model){0};
    int err = allocate(m, n);
    if (err != QN_OK) {
        return err;
    }
    for (size_t i = 0; i < n; i++) {
        add_op(m, &records[i], (uint32_t)i);
    }
    qsort(m->op, m->op_count, sizeof *m->op, by_inv);
    m->class = classify(m, records, n);
    if (general) {
        m->class = QN_MODEL_GENERAL;
    }
    if (m->class == QN_MODEL_REGISTER) {
        settle(m);
    }
    count(m);
    return QN_OK;
}

void qn_model_fini(struct qn_model *m)
{
    free(m->op);
    free(m->slot);
    free(m->chain);
    free(m->table);
    *m = (struct qn_model){0};
}
