/*
 * See fault_oracle.h. The process acceptor: the group goes on if the newest
 * entry's acceptor lives and was activated, or holds what was staged for it
 * (any leader can be adopted by it); or if its leader and those of the epochs
 * before it, down to one whose log is complete, live (SEAL finds that log,
 * PROTOCOL.md 6.2). Entries that a node has proposed, or voted for, may be
 * chosen without further help of that node, so the same must hold with each of
 * them on top.
 */
#include "tests/sim/paxos/fault_oracle.h"

#include "paxos/machine/onepaxos_internal.h"

static bool lives(const struct cluster *c, uint8_t node, uint64_t inc,
                  qn_node_t dying)
{
    const struct member *m = &c->member[node];
    return node != dying && m->p != NULL && m->inc == inc;
}

#define NOBODY QN_NODES_MAX

/** The utility log with `next` on top of it (NULL: as it is). */
static const struct qn_ul_entry *at(const struct cluster *c,
                                    const struct qn_ul_entry *next,
                                    uint32_t index)
{
    return index == c->entries ? next : &c->entry[index];
}

static uint32_t newest(const struct cluster *c, const struct qn_ul_entry *next)
{
    return next != NULL ? c->entries : c->entries - 1;
}

static bool acceptor_stays(const struct cluster *c,
                           const struct qn_ul_entry *next, qn_node_t dying)
{
    const struct qn_ul_entry *e = at(c, next, newest(c, next));
    if (!lives(c, e->acceptor, e->acceptor_inc, dying)) {
        return false;
    }
    const struct qn_onepaxos *p = c->member[e->acceptor].p;
    const struct qn_ul_entry *by = at(c, next, e->tenure);
    return (p->acceptor.active && p->acceptor.tenure == e->tenure) ||
           (by->kind == QN_UL_ACCEPTOR && p->change.st_from == by->from);
}

static bool leader_stays(const struct cluster *c,
                         const struct qn_ul_entry *next, qn_node_t dying)
{
    uint32_t top = newest(c, next);
    uint32_t tenure = at(c, next, top)->tenure;
    for (uint32_t i = top + 1; i-- > tenure;) {
        const struct qn_ul_entry *e = at(c, next, i);
        if (!lives(c, e->leader, e->leader_inc, dying)) {
            return false;
        }
        /* Who appointed an acceptor froze a complete log. */
        if (e->kind == QN_UL_ACCEPTOR ||
            c->member[e->leader].p->change.cep == i) {
            return true;
        }
    }
    return false;
}

static bool goes_on(const struct cluster *c, const struct qn_ul_entry *next,
                    qn_node_t dying)
{
    return acceptor_stays(c, next, dying) || leader_stays(c, next, dying);
}

/** With what `node` wants, or has voted for, at the next index. */
static bool goes_on_with(const struct cluster *c, qn_node_t node,
                         qn_node_t dying)
{
    const struct member *m = &c->member[node];
    const struct qn_vote *v = &m->record.vote;
    if (v->index == c->entries && v->vbal.round != 0 &&
        !goes_on(c, &v->value, dying)) {
        return false;
    }
    if (m->p == NULL || m->p->ul.len != c->entries ||
        m->p->ul.phase == QN_UTILITY_IDLE) {
        return true;
    }
    const struct qn_utility *u = &m->p->ul;
    return goes_on(c, &u->want, dying) &&
           (u->phase != QN_UTILITY_ACCEPT || goes_on(c, &u->value, dying));
}

bool fault_oracle_survives(const struct cluster *c, qn_node_t dying)
{
    if (!goes_on(c, NULL, dying) || c->ghosts == QN_NODES_MAX) {
        return false;
    }
    for (uint32_t g = 0; g < c->ghosts; g++) {
        if (!goes_on(c, &c->ghost[g], dying)) {
            return false;
        }
    }
    for (qn_node_t n = 0; n < c->nodes; n++) {
        if (!goes_on_with(c, n, dying)) {
            return false;
        }
    }
    return true;
}

enum coverage_row fault_oracle_stop(const struct cluster *c, qn_node_t dying)
{
    const struct qn_ul_entry *e = &c->entry[c->entries - 1];
    bool leader = lives(c, e->leader, e->leader_inc, dying);
    bool acceptor = lives(c, e->acceptor, e->acceptor_inc, dying);
    if (acceptor) {
        return COVERAGE_NO_ROW;
    }
    if (c->led[e->index]) {
        return leader               ? COVERAGE_NO_ROW
               : dying == e->leader ? COVERAGE_STOP_UNCHOSEN
                                    : COVERAGE_STOP_UNADOPTED;
    }
    if (e->kind != QN_UL_LEADER) {
        return COVERAGE_NO_ROW;
    }
    return !leader                ? COVERAGE_STOP_NEW_LEADER
           : dying == e->acceptor ? COVERAGE_STOP_UNADOPTED
                                  : COVERAGE_NO_ROW;
}

