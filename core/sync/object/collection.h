#ifndef QN_SYNC_OBJECT_COLLECTION_H
#define QN_SYNC_OBJECT_COLLECTION_H

/**
 * Queues and stacks: values that some threads put in and others take out.
 *
 * All have one interface, and are chosen by name:
 *
 *     name       order  progress   full
 *     lcrq       FIFO   lock-free  no ring is free (lcrq.h)
 *     lcrq32     FIFO   lock-free  the same; values of 32 bits
 *     lcrq_numa  FIFO   lock-free  the same; one domain at a time is served
 *     ms1        FIFO   blocking   `capacity` values: one delegate for all
 *     ms2        FIFO   blocking   `capacity` values: a delegate for each end
 *     list       LIFO   blocking   `capacity` values: one delegate for all
 *     treiber    LIFO   lock-free  no node is left but those that other clients
 *                                  keep: at least `capacity` values are in
 *
 * All are linearizable. "Over any lock" is over the delegate's backend `lock`
 * with that lock. Lock-free: some client makes progress, however long others
 * stall; a single one may starve. Blocking: a client that stalls inside a call
 * holds up others (core/sync/delegate/delegate.h says which).
 *
 * A collection lies in memory of the caller, all of it from the beginning, and
 * processes may map it at different addresses:
 *
 *     o = {.type = qn_collection_find("lcrq"), .clients = 16,
 *          .capacity = 10000};
 *     memory = aligned_alloc(QN_CACHELINE, qn_collection_bytes(&o));
 *     memset(memory, 0, ...);
 *     qn_collection_format(memory, &o);          once
 *     qn_collection_open(&q, memory);            each process
 *     qn_collection_join(&q, &c, NULL);          each thread
 *     qn_collection_put(&c, value);              any number of times
 *     qn_collection_take(&c, &value);
 *     qn_collection_leave(&c);
 *
 * A value is a number from 0 to the type's value_max; the one above it is
 * reserved for "nothing". What was written before a put is visible behind the
 * take of its value, but not over delegates whose results order nothing
 * (only_server_uses_data, only_operations_use_data).
 *
 *                   same client      other clients
 *     join, leave   same thread      free
 *     put, take     same thread      free
 *
 * format runs alone. No call in a signal handler, nor in a forked child with a
 * client of its parent. A client that ends without leaving costs its place and
 * the memory that it keeps; one that dies inside a call of a blocking type
 * holds up others for ever, of a lock-free one it may cost a value, too.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/sync/clients.h"
#include "core/sync/delegate/delegate.h"

#define QN_VALUE_MAX    (UINT64_MAX / 2 - 1) /* of 63 bits; one is reserved */
#define QN_CAPACITY_MAX (UINT32_C(1) << 26)
#define QN_RING_MAX     (UINT32_C(1) << 20) /* cells */

enum qn_collection_order { QN_FIFO, QN_LIFO };

struct qn_collection_type;

/** What a collection is. 0 and NULL: the default. */
struct qn_collection_opts {
    const struct qn_collection_type *type; /* of qn_collection_find */
    uint32_t clients;  /* at the same time, 1..QN_SYNC_CLIENTS_MAX */
    uint32_t capacity; /* values, 1..QN_CAPACITY_MAX */
    uint32_t ring;     /* lcrq*: cells of a ring, a power of two from 2 to
                          QN_RING_MAX; 1024 */
    uint32_t batch;    /* treiber: nodes that a client takes and gives back at
                          once; it keeps twice as many at most; 16 */
    uint64_t pause_ns; /* lcrq_numa: how long a client waits for its domain's
                          turn; 170 us */
    /** ms1, ms2, list: of its delegates; `clients` is that of the collection.
     *  Borrowed. NULL: cc_synch. ms2 refuses `only_server_uses_data` and
     *  `only_operations_use_data`. */
    const struct qn_delegate_opts *delegate;
};

struct qn_collection_join_opts {
    uint32_t domain;           /* lcrq_numa, and delegates that have them */
    struct qn_sync_port *port; /* of delegates that send messages of words */
};

/** A process's handle; read-only between open and its end. Private fields. */
struct qn_collection {
    const struct qn_collection_type *type;
    void *memory; /* behind the head; shared */
    struct qn_delegate end[2];
};

