#include "tests/unit/core/coll/large/large_world.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"

#define GUARD 8u
#define GONE  0xee

struct bytes {
    uint8_t *at;
    uint64_t count;
};

struct member {
    struct qn_large_step *steps;
    size_t count, room, next;
    size_t own; /* steps that are not left to the next operation */
    struct bytes in, out, work, input;
    uint32_t word;
    bool entered, left, gone;
};

struct world {
    const struct qn_large_plan *p;
    struct member *m; /* [n] */
    uint32_t random;
    const char *wrong;
};

static void expect(struct world *w, bool holds, const char *what)
{
    if (!holds && w->wrong == NULL) {
        w->wrong = what;
    }
}

static struct bytes take(uint64_t count)
{
    struct bytes b = {malloc(count + GUARD), count};
    QN_ASSERT(b.at != NULL);
    memset(b.at, GONE, count + GUARD);
    return b;
}

/* ---- what is expected ---- */

static uint8_t content(uint32_t member, uint64_t i)
{
    return (uint8_t)(member * 31 + i * 7 + (i >> 8) + 1);
}

/* Pairs (a, b) of bytes as maps x -> a x + b: one behind the other. */
static void compose(uint8_t *to, const uint8_t *left, const uint8_t *right,
                    uint64_t bytes)
{
    for (uint64_t i = 0; i + 1 < bytes; i += 2) {
        const uint8_t a = left[i], b = left[i + 1];
        const uint8_t c = right[i], d = right[i + 1];
        to[i] = (uint8_t)(a * c);
        to[i + 1] = (uint8_t)(a * d + b);
    }
}

static void add(uint8_t *to, const uint8_t *left, const uint8_t *right,
                uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes; i++) {
        to[i] = (uint8_t)(left[i] + right[i]);
    }
}

static void combine(const struct qn_large_plan *p, uint8_t *to,
                    const uint8_t *left, const uint8_t *right)
{
    if (p->ordered) {
        compose(to, left, right, p->bytes);
    } else {
        add(to, left, right, p->bytes);
    }
}

/* The sum of all inputs, in rank order. */
static bool is_sum(const struct world *w, const uint8_t *out)
{
    const struct qn_large_plan *p = w->p;
    uint8_t *sum = malloc(p->bytes + 1);
    QN_ASSERT(sum != NULL);
    memcpy(sum, w->m[0].input.at, p->bytes);
    for (uint32_t x = 1; x < p->n; x++) {
        combine(p, sum, sum, w->m[x].input.at);
    }
    const bool same = memcmp(sum, out, p->bytes) == 0;
    free(sum);
    return same;
}

static bool is_right(const struct world *w, uint32_t self)
{
    const struct qn_large_plan *p = w->p;
    const uint8_t *out = w->m[self].out.at;
    const struct member *root = &w->m[p->root];
    bool right = true;
    switch (p->variant->operation) {
    case QN_LARGE_BROADCAST:
        return self == p->root || memcmp(out, root->input.at, p->bytes) == 0;
    case QN_LARGE_REDUCE:
        return self != p->root || is_sum(w, out);
    case QN_LARGE_SCATTER:
        return memcmp(out, root->input.at + self * p->bytes, p->bytes) == 0;
    default:
        for (uint32_t x = 0; self == p->root && x < p->n; x++) {
            right = right &&
                    memcmp(out + x * p->bytes, w->m[x].input.at, p->bytes) == 0;
        }
        return right;
    }
}

/* ---- members ---- */

static int keep(void *ctx, const struct qn_large_step *step)
{
    struct member *m = ctx;
    if (m->count == m->room) {
        m->room = m->room * 2 + 16;
        m->steps = realloc(m->steps, m->room * sizeof *m->steps);
        QN_ASSERT(m->steps != NULL);
    }
    m->steps[m->count++] = *step;
    return QN_OK;
}

static void enter(struct world *w, uint32_t self)
{
    struct member *m = &w->m[self];
    if (!m->entered) {
        memcpy(m->in.at, m->input.at, m->in.count);
        m->entered = true;
    }
}

static void begin(struct world *w, uint32_t self)
{
    const struct qn_large_plan *p = w->p;
    struct member *m = &w->m[self];
    const enum qn_large_operation op = p->variant->operation;
    const bool blocks = op == QN_LARGE_SCATTER || op == QN_LARGE_GATHER;
    const uint64_t all = (blocks ? p->n : 1) * p->bytes;
    const bool root = self == p->root;
    const bool down = op == QN_LARGE_BROADCAST || op == QN_LARGE_SCATTER;
    const uint64_t in = root && down ? all : down ? 0 : p->bytes;
    const uint64_t out = root && !down ? all : down ? p->bytes : 0;
    *m = (struct member){.in = take(in), .out = take(out), .input = take(in)};
    m->work = take(qn_large_work_bytes(p, self));
    for (uint64_t i = 0; i < in; i++) {
        m->input.at[i] = content(self, i);
    }
    int rc = qn_large_steps(p, self, keep, m);
    QN_ASSERT(rc == QN_OK);
    m->own = m->count;
    if (p->exit == QN_LARGE_NONE) {
        rc = qn_large_steps_left(p, self, keep, m);
        QN_ASSERT(rc == QN_OK);
    }
    if (p->entry == QN_LARGE_NONE) {
        enter(w, self);
    }
}

static bool guarded(const struct bytes *b)
{
    for (uint32_t i = 0; i < GUARD; i++) {
        if (b->at[b->count + i] != GONE) {
            return false;
        }
    }
    return true;
}

