/*
 * A driver begins and ends; and its vote record, which outlives it.
 *
 * The first incarnation of a group writes entry 0 of the utility log into its
 * vote record before it does anything, and each vote after that with the
 * entries below it. A later incarnation goes on with what it finds there. If
 * the record is missing or damaged, the incarnation writes one, before any peer
 * hears of it, that says since when no incarnation has voted. Neither it nor a
 * later one votes until a VOTER or SEAT entry names one of them; that one
 * writes the record anew (PROTOCOL.md 4.4).
 *
 * `voted` in the outbox says how far a node may have voted, before its vote can
 * count anywhere (driver_positions.c).
 */
#include <assert.h>
#include <stdlib.h>

#include "core/base/log.h"
#include "core/place/commons.h"
#include "paxos/driver/driver_internal.h"
#include "paxos/driver/vote_record.h"

/* The server keeps it there. */
static_assert(QN_COMMONS_RECORD_BYTES >= QN_VOTE_RECORD_BYTES, "a record fits");

/* ---- what survived ------------------------------------------------------- */

/** What a later incarnation begins with. */
struct survived {
    struct qn_vote vote;
    struct qn_ul_entry ul[QN_UL_KEPT];
    uint32_t count;
    bool later; /* the group began without this incarnation */
    bool found; /* the record was read, or is written */
};

/* Voters that began the group have written a record, so if there is none it was
 * wiped; a seat that was vacant until now has none. */
static void record_say(const struct qn_driver *d, const struct survived *s)
{
    bool maybe_vacant = d->o.voters != 0;
    if (d->non_voting && s->found) {
        qn_log_to(&d->o.log, QN_LOG_INFO,
                  "member %u: its seat has no vote yet; it does not vote until "
                  "the others have agreed that it may",
                  d->o.self);
    } else if (d->non_voting && maybe_vacant) {
        qn_log_to(&d->o.log, QN_LOG_INFO,
                  "member %u: its seat has no voting record; it does not vote "
                  "until the others have agreed that it may",
                  d->o.self);
    } else if (d->non_voting) {
        qn_log_to(&d->o.log, QN_LOG_ERROR,
                  "member %u: its voting record is damaged; it does not vote "
                  "until the others have agreed that it begins anew",
                  d->o.self);
    }
}

static void record_read(struct qn_driver *d, struct survived *s)
{
    const struct qn_driver_opts *o = &d->o;
    s->later = !o->first;
    if (!s->later) {
        return;
    }
    int err = QN_ECORRUPT;
    if (o->vote_record != NULL) {
        err = qn_vote_record_read(o->vote_record, o->vote_record_bytes,
                                  &s->vote, s->ul, QN_UL_KEPT, &s->count);
    }
    s->found = err == QN_OK;
    s->count = s->found ? s->count : 0;
    d->non_voting = !s->found || s->vote.since != 0;
    record_say(d, s);
}

static void fence(const struct qn_driver *d)
{
    if (d->o.fence != NULL) {
        d->o.fence(d->o.fence_ctx);
    }
}

/* There is none: from now on it says that no incarnation from this one on has
 * voted. So if an entry names this one, and it ends before it has heard of
 * that, the next one may vote. */
static void record_since(const struct qn_driver *d, struct survived *s)
{
    static const struct qn_utility nothing; /* no entry is known */
    if (!s->later || s->found || d->o.vote_record == NULL) {
        return;
    }
    fence(d);
    s->vote = (struct qn_vote){.since = d->o.incarnation[d->o.self]};
    s->found = true;
    qn_vote_record_renew(d->o.vote_record, d->o.vote_record_bytes, &s->vote,
                         &nothing);
}

/* How far this node may have voted, in this incarnation or before. */
static uint64_t voted(const struct qn_driver *d, const struct survived *s)
{
    if (d->non_voting) {
        return UINT64_MAX; /* it is not known */
    }
    bool open = s->vote.vbal.round != 0;
    QN_ASSERT(!s->found || s->vote.index >= s->count);
    return s->found ? s->vote.index - !open : 0;
}

