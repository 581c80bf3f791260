#include "kvs/store/snapshot_iter.h"

#include "kvs/store/store_internal.h"

/*
 * The cut: what the store held as of slot P, while later slots change it.
 *
 * Claim: the entries that peek gives are exactly those that were alive when
 * the cut began, each once.
 *
 * An entry is *of the cut* if it was in the store at the beginning. Entries are
 * immutable and hold the slot of their change, so the condition is e.slot <= P:
 * what was there is not newer than P, and what comes later is newer. `at` is a
 * position in hash order. The hash of an entry never changes, whatever splits
 * and merges do to its bucket. At any time an entry of the cut is in one of
 * four places, and it moves only down this list:
 *
 *   ahead     in the table, hash >= at. The walk will meet it, unless
 *   taken     the writer replaced or removed it while it was ahead or in the
 *             group: qn_snapshot_iter_take put it into a queue before it could
 *             be retired
 *   group     in the table and listed: hash in [near, at). The walk lists the
 *             entries of some buckets at once, and `at` moves behind them
 *   given     peek has given it, and next was called
 *
 *     table in hash order
 *     |  given  or taken      | group  |  ahead                    |
 *     0                      near      at                         end
 *
 * The walk skips newer entries (slot > P), and the writer hands over older
 * entries only. So nothing is given twice, even when a key is removed and made
 * again, because the new entry is newer. A listed entry that is replaced moves
 * from the list to the queue. The entry that peek gives at present (`current`)
 * also goes to the queue, to be kept alive, and is skipped there (`skip`).
 * There can be no second such entry: the queue is emptied before the list
 * continues. A merge may put entries behind `at` into a bucket that begins
 * before it; the walk then compares their hashes.
 *
 * Entries without an owner at the beginning (flushed before, not yet swept) are
 * not of the cut and not listed: `owner` has the generations that were alive
 * then. Entries that a flush removes later stay in the table until the walk or
 * the sweep reaches them, because a flush does not exchange the table while
 * there is a cut. The sweep hands entries over like the writer
 * (qn_snapshot_iter_sweeps). The cut is given up when there is no memory for
 * the queue, when it holds more than `held_max`, or when a database is out of
 * generations.
 *
 * A taken entry is not retired yet: readers may hold it, and so does the cut.
 * The queue consists of the limbo's own chunks, and its items have the epoch in
 * which they were unlinked, as there. When all items of a chunk have been
 * given, or the cut ends, whole chunks are appended to the limbo: no
 * allocation, no copy, and each item still waits for the readers of its epoch.
 *
 * Why not copy the old versions: a value may have 512 MiB, and the writer would
 * wait for the copy. Why not pin all memory like a reader: a value that takes a
 * second to send would keep everything replaced in that second.
 */

/* Words of buckets listed at once: enough to prefetch the entries. */
#define GROUP_WORDS 128u
/* Buckets looked at in one call of peek. */
#define BUCKETS_MAX 4096u

enum from { FROM_NONE, FROM_QUEUE, FROM_GROUP };

struct qn_snapshot_iter {
    qn_slot_t position;
    uint64_t near, at; /* positions in hash order; see above */
    bool walked;       /* `at` has passed the end */
    enum from from;    /* where the current entry is first */

    uint64_t *group; /* [cap] words; pointers once filtered, 0: taken */
    uint32_t group_at, group_count, group_cap;

    struct qn_limbo_chunk *first, *last;
    uint64_t first_at;           /* items of `first` done with */
    uint64_t left;               /* items not done with */
    const struct qn_entry *skip; /* in the queue and given already */
    uint64_t held_bytes;         /* of all items in chunks, */
    uint64_t done_bytes;         /* and of those done with */
    uint64_t held_max;

    uint64_t keys, logical_bytes;
    uint32_t owner[QN_STORE_DBS_MAX]; /* qn_db_owner then */
    qn_slot_t flushed[QN_STORE_DBS_MAX];
    qn_slot_t stripe[QN_STORE_STRIPES];
};

static_assert(QN_STORE_STRIPES == QN_STRIPES, "one number");

/* ---- begin and end ---- */

