/*
 * What is said to replicas. The fields of each control message are filled here
 * and nowhere else (kvs/control/control_protocol.h).
 *
 * A replica whose control channel is not open hears nothing. It is either about
 * to be reported as ended, or it was adopted without a connection, and is told
 * everything once there is one.
 */
#include "core/base/assert.h"
#include "core/base/bits.h"
#include "kvs/supervision/supervision_internal.h"

static const struct qn_outbox_name none = {0};

void qn_sv_send(const struct qn_sv_step *x, qn_node_t to,
                const struct qn_control_msg *m, struct qn_outbox_name outbox)
{
    if (!x->s->replica[to].reachable) {
        return;
    }
    const struct qn_supervision_action a = {
        .kind = QN_DO_SEND, .node = to, .message = *m, .outbox = outbox};
    QN_ASSERT(to < x->s->opts.replicas);
    qn_supervision_do(x->out, &a);
}

void qn_sv_say(const struct qn_sv_step *x, qn_node_t to,
               enum qn_control_kind kind)
{
    const struct qn_control_msg m = {.kind = kind};
    qn_sv_send(x, to, &m, none);
}

void qn_sv_say_all(const struct qn_sv_step *x, enum qn_control_kind kind)
{
    for (qn_node_t i = 0; i < x->s->opts.replicas; i++) {
        qn_sv_say(x, i, kind);
    }
}

void qn_sv_say_peer_up(const struct qn_sv_step *x, qn_node_t to,
                       qn_node_t about, uint64_t incarnation)
{
    const struct qn_replica_slot *r = &x->s->replica[about];
    const struct qn_control_msg m = {
        .kind = QN_CTL_PEER_UP,
        .u.peer_up = {.node = about,
                      .incarnation = incarnation,
                      .pid = incarnation == r->incarnation ? (uint32_t)r->pid
                                                           : 0}};
    uint64_t *known = &x->s->replica[to].knows[about];
    QN_ASSERT(incarnation != 0);
    *known = QN_MAX(*known, incarnation);
    qn_sv_send(
        x, to, &m,
        (struct qn_outbox_name){.node = about, .incarnation = incarnation});
}

void qn_sv_say_peer_down(const struct qn_sv_step *x, qn_node_t to,
                         qn_node_t about, uint64_t incarnation)
{
    const struct qn_control_msg m = {
        .kind = QN_CTL_PEER_DOWN,
        .u.peer_down = {.node = about, .incarnation = incarnation}};
    qn_sv_send(x, to, &m, none);
}

void qn_sv_say_lead(const struct qn_sv_step *x, qn_node_t leader)
{
    const struct qn_control_msg m = {.kind = QN_CTL_LEAD,
                                     .u.lead.node = leader};
    QN_ASSERT(leader < x->s->opts.replicas);
    for (qn_node_t i = 0; i < x->s->opts.replicas; i++) {
        qn_sv_send(x, i, &m, none);
    }
}

void qn_sv_ask_roles(const struct qn_sv_step *x, qn_node_t to, uint32_t token)
{
    const struct qn_control_msg m = {.kind = QN_CTL_ROLES_QUERY,
                                     .u.roles_query.token = token};
    qn_sv_send(x, to, &m, none);
}

void qn_sv_ask_recoverable(const struct qn_sv_step *x, qn_node_t to,
                           const struct qn_ctl_recover *wish)
{
    const struct qn_control_msg m = {
        .kind = QN_CTL_RECOVER_QUERY,
        .u.recover_query = {.epoch = wish->epoch,
                            .question = x->s->recovery.asked,
                            .position = wish->position}};
    QN_ASSERT(x->s->recovery.step == QN_RECOVERY_ASKS);
    qn_sv_send(x, to, &m, none);
}

void qn_sv_say_member_seat(const struct qn_sv_step *x, qn_node_t to,
                           const struct qn_ctl_member_seat *seat)
{
    const struct qn_control_msg m = {.kind = QN_CTL_MEMBER_SEAT,
                                     .u.member_seat = *seat};
    qn_sv_send(x, to, &m, none);
}

void qn_sv_say_member_answer(const struct qn_sv_step *x, qn_node_t to,
                             const struct qn_ctl_member_answer *a)
{
    const struct qn_control_msg m = {.kind = QN_CTL_MEMBER_ANSWER,
                                     .u.member_answer = *a};
    qn_sv_send(x, to, &m, none);
}

void qn_sv_say_voter_change(const struct qn_sv_step *x, qn_node_t to,
                            const struct qn_ctl_voter_change *c)
{
    const struct qn_control_msg m = {.kind = QN_CTL_VOTER_CHANGE,
                                     .u.voter_change = *c};
    QN_ASSERT(c->node < x->s->opts.replicas);
    QN_ASSERT(c->incarnation != 0);
    qn_sv_send(x, to, &m, none);
}

void qn_sv_say_refused(const struct qn_sv_step *x, qn_node_t to, qn_node_t node,
                       uint64_t client, uint32_t why)
{
    const struct qn_control_msg m = {
        .kind = QN_CTL_RECOVER_REFUSED,
        .u.recover_refused = {.node = node, .client = client, .refusal = why}};
    qn_sv_send(x, to, &m, none);
}
