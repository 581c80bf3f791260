/*
 * The cluster: see cluster.h. A step of a node, and its outputs executed; what
 * must hold after each is in cluster_check.c. A node that is doomed dies
 * between two outputs.
 */
#include "tests/sim/paxos/cluster.h"

#include <xxhash.h>

#include "paxos/machine/onepaxos_internal.h"
#include "tests/sim/paxos/cluster_internal.h"

static void persist(struct cluster *c, qn_node_t i, const struct qn_vote *vote)
{
    struct member *m = &c->member[i];
    const struct qn_utility *u = qn_onepaxos_utility(m->p);
    m->record.vote = *vote;
    if (m->record.lost && c->cover != NULL) {
        c->cover->row[COVERAGE_VOTES_AGAIN]++;
    }
    m->record.lost = false;
    for (uint32_t *n = &m->record.count; *n < vote->index; (*n)++) {
        CHECK(c, *n < CLUSTER_ENTRIES, "run too long");
        /* NULL: so old that a snapshot has brought the log without it. */
        const struct qn_ul_entry *e = qn_utility_entry(u, *n);
        m->record.log[*n] = e != NULL ? *e : c->entry[*n];
    }
}

static void execute(struct cluster *c, qn_node_t i, const struct qn_out *o)
{
    switch (o->kind) {
    case QN_OUT_SEND:
        cluster_post(c, i, o->to, &o->msg, false);
        break;
    case QN_OUT_SEND_ALL:
    case QN_OUT_BCAST:
        for (qn_node_t k = 0; k < c->nodes; k++) {
            if (k != i && (o->kind == QN_OUT_SEND_ALL || k != o->to)) {
                cluster_post(c, i, k, &o->msg, o->kind == QN_OUT_BCAST);
            }
        }
        break;
    case QN_OUT_PERSIST:
        persist(c, i, &o->vote);
        break;
    case QN_OUT_APPLY:
        cluster_check_apply(c, i, &o->apply);
        cluster_shown(c, o->apply.slot);
        break;
    case QN_OUT_NEED_SNAPSHOT:
        c->member[i].need_snapshot = true;
        cluster_check_awaited(c, i);
        break;
    }
}

/** All that a step did, so that two runs can be compared. */
static void trace(struct cluster *c, qn_node_t node, const struct qn_input *in,
                  int err)
{
    const struct member *m = &c->member[node];
    const uint64_t step[] = {c->now,         c->wall_ms,    node,
                             in->kind,       (uint64_t)err, m->out.count,
                             m->out.deadline};
    c->trace = XXH3_64bits_withSeed(step, sizeof step, c->trace);
    for (uint32_t i = 0; i < m->out.count; i++) {
        const struct qn_out *o = &m->out.out[i];
        uint8_t head[QN_HEAD_MAX];
        struct qn_slice body = {NULL, 0};
        size_t n = 0;
        if (o->kind <= QN_OUT_BCAST) {
            n = qn_msg_head(&o->msg, head);
            body = o->msg.body;
        } else if (o->kind == QN_OUT_APPLY) {
            body = o->apply.run.commands;
        }
        const uint64_t what[] = {o->kind, o->kind <= QN_OUT_BCAST ? o->to : 0,
                                 XXH3_64bits(head, n),
                                 XXH3_64bits(body.data, body.len)};
        c->trace = XXH3_64bits_withSeed(what, sizeof what, c->trace);
    }
}

