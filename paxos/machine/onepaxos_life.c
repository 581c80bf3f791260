/* The machine begins and ends, goes on from a snapshot, and reports its
 * state (onepaxos.h). All arrays lie behind the struct, in one block of
 * memory. */
#include "paxos/machine/onepaxos.h"

#include <stdalign.h>
#include <string.h>

#include "paxos/machine/onepaxos_internal.h"
#include "paxos/mutant.h"

static uint32_t pow2_at_least(uint32_t n)
{
    uint32_t p = 1;
    while (p < n) {
        p *= 2;
    }
    return p;
}

/** Requests that an origin keeps, at most: each holds a command of its credit,
 *  and with vacant seats one member may have all of it. */
static uint32_t requests(const struct qn_onepaxos_opts *o)
{
    uint32_t members = o->memory != NULL ? 1 : o->nodes;
    return pow2_at_least(QN_MAX(o->params.queue / members, 1u));
}

/** Where the arrays are behind the struct. */
struct layout {
    uint32_t requests, queue; /* elements, powers of two */
    size_t requests_at, queue_at, ring_at, incoming_at, staged_at, size;
};

static struct layout layout(const struct qn_onepaxos_opts *o)
{
    const size_t to = alignof(max_align_t);
    struct layout l = {.requests = requests(o),
                       .queue = pow2_at_least(o->params.queue)};
    l.requests_at = qn_align_up(sizeof(struct qn_onepaxos), to);
    l.queue_at = qn_align_up(
        l.requests_at + l.requests * sizeof(struct qn_origin_request), to);
    l.ring_at = qn_align_up(l.queue_at + l.queue * sizeof(struct qn_draft), to);
    size_t ring = o->params.ring * sizeof(struct qn_log_entry);
    l.incoming_at = l.ring_at + ring;
    l.staged_at = l.incoming_at + ring;
    l.size = l.staged_at + ring;
    return l;
}

static bool opts_sane(const struct qn_onepaxos_opts *o)
{
    const struct qn_params *v = &o->params;
    if (o->nodes == 0 || o->nodes > QN_NODES_MAX || o->self >= o->nodes ||
        o->parent >= o->nodes || o->alloc == NULL) {
        return false;
    }
    if (o->voters != 0 && (o->memory == NULL || (o->voters & 1) == 0 ||
                           (o->voters & ~qn_group_mask(o->nodes)) != 0)) {
        return false;
    }
    for (uint32_t n = 0; n < o->nodes; n++) {
        bool vacant =
            o->memory != NULL && n != o->self &&
            (o->ul != NULL || (o->voters != 0 && (o->voters & QN_BIT(n)) == 0));
        if (o->incarnation[n] == 0 && !vacant) {
            return false;
        }
    }
    return qn_is_pow2(v->ring) && v->ring <= (1u << 30) && v->window != 0 &&
           v->window < v->ring / 2 && v->queue != 0 && v->queue <= (1u << 20) &&
           v->batch_commands != 0 && v->batch_commands <= v->queue;
}

size_t qn_onepaxos_size(const struct qn_onepaxos_opts *o)
{
    return opts_sane(o) ? layout(o).size : 0;
}

/** Entry 0 of the utility log (PROTOCOL.md 2). */
static struct qn_ul_entry first_entry(const struct qn_onepaxos_opts *o)
{
    uint8_t acceptor = o->nodes > 1 && o->memory == NULL ? 1 : 0;
    return (struct qn_ul_entry){
        .kind = QN_UL_INIT,
        .leader = 0,
        .acceptor = acceptor,
        .leader_inc = o->incarnation[0],
        .acceptor_inc = o->incarnation[acceptor],
        .voters = o->voters,
    };
}

