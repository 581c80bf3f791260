/*
 * Runs the steps of the schedule: waits on the words of other members, copies
 * between arenas, combines, raises the own word.
 *
 * A sleeper cannot be missed: it counts itself, and the kernel, behind a fence,
 * lets no thread sleep on a word that has changed. A member that raises the
 * word changes it and then loads the count, both seq_cst. So either the sleeper
 * sees the change or the other one the count. A sleeper that is killed leaves
 * the count too high, which costs system calls and nothing else.
 *
 * The mark of an ended member is a bit of the same word, so that it wakes
 * those that sleep there. Its member raises the word by adding, and so finds
 * the mark if it lives.
 */
#include "core/coll/large/large.h"

#include <assert.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/base/mark.h"
#include "core/coll/large/bulk_copy.h"
#include "core/coll/large/large_predict.h"
#include "core/wait/park.h"

#define ENDED         1u
#define NOTHING       UINT64_MAX /* shown: no contribution */
/* Bytes that are combined at once: with their operands they stay in a cache. */
#define COMBINE_BYTES 16384u
/* Of a copy, at least: bytes per ns. */
#define COPY_PER_NS   8u
/* Above it a wake-up, of 20 to 50 us on an idle core, is little beside the
 * copies. (1 MiB: 1.2 times as long among 2 processes without it, 1.4 times
 * among 4 on two cores; reductions of 64 KiB among 4: 1.7 times.) */
#define AWAKE_MOST    (200 * QN_US)
/* Values by which words may differ: half of those that a comparison of 31 bits
 * tells apart. */
#define UNMET_MOST    ((uint64_t)1 << 29)

static_assert(sizeof(struct qn_large_line) == QN_CACHELINE, "one line each");

/* ---- words ---- */

void qn_large_down(struct qn_large_line *lines, uint32_t rank)
{
    /* release -> the acquire of `wait_for`: a member that has failed uses no
     * buffer any more. Sleepers are woken in any case. */
    (void)qn_fetch_or(&lines[rank].word, ENDED, QN_RELEASE);
    qn_unpark_word(&lines[rank].word);
}

static int raise_word(struct qn_large *l, uint32_t value)
{
    struct qn_large_line *own = &l->o.lines[l->o.rank];
    const uint32_t to = l->base + value, by = (to - l->value) << 1;
    l->value = to;
    /* seq_cst: a release -> the acquire of `wait_for`, for what was copied and
     * shown; and before the load of `sleepers`: the partner is `sleep_on`. */
    const uint32_t before = qn_fetch_add(&own->word, by, QN_SEQ_CST);
    if (qn_load(&own->sleepers, QN_SEQ_CST) != 0) {
        qn_unpark_word(&own->word);
    }
    return (before & ENDED) != 0 ? QN_EREMOVED : QN_OK;
}

static void sleep_on(struct qn_large_line *line, uint32_t seen)
{
    /* relaxed: the file comment; the partner is `raise_word`. */
    (void)qn_fetch_add(&line->sleepers, 1, QN_RELAXED);
    (void)qn_park_word(&line->word, seen, QN_TIME_NEVER);
    /* relaxed: one too many for a while makes a system call more. */
    (void)qn_fetch_add(&line->sleepers, UINT32_MAX, QN_RELAXED);
}

/* Nothing was found. What this member waits for is mostly a copy of known
 * length, so behind its backoff it stays awake for about as long.
 * @param until  ns; 0 at first. @return true: look again; false: sleep. */
static bool stays_awake(struct qn_large *l, qn_time_t *until)
{
    if (!qn_may_look()) {
        return false;
    }
    if (qn_backoff_again(&l->backoff)) {
        return true;
    }
    const qn_time_t now = qn_clock_now();
    *until = *until == 0 ? now + l->awake_ns : *until;
    if (now >= *until) {
        return false;
    }
    if (l->o.backoff.look_ns > 0) { /* it owns its core */
        qn_looks_until(*until);
        qn_pause();
        return true;
    }
    return qn_spin_yield(&l->yield, now);
}

static int wait_for(struct qn_large *l, uint32_t member, uint32_t value)
{
    struct qn_large_line *line = &l->o.lines[member];
    const uint32_t goal = (l->base + value) << 1;
    qn_time_t until = 0;
    qn_backoff_reset(&l->backoff);
    for (;;) {
        /* acquire -> raise_word of the member. */
        const uint32_t seen = qn_load(&line->word, QN_ACQUIRE);
        if ((int32_t)((seen & ~ENDED) - goal) >= 0) {
            return QN_OK;
        }
        if ((seen & ENDED) != 0) {
            return QN_EPEERDEAD;
        }
        if (!stays_awake(l, &until)) {
            sleep_on(line, seen);
        }
    }
}

