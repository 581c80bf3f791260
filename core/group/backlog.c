/*
 * A ring of entries over a ring of bytes.
 *
 * Entries are taken and given back in order, so a message is placed behind the
 * newest one, or at the start if it does not fit before the end. Why that
 * always works while the payload in the ring, the new message included, is at
 * most W = QN_ACKED_BYTES, with C = W + QN_MSG_MAX bytes of ring:
 *
 *   not wrapped   |......[head####tail)......|    len does not fit before C:
 *                 tail + len > C and tail - head <= W - len, so
 *                 head >= C - W = QN_MSG_MAX >= len: it fits at the start.
 *   wrapped       |###tail)......[head####~~~|    ~ wasted, < QN_MSG_MAX:
 *                 tail + (C - ~ - head) <= W - len, so
 *                 tail + len <= W - C + ~ + head <= head: it fits.
 *
 * Looking for a node's oldest entry walks at most QN_ACKED_COUNT entries; it
 * happens only for children that were too slow.
 */
#include "core/group/backlog_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"

static_assert((QN_ACKED_COUNT & (QN_ACKED_COUNT - 1)) == 0,
              "free-running indices are masked");

#define ENTRY(b, i) ((b)->entry[(i) & (QN_ACKED_COUNT - 1)])

int qn_backlog_init(struct qn_backlog *b)
{
    *b = (struct qn_backlog){.bytes = malloc(QN_BACKLOG_BYTES)};
    return b->bytes != NULL ? QN_OK : QN_ENOMEM;
}

void qn_backlog_fini(struct qn_backlog *b)
{
    free(b->bytes);
}

/* Where `len` contiguous bytes are free; false: nowhere. */
static bool place(const struct qn_backlog *b, size_t len, uint32_t *at)
{
    if (b->count == 0) {
        *at = 0;
        return len <= QN_BACKLOG_BYTES;
    }
    uint32_t last = b->first + b->count - 1;
    uint32_t head = ENTRY(b, b->first).at;
    uint32_t tail = ENTRY(b, last).at + ENTRY(b, last).len;
    if (tail > head) {
        *at = QN_BACKLOG_BYTES - tail >= len ? tail : 0;
        return *at == tail || len <= head;
    }
    *at = tail;
    return len <= head - tail;
}

bool qn_backlog_push(struct qn_backlog *b, const void *msg, size_t len,
                     uint64_t pending)
{
    QN_ASSERT(pending != 0 && len != 0);
    uint32_t at;
    if (b->count == QN_ACKED_COUNT || !place(b, len, &at)) {
        return false;
    }
    uint32_t i = b->first + b->count++;
    ENTRY(b, i).at = at;
    ENTRY(b, i).len = (uint32_t)len;
    ENTRY(b, i).pending = pending;
    memcpy(b->bytes + at, msg, len);
    b->lagging |= pending;
    return true;
}

/* Index of the oldest entry owed to `node`; the end if there is none. */
static uint32_t oldest(const struct qn_backlog *b, qn_node_t node)
{
    uint32_t i = b->first;
    while (i != b->first + b->count && (ENTRY(b, i).pending >> node & 1) == 0) {
        i++;
    }
    return i;
}

struct qn_slice qn_backlog_next(const struct qn_backlog *b, qn_node_t node)
{
    uint32_t i = oldest(b, node);
    QN_ASSERT(i != b->first + b->count);
    return (struct qn_slice){b->bytes + ENTRY(b, i).at, ENTRY(b, i).len};
}

static void drop_paid(struct qn_backlog *b)
{
    while (b->count > 0 && ENTRY(b, b->first).pending == 0) {
        b->first++;
        b->count--;
    }
}

void qn_backlog_pay(struct qn_backlog *b, qn_node_t node)
{
    uint32_t i = oldest(b, node);
    QN_ASSERT(i != b->first + b->count);
    ENTRY(b, i).pending &= ~(UINT64_C(1) << node);
    if (oldest(b, node) == b->first + b->count) {
        b->lagging &= ~(UINT64_C(1) << node);
    }
    drop_paid(b);
}

void qn_backlog_forget(struct qn_backlog *b, qn_node_t node)
{
    while ((b->lagging >> node & 1) != 0) {
        qn_backlog_pay(b, node);
    }
}
