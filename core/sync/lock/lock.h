#ifndef QN_SYNC_LOCK_H
#define QN_SYNC_LOCK_H

/**
 * Locks, by name, in memory of the caller.
 *
 *     const struct qn_lock_type *type = qn_lock_find("mcs");
 *     const struct qn_lock_opts opts = {.clients = 16};
 *     memory = aligned_alloc(QN_CACHELINE, qn_lock_bytes(type, &opts));
 *     memset(memory, 0, ...);
 *     qn_lock_format(type, memory, &opts);         once, alone
 *     qn_lock_join(type, memory, NULL, &me);       each thread
 *     qn_lock_acquire(&me);                        any number of times
 *     qn_lock_release(&me);
 *     qn_lock_leave(&me);
 *
 * | name | order | deadline | a waiter looks at        | when more wait      |
 * |------|-------|----------|--------------------------|---------------------|
 * | tas  | none  | yes      | the lock, by CAS         | all want its line   |
 * | ttas | none  | yes      | the lock, by loads       | they back off       |
 * | mcs  | FIFO  | no       | its own node             | each its own line   |
 * | clh  | FIFO  | no       | its predecessor's node   | each its own line   |
 * | hyblock | FIFO | no     | its queue of words       | each its own queue  |
 *
 * A FIFO lock is handed over to the waiter that is next, asleep or not; where
 * threads share cores each hand-over may cost a wake-up and a switch. The other
 * two are taken by whichever thread runs, so they are fast there, and one
 * thread may wait long.
 *
 * A client is one (thread, lock). acquire, release, try and acquire_until
 * belong to its thread; join and leave are any thread's. What is shared is
 * shared by indices, so processes may map the memory at different addresses. A
 * thread that ends while it holds the lock or waits in a queue holds up all
 * others for ever. Not recursive. Not in signal handlers; a forked child joins
 * anew. A lock may be held while another one is acquired, in an order without
 * cycles.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/clock.h"
#include "core/wait/baton.h"

struct qn_lock_memory;
struct qn_lock_node;
struct qn_lock_type;
struct qn_sync_port;

struct qn_lock_opts {
    uint32_t clients; /* that have joined at once, at most: 1 ..
                         QN_SYNC_CLIENTS_MAX */
    bool own_cores;   /* tas, ttas, mcs, clh: each client has a core of its own,
                         as long as it is one. Waiters look on and do not sleep,
                         so that a hand-over is one store */
};

/** What the calls of one client have cost. */
struct qn_lock_stats {
    uint64_t acquired;
    uint64_t cas;        /* compare-and-swaps of the lock's word ... */
    uint64_t cas_failed; /* ... and those of them that failed */
    struct qn_wait_stats waits;
};

/** A client. Private to its thread; fields are private but for `stats`, which
 *  its thread reads. */
struct qn_lock_client {
    const struct qn_lock_type *type;
    struct qn_lock_memory *memory; /* shared, kept */
    struct qn_lock_node *nodes;    /* shared, kept */
    struct qn_sync_port *port;     /* kept; of locks over words */
    bool own_cores;                /* as the options said */
    uint32_t place;
    uint32_t node;   /* that this client owns */
    uint32_t before; /* clh: the predecessor's, while it holds the lock */
    uint32_t next;   /* hyblock: the successor + 1, or 0 */
    uint32_t object; /* hyblock: its number at the device */
    struct qn_lock_stats stats;
};

/** A kind of lock. Call it by the functions below. */
struct qn_lock_type {
    const char *name;
    bool fifo;      /* granted in the order of arrival */
    bool timed;     /* acquire_until works */
    bool words;     /* a client needs a port */
    uint32_t spare; /* nodes, beside one of each client */
    /** What is not zero at first; or NULL. */
    void (*format)(struct qn_lock_memory *m, struct qn_lock_node *nodes,
                   uint32_t clients);
    int (*join)(struct qn_lock_client *c);   /* behind the place; or NULL */
    void (*leave)(struct qn_lock_client *c); /* before it; or NULL */
    void (*acquire)(struct qn_lock_client *c);
    void (*release)(struct qn_lock_client *c);
    bool (*try_acquire)(struct qn_lock_client *c);
    int (*acquire_until)(struct qn_lock_client *c, qn_time_t deadline);
};

/** All of them; NULL at the end. */
extern const struct qn_lock_type *const qn_lock_types[];

/** @return the type of that name; NULL: there is none. */
const struct qn_lock_type *qn_lock_find(const char *name);

/** @return bytes of a lock, a multiple of QN_CACHELINE; 0: opts are out of
 *  range. */
size_t qn_lock_bytes(const struct qn_lock_type *type,
                     const struct qn_lock_opts *opts);

/** Make a lock of the memory: qn_lock_bytes, zeroed, QN_CACHELINE aligned.
 *  Runs alone. @return QN_OK; QN_EINVAL: opts are out of range. */
int qn_lock_format(const struct qn_lock_type *type, void *memory,
                   const struct qn_lock_opts *opts);

/**
 * Become a client.
 *
 * @param type    The one that the memory was formatted with.
 * @param memory  Shared, kept until qn_lock_leave.
 * @param port    Kept; NULL but for locks over words.
 * @param c       Filled.
 * @return QN_OK; QN_EAGAIN: there are as many clients as fit; QN_EINVAL: no
 *         lock of that type, one of another version of the library, or one over
 *         words without a port; QN_EDQUOT: what may be sent to that port would
 *         not fit (core/sync/port.h).
 */
int qn_lock_join(const struct qn_lock_type *type, void *memory,
                 struct qn_sync_port *port, struct qn_lock_client *c);

/** Give back place and node. Only while the client does not hold the lock. */
void qn_lock_leave(struct qn_lock_client *c);

/** Blocking. acquire -> the release of the holder before. */
static inline void qn_lock_acquire(struct qn_lock_client *c)
{
    c->type->acquire(c);
    c->stats.acquired++;
}

/** Only by the holder. release. Of a queue lock it may wait until a successor
 *  that has just arrived has made itself known. */
static inline void qn_lock_release(struct qn_lock_client *c)
{
    c->type->release(c);
}

/** Acquire it if it is free and none waits for it. Never waits.
 *  @return whether this client holds it now. */
static inline bool qn_lock_try_acquire(struct qn_lock_client *c)
{
    const bool held = c->type->try_acquire(c);
    c->stats.acquired += held;
    return held;
}

/** Acquire it before the deadline (ns, monotonic); one that has passed is as a
 *  try with a short wait.
 *  @return QN_OK; QN_ETIMEDOUT; QN_ENOSYS: the type is not timed, as a place in
 *  a queue cannot be given back cheaply. Blocking. */
static inline int qn_lock_acquire_until(struct qn_lock_client *c,
                                        qn_time_t deadline)
{
    const int err = c->type->acquire_until(c, deadline);
    c->stats.acquired += err == 0;
    return err;
}

#endif
