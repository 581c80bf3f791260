#include "core/base/assert.h"
#include "core/base/err.h"
#include "loadgen/verify/checker/model_internal.h"

#include <stdlib.h>

/*
 * Zones: violations that two values prove.
 *
 * A register holds a value that is written once for one span of time, and all
 * operations that saw the value fall into that span. Values exchanged for one
 * another (cas) follow each other directly, so a whole chain of them has one
 * uninterrupted span. Chain A must come before chain B if an operation of A
 * responded before one of B was invoked:
 *
 *     A -> B   iff   resp_min(A) < inv_max(B)
 *
 * An order of the chains exists iff this relation has no cycle, and a cycle
 * always contains one of length two: let A -> B and C -> D be two arrows of it;
 * if resp_min(A) <= resp_min(C), then A -> D, else C -> B, so any longer cycle
 * has a short cut (Gibbons and Korach prove it for single values).
 *
 *     forward zone    resp_min < inv_max: the register certainly had a value
 *                     of the chain all that time   [resp_min ... inv_max]
 *     backward zone   otherwise: one moment of   [inv_max ... resp_min]
 *                     is enough
 *
 * Two chains conflict iff both zones are forward and overlap, or one is
 * backward and inside the forward zone of the other. So after sorting, a walk
 * and a binary search find every conflict.
 *
 * "Absent" is a value like any other as long as nothing is deleted; it heads
 * its chain and comes first. With deletions it has many spans, and which
 * operation read which of them is left to the search, as are operations that
 * need "another value" or "any value". Those operations only add constraints,
 * so a conflict found here remains one.
 */

/* One span of one value: its writer and its readers. */
struct span {
    qn_time_t resp_min;
    qn_time_t inv_max;
    uint32_t resp_op;
    uint32_t inv_op;
};

struct zones {
    struct qn_model *m;
    struct span *span; /* [slot_count] */
    int32_t *forward;  /* [chain_count] forward chains by resp_min */
    int32_t forward_count;
    struct qn_linear_result *out;
};

static bool violation(struct zones *z, enum qn_anomaly reason, uint32_t a,
                      uint32_t b)
{
    z->out->verdict = QN_NOT_LINEARIZABLE;
    z->out->reason = reason;
    z->out->core[0] = z->m->op[a].record;
    z->out->core[1] = z->m->op[b].record;
    z->out->core_count = a == b ? 1 : 2;
    return false;
}

static bool interlock(struct zones *z, const struct qn_model_chain *a,
                      const struct qn_model_chain *b)
{
    violation(z, QN_ANOMALY_INTERLOCK, a->resp_op, a->inv_op);
    z->out->core[2] = z->m->op[b->resp_op].record;
    z->out->core[3] = z->m->op[b->inv_op].record;
    z->out->core[1] = z->m->op[a->inv_op].record;
    z->out->core_count = 4;
    return false;
}

/* ---- spans ---- */

static void widen(struct span *s, const struct qn_model_op *o, uint32_t i)
{
    if (o->resp < s->resp_min) {
        s->resp_min = o->resp;
        s->resp_op = i;
    }
    if (o->inv >= s->inv_max) {
        s->inv_max = o->inv;
        s->inv_op = i;
    }
}

/* Is this an operation that saw the value of its need_slot and kept it? */
static bool reads(const struct zones *z, const struct qn_model_op *o)
{
    return o->effect == QN_EFFECT_KEEP &&
           (o->need == QN_NEED_VALUE ||
            (o->need == QN_NEED_NIL && !z->m->erases));
}

static bool check_reader(struct zones *z, uint32_t i)
{
    const struct qn_model_op *o = &z->m->op[i];
    if (o->need == QN_NEED_NIL) {
        return true;
    }
    int32_t w = z->m->slot[o->need_slot].writer;
    if (w < 0) {
        return violation(z, QN_ANOMALY_PHANTOM, i, i);
    }
    if (o->resp < z->m->op[w].inv) {
        return violation(z, QN_ANOMALY_FUTURE, i, (uint32_t)w);
    }
    return true;
}

static bool fill_spans(struct zones *z)
{
    for (int32_t s = 0; s < z->m->slot_count; s++) {
        z->span[s] = (struct span){.resp_min = QN_TIME_NEVER};
    }
    for (uint32_t i = 0; i < z->m->op_count; i++) {
        const struct qn_model_op *o = &z->m->op[i];
        if (reads(z, o)) {
            if (!check_reader(z, i)) {
                return false;
            }
            widen(&z->span[o->need_slot], o, i);
        } else if (o->must && o->effect == QN_EFFECT_WRITE) {
            widen(&z->span[o->slot], o, i);
        }
    }
    return true;
}

/* ---- chains ---- */

/* Link each slot to the one that replaced it; false: two slots replaced the
 * same one. */
static bool link_slots(struct zones *z)
{
    struct qn_model *m = z->m;
    for (uint32_t i = 0; i < m->op_count; i++) {
        const struct qn_model_op *o = &m->op[i];
        bool exchange =
            o->need == QN_NEED_VALUE || (o->need == QN_NEED_NIL && !m->erases);
        if (!o->must || o->effect != QN_EFFECT_WRITE || !exchange) {
            continue;
        }
        struct qn_model_slot *from = &m->slot[o->need_slot];
        if (o->need == QN_NEED_VALUE && from->writer < 0) {
            return violation(z, QN_ANOMALY_PHANTOM, i, i);
        }
        if (from->next >= 0) {
            int32_t other = m->slot[from->next].writer;
            return violation(z, QN_ANOMALY_TWICE, (uint32_t)other, i);
        }
        from->next = o->slot;
    }
    return true;
}

