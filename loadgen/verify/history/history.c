#include "loadgen/verify/history/history.h"

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"

#include <stdlib.h>
#include <string.h>

/*
 * A record is written once, in place, by the thread that owns the connection,
 * and never moves: a history takes over the chunks of the recorders. Only a
 * list of positions (8 bytes each) is sorted and, one key at a time, a copy of
 * the records of that key. So 10^8 operations need 4 GB, plus a list of 0.8 GB,
 * and little more.
 *
 * Grouping is a counting sort: a hash table counts the records of each key, the
 * counts become offsets, a second walk distributes the positions.
 *
 * A position is chunk * QN_RECORDER_CHUNK + index; only the last chunk of a
 * recorder is not full, so positions have gaps.
 */

/* ---- recorders ---- */

void qn_recorder_init(struct qn_recorder *t, uint64_t records_max)
{
    *t = (struct qn_recorder){.records_max = records_max};
}

static void free_chunks(struct qn_recorder_chunk *c)
{
    while (c != NULL) {
        struct qn_recorder_chunk *next = c->next;
        free(c);
        c = next;
    }
}

void qn_recorder_fini(struct qn_recorder *t)
{
    free_chunks(t->first);
    *t = (struct qn_recorder){0};
}

bool qn_recorder_grow(struct qn_recorder *t)
{
    struct qn_recorder_chunk *c = NULL;
    if (t->count < t->records_max) {
        c = malloc(sizeof *c);
    }
    if (c == NULL) {
        t->full = true;
        return false;
    }
    c->next = NULL;
    if (t->last == NULL) {
        t->first = c;
    } else {
        t->last->next = c;
    }
    t->last = c;
    t->used = 0;
    return true;
}

/* ---- histories ---- */

void qn_history_init(struct qn_history *h)
{
    *h = (struct qn_history){0};
}

void qn_history_fini(struct qn_history *h)
{
    for (uint64_t i = 0; i < h->chunk_count; i++) {
        free(h->chunk[i]);
    }
    free(h->chunk);
    free(h->chunk_used);
    free(h->order);
    free(h->key);
    *h = (struct qn_history){0};
}

static int reserve_chunks(struct qn_history *h, uint64_t more)
{
    uint64_t need = h->chunk_count + more;
    if (need <= h->chunk_room) {
        return QN_OK;
    }
    uint64_t room = QN_MAX(need, 2 * h->chunk_room);
    struct qn_recorder_chunk **chunk = realloc(h->chunk, room * sizeof *chunk);
    if (chunk == NULL) {
        return QN_ENOMEM;
    }
    h->chunk = chunk;
    uint32_t *used = realloc(h->chunk_used, room * sizeof *used);
    if (used == NULL) {
        return QN_ENOMEM;
    }
    h->chunk_used = used;
    h->chunk_room = room;
    return QN_OK;
}

int qn_history_take(struct qn_history *h, struct qn_recorder *t)
{
    if (t->full) {
        return QN_EINVAL;
    }
    int err = reserve_chunks(h, t->count / QN_RECORDER_CHUNK + 1);
    if (err != QN_OK) {
        return err;
    }
    for (struct qn_recorder_chunk *c = t->first; c != NULL; c = c->next) {
        h->chunk[h->chunk_count] = c;
        h->chunk_used[h->chunk_count] =
            c == t->last ? t->used : QN_RECORDER_CHUNK;
        h->chunk_count++;
    }
    h->count += t->count;
    qn_recorder_init(t, t->records_max);
    return QN_OK;
}

/* Hash table from a key to its count, later to the position of its next
 * record. */
struct tally {
    struct qn_history_key *slot; /* [mask + 1]; count 0: empty */
    uint64_t mask;
    uint64_t used;
};

static struct qn_history_key *tally_find(const struct tally *t, uint32_t key)
{
    uint64_t at = (key * UINT64_C(0x9e3779b97f4a7c15)) >> 20;
    for (;; at++) {
        struct qn_history_key *s = &t->slot[at & t->mask];
        if (s->count == 0 || s->key == key) {
            return s;
        }
    }
}

