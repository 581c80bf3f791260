/*
 * The shared ring: ring.h describes its layout, and which process may do what.
 *
 * A seqlock whose sequence is the first slot kept. A reader does not ask "has
 * anything changed?" but "is my slot still kept?". So a writer that writes all
 * the time disturbs only the readers of what it overwrites.
 *
 *     R  lo, tenure:  relaxed store, then a release fence, then plain bytes, by
 *           the writer; plain bytes, then an acquire fence, then a relaxed
 * load, by the reader. If the reader has seen any byte of the new batch, the
 *           fences make the new `lo` visible to its second look.
 *     E  entry:  position, length and epoch, then `slot`, then `tenure`, both
 *           released; the reader acquires them the other way round. If it finds
 *           its slot and the present tenure, the rest belongs to that entry, or
 *           to the entry of a later slot, for which R raised `lo`.
 *
 * Laps. Positions grow with slots within a lap. A batch that does not fit
 * before the end of its lap begins the next lap at 0. The slots kept are in two
 * laps:
 *
 *     positions   0        at            limit
 *     this lap    |lap..end-1|  next ->     |
 *     lap before             |hit..lap-1 ...  |
 *                                             top
 *
 * The argument [A]. (1) Slots lap .. end - 1 lie below `at`, in order, without
 * overlap. Slots hit .. lap - 1 lie at or above `at` and below `top`, likewise.
 * Slots lo .. hit - 1, if there are any, lie between and are never written to
 * while this lap lasts. (2) A write to [at, at + len) of this lap can only meet
 * slots hit, hit + 1, ..., in order, and the first one that begins behind it
 * ends the search: `hit` passes the slots that are met, and lo = hit. (3) A
 * longer lap continues behind `top`, where nothing lies: it meets nothing more,
 * so hit = lap, and `lo` stays. (4) A new lap overwrites slots of this one, all
 * of which are newer than those of the lap before, and the slots kept are
 * consecutive. So every slot below `lap` goes first, whether it is overwritten
 * or not; then (2) holds with hit = the first slot of the lap that has ended.
 * (5) Slots up to `end - slots` go, because their entries are overwritten. Each
 * of these steps raises `lo` before the write (R), so a slot that is still kept
 * at the second look was whole at the first. (6) A ring that is begun anew
 * forgets everything. Entries of the last tenure are void, so (1) to (5) hold
 * from its first slot on.
 *
 * Everything that is read is copied first and checked then: another process
 * owns the memory, and that process may be wild. At worst a reader gets bytes
 * that are no batch, and qn_batch_check says so.
 *
 * Why not offsets that count for ever and are masked? Batches would be split at
 * the end, and the length could not change.
 */
#include "paxos/log/ring.h"

#include <assert.h>
#include <stdalign.h>

#include "core/base/assert.h"
#include "paxos/mutant.h"

#define ASK_STEP (UINT64_C(128) << 10) /* bytes of memory in a call: 40 us */
#define ASK_MOST (UINT64_C(16) << 20)  /* for a longer batch: 10 ms */

struct entry {
    qn_a64 slot;   /* E */
    qn_a32 tenure; /* E; of the ring when it was written, from 1 */
    qn_a32 at;     /* position of its bytes */
    qn_a32 len;
    qn_a32 epoch;
};

struct qn_ring_shared {
    alignas(QN_CACHELINE) qn_a64 lo; /* R; written by the owner, as all here */
    qn_a32 tenure;                   /* R; how often it was begun */
    alignas(QN_CACHELINE) struct entry entry[];
};

static_assert(sizeof(struct entry) == 24, "three megabytes for 131072 slots");

size_t qn_ring_bytes(uint32_t slots, uint64_t capacity)
{
    size_t index = sizeof(struct qn_ring_shared) + slots * sizeof(struct entry);
    return qn_align_up(index, QN_CACHELINE) + capacity;
}

static uint8_t *bytes_of(const struct qn_ring *r)
{
    return (uint8_t *)r->shared + qn_ring_bytes(r->o.slots, 0);
}

static struct entry *entry_of(const struct qn_ring *r, qn_slot_t slot)
{
    return &r->shared->entry[slot & (r->o.slots - 1)];
}

