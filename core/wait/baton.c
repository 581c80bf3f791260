/*
 * A wake-up cannot be lost: the exchange of `go` and the compare-and-swap of
 * `wait` are read-modify-writes of one word, so one of them is first. If it is
 * the exchange, the compare-and-swap fails and takes the value. If not, the
 * exchange finds PARKED and wakes, after the value was stored, and the kernel
 * lets no thread sleep on a word that has changed.
 */
#include "core/wait/baton.h"

#include "core/base/assert.h"
#include "core/base/mark.h"
#include "core/wait/park.h"

/* The looks end between LOOK_NS and the next reading of the clock behind it. */
#define LOOK_NS (1 * QN_US)
/* As SHARED_YIELDS in backoff.c: a waker that shares the core runs by the
 * first, and has handed over by the second. */
#define YIELDS  2u

void qn_baton_backoff(struct qn_backoff *p)
{
    struct qn_backoff_opts o = {.look_ns = LOOK_NS, .yields = YIELDS};
    if (!qn_may_look()) {
        o = (struct qn_backoff_opts){0};
    }
    qn_backoff_init(p, &o);
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
    struct qn_backoff p;
    uint32_t value;
    if (qn_baton_is_go(b, &value)) {
        return value;
    }
    qn_baton_backoff(&p);
    bool go = false;
    while (!go && qn_backoff_again(&p)) {
        go = qn_baton_is_go(b, &value);
    }
    s->yields += p.yields;
    return go ? value : sleep_until_go(b, s);
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
