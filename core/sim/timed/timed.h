#ifndef QN_SIM_TIMED_TIMED_H
#define QN_SIM_TIMED_TIMED_H

/**
 * The timed machine: 1 to QN_SIM_NODES_MAX nodes in virtual time, priced.
 *
 * Each node has a core and a clock of its own. An access is issued at the
 * node's clock, starts when its line is free, lasts its price, and the node
 * continues at its end. Accesses happen in one global order, that of issue, so
 * memory is sequentially consistent. A node that pauses sleeps until one of the
 * lines at which it has looked changes; a node that parks, until it is rung.
 *
 * The same machine, program, options and seed give the same run, bit by bit, on
 * every host; `hash` in the result proves it.
 *
 * One run at a time, one thread. README.md of this folder has the rules.
 */

#include "core/sim/timed/prices.h"

#define QN_TIMED_LINES_BYTES ((size_t)1 << 30) /* some millions of lines */

enum qn_sim_fault_kind {
    QN_SIM_FAULT_KILL, /* in front of access number `access`, or at `from_ns` */
    QN_SIM_FAULT_STOP, /* no access starts from `from_ns` to `until_ns` */
    QN_SIM_FAULT_SLOW, /* work and library calls take `factor` times as long */
    QN_SIM_FAULT_LINES /* transfers of the node take `factor` times as long */
};

/** One of each kind per node; a later one takes its place. */
struct qn_sim_fault {
    enum qn_sim_fault_kind kind;
    uint32_t node;
    uint64_t access; /* KILL: from 1; 0: by time */
    uint64_t from_ns;
    uint64_t until_ns; /* 0: for ever */
    double factor;     /* at least 1 */
};

/** What happened, for timelines. */
enum qn_timed_event_kind {
    QN_TIMED_ACCESS, /* to a line; `transfer`, `peer` */
    QN_TIMED_MARK,   /* a library call began; `mark` */
    QN_TIMED_WORK,
    QN_TIMED_PAUSED, /* it found nothing to do */
    QN_TIMED_PARKED,
    QN_TIMED_RANG, /* it woke `peer` */
    QN_TIMED_STOPPED,
    QN_TIMED_KILLED,
    QN_TIMED_ENDED,
    QN_TIMED_DEVICE,  /* an operation of a device; `device`, `peer` */
    QN_TIMED_BLOCKED, /* it waited for a device */
};

struct qn_timed_event {
    enum qn_timed_event_kind kind;
    uint32_t node;
    qn_ps_t from, until;
    uint32_t peer; /* or QN_SIM_NO_NODE */
    enum qn_sim_kind access;
    enum qn_transfer transfer;
    enum qn_mark mark;
    uint32_t line; /* number of the line */
    enum qn_device_kind device;
};

struct qn_timed_opts {
    uint32_t nodes;
    struct qn_prices *prices; /* for as many nodes; kept for the run */
    void (*main)(void *ctx, uint32_t node);
    void *ctx;
    uint64_t seed;
    double jitter; /* each price is drawn from 1 to 1 + jitter times
                      itself; 0: exact */
    bool looks_on; /* nodes that wait look on, and neither yield nor park
                      (core/wait/backoff.h) */
    /** The node with whose memory an address lies, of bulk copies; NULL: with
     *  that of the node that copies. */
    uint32_t (*owner)(void *ctx, const void *at);
    bool unmoved;       /* bulk copies are priced, but move no byte */
    uint64_t until_ns;  /* the run is cut off then; 0: one hour */
    size_t lines_bytes; /* of the table of lines, at most: a run that touches
                           more ends with a fault; 0: QN_TIMED_LINES_BYTES */
    const struct qn_sim_fault *fault; /* [faults], borrowed */
    uint32_t faults;
    /** A node was killed or has ended; called outside of any node, so that what
     *  it stores is there at once and costs nothing. NULL: not wanted. */
    void (*ended)(void *ctx, uint32_t node, bool killed);
    /** Each event as it becomes known; times do not ascend between nodes. NULL:
     *  not wanted. */
    void (*event)(void *ctx, const struct qn_timed_event *e);
    void *event_ctx; /* NULL: `ctx` */
};

/** Where a node's time went. The times add up to `clock`. */
struct qn_timed_node {
    qn_ps_t clock; /* at its end */
    enum qn_sim_state state;
    uint64_t accesses;
    uint64_t reads, writes;   /* transfers */
    qn_ps_t hit, read, write; /* of accesses; without waiting */
    qn_ps_t waited;           /* for a line in use */
    qn_ps_t fenced;
    qn_ps_t library; /* marks, clock, system calls */
    qn_ps_t worked;
    qn_ps_t device;  /* of operations of devices, without waiting */
    qn_ps_t copied;  /* by bulk copies */
    qn_ps_t blocked; /* until a device had what it asked for */
    qn_ps_t paused, parked, stopped;
    bool spun; /* it looked 1000 times without a pause: treated as pausing */
};

struct qn_timed_result {
    struct qn_timed_node *node; /* [nodes], owned */
    uint32_t nodes;
    uint64_t hash; /* of (time, node, access, line, value) of all accesses,
                      the bytes of copies among the values */
    uint64_t accesses;
    uint64_t lines;    /* touched */
    qn_ps_t clock;     /* of the last node that ended */
    bool cut_off;      /* `until_ns` came */
    const char *fault; /* what a node said (qn_timed_fail), or that the run
                          has touched too many lines; NULL */
};

/** Run. @return QN_OK, also if nodes are asleep for ever or cut off: see
 *  out->node[i].state; QN_EINVAL (opts), QN_ENOMEM. */
int qn_timed_run(const struct qn_timed_opts *o, struct qn_timed_result *out);

void qn_timed_result_free(struct qn_timed_result *r);

/** For nodes: the clock of the running one, which this call does not move. */
qn_ps_t qn_timed_clock(void);

/** For nodes: do nothing until then; at once if that is past. */
void qn_timed_sleep_until(qn_ps_t time);

/** For nodes: report a fault (a constant string) and end the run. */
_Noreturn void qn_timed_fail(const char *what);

/** For nodes: end the run as it is. */
_Noreturn void qn_timed_stop(void);

/* For devices, called by the running node. Code of a device acts on its own
 * state at the instant of a turn: no other node runs before the next call. */

/** It is this node's turn: whatever other nodes did earlier has happened. */
void qn_timed_turn(void);

/** One operation of a device: the node takes its turn, pays the price that the
 *  price list names and continues at `end`. `node` and `issued` are filled in.
 *  @return with jitter and faults; `visible`: when its data are there. */
struct qn_price qn_timed_device(const struct qn_device_access *x);

/** Sleep until another node signals this one, at most until `until` (or
 *  QN_PS_NEVER). @return whether it was signalled. Check behind qn_timed_turn,
 *  then wait: no signal falls in between. */
bool qn_timed_wait(qn_ps_t until);

/** If `node` is in qn_timed_wait or pauses, it continues at `at`, or now if
 *  that is past, or earlier if it was told so before. */
void qn_timed_signal(uint32_t node, qn_ps_t at);

/** The running node has looked at a device, which will have something for it at
 *  `at`: if its next pause begins before, it ends then. */
void qn_timed_expect(qn_ps_t at);

/** The running node computes for so long: qn_work in picoseconds, for cycles
 *  that are no whole nanoseconds. */
void qn_timed_work(qn_ps_t ps);

/** During a run: the clock of any node, as far as it has come. */
qn_ps_t qn_timed_clock_of(uint32_t node);

#endif
