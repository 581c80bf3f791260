/*
 * A turn: is the buffer free again, what has come, what may go out next. The
 * own buffer and what waits for it are in oc_relay.c, own messages in
 * oc_source.c.
 *
 * Interrupts of one parent merge, which loses nothing: a parent has one chunk
 * out until all children have told, and its head says whether its view has
 * changed. The bits are taken before anything is looked at, so what comes
 * meanwhile interrupts again. What was taken and did not fit the budget stays
 * in `arrived`.
 *
 * All that a node sends or passes on waits for the buffer, but for the chunk
 * that finds it free and nothing else waiting: that one is moved from buffer to
 * buffer, children are interrupted, and only then is it copied to memory.
 *
 * A member takes the chunks of a source one behind the other. It begins at the
 * floor that the first head says, and goes on to the floor of a later head, if
 * that is further: it was taken up anew then, and what lies between was sent to
 * another incarnation. Anything else that does not follow is dropped, since the
 * source sends it again (oc_source.c). What is of a source that this node was
 * not told of is dropped, too, and not passed on.
 *
 * An interrupt may come of an incarnation that this node was not told of yet.
 * It waits in `early` until it was: its sender waits for this node.
 *
 * A child that dies is no child any more: its incarnation differs from the one
 * that was noted when the chunk was put.
 */
#include "transports/mpb/ocbcast/oc_async.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/err.h"
#include "core/qp.h"
#include "transports/mpb/layout.h"
#include "transports/mpb/mutant.h"
#include "transports/mpb/ocbcast/oc_async_internal.h"

static struct qn_oc_async *of(struct qn_device_bcast *b)
{
    return (struct qn_oc_async *)(void *)b; /* its first member */
}

uint32_t qn_oc_tag(const struct qn_oc_async *a, qn_node_t at, qn_node_t writer)
{
    return qn_mpb_low(a->known[at]) << 16 | qn_mpb_low(a->known[writer]);
}

uint32_t qn_oc_payload(const struct qn_oc_async *a,
                       const struct qn_oc_about *about)
{
    uint32_t at = (about->place - 1) * a->payload_max;
    return about->place < about->places ? a->payload_max : about->bytes - at;
}

struct qn_oc_tree qn_oc_tree_of(const struct qn_oc_async *a,
                                const struct qn_oc_about *about)
{
    uint64_t all = UINT64_MAX >> (64 - a->chip->nodes);
    return (struct qn_oc_tree){
        .members = about->members & all, .root = about->source, .k = a->k};
}

/* This node's word among those in another's buffer that begin at `line`. */
static void store(struct qn_oc_async *a, qn_node_t at, uint32_t line,
                  uint32_t number)
{
    qn_node_t self = a->chip->self;
    qn_mpb_store(a->chip, at, line + self / QN_MPB_LINE_WORDS,
                 self % QN_MPB_LINE_WORDS,
                 (uint64_t)number << 32 | qn_oc_tag(a, at, self));
    if (!QN_MPB_MUTANT(ASYNC_KEPT)) {
        qn_mpb_drain(a->chip);
    }
    qn_mpb_ring(a->chip, at);
}

/* ---- own messages ---- */

static void pump(struct qn_oc_async *a)
{
    qn_oc_look_around(a);
    qn_oc_flush_queue(a);
    qn_oc_push(a);
    qn_oc_flush_queue(a);
}

static int try_send(struct qn_device_bcast *b, const struct qn_slice *parts,
                    uint32_t count)
{
    struct qn_oc_async *a = of(b);
    struct qn_oc_outflow *o = &a->out;
    size_t len = 0;
    for (uint32_t i = 0; i < count; i++) {
        len += parts[i].len;
    }
    if (len > a->msg_max) {
        return QN_EMSGSIZE;
    }
    pump(a);
    if (o->piece < o->pieces) {
        return QN_EAGAIN;
    }
    size_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (parts[i].len > 0) {
            memcpy(o->stage + at, parts[i].data, parts[i].len);
            at += parts[i].len;
        }
    }
    o->staged = (uint32_t)len;
    o->pushed = 0;
    o->piece = 0;
    o->pieces = len == 0 ? 1 : ((uint32_t)len - 1) / a->payload_max + 1;
    pump(a);
    return QN_OK;
}