/* Entry 0, so that a later incarnation knows the first leader. */
void qn_driver_begin_record(const struct qn_driver *d, void *record,
                            size_t bytes)
{
    const struct qn_vote none = {.index = 1};
    QN_ASSERT(d->o.first);
    qn_vote_record_renew(record, bytes, &none, qn_onepaxos_utility(d->machine));
}

static void record_begin(struct qn_driver *d, const struct survived *s)
{
    if (!s->later && d->o.vote_record != NULL) {
        qn_driver_begin_record(d, d->o.vote_record, d->o.vote_record_bytes);
    }
}

void qn_driver_persist(struct qn_driver *d, const struct qn_vote *vote)
{
    qn_driver_note_vote(d, vote);
    QN_ASSERT(vote->vbal.round <= vote->bal.round);
    QN_ASSERT(d->non_voting ||
              qn_load(&d->o.state->voted, QN_RELAXED) <= vote->index);
    bool void_before = d->non_voting;
    bool renewed = void_before && vote->since == 0; /* it votes again */
    if (d->o.vote_record != NULL) {
        fence(d);
        (void_before ? qn_vote_record_renew : qn_vote_record_write)(
            d->o.vote_record, d->o.vote_record_bytes, vote,
            qn_onepaxos_utility(d->machine));
    }
    if (renewed) {
        d->non_voting = false;
        qn_log_to(&d->o.log, QN_LOG_INFO,
                  "member %u: votes again, from entry %u on", d->o.self,
                  vote->index);
        /* release -> acquire in qn_driver_newest_epoch: no incarnation before
         * this one knew the entry below, so none has voted beyond it. */
        qn_store(&d->o.state->voted, vote->index - 1, QN_RELEASE);
    }
    if (vote->vbal.round != 0) {
        /* release -> acquire in qn_driver_newest_epoch. */
        qn_store(&d->o.state->voted, vote->index, QN_RELEASE);
    }
}

/* ---- the machine --------------------------------------------------------- */

static void claim(void *ctx, bool writable)
{
    const struct qn_driver_memory *m = &((struct qn_driver *)ctx)->o.memory;
    qn_driver_note_claim(ctx, writable);
    if (m->claim != NULL) {
        m->claim(m->ctx, writable);
    }
}

static bool owner(void *ctx, qn_epoch_t epoch)
{
    const struct qn_driver_memory *m = &((struct qn_driver *)ctx)->o.memory;
    qn_driver_note_copied(ctx, epoch);
    return m->owner == NULL || m->owner(m->ctx, epoch);
}

static bool owned_by(void *ctx, uint64_t epoch, qn_node_t *node, uint64_t *inc)
{
    const struct qn_driver_memory *m = &((struct qn_driver *)ctx)->o.memory;
    return m->owned_by != NULL && m->owned_by(m->ctx, epoch, node, inc);
}

static void shared_make(struct qn_driver *d)
{
    d->shared = (struct qn_memory_acceptor){.accept_register = d->o.memory.word,
                                            .own = d->o.memory.ring,
                                            .ring = qn_driver_ring,
                                            .claim = claim,
                                            .owner = owner,
                                            .owned_by = owned_by,
                                            .position = qn_driver_position,
                                            .ctx = d};
    qn_ring_begin(&d->shared.own, 1);
}

/* With the memory acceptor a gap costs no peer anything: it is read from a
 * ring. */
static struct qn_params params(const struct qn_driver *d)
{
    struct qn_params p = qn_params_default(d->o.own_cores);
    qn_time_t gap =
        d->o.own_cores ? QN_DRIVER_T_GAP_OWN_CORES : QN_DRIVER_T_GAP;
    p.t_gap = d->memory ? QN_MIN(p.t_gap, gap) : p.t_gap;
    p.log_bytes = d->memory                 ? QN_LOG_BYTES_MEMORY
                  : d->o.backlog_bytes != 0 ? d->o.backlog_bytes
                                            : p.log_bytes;
    p.batch_commands =
        d->o.batch_commands != 0 ? d->o.batch_commands : p.batch_commands;
    p.flow = d->o.flow;
    if (p.flow.timeout == 0) {
        p.flow = qn_flow_default(d->o.nodes, QN_RING, QN_LOG_BYTES);
        p.flow.min_awaited = QN_FLOW_MINORITY;
    }
    return p;
}