void qn_ring_open(struct qn_ring *r, void *mem, const struct qn_ring_opts *o)
{
    QN_ASSERT(qn_is_pow2(o->slots));
    QN_ASSERT(o->capacity > 0);
    QN_ASSERT(o->capacity <= UINT32_MAX); /* positions are 32 bits wide */
    *r = (struct qn_ring){
        .shared = mem, .o = *o, .lo = 1, .end = 1, .lap = 1, .hit = 1};
    r->o.span = o->span == 0 ? o->capacity : QN_MIN(o->span, o->capacity);
    r->o.keep = o->keep == 0 ? o->capacity : QN_MIN(o->keep, o->capacity);
    r->o.keep = QN_MAX(r->o.keep, r->o.span);
    r->memory = o->grow == NULL ? o->capacity : 0;
    r->limit = r->o.span;
}

qn_slot_t qn_ring_lo(const struct qn_ring *r)
{
    /* acquire: for callers that compare it with what they have read before. */
    return qn_load(&r->shared->lo, QN_ACQUIRE);
}

/* ---- the writer: where to ---- */

static uint64_t position(const struct qn_ring *r, qn_slot_t slot)
{
    return qn_load(&entry_of(r, slot)->at, QN_RELAXED); /* relaxed: own store */
}

/** First slot of [from, to) that lies at or above `end`. */
static qn_slot_t pass(const struct qn_ring *r, qn_slot_t from, qn_slot_t to,
                      uint64_t end)
{
    while (from < to && position(r, from) < end) {
        from++;
    }
    return from;
}

/** First slot whose entry survives the next one (5). */
static qn_slot_t entries_lo(const struct qn_ring *r)
{
    qn_slot_t lo = r->end >= r->o.slots ? r->end - r->o.slots + 1 : 0;
    return QN_MAX(lo, r->lo);
}

/** Go on in this lap (2). */
static struct qn_ring_place stay(const struct qn_ring *r, size_t len)
{
    qn_slot_t lo = entries_lo(r);
    qn_slot_t hit = QN_MIN(QN_MAX(r->hit, lo), r->lap);
    qn_slot_t to = pass(r, hit, r->lap, r->at + len);
    return (struct qn_ring_place){.at = r->at,
                                  .limit = r->limit,
                                  .hit = to,
                                  .lo = to != hit ? QN_MAX(to, lo) : lo,
                                  .len = len};
}

/** Make this lap longer (3). */
static struct qn_ring_place extend(const struct qn_ring *r, size_t len,
                                   uint64_t most)
{
    qn_slot_t lo = entries_lo(r);
    bool met = QN_MAX(r->hit, lo) >= r->lap; /* nothing is in the way */
    uint64_t at = met ? r->at : QN_MAX(r->at, r->top);
    uint64_t limit = QN_MAX(2 * r->limit, at + len);
    return (struct qn_ring_place){.at = at,
                                  .limit =
                                      QN_MIN(limit, QN_MAX(most, r->limit)),
                                  .hit = r->lap,
                                  .lo = lo,
                                  .len = len};
}

/** Bytes of the next lap: four times what the slowest reader still has to
 *  read. */
static uint64_t lap_bytes(const struct qn_ring *r, size_t len, qn_slot_t all)
{
    uint64_t behind = 0;
    if (all < r->lap) {
        behind = r->o.keep;
    } else if (all < r->end) {
        behind = r->at - position(r, all);
    }
    uint64_t limit = r->o.span;
    while (limit < 4 * behind && limit < r->o.keep) {
        limit *= 2;
    }
    return QN_MAX(QN_MIN(limit, r->o.keep), len);
}

/** Begin a lap (4). */
static struct qn_ring_place turn(const struct qn_ring *r, size_t len,
                                 qn_slot_t all, uint64_t most)
{
    qn_slot_t lo = QN_MAX(entries_lo(r), r->lap);
    qn_slot_t hit = pass(r, QN_MIN(lo, r->end), r->end, len);
    return (struct qn_ring_place){.at = 0,
                                  .limit = QN_MIN(lap_bytes(r, len, all), most),
                                  .hit = hit,
                                  .lo = QN_MAX(lo, hit),
                                  .len = len,
                                  .turn = true};
}

/** The place for `len` bytes when no position from `most` on may be used. If
 *  there is a place where no reader loses a slot that it needs, it is that
 *  one. @return false: there is none. */
static bool choose(const struct qn_ring *r, size_t len, qn_slot_t all,
                   uint64_t most, struct qn_ring_place *out)
{
    all = all < entries_lo(r) ? UINT64_MAX
                              : all; /* the ring has lost it already */
    bool here = r->at + len <= QN_MIN(r->limit, most);
    struct qn_ring_place p = here ? stay(r, len) : turn(r, len, all, most);
    if (len > most) {
        return false;
    }
    *out = p;
    if (p.lo <= all) {
        return true;
    }
    p = extend(r, len, most);
    if (p.at + len <= most) {
        *out = p;
    }
    return true;
}