/* ---- buffers ---- */

static const char *user_buffer(const struct qn_large *l, enum qn_large_buffer b)
{
    return b == QN_LARGE_IN    ? l->call->in
           : b == QN_LARGE_OUT ? l->call->out
                               : l->work;
}

static const char *base_of(const struct qn_large *l, uint32_t member)
{
    return l->o.arenas == NULL ? NULL : l->o.arenas[member].base;
}

static size_t size_of(const struct qn_large *l, uint32_t member)
{
    return l->o.arenas == NULL ? SIZE_MAX : l->o.arenas[member].bytes;
}

/* Where a buffer is in the own arena. */
static uint64_t offset_of(const struct qn_large *l, const char *p)
{
    return (uint64_t)((uintptr_t)p - (uintptr_t)base_of(l, l->o.rank));
}

static uint64_t shown_by(struct qn_large *l, uint32_t member)
{
    const enum qn_large_buffer b = qn_large_shows(&l->plan, member);
    if (l->plan.entry == QN_LARGE_NONE && b != QN_LARGE_WORK) {
        return offset_of(l, user_buffer(l, b));
    }
    /* relaxed: its member has entered, which `wait_for` has found. */
    return qn_load(&l->o.lines[member].shown, QN_RELAXED);
}

/* @param p  Filled: NULL for what contributes nothing. */
static int resolve(struct qn_large *l, const struct qn_large_at *at,
                   uint64_t bytes, const char **p)
{
    if (at->buffer != QN_LARGE_SHOWN) {
        const char *own = user_buffer(l, at->buffer);
        *p = own == NULL ? NULL : own + at->offset;
        return QN_OK;
    }
    const uint64_t shown = shown_by(l, at->member);
    const size_t size = size_of(l, at->member);
    if (shown == NOTHING && l->plan.variant->operation == QN_LARGE_REDUCE) {
        *p = NULL;
        return QN_OK;
    }
    if (shown > size || at->offset + bytes > size - shown) {
        return QN_ECORRUPT;
    }
    *p = (const char *)((uintptr_t)base_of(l, at->member) + shown + at->offset);
    return QN_OK;
}

/* ---- steps ---- */

static void fill_neutral(const struct qn_operator *op, char *to, uint64_t bytes)
{
    for (uint64_t at = 0; at < bytes; at += op->bytes) {
        qn_copy_out(to + at, op->neutral, op->bytes);
    }
}

static void copy(struct qn_large *l, char *to, const char *from, uint64_t bytes)
{
    if (from == NULL) {
        fill_neutral(l->call->op, to, bytes);
    } else if (to != from) {
        /* Published by the next raise_word, found by the last wait_for. */
        qn_bulk_copy(to, from, bytes);
    }
}

/* Piece by piece, so that what was copied is combined from the cache. */
static void combine(struct qn_large *l, const struct qn_large_step *s, char *to,
                    const char *left, const char *from)
{
    const struct qn_operator *op = l->call->op;
    const uint64_t most = COMBINE_BYTES / op->bytes * op->bytes;
    for (uint64_t at = 0; at < s->bytes; at += most) {
        const uint64_t bytes = QN_MIN(most, s->bytes - at);
        copy(l, to + at, left == NULL ? NULL : left + at, bytes);
        if (from != NULL) {
            qn_bulk_touch(to + at, from + at, bytes);
            op->combine(to + at, from + at, (uint32_t)(bytes / op->bytes));
        }
    }
}

static int move(struct qn_large *l, const struct qn_large_step *s)
{
    const char *to, *from, *left = NULL;
    if (s->bytes == 0) {
        return QN_OK;
    }
    int rc = resolve(l, &s->to, s->bytes, &to);
    rc = rc == QN_OK ? resolve(l, &s->from, s->bytes, &from) : rc;
    if (rc == QN_OK && s->kind == QN_LARGE_COMBINE) {
        rc = resolve(l, &s->left, s->bytes, &left);
    }
    if (rc == QN_OK && to == NULL) {
        rc = QN_ECORRUPT; /* its member shows nothing */
    }
    if (rc != QN_OK) {
        return rc;
    }
    /* What is written is memory of this member, or of one that agreed. */
    char *writable = (char *)(uintptr_t)to;
    if (s->kind == QN_LARGE_COMBINE) {
        combine(l, s, writable, left, from);
    } else {
        copy(l, writable, from, s->bytes);
    }
    return QN_OK;
}

static int run_step(void *ctx, const struct qn_large_step *s)
{
    struct qn_large *l = ctx;
    switch (s->kind) {
    case QN_LARGE_WAIT:
        return wait_for(l, s->member, s->value);
    case QN_LARGE_RAISE:
        return raise_word(l, s->value);
    default:
        return move(l, s);
    }
}

