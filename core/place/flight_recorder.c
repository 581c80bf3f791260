/*
 * The flight recorder.
 *
 * A sequence lock per entry would cost a quarter of each entry; with one writer
 * that goes round in order, two counters say the same of all entries at once:
 *
 *     note(i):  begun = i + 1    entry    done = i + 1
 *     read:     done, entries [done - n, done), begun
 *
 * An entry below `done` is whole. While a reader copies it, it can only be
 * hurt by a note that is a lap later; that one raised `begun` before it
 * touched the entry, so a reader that has seen a word of it sees `begun` too:
 * each word is stored with release and loaded with acquire. Hence entries that
 * `begun` says may have been overwritten by now are dropped, from the front,
 * where they all are. On x86 none of this costs an instruction.
 *
 * A writer that is killed between the two leaves begun = done + 1: one entry of
 * n is lost, the oldest, whose place was being written.
 */
#include "core/place/flight_recorder.h"

#include <assert.h>

#include "core/base/assert.h"
#include "core/base/bits.h"

enum { TIME, WHAT, SLOT, A, WORDS };

struct qn_flight_recorder_ring {
    alignas(QN_CACHELINE) qn_a64 begun;
    qn_a64 done;
    qn_a64 born_ms;
    alignas(QN_CACHELINE) qn_a64 entry[][WORDS];
};
static_assert(sizeof(struct qn_flight_recorder_ring) == QN_CACHELINE, "line 0");
static_assert(sizeof(qn_a64[WORDS]) == QN_FLIGHT_ENTRY, "entry");

static uint64_t what_pack(const struct qn_flight_event *e)
{
    return (uint64_t)e->epoch << 32 | (uint64_t)e->b << 16 |
           (uint64_t)e->node << 8 | e->kind;
}

static void what_unpack(uint64_t what, struct qn_flight_event *e)
{
    e->kind = (uint8_t)what;
    e->node = (uint8_t)(what >> 8);
    e->b = (uint16_t)(what >> 16);
    e->epoch = (uint32_t)(what >> 32);
}

void qn_flight_recorder_init(struct qn_flight_recorder *f, void *mem,
                             uint32_t entries, uint64_t born_ms)
{
    QN_ASSERT(entries != 0 && (entries & (entries - 1)) == 0);
    QN_ASSERT((uintptr_t)mem % QN_CACHELINE == 0);
    *f = (struct qn_flight_recorder){.ring = mem, .mask = entries - 1};
    /* relaxed: a number of its own. */
    qn_store(&f->ring->born_ms, born_ms, QN_RELAXED);
}

void qn_flight_recorder_note(struct qn_flight_recorder *f,
                             const struct qn_flight_event *e)
{
    struct qn_flight_recorder_ring *r = f->ring;
    qn_a64 *word = r->entry[f->count & f->mask];
    /* relaxed: the stores below publish it (R1). */
    qn_store(&r->begun, f->count + 1, QN_RELAXED);
    /* release -> acquire of the same words in qn_flight_recorder_read (R1): a
     * reader that sees one of them sees `begun`. */
    qn_store(&word[TIME], e->time, QN_RELEASE);
    qn_store(&word[WHAT], what_pack(e), QN_RELEASE);
    qn_store(&word[SLOT], e->slot, QN_RELEASE);
    qn_store(&word[A], e->a, QN_RELEASE);
    f->count++;
    /* release -> acquire in qn_flight_recorder_read (R2): the entry is whole.
     */
    qn_store(&r->done, f->count, QN_RELEASE);
}

/* How many entries at the front may have been overwritten by now. */
static uint32_t overwritten(const struct qn_flight_recorder_ring *r,
                            uint32_t entries, uint64_t first, uint32_t n)
{
    /* relaxed: behind the acquire loads of the words (R1). */
    uint64_t begun = qn_load(&r->begun, QN_RELAXED);
    uint64_t lo = begun > entries ? begun - entries : 0;
    return lo <= first ? 0 : (uint32_t)QN_MIN(lo - first, (uint64_t)n);
}

uint32_t qn_flight_recorder_read(const void *mem, uint32_t entries,
                                 struct qn_flight_event *out)
{
    const struct qn_flight_recorder_ring *r = mem;
    uint64_t done = qn_load(&r->done, QN_ACQUIRE); /* R2 */
    uint32_t n = (uint32_t)QN_MIN(done, (uint64_t)entries);
    uint64_t first = done - n;
    for (uint32_t i = 0; i < n; i++) {
        const qn_a64 *word = r->entry[(first + i) & (entries - 1)];
        out[i].index = first + i;
        out[i].time = qn_load(&word[TIME], QN_ACQUIRE); /* R1 */
        what_unpack(qn_load(&word[WHAT], QN_ACQUIRE), &out[i]);
        out[i].slot = qn_load(&word[SLOT], QN_ACQUIRE);
        out[i].a = qn_load(&word[A], QN_ACQUIRE);
    }
    uint32_t lost = overwritten(r, entries, first, n);
    for (uint32_t i = lost; lost != 0 && i < n; i++) {
        out[i - lost] = out[i];
    }
    return n - lost;
}

uint64_t qn_flight_recorder_started_ms(const void *mem)
{
    const struct qn_flight_recorder_ring *r = mem;
    return qn_load(&r->born_ms, QN_RELAXED); /* one number */
}
