/*
 * An object that changes its backend while it is used.
 *
 *     word    {changes, backend}: the backend that runs operations
 *     parts   lock, cc_synch and, with more than one domain, h_synch: whole
 *             objects of their own
 *
 * A client asks the backend that it used last. The word is written by the
 * executor of that backend only, at the end of a batch and before it hands its
 * exclusion over. Each executor loads the word once it has its own exclusion.
 * If the word names another backend the executor runs nothing: it answers
 * "elsewhere" to its batch and hands over, and these clients look at the word
 * again.
 *
 * So at most one backend runs operations. Executors of one backend come one
 * after the other, so those behind the one that changed the word see at least
 * that change. A backend that was left runs operations again only after the
 * executor of the one in use has written its name; the operations of that one
 * happen before the store, and the store before the load that finds the name.
 * Nothing is quiesced, and no client sleeps at a backend that was left: an
 * executor tells each one that waits there.
 *
 * Each client keeps what it has seen as executor for itself, until it has a
 * window (auto_rule.h): a line that all write at each operation would cost what
 * a lock costs. It tells its window behind a call, when it has handed over, so
 * that the others do not wait for it. The one whose window brings the sum of
 * all beyond a multiple of some windows lets the rule look when it is executor
 * next; one that sees as much in one call does both at once. The rule's state
 * is touched only by the executor of the backend in use, as the data.
 */
#include <assert.h>

#include "core/base/bits.h"
#include "core/base/clock.h"
#include "core/base/mark.h"
#include "core/sync/delegate/auto_rule.h"
#include "core/sync/delegate/backend.h"
#include "core/sync/delegate/backends.h"
#include "core/sync/delegate/delegate_mutant.h"

/* What runs seldom would be in each call. */
#define NOT_INLINE __attribute__((noinline))

/* What all parts share. */
struct shared {
    struct qn_auto chooser;
    /* Windows that the rule has not looked at; clients add to it. */
    struct {
        alignas(QN_CACHELINE) qn_a64 operations;
        qn_a64 batches;
        qn_a64 failed;
    } told;
    /* Plain, in the exclusion of the backend in use. */
    alignas(QN_CACHELINE) struct qn_auto_state rule;
    uint32_t served; /* since the last change; with change_every */
};

static uint32_t named(uint64_t word)
{
    return (uint32_t)word;
}

static const struct qn_delegate_type *type_of(uint32_t part)
{
    static const struct qn_delegate_type *const type[] = {
        [QN_AUTO_LOCK] = &qn_delegate_under_lock,
        [QN_AUTO_CC_SYNCH] = &qn_delegate_cc_synch,
        [QN_AUTO_H_SYNCH] = &qn_delegate_h_synch,
    };
    static_assert(QN_ARRAY_COUNT(type) == QN_DELEGATE_PARTS &&
                      QN_DELEGATE_PARTS == QN_AUTO_PARTS,
                  "one each");
    return type[part];
}

static uint32_t parts_of(const struct qn_delegate_opts *o)
{
    return o->domains > 1 ? 3 : 2;
}

static struct qn_delegate_opts part_opts(const struct qn_delegate_opts *o,
                                         uint32_t part)
{
    struct qn_delegate_opts p = *o;
    p.type = type_of(part);
    p.lock = NULL;
    return p;
}

/* Where part `part` begins; behind the last: the size of all. */
static size_t part_at(const struct qn_delegate_opts *o, uint32_t part)
{
    size_t at = sizeof(struct shared);
    for (uint32_t i = 0; i < part; i++) {
        const struct qn_delegate_opts p = part_opts(o, i);
        at += qn_delegate_bytes(&p);
    }
    return at;
}

static size_t bytes(const struct qn_delegate_opts *o)
{
    return part_at(o, parts_of(o));
}

static int format(void *memory, const struct qn_delegate_opts *o)
{
    int r = QN_OK;
    for (uint32_t i = 0; r == QN_OK && i < parts_of(o); i++) {
        const struct qn_delegate_opts p = part_opts(o, i);
        r = qn_delegate_format((char *)memory + part_at(o, i), &p);
    }
    return r;
}

static int open(struct qn_backend *b)
{
    int r = QN_OK;
    for (uint32_t i = 0; r == QN_OK && i < parts_of(&b->o); i++) {
        struct qn_backend *part = b + 1 + i;
        const struct qn_delegate_opts p = part_opts(&b->o, i);
        r = qn_backend_open(part, (char *)b->memory + part_at(&b->o, i), &p,
                            b->run, b->ctx);
        part->chooser = b->memory;
        part->index = i;
        part->parts = parts_of(&b->o);
    }
    return r;
}