/* ---- an operation ---- */

int qn_large_init(struct qn_large *l, const struct qn_large_opts *o)
{
    if (o->members == 0 || o->members > QN_LARGE_MEMBERS_MAX ||
        o->rank >= o->members || o->lines == NULL ||
        (o->arenas != NULL && o->work == NULL)) {
        return QN_EINVAL;
    }
    *l = (struct qn_large){.o = *o, .tree_kind = QN_LARGE_RING};
    l->o.work = qn_alloc_or_malloc(o->work);
    l->o.threshold = o->threshold == 0 ? QN_LARGE_CHUNK : o->threshold;
    l->regions = qn_large_tree_regions(o->place, o->members);
    qn_backoff_init(&l->backoff, &o->backoff);
    return QN_OK;
}

static void give_work(struct qn_large *l)
{
    qn_alloc_free(l->o.work, l->work);
    l->work = NULL;
    l->work_bytes = 0;
}

void qn_large_fini(struct qn_large *l)
{
    give_work(l);
}

static int take_work(struct qn_large *l, uint64_t bytes)
{
    if (bytes <= l->work_bytes) {
        return QN_OK;
    }
    give_work(l);
    l->work = l->o.work->resize(l->o.work->ctx, NULL, bytes);
    l->work_bytes = l->work == NULL ? 0 : bytes;
    return l->work == NULL ? QN_ENOMEM : QN_OK;
}

/* This member goes no further, and so nor do those that need it. */
static int fail(struct qn_large *l, int rc)
{
    l->failed = rc;
    l->left_over = false;
    qn_large_down(l->o.lines, l->o.rank);
    return rc;
}

/* No other member uses the buffers of this operation any more. */
static void end(struct qn_large *l)
{
    const uint64_t span = qn_large_span(&l->plan);
    l->base += (uint32_t)span;
    l->unmet = l->plan.entry == QN_LARGE_ALL ? span : l->unmet + span;
    l->left_over = false;
    if (l->work_bytes > QN_LARGE_KEPT_MAX) {
        give_work(l);
    }
}

/* What the last operation has left. */
static int finish_last(struct qn_large *l)
{
    if (l->failed == QN_OK && l->left_over) {
        const int rc = qn_large_steps_left(&l->plan, l->o.rank, run_step, l);
        if (rc != QN_OK) {
            return fail(l, rc);
        }
        end(l);
    }
    return l->failed;
}

/* A member that has ended uses nothing any more. This one has said that it has
 * failed, so all others come to the end of the operation or fail. */
static int wait_until_over(void *ctx, const struct qn_large_step *s)
{
    (void)wait_for(ctx, s->member, s->value);
    return QN_OK;
}

int qn_large_settle(struct qn_large *l)
{
    if (finish_last(l) != QN_OK) {
        (void)qn_large_steps_over(&l->plan, l->o.rank, wait_until_over, l);
    }
    return l->failed;
}

/* How long a member looks, or yields, before it sleeps: for as long as all
 * copies of the operation take, if they are short; and not at all if it is to
 * park at once. */
static qn_time_t awake_ns(const struct qn_large *l, uint64_t bytes)
{
    const bool parks = l->o.backoff.look_ns == 0 && l->o.backoff.yields == 0;
    return parks ? 0 : QN_MIN(bytes * l->o.members / COPY_PER_NS, AWAKE_MOST);
}

static const struct qn_shape *tree_of(struct qn_large *l, uint32_t root,
                                      enum qn_large_tree kind)
{
    const bool own = l->o.members <= QN_LARGE_OWN_TREES;
    const uint32_t k = kind == QN_LARGE_BINOMIAL_FLAT;
    if (l->tree.n != 0 && l->tree_kind == kind && l->tree.root == root) {
        return &l->tree;
    }
    l->tree_kind = kind;
    if (own || kind == QN_LARGE_FLAT) {
        qn_large_tree_build(&l->tree, l->o.place, l->o.members, root, kind);
        return &l->tree;
    }
    if (!l->kept_built[k]) {
        qn_large_tree_build(&l->kept[k], l->o.place, l->o.members, 0, kind);
        l->kept_built[k] = true;
    }
    l->tree = l->kept[k];
    qn_large_tree_reroot(&l->tree, root);
    return &l->tree;
}

