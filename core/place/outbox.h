#ifndef QN_PLACE_OUTBOX_H
#define QN_PLACE_OUTBOX_H

/**
 * Outboxes: the memory that a node writes for others.
 *
 * An outbox is the memory that one incarnation of a node writes and all
 * others only read: its lanes to each peer, its doorbell line, its heartbeat,
 * its counters. So every shared line has one writer, a stale process cannot
 * write into its successor's channels, and a stray write damages no other
 * process.
 *
 *   outbox of node i (n nodes)
 *   +-----------------+ 0
 *   | header          |   magic, version, node, n, incarnation, layout
 *   | doorbell line       |
 *   | state lines     |   turn counter, applied, ... (qn_outbox_state)
 *   +-----------------+ one page
 *   | flight recorder |   the last events of this incarnation
 * (core/place/flight_recorder.h)
 *   +-----------------+
 *   | lane to 0 direct|   each lane_bytes, rounded up to pages
 *   | lane to 0 tree  |
 *   | ...             |   further lanes of the pair, if there are any
 *   | lane to 1 ...   |   none to i itself; to a vacant seat address space only
 *   +-----------------+
 *   | ring            |   ring_bytes of address space, allocated on demand
 *   +-----------------+
 *   | arena           |   arena_bytes, likewise
 *   +-----------------+
 *
 * Between processes it is a memfd: but for ring, arena and the lanes to vacant
 * seats it is allocated in full at creation (lack of memory is an error then,
 * never a SIGBUS later); of ring and arena so much as qn_outbox_grow has asked
 * for, lanes to a seat when it is taken (qn_outbox_seat). It is sealed with
 * F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_FUTURE_WRITE and F_SEAL_SEAL after the
 * owner has mapped it, so that a process that gets the descriptor can never map
 * it writable, write to it, or take pages out of it. Threads use private pages
 * of the same layout. Fresh memory is zero; only `voted` says that nothing is
 * known, until the owner's driver has read what the incarnations before it have
 * voted for.
 *
 * All processes map the whole of it at once, so that addresses stay; of ring
 * and arena, readers touch only what the owner has announced, and of the lanes
 * their own, once they are seated.
 *
 * Threads: create, map, alias and destroy from any one at a time per handle,
 * grow from the owner's; the rest only computes addresses. Nothing blocks.
 */

#include <stddef.h>

#include "core/base/alloc.h"
#include "core/base/atomic.h"
#include "core/qp.h"
#include "core/wait/doorbell.h"

#define QN_OUTBOX_VERSION 10u
#define QN_LANE_BYTES_MAX ((size_t)1 << 30)
#define QN_RING_BYTES_MAX ((size_t)1 << 36) /* of the arena, too */

struct qn_outbox_opts {
    qn_node_t node;              /* owner, < nodes */
    uint32_t nodes;              /* 1 .. QN_NODES_MAX: seats, taken or vacant */
    uint64_t seats;              /* mask of nodes whose lanes are allocated at
                                    creation; 0: all */
    uint64_t incarnation;        /* never 0 */
    size_t lane_bytes;           /* per lane, from the transport; 0: no lanes,
                                    it has a device */
    uint32_t lanes;              /* to each peer, QN_LANES .. QN_LANES_MAX; 0:
                                    QN_LANES */
    size_t ring_bytes;           /* address space for the ring; 0: none */
    size_t arena_bytes;          /* for the arena; 0: none */
    int numa_node;               /* preferred home of the pages; -1: none */
    const int *reader_numa_node; /* [nodes], borrowed: home of the lanes to
                                    each reader, -1: none. NULL: numa_node */
    bool shared; /* true: memfd; false: private pages (threads) */
    const struct qn_alloc *alloc; /* of the handle, kept; NULL: malloc's */
};

/** What an incarnation lacks of the replicated state. */
enum qn_state_lack {
    QN_STATE_WHOLE,
    QN_STATE_NONE, /* it has none yet */
    QN_STATE_LOST  /* it could not apply a command (paxos/apply) */
};

/** Single-writer lines that peers look at; the owner writes them relaxed or
 *  release, see each. */
