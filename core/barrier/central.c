/*
 * The central barrier, of one counter. It counts arrivals and is never set
 * back: episode e is over when it has reached e times the members. So an
 * arrival is one fetch-and-add, and the last one releases all others by it.
 *
 * Its result also says whether members sleep. The last arrival then takes the
 * bit back, and wakes all. A member that has set or found the bit between the
 * two, for the next episode, is woken as well, or is kept from sleep because
 * the word has changed; it looks, and sets the bit again. No other may take the
 * bit back: the next episode does not end without the member that does.
 */
#include "core/barrier/barrier_internal.h"
#include "core/wait/park.h"

static void take_back(qn_a32 *word)
{
    /* relaxed: nothing is published; and it continues the release sequence of
     * the arrivals. A thread that is about to sleep compares the word in the
     * kernel, under the lock that the wake-up takes. */
    (void)qn_fetch_add(word, UINT32_MAX, QN_RELAXED); /* - PARKED */
}

static void central_wait(struct qn_barrier_member *me)
{
    qn_a32 *word = &me->memory->arrived;
    const uint32_t late = QN_BARRIER_MUTANT(CENTRAL_SENSE) && me->episode > 1;
    const uint32_t end = (me->episode - late) * me->members * QN_BARRIER_STEP;
    /* release -> is_over of await.c: what this member did. acquire -> the
     * arrivals before, of one release sequence: what the others did, if this is
     * the last one. */
    const uint32_t before = qn_fetch_add(word, QN_BARRIER_STEP, QN_ACQ_REL);
    if (!qn_barrier_reached(before + QN_BARRIER_STEP, end)) {
        qn_barrier_await(me, word, end);
    } else if ((before & QN_BARRIER_PARKED) != 0 &&
               !QN_BARRIER_MUTANT(CENTRAL_NO_WAKE)) {
        if (!QN_BARRIER_MUTANT(CENTRAL_TAKES_BACK_LATE)) {
            take_back(word);
        }
        qn_unpark_word(word);
        me->waits.wakes++;
        if (QN_BARRIER_MUTANT(CENTRAL_TAKES_BACK_LATE)) {
            take_back(word);
        }
    }
}

const struct qn_barrier_form qn_barrier_central = {.name = "central",
                                                   .wait = central_wait};
