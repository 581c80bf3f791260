#include "kvs/store/store_internal.h"

/*
 * The shape of the table: a directory of segments, which split, merge and are
 * published whole.
 *
 * A segment of depth d holds the keys whose hashes share the first d bits; all
 * directory words that begin with these bits point to it. The next 8 bits
 * choose the bucket, so buckets in memory order are in hash order. A split
 * turns bucket b into the neighbours 2b and 2b + 1 (mod 256) of one child, by
 * the hash bit directly behind the bucket's. A merge is the reverse and needs
 * no hash.
 *
 * Invariants:
 *   - A segment that a directory word no longer points to is never written
 *     again: a reader inside it sees one complete state, as of the change.
 *   - Within a segment an entry never moves, except from a bucket's last word
 *     into the first word of a new line whose link replaces it in one store: a
 *     reader meets it in one of the two places.
 *   - A removed entry leaves a free word; lines go away with their segment.
 *
 * Both children of a split are new, because readers may be anywhere in the old
 * segment: if one child were built in place, a reader that came through the old
 * directory would miss keys that had moved. The cost is one more block of 16
 * KiB until the old segment is freed.
 *
 * Splitting is never necessary for correctness. When there is no memory for it,
 * or when it cannot help (colliding hashes: the directory would exceed keys /
 * 64 words, or the segment has passed QN_SPLIT_MAX), buckets grow lines
 * instead. So one put moves at most QN_SPLIT_MAX entries.
 *
 * A split needs one more bit of each hash. Words have it for all depths below
 * QN_NEAR_BITS, so entries are not touched; in larger tables the keys are read
 * again, with prefetch. A hash in the entry would cost 8 bytes per key, and
 * still a miss per split entry.
 */

/* Entries are prefetched this many buckets ahead: enough to hide memory
 * latency behind hashing, few enough for the core's outstanding misses. */
#define PREFETCH_BUCKETS 3u

static const struct qn_segment nothing;

struct qn_segment *qn_segment_empty(void)
{
    return (struct qn_segment *)(uintptr_t)&nothing;
}

/* ---- segments and lines ---- */

static struct qn_segment *segment_new(struct qn_store *s)
{
    /* Over-allocated and aligned here: with aligned_alloc, glibc could not
     * use a freed segment for a new one. */
    void *block = s->alloc(sizeof(struct qn_segment) + QN_CACHELINE - 16);
    if (block == NULL) {
        return NULL;
    }
    uintptr_t at = qn_align_up((uintptr_t)block, QN_CACHELINE);
    struct qn_segment *g = (struct qn_segment *)at;
    memset(g, 0, sizeof *g);
    g->block = block;
    s->table_bytes += sizeof *g;
    return g;
}

static struct qn_bucket *line_new(struct qn_store *s)
{
    struct qn_bucket *line = s->alloc(sizeof *line);
    if (line != NULL) {
        memset(line, 0, sizeof *line);
        s->table_bytes += sizeof *line;
    }
    return line;
}

static void line_free(struct qn_store *s, struct qn_bucket *line)
{
    s->table_bytes -= sizeof *line;
    s->release(line);
}

uint32_t qn_segment_free(struct qn_store *s, struct qn_segment *g)
{
    uint32_t freed = 1;
    for (uint32_t b = 0; b < QN_BUCKETS; b++) {
        /* relaxed, here and below: the memory is the writer's own again. */
        uint64_t w = qn_load(&g->bucket[b].word[QN_LINE_WORDS - 1], QN_RELAXED);
        while (qn_word_is_link(w)) {
            struct qn_bucket *line = qn_word_ptr(w);
            w = qn_load(&line->word[QN_LINE_WORDS - 1], QN_RELAXED);
            line_free(s, line);
            freed++;
        }
    }
    s->table_bytes -= sizeof *g;
    s->release(g->block);
    return freed;
}

uint32_t qn_bucket_free(struct qn_store *s, struct qn_bucket *line,
                        uint32_t budget)
{
    uint32_t freed = 0;
    for (uint32_t i = 0; i < QN_LINE_WORDS && freed < budget;) {
        uint64_t w = qn_load(&line->word[i], QN_RELAXED);
        if (qn_word_is_link(w)) {
            /* All before it is freed: the next line takes its place. */
            memcpy(line, qn_word_ptr(w), sizeof *line);
            line_free(s, qn_word_ptr(w));
            freed++;
            i = 0;
            continue;
        }
        if (w != 0) {
            qn_store(&line->word[i], 0, QN_RELAXED);
            qn_entry_free(s, qn_word_ptr(w));
            freed++;
        }
        i++;
    }
    return freed;
}

