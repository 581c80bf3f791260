/*
 * The voter's record: see record.h.
 *
 * A copy is written between two stores of its sequence: WRITING before the
 * first byte of it, its number after the last one. A process is killed between
 * two stores and never within one, and what it stored stays, in program order:
 * so a copy whose sequence is a number is whole, and one that says WRITING was
 * being written. The older copy goes, so at any moment one of them is the
 * newest record that was finished.
 *
 * The checksum is not needed for that. It finds a copy that is damaged in
 * another way, by a stray store. Then the answer is ECORRUPT even if the other
 * copy is good: the damaged one may be the newer, and a voter that forgets its
 * last vote may let two entries be chosen for one index (T16). Both copies are
 * written before a voter begins, and nothing whole has a sequence of 0: a page
 * that was zeroed is damaged like any other, and is not taken for a record that
 * was never written, or for one that is being written.
 *
 * Everything is encoded, little endian and without padding, so equal records
 * have equal bytes, and what is read is checked field by field (qn_ul_decode).
 */
#include "paxos/driver/vote_record.h"

#include <assert.h>
#include <stdalign.h>
#include <string.h>
#include <xxhash.h>

#include "core/base/atomic.h"
#include "core/base/little_endian.h"

#define VERSION     3u
#define WRITING     QN_VOTE_RECORD_WRITING
#define BALLOT      13u /* bytes of one */
#define VOTE        (4u + 2 * BALLOT + QN_UL_BYTES + 8u)
#define ENTRIES_MAX ((size_t)QN_UL_KEPT * QN_UL_BYTES)

struct copy {
    alignas(QN_CACHELINE) qn_a64 sequence; /* from 1; or WRITING: not whole */
    uint64_t checksum;                     /* XXH3-64 of all below, and of the
                                              sequence */
    uint32_t version;
    uint32_t count; /* entries */
    uint8_t vote[VOTE];
    uint8_t entries[ENTRIES_MAX];
};

static_assert(2 * sizeof(struct copy) <= QN_VOTE_RECORD_BYTES, "two copies");
static_assert(QN_VOTE_RECORD_BYTES % (2 * QN_CACHELINE) == 0, "both aligned");

static struct copy *copy_of(const void *area, size_t bytes, unsigned i)
{
    QN_ASSERT(bytes >= QN_VOTE_RECORD_BYTES);
    QN_ASSERT((uintptr_t)area % QN_CACHELINE == 0);
    size_t half = bytes / 2 / QN_CACHELINE * QN_CACHELINE;
    return (struct copy *)((uintptr_t)area + i * half);
}

static uint64_t checksum(const struct copy *c, uint64_t sequence)
{
    size_t n = offsetof(struct copy, entries) - offsetof(struct copy, version) +
               (size_t)c->count * QN_UL_BYTES;
    return XXH3_64bits_withSeed(&c->version, n, sequence);
}

/* ---- bytes ---- */

static uint8_t *put_ballot(uint8_t *to, const struct qn_ballot *b)
{
    qn_put_le(to, b->round, 4);
    to[4] = b->node;
    qn_put_le(to + 5, b->inc, 8);
    return to + BALLOT;
}

static const uint8_t *get_ballot(const uint8_t *from, struct qn_ballot *b)
{
    *b = (struct qn_ballot){.round = (uint32_t)qn_get_le(from, 4),
                            .node = from[4],
                            .inc = qn_get_le(from + 5, 8)};
    return from + BALLOT;
}

/** Everything but the sequence and the checksum. */
static void encode(struct copy *c, const struct qn_vote *v,
                   const struct qn_utility *u)
{
    QN_ASSERT(v->vbal.round <= v->bal.round);
    QN_ASSERT(u->lo <= v->index);
    c->version = VERSION;
    c->count = 0;
    qn_put_le(c->vote, v->index, 4);
    uint8_t *at = put_ballot(put_ballot(c->vote + 4, &v->bal), &v->vbal);
    memset(at, 0, QN_UL_BYTES);
    if (v->vbal.round != 0) {
        qn_ul_encode(&v->value, at);
    }
    qn_put_le(at + QN_UL_BYTES, v->since, 8);
    for (uint32_t i = u->lo; i < v->index; i++) {
        const struct qn_ul_entry *e = qn_utility_entry(u, i);
        QN_ASSERT(e != NULL);
        QN_ASSERT(e->index == i);
        QN_ASSERT(c->count < QN_UL_KEPT);
        qn_ul_encode(e, c->entries + (size_t)c->count++ * QN_UL_BYTES);
    }
}

static int decode_entries(const struct copy *c, uint32_t first,
                          struct qn_ul_entry *log)
{
    const struct qn_slice body = {c->entries, (size_t)c->count * QN_UL_BYTES};
    for (uint32_t i = 0; i < c->count; i++) {
        if (qn_ul_decode(&log[i], body, i) != QN_OK ||
            log[i].index != first + i) {
            return QN_ECORRUPT;
        }
    }
    return QN_OK;
}