static void count(struct cluster *c, qn_node_t node, const struct qn_input *in,
                  enum qn_role before, bool active)
{
    const struct member *m = &c->member[node];
    struct coverage *v = c->cover;
    if (v == NULL) {
        return;
    }
    bool mem = c->in_memory;
    const struct qn_onepaxos *p = m->p;
    v->held_back[mem] += in->kind == QN_IN_TICK && c->now < p->leader.fill_at &&
                         qn_propose_deadline(p, c->now) == p->leader.fill_at;
    for (qn_node_t n = 0; n < c->nodes; n++) {
        const struct qn_flow_member *f = &p->leader.flow.member[n];
        v->squeezed[mem] += in->kind == QN_IN_TICK && f->slow != 0 &&
                            !f->awaited && f->pause != 0 &&
                            p->leader.role == QN_ACTIVE;
    }
    v->input[mem][in->kind]++;
    v->message[mem][in->kind == QN_IN_RECV ? in->recv.msg->kind : 0]++;
    for (uint32_t i = 0; i < m->out.count; i++) {
        v->output[mem][m->out.out[i].kind]++;
    }
    if (before != p->leader.role) {
        v->role[mem][before][p->leader.role]++;
    }
    bool lost = mem && in->kind == QN_IN_TICK && before == QN_ACTIVE &&
                p->leader.role == QN_FOLLOWER && p->cfg.index == p->leader.ep;
    v->row[COVERAGE_WORD_CAS_LOST] += lost;
    bool prepare =
        in->kind == QN_IN_RECV && in->recv.msg->kind == QN_MSG_PREPARE;
    v->row[COVERAGE_BY_PREPARE] += prepare && !active && p->acceptor.active;
}

/** @return how many outputs are executed: all, unless it dies on the way. */
static uint32_t outputs_before_death(struct cluster *c, qn_node_t node)
{
    uint32_t all = c->member[node].out.count;
    if ((c->doomed & QN_BIT(node)) == 0 || all == 0) {
        return UINT32_MAX;
    }
    c->doomed &= ~QN_BIT(node);
    if (!c->on_doom(c, node)) {
        return UINT32_MAX;
    }
    if (c->cover != NULL) {
        c->cover->row[COVERAGE_DIED_BETWEEN]++;
    }
    return (uint32_t)cluster_random(c, all);
}

int cluster_step(struct cluster *c, qn_node_t node, const struct qn_input *in)
{
    struct member *m = &c->member[node];
    if (m->p == NULL) {
        return QN_OK;
    }
    enum qn_role before = m->p->leader.role;
    bool finishes = in->kind == QN_IN_TICK &&
                    m->p->change.finish_at <= c->now &&
                    !qn_utility_proposing(&m->p->ul);
    bool active = m->p->acceptor.active;
    const struct qn_utility *ul = &m->p->ul;
    bool seat = ul->phase != QN_UTILITY_IDLE && ul->want.kind == QN_UL_SEAT;
    const uint32_t entries = qn_utility_len(ul);
    const struct qn_ring was = m->shared.own;
    qn_slot_t kept = cluster_kept(c);
    int err = qn_onepaxos_step(m->p, in, c->now, c->wall_ms, &m->out);
    trace(c, node, in, err);
    if (c->record != NULL) {
        run_trace_step(c->record, m->p, in, err);
    }
    count(c, node, in, before, active);
    if (c->cover != NULL) {
        bool proposing = qn_utility_proposing(ul);
        c->cover->row[COVERAGE_LEFT_OPEN] += finishes && proposing;
        c->cover->row[COVERAGE_SEAT_DROPPED] +=
            seat && !proposing && entries == qn_utility_len(ul);
    }
    cluster_check_learned(c, node);
    cluster_check_roles(c, node);
    cluster_check_bounds(c, node);
    cluster_check_begun(c, node, &was, kept);
    if (c->on_outputs != NULL) {
        c->on_outputs(c, node);
    }
    uint32_t last = outputs_before_death(c, node);
    for (uint32_t i = 0; i < m->out.count && i < last; i++) {
        if (c->record != NULL) {
            run_trace_output(c->record, m->p, &m->out.out[i]);
        }
        execute(c, node, &m->out.out[i]);
    }
    m->deadline = m->out.deadline;
    m->transfers = m->out.transfers;
    qn_step_out_release(&m->out);
    if (last != UINT32_MAX) {
        cluster_kill(c, node, 8);
    } else {
        cluster_check_reads(c, node);
    }
    return err;
}

int cluster_submit(struct cluster *c, qn_node_t node, const char *text,
                   size_t len)
{
    struct qn_slice part = {(const uint8_t *)text, len};
    const struct qn_input in = {.kind = QN_IN_SUBMIT, .submit = {&part, 1}};
    return cluster_step(c, node, &in);
}

