/*
 * Sending words.
 *
 * Room and position are one word, so one compare-and-swap takes both, and
 * messages cannot interleave. Then the slots are filled from the last to the
 * first: the header of the first word says that all are there (H).
 *
 * A reservation fails only because another node sent or received meanwhile.
 * After QN_WORDS_TRIES failures the send answers QN_EAGAIN, so that it is
 * wait-free; since the others' words lie in the queue then, their receiver will
 * make room, and ring a sender that waits for it.
 */
#include "core/base/assert.h"
#include "core/base/mark.h"
#include "core/words/words_internal.h"
#include "core/words/words_mutant.h"

/* The state with n more words in a queue. */
static uint64_t with(const struct qn_words_shape *s, uint64_t state,
                     uint32_t queue, uint32_t n)
{
    uint32_t tail = qn_words_tail(s, state, queue);
    uint32_t next = qn_words_further(s, tail, n);
    state ^= (uint64_t)(tail ^ next) << queue * s->tail_bits;
    return state + ((uint64_t)n << qn_words_used_shift(s, queue));
}

/* An incarnation that was named later than the one in memory has not attached
 * yet. */
bool qn_words_ended(const struct qn_device *d, qn_node_t node)
{
    const struct qn_words_port *p = qn_words_port_seen(d);
    /* W, seq_cst: after `waiting` and state, see mark_ended. */
    uint64_t life = qn_load(&p->memory->core[node].life, QN_SEQ_CST);
    uint64_t inc = p->peer[node].inc;
    return life == (inc | QN_WORDS_ENDED) || (life & ~QN_WORDS_ENDED) > inc;
}

static void say(struct qn_words_port *p, uint64_t intent)
{
    /* relaxed: S, the compare-and-swap that follows is the release. */
    qn_store(&p->own->intent, intent, QN_RELAXED);
}

static void take_back_intent(struct qn_words_port *p)
{
    /* I, release: the header is visible to the receiver that no longer finds
     * the intent. */
    qn_store(&p->own->intent, 0, QN_RELEASE);
}

static int try_reserve(struct qn_words_port *p, struct qn_words_target to,
                       uint32_t n, uint32_t *position)
{
    const struct qn_words_shape *s = p->shape;
    struct qn_words_core *c = &p->memory->core[to.node];
    const uint64_t inc = p->peer[p->device.self].inc;
    /* W, seq_cst: after `waiting`. */
    uint64_t state = qn_load(&c->state, QN_SEQ_CST);
    for (uint32_t i = 0; i < QN_WORDS_TRIES; i++) {
        uint32_t used = qn_words_used(s, state, to.queue);
        if (used > s->room) {
            p->corrupt = true;
            return QN_ECORRUPT;
        }
        if (used + n > s->room) {
            return qn_words_ended(&p->device, to.node) ? QN_EPEERDEAD
                                                       : QN_EAGAIN;
        }
        *position = qn_words_tail(s, state, to.queue);
        if (!QN_WORDS_MUTANT(INTENT_LATE)) {
            say(p, qn_words_intent(to, *position, inc));
        }
        if (QN_WORDS_MUTANT(NO_COMPARE)) {
            qn_fetch_add(&c->state, with(s, state, to.queue, n) - state,
                         QN_ACQ_REL);
            return QN_OK;
        }
        /* S: acquire, the receiver's reads of these slots are over; release,
         * the intent is seen by a node that sees the reservation. */
        if (qn_cas(&c->state, &state, with(s, state, to.queue, n),
                   QN_ACQ_REL)) {
            if (QN_WORDS_MUTANT(INTENT_LATE)) {
                say(p, qn_words_intent(to, *position, inc));
            }
            return QN_OK;
        }
    }
    return QN_EAGAIN;
}

int qn_words_reserve(struct qn_words_port *p, struct qn_words_target to,
                     uint32_t n, uint32_t *position)
{
    int rc = try_reserve(p, to, n, position);
    /* relaxed: only this node writes it. */
    if (rc != QN_OK && qn_load(&p->own->intent, QN_RELAXED) != 0) {
        take_back_intent(p);
    }
    return rc;
}

/* One word and its header. */
static void put(struct qn_words_slot *slot, uint64_t word, uint64_t header)
{
    /* relaxed: H, published by the header of the first word. */
    qn_store(&slot->word, word, QN_RELAXED);
    /* H, release: all words of the message are visible with that of the first
     * one; acquire in look (receive.c). */
    qn_store(&slot->header, header, QN_RELEASE);
}

