/*
 * A wake-up cannot be lost: the exchange of `go` and the compare-and-swap of
 * `wait` are read-modify-writes of one word, so one of them is first. If it is
 * the exchange, the compare-and-swap fails and takes the value. If not, the
 * exchange finds PARKED and wakes, after the value was stored, and the kernel
 * lets no thread sleep on a word that has changed.
 *
 * A wake-up takes 10 to 25 us until its thread runs, which is longer than the
 * looks. In a queue the thread that has woken its successor soon waits behind
 * it. If it then slept, too, its successor would have to wake it, and wait in
 * turn: one preemption, and all hand-overs wake sleepers from then on. So the
 * first wait of a thread behind a wake-up of its own is longer: it yields, in
 * case that the woken thread needs this core, and looks, again and again. (Two
 * threads on two cores that were disturbed often: mcs 1.4 to 2.7 M/s without,
 * 5.5 with; 4 threads 0.25 and 0.75 M/s, 16 threads 0.15 and 0.28. HybLock,
 * which waits for words: two threads 0.9 and 1.9 M/s.)
 */
#include "core/wait/baton.h"

#include "core/base/assert.h"
#include "core/base/mark.h"
#include "core/wait/park.h"

/* The looks of a wait end at the first reading of the clock behind it: 1 to 2
 * us, with 32 pauses of 50 ns between two readings. */
#define LOOK_NS      (1 * QN_US)
/* As SHARED_YIELDS in backoff.c: a waker that shares the core runs by the
 * first, and has handed over by the second. */
#define YIELDS       2u
/* Behind a wake-up: yields with looks in between, some 25 us together ... */
#define WOKEN_YIELDS 20u
#define WOKEN_LOOKS  16u
/* ... unless a yield gave the core to a thread that keeps it. */
#define YIELD_LONG   (50 * QN_US)

void qn_baton_backoff(struct qn_backoff *p)
{
    const bool look = qn_may_look();
    const struct qn_backoff_opts o = {.look_ns = look ? LOOK_NS : 0,
                                      .yields = look ? YIELDS : 0};
    qn_backoff_init(p, &o);
    if (look) {
        (void)qn_spin_again(&p->spin, qn_clock_now());
    }
}

static bool look_and_pause(qn_baton_look_fn *look, void *ctx)
{
    for (uint32_t i = 0; i < WOKEN_LOOKS; i++) {
        if (look(ctx)) {
            return true;
        }
        qn_pause();
    }
    return false;
}

static bool wait_for_woken(qn_baton_look_fn *look, void *ctx,
                           struct qn_wait_stats *s)
{
    qn_time_t now = qn_clock_now();
    for (uint32_t i = 0; i < WOKEN_YIELDS && qn_may_look(); i++) {
        const qn_time_t before = now;
        qn_park_yield();
        s->yields++;
        if (look_and_pause(look, ctx)) {
            return true;
        }
        now = qn_clock_now();
        if (now - before > YIELD_LONG) {
            break;
        }
    }
    return false;
}

bool qn_baton_look(qn_baton_look_fn *look, void *ctx, struct qn_wait_stats *s)
{
    struct qn_backoff p;
    const bool woke = s->wakes != s->wakes_before;
    s->wakes_before = s->wakes;
    bool there = look(ctx) || (woke && wait_for_woken(look, ctx, s));
    if (there) {
        return true;
    }
    qn_baton_backoff(&p);
    while (!there && qn_backoff_again(&p)) {
        there = look(ctx);
    }
    s->yields += p.yields;
    return there;
}

struct look {
    const struct qn_baton *b;
    uint32_t value; /* once it is there */
};

static bool is_go(void *ctx)
{
    struct look *l = ctx;
    return qn_baton_is_go(l->b, &l->value);
}

/* Nothing was handed over while it looked. */
static uint32_t sleep_until_go(struct qn_baton *b, struct qn_wait_stats *s)
{
    uint32_t value = QN_BATON_WAITING;
    /* acquire -> the exchange of qn_baton_go, when it fails: the value is
     * there. When it succeeds it publishes nothing. */
    if (!qn_cas(&b->word, &value, QN_BATON_PARKED, QN_ACQUIRE)) {
        return value;
    }
    s->parks++;
    do {
        (void)qn_park_word(&b->word, QN_BATON_PARKED, QN_TIME_NEVER);
    } while (!qn_baton_is_go(b, &value));
    return value;
}

uint32_t qn_baton_wait(struct qn_baton *b, struct qn_wait_stats *s)
{
    struct look l = {b, QN_BATON_WAITING};
    return qn_baton_look(is_go, &l, s) ? l.value : sleep_until_go(b, s);
}

bool qn_baton_go(struct qn_baton *b, uint32_t value)
{
    QN_DASSERT(value >= QN_BATON_GO);
    /* release -> the looks and the compare-and-swap of qn_baton_wait. */
    if (qn_exchange(&b->word, value, QN_RELEASE) != QN_BATON_PARKED) {
        return false;
    }
    qn_unpark_word(&b->word);
    return true;
}

void qn_baton_look_on(struct qn_backoff *p, struct qn_wait_stats *s)
{
    if (!qn_backoff_again(p)) {
        qn_park_yield();
        qn_pause(); /* in the explorer, that others run */
        s->yields += p->yields + 1;
        qn_backoff_reset(p);
    }
}

uint32_t qn_baton_await(struct qn_baton *b, bool own_cores,
                        struct qn_wait_stats *s)
{
    struct qn_backoff p;
    uint32_t value = QN_BATON_WAITING;
    if (!own_cores) {
        return qn_baton_wait(b, s);
    }
    if (qn_baton_is_go(b, &value)) {
        return value;
    }
    qn_baton_backoff(&p);
    while (!qn_baton_is_go(b, &value)) {
        qn_baton_look_on(&p, s);
    }
    return value;
}
