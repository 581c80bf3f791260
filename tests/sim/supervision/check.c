/*
 * What must hold whatever happens, judged by what really is: the processes and
 * the register, of which the machine sees events only.
 */
#include "tests/sim/supervision/world.h"

#include <inttypes.h>

#include "core/base/bits.h"

/* One process per replica at most; numbers grow; none while draining or while
 * one replica has to be alone. */
void check_spawn(struct world *w, qn_node_t i, uint64_t incarnation)
{
    const struct process *p = &w->process[i];
    const struct qn_member_change *c = &w->sup.machine.change;
    const bool newcomer = c->step == QN_MEMBER_COMES && c->node == i;
    if (newcomer) { /* whatever the former one in its seat was told */
        w->left_mark[i] = 0;
        w->stays &= ~(UINT64_C(1) << i);
    }
    if (p->alive) {
        world_fail(w, "two processes of replica %u", i);
    }
    if (incarnation <= p->incarnation) {
        world_fail(w, "incarnation %" PRIu64 " of replica %u is given again",
                   incarnation, i);
    }
    if (w->sup.machine.draining) {
        world_fail(w, "replica %u is spawned while the server drains", i);
    }
    if (w->sup.machine.recovery.step > QN_RECOVERY_ASKS) {
        world_fail(w, "replica %u is spawned while a recovery holds", i);
    }
    if ((w->stays >> i & 1) != 0 && !w->f.recover) {
        world_fail(w, "replica %u could not live, and is spawned again", i);
    }
    if (w->left_mark[i] != 0 && w->left_mark[i] == p->incarnation) {
        /* An operator ended it; a recovery or an upgrade may want it. */
        w->left_mark[i] = 0;
        if (!w->f.recover && !w->f.upgrade) {
            world_fail(w, "replica %u left for good, and is spawned", i);
        }
    }
}

/* A dead owner's outbox is needed until the register has moved on. */
void check_drop(struct world *w, struct qn_outbox_name name)
{
    if (w->owner.node == name.node &&
        w->owner.incarnation == name.incarnation) {
        world_fail(w, "the outbox of the register's owner is dropped");
    }
    const struct process *p = &w->process[name.node];
    if (p->alive && p->incarnation == name.incarnation) {
        world_fail(w, "the outbox of a living replica is dropped");
    }
}

/* Announcements of a node come in the order of its incarnations, the end of one
 * before the next, and are true. */
void check_heard(struct world *w, qn_node_t by, const struct qn_control_msg *m)
{
    const bool up = m->kind == QN_CTL_PEER_UP;
    const qn_node_t node = up ? m->u.peer_up.node : m->u.peer_down.node;
    const uint64_t inc =
        up ? m->u.peer_up.incarnation : m->u.peer_down.incarnation;
    struct heard *h = &w->process[by].heard[node];
    const struct process *p = &w->process[node];
    if (up && (inc <= h->up || inc <= h->down)) {
        world_fail(w,
                   "replica %u hears of incarnation %" PRIu64
                   " of %u after %" PRIu64 " (end: %" PRIu64 ")",
                   by, inc, node, h->up, h->down);
    }
    if (up && h->up > h->down) {
        world_fail(w,
                   "replica %u hears of incarnation %" PRIu64
                   " of %u, and not of the end of %" PRIu64,
                   by, inc, node, h->up);
    }
    if (!up && inc < h->up) {
        world_fail(w,
                   "replica %u hears late of the end of %" PRIu64
                   " of %u: it knows %" PRIu64,
                   by, inc, node, h->up);
    }
    if (!up && p->alive && p->incarnation <= inc) {
        world_fail(w, "replica %u hears of the end of %u, which lives", by,
                   node);
    }
    if (up) {
        h->up = inc;
    } else {
        h->down = QN_MAX(h->down, inc);
    }
}

/* Fencing: no other process of the group exists, and the chosen one knows. */
void check_order_to_recover(struct world *w, qn_node_t chosen)
{
    for (qn_node_t i = 0; i < w->opts.replicas; i++) {
        const struct heard *h = &w->process[chosen].heard[i];
        if (i == chosen) {
            continue;
        }
        if (w->process[i].alive) {
            world_fail(w, "replica %u is to go on alone, and %u lives", chosen,
                       i);
        }
        if (h->up > h->down) {
            world_fail(w,
                       "replica %u is to go on alone, and has not heard of "
                       "the end of %u",
                       chosen, i);
        }
    }
}

