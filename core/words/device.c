/*
 * The device: its memory, attachments, and what is done after a death.
 *
 * A sender may end between its reservation and the header that publishes it.
 * Then a range of the queue stays unpublished, and what lies behind it would
 * never be read. Only the receiver may pad it, and only if no living sender is
 * about to publish it. How does it know? Each sender writes its intent, queue
 * and position, before the compare-and-swap that may reserve it, and takes it
 * back when the words are there. An intent does not prove that the range is its
 * writer's (the compare-and-swap may have failed, and the writer may not have
 * come to say so), so a dead sender's intent is not followed. But a range
 * without header that no intent names has no living owner:
 *
 *   owner      intent = p;  state: reserve;   ...;  header;  intent = 0
 *   receiver   load state (p is reserved);  load all intents;  load header
 *
 * The receiver has seen the reservation, so it sees the intent before it (S) or
 * a later one, and then the header (I). Therefore the owner has ended. The
 * intent of a dead sender is cleared by every node that is told of the end, and
 * by the sender's next incarnation; what was stored before an end is visible to
 * a node that is told of it. Ranges are padded word by word, so their length
 * need not be known. Looking at all intents is expensive, so it is done only
 * for positions that were reserved before an end was told (repair_to), and for
 * those that a new incarnation finds in its own queues.
 *
 * An incarnation may end before this node was told of it. So its end is told by
 * the name of its successor: `up` says of all earlier ones what `down` says of
 * one, and so does attach of the peers that it is given.
 *
 * A new incarnation does not empty its queues: a sender that was stopped would
 * go on and write into slots that have been given away again. It goes on where
 * the former one stopped (head, which is stored before room is given back) and
 * skips what was sent to that one.
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/words/words_internal.h"
#include "core/words/words_mutant.h"

#define MAGIC      UINT64_C(0x3230304e44554e51) /* "QNUDN002" */
#define PAGE_BYTES ((size_t)4096)

static const struct qn_words_shape shape[] = {
    {.tail_bits = 14,
     .used_bits = 7,
     .room = QN_WORDS_SHARED_MAX,
     .slots = QN_WORDS_SLOTS},
    {.tail_bits = 11,
     .used_bits = 5,
     .split = true,
     .room = QN_WORDS_SPLIT_MAX,
     .slots = QN_WORDS_SLOTS / QN_WORDS_QUEUES},
};

static_assert(QN_WORDS_SPLIT_MAX < 32, "5 bits; slots of a split queue");

static bool opts_good(const struct qn_device_opts *o)
{
    return o->nodes >= 2 && o->nodes <= QN_WORDS_CORES_MAX && o->lanes >= 1 &&
           o->lanes <= QN_LANES;
}

size_t qn_words_bytes(const struct qn_device_opts *o)
{
    return opts_good(o)
               ? qn_align_up(sizeof(struct qn_words_memory) +
                                 o->nodes * sizeof(struct qn_words_core),
                             PAGE_BYTES)
               : 0;
}

/* relaxed: runs alone. Zeroed memory has empty queues. */
static void format(void *memory, const struct qn_device_opts *o, uint32_t split)
{
    struct qn_words_memory *m = memory;
    QN_ASSERT(opts_good(o));
    qn_store(&m->nodes, o->nodes, QN_RELAXED);
    qn_store(&m->lanes, o->lanes, QN_RELAXED);
    qn_store(&m->split, split, QN_RELAXED);
    qn_store(&m->magic, MAGIC, QN_RELAXED);
}

void qn_words_format(void *memory, const struct qn_device_opts *o)
{
    format(memory, o, 0);
}

static void format_split(void *memory, const struct qn_device_opts *o)
{
    format(memory, o, 1);
}

/* ---- what has ended ---- */

/* Is an intent of an incarnation up to this one? By their low bits, which wrap
 * (as age in receive.c). */
static bool intent_until(uint64_t intent, uint64_t inc)
{
    return intent != 0 && (int16_t)(uint16_t)((intent >> 23) - inc) <= 0;
}

/* Say in memory that a node's incarnations up to this one have ended: their
 * intents no longer count, and senders that wait at its core look up. What is
 * there of a later one stays. An incarnation that ended before it had stored
 * its life has left that of an earlier one, and perhaps its intent. */
