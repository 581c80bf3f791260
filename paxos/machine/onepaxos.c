/*
 * The machine: its dispatcher (see onepaxos.h).
 *
 * Inputs are cheap and decide nothing but what they must: a REQUEST is only
 * queued, a SUBMIT only appended. TICK, once per turn, sends requests and
 * fills slots, so that everything which arrived in a turn shares a batch. After
 * every input, what has been learned is applied as far as the outputs reach.
 *
 * The configuration is the newest entry known of the utility log. Handlers ask
 * `cfg`, `role` and `promised`, never a node number.
 */
#include "paxos/machine/onepaxos.h"

#include <string.h>

#include "core/earlier.h"
#include "paxos/machine/onepaxos_internal.h"
#include "paxos/mutant.h"

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

void qn_msg_refer(struct qn_msg *m, struct qn_refbuf *refbuf)
{
    QN_ASSERT(m->refbuf == NULL); /* a message has one body */
    m->refbuf = qn_refbuf_ref(refbuf);
    m->body = (struct qn_slice){refbuf->bytes, refbuf->len};
    m->total = refbuf->len;
}

void qn_step_out_release(struct qn_step_out *out)
{
    for (uint32_t i = 0; i < out->count; i++) {
        struct qn_out *o = &out->out[i];
        switch (o->kind) {
        case QN_OUT_APPLY:
            qn_refbuf_unref(o->apply.refbuf);
            break;
        case QN_OUT_SEND:
        case QN_OUT_SEND_ALL:
        case QN_OUT_BCAST:
            qn_refbuf_unref(o->msg.refbuf);
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
    qn_propose_heard(p, t->now, peer);
}

/** Messages of the process acceptor: with the memory acceptor no node sends
 *  them. */
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
    case QN_MSG_READ_INDEX:
    case QN_MSG_READ_AT:
        return true;
    default:
        return false;
    }
}

/** Messages whose body is entries of the utility log. */
static bool brings_entries(const struct qn_msg *m)
{
    switch (m->kind) {
    case QN_MSG_PREPARE:
    case QN_MSG_SEAL:
    case QN_MSG_U_PREPARE:
    case QN_MSG_U_PROMISE:
    case QN_MSG_U_ACCEPT:
    case QN_MSG_U_CHOSEN:
        return true;
    case QN_MSG_STAGE:
        return (m->flags & QN_MSG_UL) != 0;
    default:
        return false;
    }
}

/** No entry is voted for, or learned, that another group would have. */
static bool entries_fit(const struct qn_onepaxos *p, struct qn_slice body)
{
    struct qn_ul_entry e;
    for (uint32_t i = 0; qn_ul_decode(&e, body, i) == QN_OK; i++) {
        if (!qn_reconfigure_fits(p, &e)) {
            return false;
        }
    }
    return true;
}

static int on_recv(struct qn_onepaxos *p, struct qn_step *t, qn_node_t from,
                   const struct qn_msg *m)
{
    QN_ASSERT(from < p->nodes);
    QN_ASSERT(from != p->self);
    QN_ASSERT((m->flags & QN_MSG_FRAGMENT) == 0);
    if (p->memory != NULL && of_process(m->kind)) {
        return QN_ENOSYS;
    }
    if (brings_entries(m) && !entries_fit(p, m->body)) {
        return QN_ECORRUPT;
    }
    qn_reconfigure_heard(p, t, from);
    switch (m->kind) {
    case QN_MSG_REQUEST:
        return qn_propose_on_request(p, t, from, m);
    case QN_MSG_REDIRECT:
        qn_origin_on_redirect(p, t, from, m);
        return QN_OK;
    case QN_MSG_ACCEPT:
        return qn_acceptor_on_accept(p, t, from, m);
    case QN_MSG_LEARN:
        qn_learner_on_learn(p, t, from, m);
        return QN_OK;
    case QN_MSG_ACCEPTED:
        qn_learner_on_accepted(p, t, from, m);
        return QN_OK;
    case QN_MSG_NACK:
        qn_propose_on_nack(p, t, from, m);
        return QN_OK;
    case QN_MSG_PREPARE:
        qn_leader_change_on_prepare(p, t, from, m);
        return QN_OK;
    case QN_MSG_PREPARED:
        qn_leader_change_on_prepared(p, t, from, m);
        return QN_OK;
    case QN_MSG_STAGE:
        qn_acceptor_change_on_stage(p, t, from, m);
        return QN_OK;
    case QN_MSG_STAGED:
        qn_acceptor_change_on_staged(p, from, m);
        return QN_OK;
    case QN_MSG_SEAL:
        qn_leader_change_on_seal(p, t, from, m);
        return QN_OK;
    case QN_MSG_SEALED:
        qn_leader_change_on_sealed(p, t, from, m);
        return QN_OK;
    case QN_MSG_U_PREPARE:
    case QN_MSG_U_PROMISE:
    case QN_MSG_U_REJECT:
    case QN_MSG_U_ACCEPT:
    case QN_MSG_U_ACCEPTED:
    case QN_MSG_U_CHOSEN:
    case QN_MSG_U_NEED:
        qn_utility_on_msg(&p->ul, t, from, m);
        qn_reconfigure_learn(p, t);
        return QN_OK;
    case QN_MSG_FETCH:
        qn_catch_up_on_fetch(p, t, from, m);
        return QN_OK;
    case QN_MSG_FILL:
        qn_catch_up_on_fill(p, t, from, m);
        return QN_OK;
    case QN_MSG_READ_INDEX:
        qn_read_index_on_question(p, t, from, m);
        return QN_OK;
    case QN_MSG_READ_AT:
        qn_read_index_on_answer(p, t, from, m);
        return QN_OK;
    case QN_MSG_BEAT:
        on_beat(p, t, from, m->beat.applied, m->beat.learned, m->beat.decided);
        qn_reconfigure_behind(p, t, from, m->epoch);
        if (m->beat.ul_len > qn_utility_len(&p->ul)) {
            qn_utility_ask(&p->ul, t, from); /* entries that begin no epoch */
        }
        return QN_OK;
    default:
        return QN_ENOSYS;
    }
}

