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
    qn_leader_heard(p, t->now, peer);
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

static void on_down(struct qn_onepaxos *p, qn_time_t now, qn_node_t peer)
{
    QN_ASSERT(peer < p->nodes && peer != p->self);
    p->alive &= ~QN_BIT(peer);
    p->peer[peer].hold = (struct qn_flow_hold){0};
    qn_flow_down(&p->leader.flow, now, peer);
    p->change.heard &= ~QN_BIT(peer);
    qn_fetch_on_down(p, peer);
    qn_transfer_end(p, peer);
}

/** Nothing that was true of its former life is true of this one. */
static void on_up(struct qn_onepaxos *p, struct qn_step *t, qn_node_t peer,
                  uint64_t inc)
{
    QN_ASSERT(peer < p->nodes && peer != p->self);
    on_down(p, t->now, peer);
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
        p->peer[in->beat.peer].hold = in->beat.hold;
        p->peer[in->beat.peer].read = in->beat.read;
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
        on_down(p, t->now, in->down.peer);
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
    return qn_leader_deadline(p, now);
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
    out->again |= tick && at == t->now && !qn_leader_is_busy(p);
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
