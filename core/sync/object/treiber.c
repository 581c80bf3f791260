/*
 * Treiber's stack, twice: of values, and of batches of free nodes.
 *
 *     top  -> node -> node -> ...          by `next`
 *     free -> node -> node -> ...          by `batch`; from each of these
 *                                          batch_size nodes by `next`
 *
 * Nodes have numbers from 1; 0 is none. A client keeps a batch that it takes
 * nodes from and gives them to, and at most one full batch beside it, so that
 * pushes and pops in turn at the edge of a batch move none. A client that
 * leaves gives back the full one, and leaves the other with its place.
 */
#include "core/sync/object/treiber.h"

#include "core/base/atomic.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/sync/object/mutant.h"

#define TREIBER_BATCH      16u
#define TREIBER_BATCH_MAX  4096u
/* After an attempt that has failed: at first, and at most. */
#define TREIBER_PAUSES     4u
#define TREIBER_PAUSES_MAX 64u

struct treiber_node {
    qn_a64 value;
    qn_a32 next;
    qn_a32 batch; /* the first of a free batch: the first of the next one */
};

/* Shared. The first line is written by format only. */
struct qn_treiber {
    alignas(QN_CACHELINE) uint32_t clients;
    uint32_t batch_size, nodes;
    alignas(QN_CACHELINE) struct qn_pair top;  /* tag, node */
    alignas(QN_CACHELINE) struct qn_pair free; /* tag, node */
};

static struct treiber_node *nodes_of(struct qn_treiber *s)
{
    return (struct treiber_node *)(s + 1) - 1; /* from 1 */
}

static struct qn_sync_place *places_of(struct qn_treiber *s)
{
    return (struct qn_sync_place *)(nodes_of(s) + 1 + s->nodes);
}

static uint32_t batch_wanted(const struct qn_collection_opts *o)
{
    return o->batch != 0 ? o->batch : TREIBER_BATCH;
}

static uint32_t nodes_wanted(const struct qn_collection_opts *o)
{
    uint32_t batch = batch_wanted(o);
    return ((o->capacity + batch - 1) / batch + 2 * o->clients) * batch;
}

static size_t treiber_bytes(const struct qn_collection_opts *o)
{
    if (batch_wanted(o) > TREIBER_BATCH_MAX) {
        return 0;
    }
    return sizeof(struct qn_treiber) +
           nodes_wanted(o) * sizeof(struct treiber_node) +
           o->clients * sizeof(struct qn_sync_place);
}

/* The link of the values, or of the batches. */
static qn_a32 *link_of(struct treiber_node *node, uint64_t number, bool batches)
{
    return batches ? &node[number].batch : &node[number].next;
}

/* An attempt at {tag, node}; behind one that failed the client keeps away for
 * longer each time. */
static bool top_cas(struct qn_treiber_client *c, struct qn_pair *top,
                    const uint64_t from[2], uint64_t to, uint32_t *pauses)
{
    c->stats.cas++;
    if (qn_cas_pair(top, from[0], from[1],
                    from[0] + !QN_OBJECT_MUTANT(TREIBER_NO_TAG), to)) {
        return true;
    }
    c->stats.cas_failed++;
    for (uint32_t i = 0; i < *pauses; i++) {
        qn_pause();
    }
    *pauses = QN_MIN(2 * *pauses, TREIBER_PAUSES_MAX);
    return false;
}

static void stack_push(struct qn_treiber_client *c, struct qn_pair *top,
                       uint32_t number, bool batches)
{
    qn_a32 *link = link_of(c->node, number, batches);
    uint32_t pauses = TREIBER_PAUSES;
    for (;;) {
        /* relaxed: what was loaded of two moments fails below, since no tag
         * comes twice. */
        const uint64_t from[2] = {qn_load(&top->first, QN_RELAXED),
                                  qn_load(&top->second, QN_RELAXED)};
        /* relaxed: the compare-and-swap publishes it. */
        qn_store(link, (uint32_t)from[1], QN_RELAXED);
        if (top_cas(c, top, from, number, &pauses)) {
            return;
        }
    }
}

/* @return its number; 0: the stack is empty. */
static uint32_t stack_pop(struct qn_treiber_client *c, struct qn_pair *top,
                          bool batches)
{
    uint32_t pauses = TREIBER_PAUSES;
    for (;;) {
        /* acquire -> the compare-and-swap that pushed the node: its link and
         * its value. seq_cst: that the stack is empty is said of one order of
         * all operations. */
        const uint64_t tag = qn_load(&top->first, QN_ACQUIRE);
        const uint64_t from[2] = {tag, qn_load(&top->second, QN_SEQ_CST)};
        if (from[1] == 0) {
            return 0;
        }
        /* relaxed: of a node that has left it may be anything, and the tag has
         * changed. */
        uint32_t below =
            qn_load(link_of(c->node, from[1], batches), QN_RELAXED);
        if (top_cas(c, top, from, below, &pauses)) {
            return (uint32_t)from[1];
        }
    }
}