static void on_tick(struct qn_onepaxos *p, struct qn_step *t)
{
    qn_reconfigure_check(p, t);
    if (t->now >= p->retry_at) {
        qn_origin_flush(p, t);
        qn_propose_fill(p, t);
    }
}

static void on_down(struct qn_onepaxos *p, qn_time_t now, qn_node_t peer)
{
    QN_ASSERT(peer < p->nodes);
    QN_ASSERT(peer != p->self);
    p->alive &= ~QN_BIT(peer);
    qn_origin_share(p);
    p->peer[peer].hold = (struct qn_flow_hold){0};
    qn_flow_down(&p->leader.flow, now, peer);
    p->change.heard &= ~QN_BIT(peer);
    qn_catch_up_on_down(p, peer);
    qn_bulk_reply_end(p, peer);
}

/** A new incarnation: nothing that was true of the former one holds. */
static void on_up(struct qn_onepaxos *p, struct qn_step *t, qn_node_t peer,
                  uint64_t inc)
{
    QN_ASSERT(peer < p->nodes);
    QN_ASSERT(peer != p->self);
    QN_ASSERT(inc > p->incarnation[peer]); /* no incarnation comes twice */
    on_down(p, t->now, peer);
    p->incarnation[peer] = inc;
    p->alive |= QN_BIT(peer);
    qn_origin_share(p);
    p->change.suspected &= ~QN_BIT(peer);
    p->peer[peer] = (struct qn_peer){.later = true};
    p->catch_up.unable &= ~QN_BIT(peer);
    qn_acceptor_change_restarted(p, peer);
    qn_utility_up(&p->ul, t, peer);
    qn_reconfigure_greet(p, t, peer);
    qn_leader_change_welcome(p, t, peer);
}

static int dispatch(struct qn_onepaxos *p, const struct qn_input *in,
                    struct qn_step *t)
{
    switch (in->kind) {
    case QN_IN_RECV:
        return on_recv(p, t, in->recv.from, in->recv.msg);
    case QN_IN_FRAGMENT:
        qn_catch_up_on_fragment(p, t, in->fragment.from, in->fragment.kind,
                                in->fragment.slot);
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
        p->peer[in->beat.peer].hold = in->beat.hold;
        p->peer[in->beat.peer].read = in->beat.read;
        on_beat(p, t, in->beat.peer, in->beat.applied, in->beat.learned,
                in->beat.decided);
        return QN_OK;
    case QN_IN_ROOM:
        qn_catch_up_on_room(p, t, in->room.peers);
        qn_bulk_reply_on_room(p, t, in->room.peers);
        return QN_OK;
    case QN_IN_SUSPECT:
        QN_ASSERT((in->suspect.peers & ~qn_group_mask(p->nodes)) == 0);
        p->change.suspected = in->suspect.peers;
        return QN_OK;
    case QN_IN_LEAD:
        qn_reconfigure_relieve(p, t);
        return QN_OK;
    case QN_IN_RECOVER:
        return qn_leader_change_recover(p, t);
    case QN_IN_DOWN:
        on_down(p, t->now, in->down.peer);
        return QN_OK;
    case QN_IN_UP:
        on_up(p, t, in->up.peer, in->up.inc);
        return QN_OK;
    case QN_IN_GO:
        return QN_OK;
    case QN_IN_READ:
        qn_read_index_on_read(p, t, in->read.fresh);
        return QN_OK;
    case QN_IN_SEAT:
        return qn_reconfigure_member(p, in->seat);
    }
    return QN_EINVAL;
}

