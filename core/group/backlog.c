/*
 * A ring of entries over a ring of bytes.
 *
 * Entries are taken and given back in order, so a message is placed behind the
 * newest one, or at the start if it does not fit before the end. Why that
 * always works while the payload in the ring, the new message included, is at
 * most W = qn_backlog_window, with C = W + msg_max bytes of ring:
 *
 *   not wrapped   |......[head####tail)......|    len does not fit before C:
 *                 tail + len > C and tail - head <= W - len, so
 *                 head >= C - W = msg_max >= len: it fits at the start.
 *   wrapped       |###tail)......[head####~~~|    ~ wasted, < msg_max:
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

void qn_backlog_init(struct qn_backlog *b, struct qn_node_set lagging)
{
    *b = (struct qn_backlog){.lagging = lagging};
}

int qn_backlog_reserve(struct qn_backlog *b, uint32_t msg_max)
{
    QN_ASSERT(b->bytes == NULL);
    QN_ASSERT(qn_node_set_empty(&b->lagging));
    size_t sets = sizeof(uint64_t) * QN_ACKED_COUNT * b->lagging.words;
    b->size = qn_backlog_bytes(msg_max);
    b->pending = malloc(sets + b->size);
    if (b->pending == NULL) {
        return QN_ENOMEM;
    }
    b->bytes = (uint8_t *)b->pending + sets;
    return QN_OK;
}

void qn_backlog_fini(struct qn_backlog *b)
{
    free(b->pending);
}

/* The nodes that are owed entry i. */
static struct qn_node_set pending_of(const struct qn_backlog *b, uint32_t i)
{
    uint32_t words = b->lagging.words;
    return (struct qn_node_set){
        b->pending + (size_t)(i & (QN_ACKED_COUNT - 1)) * words, words};
}

/* Where `len` contiguous bytes are free; false: nowhere. */
static bool place(const struct qn_backlog *b, size_t len, uint32_t *at)
{
    if (b->count == 0) {
        *at = 0;
        return len <= b->size;
    }
    uint32_t last = b->first + b->count - 1;
    uint32_t head = ENTRY(b, b->first).at;
    uint32_t tail = ENTRY(b, last).at + ENTRY(b, last).len;
    if (tail > head) {
        *at = b->size - tail >= len ? tail : 0;
        return *at == tail || len <= head;
    }
    *at = tail;
    return len <= head - tail;
}

bool qn_backlog_push(struct qn_backlog *b, const void *msg, size_t len,
                     const struct qn_node_set *pending)
{
    QN_ASSERT(!qn_node_set_empty(pending));
    QN_ASSERT(len != 0);
    uint32_t at;
    if (b->count == QN_ACKED_COUNT || !place(b, len, &at)) {
        return false;
    }
    uint32_t i = b->first + b->count++;
    ENTRY(b, i).at = at;
    ENTRY(b, i).len = (uint32_t)len;
    struct qn_node_set owed = pending_of(b, i);
    qn_node_set_copy(&owed, pending);
    memcpy(b->bytes + at, msg, len);
    qn_node_set_unite(&b->lagging, pending);
    return true;
}

/* Index of the oldest entry owed to `node`; the end if there is none. */
static uint32_t oldest(const struct qn_backlog *b, qn_node_t node)
{
    for (uint32_t i = b->first; i != b->first + b->count; i++) {
        struct qn_node_set owed = pending_of(b, i);
        if (qn_node_set_has(&owed, node)) {
            return i;
        }
    }
    return b->first + b->count;
}

struct qn_slice qn_backlog_next(const struct qn_backlog *b, qn_node_t node)
{
    uint32_t i = oldest(b, node);
    QN_ASSERT(i != b->first + b->count);
    return (struct qn_slice){b->bytes + ENTRY(b, i).at, ENTRY(b, i).len};
}

static void drop_paid(struct qn_backlog *b)
{
    while (b->count > 0) {
        struct qn_node_set owed = pending_of(b, b->first);
        if (!qn_node_set_empty(&owed)) {
            return;
        }
        b->first++;
        b->count--;
    }
}

void qn_backlog_pay(struct qn_backlog *b, qn_node_t node)
{
    uint32_t i = oldest(b, node);
    QN_ASSERT(i != b->first + b->count);
    struct qn_node_set owed = pending_of(b, i);
    qn_node_set_remove(&owed, node);
    if (oldest(b, node) == b->first + b->count) {
        qn_node_set_remove(&b->lagging, node);
    }
    drop_paid(b);
}

void qn_backlog_forget(struct qn_backlog *b, qn_node_t node)
{
    while (qn_node_set_has(&b->lagging, node)) {
        qn_backlog_pay(b, node);
    }
}
