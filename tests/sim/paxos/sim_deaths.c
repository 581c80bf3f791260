/*
 * Who dies, of those who may; when the others hear of it, and when it comes
 * back; and who is taken for dead, rightly or not.
 */
#include "paxos/machine/onepaxos_internal.h"
#include "tests/sim/paxos/fault_oracle.h"
#include "tests/sim/paxos/sim_internal.h"

/** The memory acceptor: any of them may die at once, if one that is in sync
 *  stays. */
static bool one_stays(const struct sim *s, qn_node_t dying)
{
    for (qn_node_t i = 0; i < s->c.nodes; i++) {
        if (i != dying && cluster_votes(&s->c, i) &&
            cluster_in_sync(&s->c, i)) {
            return true;
        }
    }
    return false;
}

static bool may_die(const struct sim *s, qn_node_t i)
{
    return s->c.in_memory ? one_stays(s, i) : fault_oracle_survives(&s->c, i);
}

void sim_bury(struct sim *s, qn_node_t i)
{
    s->submitted[i] = 0;
    s->untold[i] = QN_BIT(s->c.nodes) - 1;
    s->back_at[i] = s->c.now + cluster_random(&s->c, 30 * QN_MS);
}

bool sim_on_doom(struct cluster *c, qn_node_t i)
{
    struct sim *s = c->ctx;
    if (s->healed || s->lost || !may_die(s, i)) {
        return false;
    }
    sim_bury(s, i);
    return true;
}

/** Somebody dies, at once or in the middle of its next step. */
static void kill_one(struct sim *s)
{
    struct cluster *c = &s->c;
    qn_node_t i = (qn_node_t)cluster_random(c, c->nodes);
    if (sim_chance(s, 60) && c->entries > 0) { /* one that matters */
        const struct qn_ul_entry *e = &c->entry[c->entries - 1];
        i = sim_chance(s, 50) ? e->leader : e->acceptor;
    }
    if (c->member[i].p == NULL || s->lost) {
        return;
    }
    if (!may_die(s, i)) {
        s->lost = sim_has(s, FAULT_LOST);
        if (!s->lost) {
            return;
        }
        s->stop = c->in_memory ? COVERAGE_STOP_WORD : fault_oracle_stop(c, i);
    } else if (sim_chance(s, 50)) {
        c->doomed |= QN_BIT(i);
        return;
    }
    cluster_kill(c, i, 8);
    sim_bury(s, i);
}

/** Memory acceptor: all but the owner of the ring stand still, it goes on over
 *  what they lack, and ends when nobody else is in sync. */
static void strand(struct sim *s)
{
    struct cluster *c = &s->c;
    const struct qn_ul_entry *e = &c->entry[c->word.first];
    qn_node_t owner = e->leader;
    if (!sim_may_strand(s) || s->lost || c->member[owner].p == NULL ||
        c->member[owner].inc != e->leader_inc) {
        return;
    }
    if (!one_stays(s, owner) && sim_aside(&c->luck) < 4) {
        s->lost = true;
        s->stop = COVERAGE_STOP_WORD;
        cluster_kill(c, owner, 8);
        sim_bury(s, owner);
    } else if (sim_aside(&c->luck) == 0 && sim_aside(&c->luck) < 2) {
        for (qn_node_t i = 0; i < c->nodes; i++) {
            s->paused_until[i] = i == owner ? 0 : c->now + 10 * QN_MS;
        }
    }
}

static void bring_back(struct sim *s, qn_node_t i)
{
    struct cluster *c = &s->c;
    qn_node_t donor = (qn_node_t)cluster_random(c, c->nodes);
    if (!cluster_votes(c, i) && (s->healed || sim_aside(&s->seater) != 0)) {
        return; /* a vacant seat */
    }
    if (!s->healed && sim_aside(&s->c.luck) == 0 && c->voters == 0) {
        cluster_lose_record(c, i);
    }
    if (c->member[donor].p != NULL && cluster_restart(c, i, donor)) {
        s->untold[i] = 0;
        /* A seat that stays vacant is dead for it, too. */
        for (qn_node_t n = 0; n < c->nodes && c->voters != 0; n++) {
            s->untold[n] |=
                c->member[n].p == NULL && c->member[n].inc != 0 ? QN_BIT(i) : 0;
        }
    }
}

