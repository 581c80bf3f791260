#ifndef QN_SYNC_OBJECT_COUNTER_H
#define QN_SYNC_OBJECT_COUNTER_H

/**
 * A counter of 63 bits that threads add to.
 *
 * Two forms. Without a delegate it is one word and a fetch_add: wait-free. With
 * one it is as the delegate is, blocking, and often faster where many threads
 * add: one of them adds for all. Both are linearizable: the values before the
 * additions are distinct, and follow the order in which the additions took
 * place. It is never full; it wraps at 2^63.
 *
 * Memory, opening, joining and threads as in collection.h.
 */

#include "core/sync/delegate/delegate.h"

struct qn_counter_opts {
    uint32_t clients; /* 1..QN_SYNC_CLIENTS_MAX; of any number without a
                         delegate */
    const struct qn_delegate_opts *delegate; /* borrowed; `clients` is that of
                                                the counter. NULL: fetch_add */
};

/** A process's handle; read-only. Private fields. */
struct qn_counter {
    qn_a64 *value; /* shared */
    bool delegates;
    struct qn_delegate d;
};

/** One thread at one counter. Private fields. */
struct qn_counter_client {
    const struct qn_counter *counter;
    struct qn_delegate_client d;
};

/** @return bytes of memory, a multiple of QN_CACHELINE; 0: an option is out of
 *  range. */
size_t qn_counter_bytes(const struct qn_counter_opts *o);

/** @param memory  qn_counter_bytes(o) bytes, aligned to QN_CACHELINE, zero:
 *                 shared. @return QN_OK, QN_EINVAL. Runs alone. */
int qn_counter_format(void *memory, const struct qn_counter_opts *o);

/** @param n  Filled; stays where it is while it has clients.
 *  @return QN_OK, QN_EINVAL: the memory holds no counter, or one of another
 *  version of the library. */
int qn_counter_open(struct qn_counter *n, void *memory);

/** Its delegate, which wants a server if its backend does
 *  (core/sync/delegate/server.h). @return NULL: it has none. */
const struct qn_delegate *qn_counter_delegate(const struct qn_counter *n);

/** @param o  NULL: domain 0, no port. @return as qn_delegate_join. */
int qn_counter_join(const struct qn_counter *n, struct qn_counter_client *c,
                    const struct qn_delegate_join_opts *o);
void qn_counter_leave(struct qn_counter_client *c);

/** @return what the client has done at its delegate, since it joined; all zero
 *  where there is none. Its own thread. */
struct qn_delegate_stats qn_counter_stats_of(const struct qn_counter_client *c);

/** Add. @param before  Filled with the value in front of it.
 *  @return QN_OK; of a delegate also QN_EDEADLK. */
int qn_counter_add(struct qn_counter_client *c, uint64_t add, uint64_t *before);

#endif
