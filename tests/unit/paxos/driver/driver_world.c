/*
 * The group, its service and its turns: see driver_world.h.
 */
#include "tests/unit/paxos/driver/driver_world.h"

#include <stdlib.h>
#include <string.h>

#include "core/place/outbox.h"
#include "core/wait/doorbell.h"
#include "paxos/driver/vote_record.h"
#include "tests/support/test.h"
#include "transports/ump/ump.h"

uint64_t world_random(struct world *w, uint64_t n)
{
    /* splitmix64 */
    uint64_t z = (w->seed += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % n;
}

/* ---- the service --------------------------------------------------------- */

struct service_ctx {
    struct world *w;
    qn_node_t node;
};

static struct service_ctx contexts[WORLD_NODES];

static uint32_t on_apply(void *ctx, const struct qn_applied *a)
{
    struct world *w = ((struct service_ctx *)ctx)->w;
    qn_node_t i = ((struct service_ctx *)ctx)->node;
    struct world_member *m = &w->member[i];
    struct qn_session *s = &m->session[a->origin];
    cr_assert(!m->suspended, "node %u applies though that is suspended", i);
    cr_assert_geq(a->origin_inc, s->inc, "a dead life's command");
    if (a->origin_inc > s->inc) {
        *s = (struct qn_session){.inc = a->origin_inc};
    }
    cr_assert_eq(a->seq, ++s->last, "node %u applies %u:%lu after %lu", i,
                 a->origin, (unsigned long)a->seq, (unsigned long)s->last - 1);
    cr_assert_eq(a->mine, a->origin == i && a->origin_inc == m->inc);
    cr_assert_eq(a->slot, m->slot + 1);
    cr_assert_geq(a->stamp_ms, m->stamp_ms);
    m->stamp_ms = a->stamp_ms;
    if (m->count == w->history_count) {
        cr_assert_lt(m->count, WORLD_HISTORY);
        w->history[w->history_count].inc = a->origin_inc;
        w->history[w->history_count].seq = a->seq;
        w->history[w->history_count].slot = a->slot;
        w->history[w->history_count++].origin = a->origin;
    }
    cr_assert(w->history[m->count].inc == a->origin_inc &&
                  w->history[m->count].seq == a->seq &&
                  w->history[m->count].slot == a->slot,
              "node %u applies another command in slot %lu", i,
              (unsigned long)a->slot);
    m->count++;
    m->exposed = a->slot;
    w->shown = QN_MAX(w->shown, a->slot);
    return 1;
}

static int on_try_apply(void *ctx, const struct qn_applied *a, uint32_t *work)
{
    struct world *w = ((struct service_ctx *)ctx)->w;
    struct world_member *m = &w->member[((struct service_ctx *)ctx)->node];
    if (m->fails.left != 0 && a->slot >= m->fails.from &&
        (!m->fails.inside || a->slot == m->exposed)) {
        m->fails.left--;
        m->refused++;
        return m->fails.err;
    }
    *work = on_apply(ctx, a);
    return QN_OK;
}

static void on_applied(void *ctx, qn_slot_t slot, uint64_t stamp_ms)
{
    const struct service_ctx *c = ctx;
    struct world_member *m = &c->w->member[c->node];
    cr_assert_eq(slot, m->slot + 1);
    cr_assert_geq(stamp_ms, m->stamp_ms);
    m->slot = slot;
    m->stamp_ms = stamp_ms;
}

static void on_need(void *ctx, qn_slot_t slot)
{
    const struct service_ctx *c = ctx;
    cr_assert_gt(slot, c->w->member[c->node].slot);
    c->w->member[c->node].need_snapshot = true;
}

static void on_claim(void *ctx, bool writable)
{
    const struct service_ctx *c = ctx;
    c->w->member[c->node].wrote = writable;
}

static bool on_owner(void *ctx, qn_epoch_t epoch)
{
    const struct service_ctx *c = ctx;
    struct world_member *m = &c->w->member[c->node];
    cr_assert(m->wrote, "it announces an epoch without the right to write");
    cr_assert_geq(epoch, qn_load(&c->w->word.first, QN_RELAXED));
    m->owned++;
    c->w->owner[epoch % WORLD_OWNERS].epoch = epoch;
    c->w->owner[epoch % WORLD_OWNERS].inc = m->inc;
    c->w->owner[epoch % WORLD_OWNERS].node = c->node;
    return true;
}

static bool on_owned_by(void *ctx, uint64_t epoch, qn_node_t *node,
                        uint64_t *inc)
{
    const struct world *w = ((const struct service_ctx *)ctx)->w;
    *node = w->owner[epoch % WORLD_OWNERS].node;
    *inc = w->owner[epoch % WORLD_OWNERS].inc;
    return *inc != 0 && w->owner[epoch % WORLD_OWNERS].epoch == epoch;
}

static bool on_ended(void *ctx, qn_node_t node, uint64_t inc)
{
    const struct world_member *m = &((struct world *)ctx)->member[node];
    return (m->driver == NULL && !m->coming) || m->inc != inc;
}

/* ---- memory and channels ------------------------------------------------- */

void world_life_make(struct world *w, qn_node_t i)
{
    struct world_member *m = &w->member[i];
    const struct qn_outbox_opts o = {
        .node = i,
        .nodes = w->nodes,
        .incarnation = m->inc,
        .lane_bytes = w->transport->lane_bytes(w->cells),
        .numa_node = -1,
    };
    m->incarnation = (struct world_life){.node = i, .inc = m->inc};
    cr_assert_eq(qn_outbox_create(&m->incarnation.outbox, &o), QN_OK);
    qn_doorbell_init(&m->doorbell, qn_outbox_doorbell(m->incarnation.outbox),
                     -1);
    const struct qn_ring_opts r = {.slots = w->ring_slots,
                                   .capacity = w->ring_bytes};
    size_t bytes = qn_ring_bytes(r.slots, r.capacity);
    m->incarnation.ring_mem = aligned_alloc(QN_CACHELINE, bytes);
    memset(m->incarnation.ring_mem, 0, bytes);
    qn_ring_open(&m->incarnation.ring, m->incarnation.ring_mem, &r);
    if (w->arena_bytes != 0) {
        const struct qn_arena_opts a = {.capacity = w->arena_bytes};
        bytes = qn_arena_bytes(a.capacity);
        m->incarnation.arena_mem = aligned_alloc(QN_CACHELINE, bytes);
        memset(m->incarnation.arena_mem, 0, bytes);
        cr_assert_eq(
            qn_arena_begin(&m->incarnation.arena, m->incarnation.arena_mem, &a),
            QN_OK);
        qn_arena_open(&m->incarnation.seen, m->incarnation.arena_mem,
                      a.capacity);
    }
}

void world_life_free(const struct world *w, struct world_life *l)
{
    memset(l->ring_mem, 0xee, qn_ring_bytes(w->ring_slots, w->ring_bytes));
    free(l->ring_mem);
    if (l->arena_mem != NULL) {
        memset(l->arena_mem, 0xee, qn_arena_bytes(w->arena_bytes));
        free(l->arena_mem);
        qn_arena_end(&l->arena);
    }
    qn_outbox_destroy(l->outbox);
}

static struct qn_device_opts device_opts(const struct world *w)
{
    return (struct qn_device_opts){
        .nodes = w->nodes, .lanes = QN_LANES, .strict = true, .seed = w->seed};
}

static void device_make(struct world *w)
{
    const struct qn_device_type *type = w->transport->device;
    if (type != NULL) {
        const struct qn_device_opts o = device_opts(w);
        size_t bytes = type->bytes(&o);
        w->device_opts = o;
        w->device_memory = aligned_alloc(4096, bytes);
        memset(w->device_memory, 0, bytes);
        type->format(w->device_memory, &o);
    }
}

/* The doorbell of p's incarnation, for i. */
static void bell(struct world *w, qn_node_t i, qn_node_t p)
{
    qn_doorbell_handle_init(&w->member[i].ringer[p],
                            qn_outbox_doorbell(w->member[p].incarnation.outbox),
                            -1);
}

void world_device_attach(struct world *w, qn_node_t i)
{
    struct world_member *m = &w->member[i];
    uint64_t incarnation[WORLD_NODES] = {0};
    const struct qn_device_attach_opts o = {.memory = w->device_memory,
                                            .opts = &w->device_opts,
                                            .self = i,
                                            .incarnation = incarnation,
                                            .doorbell = &m->doorbell,
                                            .ringer = m->ringer};
    if (w->device_memory == NULL) {
        return;
    }
    for (qn_node_t p = 0; p < w->nodes; p++) {
        bool here = p == i || (!w->begun && w->member[p].inc != 0) ||
                    w->member[p].driver != NULL;
        incarnation[p] = here ? w->member[p].inc : 0;
        if (here) {
            bell(w, i, p);
        }
    }
    cr_assert_eq(w->transport->device->attach(&m->device, &o), QN_OK);
}

/* One end of the channels between i and p. */
void world_channel_open(struct world *w, qn_node_t i, qn_node_t p)
{
    struct world_member *m = &w->member[i];
    struct qn_qp **qp[QN_LANES] = {&m->direct[p], &m->tree[p]};
    bell(w, i, p);
    if (m->device != NULL) {
        qn_device_up(m->device, p, w->member[p].inc);
    }
    for (int lane = 0; lane < QN_LANES; lane++) {
        const struct qn_qp_opts o = {
            .tx = qn_outbox_lane(m->incarnation.outbox, p, (enum qn_lane)lane),
            .rx = qn_outbox_lane(w->member[p].incarnation.outbox, i,
                                 (enum qn_lane)lane),
            .device = m->device,
            .lane = (enum qn_lane)lane,
            .cells = w->cells,
            .self = i,
            .peer = p,
            .self_inc = m->inc,
            .peer_inc = w->member[p].inc,
            .doorbell = &m->doorbell,
            .ringer = &m->ringer[p],
            .alloc = m->alloc,
        };
        int err;
        do { /* one that is refused memory has left nothing */
            err = w->transport->open(qp[lane], &o);
        } while (err == QN_ENOMEM && m->alloc != NULL);
        cr_assert_eq(err, QN_OK);
    }
}

void world_channel_close(struct world_member *m, qn_node_t p)
{
    qn_qp_close(m->direct[p]);
    qn_qp_close(m->tree[p]);
    m->direct[p] = m->tree[p] = NULL;
}

/* A later incarnation of it has begun: what it was about to do is not done. */
static void on_fence(void *ctx)
{
    const struct service_ctx *c = ctx;
    if (c->w->member[c->node].fence != NULL) {
        longjmp(*c->w->member[c->node].fence, 1);
    }
}

/* ---- drivers ------------------------------------------------------------- */

void world_driver_start(struct world *w, qn_node_t i, bool first)
{
    struct world_member *m = &w->member[i];
    uint64_t inc[WORLD_NODES];
    const struct qn_outbox_state *state[WORLD_NODES] = {0};
    const struct qn_ring *ring[WORLD_NODES] = {0};
    const struct qn_arena *arena[WORLD_NODES] = {0};
    contexts[i] = (struct service_ctx){w, i};
    m->suspended = false;
    if (w->feed.subscribers != 0) {
        cr_assert_eq(qn_feed_create(&m->feed, &w->feed), QN_OK);
    }
    for (qn_node_t p = 0; p < w->nodes; p++) {
        inc[p] = m->heard[p] = w->member[p].inc;
        if (p != i && m->direct[p] != NULL) {
            state[p] = qn_outbox_state(w->member[p].incarnation.outbox);
            ring[p] = &w->member[p].incarnation.ring;
            arena[p] = &w->member[p].incarnation.seen;
        }
    }
    const struct qn_driver_opts o = {
        .self = i,
        .nodes = w->nodes,
        .voters = w->voters,
        .incarnation = inc,
        .direct = m->direct,
        .tree = m->tree,
        .topology = w->topology,
        .costs = w->costs,
        .plan = w->plan.n > 0 ? &w->plan : NULL,
        .ring = w->ring,
        .ring_from = w->ring_from,
        .service = {.apply = w->may_fail ? NULL : on_apply,
                    .try_apply = w->may_fail ? on_try_apply : NULL,
                    .applied = on_applied,
                    .need_snapshot = on_need,
                    .ctx = &contexts[i]},
        .read_index = w->messages ? NULL : &w->read_index,
        .state = qn_outbox_state(m->incarnation.outbox),
        .peer_state = w->messages ? NULL : state,
        .memory = {.word = w->memory ? &w->word : NULL,
                   .ring = m->incarnation.ring,
                   .peer_ring = ring,
                   .claim = on_claim,
                   .owner = on_owner,
                   .owned_by = on_owned_by,
                   .ctx = &contexts[i]},
        .arena = w->arena_bytes != 0 ? &m->incarnation.arena : NULL,
        .peer_arena = arena,
        .vote_record = m->vote_record,
        .vote_record_bytes = QN_VOTE_RECORD_BYTES,
        .fence = on_fence,
        .fence_ctx = &contexts[i],
        .feed = m->feed,
        .alloc = m->alloc,
        .first = first,
        .ended = w->messages ? NULL : on_ended,
        .ended_ctx = w,
        .own_cores = !w->shared_cores,
        .flow = w->flow,
        .seed = world_random(w, UINT64_MAX),
        .now = w->now,
    };
    int err;
    do { /* likewise */
        err = qn_driver_create(&m->driver, &o);
    } while (err == QN_ENOMEM && m->alloc != NULL);
    cr_assert_eq(err, QN_OK);
    for (uint32_t k = 0; k < w->old_count && w->memory; k++) {
        do {
            err = qn_driver_remember(m->driver, w->old[k].node, w->old[k].inc,
                                     &w->old[k].ring);
        } while (err == QN_ENOMEM && m->alloc != NULL);
        cr_assert_eq(err, QN_OK);
    }
}

struct world *world_make(uint32_t nodes, bool memory)
{
    void *mem = aligned_alloc(QN_CACHELINE,
                              qn_align_up(sizeof(struct world), QN_CACHELINE));
    struct world *w = memset(mem, 0, sizeof *w);
    w->nodes = nodes;
    w->cells = WORLD_CELLS;
#ifdef WORLD_MESSAGES
    w->messages = !memory;
#endif
    w->memory = memory;
    w->seed = 1;
    return w;
}

/* Each with memory, then each with channels, then each with a driver. */
static void all_begin(struct world *w)
{
    qn_node_t first[WORLD_NODES];
    uint32_t n = 0;
    for (qn_node_t i = 0; i < w->nodes; i++) {
        if (w->voters == 0 || (w->voters >> i & 1) != 0) {
            first[n++] = i;
        }
    }
    for (uint32_t k = 0; k < n; k++) {
        w->member[first[k]].inc = ++w->lives;
        world_life_make(w, first[k]);
    }
    for (uint32_t k = 0; k < n; k++) {
        world_device_attach(w, first[k]);
        for (uint32_t p = 0; p < n; p++) {
            if (p != k) {
                world_channel_open(w, first[k], first[p]);
            }
        }
    }
    for (uint32_t k = 0; k < n; k++) {
        world_driver_start(w, first[k], true);
    }
}

void world_start(struct world *w)
{
    w->transport = w->transport != NULL ? w->transport : &qn_ump;
    w->topology = w->topology != NULL ? w->topology : "sequential";
    w->ring_slots = w->ring_slots != 0 ? w->ring_slots : 4096;
    w->ring_bytes = w->ring_bytes != 0 ? w->ring_bytes : 1u << 22;
    if (w->flow.timeout == 0) {
        w->flow = qn_flow_default(1, w->ring_slots, w->ring_bytes);
        w->flow.timeout = 20 * QN_MS;
    }
    w->now = QN_S;
    w->lives = 99;
    device_make(w);
    for (qn_node_t i = 0; i < w->nodes; i++) {
        w->member[i].vote_record = aligned_alloc(
            QN_CACHELINE, qn_align_up(QN_VOTE_RECORD_BYTES, QN_CACHELINE));
        memset(w->member[i].vote_record, 0, QN_VOTE_RECORD_BYTES);
    }
    all_begin(w);
    w->begun = true;
}

void world_end(struct world *w)
{
    for (qn_node_t i = 0; i < w->nodes; i++) {
        struct world_member *m = &w->member[i];
        qn_driver_destroy(m->driver);
        qn_feed_destroy(m->feed);
        for (qn_node_t p = 0; p < w->nodes; p++) {
            world_channel_close(m, p);
        }
        qn_device_detach(m->device);
    }
    free(w->device_memory);
    for (qn_node_t i = 0; i < w->nodes; i++) {
        if (w->member[i].driver != NULL) {
            world_life_free(w, &w->member[i].incarnation);
        }
        free(w->member[i].vote_record);
    }
    for (uint32_t k = 0; k < w->old_count; k++) {
        world_life_free(w, &w->old[k]);
    }
    qn_machine_destroy(w->costs);
    free(w);
}

/* ---- turns --------------------------------------------------------------- */

/* Before anybody can ask. */
static void published(const struct world *w, qn_node_t i)
{
    if (w->messages) {
        return;
    }
    cr_assert_geq(qn_load(&w->read_index, QN_SEQ_CST), w->member[i].exposed,
                  "node %u: exposed, not published", i);
}

/* A read comes: all that any node has applied by now may have been seen. */
static uint64_t read_comes(struct world *w, qn_node_t i)
{
    struct world_member *m = &w->member[i];
    uint64_t number = qn_driver_read_view(m->driver).index;
    m->floor[number % WORLD_READS] = (struct world_floor){number, w->shown};
    m->wanted = number;
    return number;
}

/* Whose reads may be answered now? */
static void reads_check(const struct world *w, qn_node_t i)
{
    struct world_member *m = (struct world_member *)&w->member[i];
    uint64_t reached = qn_driver_read_view(m->driver).reached;
    cr_assert_geq(reached, m->reached);
    while (m->reached < reached) {
        const struct world_floor *f = &m->floor[++m->reached % WORLD_READS];
        cr_assert(f->number != m->reached || m->slot >= f->slot,
                  "node %u answers read %lu from slot %lu: %lu was shown", i,
                  (unsigned long)m->reached, (unsigned long)m->slot,
                  (unsigned long)f->slot);
    }
}

/* In some turns. */
static bool reads_now(struct world *w)
{
    w->readers = w->readers * UINT64_C(6364136223846793005) +
                 UINT64_C(1442695040888963407);
    return w->messages && !w->silent && w->readers >> 62 == 0;
}

void world_turn(struct world *w, qn_node_t i)
{
    struct world_member *m = &w->member[i];
    uint64_t number = reads_now(w) ? read_comes(w, i) : 0;
    qn_driver_turn(m->driver, w->now, w->now / QN_MS);
    published(w, i);
    cr_assert_eq(qn_driver_applied(m->driver), m->slot);
    if (number != 0) {
        qn_driver_read_wanted(m->driver, number);
    }
    qn_driver_flush(m->driver, w->now);
    if (w->messages) {
        reads_check(w, i);
    }
    published(w, i);
    for (qn_node_t k = 0; k < w->nodes && !w->wild && !w->messages; k++) {
        cr_assert(w->member[k].driver == NULL ||
                      qn_driver_read_index(w->member[k].driver) ==
                          qn_load(&w->read_index, QN_SEQ_CST),
                  "node %u finds an old read index", k);
    }
}

/* The first that can gives one. */
static void snapshots(struct world *w)
{
    for (qn_node_t i = 0; i < w->nodes && !w->snapshots_by_hand; i++) {
        for (qn_node_t k = 0; k < w->nodes && w->member[i].need_snapshot; k++) {
            (void)world_install(w, i, k);
        }
    }
}

void world_rounds(struct world *w, uint32_t count)
{
    for (uint32_t r = 0; r < count; r++) {
        w->now += 100 * QN_US;
        for (qn_node_t i = 0; i < w->nodes; i++) {
            if (w->member[i].driver != NULL && !w->member[i].stopped) {
                world_turn(w, i);
            }
        }
        snapshots(w);
    }
}

bool world_submit(struct world *w, qn_node_t i, const void *bytes, size_t len)
{
    uint64_t seq = 0;
    const struct qn_slice part = {bytes, len};
    bool ok = qn_driver_submit(w->member[i].driver, &part, 1, &seq) == QN_OK;
    w->member[i].submitted += ok;
    cr_assert(!ok || seq == w->member[i].submitted);
    return ok;
}

void world_submit_number(struct world *w, qn_node_t i, uint64_t x)
{
    cr_assert(world_submit(w, i, &x, sizeof x), "node %u refused %lu", i,
              (unsigned long)x);
}

/* ---- looking ------------------------------------------------------------- */

struct qn_driver_status world_status(const struct world *w, qn_node_t i)
{
    struct qn_driver_status st;
    qn_driver_status(w->member[i].driver, &st);
    return st;
}

bool world_settled(const struct world *w)
{
    for (qn_node_t i = 0; i < w->nodes; i++) {
        const struct world_member *m = &w->member[i];
        if (m->driver == NULL || m->stopped) {
            continue;
        }
        struct qn_session s = m->session[i];
        if (m->reached + WORLD_READS / 4 < m->wanted ||
            m->count != w->history_count ||
            (s.inc == m->inc ? s.last : 0) != m->submitted) {
            return false;
        }
    }
    return true;
}

void world_settle(struct world *w, uint32_t rounds)
{
    for (uint32_t r = 0; r < rounds && !world_settled(w); r++) {
        world_rounds(w, 1);
    }
    for (qn_node_t i = 0; i < w->nodes && !world_settled(w); i++) {
        const struct world_member *m = &w->member[i];
        if (m->driver != NULL) {
            struct qn_driver_status st = world_status(w, i);
            cr_expect(
                0,
                "node %u: role %d epoch %lu leader %u acceptor %u applied "
                "%lu learned %lu decided %lu, %u of %u commands, own %lu, "
                "unapplied %lu%s",
                i, st.role, (unsigned long)st.epoch, st.leader, st.acceptor,
                (unsigned long)st.applied, (unsigned long)st.learned,
                (unsigned long)st.decided_hi, m->count, w->history_count,
                (unsigned long)m->submitted, (unsigned long)st.unapplied,
                st.need_snapshot ? ", needs a snapshot" : "");
        }
    }
    cr_assert(world_settled(w), "no progress in %u rounds", rounds);
}

/* ---- stories ------------------------------------------------------------- */

struct world *world_begin(uint32_t nodes, bool memory)
{
    struct world *w = world_make(nodes, memory);
    world_start(w);
    return w;
}

void world_load(struct world *w, uint32_t commands)
{
    for (uint64_t x = 0; x < commands; x++) {
        for (qn_node_t i = 0; i < w->nodes; i++) {
            if (w->member[i].driver != NULL && !w->member[i].stopped) {
                (void)world_submit(w, i, &x, sizeof x);
            }
        }
        world_rounds(w, x % 3 == 0);
    }
}

void world_go_on(struct world *w)
{
    world_load(w, 60);
    world_settle(w, 20000);
}

void world_wipe(struct world *w, qn_node_t from, qn_node_t to,
                enum qn_lane lane)
{
    memset(qn_outbox_lane(w->member[from].incarnation.outbox, to, lane), 0,
           (size_t)w->cells * 64);
}

void world_learns_at_once(struct world *w)
{
    world_rounds(w, 50);
    for (qn_node_t i = 0; i < w->nodes; i++) {
        if (w->member[i].driver == NULL) {
            continue;
        }
        world_submit_number(w, i, i);
        world_rounds(w, 8);
        cr_assert(world_settled(w), "of node %u", i);
    }
}
