/*
 * The central barrier, of one counter. It counts arrivals and is never set
 * back: episode e is over when it has reached e times the members. So an
 * arrival is one fetch-and-add, and the last one releases all others by it.
 *
 * The lowest bit says that members sleep. A wake-up cannot be lost: a member
 * that is about to sleep sets the bit by a compare-and-swap, which fails if the
 * episode has ended meanwhile; and the fetch-and-add of the last arrival
 * returns the bit, if it was set before. That one takes it back, then wakes
 * all. A member that has set or found the bit between the two, for the next
 * episode, is woken as well, or is kept from sleep because the word has
 * changed; it looks, and sets the bit again. No other may take the bit back:
 * the next episode does not end without the member that does.
 *
 * The counter wraps, and is compared by subtraction.
 */
#include "core/barrier/barrier_internal.h"
#include "core/wait/park.h"

#define PARKED  1u /* members sleep, or are about to */
#define ARRIVAL 2u

/* The counter has reached `end`, which it is never more than two episodes
 * away from. */
static bool is_over(uint32_t arrived, uint32_t end)
{
    return (int32_t)(arrived - end) >= 0;
}

/* acquire -> the fetch-and-add of each arrival, which continue one release
 * sequence: what the members did before is visible. */
static uint32_t look(struct qn_barrier_member *me)
{
    return qn_load(&me->memory->arrived, QN_ACQUIRE);
}

/* Nothing came while it looked. */
static void sleep_until(struct qn_barrier_member *me, uint32_t end)
{
    qn_a32 *word = &me->memory->arrived;
    uint32_t now = look(me);
    me->waits.parks++;
    while (!is_over(now, end)) {
        /* acquire -> as look, when it fails: it may be over. When it succeeds
         * it publishes nothing. */
        if ((now & PARKED) != 0 ||
            qn_cas(word, &now, now | PARKED, QN_ACQUIRE)) {
            (void)qn_park_word(word, now | PARKED, QN_TIME_NEVER);
            now = look(me);
        }
    }
}

static void wait_until(struct qn_barrier_member *me, uint32_t end)
{
    struct qn_backoff p;
    bool again = true;
    if (is_over(look(me), end)) {
        return;
    }
    qn_baton_backoff(&p);
    while (again && !is_over(look(me), end)) {
        if (me->own_cores) {
            qn_baton_look_on(&p, &me->waits);
        } else {
            again = qn_backoff_again(&p);
        }
    }
    me->waits.yields += p.yields;
    if (!again) {
        sleep_until(me, end);
    }
}

static void central_wait(struct qn_barrier_member *me)
{
    qn_a32 *word = &me->memory->arrived;
    const uint32_t end = me->episode * me->members * ARRIVAL;
    /* release -> look: what this member did. acquire -> the arrivals before:
     * what the others did, if this is the last one. */
    const uint32_t before = qn_fetch_add(word, ARRIVAL, QN_ACQ_REL);
    if (!is_over(before + ARRIVAL, end)) {
        wait_until(me, end);
    } else if ((before & PARKED) != 0) {
        /* relaxed: nothing is published; that it comes before the wake-up, the
         * system call sees to. */
        (void)qn_fetch_add(word, UINT32_MAX, QN_RELAXED); /* - PARKED */
        qn_unpark_word(word);
        me->waits.wakes++;
    }
}

const struct qn_barrier_form qn_barrier_central = {.name = "central",
                                                   .wait = central_wait};