void sim_deaths(struct sim *s)
{
    struct cluster *c = &s->c;
    for (qn_node_t i = 0; i < c->nodes; i++) {
        if (c->member[i].p != NULL) {
            continue;
        }
        for (qn_node_t k = 0; k < c->nodes; k++) {
            if ((s->untold[i] & QN_BIT(k)) != 0 && sim_chance(s, 10)) {
                s->untold[i] &= ~QN_BIT(k);
                if (k != i) {
                    cluster_down(c, k, i);
                }
            }
        }
        if (c->now >= s->back_at[i] || s->healed) {
            bring_back(s, i);
        }
    }
    /* More often while a failover is under way. */
    uint64_t pause = c->led[c->entries - 1] ? 100 : 25;
    if (sim_has(s, FAULT_KILL) && cluster_random(c, pause) == 0) {
        uint64_t n = 1 + cluster_random(c, c->nodes - 1); /* at once */
        while (n-- > 0) {
            kill_one(s);
        }
    }
    strand(s);
}

void sim_seats(struct sim *s)
{
    struct cluster *c = &s->c;
    if (c->voters == 0) {
        return;
    }
    for (qn_node_t i = 0; i < c->nodes; i++) {
        if (c->member[i].p != NULL && c->member[i].p->ul.removed &&
            may_die(s, i) && sim_aside(&s->seater) < 4) {
            cluster_kill(c, i, 8); /* it has heard that it is removed */
            sim_bury(s, i);
        }
    }
    const struct qn_ul_entry *e = &c->entry[c->entries - 1];
    qn_node_t peer =
        (qn_node_t)((sim_aside(&s->seater) + sim_aside(&s->seater)) % c->nodes);
    if (!s->healed && c->member[e->leader].p != NULL &&
        sim_aside(&s->seater) == 0) {
        bool votes = (e->voters & QN_BIT(peer)) == 0;
        cluster_seat(c, e->leader, peer, votes, sim_aside(&s->seater) == 0);
    }
}

void sim_snapshots(struct sim *s)
{
    struct cluster *c = &s->c;
    qn_node_t i = (qn_node_t)cluster_random(c, c->nodes);
    qn_node_t donor = (qn_node_t)cluster_random(c, c->nodes);
    if (c->member[i].need_snapshot && (sim_has(s, FAULT_KILL) || s->healed)) {
        cluster_install(c, i, donor);
    }
}

/** Most take the leader, the acceptor or both for dead at the same time. */
static void suspect_roles(struct sim *s)
{
    struct cluster *c = &s->c;
    const struct qn_ul_entry *e = &c->entry[c->entries - 1];
    uint64_t who = sim_chance(s, 60) ? QN_BIT(e->leader) : 0;
    who |= sim_chance(s, 60) ? QN_BIT(e->acceptor) : 0;
    if (who == 0) { /* nobody is; but the leader is to be ended */
        cluster_lead(c, (e->leader + 1 + c->entries) % c->nodes);
    }
    for (qn_node_t n = 0; n < c->nodes; n++) {
        if (sim_chance(s, 70)) {
            cluster_suspect(c, n, who);
        }
    }
}

void sim_suspicions(struct sim *s)
{
    struct cluster *c = &s->c;
    qn_node_t i = (qn_node_t)cluster_random(c, c->nodes);
    uint64_t peers = 0;
    if (sim_has(s, FAULT_SUSPECT) && sim_chance(s, 20)) {
        peers = QN_BIT(cluster_random(c, c->nodes));
    }
    if (sim_has(s, FAULT_SUSPECT) ? sim_chance(s, 10) : s->healed) {
        cluster_suspect(c, i, peers);
    }
    if (sim_has(s, FAULT_SUSPECT) && sim_chance(s, 1)) {
        suspect_roles(s);
    }
}
