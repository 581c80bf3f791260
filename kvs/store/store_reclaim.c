#include "kvs/store/store_internal.h"

#include <stdlib.h>

/*
 * The limbo list: unlinked blocks wait until no reader can hold them.
 *
 * Quiescent-state reclamation. The writer numbers its turns: the epoch. Blocks
 * that it unlinks during epoch e wait in a queue with e; qn_store_reclaim
 * begins epoch e + 1. A reader publishes the epoch at each quiescent point. A
 * block of epoch e is free when every reader has published e + 1 or more, or is
 * offline.
 *
 *     writer                          reader
 *     unlink (release store)          last use of a borrowed value
 *     epoch = e + 1     (W1)          seen = epoch       (R1)
 *     load seen         (W2)          load epoch         (R2)
 *     seen > e: free                  load root ...
 *
 * A reader that comes back from offline must not be missed. If W1, W2, R1, R2
 * were weaker than seq_cst, the writer could find it offline at W2 and free,
 * while its loads after R1 still found the old root. With seq_cst, either W2
 * finds R1's value, or R2 finds W1's and with it, by acquire, the unlinked
 * state. The other edge, the reader's last use before the free, is release R1
 * -> acquire W2.
 *
 * The queue is a list of chunks, so it never moves, and an empty queue costs
 * nothing. One spare chunk is kept: an operation that has made sure of it
 * (qn_limbo_ready) may retire QN_LIMBO_ITEMS blocks without failing.
 *
 * Large items (a whole table after FLUSHALL) are freed in place, by a budget of
 * blocks per call: the queue's first item stays until it is freed completely.
 */

#define OLD_SPARES    16u   /* looked for in each reclaim */
#define SORTING_BYTES 2048u /* beyond the sizes of the thread's own cache */

/* ---- the queue ---- */

bool qn_limbo_ready(struct qn_store *s)
{
    if (s->limbo.spare == NULL) {
        s->limbo.spare = s->alloc(sizeof *s->limbo.spare);
    }
    return s->limbo.spare != NULL;
}

bool qn_limbo_has_room(struct qn_store *s)
{
    return qn_limbo_ready(s) ||
           (s->limbo.last != NULL && s->limbo.last->count < QN_LIMBO_ITEMS);
}

void qn_store_retire(struct qn_store *s, uint64_t word)
{
    struct qn_limbo_chunk *c = s->limbo.last;
    if (c == NULL || c->count == QN_LIMBO_ITEMS) {
        c = s->limbo.spare;
        QN_ASSERT(c != NULL);
        s->limbo.spare = NULL;
        c->next = NULL;
        c->count = 0;
        if (s->limbo.last != NULL) {
            s->limbo.last->next = c;
        } else {
            s->limbo.first = c;
            s->limbo.first_at = 0;
        }
        s->limbo.last = c;
    }
    c->item[c->count++] =
        (struct qn_limbo_item){/* relaxed: the writer's own. */
                               word, qn_load(&s->epoch, QN_RELAXED)};
    s->limbo.count++;
    s->limbo.pushed++;
}

/* Its items are not counted as pushed: later budgets free them. */
void qn_limbo_append(struct qn_store *s, struct qn_limbo_chunk *chunk)
{
    QN_ASSERT(chunk->count != 0);
    chunk->next = NULL;
    s->limbo.count += chunk->count;
    if (s->limbo.last != NULL) {
        s->limbo.last->next = chunk;
    } else {
        s->limbo.first = chunk;
        s->limbo.first_at = 0;
    }
    s->limbo.last = chunk;
}

/* The first item is done with. */
static void drop_first(struct qn_store *s)
{
    struct qn_limbo_chunk *c = s->limbo.first;
    s->limbo.count--;
    if (++s->limbo.first_at < c->count) {
        return;
    }
    s->limbo.first = c->next;
    s->limbo.first_at = 0;
    if (c->next == NULL) {
        s->limbo.last = NULL;
    }
    if (s->limbo.spare == NULL) {
        s->limbo.spare = c;
    } else {
        s->release(c);
    }
}

/* ---- taking things apart ---- */

/* Free the entries of a segment from bucket limbo.line_at on, then the
 * segment. @return blocks freed; *done if the segment is freed. */
static uint32_t free_segment(struct qn_store *s, struct qn_segment *g,
                             uint32_t budget, bool *done)
{
    uint32_t freed = 0;
    for (; s->limbo.line_at < QN_BUCKETS; s->limbo.line_at++) {
        qn_bucket_prefetch(&g->bucket[(s->limbo.line_at + 1) % QN_BUCKETS]);
        freed +=
            qn_bucket_free(s, &g->bucket[s->limbo.line_at], budget - freed);
        if (freed == budget) {
            *done = false;
            return freed;
        }
    }
    s->limbo.line_at = 0;
    *done = true;
    return freed + qn_segment_free(s, g);
}

