/*
 * C11 memory: plain bytes. They are kept in words of eight, in a table that is
 * emptied by a new stamp; a word that a run has not touched costs nothing.
 *
 * Races. For each half of a word the last access of each node and of each kind
 * is kept, by the node's clock. An access of another node with clock c is
 * ordered before this one if this node's view has c or more for it: then a
 * release and an acquire lie between. That answer does not depend on which of
 * the two was run first, so no schedule has to bring them together.
 *
 * Checked copies. A word keeps its last stores. One that happens before this
 * moment hides all older ones; of the others any may be taken, word by word.
 * A node that finds a store that was made behind a release fence has the view
 * of that fence at its next acquire fence, as if the word were a relaxed
 * variable.
 */
#include "core/base/assert.h"
#include "core/sim/explore/c11_internal.h"
#include "core/sim/explore/explore_internal.h"
#include "core/sim/explore/visited.h"

#define TABLE (2 * QN_C11_WORDS) /* places; a power of two */

static struct {
    struct place {
        uint32_t stamp;
        uint32_t word;
    } place[TABLE];
    uint32_t stamp;
    struct qn_c11_word word[QN_C11_WORDS];
    uint32_t words;
} t;

void qn_c11_bytes_reset(void)
{
    t.words = 0;
    if (++t.stamp == 0) {
        memset(t.place, 0, sizeof t.place);
        t.stamp = 1;
    }
}

/* The whole word, also where only part of it belongs to a variable. */
#ifdef __SANITIZE_ADDRESS__
__attribute__((no_sanitize_address, noinline))
#endif
static uint64_t
whole_word(uintptr_t at)
{
    typedef uint64_t __attribute__((may_alias)) word;
    return *(const word *)at;
}

static struct qn_c11_word *make_word(struct place *p, uintptr_t at)
{
    if (t.words == QN_C11_WORDS) {
        qn_sim_fail("more shared memory than the explorer keeps");
    }
    *p = (struct place){.stamp = t.stamp, .word = t.words};
    struct qn_c11_word *w = &t.word[t.words++];
    w->at = at;
    w->variable[0] = w->variable[1] = 0;
    w->newest = 0;
    memset(w->half, 0, sizeof w->half);
    w->bytes[0] = (struct qn_c11_bytes){.node = -1};
    w->bytes[0].value = whole_word(at);
    return w;
}

struct qn_c11_word *qn_c11_word_of(uintptr_t at)
{
    at -= at % QN_C11_WORD;
    uint64_t hash = (uint64_t)at * UINT64_C(0x9e3779b97f4a7c15) >> 32;
    for (;; hash++) {
        struct place *p = &t.place[hash % TABLE];
        if (p->stamp != t.stamp) {
            return make_word(p, at);
        }
        if (t.word[p->word].at == at) {
            return &t.word[p->word];
        }
    }
}

/* ---- races ---- */

static bool ordered(const int16_t *clock, const struct qn_c11_view *now)
{
    for (uint32_t i = 0; i < qn_sim.nodes; i++) {
        if (i != qn_sim.self && clock[i] > now->at[i]) {
            return false;
        }
    }
    return true;
}

static void check_half(struct qn_c11_races *r, const struct qn_c11_view *now,
                       enum qn_c11_access kind)
{
    uint32_t me = qn_sim.self;
    bool write = kind == QN_C11_WRITE || kind == QN_C11_PLAIN_WRITE;
    bool plain = kind == QN_C11_PLAIN_READ || kind == QN_C11_PLAIN_WRITE;
    if (!ordered(plain ? r->write : r->plain_write, now)) {
        qn_sim_fail("a data race with a write");
    }
    if (write && !ordered(plain ? r->read : r->plain_read, now)) {
        qn_sim_fail("a data race with a read");
    }
    int16_t clock = now->at[me];
    (write ? r->write : r->read)[me] = clock;
    if (plain) {
        (write ? r->plain_write : r->plain_read)[me] = clock;
    }
}

void qn_c11_ordered(struct qn_c11_word *w, const struct qn_c11_view *now,
                    uint32_t from, uint32_t to, enum qn_c11_access kind)
{
    if (from < QN_C11_WORD / 2) {
        check_half(&w->half[0], now, kind);
    }
    if (to > QN_C11_WORD / 2) {
        check_half(&w->half[1], now, kind);
    }
}

/* ---- pieces ---- */

/* Part of a word: bytes [from, to) of it, at `done` of the copy. */
struct part {
    struct qn_c11_word *word;
    uint32_t from, to;
    size_t done;
};

/* The part of [at, at + n) that follows `done` bytes. */
static struct part next_part(uintptr_t at, size_t n, size_t done)
{
    uint32_t from = (uint32_t)((at + done) % QN_C11_WORD);
    size_t most = QN_MIN((size_t)(QN_C11_WORD - from), n - done);
    return (struct part){.word = qn_c11_word_of(at + done),
                         .from = from,
                         .to = from + (uint32_t)most,
                         .done = done};
}