int qn_snapshot_iter_begin(struct qn_store *s, qn_slot_t position,
                           uint64_t held_max)
{
    if (s->cut != NULL) {
        return QN_EBUSY;
    }
    struct qn_snapshot_iter *c = s->alloc(sizeof *c);
    if (c == NULL) {
        return QN_ENOMEM;
    }
    memset(c, 0, offsetof(struct qn_snapshot_iter, owner));
    c->position = position;
    c->held_max = held_max;
    c->keys = s->keys;
    c->logical_bytes = s->logical_bytes;
    /* relaxed, all: the writer's own. */
    for (uint32_t i = 0; i < QN_STORE_DBS_MAX; i++) {
        c->flushed[i] = qn_load(&s->db[i].flushed, QN_RELAXED);
        c->owner[i] = qn_load(&s->owner[i], QN_RELAXED);
    }
    for (uint32_t i = 0; i < QN_STRIPES; i++) {
        c->stripe[i] = qn_load(&s->stripe[i], QN_RELAXED);
    }
    s->cut = c;
    return QN_OK;
}

/* Append the first chunk of the queue, all done with, to the limbo. */
static void chunk_retire(struct qn_store *s, struct qn_snapshot_iter *c)
{
    struct qn_limbo_chunk *chunk = c->first;
    c->first = chunk->next;
    if (c->first == NULL) {
        c->last = NULL;
    }
    c->first_at = 0;
    qn_limbo_append(s, chunk);
}

void qn_snapshot_iter_end(struct qn_store *s)
{
    struct qn_snapshot_iter *c = s->cut;
    if (c == NULL) {
        return;
    }
    s->cut = NULL;
    while (c->first != NULL) {
        chunk_retire(s, c);
    }
    if (c->group != NULL) {
        s->release(c->group);
    }
    s->release(c);
}

bool qn_snapshot_iter_active(const struct qn_store *s)
{
    return s->cut != NULL;
}

bool qn_snapshot_iter_facts(const struct qn_store *s,
                            struct qn_snapshot_iter_facts *out)
{
    const struct qn_snapshot_iter *c = s->cut;
    if (c == NULL) {
        return false;
    }
    *out = (struct qn_snapshot_iter_facts){
        .position = c->position,
        .seed = s->seed,
        .dbs = s->dbs,
        .keys = c->keys,
        .logical_bytes = c->logical_bytes,
        .held_bytes = c->held_bytes,
        .flushed = c->flushed,
        .stripe = c->stripe,
    };
    return true;
}

/* ---- the writer's side ---- */

/* Put an entry into the queue. @return false: no memory. */
static bool queue_push(struct qn_store *s, struct qn_snapshot_iter *c,
                       const struct qn_entry *e)
{
    if (c->last == NULL || c->last->count == QN_LIMBO_ITEMS) {
        if (!qn_limbo_ready(s)) {
            return false;
        }
        struct qn_limbo_chunk *chunk = s->limbo.spare;
        s->limbo.spare = NULL;
        chunk->next = NULL;
        chunk->count = 0;
        if (c->last != NULL) {
            c->last->next = chunk;
        } else {
            c->first = chunk;
            c->first_at = 0;
        }
        c->last = chunk;
    }
    c->last->item[c->last->count++] = (struct qn_limbo_item){
        /* relaxed: the writer's own. */
        qn_word_of(e) | QN_RETIRED_ENTRY, qn_load(&s->epoch, QN_RELAXED)};
    c->left++;
    c->held_bytes += qn_entry_takes(e);
    s->cut_bytes_most = QN_MAX(s->cut_bytes_most, c->held_bytes);
    return true;
}

/* The entry is behind `at`. @return true if it was listed and is still
 * needed; it is then removed from the list. */
static bool group_leave(struct qn_snapshot_iter *c, uint64_t hash,
                        const struct qn_entry *e)
{
    if (hash < c->near) {
        return false;
    }
    for (uint32_t i = c->group_at; i < c->group_count; i++) {
        if (qn_word_ptr(c->group[i]) != e) {
            continue;
        }
        if (i == c->group_at && c->from == FROM_GROUP) {
            c->skip = e;
        } else {
            c->group[i] = 0;
        }
        return true;
    }
    return false;
}

