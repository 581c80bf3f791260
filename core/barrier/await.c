/*
 * How members wait.
 *
 * A wake-up cannot be lost: what ends a wait is one read-modify-write of the
 * word (the fetch-and-add of an arrival, the exchange of a flag), and a member
 * that is about to sleep sets the bit PARKED by another one. If the end is
 * first, the compare-and-swap fails and finds it. If not, the end finds the bit
 * and wakes, after the word has changed, and the kernel lets no thread sleep on
 * a word that has changed. With own cores none sleeps, and a flag is raised by
 * a store.
 *
 * A member looks for 1 to 2 us, then yields for 50, then parks. Where there are
 * more members than cores a look only keeps the core from the others (4, 8, 16
 * threads on two cores: 20 pauses in front of each yield, 1.35 times as long;
 * with some yields and then sleep, as long as with yields for ever). Whether
 * that is so the barrier was told, and a member also learns it: a wait that
 * its look did not end makes the next ones do without. Likewise yields: two
 * threads that compute beside 8 members on two cores made an episode 2 ms long.
 */
#include "core/barrier/barrier_internal.h"
#include "core/base/bits.h"
#include "core/base/clock.h"
#include "core/base/mark.h"
#include "core/wait/park.h"

/* Looks without reading the clock: what the others need that have a core. */
#define FIRST_LOOKS   16u
/* Then to the first reading of the clock behind it: 1 to 2 us. */
#define LOOK_NS       (1 * QN_US)
/* The first one gives the core to a member that has something to do; the others
 * cover that all of this core have arrived and those of another have not, */
#define YIELDS        4u
/* ... and that one was woken only now, which takes it 20 to 30 us: if the
 * others slept meanwhile, each would be late for the next episode by its own
 * wake-up, and they would never get out of it. */
#define YIELD_NS      (50 * QN_US)
/* A yield lasts for a time slice of 1 to 4 ms where a thread of another program
 * computes on the core, while a thread that is woken takes the core from that
 * one. So a member notes a slice when the yields of one wait took longer than
 * its team needs to pass the core round: 256 threads of two cores need 0.2 ms,
 * and a larger team has 2 us for each member. After slices in two waits, one
 * behind the other, its waits sleep at once for SLICES times as long as the
 * last one took. A single slice counts for nothing: in its first wait the
 * others may still be starting. What took longer than SLICE_MOST_NS was no
 * yield: the process was stopped. */
#define SLICE_NS      (500 * QN_US)
#define MEMBER_NS     (2 * QN_US)
#define SLICES        64u
#define SLICE_MOST_NS (20 * QN_MS)
/* Waits without a look, after one that did not help: doubled to this. */
#define BLIND_MOST    63u

/* acquire -> the fetch-and-add or exchange, or the store of own cores, that
 * raised the word. */
static bool is_over(qn_a32 *word, uint32_t end)
{
    return qn_barrier_reached(qn_load(word, QN_ACQUIRE), end);
}

/* Nothing came while it looked. */
static void sleep_until(struct qn_barrier_member *me, qn_a32 *word,
                        uint32_t end)
{
    uint32_t now = qn_load(word, QN_ACQUIRE); /* as is_over */
    me->waits.parks++;
    while (!qn_barrier_reached(now, end)) {
        const uint32_t parked = now | QN_BARRIER_PARKED;
        /* acquire -> as is_over, when it fails. When it succeeds it publishes
         * nothing. */
        if (QN_BARRIER_MUTANT(AWAIT_STORES)) {
            qn_store(word, parked, QN_SEQ_CST);
        } else if (now != parked && !qn_cas(word, &now, parked, QN_ACQUIRE)) {
            continue;
        }
        (void)qn_park_word(word, parked, QN_TIME_NEVER);
        now = qn_load(word, QN_ACQUIRE); /* as is_over */
    }
}

static bool look_first(qn_a32 *word, uint32_t end)
{
    for (uint32_t i = 0; i < FIRST_LOOKS && qn_may_look(); i++) {
        qn_pause();
        if (is_over(word, end)) {
            return true;
        }
    }
    return false;
}

/* @return whether the look ended the wait. */
static bool look(qn_a32 *word, uint32_t end)
{
    const struct qn_backoff_opts o = {.look_ns = qn_may_look() ? LOOK_NS : 0};
    struct qn_backoff p;
    bool over = false;
    qn_backoff_init(&p, &o);
    while (!over && qn_backoff_again(&p)) {
        over = is_over(word, end);
    }
    return over;
}

static bool yields_until(struct qn_barrier_member *me, qn_a32 *word,
                         uint32_t end, qn_time_t until)
{
    for (uint32_t i = 0; qn_may_look(); i++) {
        if (i >= YIELDS && qn_clock_now() >= until) {
            break;
        }
        qn_park_yield();
        me->waits.yields++;
        if (is_over(word, end)) {
            return true;
        }
    }
    return false;
}

static bool yield_and_look(struct qn_barrier_member *me, qn_a32 *word,
                           uint32_t end)
{
    const qn_time_t from = qn_clock_now();
    if (from < me->yields_from) {
        return false;
    }
    const bool over = yields_until(me, word, end, from + YIELD_NS);
    const qn_time_t now = qn_clock_now(), took = now - from;
    const bool slice = took > QN_MAX(SLICE_NS, me->members * MEMBER_NS);
    if (slice && me->slice_before) {
        me->yields_from = now + SLICES * QN_MIN(took, SLICE_MOST_NS);
    }
    me->slice_before = slice;
    return over;
}

static void look_on(struct qn_barrier_member *me, qn_a32 *word, uint32_t end)
{
    struct qn_backoff p;
    if (look_first(word, end)) {
        return;
    }
    qn_baton_backoff(&p);
    while (!is_over(word, end)) {
        qn_baton_look_on(&p, &me->waits);
    }
}

void qn_barrier_await(struct qn_barrier_member *me, qn_a32 *word, uint32_t end)
{
    if (is_over(word, end)) {
        return;
    }
    if (me->own_cores) {
        look_on(me, word, end);
        return;
    }
    if (me->shared_cores || me->blind > 0) {
        me->blind -= me->blind > 0;
    } else if (look_first(word, end) || look(word, end)) {
        me->blind_next = 0;
        return;
    } else {
        me->blind_next = QN_MIN(2 * me->blind_next + 1, BLIND_MOST);
        me->blind = me->blind_next;
    }
    if (!yield_and_look(me, word, end)) {
        sleep_until(me, word, end);
    }
}

void qn_barrier_raise(struct qn_barrier_member *me, qn_a32 *flag)
{
    const uint32_t value = qn_barrier_value(me);
    if (me->own_cores || QN_BARRIER_MUTANT(FLAG_NO_WAKE)) {
        /* release -> is_over. */
        qn_store(flag, value, QN_RELEASE);
        return;
    }
    /* release -> is_over, and the compare-and-swap of sleep_until. */
    if ((qn_exchange(flag, value, QN_RELEASE) & QN_BARRIER_PARKED) != 0) {
        qn_unpark_one(flag);
        me->waits.wakes++;
    }
}