/* ---- what comes ---- */

static bool lengths_good(const struct qn_oc_async *a,
                         const struct qn_oc_about *h)
{
    uint32_t places = h->bytes == 0 ? 1 : (h->bytes - 1) / a->payload_max + 1;
    return h->bytes <= a->msg_max && h->places == places && h->place >= 1 &&
           h->place <= places && h->number - h->floor >= 1;
}

/* The source and this node are members. */
static bool tree_good(const struct qn_oc_async *a, const struct qn_oc_about *h)
{
    return h->source < a->chip->nodes && h->source != a->chip->self &&
           (h->members >> h->source & 1) != 0 &&
           (h->members >> a->chip->self & 1) != 0;
}

static void tell_source(struct qn_oc_async *a, qn_node_t source)
{
    struct qn_oc_inflow *s = &a->in[source];
    s->told = s->number;
    store(a, source, a->received, s->number);
}

/* @return whether the chunk is the next one of its source. */
static bool follows(struct qn_oc_async *a, const struct qn_oc_about *h)
{
    struct qn_oc_inflow *s = &a->in[h->source];
    if (s->incarnation != a->known[h->source] ||
        (int32_t)(h->floor - s->number) > 0) {
        s->incarnation = a->known[h->source];
        s->number = s->told = h->floor;
        s->next = QN_MPB_MUTANT(ASYNC_JUMP_OPEN) ? s->next : 0;
    }
    return h->number == s->number + 1;
}

/* A chunk that came whole. */
static void receive(struct qn_oc_async *a, const struct qn_oc_about *h,
                    const uint8_t *payload)
{
    struct qn_oc_inflow *s = &a->in[h->source];
    if (!follows(a, h)) {
        return;
    }
    s->number = h->number;
    if (h->place == 1) {
        s->next = 1;
        s->got = 0;
    } else if (s->next != h->place) {
        s->next = 0; /* it was sent to another incarnation from the begin on */
    }
    if (s->next != 0) {
        uint32_t len = qn_oc_payload(a, h);
        memcpy(s->body + s->got, payload, len);
        s->got += len;
        s->next++;
        if (h->place == h->places) {
            s->next = 0;
            a->deliver(a->ctx, h->source, s->body, h->bytes);
        }
    }
    if (s->number - s->told >= QN_OC_WINDOW / 2) {
        tell_source(a, h->source);
    }
}

/* Whose view has changed: also what is no chunk for this node. */
static void note_changes(struct qn_oc_async *a, qn_node_t node,
                         const struct qn_oc_head *h)
{
    a->nudged |= a->noted[node] != qn_oc_changes_of(h);
    a->noted[node] = qn_oc_changes_of(h);
}

/* The head of what `parent` has in its buffer for this node. */
static bool look_at_head(struct qn_oc_async *a, qn_node_t parent,
                         struct qn_oc_head *h, struct qn_oc_about *about)
{
    if (!QN_MPB_MUTANT(ASYNC_HEAD_STALE)) {
        qn_mpb_invalidate(a->chip);
    }
    qn_mpb_get(a->chip, h, parent, a->head, sizeof *h);
    if (a->known[parent] == 0 ||
        (h->word[3] & 0xffffu) != qn_mpb_low(a->known[parent])) {
        a->early |= UINT64_C(1) << parent;
        a->early_of[parent] = a->known[parent];
        return false;
    }
    note_changes(a, parent, h);
    uint32_t use = qn_oc_use_of(h);
    if (use == 0 ||
        (a->seen_of[parent] == a->known[parent] && a->seen[parent] == use)) {
        return false;
    }
    qn_oc_head_read(h, about);
    if (!tree_good(a, about)) {
        return false;
    }
    const struct qn_oc_tree t = qn_oc_tree_of(a, about);
    uint32_t place;
    return qn_oc_parent(&t, a->chip->self, &place) == parent;
}