bool qn_snapshot_iter_take(struct qn_store *s, uint64_t hash,
                           const struct qn_entry *e)
{
    struct qn_snapshot_iter *c = s->cut;
    bool passed = c->walked || hash < c->at;
    if (e->slot > c->position || (passed && !group_leave(c, hash, e))) {
        return false;
    }
    if (c->held_bytes > c->held_max || !queue_push(s, c, e)) {
        qn_snapshot_iter_end(s);
        return false;
    }
    return true;
}

/* Did the entry belong to a database when the cut began? */
static bool was_alive(const struct qn_snapshot_iter *c,
                      const struct qn_entry *e)
{
    return e->slot <= c->position &&
           (e->meta & QN_META_OWNER) == c->owner[qn_entry_db(e)];
}

bool qn_snapshot_iter_sweeps(struct qn_store *s, uint64_t w)
{
    const struct qn_entry *e = qn_word_ptr(w);
    return (w & QN_WORD_ENTRY) != 0 && was_alive(s->cut, e) &&
           qn_snapshot_iter_take(s, qn_entry_hash(s, e), e);
}

/* ---- the walk ---- */

/* Room for one more line of words. */
static bool group_room(struct qn_store *s, struct qn_snapshot_iter *c)
{
    if (c->group_cap - c->group_count >= QN_LINE_WORDS) {
        return true;
    }
    uint32_t cap = QN_MAX(2 * c->group_cap, 2 * GROUP_WORDS);
    uint64_t *group = s->alloc(cap * sizeof *group);
    if (group == NULL) {
        return false;
    }
    if (c->group_count != 0) {
        memcpy(group, c->group, c->group_count * sizeof *group);
    }
    if (c->group != NULL) {
        s->release(c->group);
    }
    c->group = group;
    c->group_cap = cap;
    return true;
}

/* List the words of a bucket and fetch their entries. */
static bool bucket_list(struct qn_store *s, struct qn_snapshot_iter *c,
                        struct qn_bucket *line)
{
    for (;;) {
        uint64_t w = 0;
        if (!group_room(s, c)) {
            return false;
        }
        for (uint32_t i = 0; i < QN_LINE_WORDS; i++) {
            /* relaxed: the writer wrote it. */
            w = qn_load(&line->word[i], QN_RELAXED);
            if ((w & QN_WORD_ENTRY) != 0) {
                __builtin_prefetch(qn_word_ptr(w));
                c->group[c->group_count++] = w;
            }
        }
        if (!qn_word_is_link(w)) {
            return true;
        }
        line = qn_word_ptr(w);
    }
}

/* List the words of the next buckets and move `at` behind them. @return the
 * buckets listed; 0: no memory. */
static uint32_t group_list(struct qn_store *s, struct qn_snapshot_iter *c)
{
    uint32_t looked = 0;
    c->near = c->at;
    c->group_at = c->group_count = 0;
    while (c->group_count < GROUP_WORDS && looked < BUCKETS_MAX && !c->walked) {
        uint64_t segment = qn_store_segment(qn_store_root(s), c->at);
        uint32_t depth = qn_word_depth(segment);
        looked++;
        if (qn_word_ptr(segment) == qn_segment_empty()) {
            c->at = (c->at | UINT64_MAX >> depth) + 1;
        } else if (bucket_list(s, c, qn_segment_bucket(segment, c->at))) {
            c->at = qn_position_next(c->at, depth);
        } else {
            return 0;
        }
        c->walked = c->at == 0;
    }
    return looked;
}

/* Remove from the list what is not of the cut, or before `near`. */
static void group_filter(const struct qn_store *s, struct qn_snapshot_iter *c,
                         bool partial)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < c->group_count; i++) {
        const struct qn_entry *e = qn_word_ptr(c->group[i]);
        if (was_alive(c, e) && (!partial || qn_entry_hash(s, e) >= c->near)) {
            c->group[kept++] = qn_word_of(e);
        }
    }
    c->group_count = kept;
}

