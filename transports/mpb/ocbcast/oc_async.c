/*
 * A turn: is the buffer free again, what has come, what may go out next.
 *
 * Interrupts of one parent merge, which loses nothing: a parent has one chunk
 * out until all children have told. The bits are taken before anything is
 * looked at, so a chunk that comes meanwhile interrupts again. What was taken
 * and did not fit the budget stays in `arrived`.
 *
 * All that a node sends or forwards goes through one queue, but for the chunk
 * that finds the buffer free and the queue empty: that one is moved from buffer
 * to buffer, children are interrupted, and only then is it copied to memory.
 *
 * An interrupt may come of an incarnation that this node was not told of yet.
 * It waits in `early` until it was: its sender waits for this node.
 *
 * A child that dies is no child any more: its incarnation differs from the one
 * that was noted when the chunk was put. Each wait looks at the device's
 * incarnations, which down and up change; nothing else need be told here.
 */
#include "transports/mpb/ocbcast/oc_async.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/err.h"
#include "core/qp.h"
#include "transports/mpb/layout.h"
#include "transports/mpb/mutant.h"
#include "transports/mpb/ocbcast/oc_tree.h"

enum { HEAD_LENGTH, HEAD_CHUNK, HEAD_MEMBERS, HEAD_USE };

struct head {
    uint64_t word[QN_MPB_LINE_WORDS];
};

/* A chunk in private memory. */
struct chunk {
    struct head head;
    uint8_t payload[]; /* [payload_max] */
};

/* What comes from one source. */
struct source {
    uint64_t incarnation; /* 0: nothing has come of this one yet */
    uint32_t number;      /* of the last chunk that came */
    uint32_t told;        /* up to which chunk the source knows */
    uint32_t next;        /* chunk of the open message, from 1; 0: none open */
    uint32_t got;         /* bytes of it */
    uint8_t *body;        /* [msg_max] */
};

struct async {
    struct qn_device_bcast bcast; /* its first member */
    struct qn_mpb *chip;
    uint32_t k, msg_max, payload_max;      /* bytes */
    uint32_t done, received, head, buffer; /* lines */
    qn_device_bcast_deliver_fn *deliver;   /* of the poll that runs */
    void *ctx;

    uint64_t arrived;                /* interrupts that were taken */
    uint64_t early;                  /* of incarnations yet to be told of */
    uint64_t early_of[QN_MPB_CORES]; /* the one that was known then */
    uint32_t seen[QN_MPB_CORES];     /* use of the parent's buffer that was */
    uint64_t seen_of[QN_MPB_CORES];  /* handled last, and of which incarnation
                                      */

    uint32_t use;             /* of the own buffer */
    uint32_t children, waits; /* in it; which is looked at. 0: free */
    qn_node_t child[QN_OC_FANOUT_MAX];
    uint64_t child_incarnation[QN_OC_FANOUT_MAX];

    uint32_t slots, slot_bytes;
    uint32_t first, queued, most; /* of the ring of slots */
    uint8_t *slot;                /* [slots][slot_bytes], of struct chunk */

    uint32_t number;              /* of the last own chunk */
    uint32_t forgiven;            /* up to it none is waited for */
    uint32_t floor;               /* all have it, as far as known */
    qn_node_t behind;             /* the member that held the window last */
    uint64_t known[QN_MPB_CORES]; /* incarnations */
    uint32_t staged, pushed;      /* bytes of the own message, and of it in
                                     the queue */
    uint32_t pieces, piece;       /* the same in chunks */
    uint8_t *memory;              /* what follows lies in it */
    uint8_t *stage;               /* [msg_max] */
    uint8_t *scratch;             /* [payload_max] */
    struct source source[QN_MPB_CORES];
};

static struct async *of(struct qn_device_bcast *b)
{
    return (struct async *)(void *)b; /* its first member */
}

static uint32_t pair_tag(const struct async *a, qn_node_t at, qn_node_t writer)
{
    return qn_mpb_low(a->chip->incarnation[at]) << 16 |
           qn_mpb_low(a->chip->incarnation[writer]);
}