/* Put a word into a bucket: the first free word, else a new line. */
static bool bucket_add(struct qn_store *s, struct qn_bucket *line,
                       uint64_t word)
{
    uint64_t w = 0;
    qn_a64 *place = NULL;
    for (uint32_t i = 0; i < QN_LINE_WORDS;) {
        place = &line->word[i];
        w = qn_load(place, QN_RELAXED); /* relaxed: the writer wrote it */
        if (w == 0) {
            qn_store(place, word, QN_RELEASE); /* publish */
            return true;
        }
        if (qn_word_is_link(w)) {
            line = qn_word_ptr(w);
            i = 0;
            continue;
        }
        i++;
    }
    struct qn_bucket *more = line_new(s);
    if (more == NULL) {
        return false;
    }
    qn_store(&more->word[0], w, QN_RELAXED); /* relaxed: published below */
    qn_store(&more->word[1], word, QN_RELAXED);
    qn_store(place, qn_word_of(more) | QN_WORD_LINK, QN_RELEASE); /* publish */
    return true;
}

static bool segment_add(struct qn_store *s, struct qn_segment *g, uint32_t b,
                        uint64_t word)
{
    g->used++;
    return bucket_add(s, &g->bucket[b], word);
}

/* ---- the directory ---- */

/* Point all directory words that begin with the first `depth` bits of `hash`
 * to g. */
static void publish(struct qn_store *s, uint64_t hash, uint32_t depth,
                    const struct qn_segment *g)
{
    uint64_t root = qn_store_root(s);
    uint32_t more = qn_word_depth(root) - depth;
    qn_a64 *dir = qn_word_ptr(root);
    dir += qn_hash_top(hash, depth) << more;
    for (uint64_t i = 0; i < UINT64_C(1) << more; i++) {
        qn_store(&dir[i], qn_word_of(g) | (uint64_t)depth << 48,
                 QN_RELEASE); /* publish */
    }
}

void qn_directory_free(struct qn_store *s, uint64_t root)
{
    if (qn_word_ptr(root) != &s->empty_directory) {
        s->table_bytes -= sizeof(uint64_t) << qn_word_depth(root);
        s->release(qn_word_ptr(root));
    }
}

/* O(directory): 8 bytes copied per 900 to 1800 keys. */
static bool directory_double(struct qn_store *s)
{
    uint64_t root = qn_store_root(s);
    uint32_t depth = qn_word_depth(root);
    uint64_t words = UINT64_C(2) << depth;
    if (words > (s->keys + s->garbage) / 64) {
        return false;
    }
    qn_a64 *dir = s->alloc(words * sizeof *dir);
    if (dir == NULL) {
        return false;
    }
    s->table_bytes += words * sizeof *dir;
    const qn_a64 *old = qn_word_ptr(root);
    for (uint64_t i = 0; i < words; i++) {
        /* relaxed: the writer wrote the old one, the root publishes the new. */
        qn_store(&dir[i], qn_load(&old[i / 2], QN_RELAXED), QN_RELAXED);
    }
    qn_store(&s->root, qn_word_of(dir) | (uint64_t)(depth + 1) << 48,
             QN_RELEASE); /* publish */
    if (old != &s->empty_directory) {
        qn_store_retire(s, (root & QN_WORD_PTR) | QN_RETIRED_DIRECTORY |
                               (uint64_t)depth << 48);
    }
    return true;
}

/* ---- split and merge ---- */

/* The bucket of an entry of bucket b, depth `depth`, in the child. (Where a
 * dead entry, which has no tag, goes does not matter: only the sweep looks for
 * it, everywhere.) */
static uint32_t child_bucket(const struct qn_store *s, uint64_t w, uint32_t b,
                             uint32_t depth)
{
    if (depth < QN_NEAR_BITS) {
        return (2 * b + qn_word_near(w, depth)) % QN_BUCKETS;
    }
    uint64_t hash = qn_entry_hash(s, qn_word_ptr(w));
    return qn_hash_bucket(hash, depth + 1);
}

/* Distribute the entries of g, of depth `depth`, to its children. */
static bool split_into(struct qn_store *s, struct qn_segment *g, uint32_t depth,
                       struct qn_segment *child[2])
{
    for (uint32_t b = 0; b < QN_BUCKETS; b++) {
        if (depth >= QN_NEAR_BITS) {
            qn_bucket_prefetch(&g->bucket[(b + PREFETCH_BUCKETS) % QN_BUCKETS]);
        }
        struct qn_segment *to = child[b / (QN_BUCKETS / 2)];
        uint64_t w;
        for (struct qn_words i = {&g->bucket[b], 0}; qn_words_next(&i, &w);) {
            if (!segment_add(s, to, child_bucket(s, w, b, depth), w)) {
                return false;
            }
        }
    }
    return true;
}

