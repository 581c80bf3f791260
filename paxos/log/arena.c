/*
 * The upload arena: arena.h says what is shared.
 *
 *     F  first:  relaxed store, then a full fence, then plain bytes, by the
 *           writer; plain bytes, then an acquire fence, then a relaxed load, by
 *           the reader. If the reader has copied any byte of a later block, the
 *           fences make the `first` that freed the earlier block visible to its
 *           second look.
 *
 * Places. Blocks lie in the order of their indices, in at most two laps:
 *
 *     offsets     0            end             limit
 *     this lap    |lap..next-1|  next ->          |
 *     lap before                |first..lap-1 ...|
 *                               at              top
 *
 * The next block goes behind the last one if it ends before the lap before
 * begins, or behind `top`. If nothing is left of the lap before, it may begin a
 * lap. So no block lies behind one with a larger index, and the free bytes are
 * one range before `at` and one behind the last block. When nothing is left,
 * the next lap begins at 0 and is short again: a light load stays in the cache.
 */
#include "paxos/log/arena.h"

#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "paxos/mutant.h"

#define SPAN     (UINT64_C(256) << 10) /* a lap at first */
#define ASK_STEP (UINT64_C(1) << 20)   /* bytes of memory in a call */

struct qn_arena_shared {
    alignas(QN_CACHELINE) qn_a64 first; /* blocks below it have ended; F */
    alignas(QN_CACHELINE) uint8_t bytes[];
};

size_t qn_arena_bytes(uint64_t capacity)
{
    return sizeof(struct qn_arena_shared) + qn_align_up(capacity, QN_CACHELINE);
}

/* ---- the writer ---------------------------------------------------------- */

int qn_arena_begin(struct qn_arena *a, void *mem, const struct qn_arena_opts *o)
{
    *a = (struct qn_arena){.shared = mem,
                           .o = *o,
                           .first = 1,
                           .next = 1,
                           .lap = 1,
                           .limit = QN_MIN(SPAN, o->capacity),
                           .memory = o->grow == NULL ? o->capacity : 0};
    a->block = qn_alloc_zeroed(qn_alloc_or_malloc(o->alloc),
                               QN_ARENA_BLOCKS * sizeof *a->block);
    if (a->block == NULL) {
        return QN_ENOMEM;
    }
    qn_store(&a->shared->first, 1,
             QN_RELAXED); /* relaxed: no reader knows the arena yet */
    return QN_OK;
}

void qn_arena_end(struct qn_arena *a)
{
    qn_alloc_free(qn_alloc_or_malloc(a->o.alloc), a->block);
    a->block = NULL;
}

static struct qn_arena_block *block_of(const struct qn_arena *a, uint64_t index)
{
    return &a->block[index % QN_ARENA_BLOCKS];
}

/** Where the next block goes. @return false: nowhere. */
static bool choose(struct qn_arena *a, uint64_t len, uint64_t *at)
{
    bool two = a->first < a->lap; /* something of the lap before is left */
    uint64_t end = a->next == a->lap ? 0 : block_of(a, a->next - 1)->end;
    uint64_t oldest = block_of(a, a->first)->at;
    uint64_t top = two ? block_of(a, a->lap - 1)->end : 0;
    *at = end;
    if (two && end <= oldest && len <= oldest - end) {
        return true;
    }
    if (two && end < top) {
        *at = top;
    } else if (!two && end + len > a->limit && len <= oldest) {
        a->lap = a->next;
        *at = 0;
        return true;
    }
    if (*at + len > a->o.capacity) {
        return false;
    }
    if (a->limit < *at + len) { /* a little longer: touched memory stays */
        uint64_t more = QN_MAX(a->limit + a->limit / 4, *at + len);
        a->limit = QN_MIN(more, a->o.capacity);
    }
    return true;
}