static void mark_ended(struct qn_words_port *p, qn_node_t node, uint64_t inc)
{
    struct qn_words_core *c = &p->memory->core[node];
    uint64_t intent = qn_load(&c->intent, QN_ACQUIRE);
    if (intent_until(intent, inc)) {
        /* I, release: what the dead had published is visible to those that no
         * longer find its intent. A failure: its successor has attached. */
        (void)qn_cas(&c->intent, &intent, 0, QN_ACQ_REL);
    }
    /* relaxed: the compare-and-swap looks again. */
    uint64_t life = qn_load(&c->life, QN_RELAXED);
    bool before = !QN_WORDS_MUTANT(NEVER_LIVED);
    /* W: life, then waiting; a sender sets waiting, then loads life. */
    while ((life == inc || (before && (life & ~QN_WORDS_ENDED) < inc)) &&
           !qn_cas(&c->life, &life, inc | QN_WORDS_ENDED, QN_SEQ_CST)) {
    }
    if (!QN_WORDS_MUTANT(DEAF)) {
        qn_words_ring_waiting(p, c);
    }
}

/* What is reserved by now in own queues may be of an incarnation that has
 * ended. */
static void repair_queues(struct qn_words_port *p)
{
    /* S, acquire: with a reservation the intent in front of it is seen. */
    uint64_t state = qn_load(&p->own->state, QN_ACQUIRE);
    for (uint32_t q = 0; q < QN_WORDS_QUEUES; q++) {
        struct qn_words_queue *queue = &p->queue[q];
        queue->repair_to = qn_words_tail(p->shape, state, q);
        queue->repairs =
            queue->head != queue->repair_to && !QN_WORDS_MUTANT(NO_PAD);
    }
}

/* A node's incarnation was named: all before it have ended, and this node may
 * not have known the last of them. */
static void ended_before(struct qn_words_port *p, qn_node_t node, uint64_t inc)
{
    if (!QN_WORDS_MUTANT(NEVER_NAMED)) {
        mark_ended(p, node, inc - 1);
        repair_queues(p);
    }
}

/* ---- attach ---- */

/* Fill the queues as a state says. @return the state with the words that it has
 * in them, and no others, as used. */
static uint64_t recount(struct qn_words_port *p, uint64_t state)
{
    const struct qn_words_shape *s = p->shape;
    const uint32_t mask = (1u << s->tail_bits) - 1;
    uint64_t next =
        state & ((UINT64_C(1) << QN_WORDS_QUEUES * s->tail_bits) - 1);
    uint32_t all = 0;
    for (uint32_t i = 0; i < QN_WORDS_QUEUES; i++) {
        struct qn_words_queue *q = &p->queue[i];
        /* relaxed: written by this node's former incarnation. */
        q->head = qn_load(&p->own->head[i], QN_RELAXED) & mask;
        q->repair_to = qn_words_tail(s, state, i);
        q->repairs = q->head != q->repair_to;
        uint32_t used = (q->repair_to - q->head) & mask;
        all = s->split ? used : all + used;
        p->corrupt |= all > s->room;
        next += (uint64_t)used << qn_words_used_shift(s, i);
    }
    return next;
}

/* Go on where the former incarnation stopped. What it had copied is lost, and
 * no longer counts: only this node gives room back, so what is used is what
 * lies between head and tail. */
static void inherit(struct qn_words_port *p)
{
    uint64_t state = qn_load(&p->own->state, QN_SEQ_CST);
    uint64_t next = recount(p, state);
    /* S; seq_cst for W: ring_waiting follows. */
    while (!p->corrupt && !qn_cas(&p->own->state, &state, next, QN_SEQ_CST)) {
        next = recount(p, state);
    }
}

static bool attach_good(const struct qn_device_attach_opts *o)
{
    return o->memory != NULL && (uintptr_t)o->memory % QN_CACHELINE == 0 &&
           opts_good(o->opts) && o->self < o->opts->nodes &&
           o->incarnation[o->self] != 0 &&
           o->incarnation[o->self] < QN_WORDS_ENDED;
}

/* relaxed: formatted before all attachments. */
static bool formatted(const struct qn_words_memory *m,
                      const struct qn_device_opts *o, bool split)
{
    return qn_load(&m->magic, QN_RELAXED) == MAGIC &&
           qn_load(&m->nodes, QN_RELAXED) == o->nodes &&
           qn_load(&m->lanes, QN_RELAXED) == o->lanes &&
           qn_load(&m->split, QN_RELAXED) == split;
}