static void check_lost(struct world *w)
{
    w->cover->lost++;
    if (w->announced_lost != 1) {
        world_fail(w, "lost data is announced %u times", w->announced_lost);
    }
    if (complete_count(w, false) > 0) {
        world_fail(w, "all data is said to be lost, and a replica has it");
    }
}

static void check_drained(struct world *w, int status)
{
    const bool clean = w->unsent == 0 && !w->undrained;
    w->cover->drains++;
    if (status >= 128) {
        w->cover->drains_twice++;
        return;
    }
    for (qn_node_t i = 0; i < w->opts.replicas; i++) {
        if (w->process[i].alive) {
            world_fail(w, "the server has drained, and replica %u lives", i);
        }
    }
    if (clean != (status == QN_SUPERVISOR_DRAINED)) {
        world_fail(w, "status %d after %" PRIu64 " unsent replies%s", status,
                   w->unsent, w->undrained ? ", one had not drained" : "");
    }
}

void check_finish(struct world *w, int status)
{
    if (w->sup.machine.lost) {
        check_lost(w);
    } else if (w->drained) {
        check_drained(w, status);
    } else {
        world_fail(w, "the server ends with status %d for no reason", status);
    }
}

void check_step(struct world *w)
{
    const struct supervisor *s = &w->sup;
    const struct qn_supervision *m = &s->machine;
    if (s->adopting) {
        return;
    }
    w->cover->retained += m->retained.incarnation != 0;
    if (m->retained.incarnation != 0 && w->process[m->retained.node].alive &&
        w->process[m->retained.node].incarnation == m->retained.incarnation &&
        m->replica[m->retained.node].has_outbox) {
        world_fail(w, "a living replica's outbox is retained beside itself");
    }
    if (s->actions.deadline < w->now && w->now - s->actions.deadline > QN_S) {
        world_fail(w, "a deadline lies in the past");
    }
}

static bool is_wanted(const struct world *w, qn_node_t i)
{
    return (w->voters >> i & 1) != 0 && (w->stays >> i & 1) == 0 &&
           (w->left_mark[i] == 0 ||
            w->left_mark[i] != w->process[i].incarnation);
}

static bool knows(const struct world *w, qn_node_t by, qn_node_t of)
{
    const struct heard *h = &w->process[by].heard[of];
    return h->up == w->process[of].incarnation && h->up > h->down;
}

/* NULL: `i` is as it must be; else what is missing. */
static const char *replica_lacks(const struct world *w, qn_node_t i)
{
    const struct process *p = &w->process[i];
    const struct qn_replica_slot *r = &w->sup.machine.replica[i];
    if ((w->voters >> i & 1) == 0 && p->alive) {
        return "has no vote, and lives";
    }
    if (!is_wanted(w, i)) {
        return NULL;
    }
    if (!p->alive || !p->complete) {
        return "is not complete";
    }
    if (r->state != QN_REPLICA_SERVING || r->incarnation != p->incarnation) {
        return "is complete, and its supervisor does not know it";
    }
    for (qn_node_t n = 0; n < w->opts.replicas; n++) {
        const struct heard *h = &p->heard[n];
        if (n != i && w->process[n].alive && !knows(w, i, n)) {
            return "does not know all others";
        }
        if (n != i && !w->process[n].alive && h->up > h->down) {
            return "does not know that another one has ended";
        }
    }
    return NULL;
}

const char *check_unhealed(const struct world *w, qn_node_t *which)
{
    const struct qn_supervision *m = &w->sup.machine;
    *which = 0;
    if (!w->sup.alive || w->sup.adopting) {
        return "has no supervisor";
    }
    if (m->orphans.taken_over && !qn_supervision_adoption_is_over(m)) {
        return "or another one is not adopted";
    }
    if (m->upgrade.step != QN_UPGRADE_NONE) {
        return "or another one is being upgraded";
    }
    if (m->recovery.step != QN_RECOVERY_NONE) {
        return "or another one is being recovered";
    }
    if (m->change.step != QN_MEMBER_NONE || w->orders > 0) {
        return "or another one is being added or removed";
    }
    if (m->voters != w->voters) {
        return "has a supervisor that does not know which vote";
    }
    for (qn_node_t i = 0; i < w->opts.replicas; i++) {
        const char *lacks = replica_lacks(w, i);
        if (lacks != NULL) {
            *which = i;
            return lacks;
        }
    }
    return NULL;
}