static void store(struct async *a, qn_node_t at, uint32_t line, uint32_t word,
                  uint32_t number)
{
    qn_mpb_store(a->chip, at, line, word,
                 (uint64_t)number << 32 | pair_tag(a, at, a->chip->self));
    if (!QN_MPB_MUTANT(ASYNC_KEPT)) {
        qn_mpb_drain(a->chip);
    }
    qn_mpb_ring(a->chip, at);
}

/* ---- heads ---- */

static uint32_t bytes_of(const struct head *h)
{
    return (uint32_t)(h->word[HEAD_LENGTH] >> 32);
}

static uint32_t place_of(const struct head *h)
{
    return (uint32_t)h->word[HEAD_LENGTH] >> 16;
}

static uint32_t places_of(const struct head *h)
{
    return (uint32_t)h->word[HEAD_LENGTH] & 0xffffu;
}

static uint32_t number_of(const struct head *h)
{
    return (uint32_t)(h->word[HEAD_CHUNK] >> 32);
}

static qn_node_t source_of(const struct head *h)
{
    return (qn_node_t)(h->word[HEAD_CHUNK] & 0xffffu);
}

/* Bytes of the chunk; 0 if its place is none. */
static uint32_t payload_of(const struct async *a, const struct head *h)
{
    uint32_t at = (place_of(h) - 1) * a->payload_max;
    uint32_t last = bytes_of(h) - at;
    return place_of(h) < places_of(h) ? a->payload_max : last;
}

static bool lengths_good(const struct async *a, const struct head *h)
{
    uint32_t bytes = bytes_of(h);
    uint32_t places = bytes == 0 ? 1 : (bytes - 1) / a->payload_max + 1;
    return bytes <= a->msg_max && places_of(h) == places && place_of(h) >= 1 &&
           place_of(h) <= places;
}

/* The source and this node are members. */
static bool tree_good(const struct async *a, const struct head *h)
{
    qn_node_t source = source_of(h);
    return source < a->chip->nodes && source != a->chip->self &&
           (h->word[HEAD_MEMBERS] >> source & 1) != 0 &&
           (h->word[HEAD_MEMBERS] >> a->chip->self & 1) != 0;
}

static struct qn_oc_tree tree_of(const struct async *a, const struct head *h)
{
    uint64_t all = UINT64_MAX >> (64 - a->chip->nodes);
    return (struct qn_oc_tree){.members = h->word[HEAD_MEMBERS] & all,
                               .root = source_of(h),
                               .k = a->k};
}

/* ---- the own buffer ---- */

/* Free, or free again: all children that live have told. */
static bool buffer_free(struct async *a)
{
    for (; a->waits < a->children; a->waits++) {
        qn_node_t child = a->child[a->waits];
        if (a->chip->incarnation[child] != a->child_incarnation[a->waits]) {
            continue;
        }
        if (!QN_MPB_MUTANT(ASYNC_DONE_STALE)) {
            qn_mpb_invalidate(a->chip);
        }
        uint64_t seen =
            qn_mpb_load(a->chip, a->chip->self, a->done + a->waits, 0);
        if (seen !=
            ((uint64_t)a->use << 32 | pair_tag(a, a->chip->self, child))) {
            return false;
        }
    }
    a->children = a->waits = 0;
    return true;
}

/* Nothing in the buffer counts while it changes. The head leaves the write
 * buffer when the payload comes, which has at least a byte. */
static void begin_use(struct async *a)
{
    qn_mpb_store(a->chip, a->chip->self, a->head, HEAD_USE, 0);
}

/* The payload is there: announce it to the children. */
static void announce(struct async *a, const struct head *h)
{
    const struct qn_oc_tree t = tree_of(a, h);
    struct head own = *h;
    uint64_t cores = 0;
    a->use++;
    own.word[HEAD_USE] = (uint64_t)a->use << 32 |
                         qn_mpb_low(a->chip->incarnation[a->chip->self]);
    /* A whole line, so it and all before it have left the write buffer. */
    qn_mpb_put(a->chip, a->chip->self, a->head, &own, sizeof own);
    uint32_t family = qn_oc_child_count(&t, a->chip->self);
    for (uint32_t i = 0; i < family; i++) {
        qn_node_t child = qn_oc_child(&t, a->chip->self, i);
        /* Its place says which flag it writes, also if it is the only one. */
        a->child[i] = child;
        a->child_incarnation[i] = a->chip->incarnation[child];
        if (a->child_incarnation[i] == 0) {
            a->child_incarnation[i] =
                UINT64_MAX; /* not there: waits for none */
        } else {
            cores |= UINT64_C(1) << child;
        }
    }
    a->children = family;
    a->waits = 0;
    a->chip->access->interrupt(a->chip, cores);
}