static void init_utility(struct qn_onepaxos *p,
                         const struct qn_onepaxos_opts *o)
{
    const struct qn_ul_entry first = first_entry(o);
    const struct qn_utility_opts u = {
        .self = o->self,
        .nodes = o->nodes,
        .self_inc = o->incarnation[o->self],
        .alloc = o->alloc,
        .log = o->ul != NULL ? o->ul : &first,
        .count = o->ul != NULL ? o->ul_count : 1,
        .vote = o->vote,
        .non_voting = o->non_voting,
        .pause = QN_MAX(o->params.u_backoff, (qn_time_t)1),
        .seed = o->seed,
    };
    qn_utility_init(&p->ul, &u);
    for (uint32_t i = p->ul.lo; i < p->ul.len; i++) {
        const struct qn_ul_entry *e = qn_utility_entry(&p->ul, i);
        p->cfg = qn_ul_begins_epoch(e) ? *e : p->cfg;
        qn_reconfigure_note(p, e);
    }
    QN_ASSERT(p->cfg.index <= p->ul.len);
    p->change.seen = p->ul.len;
}

/** An incarnation that begins with the group has its first roles. A later one
 *  has none, whatever the utility log says of its id. */
static void init_roles(struct qn_onepaxos *p)
{
    struct qn_reconfiguration *c = &p->change;
    if (p->memory != NULL) {
        qn_acceptor_memory_init(&p->acceptor, p->memory);
    } else {
        qn_acceptor_process_init(&p->acceptor, &p->log);
    }
    p->leader.next = 1;
    c->cep = c->sk = c->st_from = c->relieve = QN_EPOCH_NONE;
    c->candidate = QN_NODES_MAX;
    c->lead_at = c->finish_at = QN_TIME_NEVER;
    if (QN_MUTANT(AMNESIA) && p->memory == NULL && qn_epoch_accepts(p)) {
        p->acceptor.active = true;
        p->acceptor.tenure = p->cfg.tenure;
    }
    if (p->cfg.kind != QN_UL_INIT) {
        return;
    }
    p->acceptor.active = p->memory == NULL && qn_epoch_accepts(p);
    if (qn_epoch_leads(p)) {
        p->leader.role = QN_ACTIVE;
        c->cep = 0;
        if (p->memory != NULL) {
            qn_memory_leader_first(p);
        }
        qn_propose_begin(p, 0);
    }
}

struct qn_onepaxos *qn_onepaxos_init(void *mem,
                                     const struct qn_onepaxos_opts *o)
{
    QN_ASSERT(opts_sane(o));
    struct layout l = layout(o);
    struct qn_onepaxos *p = mem;
    char *at = mem;
    *p = (struct qn_onepaxos){
        .self = o->self,
        .parent = o->parent,
        .nodes = o->nodes,
        .alloc = o->alloc,
        .params = o->params,
        .apply_budget = UINT64_MAX,
    };
    memcpy(p->incarnation, o->incarnation, o->nodes * sizeof *o->incarnation);
    for (qn_node_t n = 0; n < o->nodes; n++) {
        p->alive |= o->incarnation[n] != 0 ? QN_BIT(n) : 0;
    }
    qn_flow_init(&p->leader.flow, o->self, o->nodes, &o->params.flow);
    p->origin.ring = (void *)(at + l.requests_at);
    p->origin.mask = l.requests - 1;
    qn_origin_share(p);
    qn_queue_init(&p->leader.queue, (void *)(at + l.queue_at), l.queue);
    qn_log_init(&p->log, (void *)(at + l.ring_at), o->params.ring);
    qn_log_init(&p->change.incoming, (void *)(at + l.incoming_at),
                o->params.ring);
    qn_log_init(&p->change.staged, (void *)(at + l.staged_at), o->params.ring);
    p->change.random = o->seed * 2 + 1;
    p->memory = o->memory;
    p->uploads = o->uploads;
    p->change.said = o->ul == NULL; /* all begin together */
    p->change.heard = o->ul == NULL ? UINT64_MAX : 0;
    init_utility(p, o);
    init_roles(p);
    if (o->resume != NULL) {
        qn_reconfigure_ended(p, o->resume->ended);
    }
    if (o->resume != NULL && o->resume->position != 0) {
        qn_onepaxos_install(p, o->resume, 0);
    }
    return p;
}