static int ask(struct qn_arena *a, uint64_t end)
{
    uint64_t bytes = QN_MIN(qn_align_up(end, ASK_STEP), a->o.capacity);
    if (end <= a->memory) {
        return QN_OK;
    }
    int err = a->o.grow(a->o.ctx, qn_arena_bytes(bytes));
    a->memory = err == QN_OK ? bytes : a->memory;
    return err;
}

int qn_arena_add(struct qn_arena *a, uint64_t len, struct qn_arena_place *out)
{
    uint64_t at = 0;
    if (len > a->o.capacity) {
        return QN_EMSGSIZE;
    }
    if (a->next - a->first == QN_ARENA_BLOCKS) {
        return QN_EAGAIN;
    }
    if (a->first == a->next) {
        a->lap = a->next;
        a->limit = QN_MAX(QN_MIN(SPAN, a->o.capacity), len);
    } else if (!choose(a, len, &at)) {
        return QN_EAGAIN;
    }
    uint64_t end = QN_MIN(qn_align_up(at + len, QN_CACHELINE), a->o.capacity);
    if (ask(a, end) != QN_OK) {
        return QN_ENOMEM;
    }
    *out = (struct qn_arena_place){.index = a->next++, .at = at, .len = len};
    *block_of(a, out->index) = (struct qn_arena_block){at, end};
    a->used += end - at;
    a->most = QN_MAX(a->most, a->used);
    QN_ASSERT(end <= a->o.capacity);
    QN_ASSERT(a->used <= a->o.capacity); /* blocks do not overlap */
    QN_ASSERT(a->next - a->first <= QN_ARENA_BLOCKS);
    QN_ASSERT(a->lap < a->next);
    return QN_OK;
}

uint8_t *qn_arena_at(const struct qn_arena *a, const struct qn_arena_place *p)
{
    QN_ASSERT(p->index >= a->first);
    QN_ASSERT(p->index < a->next); /* the block has not ended */
    return a->shared->bytes + p->at;
}

void qn_arena_undo(struct qn_arena *a)
{
    QN_ASSERT(a->first < a->next);
    const struct qn_arena_block *b = block_of(a, --a->next);
    QN_ASSERT(a->used >= b->end - b->at);
    a->used -= b->end - b->at;
    a->lap = QN_MIN(a->lap, a->next);
}

void qn_arena_free(struct qn_arena *a)
{
    QN_ASSERT(a->first < a->next);
    const struct qn_arena_block *b = block_of(a, a->first++);
    QN_ASSERT(a->used >= b->end - b->at);
    a->used -= b->end - b->at;
    uint64_t said = a->first - (QN_MUTANT(ARENA_LATE) ? 1 : 0);
    qn_store(&a->shared->first, said, QN_RELAXED); /* F */
    qn_fence(QN_SEQ_CST);                          /* F */
}

/* ---- readers ------------------------------------------------------------- */

void qn_arena_open(struct qn_arena *a, const void *mem, uint64_t capacity)
{
    /* Nothing is written through it. */
    *a = (struct qn_arena){.shared = (void *)(uintptr_t)mem,
                           .o = {.capacity = capacity}};
}

bool qn_arena_is_sane(const struct qn_arena *a, const struct qn_arena_place *p)
{
    return p->len <= a->o.capacity && p->at <= a->o.capacity - p->len &&
           p->index != 0;
}

int qn_arena_pull(const struct qn_arena *a, const struct qn_arena_place *p,
                  uint64_t from, void *to, size_t n)
{
    QN_ASSERT(from <= p->len);
    QN_ASSERT(n <= p->len - from);
    if (!qn_arena_is_sane(a, p)) {
        return QN_ECORRUPT;
    }
    if (n != 0) { /* checked by F */
        qn_copy_in_checked(to, a->shared->bytes + p->at + from, n);
    }
    qn_fence(QN_ACQUIRE);                                           /* F */
    bool left = qn_load(&a->shared->first, QN_RELAXED) <= p->index; /* F */
    return left || QN_MUTANT(ARENA_NO_LOOK) ? QN_OK : QN_ESTALE;
}
