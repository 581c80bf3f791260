/*
 * Receiving words.
 *
 * A message that is there is copied from the ring to private memory when a
 * receive needs it, and its room is given back when its words are taken. So the
 * bound of a core holds for copied words as well, and copies fit into private
 * memory. Copying lets a receive pass over what is held (words of an
 * incarnation that this node has not been told of) without giving up the order
 * of the others.
 */
#include <string.h>

#include "core/base/assert.h"
#include "core/base/mark.h"
#include "core/words/words_internal.h"
#include "core/words/words_mutant.h"

void qn_words_ring_waiting(struct qn_words_port *p, struct qn_words_core *c)
{
    for (uint32_t i = 0; i < 2; i++) {
        /* W, seq_cst: after state, or life; see qn_words_want_room. */
        if (qn_load(&c->waiting[i], QN_SEQ_CST) == 0) {
            continue;
        }
        uint64_t set = qn_exchange(&c->waiting[i], 0, QN_SEQ_CST);
        for (; set != 0; set &= set - 1) {
            uint32_t node = i * 64 + (uint32_t)__builtin_ctzll(set);
            if (node < p->nodes) {
                (void)qn_words_ring(&p->device, node);
            }
        }
    }
}

/* ---- the ring ---- */

static void move_head(struct qn_words_port *p, uint32_t queue, uint32_t n)
{
    struct qn_words_queue *q = &p->queue[queue];
    q->head = qn_words_further(p->shape, q->head, n);
    /* Messages end there, so no step leads past it. */
    q->repairs = q->repairs && q->head != q->repair_to;
    /* relaxed: read by the next incarnation, which knows that this one has
     * ended. Before give_back, which is a release. */
    qn_store(&p->own->head[queue], q->head, QN_RELAXED);
}

static void give_back(struct qn_words_port *p, uint32_t queue, uint32_t n)
{
    uint64_t words = (uint64_t)n << qn_words_used_shift(p->shape, queue);
    /* S, release: the reads of these slots are over before a sender, whose
     * compare-and-swap is the acquire, writes them. seq_cst for W. */
    qn_fetch_add(&p->own->state, (uint64_t)0 - words, QN_SEQ_CST);
    qn_words_ring_waiting(p, p->own);
}

static void drop(struct qn_words_port *p, uint32_t queue, uint32_t n)
{
    if (QN_WORDS_MUTANT(LATE_HEAD)) {
        give_back(p, queue, n);
        move_head(p, queue, n);
        return;
    }
    move_head(p, queue, n);
    give_back(p, queue, n);
}

/* What is not there at `head` is padded if its owner has ended: words_device.c.
 * @return true: look again. */
static bool repair(struct qn_words_port *p, uint32_t queue)
{
    struct qn_words_queue *q = &p->queue[queue];
    const struct qn_words_target here = {p->device.self, queue};
    for (uint32_t i = 0; i < p->nodes && !QN_WORDS_MUTANT(PAD_LIVING); i++) {
        /* I, acquire: a sender's header is there when its intent is not. */
        uint64_t intent = qn_load(&p->memory->core[i].intent, QN_ACQUIRE);
        if (qn_words_intent_names(intent, here, q->head)) {
            return false;
        }
    }
    struct qn_words_slot *slot =
        qn_words_slot_of(p->shape, p->own, queue, q->head);
    /* relaxed: behind the intents, which are acquired; what it finds is loaded
     * again by look. */
    if (!qn_words_header_names(qn_load(&slot->header, QN_RELAXED), q->head)) {
        /* relaxed: S, before give_back. Its owner has ended. */
        qn_store(&slot->header, 0, QN_RELAXED);
        p->padded++;
        drop(p, queue, 1);
    }
    return true;
}

/* Of an incarnation before the named one, of that one, or of a later one? */
static int age(const struct qn_words_peer *peer, uint16_t inc)
{
    if (QN_WORDS_MUTANT(ANY_INCARNATION)) {
        return 0;
    }
    return peer->inc == 0 ? 1 : (int16_t)(uint16_t)(inc - peer->inc);
}