/* ---- the queue ---- */

static struct chunk *slot_at(struct async *a, uint32_t i)
{
    uint32_t slot = (a->first + i) % a->slots;
    return (struct chunk *)(void *)(a->slot + (size_t)slot * a->slot_bytes);
}

static void queue_pushed(struct async *a)
{
    a->queued++;
    a->most = QN_MAX(a->most, a->queued);
}

static void flush_queue(struct async *a)
{
    while (a->queued > 0 && buffer_free(a)) {
        struct chunk *c = slot_at(a, 0);
        uint32_t len = payload_of(a, &c->head);
        begin_use(a);
        qn_mpb_put(a->chip, a->chip->self, a->buffer, c->payload,
                   QN_MAX(len, 1u));
        announce(a, &c->head);
        a->first = (a->first + 1) % a->slots;
        a->queued--;
    }
}

/* ---- own messages ---- */

/* The members that live. When one has ended or come, what was on its way to any
 * of them may be lost in the one that ended: it is not waited for. */
static uint64_t living(struct async *a)
{
    uint64_t members = 0;
    bool changed = false;
    for (qn_node_t v = 0; v < a->chip->nodes; v++) {
        uint64_t incarnation = a->chip->incarnation[v];
        changed |= a->known[v] != incarnation;
        a->known[v] = incarnation;
        members |= (uint64_t)(incarnation != 0) << v;
    }
    if (changed) {
        a->forgiven = a->number;
    }
    return members;
}

/* Own chunks that a member has not received. */
static uint32_t lacks(struct async *a, qn_node_t v, uint64_t members)
{
    uint32_t of_all = a->number - a->forgiven;
    if (v == a->chip->self || (members >> v & 1) == 0) {
        return 0;
    }
    uint64_t seen =
        qn_mpb_load(a->chip, a->chip->self, a->received + v / QN_MPB_LINE_WORDS,
                    v % QN_MPB_LINE_WORDS);
    return (uint32_t)seen == pair_tag(a, a->chip->self, v)
               ? QN_MIN(of_all, a->number - (uint32_t)(seen >> 32))
               : of_all;
}

/* Own chunks that some living member has not received. The last member that
 * held the window is looked at first, and alone while it still does: a look at
 * all of them takes long where a flag is far. */
static uint32_t on_their_way(struct async *a, uint64_t members)
{
    if (!QN_MPB_MUTANT(ASYNC_WINDOW_STALE)) {
        qn_mpb_invalidate(a->chip);
    }
    uint32_t most = lacks(a, a->behind, members);
    for (qn_node_t v = 0; v < a->chip->nodes && most < QN_OC_WINDOW; v++) {
        uint32_t of_this = lacks(a, v, members);
        if (of_this > most) {
            most = of_this;
            a->behind = v;
        }
    }
    return most;
}

/* Room for one more own chunk? */
static bool window_open(struct async *a, uint64_t members)
{
    if (a->number - a->floor >= QN_OC_WINDOW &&
        !QN_MPB_MUTANT(ASYNC_NO_WINDOW)) {
        a->floor = a->number - on_their_way(a, members);
    }
    return QN_MPB_MUTANT(ASYNC_NO_WINDOW) ||
           a->number - a->floor < QN_OC_WINDOW;
}

/* The next chunk of the own message goes into the queue. */
static void push_own(struct async *a, uint64_t members)
{
    struct chunk *c = slot_at(a, a->queued);
    uint32_t len = QN_MIN(a->payload_max, a->staged - a->pushed);
    a->number++;
    c->head.word[HEAD_LENGTH] =
        (uint64_t)a->staged << 32 | (a->piece + 1) << 16 | a->pieces;
    c->head.word[HEAD_CHUNK] =
        (uint64_t)a->number << 32 |
        qn_mpb_low(a->chip->incarnation[a->chip->self]) << 16 | a->chip->self;
    c->head.word[HEAD_MEMBERS] = members;
    memcpy(c->payload, a->stage + a->pushed, len);
    queue_pushed(a);
    a->pushed += len;
    a->piece++;
}

