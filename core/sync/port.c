/*
 * A message is matched by its head. What does not match goes to the stash, in
 * the order in which it came; a receive looks there first, so messages of one
 * sender for one object stay in order.
 *
 * The stash cannot overflow: what may be sent to this port was promised, and a
 * promise fits (port.h). A sender that waits for room holds nothing that the
 * receiver waits for: a message is sent whole, and blocks no other sender.
 */
#include "core/sync/port.h"

#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/sync/sync_mutant.h"
#include "core/words/attachment.h"

_Static_assert(QN_WORDS_CORES_MAX *QN_WORDS_QUEUES <= 0x10000,
               "an address has 16 bits");

int qn_sync_port_open(struct qn_sync_port *p, struct qn_device *d)
{
    uint32_t queue;
    if (!qn_words_is(d)) {
        return QN_EINVAL;
    }
    if (!qn_words_take_queue(d, &queue)) {
        return QN_EAGAIN;
    }
    p->device = d;
    p->queue = queue;
    p->address = d->self * QN_WORDS_QUEUES + queue;
    p->count = 0;
    return QN_OK;
}

void qn_sync_port_close(struct qn_sync_port *p)
{
    QN_ASSERT(p->count == 0);
    qn_words_give_queue(p->device, p->queue);
}

int qn_sync_promise(struct qn_sync_port *p, uint32_t words)
{
    return qn_words_promise(p->device, p->queue, words, QN_SYNC_STASH)
               ? QN_OK
               : QN_EDQUOT;
}

int qn_sync_promise_server(struct qn_sync_port *p, uint32_t *words)
{
    uint32_t left = qn_words_unpromised(p->device, p->queue, QN_SYNC_STASH);
    if (*words > left && !qn_words_is_unpromised(p->device, p->queue)) {
        return QN_EDQUOT;
    }
    *words = QN_MIN(*words, left);
    return qn_sync_promise(p, *words);
}

void qn_sync_promise_back(struct qn_sync_port *p, uint32_t words)
{
    qn_words_promise_back(p->device, p->queue, words);
}

uint32_t qn_sync_object(struct qn_sync_port *p, qn_a32 *number)
{
    /* relaxed, and acquire as the weakest compare-and-swap: the number is all
     * that is said. */
    uint32_t now = qn_load(number, QN_RELAXED);
    if (now == 0) {
        const uint32_t mine = qn_words_number(p->device);
        if (qn_cas(number, &now, mine, QN_ACQUIRE)) {
            now = mine;
        }
    }
    return now;
}

void qn_sync_send_silently(struct qn_sync_port *p, uint32_t address,
                           const uint64_t *words, uint32_t n)
{
    const struct qn_words_target to = {address / QN_WORDS_QUEUES,
                                       address % QN_WORDS_QUEUES};
    int rc;
    while ((rc = qn_words_try_send(p->device, to, words, n)) == QN_EAGAIN) {
        qn_words_wait_room(p->device, to, n);
    }
    QN_ASSERT(rc == QN_OK || rc == QN_EPEERDEAD);
}

void qn_sync_send(struct qn_sync_port *p, uint32_t address,
                  const uint64_t *words, uint32_t n,
                  struct qn_wait_stats *waits)
{
    qn_sync_send_silently(p, address, words, n);
    waits->wakes += qn_words_ring(p->device, address / QN_WORDS_QUEUES);
}

/* ---- receive ---- */

static uint32_t length(uint64_t head)
{
    const uint32_t kind = qn_sync_head_kind(head);
    return kind == QN_SYNC_REQUEST ? 3 : kind == QN_SYNC_REPLY ? 2 : 1;
}

static bool agrees(uint64_t head, uint64_t want, uint64_t mask)
{
    if (QN_SYNC_MUTANT(NO_OBJECT)) {
        mask &= ~QN_SYNC_OBJECT;
    }
    return ((head ^ want) & mask) == 0;
}

static bool take_from_stash(struct qn_sync_port *p, uint64_t want,
                            uint64_t mask, uint64_t *words)
{
    uint32_t i = 0;
    while (i < p->count && !agrees(p->stash[i], want, mask)) {
        i += length(p->stash[i]);
    }
    if (i == p->count) {
        return false;
    }
    const uint32_t n = length(p->stash[i]);
    memcpy(words, p->stash + i, n * sizeof *words);
    p->count -= n;
    memmove(p->stash + i, p->stash + i + n, (p->count - i) * sizeof *words);
    return true;
}

bool qn_sync_try_receive(struct qn_sync_port *p, uint64_t want, uint64_t mask,
                         uint64_t *words)
{
    uint64_t next[QN_WORDS_SHARED_MAX];
    uint32_t n;
    qn_node_t sender;
    if (p->count > 0 && take_from_stash(p, want, mask, words)) {
        return true;
    }
    while (qn_words_take_message(p->device, p->queue, next, &n, &sender)) {
        QN_ASSERT(n == length(next[0]));
        if (agrees(next[0], want, mask)) {
            memcpy(words, next, n * sizeof *words);
            return true;
        }
        QN_ASSERT(p->count + n <= QN_SYNC_STASH);
        memcpy(p->stash + p->count, next, n * sizeof *words);
        p->count += n;
    }
    QN_ASSERT(!qn_words_corrupt(p->device));
    return false;
}

/* What a receive waits for, and where it is put. */
struct wanted {
    struct qn_sync_port *p;
    uint64_t want, mask;
    uint64_t *words;
};

static bool has_come(void *ctx)
{
    const struct wanted *w = ctx;
    return qn_sync_try_receive(w->p, w->want, w->mask, w->words);
}

void qn_sync_receive(struct qn_sync_port *p, uint64_t want, uint64_t mask,
                     uint64_t *words, struct qn_wait_stats *waits)
{
    struct wanted w = {p, want, mask, words};
    bool got = qn_baton_look(has_come, &w, waits);
    waits->parks += !got;
    while (!got) {
        qn_words_wait(p->device, p->queue, QN_TIME_NEVER);
        got = has_come(&w);
    }
}