static void copy(struct qn_words_port *p, uint32_t queue, uint32_t n,
                 struct qn_words_word w)
{
    struct qn_words_queue *q = &p->queue[queue];
    QN_ASSERT(q->count + n <= QN_WORDS_SLOTS);
    for (uint32_t i = 0; i < n; i++) {
        /* relaxed: found by H. */
        w.value = qn_load(
            &qn_words_slot_of(p->shape, p->own, queue, q->head + i)->word,
            QN_RELAXED);
        w.first = i == 0;
        q->word[q->count++] = w;
    }
    q->held += w.held ? n : 0;
    move_head(p, queue, n);
}

/* A header that names the right position: a message for this incarnation, or
 * something to pass over. @return false: the device is damaged. */
static bool message(struct qn_words_port *p, uint32_t queue, uint64_t header)
{
    const uint32_t n = (uint32_t)(header >> 14) & 0x7f;
    const uint32_t sender = (uint32_t)(header >> 21) & 0x7f;
    const uint64_t to = p->peer[p->device.self].inc & 0xffff;
    struct qn_words_word w = {.sender = (uint8_t)sender,
                              .inc = (uint16_t)(header >> 28)};
    /* More than is used cannot be: it would not fit into private memory. */
    if (n == 0 || sender >= p->nodes ||
        p->queue[queue].count + n > p->shape->room) {
        p->corrupt = true;
        return false;
    }
    const int then = age(&p->peer[sender], w.inc);
    if (then < 0 ||
        ((header >> 44 & 0xffff) != to && !QN_WORDS_MUTANT(ANY_INCARNATION))) {
        drop(p, queue, n);
        return true;
    }
    w.held = then > 0;
    copy(p, queue, n, w);
    return true;
}

/* Copy the next message, or pass over something. @return false: nothing. */
static bool look(struct qn_words_port *p, uint32_t queue)
{
    struct qn_words_queue *q = &p->queue[queue];
    if (p->corrupt) {
        return false;
    }
    /* H, acquire: pairs with the release in put (send.c). */
    uint64_t header =
        qn_load(&qn_words_slot_of(p->shape, p->own, queue, q->head)->header,
                QN_ACQUIRE);
    if (qn_words_header_names(header, q->head)) {
        return qn_queue((struct qn_queue_op){.step = QN_QUEUE_LOOK,
                                             .queue = queue,
                                             .position = q->head}) &&
               message(p, queue, header);
    }
    return q->repairs && repair(p, queue);
}

/* Copy until n words can be taken. @return whether they can. */
static bool find(struct qn_words_port *p, uint32_t queue, uint32_t n)
{
    const struct qn_words_queue *q = &p->queue[queue];
    while (q->count - q->held < n) {
        if (!look(p, queue)) {
            return false;
        }
    }
    return true;
}

static void taken(struct qn_words_port *p, uint32_t queue, uint32_t n)
{
    (void)qn_queue((struct qn_queue_op){.step = QN_QUEUE_TAKE, .words = n});
    give_back(p, queue, n);
}

/* ---- private memory ---- */

/* Take the first n words that are not held. */
static void take(struct qn_words_queue *q, uint64_t *words, uint32_t n)
{
    uint32_t kept = 0;
    uint32_t taken = 0;
    for (uint32_t i = 0; i < q->count; i++) {
        if (q->word[i].held || taken == n) {
            q->word[kept++] = q->word[i];
        } else {
            words[taken++] = q->word[i].value;
        }
    }
    q->count = kept;
}

bool qn_words_take_message(struct qn_device *d, uint32_t queue, uint64_t *words,
                           uint32_t *n, qn_node_t *sender)
{
    struct qn_words_port *p = qn_words_port_of(d);
    struct qn_words_queue *q = &p->queue[queue];
    uint32_t from = 0;
    uint32_t to;
    (void)qn_queue((struct qn_queue_op){.step = QN_QUEUE_BEGIN});
    if (!find(p, queue, 1)) {
        (void)qn_queue((struct qn_queue_op){.step = QN_QUEUE_END});
        return false;
    }
    while (q->word[from].held) {
        from++;
    }
    *sender = q->word[from].sender;
    for (to = from; to < q->count && (to == from || !q->word[to].first); to++) {
        words[to - from] = q->word[to].value;
    }
    *n = to - from;
    memmove(q->word + from, q->word + to, (q->count - to) * sizeof *q->word);
    q->count -= *n;
    taken(p, queue, *n);
    (void)qn_queue((struct qn_queue_op){.step = QN_QUEUE_END});
    return true;
}