static void end(struct member *m)
{
    free(m->steps);
    free(m->in.at);
    free(m->out.at);
    free(m->work.at);
    free(m->input.at);
}

/* ---- steps ---- */

static struct bytes *buffer_of(struct world *w, uint32_t self,
                               enum qn_large_buffer b)
{
    struct member *m = &w->m[self];
    return b == QN_LARGE_IN ? &m->in : b == QN_LARGE_OUT ? &m->out : &m->work;
}

static uint8_t *resolve(struct world *w, uint32_t self,
                        const struct qn_large_at *at, uint64_t bytes)
{
    const bool far = at->buffer == QN_LARGE_SHOWN;
    const uint32_t owner = far ? at->member : self;
    struct bytes *b =
        buffer_of(w, owner, far ? qn_large_shows(w->p, owner) : at->buffer);
    expect(w, w->m[owner].entered, "a buffer is used before its entry");
    expect(w, !w->m[owner].gone, "a buffer is used when its member has left");
    expect(w, at->offset + bytes <= b->count, "past the end of a buffer");
    return at->offset + bytes <= b->count ? b->at + at->offset : NULL;
}

static bool all_entered(const struct world *w)
{
    bool all = true;
    for (uint32_t x = 0; x < w->p->n; x++) {
        all = all && w->m[x].entered;
    }
    return all;
}

static void move(struct world *w, uint32_t self, const struct qn_large_step *s)
{
    const bool sum = s->kind == QN_LARGE_COMBINE;
    uint8_t *to = resolve(w, self, &s->to, s->bytes);
    const uint8_t *from = resolve(w, self, &s->from, s->bytes);
    const uint8_t *left = sum ? resolve(w, self, &s->left, s->bytes) : from;
    expect(w, w->p->entry != QN_LARGE_ALL || all_entered(w),
           "a copy before all have entered");
    if (w->wrong != NULL) {
        return;
    }
    if (sum) {
        combine(w->p, to, left, from);
    } else {
        memcpy(to, from, s->bytes);
    }
}

static void raise_word(struct world *w, uint32_t self, uint32_t value)
{
    struct member *m = &w->m[self];
    expect(w, value > m->word && value < qn_large_span(w->p),
           "progress is not raised, or beyond its span");
    enter(w, self);
    m->word = value;
}

static bool is_runnable(const struct world *w, uint32_t self)
{
    const struct member *m = &w->m[self];
    const struct qn_large_step *s = &m->steps[m->next];
    return m->next < m->count &&
           (s->kind != QN_LARGE_WAIT || w->m[s->member].word >= s->value);
}

static bool copies_are_over(const struct world *w)
{
    for (uint32_t x = 0; x < w->p->n; x++) {
        const struct member *m = &w->m[x];
        for (size_t i = m->next; i < m->count; i++) {
            if (m->steps[i].kind == QN_LARGE_COPY ||
                m->steps[i].kind == QN_LARGE_COMBINE) {
                return false;
            }
        }
    }
    return true;
}

static void check_returns(struct world *w, uint32_t self)
{
    struct member *m = &w->m[self];
    if (m->next == m->own && !m->left) {
        m->left = true;
        expect(w, is_right(w, self), "a wrong result");
        expect(w, w->p->exit != QN_LARGE_ALL || copies_are_over(w),
               "a member has left before all are done");
    }
    if (m->next == m->count && !m->gone) {
        m->gone = true;
        memset(m->in.at, GONE, m->in.count);
        memset(m->work.at, GONE, m->work.count);
    }
}

static void step(struct world *w, uint32_t self)
{
    struct member *m = &w->m[self];
    const struct qn_large_step *s = &m->steps[m->next];
    if (s->kind == QN_LARGE_RAISE) {
        raise_word(w, self, s->value);
    } else if (s->kind != QN_LARGE_WAIT) {
        move(w, self, s);
    }
    m->next++;
    check_returns(w, self);
}

static uint32_t draw(struct world *w, uint32_t below)
{
    w->random = w->random * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)w->random * below >> 32);
}

/* One step of some member. @return false: none can go on. */
static bool step_any(struct world *w)
{
    const uint32_t first = draw(w, w->p->n);
    for (uint32_t i = 0; i < w->p->n; i++) {
        const uint32_t self = (first + i) % w->p->n;
        if (is_runnable(w, self)) {
            step(w, self);
            return true;
        }
    }
    return false;
}

static void check_end(struct world *w)
{
    for (uint32_t x = 0; x < w->p->n; x++) {
        const struct member *m = &w->m[x];
        expect(w, m->left && m->gone, "members wait for each other");
        expect(w, is_right(w, x), "a result has changed");
        expect(w, guarded(&m->in) && guarded(&m->out) && guarded(&m->work),
               "bytes behind a buffer have changed");
    }
}

const char *qn_large_world_run(const struct qn_large_plan *plan, uint32_t seed)
{
    static struct qn_shape tree; /* too large for the stack */
    struct qn_large_plan p = *plan;
    struct world w = {.p = &p, .random = seed};
    if (p.tree == NULL) {
        qn_large_tree_build(&tree, p.place, p.n, p.root, p.variant->tree);
        p.tree = &tree;
    }
    w.m = calloc(p.n, sizeof *w.m);
    QN_ASSERT(w.m != NULL);
    for (uint32_t x = 0; x < p.n; x++) {
        begin(&w, x);
    }
    while (w.wrong == NULL && step_any(&w)) {
    }
    check_end(&w);
    for (uint32_t x = 0; x < p.n; x++) {
        end(&w.m[x]);
    }
    free(w.m);
    return w.wrong;
}