struct qn_outbox_state {
    alignas(QN_CACHELINE) qn_a64 turns; /* event-loop turns: "I am alive" */
    qn_a64 seats; /* mask of nodes whose lanes are allocated, release: these
                     may read them */
    alignas(QN_CACHELINE) qn_a64 applied; /* slots <= it are applied, release */
    qn_a64 learned;                       /* slots <= it are learned */
    qn_a64 epoch;   /* newest one known, release; `learned` was stored before */
    qn_a64 voted;   /* newest entry of the utility log that may have been voted
                       for, release; all ones: not known (yet) */
    qn_a64 mapped;  /* epoch of the accept register whose owner's ring this
                       incarnation has mapped, release */
    qn_a64 ring;    /* bytes of the ring that are allocated, release */
    qn_a64 read;    /* bytes of batches that this incarnation has read, or
                       received; relaxed: a sign of progress */
    qn_a64 stopped; /* epoch that its leader, this incarnation, can never begin,
                       + 1; with bit 63: it cannot now, for its log has a gap;
                       0: none; all ones: this incarnation goes on by force;
                       release (PROTOCOL.md 6.5) */
    /* Seldom written: what a proposal looks at (`held`) is in no line that each
     * command writes. */
    alignas(QN_CACHELINE) qn_a64 phase; /* 0 starting, 1 serving, 2 draining,
                                           3 ended */
    qn_a64 hold_slot; /* first slot that is to be kept for a joiner which gets
                         a snapshot from here; 0: none; release */
    qn_a64 hold_done; /* part of that snapshot sent, of QN_HOLD_DONE */
    qn_a64 held;   /* epoch that this incarnation leads while writes wait for a
                      member that may not be given up, + 1; 0: none */
    qn_a64 late;   /* memory acceptor: epoch of the accept register whose owner
                      had ended before this incarnation began, + 1; 0: none
                      known; release (PROTOCOL.md 5.7) */
    qn_a64 coming; /* position of a snapshot that is on its way to this
                      incarnation; 0: none; release */
    qn_a64 lack;   /* enum qn_state_lack: can this incarnation give a state? */
    qn_a64 hears[QN_NODES_MAX]; /* the incarnation of each node that this one
                         receives from; 0: none, and all that its former
                         incarnations had sent was received before; release */
    qn_a64 counters[57];        /* meaning is the program's; sums for INFO */
};

struct qn_outbox; /* opaque: a mapping, own or a peer's */

/**
 * Make the outbox of a new incarnation.
 *
 * Where the kernel forbids or cannot do the homing, the pages stay where they
 * come to lie; that is no error.
 *
 * @param out   Filled; destroy it.
 * @param opts  Borrowed.
 * @return QN_OK; QN_EINVAL (a field out of range, lane_bytes above
 *         QN_LANE_BYTES_MAX, ring_bytes or arena_bytes above
 *         QN_RING_BYTES_MAX); QN_ENOMEM;
 *         QN_EMFILE; QN_ENOSYS (no memfd or no F_SEAL_FUTURE_WRITE: Linux
 *         before 5.1).
 */
int qn_outbox_create(struct qn_outbox **out, const struct qn_outbox_opts *opts);

/** Descriptor to pass to peers (kept by the outbox); -1 for private pages. */
int qn_outbox_fd(const struct qn_outbox *o);

/**
 * Map a peer's outbox read-only.
 *
 * @param fd      Borrowed: may be closed afterwards.
 * @param expect  What it must be: node, nodes, lane_bytes, lanes, ring_bytes,
 *                arena_bytes and incarnation (0: any) count. Borrowed.
 * @return QN_OK; QN_EPERM if a seal is missing (or it is no memfd); QN_ECORRUPT
 *         if magic, version, size, node or layout differ from `expect`;
 *         QN_ESTALE on another incarnation; QN_EINVAL; QN_ENOMEM.
 */
int qn_outbox_map(struct qn_outbox **out, int fd,
                  const struct qn_outbox_opts *expect);

