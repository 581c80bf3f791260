/*
 * Which replicas agree on which roles, as far as an upgrade has asked them.
 *
 * Replicas are asked every QN_SV_ROLES_LOOK while the upgrade settles; an
 * upgrade is rare, and over in seconds. One question at a time: a stalled
 * replica is not sent hundreds of them. The answers carry the token of their
 * question, so that an answer to a former step is not taken for one to this.
 */
#include "core/base/assert.h"
#include "kvs/supervision/supervision_internal.h"

qn_node_t qn_sv_lowest(uint64_t mask)
{
    QN_ASSERT(mask != 0);
    return (qn_node_t)__builtin_ctzll(mask);
}

void qn_sv_on_roles(const struct qn_sv_step *x, qn_node_t from,
                    const struct qn_ctl_roles *m)
{
    struct qn_upgrade *u = &x->s->upgrade;
    if (m->token == u->token) {
        QN_ASSERT(m->leader < x->s->opts.replicas); /* decoding has checked */
        QN_ASSERT(m->acceptor < x->s->opts.replicas);
        u->roles[from] = (struct qn_roles){.heard = true,
                                           .active = m->active,
                                           .epoch = m->epoch,
                                           .leader = m->leader,
                                           .acceptor = m->acceptor,
                                           .in_sync = m->in_sync};
    }
}

void qn_sv_roles_ask(const struct qn_sv_step *x)
{
    struct qn_upgrade *u = &x->s->upgrade;
    if (x->now < u->asked_at + QN_SV_ROLES_LOOK) {
        return;
    }
    u->asked_at = x->now;
    for (qn_node_t i = 0; i < x->s->opts.replicas; i++) {
        const struct qn_replica_slot *r = &x->s->replica[i];
        if (r->state == QN_REPLICA_SERVING && r->reachable &&
            !u->roles[i].asked) {
            u->roles[i].asked = true;
            qn_sv_ask_roles(x, i, u->token);
        }
    }
}

/* It lives, or will: it was not asked to leave for good. */
static bool counts(const struct qn_replica_slot *r)
{
    return r->state != QN_REPLICA_ENDED || r->spawning ||
           r->restart_at != QN_TIME_NEVER;
}

qn_node_t qn_sv_roles_missing(const struct qn_supervision *s)
{
    for (qn_node_t i = 0; i < s->opts.replicas; i++) {
        const struct qn_replica_slot *r = &s->replica[i];
        if (counts(r) && qn_sv_votes(s, i) &&
            (r->state != QN_REPLICA_SERVING || !s->upgrade.roles[i].heard)) {
            return i;
        }
    }
    return QN_NODES_MAX;
}

uint64_t qn_sv_serving(const struct qn_supervision *s)
{
    uint64_t mask = 0;
    for (qn_node_t i = 0; i < s->opts.replicas; i++) {
        mask |= s->replica[i].state == QN_REPLICA_SERVING ? qn_sv_bit(i) : 0;
    }
    return mask & s->voters;
}

static bool same_view(const struct qn_roles *a, const struct qn_roles *b)
{
    return a->epoch == b->epoch && a->leader == b->leader &&
           a->acceptor == b->acceptor;
}

const struct qn_roles *qn_sv_roles_agreed(const struct qn_supervision *s)
{
    const uint64_t there = qn_sv_serving(s);
    if (there == 0) {
        return NULL;
    }
    const struct qn_roles *r = &s->upgrade.roles[qn_sv_lowest(there)];
    const uint64_t needed = s->opts.memory_acceptor
                                ? there
                                : qn_sv_bit(r->leader) | qn_sv_bit(r->acceptor);
    for (qn_node_t i = 0; i < s->opts.replicas; i++) {
        const struct qn_roles *o = &s->upgrade.roles[i];
        if ((there & qn_sv_bit(i)) != 0 &&
            (!same_view(o, r) || (o->in_sync & needed) != needed)) {
            return NULL;
        }
    }
    return s->upgrade.roles[r->leader].active ? r : NULL;
}