bool qn_words_held_up(const struct qn_device *d, uint32_t queue)
{
    const struct qn_words_port *p = qn_words_port_seen(d);
    /* S, acquire. */
    uint64_t state = qn_load(&p->own->state, QN_ACQUIRE);
    return qn_words_tail(p->shape, state, queue) != p->queue[queue].head;
}

/* The rest of a message of which words were taken stays whatever happens: its
 * receiver waits for it. */
void qn_words_sort(struct qn_words_port *p, qn_node_t node)
{
    for (uint32_t i = 0; i < QN_WORDS_QUEUES; i++) {
        struct qn_words_queue *q = &p->queue[i];
        const uint32_t before = q->count;
        bool begun = false; /* a first word was met */
        q->count = q->held = 0;
        for (uint32_t k = 0; k < before; k++) {
            struct qn_words_word w = q->word[k];
            begun |= w.first;
            if (w.sender == node && begun) {
                const int then = age(&p->peer[node], w.inc);
                if (then < 0) {
                    continue;
                }
                w.held = then > 0;
            }
            q->held += w.held;
            q->word[q->count++] = w;
        }
        if (q->count < before) {
            give_back(p, i, before - q->count);
        }
    }
}

/* ---- for users ---- */

int qn_words_try_receive(struct qn_device *d, uint32_t queue, uint64_t *words,
                         uint32_t n)
{
    struct qn_words_port *p = qn_words_port_of(d);
    QN_ASSERT(queue < QN_WORDS_QUEUES);
    if (n == 0 || n > p->shape->room) {
        return QN_EMSGSIZE;
    }
    (void)qn_queue((struct qn_queue_op){.step = QN_QUEUE_BEGIN});
    bool there = find(p, queue, n);
    if (there) {
        take(&p->queue[queue], words, n);
        taken(p, queue, n);
    }
    (void)qn_queue((struct qn_queue_op){.step = QN_QUEUE_END});
    return there ? QN_OK : p->corrupt ? QN_ECORRUPT : QN_EAGAIN;
}

void qn_words_wait(struct qn_device *d, uint32_t queue, qn_time_t deadline)
{
    struct qn_doorbell *doorbell = qn_words_port_of(d)->doorbell;
    if (doorbell == NULL) {
        qn_pause();
        return;
    }
    qn_doorbell_arm(doorbell);
    if (qn_words_empty(d, queue)) {
        (void)qn_doorbell_wait(doorbell, deadline);
    }
    qn_doorbell_disarm(doorbell);
}

bool qn_words_empty(struct qn_device *d, uint32_t queue)
{
    struct qn_words_port *p = qn_words_port_of(d);
    QN_ASSERT(queue < QN_WORDS_QUEUES);
    (void)qn_queue((struct qn_queue_op){.step = QN_QUEUE_BEGIN});
    bool there = find(p, queue, 1);
    (void)qn_queue((struct qn_queue_op){.step = QN_QUEUE_END});
    return !there;
}

int qn_words_receive(struct qn_device *d, uint32_t queue, uint64_t *words,
                     uint32_t n, qn_time_t deadline)
{
    struct qn_doorbell *doorbell = qn_words_port_of(d)->doorbell;
    int rc = qn_words_try_receive(d, queue, words, n);
    int slept = QN_OK;
    QN_ASSERT(doorbell != NULL);
    while (rc == QN_EAGAIN && slept == QN_OK) {
        qn_doorbell_arm(doorbell);
        rc = qn_words_try_receive(d, queue, words, n);
        if (rc == QN_EAGAIN) {
            slept = qn_doorbell_wait(doorbell, deadline);
        }
        qn_doorbell_disarm(doorbell);
        if (rc == QN_EAGAIN) {
            rc = qn_words_try_receive(d, queue, words, n);
        }
    }
    return rc == QN_EAGAIN ? QN_ETIMEDOUT : rc;
}