int qn_words_attach(struct qn_device **out,
                    const struct qn_device_attach_opts *o,
                    const struct qn_device_type *type, size_t behind)
{
    const bool split = type == &qn_words_split;
    if (!attach_good(o)) {
        return QN_EINVAL;
    }
    if (!formatted(o->memory, o->opts, split)) {
        return QN_ECORRUPT;
    }
    size_t size =
        qn_align_up(sizeof(struct qn_words_port) + behind, QN_CACHELINE);
    struct qn_words_port *p = aligned_alloc(QN_CACHELINE, size);
    if (p == NULL) {
        return QN_ENOMEM;
    }
    memset(p, 0, size);
    p->device = (struct qn_device){.type = type, .self = o->self};
    p->memory = o->memory;
    p->own = &p->memory->core[o->self];
    p->shape = &shape[split];
    p->nodes = o->opts->nodes;
    p->doorbell = o->doorbell;
    p->ringer = o->ringer;
    for (uint32_t i = 0; i < p->nodes; i++) {
        p->peer[i].inc = o->incarnation[i];
    }
    inherit(p);
    if (p->corrupt) {
        free(p);
        return QN_ECORRUPT;
    }
    /* release: the former incarnation has ended, and what it had published is
     * visible to those that no longer find its intent (I). */
    qn_store(&p->own->intent, 0, QN_RELEASE);
    qn_store(&p->own->life, o->incarnation[o->self], QN_SEQ_CST); /* W */
    qn_words_ring_waiting(p, p->own);
    for (uint32_t i = 0; i < p->nodes; i++) {
        if (i != o->self && p->peer[i].inc != 0) {
            ended_before(p, i, p->peer[i].inc);
        }
    }
    *out = &p->device;
    return QN_OK;
}

static int attach_shared(struct qn_device **out,
                         const struct qn_device_attach_opts *o)
{
    return qn_words_attach(out, o, &qn_words_shared, 0);
}

static int attach_split(struct qn_device **out,
                        const struct qn_device_attach_opts *o)
{
    return qn_words_attach(out, o, &qn_words_split, 0);
}

void qn_words_detach(struct qn_device *d)
{
    free(qn_words_port_of(d));
}

/* ---- death ---- */

void qn_words_down(struct qn_device *d, qn_node_t node)
{
    struct qn_words_port *p = qn_words_port_of(d);
    QN_ASSERT(node < p->nodes && node != d->self);
    struct qn_words_peer *peer = &p->peer[node];
    if (peer->inc == 0 || peer->ended) {
        return;
    }
    peer->ended = true;
    mark_ended(p, node, peer->inc);
    repair_queues(p);
}

bool qn_words_living(const struct qn_device *d, qn_node_t node, uint64_t inc)
{
    const struct qn_words_peer *peer = &qn_words_port_seen(d)->peer[node];
    return peer->inc == inc && !peer->ended;
}

void qn_words_up(struct qn_device *d, qn_node_t node, uint64_t inc)
{
    struct qn_words_port *p = qn_words_port_of(d);
    QN_ASSERT(node < p->nodes && node != d->self && inc != 0);
    if (qn_words_living(d, node, inc)) {
        return; /* it was named by attach, or before */
    }
    p->peer[node] = (struct qn_words_peer){.inc = inc};
    qn_words_sort(p, node);
    ended_before(p, node, inc);
    /* This node cleared wishes for room, and rang those that it knew: that one
     * may have been among the others. */
    if (!QN_WORDS_MUTANT(UNWOKEN)) {
        (void)qn_words_ring(d, node);
    }
}

void *qn_words_behind(struct qn_device *d)
{
    return qn_words_port_of(d)->behind;
}

bool qn_words_corrupt(const struct qn_device *d)
{
    return qn_words_port_seen(d)->corrupt;
}

const struct qn_device_type qn_words_shared = {
    .name = "words",
    .bytes = qn_words_bytes,
    .format = qn_words_format,
    .attach = attach_shared,
    .detach = qn_words_detach,
    .down = qn_words_down,
    .up = qn_words_up,
};

const struct qn_device_type qn_words_split = {
    .name = "words-split",
    .bytes = qn_words_bytes,
    .format = format_split,
    .attach = attach_split,
    .detach = qn_words_detach,
    .down = qn_words_down,
    .up = qn_words_up,
};
