/*
 * Michael and Scott's queue in memory that is fixed at creation.
 *
 *     free --> ... --> head --> node --> ... --> tail
 *             nodes that were   values           next: none
 *             taken             from here on
 *
 * The head is a node without a value, as in print. What a dequeue leaves behind
 * stays linked to the head, so the free nodes are the front of the same list:
 * an enqueue takes the first of them, as long as it is not the head. So nodes
 * go from dequeues back to enqueues without a list of their own, in order, and
 * the two ends share two words only: a node's `next`, and `head`.
 */
#include "core/sync/object/ms_queue.h"

#include "core/base/atomic.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/sync/object/collection_internal.h"
#include "core/sync/object/mutant.h"

enum { ENQUEUE, DEQUEUE };

struct ms_node {
    qn_a64 value;
    qn_a32 next; /* number; 0: none */
};

/* Shared. The first line is written by format only. */
struct ms_queue {
    alignas(QN_CACHELINE) uint64_t delegate_bytes; /* of each */
    uint32_t nodes, ends;
    alignas(QN_CACHELINE) qn_a32 head; /* number; dequeues */
    alignas(QN_CACHELINE) qn_a32 tail; /* number; enqueues */
    qn_a32 free;                       /* number; enqueues */
};

static struct ms_node *nodes_of(struct ms_queue *q)
{
    return (struct ms_node *)(q + 1) - 1; /* from 1 */
}

static size_t nodes_bytes(uint32_t nodes)
{
    return qn_align_up(nodes * sizeof(struct ms_node), QN_CACHELINE);
}

static void *delegates_of(struct ms_queue *q)
{
    return (char *)(q + 1) + nodes_bytes(q->nodes);
}

static size_t bytes(const struct qn_collection_opts *o, uint32_t ends)
{
    struct qn_delegate_opts d = qn_collection_delegate(o);
    size_t each = qn_delegate_bytes(&d);
    return each == 0 ? 0
                     : sizeof(struct ms_queue) + nodes_bytes(o->capacity + 1) +
                           ends * each;
}

static int format(void *memory, const struct qn_collection_opts *o,
                  uint32_t ends)
{
    struct qn_delegate_opts d = qn_collection_delegate(o);
    struct ms_queue *q = memory;
    q->delegate_bytes = qn_delegate_bytes(&d);
    q->nodes = o->capacity + 1;
    q->ends = ends;
    struct ms_node *node = nodes_of(q);
    /* relaxed: no other thread has the queue yet. Node 1 is the head; all
     * others are free, and linked to it. */
    for (uint32_t i = 2; i <= q->nodes; i++) {
        qn_store(&node[i].next, i < q->nodes ? i + 1 : 1, QN_RELAXED);
    }
    qn_store(&q->head, 1, QN_RELAXED);
    qn_store(&q->tail, 1, QN_RELAXED);
    qn_store(&q->free, 2, QN_RELAXED);
    return qn_collection_delegates_format(delegates_of(q), ends, o);
}

/* With one delegate that orders all: relaxed. With two nothing else orders the
 * two ends, and an enqueue that is over must be seen: seq_cst -> the load in
 * dequeue: the value. */
static void link_node(const struct ms_queue *q, qn_a32 *next, uint32_t number)
{
    if (q->ends == 1) {
        qn_store(next, number, QN_RELAXED);
    } else {
        qn_store(next, number, QN_SEQ_CST);
    }
}

/* With two delegates release -> the acquire in enqueue: the old head may be
 * used again. */
static void move_head(struct ms_queue *q, uint32_t first)
{
    if (q->ends == 1) {
        qn_store(&q->head, first, QN_RELAXED);
    } else {
        qn_store(&q->head, first, QN_RELEASE);
    }
}

