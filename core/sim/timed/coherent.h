#ifndef QN_SIM_TIMED_COHERENT_H
#define QN_SIM_TIMED_COHERENT_H

/**
 * Coherent machines: prices from a machine file (core/machine).
 *
 * A line knows its last writer, the holders of copies, and until when it is in
 * use. A load without a copy costs r(j, i), j the last writer; a store that
 * takes copies away costs s(i, v), v the dearest of their holders; everything
 * else is a hit. The table is at the top of coherent.c.
 */

#include "core/machine/machine.h"
#include "core/sim/timed/prices.h"

/** Lines that streaming stores of one core may have on their way to memory, at
 *  most: the line fill buffers of Intel's cores since Nehalem (its optimization
 * manual).
 */
#define QN_COHERENT_STREAMS 10u

/** Optional terms and the software's own prices. 0 means the default. */
struct qn_coherent_opts {
    double clock_ghz; /* 0: of the machine file, or 2 */
    double queued;    /* factor of a read whose change is older than the
                         reader's turn to it, above 0 to 1; 0: 1 */
    double serve;     /* share of r after which the next reader of the same
                         line is served; 0: 1/8 */
    double stream;    /* share of the price for each further line of a copy;
                         0: 1/8 */
    double link;      /* share of the price for which a transfer between two
                         sockets occupies the link between them, which
                         carries one at a time, 0 to 1; 0: links are wide */
    uint32_t store_buffer; /* entries, up to QN_STORE_BUFFER_MAX: a node
                              continues when its store has entered; 0: it is
                              blocked until the transfer has ended */
    bool poll;             /* a loop with a pause looks at intervals of its own
                              length; else it sees a change at once */
    double prefetch;       /* share of a transfer that a stride prefetcher hides
                              while it lasts, 0 to 1; 0: there is none */
    uint32_t prefetch_ahead; /* lines that a stream asks for; 0: 1 */
    double shared_store; /* a store to a line that two or more caches have costs
                            this share of s + r; 0: s of the dearest, and r
                            before it if the node has no copy */
    double shared_store_cycles; /* of that, the least */
    bool hyper_threads;   /* nodes on one physical core share its cache, and
                             its issue: one accesses or computes at a time */
    double hit_cycles;    /* 0: the lesser of 4 and half of the cheapest s */
    double rmw_cycles;    /* least price of a read-modify-write; 0: 20 */
    double fence_cycles;  /* 0: 20 */
    double clock_cycles;  /* of reading the clock; 0: 20 */
    double memory_cycles; /* of reading what was stored past the caches; 0:
                             the dearest r */
    uint32_t streams;     /* lines on their way there; 0: all of them */
    double watched;       /* factor of the time of a streaming store to a line
                             at which others look again and again, from 1;
                             0: 1 */
    double wake_ns;       /* 0: 2000 */
    double syscall_ns;    /* of parking and ringing; 0: 200 */
    double mark_cycles[QN_MARKS]; /* of library calls; 0: nothing */
    bool bulk; /* bulk copies are priced by bandwidths; else by lines */
    bool bare; /* hit, read-modify-write, fence and clock cost 1 ps each: only
                  transfers count */
};

/**
 * @param out   Filled; destroyed by qn_prices_destroy.
 * @param m     With costs; borrowed.
 * @param core  [nodes] index of the core of each node, distinct. Borrowed.
 * @return QN_OK; QN_EINVAL (no costs, an index, an option), QN_ENOMEM.
 */
int qn_coherent_create(struct qn_prices **out, const struct qn_machine *m,
                       const uint32_t *core, uint32_t nodes,
                       const struct qn_coherent_opts *o);

#endif