static struct qn_large_plan plan_of(struct qn_large *l,
                                    const struct qn_large_call *c,
                                    const struct qn_large_variant *v)
{
    const bool vectors =
        v->operation == QN_LARGE_BROADCAST || v->operation == QN_LARGE_REDUCE;
    /* Without arenas no two members have a buffer at the same place. */
    const enum qn_large_sync entry =
        l->o.arenas == NULL && c->entry == QN_LARGE_NONE ? QN_LARGE_OWN
                                                         : c->entry;
    struct qn_large_plan p = {
        .variant = v,
        .tree = vectors ? tree_of(l, c->root, v->tree) : NULL,
        .place = l->o.place,
        .n = l->o.members,
        .root = c->root,
        .bytes = c->bytes,
        .threshold = l->o.threshold,
        .ordered = v->operation == QN_LARGE_REDUCE && !c->op->commutes,
        .entry = entry,
        .exit = c->exit,
    };
    /* Words must stay comparable. All come to this at the same call. */
    if (l->unmet + qn_large_span(&p) > UNMET_MOST) {
        p.entry = QN_LARGE_ALL;
    }
    return p;
}

static bool has_buffers(const struct qn_large *l, const struct qn_large_call *c)
{
    const bool root = c->root == l->o.rank;
    const bool both = c->in != NULL && c->out != NULL;
    if (c->bytes == 0 || c->entry == QN_LARGE_NONE) {
        return c->bytes == 0 || both;
    }
    switch (c->operation) {
    case QN_LARGE_BROADCAST:
        return root ? c->in != NULL : c->out != NULL;
    case QN_LARGE_REDUCE:
        return !root || c->out != NULL;
    case QN_LARGE_SCATTER:
        return root ? both : c->out != NULL;
    default:
        return root ? both : c->in != NULL;
    }
}

static bool is_own(const struct qn_large *l, const char *at, uint64_t bytes)
{
    const size_t size = size_of(l, l->o.rank);
    const uint64_t offset = offset_of(l, at);
    return offset <= size && bytes <= size - offset;
}

static int check(const struct qn_large *l, const struct qn_large_call *c,
                 const struct qn_large_variant *v)
{
    const bool reduce = c->operation == QN_LARGE_REDUCE;
    if (c->root >= l->o.members || c->bytes > QN_LARGE_BYTES_MAX ||
        v->operation != c->operation || (reduce && c->op == NULL) ||
        (reduce && c->bytes % c->op->bytes != 0) || !has_buffers(l, c)) {
        return QN_EINVAL;
    }
    /* Where the others' are, it takes from where its own are. */
    if (c->entry == QN_LARGE_NONE && c->bytes > 0 &&
        !(is_own(l, c->in, c->bytes) && is_own(l, c->out, c->bytes))) {
        return QN_EINVAL;
    }
    return v->direction == QN_LARGE_PUSH && !l->o.push ? QN_EPERM : QN_OK;
}

/* Say where the buffer is that others use. */
static int show(struct qn_large *l)
{
    const struct qn_large_plan *p = &l->plan;
    const enum qn_large_buffer b = qn_large_shows(p, l->o.rank);
    const bool all =
        l->o.rank == p->root && (p->variant->operation == QN_LARGE_SCATTER ||
                                 p->variant->operation == QN_LARGE_GATHER);
    const char *at = user_buffer(l, b);
    const uint64_t bytes = b == QN_LARGE_WORK
                               ? qn_large_work_bytes(p, l->o.rank)
                           : all ? p->bytes * p->n
                                 : p->bytes;
    if (at != NULL && !is_own(l, at, bytes)) {
        return QN_EINVAL;
    }
    /* relaxed: raise_word publishes it; all that used the last one have said
     * so before this operation began. */
    qn_store(&l->o.lines[l->o.rank].shown,
             at == NULL ? NOTHING : offset_of(l, at), QN_RELAXED);
    return QN_OK;
}

int qn_large_run(struct qn_large *l, const struct qn_large_call *c)
{
    const struct qn_large_variant *v = c->variant;
    if (v == NULL && c->operation < QN_LARGE_OPERATIONS) {
        v = l->o.choices != NULL
                ? qn_large_choices_of(l->o.choices, c->operation, c->bytes)
                : qn_large_variant_choose(c->operation, l->regions, l->o.push);
    }
    int rc = v == NULL ? QN_EINVAL : check(l, c, v);
    rc = rc == QN_OK ? finish_last(l) : rc;
    if (rc != QN_OK) {
        return rc;
    }
    l->call = c;
    l->plan = plan_of(l, c, v);
    l->awake_ns = awake_ns(l, c->bytes);
    rc = take_work(l, qn_large_work_bytes(&l->plan, l->o.rank));
    rc = rc == QN_OK ? show(l) : rc;
    if (rc != QN_OK) {
        return rc;
    }
    rc = qn_large_steps(&l->plan, l->o.rank, run_step, l);
    l->call = NULL;
    if (rc != QN_OK) {
        return fail(l, rc);
    }
    l->left_over = c->exit == QN_LARGE_NONE;
    if (!l->left_over) {
        end(l);
    }
    return QN_OK;
}