/* How long a member of the ring may lack a broadcast. By message it says what
 * it has learned somewhat later. */
static qn_time_t ring_limit(const struct qn_driver_opts *o)
{
    return (o->own_cores ? QN_RING_LAG : QN_RING_LAG_SHARED) +
           (o->peer_state == NULL ? QN_HEARTBEAT_INTERVAL : 0);
}

void qn_driver_own_cores(struct qn_driver *d, bool own_cores)
{
    if (own_cores != d->o.own_cores) {
        d->o.own_cores = own_cores;
        const struct qn_params v = params(d);
        qn_onepaxos_times(d->machine, &v);
        d->ring_choice.limit = ring_limit(&d->o);
    }
}

static int machine_make(struct qn_driver *d, const struct survived *s)
{
    const struct qn_onepaxos_opts o = {
        .self = d->o.self,
        .nodes = d->o.nodes,
        .incarnation = d->o.incarnation,
        .voters = d->o.voters,
        .parent = d->o.self,
        .alloc = &d->pool.alloc,
        .params = params(d),
        .seed = d->o.seed,
        .memory = d->memory ? &d->shared : NULL,
        .uploads = d->o.arena != NULL ? &d->uploads : NULL,
        .ul = s->later ? s->ul : NULL,
        .ul_count = s->count,
        .vote = s->found ? &s->vote : NULL,
        .non_voting = s->later && !s->found,
    };
    size_t bytes = qn_onepaxos_size(&o);
    if (bytes == 0) {
        return QN_EINVAL;
    }
    void *mem = qn_alloc_zeroed(d->o.alloc, bytes);
    if (mem == NULL) {
        return QN_ENOMEM;
    }
    d->machine = qn_onepaxos_init(mem, &o);
    return QN_OK;
}

/* ---- the peers ----------------------------------------------------------- */

static void peers_take(struct qn_driver *d)
{
    const struct qn_driver_opts *o = &d->o;
    for (qn_node_t i = 0; i < o->nodes; i++) {
        struct qn_driver_peer *p = &d->peer[i];
        p->incarnation =
            (struct qn_driver_incarnation){.node = i, .inc = o->incarnation[i]};
        if (i == o->self) {
            d->living |= qn_driver_bit(i);
            qn_halt_born(&d->halt, i, o->incarnation[i], false);
            continue;
        }
        p->qp = o->direct[i];
        d->living |= p->qp != NULL ? qn_driver_bit(i) : 0;
        qn_halt_born(&d->halt, i, o->incarnation[i], p->qp == NULL);
        qn_driver_hears(d, i, p->qp != NULL ? p->incarnation.inc : 0);
        p->state = d->told != NULL ? &d->told[i] : o->peer_state[i];
        d->tree[i] = o->tree[i];
        if (o->arena != NULL && o->peer_arena[i] != NULL) {
            p->has_arena = true;
            p->arena = *o->peer_arena[i];
        }
        if (d->memory && o->memory.peer_ring[i] != NULL) {
            p->incarnation.has_ring = true;
            p->incarnation.ring = *o->memory.peer_ring[i];
        }
    }
}

/* Tell the machine of the nodes that have ended before the beginning. */
static void ended_tell(struct qn_driver *d)
{
    for (qn_node_t i = 0; i < d->o.nodes; i++) {
        const struct qn_input in = {.kind = QN_IN_DOWN, .down = {i}};
        if (!qn_driver_lives(d, i)) {
            qn_driver_step(d, &in);
        }
    }
}

/* ---- begin and end ------------------------------------------------------- */