static int decode(const struct copy *c, struct qn_vote *v,
                  struct qn_ul_entry *log)
{
    *v = (struct qn_vote){.index = (uint32_t)qn_get_le(c->vote, 4)};
    const uint8_t *at = get_ballot(get_ballot(c->vote + 4, &v->bal), &v->vbal);
    const struct qn_slice value = {at, QN_UL_BYTES};
    v->since = qn_get_le(at + QN_UL_BYTES, 8);
    if (v->vbal.round != 0 && (qn_ul_decode(&v->value, value, 0) != QN_OK ||
                               v->value.index != v->index)) {
        return QN_ECORRUPT;
    }
    return c->count <= v->index ? decode_entries(c, v->index - c->count, log)
                                : QN_ECORRUPT;
}

/* ---- the two copies ---- */

/** relaxed: the same process wrote it, or one that has ended. */
static uint64_t sequence_of(const struct copy *c)
{
    return qn_load(&c->sequence, QN_RELAXED);
}

/** The number of a copy that is whole; of any other one 0. */
static uint64_t number_of(const struct copy *c)
{
    uint64_t sequence = sequence_of(c);
    return sequence == WRITING ? 0 : sequence;
}

static void write(struct copy *c, uint64_t sequence, const struct qn_vote *vote,
                  const struct qn_utility *u)
{
    struct copy next; /* encoded here, so that memory sees bytes and no steps */
    encode(&next, vote, u);
    next.checksum = checksum(&next, sequence);
    size_t head = offsetof(struct copy, checksum);
    size_t n = offsetof(struct copy, entries) - head +
               (size_t)next.count * QN_UL_BYTES;
    /* A kill orders nothing but this thread's stores: these are for the
     * compiler. The next reader comes after this process has ended. */
    qn_store(&c->sequence, WRITING, QN_RELAXED);
    qn_fence(QN_RELEASE);
    qn_copy_out(&c->checksum, &next.checksum, n);
    qn_store(&c->sequence, sequence, QN_RELEASE);
}

void qn_vote_record_write(void *area, size_t bytes, const struct qn_vote *vote,
                          const struct qn_utility *u)
{
    struct copy *a = copy_of(area, bytes, 0), *b = copy_of(area, bytes, 1);
    uint64_t newest = QN_MAX(number_of(a), number_of(b));
    struct copy *c = number_of(a) <= number_of(b) ? a : b;
    write(c, newest + 1, vote, u);
}

/** A private copy: the memory may be garbage. @return true: it is whole. */
static bool take(const struct copy *from, uint64_t sequence, struct copy *c)
{
    qn_copy_in(c, from, sizeof *c); /* it has no writer any more */
    return c->version == VERSION && c->count <= QN_UL_KEPT &&
           c->checksum == checksum(c, sequence);
}

/** Is there anything in that copy, and is it damaged? */
static int look(const void *area, size_t bytes, unsigned i, struct copy *c,
                struct qn_vote *vote, struct qn_ul_entry *log)
{
    const struct copy *from = copy_of(area, bytes, i);
    uint64_t sequence = sequence_of(from);
    if (sequence == WRITING) {
        return QN_ENOENT;
    }
    return sequence != 0 && take(from, sequence, c) ? decode(c, vote, log)
                                                    : QN_ECORRUPT;
}

int qn_vote_record_read(const void *area, size_t bytes, struct qn_vote *vote,
                        struct qn_ul_entry *log, uint32_t cap, uint32_t *count)
{
    struct copy c;
    struct qn_vote v;
    QN_ASSERT(cap >= QN_UL_KEPT);
    bool second =
        number_of(copy_of(area, bytes, 0)) < number_of(copy_of(area, bytes, 1));
    int older = look(area, bytes, !second, &c, &v, log);
    int newer = look(area, bytes, second, &c, &v, log);
    if (older == QN_ECORRUPT || newer != QN_OK) {
        return QN_ECORRUPT;
    }
    *vote = v;
    *count = c.count;
    return QN_OK;
}

void qn_vote_record_renew(void *area, size_t bytes, const struct qn_vote *vote,
                          const struct qn_utility *u)
{
    /* The damaged copy goes last: while it is there, nothing else counts. In a
     * new area both are. */
    struct copy c;
    struct qn_vote v;
    struct qn_ul_entry log[QN_UL_KEPT];
    unsigned last = look(area, bytes, 1, &c, &v, log) == QN_ECORRUPT;
    write(copy_of(area, bytes, !last), 1, vote, u);
    write(copy_of(area, bytes, last), 2, vote, u);
}
