#ifndef QN_LOADGEN_BENCH_MESH_H
#define QN_LOADGEN_BENCH_MESH_H

/**
 * A full mesh of queuepairs between n nodes on this machine, as threads or as
 * processes; used by the channel benchmarks and the conformance suite.
 *
 * One process makes the mesh. qn_mesh_run then starts a thread or a child per
 * node. Each node opens its end: it maps the outboxes of its peers read-only
 * (processes, and threads if asked to) or shares the pages, attaches itself to
 * the device if
 * the transport has one, and opens a queuepair per peer and lane. A child keeps
 * no writable mapping except its own outbox. Doorbells are futexes between
 * threads and eventfds between processes.
 *
 * Threads: a mesh belongs to the thread that made it, an end to its node.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/place/area.h"
#include "core/place/outbox.h"
#include "core/qp.h"

struct qn_mesh_opts {
    const struct qn_transport *transport; /* kept */
    uint32_t nodes;                       /* 2 .. QN_NODES_MAX */
    uint32_t cells;                       /* per lane */
    uint32_t lanes; /* of each pair, QN_LANES .. QN_LANES_MAX; 0: QN_LANES */
    bool processes; /* else threads; not for transports
                       whose lanes both ends write */
    bool read_only; /* threads, too, map their peers' outboxes read-only, if the
                       transport allows it: a stream of short messages is twice
                       as fast (core/place/outbox.h). ThreadSanitizer does not
                       see what is ordered by messages then */
    bool survive;   /* as of struct qn_nodes_opts */
    bool strict;    /* a device: as of struct qn_device_opts */
    uint64_t seed;  /* likewise */
    const uint32_t *core; /* [nodes] CPU to pin each node to;
                             NULL: not pinned. Kept */
};

struct qn_mesh {
    struct qn_mesh_opts opts;
    struct qn_outbox *box[QN_NODES_MAX];
    int doorbell_fd[QN_NODES_MAX]; /* -1: futex */
    struct qn_area device;         /* QN_AREA_NONE: lanes */
};

struct qn_mesh_end {
    qn_node_t self;
    uint32_t nodes, lanes;
    struct qn_outbox *view[QN_NODES_MAX]; /* [self]: its own outbox */
    struct qn_doorbell doorbell;
    struct qn_device *device; /* NULL: lanes */
    struct qn_doorbell_handle ringer[QN_NODES_MAX];
    struct qn_qp *qp[QN_NODES_MAX][QN_LANES_MAX]; /* [self]: NULL */
};

/** Main function of a node. @return 0 on success. */
typedef int qn_mesh_fn(struct qn_mesh_end *end, void *arg);

/** @return QN_OK; QN_EINVAL (a transport that cannot serve that number of
 * nodes, or not between processes, included); QN_ENOMEM; QN_EMFILE; QN_ENOSYS.
 *          On failure there is nothing to destroy. */
int qn_mesh_create(struct qn_mesh *m, const struct qn_mesh_opts *opts);
void qn_mesh_destroy(struct qn_mesh *m);

/** The incarnation of a node in every mesh. Never 0. */
static inline uint64_t qn_mesh_incarnation(qn_node_t node)
{
    return 1000 + (uint64_t)node;
}

/** Attach one node to the device and open all its queuepairs; called directly
 * or by qn_mesh_run. */
int qn_mesh_open(struct qn_mesh *m, qn_node_t self, struct qn_mesh_end *end);
void qn_mesh_close(struct qn_mesh_end *end);

/** A peer has ended: tell all that leads to it. */
void qn_mesh_down(struct qn_mesh_end *end, qn_node_t peer);

/**
 * Run fn on every node and wait for all.
 *
 * @param arg  Passed to all nodes; processes see a copy made at fork, so
 *             results need memory that was mapped as shared before.
 * @return number of nodes that did not return 0 (died, or could not start).
 */
uint32_t qn_mesh_run(struct qn_mesh *m, qn_mesh_fn *fn, void *arg);

/** Flush all queuepairs of this end. @return true while cells are staged. */
bool qn_mesh_flush(struct qn_mesh_end *end);

/** Result of a poll. */
enum qn_mesh_poll {
    QN_MESH_IDLE, /* nothing received, nothing sent */
    QN_MESH_BUSY, /* something was done; there may be more to do */
    QN_MESH_DONE, /* the awaited event has happened */
};

/**
 * Call poll(arg) until it returns DONE, and sleep on the doorbell when it
 * returns IDLE; everything is flushed before each sleep and at the end.
 * @return QN_OK, or QN_ETIMEDOUT after `deadline`.
 */
int qn_mesh_wait(struct qn_mesh_end *end, enum qn_mesh_poll (*poll)(void *arg),
                 void *arg, qn_time_t deadline);

#endif