/* ----------------------------------------------------------------- rows -- */

static void reached(struct cluster *c, enum coverage_row row)
{
    if (c->cover != NULL && row != COVERAGE_NO_ROW) {
        c->cover->row[row]++;
    }
}

void fault_oracle_dies(struct cluster *c, qn_node_t node)
{
    const struct qn_utility *u = &c->member[node].p->ul;
    if (u->phase != QN_UTILITY_IDLE && u->len == c->entries &&
        c->ghosts < QN_NODES_MAX) {
        c->ghost[c->ghosts++] = u->want;
    }
    uint32_t alive = 0;
    for (qn_node_t n = 0; n < c->nodes; n++) {
        alive += n != node && c->member[n].p != NULL;
    }
    if (c->in_memory && alive == 1) {
        reached(c, COVERAGE_WORD_ALL_BUT_ONE);
    }
    uint64_t voters = c->entry[c->entries - 1].voters;
    uint32_t stay = 0;
    for (qn_node_t n = 0; n < c->nodes; n++) {
        stay +=
            n != node && c->member[n].p != NULL && (voters & QN_BIT(n)) != 0;
    }
    if (stay == 1 && (voters & QN_BIT(node)) != 0 &&
        __builtin_popcountll(voters) > 2) {
        reached(c, COVERAGE_SEAT_LONE);
    }
}

void fault_oracle_entry(struct cluster *c, qn_node_t node)
{
    const struct qn_ul_entry *e = &c->entry[c->entries - 1];
    c->ghosts = 0;
    for (qn_node_t n = 0; n < c->nodes; n++) {
        const struct qn_onepaxos *p = c->member[n].p;
        if (n != node && p != NULL && p->ul.phase != QN_UTILITY_IDLE &&
            p->ul.want.index == e->index && p->ul.want.kind != e->kind) {
            reached(c, COVERAGE_BOTH_SUSPECTED);
            return;
        }
    }
}

static enum coverage_row of_word(const struct cluster *c,
                                 const struct qn_ul_entry *e)
{
    const struct qn_ul_entry *before = &c->entry[e->index - 1];
    uint32_t i = e->index - 1;
    if (!c->led[i] && !lives(c, before->leader, before->leader_inc, NOBODY)) {
        return COVERAGE_WORD_SKIPPED;
    }
    for (; i > 0 && !c->led[i]; i--) {
    }
    const struct qn_ul_entry *owner = &c->entry[i];
    if (owner->leader_inc == e->leader_inc) {
        return COVERAGE_WORD_OWNER_RETURNS;
    }
    return lives(c, owner->leader, owner->leader_inc, NOBODY)
               ? COVERAGE_WORD_OWNER_SLOW
               : COVERAGE_WORD_OWNER_DIES;
}

static enum coverage_row of_acceptor(const struct cluster *c,
                                     const struct qn_ul_entry *e)
{
    const struct qn_ul_entry *from = &c->entry[e->from];
    if (lives(c, from->acceptor, from->acceptor_inc, NOBODY)) {
        return COVERAGE_NO_ROW; /* suspected only */
    }
    return c->led[e->from]                ? COVERAGE_ACCEPTOR_DIES
           : from->kind == QN_UL_ACCEPTOR ? COVERAGE_CANDIDATE_DIES
                                          : COVERAGE_SEALED;
}

static enum coverage_row of_leader(const struct cluster *c,
                                   const struct qn_ul_entry *e)
{
    const struct qn_ul_entry *before = &c->entry[e->index - 1];
    if (lives(c, before->leader, before->leader_inc, NOBODY)) {
        return COVERAGE_NO_ROW;
    }
    if (c->led[before->index]) {
        return COVERAGE_LEADER_DIES;
    }
    if (before->kind != QN_UL_ACCEPTOR) {
        return COVERAGE_NEW_LEADER_DIES;
    }
    const struct qn_ul_entry *old = &c->entry[before->from];
    return lives(c, old->acceptor, old->acceptor_inc, NOBODY)
               ? COVERAGE_NO_ROW
               : COVERAGE_APPOINTED_LEADER_DIES;
}

void fault_oracle_leads(struct cluster *c, qn_node_t node)
{
    const struct qn_ul_entry *e = &c->member[node].p->cfg;
    if (e->index != 0) {
        reached(c, c->in_memory                ? of_word(c, e)
                   : e->kind == QN_UL_ACCEPTOR ? of_acceptor(c, e)
                                               : of_leader(c, e));
    }
    c->led[e->index] = true;
}
