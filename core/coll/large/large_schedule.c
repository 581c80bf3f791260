/*
 * Entry, work, exit. A barrier is a dissemination: in round r a member says
 * that it has come so far and waits for the one 2^r before it; behind the last
 * round it knows of all. It needs no more than the words that are there.
 */
#include "core/coll/large/large_schedule.h"

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/coll/large/large_schedule_internal.h"

static bool is_of_vectors(const struct qn_large_plan *p)
{
    return p->variant->operation == QN_LARGE_BROADCAST ||
           p->variant->operation == QN_LARGE_REDUCE;
}

static uint32_t rounds(const struct qn_large_plan *p, enum qn_large_sync sync)
{
    uint32_t r = 0;
    while (sync == QN_LARGE_ALL && (1u << r) < p->n) {
        r++;
    }
    return r;
}

/* The highest number of a piece of any member's work that others wait for. */
static uint64_t work_values(const struct qn_large_plan *p)
{
    const struct qn_large_variant *v = p->variant;
    const uint64_t longest = is_of_vectors(p) ? p->bytes : p->bytes * p->n;
    const uint64_t fragments = qn_large_fragment_count(v, longest);
    const bool each =
        v->operation == QN_LARGE_BROADCAST && v->direction == QN_LARGE_PUSH;
    return each ? fragments * p->n : fragments + p->n;
}

static uint32_t entered_value(const struct qn_large_plan *p)
{
    return QN_MAX(1, rounds(p, p->entry));
}

uint64_t qn_large_span(const struct qn_large_plan *p)
{
    return entered_value(p) + work_values(p) + 2 + rounds(p, p->exit);
}

void qn_large_write(struct qn_large_writer *w, const struct qn_large_step *s)
{
    if (w->rc == QN_OK) {
        w->rc = w->emit(w->ctx, s);
    }
}

static void write_wait(struct qn_large_writer *w, uint32_t member,
                       uint32_t value)
{
    QN_DASSERT(member != w->self);
    qn_large_write(w, &(struct qn_large_step){.kind = QN_LARGE_WAIT,
                                              .member = member,
                                              .value = value});
}

static void write_raise(struct qn_large_writer *w, uint32_t value)
{
    qn_large_write(
        w, &(struct qn_large_step){.kind = QN_LARGE_RAISE, .value = value});
}

void qn_large_write_wait(struct qn_large_writer *w, uint32_t member, uint32_t k)
{
    write_wait(w, member, w->entered + k);
}

void qn_large_write_await(struct qn_large_writer *w, uint32_t member)
{
    /* Where an intermediate buffer is, only its owner says. */
    if (w->p->entry != QN_LARGE_NONE ||
        qn_large_shows(w->p, member) == QN_LARGE_WORK) {
        write_wait(w, member, 1);
    }
}

void qn_large_write_until_done(struct qn_large_writer *w, uint32_t member)
{
    write_wait(w, member, w->done);
}

void qn_large_write_raise(struct qn_large_writer *w, uint32_t k)
{
    QN_DASSERT(w->entered + k < w->done);
    write_raise(w, w->entered + k);
}

void qn_large_write_copy(struct qn_large_writer *w, struct qn_large_at to,
                         struct qn_large_at from, uint64_t bytes)
{
    if (bytes > 0) {
        qn_large_write(w, &(struct qn_large_step){.kind = QN_LARGE_COPY,
                                                  .bytes = bytes,
                                                  .to = to,
                                                  .from = from});
    }
}

static void write_barrier(struct qn_large_writer *w, uint32_t count,
                          uint32_t value)
{
    const uint32_t n = w->p->n;
    for (uint32_t r = 0; r < count; r++) {
        write_raise(w, value + r);
        write_wait(w, (w->self + n - (1u << r)) % n, value + r);
    }
}

static struct qn_large_writer writer_of(const struct qn_large_plan *p,
                                        uint32_t self, qn_large_emit_fn *emit,
                                        void *ctx)
{
    const uint32_t entered = entered_value(p);
    QN_ASSERT(self < p->n);
    return (struct qn_large_writer){
        .p = p,
        .self = self,
        .emit = emit,
        .ctx = ctx,
        .rc = QN_OK,
        .entered = entered,
        .done = entered + (uint32_t)work_values(p) + 1,
    };
}

int qn_large_steps(const struct qn_large_plan *p, uint32_t self,
                   qn_large_emit_fn *emit, void *ctx)
{
    struct qn_large_writer w = writer_of(p, self, emit, ctx);
    const uint32_t before = rounds(p, p->entry), behind = rounds(p, p->exit);
    if (before == 0) {
        write_raise(&w, 1);
    }
    write_barrier(&w, before, 1);
    if (is_of_vectors(p)) {
        qn_large_vectors(&w);
    } else {
        qn_large_blocks(&w);
    }
    if (behind == 0) {
        write_raise(&w, w.done);
    }
    write_barrier(&w, behind, w.done);
    return w.rc == QN_OK && p->exit == QN_LARGE_OWN
               ? qn_large_steps_left(p, self, emit, ctx)
               : w.rc;
}

int qn_large_steps_left(const struct qn_large_plan *p, uint32_t self,
                        qn_large_emit_fn *emit, void *ctx)
{
    struct qn_large_writer w = writer_of(p, self, emit, ctx);
    if (p->variant->direction == QN_LARGE_PULL) {
        if (is_of_vectors(p)) {
            qn_large_vectors_left(&w);
        } else {
            qn_large_blocks_left(&w);
        }
    }
    return w.rc;
}

int qn_large_steps_over(const struct qn_large_plan *p, uint32_t self,
                        qn_large_emit_fn *emit, void *ctx)
{
    struct qn_large_writer w = writer_of(p, self, emit, ctx);
    for (uint32_t x = 0; x < p->n; x++) {
        if (x != self) {
            qn_large_write_until_done(&w, x);
        }
    }
    return w.rc;
}

enum qn_large_buffer qn_large_shows(const struct qn_large_plan *p,
                                    uint32_t member)
{
    return is_of_vectors(p) ? qn_large_vectors_show(p, member)
                            : qn_large_blocks_show(p, member);
}

uint64_t qn_large_work_bytes(const struct qn_large_plan *p, uint32_t self)
{
    return is_of_vectors(p) ? qn_large_vectors_work(p, self)
                            : qn_large_blocks_work(p, self);
}