static int treiber_format(void *memory, const struct qn_collection_opts *o)
{
    struct qn_treiber *s = memory;
    s->clients = o->clients;
    s->batch_size = batch_wanted(o);
    s->nodes = nodes_wanted(o);
    struct treiber_node *node = nodes_of(s);
    struct qn_treiber_client c = {.node = node};
    struct qn_sync_place *place = places_of(s);
    qn_sync_places_format(place, s->clients);
    /* relaxed, as all of this: no other thread has the stack yet. */
    for (uint32_t i = 0; i < s->clients; i++) {
        qn_store(&place[i].node, 0, QN_RELAXED); /* it keeps none */
    }
    for (uint32_t i = s->nodes; i > 0; i--) {
        bool last = i % s->batch_size == 0;
        qn_store(&node[i].next, last ? 0 : i + 1, QN_RELAXED);
        if (i % s->batch_size == 1 || s->batch_size == 1) {
            stack_push(&c, &s->free, i, true);
        }
    }
    return QN_OK;
}

static int treiber_join(struct qn_collection_client *client,
                        const struct qn_collection_join_opts *o)
{
    struct qn_treiber_client *c = &client->of.treiber;
    struct qn_treiber *s = client->q->memory;
    uint32_t kept;
    int err = qn_sync_join(places_of(s), s->clients, &client->place, &kept);
    (void)o;
    if (err != QN_OK) {
        return err;
    }
    *c = (struct qn_treiber_client){
        .s = s, .node = nodes_of(s), .kept = kept, .batch_size = s->batch_size};
    /* relaxed: the place was taken with acquire. */
    for (uint32_t n = kept; n != 0; n = qn_load(&c->node[n].next, QN_RELAXED)) {
        c->kept_count++;
    }
    return QN_OK;
}

static void treiber_leave(struct qn_collection_client *client)
{
    struct qn_treiber_client *c = &client->of.treiber;
    if (c->full != 0) {
        stack_push(c, &c->s->free, c->full, true);
    }
    qn_sync_leave(places_of(c->s), client->place, c->kept);
}

/* @return a free node; 0: there is none. */
static uint32_t node_take(struct qn_treiber_client *c)
{
    if (c->kept == 0) {
        c->kept = c->full != 0 ? c->full : stack_pop(c, &c->s->free, true);
        c->full = 0;
        if (c->kept == 0) {
            return 0;
        }
        c->kept_count = c->batch_size;
    }
    uint32_t number = c->kept;
    /* relaxed: the node is this client's, as it came. */
    c->kept = qn_load(&c->node[number].next, QN_RELAXED);
    c->kept_count--;
    return number;
}

static void node_give(struct qn_treiber_client *c, uint32_t number)
{
    if (c->kept_count == c->batch_size) {
        if (c->full != 0) {
            stack_push(c, &c->s->free, c->full, true);
        }
        c->full = c->kept;
        c->kept = 0;
        c->kept_count = 0;
    }
    /* relaxed: see node_take; of a batch the push of its first publishes it. */
    qn_store(&c->node[number].next, c->kept, QN_RELAXED);
    c->kept = number;
    c->kept_count++;
}

static int treiber_put(struct qn_collection_client *client, uint64_t value)
{
    struct qn_treiber_client *c = &client->of.treiber;
    uint32_t number = node_take(c);
    if (number == 0) {
        return QN_EAGAIN;
    }
    /* relaxed: the push publishes it. */
    if (!QN_OBJECT_MUTANT(TREIBER_LATE)) {
        qn_store(&c->node[number].value, value, QN_RELAXED);
    }
    stack_push(c, &c->s->top, number, false);
    if (QN_OBJECT_MUTANT(TREIBER_LATE)) {
        qn_store(&c->node[number].value, value, QN_RELAXED);
    }
    return QN_OK;
}

static int treiber_take(struct qn_collection_client *client, uint64_t *value)
{
    struct qn_treiber_client *c = &client->of.treiber;
    uint32_t number = stack_pop(c, &c->s->top, false);
    if (number == 0) {
        return QN_EAGAIN;
    }
    /* relaxed: the pop has acquired it, and the node is this client's. */
    *value = qn_load(&c->node[number].value, QN_RELAXED);
    if (!QN_OBJECT_MUTANT(TREIBER_KEPT)) {
        node_give(c, number);
    }
    return QN_OK;
}

static struct qn_delegate_stats treiber_stats(
    const struct qn_collection_client *c)
{
    return c->of.treiber.stats;
}

const struct qn_collection_type qn_treiber = {
    .name = "treiber",
    .order = QN_LIFO,
    .lock_free = true,
    .value_max = QN_VALUE_MAX,
    .bytes = treiber_bytes,
    .format = treiber_format,
    .join = treiber_join,
    .leave = treiber_leave,
    .put = treiber_put,
    .take = treiber_take,
    .stats = treiber_stats,
};