static void leave_first(const struct qn_backend *b, struct qn_backend_client *c,
                        uint32_t parts)
{
    for (uint32_t i = 1; i <= parts; i++) {
        b[i].type->leave(b + i, c + i);
    }
}

static int join(const struct qn_backend *b, struct qn_backend_client *c,
                const struct qn_delegate_join_opts *o)
{
    const struct qn_auto *a = b->memory;
    for (uint32_t i = 0; i < parts_of(&b->o); i++) {
        int r = b[1 + i].type->join(b + 1 + i, c + 1 + i, o);
        if (r != QN_OK) {
            leave_first(b, c, i);
            return r;
        }
        c[1 + i].word = c[1 + i].tells = UINT64_MAX; /* no batch yet */
    }
    /* relaxed: where to ask first; an executor there knows better. */
    c->part = named(qn_load(&a->word, QN_RELAXED));
    return QN_OK;
}

static void leave(const struct qn_backend *b, struct qn_backend_client *c)
{
    leave_first(b, c, parts_of(&b->o));
}

static void stats(const struct qn_backend *b, const struct qn_backend_client *c,
                  struct qn_delegate_stats *out)
{
    for (uint32_t i = 1; i <= parts_of(&b->o); i++) {
        qn_backend_stats(b + i, c + i, out);
    }
}

/* ---- what clients see ---- */

static uint64_t seen_by(const struct qn_backend_client *c)
{
    return c->stats.served + c->lock.stats.cas_failed;
}

/* Of all clients, until the rule looks. */
static uint32_t look_of(uint32_t window)
{
    return QN_MIN(QN_AUTO_LOOK_WINDOWS * window, QN_AUTO_LOOK_MOST);
}

static void begin_window(const struct qn_backend *b,
                         struct qn_backend_client *c, uint32_t length)
{
    c->from = (struct qn_auto_window){.operations = c->stats.served,
                                      .batches = c->stats.batches,
                                      .failed = c->lock.stats.cas_failed};
    const bool in_turn = b->o.change_every != 0; /* looks at each batch */
    c->tells = in_turn ? 0 : seen_by(c) + length;
    c->looks = in_turn ? 0 : seen_by(c) + QN_MAX(length, look_of(c->window));
}

static struct qn_auto_window window_of(const struct qn_backend_client *c)
{
    return (struct qn_auto_window){
        .operations = c->stats.served - c->from.operations,
        .batches = c->stats.batches - c->from.batches,
        .failed = c->lock.stats.cas_failed - c->from.failed};
}

/* relaxed, as all of `told`: whichever sums a look finds, it compares costs,
 * and lengths of batches where it has found both. @return has the sum come to
 * another multiple? */
static bool adds(qn_a64 *sum, uint64_t n, uint64_t look)
{
    const uint64_t old = n == 0 ? 0 : qn_fetch_add(sum, n, QN_RELAXED);
    return old / look != (old + n) / look;
}

static NOT_INLINE void tell(const struct qn_backend *b,
                            struct qn_backend_client *c)
{
    struct shared *a = (struct shared *)b->chooser;
    const struct qn_auto_window w = window_of(c);
    const uint32_t often = look_of(c->window);
    (void)adds(&a->told.batches, w.batches, often);
    const bool many = adds(&a->told.operations, w.operations, often);
    const bool look = adds(&a->told.failed, w.failed, often) || many;
    begin_window(b, c, c->window);
    c->owes = false;
    if (look) {
        c->tells = c->looks = 0; /* in its next batch */
    }
}

NOT_INLINE bool qn_auto_begin(const struct qn_backend *b,
                              struct qn_backend_client *c, uint64_t word)
{
    if (named(word) != b->index && !QN_DELEGATE_MUTANT(BLIND)) {
        return false;
    }
    c->word = word;
    /* Clients that take turns would all tell at once, again and again. */
    c->window = QN_AUTO_WINDOW;
    begin_window(b, c, 1 + 13 * c->place % QN_AUTO_WINDOW);
    return true;
}

static void look_again(const struct qn_backend *b, struct qn_backend_client *c)
{
    const struct qn_auto *a = b->memory;
    /* relaxed: the executor that answered has seen another name, and its answer
     * makes that visible here. */
    c->part = named(qn_load(&a->word, QN_RELAXED));
    c->stats.elsewhere++;
}

/* By the backend that the client used last, then by the one in use, maybe
 * again and again. */
static NOT_INLINE uint64_t call_parts(const struct qn_backend *b,
                                      struct qn_backend_client *c, uint32_t op,
                                      uint64_t arg)
{
    for (;;) {
        const uint32_t at = 1 + c->part;
        const uint64_t result = b[at].type->call(b + at, c + at, op, arg);
        if (c[at].owes) {
            tell(b + at, c + at);
        }
        if (result != QN_DELEGATE_ELSEWHERE) {
            return result;
        }
        look_again(b, c);
    }
}