/* Append slot s to chain c; false: an operation on s responded before an
 * operation on an earlier value of the chain was invoked. */
static bool append(struct zones *z, int32_t s, int32_t c)
{
    struct qn_model_chain *chain = &z->m->chain[c];
    const struct span *span = &z->span[s];
    if (span->resp_min < chain->inv_max) {
        return violation(z, QN_ANOMALY_CHAIN, span->resp_op, chain->inv_op);
    }
    if (span->resp_min < chain->resp_min) {
        chain->resp_min = span->resp_min;
        chain->resp_op = span->resp_op;
    }
    if (span->inv_max >= chain->inv_max) {
        chain->inv_max = span->inv_max;
        chain->inv_op = span->inv_op;
    }
    chain->mentions += z->m->slot[s].mentions;
    z->m->slot[s].chain = c;
    return true;
}

/* Does slot s begin a chain? */
static bool heads(const struct qn_model *m, int32_t s)
{
    if (s == QN_SLOT_NIL) {
        return !m->erases;
    }
    int32_t w = m->slot[s].writer;
    if (w < 0 || !m->op[w].must) {
        return false;
    }
    const struct qn_model_op *o = &m->op[w];
    return o->need == QN_NEED_NOTHING || (o->need == QN_NEED_NIL && m->erases);
}

static bool build_chains(struct zones *z)
{
    struct qn_model *m = z->m;
    for (int32_t head = 0; head < m->slot_count; head++) {
        if (!heads(m, head)) {
            continue;
        }
        int32_t c = m->chain_count++;
        m->chain[c] = (struct qn_model_chain){.resp_min = QN_TIME_NEVER};
        for (int32_t s = head; s >= 0; s = m->slot[s].next) {
            if (!append(z, s, c)) {
                return false;
            }
        }
    }
    /* Values in no chain were exchanged in a cycle. */
    for (uint32_t i = 0; i < m->op_count; i++) {
        const struct qn_model_op *o = &m->op[i];
        if (o->must && o->effect == QN_EFFECT_WRITE &&
            m->slot[o->slot].chain < 0) {
            return violation(z, QN_ANOMALY_CHAIN, i, i);
        }
    }
    return true;
}

/* ---- conflicts ---- */

static int compare_time(qn_time_t a, qn_time_t b)
{
    return (a > b) - (a < b);
}

static int by_resp(const void *a, const void *b, void *chains)
{
    const struct qn_model_chain *c = chains;
    return compare_time(c[*(const int32_t *)a].resp_min,
                        c[*(const int32_t *)b].resp_min);
}

/* If "absent" heads a chain, that chain must come before all others. */
static bool check_initial(struct zones *z)
{
    struct qn_model *m = z->m;
    int32_t first = m->slot[QN_SLOT_NIL].chain;
    if (first < 0) {
        return true;
    }
    for (int32_t c = 0; c < m->chain_count; c++) {
        if (c != first && m->chain[c].resp_min < m->chain[first].inv_max) {
            return interlock(z, &m->chain[first], &m->chain[c]);
        }
    }
    return true;
}

static bool check_forward(struct zones *z)
{
    struct qn_model *m = z->m;
    for (int32_t c = 0; c < m->chain_count; c++) {
        if (c != m->slot[QN_SLOT_NIL].chain &&
            m->chain[c].resp_min < m->chain[c].inv_max) {
            z->forward[z->forward_count++] = c;
        }
    }
    qsort_r(z->forward, (size_t)z->forward_count, sizeof *z->forward, by_resp,
            m->chain);
    for (int32_t i = 1; i < z->forward_count; i++) {
        const struct qn_model_chain *a = &m->chain[z->forward[i - 1]];
        const struct qn_model_chain *b = &m->chain[z->forward[i]];
        if (b->resp_min < a->inv_max) {
            return interlock(z, a, b);
        }
    }
    return true;
}

/* Last forward zone that begins before `time`; NULL: none. */
static const struct qn_model_chain *forward_before(const struct zones *z,
                                                   qn_time_t time)
{
    int32_t low = 0;
    int32_t high = z->forward_count;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (z->m->chain[z->forward[middle]].resp_min < time) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low == 0 ? NULL : &z->m->chain[z->forward[low - 1]];
}

static bool check_backward(struct zones *z)
{
    struct qn_model *m = z->m;
    for (int32_t c = 0; c < m->chain_count; c++) {
        const struct qn_model_chain *b = &m->chain[c];
        if (c == m->slot[QN_SLOT_NIL].chain || b->resp_min < b->inv_max) {
            continue;
        }
        const struct qn_model_chain *f = forward_before(z, b->inv_max);
        if (f != NULL && b->resp_min < f->inv_max) {
            return interlock(z, f, b);
        }
    }
    return true;
}

int qn_zones_check(struct qn_model *m, struct qn_linear_result *out)
{
    QN_ASSERT(m->class == QN_MODEL_REGISTER);
    size_t n = (size_t)m->slot_count;
    struct zones z = {.m = m, .out = out};
    z.span = calloc(n, sizeof *z.span);
    z.forward = malloc(n * sizeof *z.forward);
    m->chain = calloc(n, sizeof *m->chain);
    int err = QN_ENOMEM;
    if (z.span != NULL && z.forward != NULL && m->chain != NULL) {
        err = QN_OK;
        (void)(fill_spans(&z) && link_slots(&z) && build_chains(&z) &&
               check_initial(&z) && check_forward(&z) && check_backward(&z));
    }
    free(z.span);
    free(z.forward);
    return err;
}