static int tally_resize(struct tally *t, uint64_t slots)
{
    QN_ASSERT(qn_is_pow2(slots));
    struct tally bigger = {.slot = calloc(slots, sizeof *bigger.slot),
                           .mask = slots - 1,
                           .used = t->used};
    if (bigger.slot == NULL) {
        return QN_ENOMEM;
    }
    for (uint64_t i = 0; t->slot != NULL && i <= t->mask; i++) {
        if (t->slot[i].count != 0) {
            *tally_find(&bigger, t->slot[i].key) = t->slot[i];
        }
    }
    free(t->slot);
    *t = bigger;
    return QN_OK;
}

static int tally_count(struct tally *t, uint32_t key)
{
    struct qn_history_key *s = tally_find(t, key);
    s->key = key;
    if (s->count++ == 0 && ++t->used > t->mask / 2) {
        return tally_resize(t, 2 * (t->mask + 1));
    }
    return QN_OK;
}

static int tally_all(struct tally *t, const struct qn_history *h)
{
    int err = tally_resize(t, 1024);
    for (uint64_t c = 0; c < h->chunk_count && err == QN_OK; c++) {
        for (uint32_t i = 0; i < h->chunk_used[c] && err == QN_OK; i++) {
            err = tally_count(t, h->chunk[c]->record[i].key);
        }
    }
    return err;
}

static int by_key(const void *a, const void *b)
{
    uint32_t x = ((const struct qn_history_key *)a)->key;
    uint32_t y = ((const struct qn_history_key *)b)->key;
    return (x > y) - (x < y);
}

/* List the keys in order, each with its part of h->order. */
static int list_keys(struct qn_history *h, const struct tally *t)
{
    h->key = malloc((t->used + 1) * sizeof *h->key);
    if (h->key == NULL) {
        return QN_ENOMEM;
    }
    h->key_count = 0;
    for (uint64_t i = 0; i <= t->mask; i++) {
        if (t->slot[i].count != 0) {
            h->key[h->key_count++] = t->slot[i];
        }
    }
    qsort(h->key, h->key_count, sizeof *h->key, by_key);
    uint64_t first = 0;
    for (uint64_t i = 0; i < h->key_count; i++) {
        h->key[i].first = first;
        tally_find(t, h->key[i].key)->first = first;
        first += h->key[i].count;
    }
    QN_ASSERT(first == h->count);
    return QN_OK;
}

static void deal(struct qn_history *h, const struct tally *t)
{
    for (uint64_t c = 0; c < h->chunk_count; c++) {
        for (uint32_t i = 0; i < h->chunk_used[c]; i++) {
            uint32_t key = h->chunk[c]->record[i].key;
            h->order[tally_find(t, key)->first++] = c * QN_RECORDER_CHUNK + i;
        }
    }
}

int qn_history_group(struct qn_history *h)
{
    free(h->key);
    free(h->order);
    h->key = NULL;
    h->key_count = 0;
    struct tally t = {0};
    h->order = malloc((h->count + 1) * sizeof *h->order);
    int err = h->order == NULL ? QN_ENOMEM : tally_all(&t, h);
    if (err == QN_OK) {
        err = list_keys(h, &t);
    }
    if (err == QN_OK) {
        deal(h, &t);
    }
    free(t.slot);
    return err;
}

void qn_history_records(const struct qn_history *h, uint64_t i,
                        struct qn_record *out)
{
    QN_ASSERT(i < h->key_count);
    const struct qn_history_key *k = &h->key[i];
    for (uint64_t n = 0; n < k->count; n++) {
        uint64_t at = h->order[k->first + n];
        out[n] =
            h->chunk[at / QN_RECORDER_CHUNK]->record[at % QN_RECORDER_CHUNK];
    }
    qn_records_sort(out, k->count);
}

static int by_time(const void *a, const void *b)
{
    const struct qn_record *x = a;
    const struct qn_record *y = b;
    if (x->invoked != y->invoked) {
        return x->invoked < y->invoked ? -1 : 1;
    }
    if (x->responded != y->responded) {
        return x->responded < y->responded ? -1 : 1;
    }
    return x->client - y->client;
}

void qn_records_sort(struct qn_record *records, size_t n)
{
    qsort(records, n, sizeof *records, by_time);
}