/* ---- under the lock ----
 *
 * Few clients use it, again and again, so call_lock is the part's own call with
 * as few instructions as can be. What is seldom needed is apart, and has the
 * object's own `b` and `c`: to keep those of the part beside them costs four.
 */

static NOT_INLINE bool begin_at_lock(const struct qn_backend *b,
                                     struct qn_backend_client *c, uint64_t word)
{
    return qn_auto_begin(b + 1, c + 1, word);
}

static NOT_INLINE uint64_t leave_lock(const struct qn_backend *b,
                                      struct qn_backend_client *c, uint32_t op,
                                      uint64_t arg)
{
    qn_lock_release(&c[1].lock);
    look_again(b, c);
    return call_parts(b, c, op, arg);
}

static NOT_INLINE uint64_t end_at_lock(const struct qn_backend *b,
                                       struct qn_backend_client *c,
                                       uint64_t result)
{
    qn_auto_end(b + 1, c + 1);
    qn_lock_release(&c[1].lock);
    if (c[1].owes) {
        tell(b + 1, c + 1);
    }
    return result;
}

static inline uint64_t call_lock(const struct qn_backend *b,
                                 struct qn_backend_client *c, uint32_t op,
                                 uint64_t arg)
{
    qn_lock_acquire(&c[1].lock);
    const uint64_t word = qn_auto_word(b + 1);
    if (word != c[1].word && !begin_at_lock(b, c, word)) {
        return leave_lock(b, c, op, arg);
    }
    const uint64_t result = qn_backend_execute(b + 1, true, op, arg);
    qn_backend_count(c + 1, 1);
    if (qn_auto_is_due(c + 1)) {
        return end_at_lock(b, c, result);
    }
    qn_lock_release(&c[1].lock);
    return result;
}

static uint64_t call(const struct qn_backend *b, struct qn_backend_client *c,
                     uint32_t op, uint64_t arg)
{
    if (QN_DELEGATE_MUTANT(FROM_OUTSIDE)) {
        struct qn_auto *a = b->memory;
        const uint64_t word = qn_load(&a->word, QN_ACQUIRE);
        qn_store(&a->word, (word + (UINT64_C(1) << 32)) ^ QN_AUTO_CC_SYNCH,
                 QN_RELEASE);
    }
    return c->part == QN_AUTO_LOCK ? call_lock(b, c, op, arg)
                                   : call_parts(b, c, op, arg);
}

/* ---- another backend ---- */

/* For tests: the next backend in turn. */
static uint32_t in_turn(struct shared *a, const struct qn_backend *b,
                        const struct qn_backend_client *c)
{
    qn_touch_out(&a->served, sizeof a->served);
    a->served += (uint32_t)window_of(c).operations;
    if (a->served < b->o.change_every) {
        return b->index;
    }
    a->served = 0;
    return (b->index + 1) % b->parts;
}

/* What has been told and not looked at. relaxed: as adds. */
static uint64_t take(qn_a64 *sum)
{
    return qn_load(sum, QN_RELAXED) == 0 ? 0 : qn_exchange(sum, 0, QN_RELAXED);
}

static uint32_t by_rule(struct shared *a, const struct qn_backend *b,
                        const struct qn_backend_client *c)
{
    struct qn_auto_window w = window_of(c);
    w.operations += take(&a->told.operations);
    w.batches += take(&a->told.batches);
    w.failed += take(&a->told.failed);
    qn_touch_out(&a->rule, QN_CACHELINE);
    return qn_auto_rule(b->parts, b->index, &w, qn_clock_now(), &a->rule);
}

void qn_auto_end(const struct qn_backend *b, struct qn_backend_client *c)
{
    if (seen_by(c) < c->looks) {
        c->owes = true;
        return;
    }
    struct shared *a = (struct shared *)b->chooser;
    const uint32_t to =
        b->o.change_every != 0 ? in_turn(a, b, c) : by_rule(a, b, c);
    c->window = a->rule.window;
    begin_window(b, c, c->window);
    if (to != b->index) {
        c->stats.changes++;
        /* release -> acquire in qn_auto_word. */
        qn_store(&a->chooser.word, ((c->word >> 32) + 1) << 32 | to,
                 QN_RELEASE);
    }
}

const struct qn_delegate_type qn_delegate_auto = {
    .name = "auto",
    .lock = "tas",
    .domains = true,
    .bytes = bytes,
    .format = format,
    .open = open,
    .join = join,
    .leave = leave,
    .call = call,
    .stats = stats,
};