void qn_onepaxos_fini(struct qn_onepaxos *p)
{
    struct qn_origin *o = &p->origin;
    for (; o->head != o->tail; o->head++) {
        qn_refbuf_unref(o->ring[o->head & o->mask].commands);
    }
    qn_propose_step_down(p);
    qn_memory_leader_end(p);
    qn_log_fini(&p->log);
    qn_log_clear(&p->change.incoming, 1);
    qn_log_clear(&p->change.staged, 1);
}

void qn_onepaxos_install(struct qn_onepaxos *p, const struct qn_resume *r,
                         qn_time_t now)
{
    QN_ASSERT(r->position >= p->applied); /* applied never falls */
    QN_ASSERT(p->state_lost != 0 ? r->position >= p->state_lost
                                 : r->position > p->applied);
    QN_ASSERT(p->apply_at == 0); /* and not amid a slot */
    p->state_lost = 0;
    bool leads =
        p->leader.role == QN_ACTIVE || p->leader.role == QN_HANDING_OVER;
    if (leads && r->position >= p->leader.next) {
        qn_propose_step_down(p); /* deposed, and has not heard of it */
    }
    qn_learner_restart(p, r->position, now);
    QN_ASSERT(p->applied == r->position);
    p->stamp = QN_MAX(p->stamp, r->stamp_ms);
    if (!QN_MUTANT(NO_SESSIONS_KEPT)) {
        memcpy(p->session, r->session, sizeof p->session);
    }
    qn_reconfigure_ended(p, r->ended);
    const struct qn_session *own = &p->session[p->self];
    if (own->inc == p->incarnation[p->self] && own->last > p->origin.applied) {
        qn_origin_applied(p, own->last);
    }
}

void qn_onepaxos_discard(struct qn_onepaxos *p, const struct qn_resume *r)
{
    qn_reconfigure_ended(p, r->ended);
}

qn_slot_t qn_onepaxos_lose_state(struct qn_onepaxos *p)
{
    if (p->state_lost == 0) {
        p->state_lost = p->applied + (p->apply_at != 0);
        p->apply_at = 0;
    }
    return p->state_lost;
}

bool qn_onepaxos_resume(const struct qn_onepaxos *p, struct qn_resume *out)
{
    QN_ASSERT(p->applied <= p->learned_hi);
    *out = (struct qn_resume){.position = p->applied, .stamp_ms = p->stamp};
    memcpy(out->session, p->session, sizeof p->session);
    memcpy(out->ended, p->change.ended, sizeof p->change.ended);
    return p->apply_at == 0;
}

int qn_onepaxos_adopt(struct qn_onepaxos *p, const struct qn_ul_entry *ul,
                      uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!qn_reconfigure_fits(p, &ul[i])) {
            return QN_EINVAL;
        }
    }
    return qn_utility_adopt(&p->ul, ul, count);
}

/* -------------------------------------------------------------- status -- */

qn_slot_t qn_onepaxos_learned(const struct qn_onepaxos *p)
{
    return p->learned_hi;
}

enum qn_role qn_onepaxos_role(const struct qn_onepaxos *p)
{
    return p->leader.role;
}

struct qn_onepaxos_kept qn_onepaxos_kept(const struct qn_onepaxos *p)
{
    return (struct qn_onepaxos_kept){
        .log = {p->log.bytes, p->log.most, p->params.log_bytes},
        .requests = {p->origin.bytes, p->origin.most, p->origin.credit_bytes},
    };
}

uint64_t qn_onepaxos_read_number(const struct qn_onepaxos *p)
{
    return p->reads.asked + 1;
}

uint64_t qn_onepaxos_read_reached(struct qn_onepaxos *p)
{
    return qn_read_index_reached(&p->reads, p->applied);
}

