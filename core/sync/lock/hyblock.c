/*
 * HybLock (Petrovic, "Leveraging hardware message passing for efficient thread
 * synchronization", PPoPP 2014): the queue of waiters is a chain of messages of
 * words. The lock's word is the address of the last client in the queue, plus
 * 1, or 0: free.
 *
 *     acquire   exchange the word for the own address. If there was a
 *               predecessor: send it SUCCESSOR, and wait for ALLOW
 *     release   if a successor is known: send it ALLOW. Else free the word by
 *               compare-and-swap; if that fails a SUCCESSOR is on its way
 *
 * At most one SUCCESSOR and one ALLOW are on their way to a client, so it
 * promises 2 words, and no send waits for a client that waits for this lock.
 *
 * As printed, locks that are nested share a queue, and an ALLOW for one is
 * taken for the other's. Here a message names its lock (port.h).
 */
#include "core/base/err.h"
#include "core/sync/lock/lock_internal.h"
#include "core/sync/port.h"

#define FREE  0u
#define WORDS 2u

static void say(struct qn_lock_client *c, uint32_t to, enum qn_sync_kind kind)
{
    const uint64_t head = qn_sync_head(c->port, c->object, kind, 0);
    qn_sync_send(c->port, to, &head, 1, &c->stats.waits);
}

/* Wait for a message of this lock. @return its head. */
static uint64_t hear(struct qn_lock_client *c, uint64_t kinds,
                     enum qn_sync_kind kind)
{
    uint64_t words[QN_SYNC_WORDS];
    qn_sync_receive(c->port, qn_sync_head(c->port, c->object, kind, 0),
                    QN_SYNC_OBJECT | kinds, words, &c->stats.waits);
    return words[0];
}

static int hyblock_join(struct qn_lock_client *c)
{
    if (c->port == NULL) {
        return QN_EINVAL;
    }
    c->object = qn_sync_object(c->port, &c->memory->object);
    return qn_sync_promise(c->port, WORDS);
}

static void hyblock_leave(struct qn_lock_client *c)
{
    qn_sync_promise_back(c->port, WORDS);
}

static void hyblock_acquire(struct qn_lock_client *c)
{
    c->next = 0;
    /* acquire -> leave_free: what was done under the lock. Else the ALLOW
     * acquires that. The address is all that it says. */
    const uint32_t before =
        qn_exchange(&c->memory->word, c->port->address + 1, QN_ACQUIRE);
    if (before == FREE) {
        return;
    }
    say(c, before - 1, QN_SYNC_SUCCESSOR);
    const uint64_t head = hear(c, QN_SYNC_LOCK, QN_SYNC_ALLOW);
    if (qn_sync_head_kind(head) == QN_SYNC_SUCCESSOR) {
        c->next = qn_sync_head_address(head) + 1;
        (void)hear(c, QN_SYNC_KIND, QN_SYNC_ALLOW);
    }
}

static bool hyblock_try(struct qn_lock_client *c)
{
    uint32_t seen = FREE;
    /* relaxed: the compare-and-swap decides. */
    if (qn_load(&c->memory->word, QN_RELAXED) != FREE) {
        return false;
    }
    c->next = 0;
    c->stats.cas++;
    /* acquire -> leave_free. */
    const bool taken =
        qn_cas(&c->memory->word, &seen, c->port->address + 1, QN_ACQUIRE);
    c->stats.cas_failed += !taken;
    return taken;
}

/* @return true: no client was behind this one. */
static bool leave_free(struct qn_lock_client *c)
{
    uint32_t seen = c->port->address + 1;
    c->stats.cas++;
    /* release -> hyblock_acquire, hyblock_try. */
    const bool done = qn_cas(&c->memory->word, &seen, FREE, QN_RELEASE);
    c->stats.cas_failed += !done;
    return done;
}

static void hyblock_release(struct qn_lock_client *c)
{
    uint64_t words[QN_SYNC_WORDS];
    const uint64_t want =
        qn_sync_head(c->port, c->object, QN_SYNC_SUCCESSOR, 0);
    if (c->next == 0 &&
        qn_sync_try_receive(c->port, want, QN_SYNC_OBJECT | QN_SYNC_KIND,
                            words)) {
        c->next = qn_sync_head_address(words[0]) + 1;
    }
    if (c->next == 0) {
        if (leave_free(c)) {
            return;
        }
        c->next =
            1 + qn_sync_head_address(hear(c, QN_SYNC_KIND, QN_SYNC_SUCCESSOR));
    }
    /* release -> the receive of ALLOW. A send of the emulation publishes by
     * itself; the hardware's network is not ordered with memory. */
    qn_fence(QN_RELEASE);
    say(c, c->next - 1, QN_SYNC_ALLOW);
}

const struct qn_lock_type qn_lock_hyblock = {.name = "hyblock",
                                             .fifo = true,
                                             .words = true,
                                             .join = hyblock_join,
                                             .leave = hyblock_leave,
                                             .acquire = hyblock_acquire,
                                             .release = hyblock_release,
                                             .try_acquire = hyblock_try,
                                             .acquire_until = qn_lock_untimed};