/** First position that a batch of `len` bytes may not use. Slots that are
 *  needed may be in the way of a long batch: then the writer waits. */
static uint64_t bound(const struct qn_ring *r, size_t len)
{
    return QN_MIN(QN_MAX(r->o.keep, len), r->o.capacity);
}

bool qn_ring_fits(const struct qn_ring *r, size_t len, struct qn_ring_need need)
{
    struct qn_ring_place p;
    return choose(r, len, need.all, bound(r, len), &p) && p.lo <= need.own;
}

/** Ask for memory up to the end of the place, and some more, because each
 *  call is a system call. But ask for little in one turn: a new leader writes
 *  its first batch while all clients wait for it. */
static int ask(struct qn_ring *r, const struct qn_ring_place *p)
{
    uint64_t bytes = QN_MAX(p->at + p->len, r->memory + ASK_STEP);
    bytes = QN_MIN(bytes, QN_MAX(p->limit, p->at + p->len));
    bytes = QN_MIN(bytes, r->memory + ASK_MOST);
    int rc = r->o.grow(r->o.ctx, qn_ring_bytes(r->o.slots, bytes));
    if (rc == QN_OK) {
        r->memory = bytes;
    }
    r->refused = rc != QN_OK;
    return rc;
}

int qn_ring_reserve(struct qn_ring *r, size_t len, struct qn_ring_need need)
{
    struct qn_ring_place p;
    uint64_t most = bound(r, len);
    r->place = (struct qn_ring_place){.len = 0};
    if (r->refused && len <= r->memory) {
        most = r->memory; /* not asked for twice in a lap */
    }
    if (!choose(r, len, need.all, most, &p)) {
        return QN_ENOMEM;
    }
    if (p.lo <= need.own && p.at + len > r->memory && ask(r, &p) != QN_OK &&
        !choose(r, len, need.all, r->memory, &p)) {
        return QN_ENOMEM;
    }
    if (p.lo > need.own || p.at + len > r->memory) {
        return QN_EAGAIN;
    }
    QN_ASSERT(p.lo >= r->lo);         /* M7 */
    QN_ASSERT(p.at + len <= p.limit); /* within its lap */
    QN_ASSERT(p.at + len <= r->memory);
    r->place = p;
    return QN_OK;
}

/* ---- the writer: writing ---- */

static void raise_lo(struct qn_ring *r, qn_slot_t lo)
{
    QN_ASSERT(lo >= r->lo); /* M7 */
    r->lo = lo;
    qn_store(&r->shared->lo, lo, QN_RELAXED); /* R */
    qn_fence(QN_RELEASE);                     /* R: before the bytes */
}

void qn_ring_begin(struct qn_ring *r, qn_slot_t lo)
{
    uint32_t tenure = qn_load(&r->shared->tenure, QN_RELAXED); /* own store */
    r->tenure = tenure != 0 && QN_MUTANT(RING_TENURE) ? tenure : tenure + 1;
    qn_store(&r->shared->tenure, r->tenure, QN_RELAXED); /* R */
    raise_lo(r, lo);
    r->end = r->lap = r->hit = lo;
    r->at = r->top = 0;
    r->limit = r->o.span;
    r->refused = false;
}

static void put_entry(struct qn_ring *r, qn_slot_t slot, qn_epoch_t epoch,
                      size_t len)
{
    struct entry *e = entry_of(r, slot);
    qn_store(&e->at, (uint32_t)r->at, QN_RELAXED); /* E, all three */
    qn_store(&e->len, (uint32_t)len, QN_RELAXED);
    qn_store(&e->epoch, epoch, QN_RELAXED);
    qn_store(&e->slot, slot, QN_RELEASE);        /* E */
    qn_store(&e->tenure, r->tenure, QN_RELEASE); /* E */
}

/** Take the place that was reserved. It may be given up again: then nothing
 *  lies there. */
static void enter(struct qn_ring *r)
{
    struct qn_ring_place *p = &r->place;
    if (p->turn) {
        r->top = r->at;
        r->lap = r->end;
        r->refused = false;
    }
    r->at = p->at;
    r->limit = p->limit;
    r->hit = p->hit;
    p->taken = true;
    if (!QN_MUTANT(RING_LATE)) {
        raise_lo(r, p->lo);
    }
}

