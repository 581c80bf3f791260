/*
 * Own messages: the window, and what is sent again.
 *
 * Each member says in a word of this node's buffer up to which chunk it has
 * received all; the lowest of these positions is the floor. A source has at
 * most a window of chunks beyond the floor, and keeps them. It can send each of
 * them again to all members, along the tree of those it knows now; a member
 * takes a chunk only behind the one before, so nothing comes twice or out of
 * order, whatever comes by several trees.
 *
 * Why no window stays closed for ever. A chunk is lost on its way only where a
 * node's view of another changes: a node that passes on skips a child that it
 * does not know, and gives up one that has ended; what a dead node held is
 * gone; a node refuses chunks of a source that it was not told of. Each change
 * of a view is noticed: by the source itself if it is its own, else by a nudge,
 * an interrupt with a new count of changes in the head's last word. Both make
 * it send again what is beyond the floor. Views change a finite number of times
 * while the same nodes live. Behind the last nudge all of the members know each
 * other, so what is sent then reaches all, each tells its position, and the
 * floor rises. That the source knows its members is the device's promise: it is
 * told of each end and each beginning.
 *
 * A member that is taken up anew holds the floor of that time, and nothing is
 * forgiven to the others. The heads tell it where to begin, for they carry the
 * floor, and that does not pass the new member's position before it has told
 * one. What it has told is taken only if it is between what was known and the
 * last number; so a word of long ago does no harm.
 */
#include <string.h>

#include "core/base/bits.h"
#include "transports/mpb/mutant.h"
#include "transports/mpb/ocbcast/oc_async_internal.h"

/* Own chunks that a member has not received. */
static uint32_t lacks(struct qn_oc_async *a, qn_node_t v)
{
    struct qn_oc_outflow *o = &a->out;
    if (v == a->chip->self || a->known[v] == 0) {
        return 0;
    }
    uint64_t seen = qn_oc_word(a, a->received, v);
    uint32_t position = (uint32_t)(seen >> 32);
    bool good = position - o->position[v] <= o->number - o->position[v] ||
                QN_MPB_MUTANT(ASYNC_ANY_POSITION);
    if ((uint32_t)seen == qn_oc_tag(a, a->chip->self, v) && good) {
        o->position[v] = position;
    }
    return o->number - o->position[v];
}

/* Look at positions. The last member that held the window is looked at first,
 * and alone while it still does: a look at all of them takes long where a flag
 * is far. */
static void look_at_positions(struct qn_oc_async *a)
{
    struct qn_oc_outflow *o = &a->out;
    if (!QN_MPB_MUTANT(ASYNC_WINDOW_STALE)) {
        qn_mpb_invalidate(a->chip);
    }
    uint32_t most = lacks(a, o->behind);
    for (qn_node_t v = 0; v < a->chip->nodes && most < QN_OC_WINDOW; v++) {
        uint32_t of_this = lacks(a, v);
        if (of_this > most) {
            most = of_this;
            o->behind = v;
        }
    }
    o->floor = o->number - most;
}

bool qn_oc_window_open(struct qn_oc_async *a)
{
    struct qn_oc_outflow *o = &a->out;
    if (o->number - o->floor >= QN_OC_WINDOW &&
        !QN_MPB_MUTANT(ASYNC_NO_WINDOW)) {
        look_at_positions(a);
    }
    return QN_MPB_MUTANT(ASYNC_NO_WINDOW) ||
           o->number - o->floor < QN_OC_WINDOW;
}

static void send_again(struct qn_oc_async *a)
{
    struct qn_oc_outflow *o = &a->out;
    look_at_positions(a);
    for (uint32_t n = o->floor + 1; n != o->number + 1; n++) {
        qn_oc_enqueue(a, a->chip->self, n);
    }
    o->again = !QN_MPB_MUTANT(ASYNC_ONE_VERSION);
}

/* Tell all others that this node's view has changed. The use that the head
 * shows stays as it is. */
static void nudge(struct qn_oc_async *a)
{
    uint64_t cores = 0;
    a->changes++;
    qn_mpb_store(a->chip, a->chip->self, a->head, 3,
                 qn_oc_use_word(a->shown, a->changes,
                                qn_mpb_low(a->known[a->chip->self])));
    if (!QN_MPB_MUTANT(ASYNC_NUDGE_KEPT)) {
        qn_mpb_drain(a->chip);
    }
    for (qn_node_t v = 0; v < a->chip->nodes; v++) {
        cores |= (uint64_t)(v != a->chip->self && a->known[v] != 0) << v;
    }
    a->chip->access->interrupt(a->chip, cores);
}

void qn_oc_look_around(struct qn_oc_async *a)
{
    bool changed = a->seen_changes != a->chip->changes;
    if (changed) {
        bool anew[QN_MPB_CORES] = {false};
        a->seen_changes = a->chip->changes;
        for (qn_node_t v = 0; v < a->chip->nodes; v++) {
            anew[v] = a->known[v] != a->chip->incarnation[v];
            a->known[v] = anew[v] ? 0 : a->known[v];
        }
        look_at_positions(a);
        for (qn_node_t v = 0; v < a->chip->nodes; v++) {
            if (anew[v]) {
                a->known[v] = a->chip->incarnation[v];
                /* What was noted is of an incarnation before. */
                a->noted[v] =
                    QN_MPB_MUTANT(ASYNC_NOTED_STAYS) ? a->noted[v] : 0;
                a->out.position[v] = a->out.floor;
            }
        }
        nudge(a);
    }
    if (changed || (a->nudged && !QN_MPB_MUTANT(ASYNC_NO_NUDGE))) {
        a->nudged = false;
        send_again(a);
    }
}

/* The next chunk of the own message goes into the queue. */
static void push_chunk(struct qn_oc_async *a)
{
    struct qn_oc_outflow *o = &a->out;
    uint32_t len = QN_MIN(a->payload_max, o->staged - o->pushed);
    o->number++;
    o->piece++;
    struct qn_oc_chunk *c = qn_oc_slot(a, a->chip->self, o->number);
    qn_oc_head_write(&c->head, &(struct qn_oc_about){.bytes = o->staged,
                                                     .place = o->piece,
                                                     .places = o->pieces,
                                                     .number = o->number});
    memcpy(c->payload, o->stage + o->pushed, len);
    qn_oc_enqueue(a, a->chip->self, o->number);
    o->pushed += len;
}

void qn_oc_push(struct qn_oc_async *a)
{
    while (a->out.piece < a->out.pieces && qn_oc_window_open(a)) {
        push_chunk(a);
    }
}

bool qn_oc_refresh_head(struct qn_oc_async *a, struct qn_oc_head *h)
{
    struct qn_oc_outflow *o = &a->out;
    struct qn_oc_about about;
    qn_oc_head_read(h, &about);
    if ((int32_t)(about.number - o->floor) <= 0) {
        return false;
    }
    o->version = (uint16_t)(o->version + o->again);
    o->again = false;
    about.floor = o->floor;
    about.version = o->version;
    about.source = a->chip->self;
    about.incarnation = (uint16_t)qn_mpb_low(a->known[a->chip->self]);
    about.members = 0;
    for (qn_node_t v = 0; v < a->chip->nodes; v++) {
        about.members |= (uint64_t)(a->known[v] != 0) << v;
    }
    qn_oc_head_write(h, &about);
    return true;
}
