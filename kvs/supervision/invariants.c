/*
 * What holds after each step, whatever happened: relations between the states
 * of different parts, which no part can see alone.
 */
#include "core/base/assert.h"
#include "kvs/supervision/supervision_internal.h"

static void check_slot(const struct qn_supervision *s, qn_node_t i)
{
    const struct qn_replica_slot *r = &s->replica[i];
    const bool lives = r->state != QN_REPLICA_ENDED;
    /* One process per replica: a next one is awaited or ordered only when the
     * former one has ended, and never twice. */
    QN_ASSERT(!lives || !r->spawning);
    QN_ASSERT(!lives || r->restart_at == QN_TIME_NEVER);
    QN_ASSERT(!r->spawning || r->restart_at == QN_TIME_NEVER);
    /* Only a voter is started again. */
    QN_ASSERT(qn_sv_votes(s, i) || r->restart_at == QN_TIME_NEVER);
    /* Numbers of incarnations only grow. */
    QN_ASSERT(r->incarnation <= s->incarnations || !s->served);
    QN_ASSERT(r->ended <= r->incarnation);
    /* A dead process says and hears nothing, and holds no outbox but the one
     * that is retained. */
    QN_ASSERT(lives || !r->informed);
    QN_ASSERT(lives || !r->has_outbox);
    QN_ASSERT(lives || !r->reachable || !s->orphans.taken_over);
    /* Its end has not been announced before it. */
    QN_ASSERT(!lives || !r->has_outbox || r->ended < r->incarnation);
    /* One that has not said what it knows is not told of its peers. */
    QN_ASSERT(!r->informed || !s->orphans.taken_over ||
              ((s->orphans.awaited | s->orphans.unreached) & qn_sv_bit(i)) ==
                  0);
    /* The retained outbox is of a dead incarnation. */
    QN_ASSERT(s->retained.incarnation == 0 || s->retained.node != i ||
              !r->has_outbox || r->incarnation != s->retained.incarnation);
}

static void check_operations(const struct qn_supervision *s)
{
    const struct qn_recovery *r = &s->recovery;
    const struct qn_upgrade *u = &s->upgrade;
    const struct qn_member_change *c = &s->change;
    /* Operations refuse each other, and both a group that is not serving. */
    QN_ASSERT(r->step == QN_RECOVERY_NONE || u->step == QN_UPGRADE_NONE);
    QN_ASSERT(r->step == QN_RECOVERY_NONE || s->served);
    QN_ASSERT(u->step == QN_UPGRADE_NONE || s->served);
    QN_ASSERT(r->step == QN_RECOVERY_NONE || r->node < s->opts.replicas);
    QN_ASSERT(c->step == QN_MEMBER_NONE || r->step == QN_RECOVERY_NONE);
    QN_ASSERT(c->step == QN_MEMBER_NONE || u->step == QN_UPGRADE_NONE);
    QN_ASSERT(c->step == QN_MEMBER_NONE || s->served);
    QN_ASSERT(c->step == QN_MEMBER_NONE || c->node < s->opts.replicas);
    /* A newcomer starts when all have met it, and not before. */
    QN_ASSERT(c->step < QN_MEMBER_LOADS || !c->votes || c->unmet == 0 ||
              c->step == QN_MEMBER_LEAVES);
    QN_ASSERT(u->done <= u->total);
    QN_ASSERT(u->step != QN_UPGRADE_LEAVE || s->draining ||
              s->replica[u->node].state != QN_REPLICA_ENDED);
}

static void check_end(const struct qn_supervision *s)
{
    QN_ASSERT(!s->lost || s->over);
    QN_ASSERT(!s->handed_over || s->over);
    QN_ASSERT(!s->lost || !s->handed_over);
    QN_ASSERT(!s->undrained || s->draining);
    QN_ASSERT(s->lost_at == QN_TIME_NEVER || s->served);
    /* A group is taken over or begun, never both. */
    QN_ASSERT(s->adopted == 0 || s->orphans.taken_over);
}

void qn_sv_invariants(const struct qn_supervision *s)
{
    uint64_t ours =
        s->opts.replicas == 64 ? UINT64_MAX : qn_sv_bit(s->opts.replicas) - 1;
    for (qn_node_t i = 0; i < s->opts.replicas; i++) {
        check_slot(s, i);
    }
    check_operations(s);
    check_end(s);
    QN_ASSERT((s->upgrade.to_replace & ~ours) == 0);
    QN_ASSERT(!s->served || (s->voters != 0 && (s->voters & ~ours) == 0));
    QN_ASSERT((s->orphans.awaited & s->orphans.unreached) == 0);
    QN_ASSERT(!s->orphans.taken_over || (s->orphans.awaited & ~ours) == 0);
}
