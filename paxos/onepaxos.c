/*
 * The machine: start, dispatcher, status (see onepaxos.h).
 *
 * Inputs are cheap and decide nothing but what they must: a REQUEST is only
 * queued, a SUBMIT only appended. TICK, once per turn, sends requests and
 * fills slots, so that everything which arrived in a turn shares a batch. After
 * every input, what has been learned is applied as far as the outputs reach.
 *
 * The configuration is the newest entry known of the utility log. Handlers ask
 * `cfg`, `role` and `promised`, never a node number.
 */
#include "paxos/onepaxos.h"

#include <stdalign.h>
#include <string.h>

#include "paxos/mutant.h"
#include "paxos/onepaxos_internal.h"

/* ---------------------------------------------------------------- init -- */

static uint32_t pow2_at_least(uint32_t n)
{
    uint32_t p = 1;
    while (p < n) {
        p *= 2;
    }
    return p;
}

static uint32_t credit(const struct qn_onepaxos_opts *o)
{
    uint32_t share = o->params.queue / o->nodes;
    return QN_MAX(share, 1u);
}

/** Where the arrays are behind the struct. */
struct layout {
    uint32_t requests, queue; /* elements, powers of two */
    size_t requests_at, queue_at, ring_at, incoming_at, staged_at, size;
};

