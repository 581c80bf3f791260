/*
 * A member's own part of the shared memory: its outbox with ring and arena, its
 * mapping of the commons, and its place as the node's live incarnation.
 *
 * While a process holds the lock of its node, no second one can be the same
 * node. The fence is for a lock that was lost, and for a supervisor that knows
 * nothing of locks.
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/place/liveness.h"
#include "core/place/process.h"
#include "paxos/machine/params.h"
#include "paxos/member/member_internal.h"

#define RING_SPAN (UINT64_C(4) << 20) /* of a lap at first */

bool qn_member_by_memory(const struct qn_member *m)
{
    return m->o.memory_acceptor && m->o.nodes > 1;
}

/* ---- ring and arena ------------------------------------------------------ */

static int ring_grow(void *ctx, uint64_t bytes)
{
    struct qn_member *m = ctx;
    return qn_outbox_grow(m->outbox, QN_REGION_RING, bytes);
}

void qn_member_ring_open(struct qn_member *m, struct qn_ring *r,
                         const struct qn_outbox *o)
{
    const struct qn_ring_opts opts = {.slots = QN_RING,
                                      .capacity = m->o.ring_bytes,
                                      .span = RING_SPAN,
                                      .keep = m->o.backlog_bytes,
                                      .grow = ring_grow,
                                      .ctx = m};
    if (qn_member_by_memory(m)) {
        qn_ring_open(r, qn_outbox_region(o, QN_REGION_RING), &opts);
    }
}

static int arena_grow(void *ctx, uint64_t bytes)
{
    struct qn_member *m = ctx;
    return qn_outbox_grow(m->outbox, QN_REGION_ARENA, bytes);
}

/* The own one, empty. */
static int arena_begin(struct qn_member *m)
{
    const struct qn_arena_opts o = {.capacity = m->o.arena_bytes,
                                    .grow = arena_grow,
                                    .ctx = m,
                                    .alloc = m->o.alloc};
    void *mem = qn_outbox_region(m->outbox, QN_REGION_ARENA);
    int err = mem == NULL ? QN_OK : arena_grow(m, qn_arena_bytes(0));
    return mem == NULL || err != QN_OK ? err
                                       : qn_arena_begin(&m->arena, mem, &o);
}

/* ---- the own outbox ------------------------------------------------------ */

static struct qn_transport_bytes channels(const struct qn_member *m)
{
    return qn_transport_needs(m->o.transport, m->o.cells, &m->o.device);
}

struct qn_outbox_opts qn_member_shape(const struct qn_member *m)
{
    return (struct qn_outbox_opts){
        .node = m->o.self,
        .nodes = m->o.nodes,
        .seats = m->o.seats,
        .incarnation = m->o.incarnation,
        .lane_bytes = channels(m).lane,
        .ring_bytes = qn_member_by_memory(m)
                          ? qn_ring_bytes(QN_RING, m->o.ring_bytes)
                          : 0,
        .arena_bytes = m->o.nodes > 1 ? qn_arena_bytes(m->o.arena_bytes) : 0,
        .numa_node = m->numa_node[m->o.self],
        .reader_numa_node = m->numa_node,
        .shared = true,
        .alloc = m->o.alloc,
    };
}

static int outbox_make(struct qn_member *m)
{
    const struct qn_outbox_opts o = qn_member_shape(m);
    int err = qn_outbox_create(&m->outbox, &o);
    if (err == QN_OK) {
        qn_outbox_keep_from_children(m->outbox);
    }
    if (err == QN_OK && qn_member_by_memory(m)) {
        err = ring_grow(m, qn_ring_bytes(QN_RING, 0));
    }
    if (err == QN_OK) {
        qn_member_ring_open(m, &m->ring, m->outbox);
        err = arena_begin(m);
    }
    return err;
}

size_t qn_member_device_bytes(const struct qn_member *m)
{
    return channels(m).device;
}

int qn_member_outbox_fd(const struct qn_member *m)
{
    return qn_outbox_fd(m->outbox);
}

/* ---- the node's place ---------------------------------------------------- */

/* This process is its node's live incarnation from here on, until the kernel
 * marks its end. Of two processes that try, for whatever reason, only one gets
 * the lock. */
static int live(struct qn_member *m)
{
    const struct qn_member_opts *o = &m->o;
    int err = qn_hold_take(&m->hold, o->hold_fd, o->self, o->incarnation);
    if (err == QN_OK) {
        err = qn_commons_map(&m->commons, o->commons_fd, o->nodes,
                             qn_member_device_bytes(m));
    }
    if (err == QN_OK) {
        qn_commons_keep_from_children(m->commons);
        err = qn_commons_own(m->commons, o->self);
    }
    if (err == QN_OK && o->record_fd >= 0) {
        err = qn_area_map(&m->record, o->record_fd, QN_COMMONS_RECORD_BYTES);
        qn_area_keep_from_children(&m->record);
    }
    if (err == QN_OK) {
        err = (o->held ? qn_liveness_begin_held : qn_liveness_begin)(
            m->commons, o->self, o->incarnation);
        m->lives = err == QN_OK;
    }
    return err;
}