/** A second handle on the same memory, for another thread's view; either may
 *  be destroyed first. QN_ENOMEM.
 *
 *  A thread that reads lanes through it streams short messages at half the rate
 *  (docs/measurements.md): on the processors measured, a line that is read
 *  through a writable page costs its writer more. Threads that stream use
 *  `shared` and qn_outbox_map as processes do. */
int qn_outbox_alias(struct qn_outbox **out, struct qn_outbox *own);

/** A child of fork(2) does not have the mapping: from here on, and but for
 *  memory for it. */
void qn_outbox_keep_from_children(const struct qn_outbox *o);

/** Unmap (and close the own descriptor); the owner's memory exists while any
 *  process maps it. NULL is fine. */
void qn_outbox_destroy(struct qn_outbox *o);

uint64_t qn_outbox_incarnation(const struct qn_outbox *o);

/** Address space that it takes, that of ring and arena included. */
size_t qn_outbox_bytes(const struct qn_outbox *o);

/** What an outbox takes at creation, ring and arena and the lanes to vacant
 *  seats not counted; it is allocated from then on. `opts` are valid. Pure. */
size_t qn_outbox_bytes_fixed(const struct qn_outbox_opts *opts);

/**
 * Owner: allocate the lanes toward `peer`, which takes a seat, and say so in
 * the state. They stay allocated as long as the outbox exists, and are zero
 * until the owner writes; again, nothing happens. `peer` is not the owner.
 *
 * @return QN_OK; QN_ENOMEM: there is no memory, and all is as before.
 */
int qn_outbox_seat(struct qn_outbox *o, qn_node_t peer);

/** Does the owner say that the lanes toward `peer` are allocated? Then every
 *  process that maps them may read them. `peer` is not the owner. */
bool qn_outbox_seated(const struct qn_outbox *o, qn_node_t peer);

/** Lane memory toward `peer`: writable in the own outbox, read-only in a
 *  mapped one (then `peer` is the reader's own id). Aligned to a page. `peer`
 *  is not the owner and seated, `lane` is below opts.lanes. NULL: there are no
 *  lanes. */
void *qn_outbox_lane(const struct qn_outbox *o, qn_node_t peer,
                     enum qn_lane lane);

/** The queuepairs between two nodes, one for each pair of their lanes. */
struct qn_outbox_connect_opts {
    const struct qn_transport *transport;
    const struct qn_outbox *own;
    const struct qn_outbox *peer; /* as seen here; this node is seated there */
    uint32_t lanes;               /* QN_LANES .. QN_LANES_MAX */
    struct qn_qp_opts each; /* of each; memory, lane and incarnations are those
                               of the outboxes */
};

/** Open them. @param qp  [lanes] filled; the caller's to close.
 *  @return QN_OK; what the transport says: then none is open, and all are
 *  NULL. */
int qn_outbox_connect(struct qn_qp **qp,
                      const struct qn_outbox_connect_opts *o);

struct qn_doorbell_line *qn_outbox_doorbell(const struct qn_outbox *o);
struct qn_outbox_state *qn_outbox_state(const struct qn_outbox *o);

/** The flight recorder, of QN_FLIGHT_ENTRIES, aligned to a page. Writable in
 * the own outbox, read-only in a mapped one. */
void *qn_outbox_flight(const struct qn_outbox *o);

/** Of an outbox, what grows. */
enum qn_region { QN_REGION_RING, QN_REGION_ARENA, QN_REGIONS };

/** The region, aligned to a page; NULL: there is none. Writable in the own
 *  outbox, as far as it has grown, read-only in a mapped one. */
void *qn_outbox_region(const struct qn_outbox *o, enum qn_region region);

/**
 * Owner: allocate the first `upto` bytes of a region. They stay allocated: no
 * access to them can fail from then on. What was there before keeps its place
 * and content; new memory is zero. `ring` in the state says how much there is
 * of the ring.
 *
 * @return QN_OK, also if it had grown so far; QN_ENOMEM: there is no memory, or
 *         `upto` is more than the region has; the region is as before.
 *
 * Takes as long as the kernel needs to clear the memory: about 0.3 ms a MiB.
 */
int qn_outbox_grow(struct qn_outbox *o, enum qn_region region, size_t upto);

#endif