static struct layout layout(const struct qn_onepaxos_opts *o)
{
    const size_t to = alignof(max_align_t);
    struct layout l = {.requests = pow2_at_least(credit(o) + 1),
                       .queue = pow2_at_least(o->params.queue)};
    l.requests_at = qn_align_up(sizeof(struct qn_onepaxos), to);
    l.queue_at =
        qn_align_up(l.requests_at + l.requests * sizeof(struct qn_request), to);
    l.ring_at =
        qn_align_up(l.queue_at + l.queue * sizeof(struct qn_blob *), to);
    size_t ring = o->params.ring * sizeof(struct qn_entry);
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
    for (uint32_t n = 0; n < o->nodes; n++) {
        if (o->incarnation[n] == 0) {
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
    uint8_t acceptor = o->nodes > 1 && o->shared == NULL ? 1 : 0;
    return (struct qn_ul_entry){
        .kind = QN_UL_INIT,
        .leader = 0,
        .acceptor = acceptor,
        .leader_inc = o->incarnation[0],
        .acceptor_inc = o->incarnation[acceptor],
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
        .mute = o->mute,
        .pause = QN_MAX(o->params.u_backoff, (qn_time_t)1),
        .seed = o->seed,
    };
    qn_utility_init(&p->ul, &u);
    for (uint32_t i = p->ul.lo; i < p->ul.len; i++) {
        const struct qn_ul_entry *e = qn_utility_entry(&p->ul, i);
        p->cfg = e->kind == QN_UL_VOTER ? p->cfg : *e;
    }
    p->change.seen = p->ul.len;
}

/** A life that begins with the group has its first roles; a later one none,
 *  whatever the utility log says of its id. */
static void init_roles(struct qn_onepaxos *p)
{
    struct qn_change *c = &p->change;
    qn_acceptor_process_init(&p->acceptor, &p->log);
    p->leader.next = 1;
    c->cep = c->sk = c->st_from = c->relieve = QN_EPOCH_NONE;
    c->candidate = QN_NODES_MAX;
    c->lead_at = QN_TIME_NEVER;
    if (QN_MUTANT(AMNESIA) && p->shared == NULL && qn_epoch_accepts(p)) {
        p->acceptor.active = true;
        p->acceptor.tenure = p->cfg.tenure;
    }
    if (p->cfg.kind != QN_UL_INIT) {
        return;
    }
    p->acceptor.active = p->shared == NULL && qn_epoch_accepts(p);
    if (qn_epoch_leads(p)) {
        p->leader.role = QN_ACTIVE;
        c->cep = 0;
        if (p->shared != NULL) {
            qn_takeover_first(p);
        }
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
        .allowed = UINT64_MAX,
        .alive = o->nodes == 64 ? UINT64_MAX : QN_BIT(o->nodes) - 1,
    };
    memcpy(p->incarnation, o->incarnation, o->nodes * sizeof *o->incarnation);
    p->origin.ring = (void *)(at + l.requests_at);
    p->origin.mask = l.requests - 1;
    p->origin.credit = credit(o);
    p->leader.queue = (void *)(at + l.queue_at);
    p->leader.mask = l.queue - 1;
    qn_log_init(&p->log, (void *)(at + l.ring_at), o->params.ring);
    qn_log_init(&p->change.incoming, (void *)(at + l.incoming_at),
                o->params.ring);
    qn_log_init(&p->change.staged, (void *)(at + l.staged_at), o->params.ring);
    p->change.random = o->seed * 2 + 1;
    p->shared = o->shared;
    p->change.said = o->ul == NULL; /* all begin together */
    p->change.heard = o->ul == NULL ? UINT64_MAX : 0;
    init_utility(p, o);
    init_roles(p);
    if (o->resume != NULL && o->resume->position != 0) {
        qn_onepaxos_install(p, o->resume, 0);
    }
    return p;
}

void qn_onepaxos_fini(struct qn_onepaxos *p)
{
    struct qn_origin *o = &p->origin;
    for (; o->head != o->tail; o->head++) {
        qn_blob_unref(o->ring[o->head & o->mask].commands);
    }
    qn_leader_step_down(p);
    qn_takeover_end(p);
    qn_log_fini(&p->log);
    qn_log_clear(&p->change.incoming, 1);
    qn_log_clear(&p->change.staged, 1);
}

void qn_onepaxos_install(struct qn_onepaxos *p, const struct qn_resume *r,
                         qn_time_t now)
{
    QN_ASSERT(r->position > p->applied && p->apply_at == 0);
    bool leads = p->leader.role == QN_ACTIVE || p->leader.role == QN_FROZEN;
    if (leads && r->position >= p->leader.next) {
        qn_leader_step_down(p); /* deposed, and has not heard of it */
    }
    qn_learner_restart(p, r->position, now);
    p->stamp = QN_MAX(p->stamp, r->stamp_ms);
    if (!QN_MUTANT(NO_SESSIONS_KEPT)) {
        memcpy(p->session, r->session, sizeof p->session);
    }
    const struct qn_session *own = &p->session[p->self];
    if (own->inc == p->incarnation[p->self] && own->last > p->origin.applied) {
        qn_origin_applied(p, own->last);
    }
}

bool qn_onepaxos_resume(const struct qn_onepaxos *p, struct qn_resume *out)
{
    *out = (struct qn_resume){.position = p->applied, .stamp_ms = p->stamp};
    memcpy(out->session, p->session, sizeof p->session);
    return p->apply_at == 0;
}

int qn_onepaxos_adopt(struct qn_onepaxos *p, const struct qn_ul_entry *ul,
                      uint32_t count)
{
    return qn_utility_adopt(&p->ul, ul, count);
}

qn_slot_t qn_onepaxos_learned(const struct qn_onepaxos *p)
{
    return p->learned_hi;
}

enum qn_role qn_onepaxos_role(const struct qn_onepaxos *p)
{
    return p->leader.role;
}

bool qn_onepaxos_served(const struct qn_onepaxos *p)
{
    return p->origin.ready == p->cfg.index;
}

bool qn_onepaxos_needs_force(const struct qn_onepaxos *p)
{
    return qn_lead_needs_force(p);
}

bool qn_onepaxos_lacks(const struct qn_onepaxos *p)
{
    return qn_lead_lacks(p);
}

bool qn_onepaxos_lost(const struct qn_onepaxos *p)
{
    return qn_lead_lost(p);
}

uint64_t qn_onepaxos_unapplied(const struct qn_onepaxos *p)
{
    return p->origin.seq - p->origin.applied;
}

const struct qn_utility *qn_onepaxos_utility(const struct qn_onepaxos *p)
{
    return &p->ul;
}

/* ------------------------------------------------------------- outputs -- */

struct qn_out *qn_step_emit(struct qn_step *t, enum qn_out_kind kind)
{
    QN_ASSERT(t->out->count < QN_OUTS_MAX);
    struct qn_out *o = &t->out->out[t->out->count++];
    o->kind = kind;
    return o;
}

struct qn_msg *qn_step_send(struct qn_step *t, qn_node_t to, uint8_t kind)
{
    struct qn_out *o = qn_step_emit(t, QN_OUT_SEND);
    o->to = to;
    o->msg = (struct qn_msg){.kind = kind};
    return &o->msg;
}

void qn_msg_refer(struct qn_msg *m, struct qn_blob *blob)
{
    m->blob = qn_blob_ref(blob);
    m->body = (struct qn_slice){blob->bytes, blob->len};
    m->total = blob->len;
}

void qn_step_out_release(struct qn_step_out *out)
{
    for (uint32_t i = 0; i < out->count; i++) {
        struct qn_out *o = &out->out[i];
        switch (o->kind) {
        case QN_OUT_APPLY:
            qn_blob_unref(o->apply.blob);
            break;
        case QN_OUT_SEND:
        case QN_OUT_SEND_ALL:
        case QN_OUT_BCAST:
            qn_blob_unref(o->msg.blob);
            break;
        case QN_OUT_PERSIST:
        case QN_OUT_NEED_SNAPSHOT:
            break;
        }
    }
    out->count = 0;
}

/* ---------------------------------------------------------------- step -- */

static void on_beat(struct qn_onepaxos *p, struct qn_step *t, qn_node_t peer,
                    qn_slot_t applied, qn_slot_t learned, qn_slot_t decided)
{
    struct qn_peer *x = &p->peer[peer];
    x->applied = QN_MAX(x->applied, applied);
    x->learned = QN_MAX(x->learned, learned);
    qn_learner_decided(p, QN_MAX(learned, decided), t->now);
}

/** Of the process acceptor: with the memory acceptor nobody says it. */
static bool of_process(uint8_t kind)
{
    switch (kind) {
    case QN_MSG_ACCEPT:
    case QN_MSG_ACCEPTED:
    case QN_MSG_NACK:
    case QN_MSG_PREPARE:
    case QN_MSG_PREPARED:
    case QN_MSG_STAGE:
    case QN_MSG_STAGED:
    case QN_MSG_SEAL:
    case QN_MSG_SEALED:
        return true;
    default:
        return false;
    }
}

static int on_recv(struct qn_onepaxos *p, struct qn_step *t, qn_node_t from,
                   const struct qn_msg *m)
{
    QN_ASSERT(from < p->nodes && from != p->self);
    QN_ASSERT((m->flags & QN_MSG_PIECE) == 0);
    if (p->shared != NULL && of_process(m->kind)) {
        return QN_ENOSYS;
    }
    qn_epoch_heard(p, t, from);
    switch (m->kind) {
    case QN_MSG_REQUEST:
        return qn_leader_on_request(p, t, from, m);
    case QN_MSG_REDIRECT:
        qn_origin_on_redirect(p, t, from, m);
        return QN_OK;
    case QN_MSG_ACCEPT:
        return qn_learner_on_accept(p, t, from, m);
    case QN_MSG_LEARN:
        qn_learner_on_learn(p, t, from, m);
        return QN_OK;
    case QN_MSG_ACCEPTED:
        qn_learner_on_accepted(p, t, from, m);
        return QN_OK;
    case QN_MSG_NACK:
        qn_leader_on_nack(p, t, from, m);
        return QN_OK;
    case QN_MSG_PREPARE:
        qn_lead_on_prepare(p, t, from, m);
        return QN_OK;
    case QN_MSG_PREPARED:
        qn_lead_on_prepared(p, t, from, m);
        return QN_OK;
    case QN_MSG_STAGE:
        qn_handoff_on_stage(p, t, from, m);
        return QN_OK;
    case QN_MSG_STAGED:
        qn_handoff_on_staged(p, from, m);
        return QN_OK;
    case QN_MSG_SEAL:
        qn_lead_on_seal(p, t, from, m);
        return QN_OK;
    case QN_MSG_SEALED:
        qn_lead_on_sealed(p, t, from, m);
        return QN_OK;
    case QN_MSG_U_PREPARE:
    case QN_MSG_U_PROMISE:
    case QN_MSG_U_REJECT:
    case QN_MSG_U_ACCEPT:
    case QN_MSG_U_ACCEPTED:
    case QN_MSG_U_CHOSEN:
    case QN_MSG_U_NEED:
        qn_utility_on_msg(&p->ul, t, from, m);
        qn_epoch_learn(p, t);
        return QN_OK;
    case QN_MSG_FETCH:
        qn_fetch_on_fetch(p, t, from, m);
        return QN_OK;
    case QN_MSG_FILL:
        qn_fetch_on_fill(p, t, from, m);
        return QN_OK;
    case QN_MSG_BEAT:
        on_beat(p, t, from, m->beat.applied, m->beat.learned, m->beat.decided);
        qn_epoch_behind(p, t, from, m->epoch);
        return QN_OK;
    default:
        return QN_ENOSYS;
    }
}

static void on_tick(struct qn_onepaxos *p, struct qn_step *t)
{
    qn_epoch_check(p, t);
    if (t->now >= p->retry_at) {
        qn_origin_flush(p, t);
        qn_leader_fill(p, t);
    }
}

static void on_down(struct qn_onepaxos *p, qn_node_t peer)
{
    QN_ASSERT(peer < p->nodes && peer != p->self);
    p->alive &= ~QN_BIT(peer);
    p->change.heard &= ~QN_BIT(peer);
    qn_fetch_on_down(p, peer);
    qn_transfer_end(p, peer);
}

/** Nothing that was true of its former life is true of this one. */
static void on_up(struct qn_onepaxos *p, struct qn_step *t, qn_node_t peer,
                  uint64_t inc)
{
    QN_ASSERT(peer < p->nodes && peer != p->self);
    on_down(p, peer);
    p->incarnation[peer] = inc;
    p->alive |= QN_BIT(peer);
    p->change.suspected &= ~QN_BIT(peer);
    p->peer[peer] = (struct qn_peer){.later = true};
    p->fetch.unable &= ~QN_BIT(peer);
    qn_handoff_restarted(p, peer);
    qn_utility_up(&p->ul, t, peer);
    qn_epoch_greet(p, t, peer);
    qn_lead_welcome(p, t, peer);
}

static int dispatch(struct qn_onepaxos *p, const struct qn_input *in,
                    struct qn_step *t)
{
    switch (in->kind) {
    case QN_IN_RECV:
        return on_recv(p, t, in->recv.from, in->recv.msg);
    case QN_IN_PIECE:
        qn_fetch_on_piece(p, t, in->piece.from, in->piece.kind, in->piece.slot);
        return QN_OK;
    case QN_IN_TICK:
        on_tick(p, t);
        return QN_OK;
    case QN_IN_SUBMIT:
        return qn_origin_submit(p, in->submit.parts, in->submit.count,
                                &t->out->seq);
    case QN_IN_STAMP:
        p->origin.want_stamp = true;
        return QN_OK;
    case QN_IN_BEAT:
        QN_ASSERT(in->beat.peer < p->nodes);
        on_beat(p, t, in->beat.peer, in->beat.applied, in->beat.learned,
                in->beat.decided);
        return QN_OK;
    case QN_IN_ROOM:
        qn_fetch_on_room(p, t, in->room.peers);
        qn_transfer_on_room(p, t, in->room.peers);
        return QN_OK;
    case QN_IN_SUSPECT:
        p->change.suspected = in->suspect.peers;
        return QN_OK;
    case QN_IN_LEAD:
        qn_epoch_relieve(p, t);
        return QN_OK;
    case QN_IN_RECOVER:
        return qn_lead_recover(p, t->now);
    case QN_IN_DOWN:
        on_down(p, in->down.peer);
        return QN_OK;
    case QN_IN_UP:
        on_up(p, t, in->up.peer, in->up.inc);
        return QN_OK;
    case QN_IN_GO:
        return QN_OK;
    }
    return QN_EINVAL;
}

/** When TICK would send a request or fill a slot; or QN_TIME_NEVER. */
static qn_time_t turn_at(const struct qn_onepaxos *p, qn_time_t now)
{
    const struct qn_origin *o = &p->origin;
    bool requests = (o->sent != o->tail && !o->blocked) || o->want_stamp;
    if ((requests && o->ready == p->cfg.index) || qn_leader_may_ask(p)) {
        return QN_MAX(p->retry_at, now);
    }
    return qn_leader_can_fill(p)
               ? QN_MAX(QN_MAX(p->retry_at, p->leader.fill_at), now)
               : QN_TIME_NEVER;
}

static void finish(struct qn_onepaxos *p, struct qn_step *t, bool tick)
{
    struct qn_step_out *out = t->out;
    out->transfers = p->fetch.transfers | p->change.answers;
    out->held = p->applied < p->learned_hi && p->allowed == 0;
    out->again = p->applied < p->learned_hi && !out->held;
    out->deadline = QN_MIN(qn_fetch_deadline(p), qn_epoch_deadline(p));
    qn_time_t at = turn_at(p, t->now);
    out->deadline = QN_MIN(out->deadline, at);
    /* The outputs were full; a long batch goes on in the next turn. */
    out->again |= tick && at == t->now && !p->leader.begun;
    QN_ASSERT(p->applied <= p->learned_hi && p->learned_hi <= p->decided_hi);
}

int qn_onepaxos_step(struct qn_onepaxos *p, const struct qn_input *in,
                     qn_time_t now, uint64_t wall_ms, struct qn_step_out *out)
{
    struct qn_step t = {.now = now, .wall_ms = wall_ms, .out = out};
    out->count = 0;
    int err = dispatch(p, in, &t);
    if (err == QN_OK) {
        qn_learner_apply(p, &t);
    } else {
        QN_ASSERT(out->count == 0);
    }
    if (in->kind == QN_IN_TICK) {
        qn_learner_truncate(p);
        qn_fetch_check(p, &t);
    }
    finish(p, &t, in->kind == QN_IN_TICK);
    return err;
}

void qn_onepaxos_allow(struct qn_onepaxos *p, uint64_t commands)
{
    p->allowed = commands;
}

void qn_onepaxos_slow(struct qn_onepaxos *p, qn_time_t gap)
{
    p->leader.gap = gap;
    p->leader.fill_at = gap == 0 ? 0 : p->leader.fill_at;
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
        .seq = p->origin.seq,
        .unapplied = qn_onepaxos_unapplied(p),
        .queued = p->leader.queued,
        .fetches = p->fetch.count,
        .need_snapshot = p->fetch.need_snapshot,
        .lost = qn_lead_lost(p),
    };
}