size_t qn_ring_put(struct qn_ring *r, struct qn_slice batch, size_t most)
{
    struct qn_ring_place *p = &r->place;
    QN_ASSERT(batch.len <= p->len);
    QN_ASSERT(p->done <= batch.len);
    if (!p->taken) {
        enter(r);
    }
    size_t n = QN_MIN(most, batch.len - p->done);
    if (n != 0) { /* announced elsewhere */
        qn_copy_out(bytes_of(r) + r->at + p->done, batch.data + p->done, n);
    }
    p->done += n;
    return batch.len - p->done;
}

void qn_ring_write(struct qn_ring *r, qn_slot_t slot, qn_epoch_t epoch,
                   struct qn_slice batch)
{
    QN_ASSERT(slot == r->end);
    (void)qn_ring_put(r, batch, batch.len);
    put_entry(r, slot, epoch, batch.len);
    if (QN_MUTANT(RING_LATE)) {
        raise_lo(r, r->place.lo);
    }
    r->at += batch.len;
    r->end = slot + 1;
    QN_ASSERT(r->at <= r->limit);
    QN_ASSERT(r->end - r->lo <= r->o.slots); /* one entry for each slot kept */
    QN_ASSERT(r->lap < r->end);
    r->place = (struct qn_ring_place){.len = 0};
}

/* ---- readers ---- */

/** @return true: the entry of `slot`, within bounds. */
static bool find(const struct qn_ring *r, qn_slot_t slot,
                 struct qn_ring_copy *c)
{
    const struct entry *e = entry_of(r, slot);
    c->tenure = qn_load(&r->shared->tenure, QN_ACQUIRE); /* R: before */
    if (qn_ring_lo(r) > slot ||
        qn_load(&e->tenure, QN_ACQUIRE) != c->tenure || /* E */
        qn_load(&e->slot, QN_ACQUIRE) != slot) {        /* E */
        return false;
    }
    c->at = qn_load(&e->at, QN_RELAXED); /* E, all three */
    c->len = qn_load(&e->len, QN_RELAXED);
    c->epoch = qn_load(&e->epoch, QN_RELAXED);
    return c->tenure != 0 && (uint64_t)c->at + c->len <= r->o.capacity;
}

/** The second look. */
static bool still_kept(const struct qn_ring *r, const struct qn_ring_copy *c)
{
    qn_fence(QN_ACQUIRE); /* R: after the bytes */
    return QN_MUTANT(RING_NO_LOOK) ||
           (qn_load(&r->shared->lo, QN_RELAXED) <= c->slot && /* R */
            qn_load(&r->shared->tenure, QN_RELAXED) == c->tenure);
}

int qn_ring_read_begin(const struct qn_ring *r, qn_slot_t slot,
                       const struct qn_alloc *a, struct qn_ring_copy *c)
{
    *c = (struct qn_ring_copy){.slot = slot};
    if (!find(r, slot, c)) {
        return QN_EAGAIN;
    }
    c->batch = qn_refbuf_create(a, c->len);
    return c->batch != NULL ? QN_OK : QN_ENOMEM;
}

int64_t qn_ring_read_some(const struct qn_ring *r, struct qn_ring_copy *c,
                          size_t most)
{
    struct qn_refbuf *b = c->batch;
    QN_ASSERT(b->refs == 1); /* the copy is not shared yet */
    QN_ASSERT(b->len <= c->len);
    size_t n = QN_MIN(most, (size_t)(c->len - b->len));
    qn_copy_in_checked(b->bytes + b->len, bytes_of(r) + c->at + b->len,
                       n); /* by R */
    b->len += (uint32_t)n;
    if (!still_kept(r, c)) {
        qn_ring_copy_drop(c);
        return QN_EAGAIN;
    }
    return c->len - b->len;
}

void qn_ring_copy_drop(struct qn_ring_copy *c)
{
    qn_refbuf_unref(c->batch);
    c->batch = NULL;
}

int qn_ring_read(const struct qn_ring *r, qn_slot_t slot,
                 const struct qn_alloc *a, qn_epoch_t *epoch,
                 struct qn_refbuf **out)
{
    struct qn_ring_copy c;
    int rc = qn_ring_read_begin(r, slot, a, &c);
    if (rc == QN_OK && qn_ring_read_some(r, &c, SIZE_MAX) < 0) {
        rc = QN_EAGAIN;
    }
    if (rc == QN_OK) {
        *epoch = c.epoch;
        *out = c.batch;
    }
    return rc;
}