/* The next group. *looked grows. @return false: no memory. */
static bool group_next(struct qn_store *s, struct qn_snapshot_iter *c,
                       uint32_t *looked)
{
    uint64_t segment = qn_store_segment(qn_store_root(s), c->at);
    uint32_t width = 64 - QN_BUCKET_BITS - qn_word_depth(segment);
    bool partial = (c->at & ((UINT64_C(1) << width) - 1)) != 0;
    uint32_t n = group_list(s, c);
    *looked += n;
    group_filter(s, c, partial);
    return n != 0;
}

/* ---- the reader's side ---- */

/* The first item of the queue is done with. */
static void queue_drop(struct qn_store *s, struct qn_snapshot_iter *c)
{
    c->done_bytes +=
        qn_entry_takes(qn_word_ptr(c->first->item[c->first_at].word));
    c->left--;
    c->first_at++;
    if (c->left == 0 || c->first_at == QN_LIMBO_ITEMS) {
        c->held_bytes -= c->done_bytes;
        c->done_bytes = 0;
        chunk_retire(s, c);
    }
}

/* Find the next entry: from the queue first, so that it stays short. */
static const struct qn_entry *find_next(struct qn_store *s,
                                        struct qn_snapshot_iter *c)
{
    while (c->left != 0) {
        const struct qn_entry *e =
            qn_word_ptr(c->first->item[c->first_at].word);
        if (e != c->skip) {
            c->from = FROM_QUEUE;
            return e;
        }
        c->skip = NULL;
        queue_drop(s, c);
    }
    for (; c->group_at < c->group_count; c->group_at++) {
        if (c->group[c->group_at] != 0) {
            c->from = FROM_GROUP;
            return qn_word_ptr(c->group[c->group_at]);
        }
    }
    return NULL;
}

static const struct qn_entry *current(const struct qn_snapshot_iter *c)
{
    uint64_t w = c->from == FROM_QUEUE ? c->first->item[c->first_at].word
                                       : c->group[c->group_at];
    return qn_word_ptr(w);
}

int qn_snapshot_iter_peek(struct qn_store *s, struct qn_walked *out)
{
    struct qn_snapshot_iter *c = s->cut;
    if (c == NULL) {
        return QN_EABORTED;
    }
    const struct qn_entry *e =
        c->from != FROM_NONE ? current(c) : find_next(s, c);
    for (uint32_t looked = 0; e == NULL; e = find_next(s, c)) {
        if (c->walked) {
            return QN_ENOENT;
        }
        if (looked >= BUCKETS_MAX) {
            return QN_EAGAIN;
        }
        if (!group_next(s, c, &looked)) {
            qn_snapshot_iter_end(s);
            return QN_EABORTED;
        }
    }
    *out = (struct qn_walked){
        .db = qn_entry_db(e),
        .key = qn_entry_key(e),
        .value = qn_entry_value(e),
        .slot = e->slot,
        .deadline_ms = qn_entry_deadline(e),
    };
    return QN_OK;
}

void qn_snapshot_iter_next(struct qn_store *s)
{
    struct qn_snapshot_iter *c = s->cut;
    QN_ASSERT(c != NULL);
    QN_ASSERT(c->from != FROM_NONE);
    if (c->from == FROM_QUEUE) {
        queue_drop(s, c);
    } else {
        c->group_at++;
    }
    c->from = FROM_NONE;
}

/* ---- a store made of a cut ---- */

int qn_store_load_stripes(struct qn_store *s, uint32_t first, uint32_t count,
                          const qn_slot_t *stripe)
{
    if (first > QN_STRIPES || count > QN_STRIPES - first) {
        return QN_EINVAL;
    }
    for (uint32_t i = 0; i < count; i++) {
        /* release: with the acquire in qn_store_stripe_slot. */
        qn_store(&s->stripe[first + i], stripe[i], QN_RELEASE);
    }
    return QN_OK;
}

int qn_store_load_flushed(struct qn_store *s, uint32_t db, qn_slot_t slot)
{
    if (db >= s->dbs) {
        return QN_EINVAL;
    }
    /* release: with the acquire in qn_store_stripe_slot. */
    qn_store(&s->db[db].flushed, slot, QN_RELEASE);
    return QN_OK;
}