static void pump(struct async *a)
{
    flush_queue(a);
    if (a->piece == a->pieces) {
        return;
    }
    uint64_t members = living(a);
    while (a->piece < a->pieces && a->queued < a->slots &&
           window_open(a, members)) {
        push_own(a, members);
    }
    flush_queue(a);
}

static int try_send(struct qn_device_bcast *b, const struct qn_slice *parts,
                    uint32_t count)
{
    struct async *a = of(b);
    size_t len = 0;
    for (uint32_t i = 0; i < count; i++) {
        len += parts[i].len;
    }
    if (len > a->msg_max) {
        return QN_EMSGSIZE;
    }
    pump(a);
    if (a->piece < a->pieces) {
        return QN_EAGAIN;
    }
    size_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (parts[i].len > 0) {
            memcpy(a->stage + at, parts[i].data, parts[i].len);
            at += parts[i].len;
        }
    }
    a->staged = (uint32_t)len;
    a->pushed = 0;
    a->piece = 0;
    a->pieces = len == 0 ? 1 : ((uint32_t)len - 1) / a->payload_max + 1;
    pump(a);
    return QN_OK;
}

/* ---- what comes ---- */

static void tell_source(struct async *a, qn_node_t source)
{
    struct source *s = &a->source[source];
    uint32_t place = a->chip->self;
    s->told = s->number;
    store(a, source, a->received + place / QN_MPB_LINE_WORDS,
          place % QN_MPB_LINE_WORDS, s->number);
}

/* A chunk that came whole. */
static void receive(struct async *a, const struct head *h,
                    const uint8_t *payload)
{
    qn_node_t source = source_of(h);
    struct source *s = &a->source[source];
    uint32_t number = number_of(h);
    if (a->chip->incarnation[source] == 0 ||
        ((uint32_t)h->word[HEAD_CHUNK] >> 16) !=
            qn_mpb_low(a->chip->incarnation[source])) {
        return; /* dead, or this node was not told of it yet */
    }
    if (s->incarnation != a->chip->incarnation[source]) {
        s->incarnation = a->chip->incarnation[source];
        s->number = s->told = number - 1;
        s->next = 0;
    }
    if ((int32_t)(number - s->number) <= 0) {
        return; /* it came twice, by two trees */
    }
    bool gap = number != s->number + 1;
    s->number = number;
    if (place_of(h) == 1) {
        s->next = 1;
        s->got = 0;
    } else if (gap || s->next != place_of(h)) {
        s->next = 0; /* a part is missing: none of it */
    }
    if (s->next != 0) {
        uint32_t len = payload_of(a, h);
        memcpy(s->body + s->got, payload, len);
        s->got += len;
        s->next++;
        if (place_of(h) == places_of(h)) {
            s->next = 0;
            a->deliver(a->ctx, source, s->body, bytes_of(h));
        }
    }
    if (number - s->told >= QN_OC_WINDOW / 2) {
        tell_source(a, source);
    }
}

/* The head of what `parent` has in its buffer for this node. */
static bool look_at_head(struct async *a, qn_node_t parent, struct head *h,
                         uint32_t *place)
{
    if (!QN_MPB_MUTANT(ASYNC_HEAD_STALE)) {
        qn_mpb_invalidate(a->chip);
    }
    qn_mpb_get(a->chip, h, parent, a->head, sizeof *h);
    uint64_t incarnation = a->chip->incarnation[parent];
    uint32_t use = (uint32_t)(h->word[HEAD_USE] >> 32);
    if (use == 0 ||
        (a->seen_of[parent] == incarnation && a->seen[parent] == use)) {
        return false;
    }
    if ((uint32_t)h->word[HEAD_USE] != qn_mpb_low(incarnation)) {
        a->early |= UINT64_C(1) << parent;
        a->early_of[parent] = incarnation;
        return false;
    }
    if (!tree_good(a, h)) {
        return false;
    }
    const struct qn_oc_tree t = tree_of(a, h);
    return qn_oc_parent(&t, a->chip->self, place) == parent;
}