void qn_words_publish(struct qn_words_port *p, struct qn_words_target to,
                      uint32_t position, const uint64_t *words, uint32_t n)
{
    const struct qn_words_shape *s = p->shape;
    struct qn_words_core *c = &p->memory->core[to.node];
    const uint64_t header =
        qn_words_header(position, n, p->device.self,
                        p->peer[p->device.self].inc, p->peer[to.node].inc);
    if (QN_WORDS_MUTANT(INTENT_EARLY)) {
        take_back_intent(p);
    }
    if (QN_WORDS_MUTANT(FIRST_FIRST)) {
        put(qn_words_slot_of(s, c, to.queue, position), words[0], header);
    }
    for (uint32_t i = n; i-- > 1;) {
        put(qn_words_slot_of(s, c, to.queue, position + i), words[i], 0);
    }
    put(qn_words_slot_of(s, c, to.queue, position), words[0], header);
    take_back_intent(p);
}

int qn_words_try_send(struct qn_device *d, struct qn_words_target to,
                      const uint64_t *words, uint32_t n)
{
    struct qn_words_port *p = qn_words_port_of(d);
    uint32_t position;
    QN_ASSERT(to.node < p->nodes && to.queue < QN_WORDS_QUEUES);
    if (n == 0 || n > p->shape->room) {
        return QN_EMSGSIZE;
    }
    if (p->corrupt) {
        return QN_ECORRUPT;
    }
    if (p->peer[to.node].inc == 0 || p->peer[to.node].ended) {
        return QN_EPEERDEAD;
    }
    (void)qn_queue((struct qn_queue_op){.step = QN_QUEUE_BEGIN});
    int rc = qn_words_reserve(p, to, n, &position);
    if (rc == QN_OK) {
        (void)qn_queue((struct qn_queue_op){.step = QN_QUEUE_SEND,
                                            .node = to.node,
                                            .queue = to.queue,
                                            .position = position,
                                            .words = n});
        qn_words_publish(p, to, position, words, n);
    }
    (void)qn_queue((struct qn_queue_op){.step = QN_QUEUE_END});
    return rc;
}

uint32_t qn_words_room(struct qn_device *d, struct qn_words_target to)
{
    struct qn_words_port *p = qn_words_port_of(d);
    QN_ASSERT(to.node < p->nodes && to.queue < QN_WORDS_QUEUES);
    /* relaxed: a hint; try_send looks for itself. */
    uint64_t state = qn_load(&p->memory->core[to.node].state, QN_RELAXED);
    uint32_t used = qn_words_used(p->shape, state, to.queue);
    return used < p->shape->room ? p->shape->room - used : 0;
}

/* ---- waiting ---- */

bool qn_words_ring(struct qn_device *d, qn_node_t node)
{
    struct qn_words_port *p = qn_words_port_of(d);
    const struct qn_words_peer *peer = &p->peer[node];
    bool there = node != d->self && peer->inc != 0 && !peer->ended;
    return p->ringer != NULL && p->ringer[node].line != NULL && there &&
           qn_doorbell_ring(&p->ringer[node]);
}

void qn_words_want_room(struct qn_device *d, qn_node_t node)
{
    struct qn_words_port *p = qn_words_port_of(d);
    /* W, seq_cst: then the caller looks for room, and at life. */
    qn_fetch_or(&p->memory->core[node].waiting[d->self / 64],
                UINT64_C(1) << d->self % 64, QN_SEQ_CST);
}

void qn_words_wait_room(struct qn_device *d, struct qn_words_target to,
                        uint32_t n)
{
    const struct qn_words_port *p = qn_words_port_of(d);
    if (p->doorbell == NULL) {
        qn_pause();
        return;
    }
    qn_doorbell_arm(p->doorbell);
    qn_words_want_room(d, to.node);
    /* W, seq_cst: after `waiting`. */
    const uint64_t state = qn_load(&p->memory->core[to.node].state, QN_SEQ_CST);
    if (qn_words_used(p->shape, state, to.queue) + n > p->shape->room &&
        !qn_words_ended(d, to.node)) {
        (void)qn_doorbell_wait(p->doorbell, QN_TIME_NEVER);
    }
    qn_doorbell_disarm(p->doorbell);
}

int qn_words_send(struct qn_device *d, struct qn_words_target to,
                  const uint64_t *words, uint32_t n, qn_time_t deadline)
{
    struct qn_doorbell *doorbell = qn_words_port_of(d)->doorbell;
    int rc = qn_words_try_send(d, to, words, n);
    int slept = QN_OK;
    QN_ASSERT(doorbell != NULL);
    while (rc == QN_EAGAIN && slept == QN_OK) {
        qn_doorbell_arm(doorbell);
        qn_words_want_room(d, to.node);
        rc = qn_words_try_send(d, to, words, n);
        if (rc == QN_EAGAIN) {
            slept = qn_doorbell_wait(doorbell, deadline);
        }
        qn_doorbell_disarm(doorbell);
        if (rc == QN_EAGAIN) {
            rc = qn_words_try_send(d, to, words, n);
        }
    }
    if (rc == QN_OK) {
        (void)qn_words_ring(d, to.node);
    }
    return rc == QN_EAGAIN ? QN_ETIMEDOUT : rc;
}