/* Free a tree from directory word limbo.tree_at on. */
static uint32_t free_tree(struct qn_store *s, uint64_t root, uint32_t budget,
                          bool *done)
{
    qn_a64 *dir = qn_word_ptr(root);
    uint64_t words = UINT64_C(1) << qn_word_depth(root);
    uint32_t freed = 0;
    *done = true;
    while (s->limbo.tree_at < words) {
        if (freed >= budget) {
            *done = false;
            return freed;
        }
        /* relaxed: the writer wrote it. */
        uint64_t w = qn_load(&dir[s->limbo.tree_at], QN_RELAXED);
        if (qn_word_ptr(w) != qn_segment_empty()) {
            freed += free_segment(s, qn_word_ptr(w), budget - freed, done);
        }
        if (*done) {
            s->limbo.tree_at += words >> qn_word_depth(w);
        }
    }
    s->limbo.tree_at = 0;
    qn_directory_free(s, root);
    return freed + 1;
}

/* @return blocks freed; *done if the item is freed. */
static uint32_t free_item(struct qn_store *s, uint64_t word, uint32_t budget,
                          bool *done)
{
    *done = true;
    switch ((enum qn_retired)(word & ~QN_WORD_PTR & 0xf)) {
    case QN_RETIRED_ENTRY:
        qn_entry_free(s, qn_word_ptr(word));
        return 1;
    case QN_RETIRED_SHELL:
        s->unsorted = true;
        return qn_segment_free(s, qn_word_ptr(word));
    case QN_RETIRED_SEGMENT:
        s->unsorted = true;
        return free_segment(s, qn_word_ptr(word), budget, done);
    case QN_RETIRED_DIRECTORY:
        s->unsorted = true;
        qn_directory_free(s, word);
        return 1;
    case QN_RETIRED_TREE:
        break;
    }
    return free_tree(s, word, budget, done);
}

/* Free at most `budget` blocks of what was unlinked before epoch `before`.
 * @return true if there was more. */
static bool limbo_free(struct qn_store *s, uint64_t before, uint32_t budget)
{
    uint32_t freed = 0;
    while (s->limbo.first != NULL) {
        struct qn_limbo_item item = s->limbo.first->item[s->limbo.first_at];
        if (item.epoch >= before) {
            return false;
        }
        if (freed >= budget) {
            return true;
        }
        bool done;
        freed += free_item(s, item.word, budget - freed, &done);
        if (done) {
            drop_first(s);
        }
    }
    return false;
}

void qn_tree_free(struct qn_store *s, uint64_t root)
{
    bool done;
    do {
        free_tree(s, root, UINT32_MAX, &done);
    } while (!done);
}

void qn_limbo_drain(struct qn_store *s)
{
    while (s->limbo.first != NULL) {
        limbo_free(s, UINT64_MAX, UINT32_MAX);
    }
    s->release(s->limbo.spare);
    s->limbo.spare = NULL;
}

/* ---- the sweep: what flushes of one database left in the table ---- */

/* Retire the garbage of one bucket. @return entries looked at; *room is false
 * if there was no memory to retire all. */
static uint32_t sweep_bucket(struct qn_store *s, uint64_t position, bool *room)
{
    uint64_t segment = qn_store_segment(qn_store_root(s), position);
    struct qn_words i = {qn_segment_bucket(segment, position), 0};
    uint32_t looked = 0;
    uint32_t removed = 0;
    uint64_t w;
    qn_a64 *place;
    while (*room && (place = qn_words_next(&i, &w)) != NULL) {
        looked++;
        if (qn_word_alive(s, w)) {
            continue;
        }
        bool kept = s->cut != NULL && qn_snapshot_iter_sweeps(s, w);
        *room = kept || qn_limbo_has_room(s);
        if (*room) {
            /* relaxed: for readers the entry was not there before either. */
            qn_store(place, 0, QN_RELAXED);
            removed++;
        }
        if (*room && !kept) {
            qn_store_retire(s, (w & QN_WORD_PTR) | QN_RETIRED_ENTRY);
        }
    }
    s->garbage -= removed;
    if (removed != 0) {
        qn_table_removed(s, position, removed);
    }
    return looked;
}

/* The generations without entries when a pass over the table ends: those that
 * had ended when it began. */