static void retire_shell(struct qn_store *s, struct qn_segment *g)
{
    if (g != qn_segment_empty()) {
        qn_store_retire(s, qn_word_of(g) | QN_RETIRED_SHELL);
    }
}

/* Split the segment of `hash` if that is possible and useful. */
static void split(struct qn_store *s, uint64_t hash)
{
    uint64_t word = qn_store_segment(qn_store_root(s), hash);
    struct qn_segment *g = qn_word_ptr(word);
    uint32_t depth = qn_word_depth(word);
    if (g->used > QN_SPLIT_MAX || depth == QN_DEPTH_MAX ||
        (depth == qn_word_depth(qn_store_root(s)) && !directory_double(s))) {
        return;
    }
    struct qn_segment *child[2] = {segment_new(s), NULL};
    if (child[0] == NULL) {
        return;
    }
    child[1] = segment_new(s);
    if (child[1] == NULL || !split_into(s, g, depth, child)) {
        goto no_memory;
    }
    uint64_t half = UINT64_C(1) << (63 - depth);
    publish(s, hash & ~half, depth + 1, child[0]);
    publish(s, hash | half, depth + 1, child[1]);
    retire_shell(s, g);
    s->split_work_max = QN_MAX(s->split_work_max, g->used);
    s->growths++;
    return;
no_memory:
    for (uint32_t i = 0; i < 2 && child[i] != NULL; i++) {
        qn_segment_free(s, child[i]);
    }
}

static bool merge_into(struct qn_store *s, struct qn_segment *parent,
                       struct qn_segment *child[2])
{
    for (uint32_t b = 0; b < 2 * QN_BUCKETS; b++) {
        struct qn_segment *from = child[b / QN_BUCKETS];
        uint64_t w;
        for (struct qn_words i = {&from->bucket[b % QN_BUCKETS], 0};
             qn_words_next(&i, &w);) {
            if (!segment_add(s, parent, b / 2, w)) {
                return false;
            }
        }
    }
    return true;
}

/* Merge the segment of `hash` with its sibling if both are sparse. @return
 * true if it did. */
static bool merge(struct qn_store *s, uint64_t hash)
{
    uint64_t root = qn_store_root(s);
    uint64_t word = qn_store_segment(root, hash);
    uint32_t depth = qn_word_depth(word);
    if (depth == 0 || !qn_limbo_ready(s)) {
        return false;
    }
    uint64_t half = UINT64_C(1) << (64 - depth);
    uint64_t words[2] = {qn_store_segment(root, hash & ~half),
                         qn_store_segment(root, hash | half)};
    struct qn_segment *child[2] = {qn_word_ptr(words[0]),
                                   qn_word_ptr(words[1])};
    if (qn_word_depth(words[0]) != qn_word_depth(words[1]) ||
        child[0]->used + child[1]->used > QN_MERGE_AT) {
        return false;
    }
    struct qn_segment *parent = qn_segment_empty();
    if (child[0]->used + child[1]->used != 0) {
        parent = segment_new(s);
        if (parent == NULL) {
            return false;
        }
        if (!merge_into(s, parent, child)) {
            qn_segment_free(s, parent);
            return false;
        }
    }
    publish(s, hash, depth - 1, parent);
    retire_shell(s, child[0]);
    retire_shell(s, child[1]);
    return true;
}

/* ---- what the writer calls ---- */

bool qn_table_insert(struct qn_store *s, uint64_t hash, uint64_t word)
{
    uint64_t at = qn_store_segment(qn_store_root(s), hash);
    struct qn_segment *g = qn_word_ptr(at);
    if (g == qn_segment_empty()) {
        g = segment_new(s);
        if (g == NULL) {
            return false;
        }
        publish(s, hash, qn_word_depth(at), g);
    } else if (g->used >= QN_SPLIT_AT) {
        split(s, hash);
    }
    at = qn_store_segment(qn_store_root(s), hash);
    g = qn_word_ptr(at);
    if (!bucket_add(s, qn_segment_bucket(at, hash), word)) {
        return false;
    }
    g->used++;
    return true;
}

void qn_table_removed(struct qn_store *s, uint64_t hash, uint32_t count)
{
    uint64_t at = qn_store_segment(qn_store_root(s), hash);
    struct qn_segment *g = qn_word_ptr(at);
    QN_ASSERT(g->used >= count);
    g->used -= count;
    if (g->used <= QN_MERGE_AT / 2) {
        while (merge(s, hash)) {
        }
    }
}