void cluster_tick(struct cluster *c, qn_node_t node)
{
    const struct qn_input in = {.kind = QN_IN_TICK};
    do {
        int err = cluster_step(c, node, &in);
        CHECK(c, err == QN_OK, "TICK answers %d", err);
    } while (c->member[node].out.again);
}

void cluster_room(struct cluster *c, qn_node_t node, uint64_t peers)
{
    const struct qn_input in = {.kind = QN_IN_ROOM, .room = {peers}};
    cluster_step(c, node, &in);
}

void cluster_beat(struct cluster *c, qn_node_t node, qn_node_t peer)
{
    struct qn_onepaxos_status st;
    if (c->member[peer].p == NULL) {
        return;
    }
    qn_onepaxos_status(c->member[peer].p, &st);
    const struct qn_input in = {.kind = QN_IN_BEAT,
                                .beat = {.peer = peer,
                                         .applied = st.applied,
                                         .learned = st.learned_hi}};
    cluster_step(c, node, &in);
}

void cluster_say_beat(struct cluster *c, qn_node_t node)
{
    const struct qn_onepaxos *p = c->member[node].p;
    const struct qn_msg m = {.kind = QN_MSG_BEAT,
                             .epoch = p->cfg.index,
                             .beat = {.applied = p->applied,
                                      .learned = p->learned_hi,
                                      .decided = p->decided_hi,

                                      .ul_len = qn_utility_len(&p->ul)}};
    for (qn_node_t k = 0; k < c->nodes; k++) {
        if (k != node) {
            cluster_post(c, node, k, &m, false);
        }
    }
}

void cluster_allow(struct cluster *c, qn_node_t node, uint64_t commands)
{
    const struct qn_input in = {.kind = QN_IN_GO};
    qn_onepaxos_set_apply_budget(c->member[node].p, commands);
    cluster_step(c, node, &in);
}

void cluster_slow(struct cluster *c, qn_node_t node, qn_time_t gap)
{
    qn_onepaxos_set_propose_interval(c->member[node].p, gap);
}

void cluster_down(struct cluster *c, qn_node_t node, qn_node_t peer)
{
    const struct qn_input in = {.kind = QN_IN_DOWN, .down = {peer}};
    cluster_step(c, node, &in);
}

void cluster_lead(struct cluster *c, qn_node_t node)
{
    const struct qn_input in = {.kind = QN_IN_LEAD};
    cluster_step(c, node, &in);
}

/** As `node` knows: no majority of the voters lives once `peer` is one more, or
 *  one less. */
static bool lives_minority(const struct cluster *c, qn_node_t node,
                           qn_node_t peer)
{
    const struct qn_onepaxos *p = c->member[node].p;
    uint64_t voters = qn_utility_voters(&p->ul) ^ QN_BIT(peer);
    uint64_t living =
        voters & ((p->alive & ~p->change.suspected) | QN_BIT(node));
    return 2 * __builtin_popcountll(living) <= __builtin_popcountll(voters);
}

void cluster_seat(struct cluster *c, qn_node_t node, qn_node_t peer, bool votes,
                  bool forced)
{
    const struct qn_input in = {
        .kind = QN_IN_SEAT,
        .seat = {.node = peer, .votes = votes, .forced = forced}};
    const struct qn_onepaxos *p = c->member[node].p;
    bool busy = p->change.wanted;
    bool same =
        busy && p->change.seat.node == peer && p->change.seat.votes == votes;
    bool minority = lives_minority(c, node, peer);
    int err = cluster_step(c, node, &in);
    if (c->cover != NULL) {
        uint64_t *row = c->cover->row;
        row[COVERAGE_SEAT_REPEATED] += same && err == QN_OK;
        row[COVERAGE_SEAT_BUSY] += busy && !same && err == QN_EBUSY;
        row[COVERAGE_SEAT_REFUSED] += err == QN_ENOQUORUM;
        row[COVERAGE_SEAT_FORCED] += !busy && minority && err == QN_OK;
    }
}

void cluster_suspect(struct cluster *c, qn_node_t node, uint64_t peers)
{
    const struct qn_input in = {.kind = QN_IN_SUSPECT, .suspect = {peers}};
    cluster_step(c, node, &in);
}