/** When TICK would send a request or fill a slot; or QN_TIME_NEVER. */
static qn_time_t turn_at(const struct qn_onepaxos *p, qn_time_t now)
{
    const struct qn_origin *o = &p->origin;
    bool requests = (o->sent != o->tail && !o->blocked) || o->want_stamp;
    if ((requests && o->ready == p->cfg.index) || qn_propose_may_ask(p)) {
        return QN_MAX(p->retry_at, now);
    }
    return qn_propose_deadline(p, now);
}

/** What holds between any two steps (3.2). Checked once per turn: a step may
 *  be as short as one message, and a check in each costs 7 % of their
 *  instructions. */
static void check_state(const struct qn_onepaxos *p)
{
    const struct qn_leader *l = &p->leader;
    QN_ASSERT(p->log.lo <= p->applied + 1); /* only applied slots are dropped */
    QN_ASSERT(p->log.counted == p->learned_hi);
    QN_ASSERT(p->acceptor.hi <= p->learned_hi || QN_MUTANT(TAKE_BEHIND) ||
              QN_MUTANT(STALE_HI)); /* accepted is learned */
    QN_ASSERT(p->acceptor.promised <= qn_utility_len(&p->ul));
    QN_ASSERT(p->change.seen <= qn_utility_len(&p->ul));
    /* I2: a role belongs to the newest epoch known, which names this
     * incarnation. */
    QN_ASSERT(l->role == QN_FOLLOWER || l->ep == p->cfg.index ||
              QN_MUTANT(NO_STEP_DOWN));
    QN_ASSERT(l->role == QN_FOLLOWER || qn_epoch_leads(p) ||
              QN_MUTANT(NO_STEP_DOWN));
    QN_ASSERT(l->role == QN_ACTIVE || qn_queue_empty(&l->queue) ||
              QN_MUTANT(NO_STEP_DOWN) || QN_MUTANT(NO_FREEZE));
    /* The memory acceptor decides at once. */
    QN_ASSERT(p->memory == NULL || l->inflight_bytes == 0);
    QN_ASSERT(p->change.cep == QN_EPOCH_NONE || p->change.cep <= l->ep);
    QN_ASSERT((p->alive & QN_BIT(p->self)) != 0);
    QN_ASSERT((p->alive & ~qn_group_mask(p->nodes)) == 0);
}

static void finish(struct qn_onepaxos *p, struct qn_step *t, bool tick)
{
    struct qn_step_out *out = t->out;
    out->transfers = p->catch_up.transfers | p->change.answers;
    const bool more = p->applied < p->learned_hi && !p->apply_suspended;
    out->apply_pending = more && p->apply_budget == 0;
    out->again = more && !out->apply_pending;
    out->deadline = qn_time_earlier(qn_catch_up_deadline(p),
                                    qn_reconfigure_deadline(p, t->now));
    qn_time_t at = turn_at(p, t->now);
    out->deadline = QN_MIN(out->deadline, at);
    /* The outputs were full; a long batch goes on in the next turn. */
    out->again |= tick && at == t->now && !qn_propose_is_busy(p);
    QN_ASSERT(p->applied <= p->learned_hi);
    QN_ASSERT(p->learned_hi <= p->decided_hi);
    if (tick) {
        check_state(p);
    }
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
        qn_catch_up_check(p, &t);
    }
    finish(p, &t, in->kind == QN_IN_TICK);
    return err;
}

void qn_onepaxos_set_apply_budget(struct qn_onepaxos *p, uint64_t commands)
{
    p->apply_budget = commands;
}

void qn_onepaxos_suspend_apply(struct qn_onepaxos *p, bool suspended)
{
    p->apply_suspended = suspended;
}

void qn_onepaxos_set_propose_interval(struct qn_onepaxos *p, qn_time_t interval)
{
    p->leader.interval = interval;
    p->leader.fill_at = interval == 0 ? 0 : p->leader.fill_at;
}