static int begin(struct qn_driver *d, struct survived *s)
{
    int err = qn_driver_state_begin(d);
    if (err != QN_OK) {
        return err;
    }
    d->uploads = (struct qn_uploads){
        .own = d->o.arena, .arena = qn_driver_arena, .ctx = d};
    peers_take(d);
    record_read(d, s);
    record_since(d, s);
    qn_store(&d->o.state->voted, voted(d, s), QN_RELEASE);
    if (d->memory) {
        shared_make(d);
    }
    err = machine_make(d, s);
    if (err != QN_OK) {
        return err;
    }
    QN_ASSERT(d->non_voting == (s->later && (!s->found || s->vote.since != 0)));
    record_begin(d, s);
    qn_driver_roles(d);
    err = qn_driver_tree_make(d);
    if (err == QN_OK) {
        ended_tell(d);
        qn_driver_mapped(d);
    }
    return err;
}

static int opts_check(const struct qn_driver_opts *o)
{
    if (o->nodes == 0 || o->nodes > QN_NODES_MAX || o->self >= o->nodes ||
        o->ring > QN_DISSEMINATION_RING_MAX) {
        return QN_EINVAL;
    }
    uint64_t all = UINT64_MAX >> (QN_NODES_MAX - o->nodes);
    uint64_t voters = o->voters != 0 ? o->voters : all;
    if (o->memory.word == NULL && voters != all) {
        return QN_ENOSYS;
    }
    bool in_time = !o->first || (voters & qn_driver_bit(o->self)) != 0;
    return (voters & ~all) == 0 && (voters & 1) != 0 && in_time ? QN_OK
                                                                : QN_EINVAL;
}

int qn_driver_create(struct qn_driver **out, const struct qn_driver_opts *o)
{
    int err = opts_check(o);
    if (err != QN_OK) {
        return err;
    }
    const struct qn_alloc *a = qn_alloc_or_malloc(o->alloc);
    struct qn_driver *d = qn_alloc_zeroed(a, sizeof *d);
    struct survived *s = qn_alloc_zeroed(a, sizeof *s);
    if (d == NULL || s == NULL) {
        qn_alloc_free(a, d);
        qn_alloc_free(a, s);
        return QN_ENOMEM;
    }
    d->o = *o;
    d->o.alloc = a;
    if (o->voters == qn_driver_group(d)) {
        d->o.voters = 0; /* the same group, whichever way it is said */
    }
    d->memory = o->memory.word != NULL;
    d->keep_from = d->memory ? QN_KEEP_FROM : SIZE_MAX;
    qn_mempool_init(&d->pool, d->keep_from, a);
    d->now = o->now;
    d->machine_deadline = QN_TIME_NEVER;
    d->order.ask_at = d->order.shut_until = QN_TIME_NEVER;
    d->order.successor = d->o.self;
    d->bcast.alloc = a;
    for (qn_node_t i = 0; i < o->nodes; i++) {
        d->peer[i].control.alloc = d->peer[i].bulk.alloc = a;
    }
    qn_positions_init(&d->positions, o->self, o->nodes, o->now);
    qn_dissemination_init(&d->dissemination, o->self, o->nodes);
    qn_ring_choice_init(&d->ring_choice, o->ring != 0 ? o->ring_from : 0,
                        ring_limit(o));
    qn_halt_init(&d->halt, o->self, o->nodes);
    err = begin(d, s);
    qn_alloc_free(a, s);
    if (err != QN_OK) {
        qn_driver_destroy(d);
        return err;
    }
    QN_ASSERT((d->context != NULL) == (o->nodes > 1));
    *out = d;
    return QN_OK;
}

void qn_driver_destroy(struct qn_driver *d)
{
    if (d == NULL) {
        return;
    }
    qn_driver_apply_release(d);
    qn_step_out_release(&d->out); /* it may end in the middle of a turn */
    for (qn_node_t i = 0; i < d->o.nodes; i++) {
        qn_sendq_free(&d->peer[i].control);
        qn_sendq_free(&d->peer[i].bulk);
        qn_joiner_reset(&d->peer[i].joiner);
    }
    qn_sendq_free(&d->bcast);
    qn_joiner_reset(&d->learn_joiner);
    qn_context_destroy(d->context);
    if (d->machine != NULL) {
        qn_onepaxos_fini(d->machine);
        qn_alloc_free(d->o.alloc, d->machine);
    }
    qn_mempool_fini(&d->pool);
    qn_alloc_free_lines(d->o.alloc, (void *)d->told);
    qn_alloc_free(d->o.alloc, d);
}