/* Still the same, behind the get? If not, its interrupt is yet to come. */
static bool head_stands(struct qn_oc_async *a, qn_node_t parent,
                        const struct qn_oc_head *h)
{
    struct qn_oc_head now;
    if (QN_MPB_MUTANT(ASYNC_NO_SECOND_LOOK)) {
        return true;
    }
    if (!QN_MPB_MUTANT(ASYNC_SECOND_STALE)) {
        qn_mpb_invalidate(a->chip);
    }
    qn_mpb_get(a->chip, &now, parent, a->head, sizeof now);
    return qn_oc_head_same(&now, h);
}

/* Behind the second look: nothing is said and nothing is claimed for a head
 * that may be torn. */
static void tell_parent(struct qn_oc_async *a, qn_node_t parent,
                        const struct qn_oc_head *h)
{
    a->seen[parent] = qn_oc_use_of(h);
    a->seen_of[parent] = a->known[parent];
    store(a, parent, a->done, a->seen[parent]);
}

/* Through the own buffer: children are interrupted before the copy is made. A
 * straggler that goes no further leaves the buffer free. */
static void pass_on(struct qn_oc_async *a, qn_node_t parent,
                    const struct qn_oc_head *h, const struct qn_oc_about *about)
{
    uint32_t len = qn_oc_payload(a, about);
    qn_oc_begin_use(a);
    qn_mpb_move(a->chip, a->buffer, parent, a->buffer,
                len == 0 ? 1 : (len - 1) / QN_MPB_LINE_BYTES + 1);
    if (!QN_MPB_MUTANT(ASYNC_PASS_UNSEEN) && !head_stands(a, parent, h)) {
        return;
    }
    tell_parent(a, parent, h);
    if (qn_oc_claim(a, about) != NULL) {
        qn_oc_announce(a, h, about);
    }
    if (QN_MPB_MUTANT(ASYNC_LOST_COPY)) {
        return;
    }
    qn_mpb_get(a->chip, a->scratch, a->chip->self, a->buffer, len);
    receive(a, about, a->scratch);
}

/* To memory; it waits there for the buffer if it is to be passed on. A leaf
 * claims, too: it may pass on in a later version. */
static void put_aside(struct qn_oc_async *a, qn_node_t parent,
                      const struct qn_oc_head *h,
                      const struct qn_oc_about *about, bool leaf)
{
    uint32_t len = qn_oc_payload(a, about);
    qn_mpb_get(a->chip, a->scratch, parent, a->buffer, len);
    if (!head_stands(a, parent, h)) {
        return;
    }
    tell_parent(a, parent, h);
    struct qn_oc_chunk *c =
        leaf && QN_MPB_MUTANT(ASYNC_LEAF) ? NULL : qn_oc_claim(a, about);
    if (c != NULL && !leaf) {
        c->head = *h;
        memcpy(c->payload, a->scratch, len);
        qn_oc_enqueue(a, about->source, about->number);
    }
    receive(a, about, a->scratch);
}

static void handle(struct qn_oc_async *a, qn_node_t parent)
{
    struct qn_oc_head h;
    struct qn_oc_about about;
    if (!look_at_head(a, parent, &h, &about)) {
        return;
    }
    if (!lengths_good(a, &about) || a->known[about.source] == 0 ||
        about.incarnation != qn_mpb_low(a->known[about.source])) {
        /* Damaged; or of one that is dead, or this node was not told of. */
        if (QN_MPB_MUTANT(ASYNC_HASTY) || head_stands(a, parent, &h)) {
            tell_parent(a, parent, &h);
        }
        return;
    }
    const struct qn_oc_tree t = qn_oc_tree_of(a, &about);
    if (QN_MPB_MUTANT(ASYNC_HASTY_CLAIM)) {
        (void)qn_oc_claim(a, &about);
    }
    bool leaf = qn_oc_child_count(&t, a->chip->self) == 0;
    if (!leaf && a->queued == 0 && qn_oc_buffer_free(a)) {
        pass_on(a, parent, &h, &about);
    } else {
        put_aside(a, parent, &h, &about, leaf);
    }
}

