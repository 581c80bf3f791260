/*
 * The own buffer, and what waits for it.
 *
 * A chunk has its place by source and number modulo the window, so there is a
 * place for each chunk that may be on its way, and no more. What lies there
 * when a new one comes is either the same chunk, of an older version, or one
 * that all members have: a source sends number n only when all have n - window.
 * So the queue needs no bound of its own: nothing is refused, nothing that is
 * still needed is written over, whatever members do.
 *
 * Versions. When a source sends again, along another tree, the version in the
 * head is higher, and what is left of older ones goes no further than this
 * node: all that is needed of it comes again. Without them a straggler could
 * take the place of a chunk that is to go to children which the older tree did
 * not have.
 */
#include "transports/mpb/ocbcast/oc_async_internal.h"

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "transports/mpb/mutant.h"

bool qn_oc_buffer_free(struct qn_oc_async *a)
{
    for (; a->waits < a->children; a->waits++) {
        qn_node_t child = a->child[a->waits];
        if (a->known[child] != a->child_incarnation[a->waits]) {
            continue;
        }
        if (!QN_MPB_MUTANT(ASYNC_DONE_STALE)) {
            qn_mpb_invalidate(a->chip);
        }
        uint64_t seen = qn_oc_word(a, a->done, child);
        if (seen !=
            ((uint64_t)a->use << 32 | qn_oc_tag(a, a->chip->self, child))) {
            return false;
        }
    }
    a->children = a->waits = 0;
    return true;
}

void qn_oc_begin_use(struct qn_oc_async *a)
{
    a->shown = 0;
    if (QN_MPB_MUTANT(ASYNC_USE_STAYS)) {
        return;
    }
    qn_mpb_store(
        a->chip, a->chip->self, a->head, 3,
        qn_oc_use_word(0, a->changes, qn_mpb_low(a->known[a->chip->self])));
}

void qn_oc_announce(struct qn_oc_async *a, const struct qn_oc_head *h,
                    const struct qn_oc_about *about)
{
    const struct qn_oc_tree t = qn_oc_tree_of(a, about);
    struct qn_oc_head own = *h;
    uint64_t cores = 0;
    a->use++;
    if (a->use == 0 && !QN_MPB_MUTANT(ASYNC_USE_WRAPS)) {
        a->use = 1; /* 0: it changes */
    }
    a->shown = a->use;
    own.word[3] =
        qn_oc_use_word(a->use, a->changes, qn_mpb_low(a->known[a->chip->self]));
    /* A whole line, so it and all before it have left the write buffer. */
    qn_mpb_put(a->chip, a->chip->self, a->head, &own, sizeof own);
    uint32_t family = qn_oc_child_count(&t, a->chip->self);
    for (uint32_t i = 0; i < family; i++) {
        qn_node_t child = qn_oc_child(&t, a->chip->self, i);
        a->child[i] = child;
        a->child_incarnation[i] = a->known[child];
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

struct qn_oc_chunk *qn_oc_slot(struct qn_oc_async *a, qn_node_t source,
                               uint32_t number)
{
    size_t slot = (size_t)source * QN_OC_WINDOW + number % QN_OC_WINDOW;
    return (struct qn_oc_chunk *)(void *)(a->slot + slot * a->slot_bytes);
}

static void drop(struct qn_oc_async *a, struct qn_oc_lane *lane, uint32_t i)
{
    a->queued -= lane->waits[i];
    lane->waits[i] = false;
}

struct qn_oc_chunk *qn_oc_claim(struct qn_oc_async *a,
                                const struct qn_oc_about *about)
{
    struct qn_oc_lane *lane = &a->lane[about->source];
    bool first = lane->incarnation != a->known[about->source];
    int16_t newer = (int16_t)(uint16_t)(about->version - lane->version);
    if (!first && newer < 0) {
        return NULL;
    }
    bool renewed = first || newer > 0;
    if (!renewed &&
        (int32_t)(lane->newest - about->number) >= (int32_t)QN_OC_WINDOW) {
        return NULL;
    }
    if (renewed || (int32_t)(about->number - lane->newest) > 0) {
        lane->newest = about->number;
    }
    lane->incarnation = a->known[about->source];
    lane->version = about->version;
    for (uint32_t i = 0; i < QN_OC_WINDOW; i++) {
        if (renewed || lane->newest - lane->number[i] >= QN_OC_WINDOW) {
            drop(a, lane, i);
        }
    }
    drop(a, lane, about->number % QN_OC_WINDOW);
    return qn_oc_slot(a, about->source, about->number);
}

void qn_oc_enqueue(struct qn_oc_async *a, qn_node_t source, uint32_t number)
{
    struct qn_oc_lane *lane = &a->lane[source];
    uint32_t i = number % QN_OC_WINDOW;
    drop(a, lane, i);
    lane->waits[i] = true;
    lane->number[i] = number;
    a->queued++;
    a->most = QN_MAX(a->most, a->queued);
}

/* The place of the lowest number of a source that waits. @return QN_OC_WINDOW:
 * none does. */
static uint32_t lowest(const struct qn_oc_lane *lane)
{
    uint32_t at = QN_OC_WINDOW;
    for (uint32_t i = 0; i < QN_OC_WINDOW; i++) {
        if (lane->waits[i] &&
            (at == QN_OC_WINDOW ||
             (int32_t)(lane->number[i] - lane->number[at]) < 0)) {
            at = i;
        }
    }
    return at;
}

/* The next chunk that waits: of each source in order, sources in turn. */
static void next_waiting(struct qn_oc_async *a, qn_node_t *source,
                         uint32_t *number)
{
    uint32_t at = QN_OC_WINDOW;
    QN_ASSERT(a->queued > 0);
    do {
        *source = a->turn;
        a->turn = (a->turn + 1) % a->chip->nodes;
        at = lowest(&a->lane[*source]);
    } while (at == QN_OC_WINDOW);
    *number = a->lane[*source].number[at];
    drop(a, &a->lane[*source], at);
}

void qn_oc_flush_queue(struct qn_oc_async *a)
{
    while (a->queued > 0 && qn_oc_buffer_free(a)) {
        struct qn_oc_about about;
        qn_node_t source;
        uint32_t number;
        next_waiting(a, &source, &number);
        struct qn_oc_chunk *c = qn_oc_slot(a, source, number);
        if (source == a->chip->self && !qn_oc_refresh_head(a, &c->head)) {
            continue;
        }
        qn_oc_head_read(&c->head, &about);
        qn_oc_begin_use(a);
        qn_mpb_put(a->chip, a->chip->self, a->buffer, c->payload,
                   QN_MAX(qn_oc_payload(a, &about), 1u));
        qn_oc_announce(a, &c->head, &about);
    }
}
