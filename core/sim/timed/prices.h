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
#include "core/machine/bulk.h"
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
    qn_ps_t end;   /* the node continues */
    bool stale; /* a load before a store is visible: it sees what the line held
                   before it */
    bool goes_on;    /* a store: it is one transfer with the node's last one to
                        this line, at which no other node has looked since */
    qn_ps_t visible; /* of a store: other nodes see it; not before the issue */
    enum qn_transfer transfer;
    uint32_t peer; /* READ: the node it came from; WRITE: the one farthest away;
                      else, or if there is none, QN_SIM_NO_NODE */
};

/** One access to one line, or to a part of it. */
struct qn_line_access {
    uint32_t node;
    enum qn_sim_kind kind; /* LOAD, STORE, RMW, COPY_*, TOUCH_* */
    qn_ps_t issued;
    bool streamed;     /* not the first line of a copy */
    bool past_cache;   /* a store past the caches */
    bool may_be_stale; /* a load of which this line is all */
    bool polled;       /* other nodes look at the line again and again */
    bool polls;        /* the node itself does */
};

/** Operations of devices beside coherent memory. */
#define QN_DEVICE_MAP(X)                                                       \
    X(PUT, "put")                   /* the call, from the message buffer */    \
    X(PUT_MEMORY, "put memory")     /* the call, from private memory */        \
    X(GET, "get")                   /* the call, to the message buffer */      \
    X(GET_MEMORY, "get memory")     /* the call, to private memory */          \
    X(READ, "read")                 /* a line of the peer's message buffer */  \
    X(WRITE, "write")               /* likewise */                             \
    X(READ_MEMORY, "read memory")   /* a line of the own private memory */     \
    X(WRITE_MEMORY, "write memory") /* likewise */                             \
    X(SEND, "send")                 /* words to the peer's queue */            \
    X(RECEIVE, "receive")           /* words that are there */                 \
    X(INTERRUPT, "interrupt")       /* one store, to any of 32 cores */        \
    X(INTERRUPT_REGISTER, "interrupt register") /* read or clear the cause */

enum qn_device_kind {
#define X(name, text) QN_DEVICE_##name,
    QN_DEVICE_MAP(X)
#undef X
        QN_DEVICE_KINDS
};

struct qn_device_access {
    enum qn_device_kind kind;
    uint32_t node;  /* which does it */
    uint32_t peer;  /* READ, WRITE, SEND: whose buffer or queue */
    uint32_t words; /* SEND, RECEIVE */
    qn_ps_t issued;
};

struct qn_prices {
    uint32_t nodes;
    bool weak;              /* own stores become visible late: release
                               operations and fences wait for them */
    bool combines;          /* a node's consecutive stores to one line are one
                               transfer */
    bool polls;             /* a node that pauses looks at intervals: it sees a
                               change at its next look */
    qn_ps_t fence;          /* of a full fence, and of a seq_cst store */
    qn_ps_t hit;            /* of a look at a line that is there */
    qn_ps_t queue_look;     /* of a look at a queue of words that is hardware;
                               0: there are none, they are emulated in memory */
    qn_ps_t clock;          /* of reading the clock */
    qn_ps_t park;           /* of the system call that sleeps */
    qn_ps_t ring;           /* of the system call that wakes */
    qn_ps_t wake;           /* from that until the sleeper continues */
    qn_ps_t mark[QN_MARKS]; /* of library calls */
    size_t line_bytes;      /* of the state per line */
    /** A run begins: the state of all devices is as if new. NULL: none. */
    void (*begin)(struct qn_prices *p);
    /** `base`: its address / QN_CACHELINE, which differs between runs. */
    void (*line_init)(struct qn_prices *p, void *line, uintptr_t base);
    struct qn_price (*access)(struct qn_prices *p, void *line,
                              const struct qn_line_access *a);
    /** Until then the line is in use: later accesses wait. */
    qn_ps_t (*busy)(const void *line);
    /** Whether an access has to wait for a line that is in use. It is priced
     *  when its turn has come: those that wait are served in the order in which
     *  they came, but for `overtakes`. NULL: each is priced when it is issued,
     *  so in that order. */
    bool (*awaits)(const struct qn_prices *p, const void *line,
                   const struct qn_line_access *a);
    /** Whether the node's access is served before those of others. */
    bool (*overtakes)(const struct qn_prices *p, const void *line,
                      uint32_t node);
    /** The transfer goes on until `end`: a store of the same node to the same
     *  line follows at once, or it takes longer than its price. */
    void (*extend)(struct qn_prices *p, void *line, qn_ps_t end);
    /** The node computes for `ps`: when its core has issued that. NULL: at
     *  now + ps, it has the core for itself. */
    qn_ps_t (*issue)(struct qn_prices *p, uint32_t node, qn_ps_t now,
                     qn_ps_t ps);
    /** When a fence ends that begins at `now`. NULL: `fence` later. */
    qn_ps_t (*fence_end)(struct qn_prices *p, uint32_t node, qn_ps_t now);
    /** When all stores of a node are visible that it has issued by `now`: a
     *  system call waits for them. NULL: at once, or `weak`. */
    qn_ps_t (*drained)(struct qn_prices *p, uint32_t node, qn_ps_t now);
    /** How long an operation of a device is on its way to what it shares with
     *  others. It is priced in the order of arrival there. NULL: no time. */
    qn_ps_t (*device_way)(struct qn_prices *p,
                          const struct qn_device_access *a);
    /** One operation of a device, issued when it has arrived. Its data are seen
     *  at `visible`. NULL: there are none. */
    struct qn_price (*device)(struct qn_prices *p,
                              const struct qn_device_access *a);
    /** A piece of a bulk copy that begins at `now`: when it ends. NULL: copies
     *  are priced by lines. */
    qn_ps_t (*bulk)(struct qn_prices *p, const struct qn_bulk_request *c,
                    qn_ps_t now);
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