static uint64_t enqueue(struct ms_queue *q, uint64_t value)
{
    struct ms_node *node = nodes_of(q);
    /* relaxed: the delegate orders enqueues. */
    uint32_t number = qn_load(&q->free, QN_RELAXED);
    /* acquire -> the release in move_head: it has done with the node. */
    if (number == qn_load(&q->head, QN_ACQUIRE) &&
        !QN_OBJECT_MUTANT(MS_REUSED)) {
        return QN_NOTHING;
    }
    uint32_t tail = qn_load(&q->tail, QN_RELAXED);
    qn_store(&q->free, qn_load(&node[number].next, QN_RELAXED), QN_RELAXED);
    qn_store(&node[number].next, 0, QN_RELAXED);
    if (!QN_OBJECT_MUTANT(MS_EARLY)) {
        qn_store(&node[number].value, value, QN_RELAXED);
    }
    link_node(q, &node[tail].next, number);
    if (QN_OBJECT_MUTANT(MS_EARLY)) {
        qn_store(&node[number].value, value, QN_RELAXED);
    }
    qn_store(&q->tail, number, QN_RELAXED);
    return 0;
}

static uint64_t dequeue(struct ms_queue *q)
{
    struct ms_node *node = nodes_of(q);
    /* relaxed: the delegate orders dequeues. */
    uint32_t head = qn_load(&q->head, QN_RELAXED);
    /* seq_cst -> link_node. */
    uint32_t first = qn_load(&node[head].next, QN_SEQ_CST);
    if (first == 0) {
        return QN_NOTHING;
    }
    uint64_t value = qn_load(&node[first].value, QN_RELAXED);
    move_head(q, first);
    return value;
}

static uint64_t run(void *ctx, uint32_t op, uint64_t arg)
{
    return op == ENQUEUE ? enqueue(ctx, arg) : dequeue(ctx);
}

static int ms_open(struct qn_collection *c)
{
    struct ms_queue *q = c->memory;
    return qn_collection_delegates_open(c, delegates_of(q), q->delegate_bytes,
                                        q->ends, run, q);
}

static int ms_join(struct qn_collection_client *c,
                   const struct qn_collection_join_opts *o)
{
    return qn_collection_delegates_join(c, c->type->delegates, o);
}

static void ms_leave(struct qn_collection_client *c)
{
    qn_collection_delegates_leave(c, c->type->delegates);
}

static int ms_put(struct qn_collection_client *c, uint64_t value)
{
    uint64_t result;
    if (QN_OBJECT_MUTANT(MS_ALONE)) {
        return enqueue(c->q->memory, value) == 0 ? QN_OK : QN_EAGAIN;
    }
    return qn_collection_call(c, 0, ENQUEUE, value, &result);
}

static int take_at(struct qn_collection_client *c, uint32_t end,
                   uint64_t *value)
{
    uint64_t result;
    int err = qn_collection_call(c, end, DEQUEUE, 0, &result);
    if (err == QN_OK) {
        *value = result;
    }
    return err;
}

static int take_1(struct qn_collection_client *c, uint64_t *value)
{
    return take_at(c, 0, value);
}

static int take_2(struct qn_collection_client *c, uint64_t *value)
{
    return take_at(c, 1, value);
}

static size_t bytes_1(const struct qn_collection_opts *o)
{
    return bytes(o, 1);
}

/* Two executors work on the nodes. */
static size_t bytes_2(const struct qn_collection_opts *o)
{
    const struct qn_delegate_opts d = qn_collection_delegate(o);
    return d.server.only_server_uses_data || d.only_operations_use_data
               ? 0
               : bytes(o, 2);
}

static int format_1(void *memory, const struct qn_collection_opts *o)
{
    return format(memory, o, 1);
}

static int format_2(void *memory, const struct qn_collection_opts *o)
{
    return format(memory, o, 2);
}

#define MS_TYPE(ends)                                                          \
    {                                                                          \
        .name = "ms" #ends, .order = QN_FIFO, .value_max = QN_VALUE_MAX,       \
        .delegates = ends, .bytes = bytes_##ends, .format = format_##ends,     \
        .open = ms_open, .join = ms_join, .leave = ms_leave, .put = ms_put,    \
        .take = take_##ends,                                                   \
    }

const struct qn_collection_type qn_ms_queue_1 = MS_TYPE(1);
const struct qn_collection_type qn_ms_queue_2 = MS_TYPE(2);