static void take_interrupts(struct qn_oc_async *a)
{
    if (!QN_MPB_MUTANT(ASYNC_MASKED) || qn_oc_buffer_free(a)) {
        a->arrived |= a->chip->access->take(a->chip);
    }
    for (uint64_t left = a->early; left != 0; left &= left - 1) {
        qn_node_t parent = (qn_node_t)__builtin_ctzll(left);
        if (a->early_of[parent] != a->known[parent]) {
            a->early &= ~(UINT64_C(1) << parent);
            a->arrived |= UINT64_C(1) << parent;
        }
    }
}

static uint32_t poll(struct qn_device_bcast *b, uint32_t budget,
                     qn_device_bcast_deliver_fn *deliver, void *ctx)
{
    struct qn_oc_async *a = of(b);
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
    struct qn_oc_async *a = of(b);
    take_interrupts(a);
    return a->arrived != 0 || a->nudged ||
           a->seen_changes != a->chip->changes ||
           (a->queued > 0 && qn_oc_buffer_free(a)) ||
           (a->out.piece < a->out.pieces && qn_oc_window_open(a));
}

static bool flush(struct qn_device_bcast *b)
{
    struct qn_oc_async *a = of(b);
    pump(a);
    a->chip->access->settle(a->chip);
    return a->queued > 0 || a->out.piece < a->out.pieces;
}

/* ---- create ---- */

static void destroy(struct qn_device_bcast *b)
{
    struct qn_oc_async *a = of(b);
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

static bool take_lines(struct qn_oc_async *a, const struct qn_oc_async_opts *o)
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
    a->received = a->done + words;
    a->head = a->received + words;
    a->buffer = a->head + 1;
    if (first + lines > QN_MPB_LINES || a->buffer >= first + lines) {
        return false;
    }
    a->payload_max = QN_MIN(first + lines - a->buffer, QN_OC_PAYLOAD_MAX) *
                     QN_MPB_LINE_BYTES;
    return true;
}

static bool allocate(struct qn_oc_async *a)
{
    uint32_t nodes = a->chip->nodes;
    a->slot_bytes = (uint32_t)sizeof(struct qn_oc_chunk) + a->payload_max;
    a->slot = calloc((size_t)nodes * QN_OC_WINDOW, a->slot_bytes);
    a->memory = calloc(1, (size_t)(nodes + 1) * a->msg_max + a->payload_max);
    if (a->slot == NULL || a->memory == NULL) {
        return false;
    }
    a->out.stage = a->memory;
    for (qn_node_t v = 0; v < nodes; v++) {
        a->in[v].body = a->memory + (size_t)(v + 1) * a->msg_max;
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
    struct qn_oc_async *a = calloc(1, sizeof *a);
    if (a == NULL) {
        return QN_ENOMEM;
    }
    a->bcast.ops = &ops;
    a->chip = qn_mpb_of(o->device);
    a->k = o->k;
    a->msg_max = msg_max;
    memcpy(a->known, a->chip->incarnation, sizeof a->known);
    a->seen_changes = a->chip->changes;
    a->use = o->start;
    a->out.number = a->out.floor = o->start;
    for (qn_node_t v = 0; v < QN_MPB_CORES; v++) {
        a->out.position[v] = o->start;
    }
    int rc = o->k >= a->chip->nodes || !take_lines(a, o) ? QN_EINVAL
             : allocate(a)                               ? QN_OK
                                                         : QN_ENOMEM;
    if (rc != QN_OK) {
        destroy(&a->bcast);
        return rc;
    }
    *out = &a->bcast;
    return QN_OK;
}

bool qn_oc_async_told(struct qn_device_bcast *b)
{
    return qn_oc_buffer_free(of(b));
}

struct qn_oc_queued qn_oc_async_queued(const struct qn_device_bcast *b)
{
    const struct qn_oc_async *a = (const struct qn_oc_async *)(const void *)b;
    return (struct qn_oc_queued){.now = a->queued,
                                 .most = a->most,
                                 .limit = a->chip->nodes * QN_OC_WINDOW};
}
