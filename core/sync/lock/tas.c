/*
 * Test-and-set locks. The word is free, taken, or taken with sleepers.
 *
 * A thread that is about to sleep exchanges the word for "with sleepers": if
 * that finds it free, it has the lock; if not, it sleeps until the word
 * changes. A release that finds sleepers wakes one of them. That one does not
 * know whether there are more, so it takes the lock as "with sleepers" again,
 * and the last one of them makes one wake-up for nothing. One that gives up at
 * its deadline leaves the word as it is: the next release wakes another
 * sleeper, or none.
 *
 * A thread that looks may take the lock before the one that was woken has run,
 * which then sleeps again. So the lock is not handed over to a sleeper, and
 * goes on at the speed of those that run (Drepper, "Futexes are tricky").
 *
 * With own_cores none sleeps, and the release is a store.
 *
 * tas looks by compare-and-swap, each of which takes the line from the holder,
 * and pauses in between.
 * ttas looks by loads, and after a lost race pauses for twice as long as after
 * the one before (Anderson 1990).
 */
#include <assert.h>

#include "core/base/err.h"
#include "core/sync/lock/lock_internal.h"
#include "core/sync/lock/lock_mutant.h"
#include "core/wait/park.h"

enum { FREE = 0, TAKEN = 1, SLEEPERS = 2 };

/* Pauses behind a lost race, at most: some 2 us. */
#define PAUSES_MAX    32u
/* Looks of tas from one attempt to the next, at first. An attempt that fails
 * takes the line from the holder, which must have it back to release. A client
 * that has waited for longer has others beside it: `auto` learns by attempts
 * that fail. */
#define ATTEMPT_LOOKS 4u
#define FIRST_LOOKS   16u

static bool test_and_set(struct qn_lock_client *c)
{
    uint32_t seen = FREE;
    if (QN_LOCK_MUTANT(TAS_OVERWRITES)) {
        return qn_exchange(&c->memory->word, TAKEN, QN_ACQUIRE) == FREE;
    }
    c->stats.cas++;
    /* acquire -> the release of release_word. */
    if (qn_cas(&c->memory->word, &seen, TAKEN, QN_ACQUIRE)) {
        return true;
    }
    c->stats.cas_failed++;
    return false;
}

/* relaxed: the compare-and-swap decides. */
static bool looks_free(struct qn_lock_client *c)
{
    return qn_load(&c->memory->word, QN_RELAXED) == FREE;
}

static bool test_then_set(struct qn_lock_client *c)
{
    if (QN_LOCK_MUTANT(TTAS_STORES) && looks_free(c)) {
        qn_store(&c->memory->word, TAKEN, QN_SEQ_CST);
        return true;
    }
    return looks_free(c) && test_and_set(c);
}

/* The same, of one that does not sleep. */
static int look_until_taken(struct qn_lock_client *c, qn_time_t deadline)
{
    struct qn_backoff p;
    qn_baton_backoff(&p);
    while (!test_then_set(c)) {
        if (deadline != QN_TIME_NEVER && qn_clock_now() >= deadline) {
            return QN_ETIMEDOUT;
        }
        qn_baton_look_on(&p, &c->stats.waits);
    }
    return QN_OK;
}

/* It has looked and yielded in vain. */
static int sleep_until_taken(struct qn_lock_client *c, qn_time_t deadline)
{
    qn_a32 *word = &c->memory->word;
    uint32_t taken = SLEEPERS;
    if (c->own_cores) {
        return look_until_taken(c, deadline);
    }
    /* acquire -> the release of release_word. */
    while (qn_exchange(word, taken, QN_ACQUIRE) != FREE) {
        c->stats.waits.parks++;
        if (qn_park_word(word, SLEEPERS, deadline) == QN_ETIMEDOUT) {
            return QN_ETIMEDOUT;
        }
        taken = QN_LOCK_MUTANT(TAS_FORGETS) ? TAKEN : SLEEPERS;
    }
    return QN_OK;
}

static int tas_until(struct qn_lock_client *c, qn_time_t deadline)
{
    struct qn_backoff p;
    static_assert(FIRST_LOOKS < QN_BACKOFF_LOOKS,
                  "behind a yield, where the holder may have had this core, "
                  "an attempt comes at once");
    if (test_and_set(c)) {
        return QN_OK;
    }
    qn_baton_backoff(&p);
    bool taken = false;
    for (uint32_t i = 1; !taken && qn_backoff_again(&p); i++) {
        taken = (i % ATTEMPT_LOOKS == 0 || i > FIRST_LOOKS) && test_and_set(c);
    }
    c->stats.waits.yields += p.yields;
    return taken ? QN_OK : sleep_until_taken(c, deadline);
}

static void pause_for(uint32_t pauses)
{
    for (uint32_t i = 0; i < pauses; i++) {
        qn_pause();
    }
}

static int ttas_until(struct qn_lock_client *c, qn_time_t deadline)
{
    struct qn_backoff p;
    uint32_t pauses = 1;
    if (test_then_set(c)) {
        return QN_OK;
    }
    qn_baton_backoff(&p);
    bool taken = false;
    while (!taken && qn_backoff_again(&p)) {
        if (looks_free(c)) {
            taken = test_and_set(c);
            pause_for(taken ? 0 : pauses);
            pauses = pauses < PAUSES_MAX ? 2 * pauses : pauses;
        }
    }
    c->stats.waits.yields += p.yields;
    return taken ? QN_OK : sleep_until_taken(c, deadline);
}

static void tas_acquire(struct qn_lock_client *c)
{
    (void)tas_until(c, QN_TIME_NEVER);
}

static void ttas_acquire(struct qn_lock_client *c)
{
    (void)ttas_until(c, QN_TIME_NEVER);
}

static void release_word(struct qn_lock_client *c)
{
    /* release, both -> the acquires of test_and_set and sleep_until_taken. */
    if (c->own_cores) {
        qn_store(&c->memory->word, FREE, QN_RELEASE);
    } else if (qn_exchange(&c->memory->word, FREE, QN_RELEASE) == SLEEPERS &&
               !QN_LOCK_MUTANT(TAS_NO_WAKE)) {
        c->stats.waits.wakes++;
        qn_unpark_one(&c->memory->word);
    }
}

const struct qn_lock_type qn_lock_tas = {.name = "tas",
                                         .timed = true,
                                         .acquire = tas_acquire,
                                         .release = release_word,
                                         .try_acquire = test_and_set,
                                         .acquire_until = tas_until};

const struct qn_lock_type qn_lock_ttas = {.name = "ttas",
                                          .timed = true,
                                          .acquire = ttas_acquire,
                                          .release = release_word,
                                          .try_acquire = test_then_set,
                                          .acquire_until = ttas_until};
