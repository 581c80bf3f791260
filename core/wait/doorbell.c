/*
 * Doorbells.
 *
 * The danger is the lost wake-up: a message is there, no peer rings, and the
 * node sleeps. It needs both sides to read before their own write is seen:
 *
 *     sleeper: epoch = odd;  load channel  -> empty
 *     ringer:  channel = m;  load epoch    -> even, does not ring
 *
 * Each side therefore has a seq_cst fence between its store and its load (A in
 * arm, R in ring). Fences have one total order. If R comes before A, the
 * sleeper's look, after A, finds m. If A comes before R, the ringer's load,
 * after R, finds the odd epoch or a later one, and rings. A seq_cst store in
 * place of A would do on x86, but not in C11: the look is made of acquire
 * loads inside the channels, which may pass an earlier seq_cst store (and do,
 * as ldapr, on Arm).
 *
 * Why a ring that is not made, or whose effect is taken away, does no harm: it
 * is left out or swallowed only when the ringer's load, after R, gave an epoch
 * that is now over. That load did not see the next arm, so R comes before the
 * next A, and the look after it finds the message before the node blocks. This
 * covers a second ring in the same sleep (`rung`), a drained eventfd, and a
 * ringer that was preempted between its load and its ring.
 *
 * In the eventfd form the epoch only tells apart sleeps; the ring is kept by
 * the kernel until it is read. A futex keeps nothing, so there the ring is the
 * change of the epoch from odd to even, by compare-and-swap: the kernel
 * compares the word again before it puts the sleeper to bed. That form lets
 * ringers write the sleeper's line, which is why it is for threads.
 *
 * The epoch runs free and wraps. `rung` is compared with an odd epoch just
 * loaded; to take a new sleep for the old one a ringer would have to meet no
 * other sleep of its peer for 2^31 of them, each of which costs system calls:
 * the better part of an hour without a word between the two.
 */
#include "core/wait/doorbell.h"

#include "core/base/assert.h"
#include "core/base/err.h"
#include "core/wait/park.h"

#define ASLEEP 1u /* bit of the epoch */

void qn_doorbell_init(struct qn_doorbell *b, struct qn_doorbell_line *line,
                      int fd)
{
    *b = (struct qn_doorbell){.line = line, .fd = fd};
}

void qn_doorbell_arm(struct qn_doorbell *b)
{
    /* relaxed: only the sleeper turns it odd, and it is even now. */
    uint32_t epoch = qn_load(&b->line->epoch, QN_RELAXED);
    QN_ASSERT((epoch & ASLEEP) == 0);
    /* relaxed + fence A: pairs with fence R in qn_doorbell_ring. After it the
     * caller's look sees every message whose ringer does not see this epoch. */
    qn_store(&b->line->epoch, epoch + 1, QN_RELAXED);
    qn_fence(QN_SEQ_CST);
}

void qn_doorbell_wake(struct qn_doorbell *b)
{
    /* relaxed would do throughout: the epoch publishes nothing; the design
     * note has the ringer that still sees the old value. */
    uint32_t epoch = qn_load(&b->line->epoch, QN_RELAXED);
    if ((epoch & ASLEEP) == 0) {
        return;
    }
    if (b->fd < 0) {
        /* On failure a ringer has just turned it even. */
        (void)qn_cas(&b->line->epoch, &epoch, epoch + 1, QN_ACQ_REL);
    } else {
        qn_store(&b->line->epoch, epoch + 1, QN_RELAXED);
    }
}

void qn_doorbell_drain(struct qn_doorbell *b)
{
    if (b->fd >= 0) {
        qn_park_drain(b->fd);
    }
}

void qn_doorbell_disarm(struct qn_doorbell *b)
{
    /* relaxed: written by this thread, or turned even by a ringer of a futex,
     * where nothing is to be drained. */
    if ((qn_load(&b->line->epoch, QN_RELAXED) & ASLEEP) != 0) {
        qn_doorbell_wake(b);
        qn_doorbell_drain(b);
    }
}

int qn_doorbell_wait(struct qn_doorbell *b, qn_time_t deadline)
{
    if (b->fd >= 0) {
        return qn_park_fd(b->fd, deadline);
    }
    /* relaxed: even means rung since arm; odd is compared again by the kernel
     * under its own lock, so a ring in between is not missed. */
    uint32_t epoch = qn_load(&b->line->epoch, QN_RELAXED);
    if ((epoch & ASLEEP) == 0) {
        return QN_OK;
    }
    return qn_park_word(&b->line->epoch, epoch, deadline);
}

void qn_doorbell_handle_init(struct qn_doorbell_handle *r,
                             struct qn_doorbell_line *line, int fd)
{
    *r = (struct qn_doorbell_handle){.line = line, .fd = fd};
}

bool qn_doorbell_ring(struct qn_doorbell_handle *r)
{
    /* Fence R + relaxed load: pairs with fence A in qn_doorbell_arm. If this
     * load misses the declaration, the sleeper's look finds what was published.
     */
    qn_fence(QN_SEQ_CST);
    uint32_t epoch = qn_load(&r->line->epoch, QN_RELAXED);
    if ((epoch & ASLEEP) == 0 || epoch == r->rung) {
        return false;
    }
    if (r->fd < 0) {
        /* On failure another ringer rang, or the sleeper woke by itself. */
        if (!qn_cas(&r->line->epoch, &epoch, epoch + 1, QN_ACQ_REL)) {
            return false;
        }
        qn_unpark_word(&r->line->epoch);
    } else {
        r->rung = epoch;
        qn_unpark_fd(r->fd);
    }
    return true;
}