/** One thread at one collection. Private fields, written by it only. */
struct qn_collection_client {
    const struct qn_collection_type *type;
    const struct qn_collection *q;
    uint32_t place;
    union {
        struct qn_lcrq_client {
            struct qn_lcrq *q;
            struct lcrq_ring *ring;
            struct lcrq_cell *cell;
            qn_a32 *pin;     /* its own */
            uint64_t cells;  /* of a ring */
            uint32_t pinned; /* what *pin is */
            uint32_t from;   /* where it looks for a free ring */
            uint32_t domain; /* + 1 */
            bool empty;      /* its last take found nothing, or it is new */
            bool full;       /* its last put found no room, or it is new */
            struct qn_delegate_stats stats;
        } lcrq;
        struct qn_treiber_client {
            struct qn_treiber *s;
            struct treiber_node *node; /* [1..] */
            uint32_t kept, kept_count; /* free nodes, linked; 0: none */
            uint32_t full;             /* a full batch of them; 0: none */
            uint32_t batch_size;
            struct qn_delegate_stats stats;
        } treiber;
        struct qn_delegate_client end[2];
    } of;
};

struct qn_collection_type {
    const char *name;
    enum qn_collection_order order;
    bool lock_free;
    uint64_t value_max;
    uint32_t delegates; /* of which it is made: 0, 1 or 2 */
    /** Of the memory behind the head; 0: not with these options. Defaults are
     *  filled in. */
    size_t (*bytes)(const struct qn_collection_opts *o);
    int (*format)(void *memory, const struct qn_collection_opts *o);
    int (*open)(struct qn_collection *q); /* NULL: nothing to do */
    int (*join)(struct qn_collection_client *c,
                const struct qn_collection_join_opts *o);
    void (*leave)(struct qn_collection_client *c);
    int (*put)(struct qn_collection_client *c, uint64_t value);
    int (*take)(struct qn_collection_client *c, uint64_t *value);
    /** NULL: the sum of its delegates. */
    struct qn_delegate_stats (*stats)(const struct qn_collection_client *c);
};

/** All types, for tests and benchmarks: NULL behind the last. */
extern const struct qn_collection_type *const qn_collection_types[];

/** @return the type of that name, or NULL. */
const struct qn_collection_type *qn_collection_find(const char *name);

/** @return bytes of memory, a multiple of QN_CACHELINE; 0: an option is out of
 *  range, or not for this type. */
size_t qn_collection_bytes(const struct qn_collection_opts *o);

/**
 * Make a collection.
 *
 * @param memory  qn_collection_bytes(o) bytes, aligned to QN_CACHELINE, zero.
 *                Shared; in use until all clients have left.
 * @return QN_OK; QN_EINVAL as qn_collection_bytes.
 *
 * Runs alone. Nothing is allocated; there is nothing to undo.
 */
int qn_collection_format(void *memory, const struct qn_collection_opts *o);

/**
 * Make this process's handle.
 *
 * @param q  Filled; stays where it is while it has clients. Needs no close.
 * @return QN_OK; QN_EINVAL: the memory holds no collection, or one of another
 *         version of the library.
 */
int qn_collection_open(struct qn_collection *q, void *memory);

/**
 * Take a place.
 *
 * @param c  Filled; of one thread, until it has left.
 * @param o  NULL: domain 0, no port.
 * @return QN_OK; QN_EAGAIN: all places are taken; QN_EINVAL: no such domain, or
 *         a port is needed; QN_EDQUOT as qn_delegate_join.
 */
int qn_collection_join(const struct qn_collection *q,
                       struct qn_collection_client *c,
                       const struct qn_collection_join_opts *o);

/** Give the place back, with all memory that the client keeps. */
void qn_collection_leave(struct qn_collection_client *c);

/** The delegates that it is made of; of ms2 the first is that of enqueues. Each
 *  wants a server if their backend does (core/sync/delegate/server.h).
 *  @return NULL: it has no more than `i`. */
const struct qn_delegate *qn_collection_delegate_at(
    const struct qn_collection *q, uint32_t i);

/** @return what the client has done, since it joined: of a lock-free type its
 *  compare-and-swaps, else all that its delegates count. Its own thread. */
struct qn_delegate_stats qn_collection_stats_of(
    const struct qn_collection_client *c);

/** Put a value in: enqueue, or push. @return QN_OK; QN_EAGAIN: full; QN_EINVAL:
 *  above value_max; of a delegate also QN_EDEADLK. */
static inline int qn_collection_put(struct qn_collection_client *c,
                                    uint64_t value)
{
    return value <= c->type->value_max ? c->type->put(c, value) : QN_EINVAL;
}

/** Take the oldest value of a queue, the newest of a stack. @return QN_OK and
 *  *value; QN_EAGAIN: empty; of a delegate also QN_EDEADLK. */
static inline int qn_collection_take(struct qn_collection_client *c,
                                     uint64_t *value)
{
    return c->type->take(c, value);
}

#endif
