/*
 * The log: see log.h.
 *
 * Slots are masked into a ring whose window starts at `lo`. A slot's number is
 * not stored: its place says it. The window moves only in qn_log_drop. Bytes
 * are counted as allocated, so LOG_BYTES bounds memory and not content.
 */
#include "paxos/log/log.h"

#include <string.h>

void qn_log_init(struct qn_log *log, struct qn_log_entry *ring, uint32_t slots)
{
    QN_ASSERT(qn_is_pow2(slots));
    *log = (struct qn_log){.ring = ring, .mask = slots - 1, .lo = 1, .end = 1};
}

void qn_log_fini(struct qn_log *log)
{
    for (uint64_t i = 0; i <= log->mask; i++) {
        if (log->ring[i].batch != NULL) {
            qn_refbuf_unref(log->ring[i].batch);
            log->ring[i] = (struct qn_log_entry){0};
        }
    }
    log->bytes = 0;
}

bool qn_entry_is(const struct qn_log_entry *e, struct qn_slice batch)
{
    const struct qn_refbuf *b = e->batch;
    return b != NULL && b->len == batch.len &&
           (b->bytes == batch.data ||
            memcmp(b->bytes, batch.data, batch.len) == 0);
}

static void clear(struct qn_log *log, struct qn_log_entry *e)
{
    if (e->batch != NULL) {
        QN_ASSERT(log->bytes >= e->batch->cap);
        log->bytes -= e->batch->cap;
        qn_refbuf_unref(e->batch);
    }
    *e = (struct qn_log_entry){.sum = e->sum};
}

void qn_log_count(struct qn_log *log)
{
    struct qn_log_entry *e = qn_log_at(log, ++log->counted);
    QN_ASSERT(e->state == QN_SLOT_LEARNED);
    log->total += e->batch->len;
    e->sum = log->total;
    if (log->counted - log->from >
        log->mask) { /* the new slot has taken its entry */
        log->from++;
        log->base = log->ring[log->from & log->mask].sum;
    }
    QN_ASSERT(log->counted - log->from <= log->mask + 1);
}

void qn_log_count_from(struct qn_log *log, qn_slot_t slot)
{
    log->from = log->counted = slot;
    log->base = log->total;
}

uint64_t qn_log_bytes_above(const struct qn_log *log, qn_slot_t slot)
{
    if (slot >= log->counted) {
        return 0;
    }
    bool known = slot > log->from;
    uint32_t sum = known ? log->ring[slot & log->mask].sum : log->base;
    return log->total - sum;
}

void qn_log_put(struct qn_log *log, qn_slot_t slot, struct qn_refbuf *batch,
                enum qn_slot_state state)
{
    struct qn_log_entry *e = qn_log_at(log, slot);
    QN_ASSERT(e->state != QN_SLOT_LEARNED);
    QN_ASSERT(state != QN_SLOT_EMPTY);
    clear(log, e);
    *e = (struct qn_log_entry){.batch = batch, .state = state, .sum = e->sum};
    log->bytes += batch->cap;
    log->most = QN_MAX(log->most, log->bytes);
    log->end = QN_MAX(log->end, slot + 1);
    QN_ASSERT(log->end - log->lo <= log->mask + 1);
}

void qn_log_erase(struct qn_log *log, qn_slot_t slot)
{
    struct qn_log_entry *e = qn_log_at(log, slot);
    QN_ASSERT(e->state != QN_SLOT_LEARNED);
    clear(log, e);
}

void qn_log_clear(struct qn_log *log, qn_slot_t lo)
{
    for (qn_slot_t s = log->lo; s < log->end; s++) {
        clear(log, qn_log_at(log, s));
    }
    log->lo = log->end = lo;
}

void qn_log_cut(struct qn_log *log, qn_slot_t slot)
{
    QN_ASSERT(slot >= log->lo);
    for (; log->end > slot; log->end--) {
        clear(log, qn_log_at(log, log->end - 1));
    }
}

void qn_log_drop(struct qn_log *log, qn_slot_t slot, uint32_t limit)
{
    for (; log->lo < slot && limit != 0; log->lo++, limit--) {
        struct qn_log_entry *e = qn_log_at(log, log->lo);
        QN_ASSERT(e->state != QN_SLOT_PROPOSED);
        clear(log, e);
    }
    log->end = QN_MAX(log->end, log->lo);
    QN_DASSERT(log->bytes <= log->most);
}
