#include "core/sim/explore/tso.h"

#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/sim/explore/explore_internal.h"

#define PENDING_MAX 128u /* stores in a buffer; beyond, the oldest go */
#define WORD        8u   /* bytes */

struct pending {
    uint8_t *at; /* shared */
    uint32_t len;
    bool streaming;
    uint8_t bytes[QN_CACHELINE];
};

/* In the order of the program. */
static struct buffer {
    uint32_t first, count; /* of pending, a ring */
    uint32_t streaming;    /* of them */
    struct pending pending[PENDING_MAX];
} buffer[QN_EXPLORE_NODES];

static struct pending *pending(struct buffer *b, uint32_t place)
{
    QN_DASSERT(place < b->count);
    return &b->pending[(b->first + place) % PENDING_MAX];
}

void qn_tso_reset(void)
{
    for (uint32_t i = 0; i < QN_EXPLORE_NODES; i++) {
        buffer[i].first = 0;
        buffer[i].count = 0;
        buffer[i].streaming = 0;
    }
}

/* A word is never in two orders. */
static bool meet(const struct pending *a, const struct pending *b)
{
    uintptr_t from_a = (uintptr_t)a->at / WORD,
              from_b = (uintptr_t)b->at / WORD;
    uintptr_t last_a = ((uintptr_t)a->at + a->len - 1) / WORD;
    uintptr_t last_b = ((uintptr_t)b->at + b->len - 1) / WORD;
    return from_a <= last_b && from_b <= last_a;
}

/* Not before an earlier store, unless one of both is a streaming one. */
static bool may_leave(struct buffer *b, uint32_t place)
{
    const struct pending *p = pending(b, place);
    for (uint32_t i = 0; i < place; i++) {
        const struct pending *earlier = pending(b, i);
        if ((!earlier->streaming && !p->streaming) || meet(earlier, p)) {
            return false;
        }
    }
    return true;
}

uint32_t qn_tso_leavers(uint32_t node, uint32_t *place)
{
    struct buffer *b = &buffer[node];
    uint32_t count = 0;
    /* All others are behind the oldest store that is not streaming. */
    uint32_t seen = b->streaming > 0 ? b->count : QN_MIN(b->count, 1u);
    for (uint32_t i = 0; i < seen; i++) {
        if (may_leave(b, i)) {
            QN_ASSERT(count < QN_TSO_LEAVERS);
            place[count++] = i;
        }
    }
    return count;
}

void qn_tso_at(uint32_t node, uint32_t place, struct qn_sim_access *out)
{
    const struct pending *p = pending(&buffer[node], place);
    *out = (struct qn_sim_access){
        .kind = QN_SIM_STORE, .at = p->at, .bytes = p->len};
}

void qn_tso_drain_one(uint32_t node, uint32_t place)
{
    struct buffer *b = &buffer[node];
    const struct pending *p = pending(b, place);
    memcpy(p->at, p->bytes, p->len);
    b->streaming -= p->streaming;
    for (uint32_t i = place; i > 0; i--) {
        *pending(b, i) = *pending(b, i - 1);
    }
    b->first = (b->first + 1) % PENDING_MAX;
    b->count--;
}

static void drain(uint32_t node)
{
    while (buffer[node].count > 0) {
        qn_tso_drain_one(node, 0);
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

/* The oldest store leaves for lack of room. */
static void leave(void)
{
    qn_tso_drain_one(qn_sim.self, 0);
    qn_explore_overflow();
}

/* The running node stores `len` bytes, at most a line. */
static void push(void *at, const void *bytes, size_t len, bool streaming)
{
    struct buffer *b = &buffer[qn_sim.self];
    if (b->count == PENDING_MAX) {
        leave();
    }
    b->count++;
    b->streaming += streaming;
    struct pending *p = pending(b, b->count - 1);
    QN_ASSERT(len <= sizeof p->bytes);
    p->at = at;
    p->len = (uint32_t)len;
    p->streaming = streaming;
    memcpy(p->bytes, bytes, len);
}

/* What the running node finds in memory: its own pending stores on top. */
static void copy_in(void *to, const void *from, size_t len)
{
    memcpy(to, from, len);
    struct buffer *b = &buffer[qn_sim.self];
    const uint8_t *low = from;
    for (uint32_t i = 0; i < b->count; i++) {
        const struct pending *p = pending(b, i);
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
    push((void *)at, bytes, n, false);
    if (order == memory_order_seq_cst) {
        sync_self();
    }
}

/* One more than may wait: all that is in front of the oldest leaves, too. */
static void stream(volatile void *at, const void *bytes, size_t n)
{
    struct buffer *b = &buffer[qn_sim.self];
    while (b->streaming == QN_EXPLORE_STREAMS) {
        leave();
    }
    push((void *)at, bytes, n, true);
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
        push((uint8_t *)at + i, (const uint8_t *)bytes + i, piece, false);
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
    .stream = stream,
    .latest = latest,
    .replace = replace,
    .fence = fence,
    .copy_in = copy_in,
    .copy_checked = copy_in,
    .copy_out = copy_out,
    .touch = touch,
    .sync = sync_call,
};
