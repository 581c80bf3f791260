#ifndef QN_SIM_TIMED_PRICES_H
#define QN_SIM_TIMED_PRICES_H

/**
 * Price lists: what each access of a node costs on a described machine.
 *
 * Time is counted in integer picoseconds, so that sums do not depend on the
 * order of additions or on the host. Prices become picoseconds once, when a
 * machine is read; none is 0.
 *
 * A kind of machine (coherent caches; the SCC; TILE-Gx) is a table of
 * functions with a state per line. A machine of that kind is data. Everything
 * is indexed by node: each node has a core of its own.
 *
 * A price list is used by one run at a time.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/base/mark.h"
#include "core/sim/machine.h"

typedef uint64_t qn_ps_t; /* picoseconds of virtual time */

#define QN_PS_PER_NS UINT64_C(1000)
#define QN_PS_NEVER  UINT64_MAX

/** What an access to a line turned out to be: for reports and timelines. */
enum qn_transfer {
    QN_TRANSFER_HIT,   /* the node had it */
    QN_TRANSFER_READ,  /* it came from another node */
    QN_TRANSFER_WRITE, /* copies of others had to go */
    QN_TRANSFER_COLD,  /* no node had it */
};

struct qn_price {
    qn_ps_t start; /* from the turn of the line on; a load sees what is there */
    qn_ps_t end;   /* the node continues; a store is visible */
    bool stale; /* a load in front of the end of a store: it sees what the line
                   held before */
    enum qn_transfer transfer;
    uint32_t peer; /* READ: the node it came from; WRITE: the one farthest away;
                      else QN_SIM_NO_NODE */
};

/** One access to one line, or to a part of it. */
struct qn_line_access {
    uint32_t node;
    enum qn_sim_kind kind; /* LOAD, STORE, RMW, COPY_*, TOUCH_* */
    qn_ps_t issued;
    bool streamed;     /* not the first line of a copy */
    bool may_be_stale; /* a load of which this line is all */
};

struct qn_prices {
    uint32_t nodes;
    qn_ps_t fence;          /* of a full fence, and of a seq_cst store */
    qn_ps_t hit;            /* of a look at a line that is there */
    qn_ps_t clock;          /* of reading the clock */
    qn_ps_t park;           /* of the system call that sleeps */
    qn_ps_t ring;           /* of the system call that wakes */
    qn_ps_t wake;           /* from that until the sleeper continues */
    qn_ps_t mark[QN_MARKS]; /* of library calls */
    size_t line_bytes;      /* of the state per line */
    void (*line_init)(struct qn_prices *p, void *line);
    struct qn_price (*access)(struct qn_prices *p, void *line,
                              const struct qn_line_access *a);
    /** Until then the line is in use: later accesses wait. */
    qn_ps_t (*busy)(const void *line);
    /** A store of the same node to the same line follows at once: the transfer
     *  goes on until `end`. */
    void (*extend)(void *line, qn_ps_t end);
    void (*destroy)(struct qn_prices *p);
};

/** NULL is fine. */
static inline void qn_prices_destroy(struct qn_prices *p)
{
    if (p != NULL) {
        p->destroy(p);
    }
}

#endif