/* Still the same, behind the get? If not, its interrupt is yet to come. */
static bool head_stands(struct async *a, qn_node_t parent, const struct head *h)
{
    struct head now;
    if (QN_MPB_MUTANT(ASYNC_NO_SECOND_LOOK)) {
        return true;
    }
    qn_mpb_invalidate(a->chip);
    qn_mpb_get(a->chip, &now, parent, a->head, sizeof now);
    return memcmp(&now, h, sizeof now) == 0;
}

static void tell_parent(struct async *a, qn_node_t parent, uint32_t place,
                        const struct head *h)
{
    a->seen[parent] = (uint32_t)(h->word[HEAD_USE] >> 32);
    a->seen_of[parent] = a->chip->incarnation[parent];
    store(a, parent, a->done + place, 0, a->seen[parent]);
}

/* Through the own buffer: children are interrupted before the copy is made. */
static void pass_on(struct async *a, qn_node_t parent, uint32_t place,
                    const struct head *h)
{
    uint32_t len = payload_of(a, h);
    begin_use(a);
    qn_mpb_move(a->chip, a->buffer, parent, a->buffer,
                len == 0 ? 1 : (len - 1) / QN_MPB_LINE_BYTES + 1);
    if (!head_stands(a, parent, h)) {
        return;
    }
    tell_parent(a, parent, place, h);
    announce(a, h);
    if (QN_MPB_MUTANT(ASYNC_LOST_COPY)) {
        return;
    }
    qn_mpb_get(a->chip, a->scratch, a->chip->self, a->buffer, len);
    receive(a, h, a->scratch);
}

/* To memory; it waits for the buffer if there are children. */
static void put_aside(struct async *a, qn_node_t parent, uint32_t place,
                      const struct head *h, bool forward)
{
    struct chunk *c = slot_at(a, a->queued);
    bool room = forward && a->queued < a->slots;
    uint8_t *to = room ? c->payload : a->scratch;
    qn_mpb_get(a->chip, to, parent, a->buffer, payload_of(a, h));
    if (!head_stands(a, parent, h)) {
        return;
    }
    tell_parent(a, parent, place, h);
    if (room) {
        c->head = *h;
        queue_pushed(a);
    }
    receive(a, h, to);
}

static void handle(struct async *a, qn_node_t parent)
{
    struct head h;
    uint32_t place;
    if (!look_at_head(a, parent, &h, &place)) {
        return;
    }
    if (!lengths_good(a, &h)) {
        tell_parent(a, parent, place, &h); /* damaged: for this node only */
        return;
    }
    const struct qn_oc_tree t = tree_of(a, &h);
    bool forward = qn_oc_child_count(&t, a->chip->self) > 0;
    if (forward && a->queued == 0 && buffer_free(a)) {
        pass_on(a, parent, place, &h);
    } else {
        put_aside(a, parent, place, &h, forward);
    }
}

static void take_interrupts(struct async *a)
{
    if (!QN_MPB_MUTANT(ASYNC_MASKED) || buffer_free(a)) {
        a->arrived |= a->chip->access->take(a->chip);
    }
    for (uint64_t left = a->early; left != 0; left &= left - 1) {
        qn_node_t parent = (qn_node_t)__builtin_ctzll(left);
        if (a->early_of[parent] != a->chip->incarnation[parent]) {
            a->early &= ~(UINT64_C(1) << parent);
            a->arrived |= UINT64_C(1) << parent;
        }
    }
}

static uint32_t poll(struct qn_device_bcast *b, uint32_t budget,
                     qn_device_bcast_deliver_fn *deliver, void *ctx)
{
    struct async *a = of(b);
    a->deliver = deliver;
    a->ctx = ctx;
    uint32_t n = 0;
    pump(a);
    take_interrupts(a);
    while (n < budget && a->arrived != 0) {
        qn_node_t parent = (qn_node_t)__builtin_ctzll(a->arrived);
        a->arrived &= a->arrived - 1;
        if (parent < a->chip->nodes && parent != a->chip->self) {
            handle(a, parent);
        }
        n++;
    }
    pump(a);
    return n;
}