static const struct qn_c11_view *note(uintptr_t at, size_t n,
                                      enum qn_c11_access kind)
{
    const struct qn_c11_view *now = qn_c11_tick();
    for (size_t done = 0; done < n;) {
        const struct part p = next_part(at, n, done);
        qn_c11_ordered(p.word, now, p.from, p.to, kind);
        done += p.to - p.from;
    }
    return now;
}

/* The bytes of a word were written by the running node. */
static void append(struct qn_c11_word *w, const struct qn_c11_view *now)
{
    if (w->variable[0] != 0) {
        qn_c11_overwritten(w->variable[0]);
    }
    if (w->variable[1] != 0 && w->variable[1] != w->variable[0]) {
        qn_c11_overwritten(w->variable[1]);
    }
    QN_ASSERT(w->newest < INT16_MAX);
    struct qn_c11_bytes *b = &w->bytes[++w->newest % (int16_t)QN_C11_HISTORY];
    *b = (struct qn_c11_bytes){.clock = now->at[qn_sim.self],
                               .node = (int8_t)qn_sim.self,
                               .fence = qn_c11_last_fence()};
    b->value = whole_word(w->at);
}

/* Bytes to the next line's beginning, at most n. */
static size_t in_line(uintptr_t at, size_t n)
{
    return QN_MIN((size_t)(QN_CACHELINE - at % QN_CACHELINE), n);
}

/* ---- operations ---- */

void qn_c11_copy_in(void *to, const void *from, size_t n)
{
    (void)note((uintptr_t)from, n, QN_C11_PLAIN_READ);
    memcpy(to, from, n);
}

void qn_c11_touch(const void *at, size_t n, bool written)
{
    const struct qn_c11_view *now = note(
        (uintptr_t)at, n, written ? QN_C11_PLAIN_WRITE : QN_C11_PLAIN_READ);
    for (size_t done = 0; written && done < n;) {
        const struct part p = next_part((uintptr_t)at, n, done);
        append(p.word, now);
        done += p.to - p.from;
    }
}

static void write_line(uint8_t *at, const uint8_t *bytes, size_t n)
{
    const struct qn_c11_view *now = qn_c11_tick();
    for (size_t done = 0; done < n;) {
        const struct part p = next_part((uintptr_t)at, n, done);
        qn_c11_ordered(p.word, now, p.from, p.to, QN_C11_PLAIN_WRITE);
        memcpy(at + done, bytes + done, p.to - p.from);
        append(p.word, now);
        done += p.to - p.from;
    }
}

void qn_c11_copy_out(void *at, const void *bytes, size_t n)
{
    for (size_t done = 0; done < n;) {
        uint8_t *to = (uint8_t *)at + done;
        size_t piece = in_line((uintptr_t)to, n - done);
        if (done > 0) {
            qn_explore_piece(&(struct qn_sim_access){
                .kind = QN_SIM_COPY_OUT, .at = to, .bytes = piece});
        }
        write_line(to, (const uint8_t *)bytes + done, piece);
        done += piece;
    }
}

/* How many stores of the word the running node may find. */
static uint32_t choices_of(const struct qn_c11_word *w,
                           const struct qn_c11_view *now)
{
    if (w->variable[0] != 0 || w->variable[1] != 0) {
        return 1; /* atomic variables among the bytes: the newest */
    }
    uint32_t most = QN_MIN((uint32_t)w->newest + 1, QN_C11_HISTORY);
    for (uint32_t old = 0; old < most; old++) {
        const struct qn_c11_bytes *b =
            &w->bytes[((uint32_t)w->newest - old) % QN_C11_HISTORY];
        if (b->node < 0 || b->node == (int)qn_sim.self ||
            b->clock <= now->at[b->node]) {
            return old + 1;
        }
    }
    return most;
}

static void find_line(uint8_t *to, const uint8_t *from, size_t n)
{
    const struct qn_c11_view *now = qn_c11_tick();
    for (size_t done = 0; done < n;) {
        const struct part p = next_part((uintptr_t)from, n, done);
        uint32_t old = qn_explore_old(choices_of(p.word, now));
        qn_visited_note(old);
        const struct qn_c11_bytes *b =
            &p.word->bytes[((uint32_t)p.word->newest - old) % QN_C11_HISTORY];
        const uint8_t *value =
            old == 0 ? (const uint8_t *)p.word->at : (const uint8_t *)&b->value;
        memcpy(to + done, value + p.from, p.to - p.from);
        if (b->node >= 0 && b->fence != 0) {
            qn_c11_found(qn_c11_fenced(b->fence));
        }
        done += p.to - p.from;
    }
}

void qn_c11_copy_checked(void *to, const void *from, size_t n)
{
    for (size_t done = 0; done < n;) {
        const uint8_t *at = (const uint8_t *)from + done;
        size_t piece = in_line((uintptr_t)at, n - done);
        if (done > 0) {
            qn_explore_piece(&(struct qn_sim_access){.kind = QN_SIM_COPY_IN,
                                                     .at = at,
                                                     .bytes = piece,
                                                     .checked = true});
        }
        find_line((uint8_t *)to + done, at, piece);
        done += piece;
    }
}
