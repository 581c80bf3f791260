#include "core/sim/explore/tso.h"

#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/sim/explore/explore.h"
#include "core/sim/explore/explore_internal.h"

#define PENDING_MAX 128u /* stores in a buffer; beyond, the oldest go */

struct pending {
    uint8_t *at; /* shared */
    uint32_t len;
    uint8_t bytes[QN_CACHELINE];
};

static struct buffer {
    uint32_t first, count; /* of pending, a FIFO ring */
    struct pending pending[PENDING_MAX];
} buffer[QN_EXPLORE_NODES];

void qn_tso_reset(void)
{
    for (uint32_t i = 0; i < QN_EXPLORE_NODES; i++) {
        buffer[i].first = 0;
        buffer[i].count = 0;
    }
}

uint32_t qn_tso_waiting(uint32_t node)
{
    return buffer[node].count;
}

void qn_tso_oldest(uint32_t node, struct qn_sim_access *out)
{
    const struct buffer *b = &buffer[node];
    QN_ASSERT(b->count > 0);
    const struct pending *p = &b->pending[b->first];
    *out = (struct qn_sim_access){
        .kind = QN_SIM_STORE, .at = p->at, .bytes = p->len};
}

void qn_tso_drain_one(uint32_t node)
{
    struct buffer *b = &buffer[node];
    if (b->count > 0) {
        const struct pending *p = &b->pending[b->first];
        memcpy(p->at, p->bytes, p->len);
        b->first = (b->first + 1) % PENDING_MAX;
        b->count--;
    }
}

static void drain(uint32_t node)
{
    while (buffer[node].count > 0) {
        qn_tso_drain_one(node);
    }
}

void qn_tso_drain_all(void)
{
    for (uint32_t i = 0; i < qn_sim.nodes; i++) {
        drain(i);
    }
}

static void sync_self(void)
{
    drain(qn_sim.self);
}

static void sync_call(const volatile void *word, int fd, bool gives)
{
    (void)word;
    (void)fd;
    (void)gives;
    sync_self();
}

/* The running node stores `len` bytes, at most a line. */
static void push(void *at, const void *bytes, size_t len)
{
    struct buffer *b = &buffer[qn_sim.self];
    if (b->count == PENDING_MAX) {
        qn_tso_drain_one(qn_sim.self);
        qn_explore_overflow();
    }
    struct pending *p = &b->pending[(b->first + b->count) % PENDING_MAX];
    QN_ASSERT(len <= sizeof p->bytes);
    p->at = at;
    p->len = (uint32_t)len;
    memcpy(p->bytes, bytes, len);
    b->count++;
}

/* What the running node finds in memory: its own pending stores on top. */
static void copy_in(void *to, const void *from, size_t len)
{
    memcpy(to, from, len);
    const struct buffer *b = &buffer[qn_sim.self];
    const uint8_t *low = from;
    for (uint32_t i = 0; i < b->count; i++) {
        const struct pending *p = &b->pending[(b->first + i) % PENDING_MAX];
        const uint8_t *at = p->at;
        const uint8_t *start = QN_MAX(low, at);
        const uint8_t *end = QN_MIN(low + len, at + p->len);
        if (start < end) {
            memcpy((uint8_t *)to + (start - low), p->bytes + (start - at),
                   (size_t)(end - start));
        }
    }
}

static void load(void *to, const volatile void *from, size_t n,
                 memory_order order)
{
    (void)order;
    copy_in(to, (const void *)from, n);
}

static void store(volatile void *at, const void *bytes, size_t n,
                  memory_order order)
{
    push((void *)at, bytes, n);
    if (order == memory_order_seq_cst) {
        sync_self();
    }
}

/* A read-modify-write of any order empties the buffer, as on x86. */
static void latest(void *to, const volatile void *from, size_t n,
                   memory_order order)
{
    (void)order;
    sync_self();
    memcpy(to, (const void *)from, n);
}

static void replace(volatile void *at, const void *bytes, size_t n,
                    memory_order order)
{
    (void)order;
    memcpy((void *)at, bytes, n);
}

static void fence(memory_order order)
{
    if (order == memory_order_seq_cst) {
        sync_self();
    }
}

static void copy_out(void *at, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i += QN_CACHELINE) {
        size_t piece = QN_MIN(n - i, (size_t)QN_CACHELINE);
        push((uint8_t *)at + i, (const uint8_t *)bytes + i, piece);
    }
}

static void touch(const void *at, size_t n, bool written)
{
    (void)at;
    (void)n;
    (void)written;
}

const struct qn_sim_memory qn_tso = {
    .load = load,
    .store = store,
    .latest = latest,
    .replace = replace,
    .fence = fence,
    .copy_in = copy_in,
    .copy_checked = copy_in,
    .copy_out = copy_out,
    .touch = touch,
    .sync = sync_call,
};