void qn_sweep_ended(struct qn_store *s)
{
    s->sweep_at = 0;
    for (uint32_t db = 0; db < s->dbs; db++) {
        struct qn_db *d = &s->db[db];
        d->stale = s->garbage == 0 ? 0 : d->fresh;
        d->fresh = 0;
    }
}

/* Look at `budget` entries, or a bucket more. */
static void sweep(struct qn_store *s, uint32_t budget)
{
    bool room = true;
    for (uint64_t looked = 0; s->garbage != 0 && looked < budget;) {
        uint64_t at = s->sweep_at;
        uint64_t segment = qn_store_segment(qn_store_root(s), at);
        uint64_t next = qn_position_next(at, qn_word_depth(segment));
        qn_bucket_prefetch(qn_segment_bucket(segment, next));
        looked += 1 + sweep_bucket(s, at, &room);
        if (!room) {
            return;
        }
        s->sweep_at = next;
        if (next == 0 || s->garbage == 0) {
            qn_sweep_ended(s);
        }
    }
}

/* ---- readers ---- */

int qn_store_reader_create(struct qn_store *s, struct qn_store_reader **out)
{
    for (uint32_t i = 0; i < QN_STORE_READERS_MAX; i++) {
        struct qn_store_reader *r = &s->reader[i];
        uint32_t expected = 0;
        /* acquire: with the release in destroy, of the cell's last owner. */
        if (qn_cas(&r->taken, &expected, 1, QN_ACQUIRE)) {
            r->store = s;
            qn_store_reader_quiescent(r);
            *out = r;
            return QN_OK;
        }
    }
    return QN_EBUSY;
}

void qn_store_reader_destroy(struct qn_store_reader *r)
{
    if (r != NULL) {
        qn_store_reader_offline(r);
        qn_store(&r->taken, 0, QN_RELEASE); /* acquire in create */
    }
}

void qn_store_reader_quiescent(struct qn_store_reader *r)
{
    const qn_a64 *epoch = &r->store->epoch;
    /* acquire: the release half of W1, and so what was unlinked before. */
    qn_store(&r->seen, qn_load(epoch, QN_ACQUIRE), QN_SEQ_CST); /* R1 */
    (void)qn_load(epoch, QN_SEQ_CST);                           /* R2 */
}

void qn_store_reader_offline(struct qn_store_reader *r)
{
    /* release: the last uses of borrowed values -> acquire W2. */
    qn_store(&r->seen, QN_OFFLINE, QN_RELEASE);
}

/* glibc puts freed chunks on one unsorted list, and sorts up to 10 000 of
 * them in the next malloc that finds no chunk of its size: 2 ms when they are
 * cold, in any call. A request here, for a size that is never kept, makes it
 * sort what was just freed. */
static void malloc_sort(struct qn_store *s)
{
    if (s->alloc == malloc && s->unsorted) {
        s->release(s->alloc(SORTING_BYTES));
        s->unsorted = false;
    }
}

static void free_old_spares(struct qn_store *s)
{
    void *block = NULL;
    for (uint32_t i = 0;
         i < OLD_SPARES && (block = qn_spares_old(&s->spares)) != NULL; i++) {
        s->release(block);
        s->unsorted = true;
    }
}

/** An empty store keeps no spares. @return true: some are left. */
static bool free_any_spares(struct qn_store *s, uint32_t budget)
{
    if (s->entry_bytes != 0 || s->spares.kept == 0) {
        return false;
    }
    void *block = NULL;
    while (budget-- > 0 && (block = qn_spares_any(&s->spares)) != NULL) {
        s->release(block);
        s->unsorted = true;
    }
    malloc_sort(s);
    return s->spares.kept != 0;
}

bool qn_store_reclaim(struct qn_store *s, uint32_t budget)
{
    if (s->limbo.first == NULL && s->garbage == 0) {
        return free_any_spares(s, budget);
    }
    sweep(s, budget);
    /* relaxed: the writer's own. */
    uint64_t epoch = qn_load(&s->epoch, QN_RELAXED) + 1;
    qn_store(&s->epoch, epoch, QN_SEQ_CST); /* W1 */
    uint64_t before = epoch;
    for (uint32_t i = 0; i < QN_STORE_READERS_MAX; i++) {
        uint64_t seen = qn_load(&s->reader[i].seen, QN_SEQ_CST); /* W2 */
        before = QN_MIN(before, seen);
    }
    uint64_t blocks = QN_MIN(budget + s->limbo.pushed, UINT32_MAX);
    s->limbo.pushed = 0;
    bool more = limbo_free(s, before, (uint32_t)blocks);
    free_old_spares(s);
    malloc_sort(s);
    return more || s->garbage != 0 || free_any_spares(s, 1);
}