bool qn_onepaxos_read_waits(const struct qn_onepaxos *p)
{
    return qn_read_index_waits(&p->reads);
}

qn_time_t qn_onepaxos_read_again_at(const struct qn_onepaxos *p)
{
    return p->reads.again_at;
}

uint64_t qn_onepaxos_read(const struct qn_onepaxos *p)
{
    return p->catch_up.read;
}

uint64_t qn_onepaxos_bytes_above(const struct qn_onepaxos *p, qn_slot_t slot)
{
    return qn_log_bytes_above(&p->log, slot);
}

void qn_onepaxos_limits(struct qn_onepaxos *p, qn_time_t timeout,
                        uint32_t min_awaited)
{
    qn_flow_change(&p->leader.flow, timeout, min_awaited);
}

const struct qn_flow *qn_onepaxos_flow(const struct qn_onepaxos *p)
{
    return &p->leader.flow;
}

bool qn_onepaxos_served(const struct qn_onepaxos *p)
{
    return p->origin.ready == p->cfg.index;
}

bool qn_onepaxos_needs_force(const struct qn_onepaxos *p)
{
    return qn_leader_change_needs_force(p);
}

bool qn_onepaxos_lacks(const struct qn_onepaxos *p)
{
    return qn_leader_change_lacks(p);
}

bool qn_onepaxos_lost(const struct qn_onepaxos *p)
{
    return qn_leader_change_lost(p);
}

bool qn_onepaxos_damaged(const struct qn_onepaxos *p,
                         struct qn_accept_register w)
{
    return qn_memory_leader_damaged(p, w);
}

uint64_t qn_onepaxos_unapplied(const struct qn_onepaxos *p)
{
    QN_ASSERT(p->origin.applied <= p->origin.seq);
    return p->origin.seq - p->origin.applied;
}

const struct qn_utility *qn_onepaxos_utility(const struct qn_onepaxos *p)
{
    return &p->ul;
}

bool qn_onepaxos_rests(const struct qn_onepaxos *p)
{
    return p->origin.seq == p->origin.applied;
}

bool qn_onepaxos_room(const struct qn_onepaxos *p)
{
    return qn_origin_has_credit(p);
}

void qn_onepaxos_status(const struct qn_onepaxos *p,
                        struct qn_onepaxos_status *st)
{
    *st = (struct qn_onepaxos_status){
        .role = p->leader.role,
        .epoch = p->cfg.index,
        .ul_len = qn_utility_len(&p->ul),
        .leader = p->cfg.leader,
        .acceptor = p->cfg.acceptor,
        .applied = p->applied,
        .learned_hi = p->learned_hi,
        .decided_hi = p->decided_hi,
        .log_lo = p->log.lo,
        .next = p->leader.next,
        .log_bytes = p->log.bytes,
        .alive = p->alive,
        .voters = qn_utility_voters(&p->ul),
        .changing = p->change.wanted,
        .changed = p->change.ended_as,
        .removed = qn_utility_removed(&p->ul),
        .seq = p->origin.seq,
        .unapplied = qn_onepaxos_unapplied(p),
        .queued = p->leader.queue.commands,
        .fetches = p->catch_up.count,
        .need_snapshot = p->catch_up.need_snapshot,
        .lost = qn_leader_change_lost(p),
    };
}

void qn_onepaxos_times(struct qn_onepaxos *p, const struct qn_params *v)
{
    struct qn_params *own = &p->params;
    own->t_gap = v->t_gap;
    own->t_fetch = v->t_fetch;
    own->t_acc = v->t_acc;
    own->t_lead = v->t_lead;
    own->jitter = v->jitter;
    own->t_rank = v->t_rank;
    own->t_read = v->t_read;
    own->u_backoff = v->u_backoff;
    p->ul.pause_least = QN_MAX(v->u_backoff, (qn_time_t)1);
    p->ul.pause = QN_MAX(p->ul.pause, p->ul.pause_least);
}