static bool pending(struct qn_device_bcast *b)
{
    struct async *a = of(b);
    take_interrupts(a);
    return a->arrived != 0 || (a->queued > 0 && buffer_free(a)) ||
           (a->piece < a->pieces && window_open(a, living(a)));
}

static bool flush(struct qn_device_bcast *b)
{
    struct async *a = of(b);
    pump(a);
    a->chip->access->settle(a->chip);
    return a->queued > 0 || a->piece < a->pieces;
}

/* ---- create ---- */

static void destroy(struct qn_device_bcast *b)
{
    struct async *a = of(b);
    free(a->slot);
    free(a->memory);
    free(a);
}

static const struct qn_device_bcast_ops ops = {
    .try_send = try_send,
    .poll = poll,
    .pending = pending,
    .flush = flush,
    .destroy = destroy,
};

static bool take_lines(struct async *a, const struct qn_oc_async_opts *o)
{
    uint32_t first = o->first;
    uint32_t lines = o->lines;
    uint32_t words =
        (a->chip->nodes + QN_MPB_LINE_WORDS - 1) / QN_MPB_LINE_WORDS;
    struct qn_mpb_layout l;
    if (lines == 0 && qn_mpb_layout(&l, a->chip->nodes, a->chip->lanes)) {
        first = l.broadcast;
        lines = QN_MPB_LINES - first;
    }
    a->done = first;
    a->received = a->done + a->k;
    a->head = a->received + words;
    a->buffer = a->head + 1;
    if (first + lines > QN_MPB_LINES || a->buffer >= first + lines) {
        return false;
    }
    a->payload_max = QN_MIN(first + lines - a->buffer, QN_OC_PAYLOAD_MAX) *
                     QN_MPB_LINE_BYTES;
    return true;
}

static bool allocate(struct async *a)
{
    uint32_t nodes = a->chip->nodes;
    /* Twice the window: what a death forgives may still be on its way. */
    a->slots = 2 * QN_OC_WINDOW * nodes;
    a->slot_bytes = (uint32_t)sizeof(struct chunk) + a->payload_max;
    a->slot = calloc(a->slots, a->slot_bytes);
    a->memory = calloc(1, (size_t)(nodes + 1) * a->msg_max + a->payload_max);
    if (a->slot == NULL || a->memory == NULL) {
        return false;
    }
    a->stage = a->memory;
    for (qn_node_t v = 0; v < nodes; v++) {
        a->source[v].body = a->memory + (size_t)(v + 1) * a->msg_max;
    }
    a->scratch = a->memory + (size_t)(nodes + 1) * a->msg_max;
    return true;
}

int qn_oc_async_create(struct qn_device_bcast **out,
                       const struct qn_oc_async_opts *o)
{
    uint32_t msg_max = o->msg_max != 0 ? o->msg_max : QN_MSG_MAX;
    if (o->device == NULL || o->device->type != &qn_mpb_device ||
        msg_max > QN_MSG_MAX || o->k < 1) {
        return QN_EINVAL;
    }
    struct async *a = calloc(1, sizeof *a);
    if (a == NULL) {
        return QN_ENOMEM;
    }
    a->bcast.ops = &ops;
    a->chip = qn_mpb_of(o->device);
    a->k = o->k;
    a->msg_max = msg_max;
    memcpy(a->known, a->chip->incarnation, sizeof a->known);
    int rc = o->k >= a->chip->nodes || !take_lines(a, o) ? QN_EINVAL
             : allocate(a)                               ? QN_OK
                                                         : QN_ENOMEM;
    if (rc != QN_OK) {
        destroy(&a->bcast);
        return rc;
    }
    begin_use(a); /* what a predecessor had announced counts no more */
    qn_mpb_drain(a->chip);
    *out = &a->bcast;
    return QN_OK;
}

bool qn_oc_async_told(struct qn_device_bcast *b)
{
    return buffer_free(of(b));
}

struct qn_oc_queued qn_oc_async_queued(const struct qn_device_bcast *b)
{
    const struct async *a = (const struct async *)(const void *)b;
    return (struct qn_oc_queued){
        .now = a->queued, .most = a->most, .limit = a->slots};
}