void qn_member_fence(void *ctx)
{
    const struct qn_member *m = ctx;
    uint64_t present;
    pid_t tid;
    enum qn_liveness is =
        qn_liveness_incarnation(m->commons, m->o.self, &present, &tid);
    if (present > m->o.incarnation ||
        (m->o.held && present == m->o.incarnation && is == QN_LIVENESS_DEAD)) {
        m->o.callbacks.superseded(m->o.callbacks.ctx, present);
        qn_assert_fail("superseded has returned", __FILE__, __LINE__, __func__);
    }
}

/* ---- begin and end ------------------------------------------------------- */

static bool valid(const struct qn_member_opts *o)
{
    return o->nodes >= 1 && o->nodes <= QN_NODES_MAX && o->self < o->nodes &&
           (o->seats & ~qn_low_bits(o->nodes)) == 0 && o->incarnation != 0 &&
           o->backlog_bytes >= QN_MEMBER_BACKLOG_LEAST &&
           (o->feed == NULL || qn_feed_valid(o->feed)) &&
           (o->shares || o->nodes > 1) && (o->shares || !o->memory_acceptor);
}

int qn_member_create(struct qn_member **out, const struct qn_member_opts *o)
{
    const struct qn_alloc *a = qn_alloc_or_malloc(o->alloc);
    struct qn_member *m = valid(o) ? qn_alloc_zeroed(a, sizeof *m) : NULL;
    if (m == NULL) {
        return valid(o) ? QN_ENOMEM : QN_EINVAL;
    }
    m->o = *o;
    m->o.alloc = a;
    m->record = QN_AREA_NONE;
    if (o->feed != NULL) {
        m->feed_opts = *o->feed;
        m->feed_opts.applied = 0;
        m->feed_opts.alloc = a;
        m->o.feed = &m->feed_opts;
    }
    memcpy(m->doorbell_fd, o->doorbell_fd, o->nodes * sizeof *o->doorbell_fd);
    memcpy(m->numa_node, o->numa_node, o->nodes * sizeof *o->numa_node);
    m->o.doorbell_fd = m->doorbell_fd;
    m->o.numa_node = m->numa_node;
    int err = outbox_make(m);
    if (err == QN_OK) {
        err = live(m);
    }
    if (err != QN_OK) {
        qn_member_destroy(m);
        return err;
    }
    *out = m;
    return QN_OK;
}

void qn_member_leave(struct qn_member *m)
{
    m->leaves = true;
}

void qn_member_mark_end(const struct qn_member *m)
{
    if (m->lives && qn_hold_is_own(&m->hold)) {
        qn_liveness_end(m->commons, m->o.self, m->o.incarnation);
    }
}

void qn_member_destroy(struct qn_member *m)
{
    if (m == NULL || (m->lives && !qn_hold_is_own(&m->hold))) {
        return;
    }
    qn_member_stop(m);
    qn_driver_destroy(m->driver);
    qn_feed_destroy(m->feed);
    qn_peers_fini(&m->peers);
    qn_device_detach(m->device);
    if (m->lives) {
        (m->leaves ? qn_liveness_leave : qn_liveness_end)(m->commons, m->o.self,
                                                          m->o.incarnation);
    }
    qn_area_destroy(&m->record);
    qn_commons_destroy(m->commons);
    qn_arena_end(&m->arena);
    qn_outbox_destroy(m->outbox);
    qn_hold_release(&m->hold); /* none of the node's memory is mapped here */
    qn_alloc_free(m->o.alloc, m);
}

/* ---- turns --------------------------------------------------------------- */

struct qn_driver *qn_member_driver(const struct qn_member *m)
{
    return m->driver;
}

struct qn_feed *qn_member_feed(const struct qn_member *m)
{
    return m->feed;
}

struct qn_events *qn_member_events(struct qn_member *m)
{
    return &m->events;
}

qn_time_t qn_member_turn_begin(struct qn_member *m, qn_time_t now)
{
    qn_member_fence(m);
    m->turns++;
    m->again = false;
    /* relaxed: a counter for peers; nothing is read through it. */
    qn_store(&qn_outbox_state(m->outbox)->turns, m->turns, QN_RELAXED);
    return qn_member_transfer_turn(m, now);
}

bool qn_member_again(struct qn_member *m)
{
    return m->again || qn_driver_pending(m->driver);
}

bool qn_member_wants_turn(const struct qn_member *m)
{
    return m->again;
}

void qn_member_serves(struct qn_member *m)
{
    (void)m; /* of the calling thread, which is the member's */
    (void)qn_process_slice(0, QN_SLICE_SERVING);
}

void qn_member_yield(struct qn_member *m, qn_time_t now)
{
    (void)qn_spin_yield(&m->yield, now);
}

void qn_member_arm(struct qn_member *m)
{
    qn_doorbell_arm(&m->doorbell);
}

void qn_member_wake(struct qn_member *m)
{
    qn_doorbell_wake(&m->doorbell);
}

void qn_member_drain(struct qn_member *m)
{
    qn_doorbell_drain(&m->doorbell);
}
