/*
 * The group as it agrees on its voters: the utility log is a number of entries
 * and a mask. Replicas learn of an entry some time after it. What was ordered
 * of one is done at once, later, or never, whatever it answers.
 */
#include "tests/sim/supervision/world.h"

#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "kvs/control/member_error.h"

static uint64_t bit(qn_node_t i)
{
    return UINT64_C(1) << i;
}

static void say_to(struct world *w, qn_node_t i, const struct qn_control_msg *m)
{
    struct process *p = &w->process[i];
    const struct letter l = {.m = *m};
    if (p->linked) {
        channel_push(w, &p->out, &l);
    }
}

void members_begin(struct world *w)
{
    w->voters = w->opts.taken;
    w->entries = 1;
}

/* Voters that run and are complete, without `but`. */
static uint32_t able(const struct world *w, qn_node_t but)
{
    uint32_t n = 0;
    for (qn_node_t i = 0; i < w->opts.replicas; i++) {
        const struct process *p = &w->process[i];
        n += i != but && (w->voters & bit(i)) != 0 && runs(w, p) && p->complete;
    }
    return n;
}

/* What the group would do with an order now: QN_OK, or why not. */
static int judge(const struct world *w, const struct order *o)
{
    const struct process *p = &w->process[o->c.node];
    const bool votes = (w->voters & bit(o->c.node)) != 0;
    const uint64_t rest = w->voters & ~bit(o->c.node);
    if (votes == o->c.votes) {
        return QN_OK;
    }
    if (p->incarnation != o->c.incarnation) {
        return QN_ESTALE;
    }
    if (2 * able(w, QN_NODES_MAX) <=
        (uint32_t)__builtin_popcountll(w->voters)) {
        return QN_ENOQUORUM;
    }
    if (o->c.votes && w->removed[o->c.node] == o->c.incarnation) {
        return QN_EBUSY; /* for ever */
    }
    if (o->c.votes) {
        return p->alive && p->complete ? QN_OK : QN_EAGAIN;
    }
    return rest == 0 ? QN_EINVAL
           : 2 * able(w, o->c.node) <= (uint32_t)__builtin_popcountll(rest)
               ? QN_ENOQUORUM
               : QN_OK;
}

static void entry(struct world *w, const struct order *o)
{
    const uint64_t before = w->voters;
    w->voters =
        o->c.votes ? w->voters | bit(o->c.node) : w->voters & ~bit(o->c.node);
    if (w->voters == before) {
        return;
    }
    world_trace(w, "voters are %llx", (unsigned long long)w->voters);
    w->entries++;
    if (!o->c.votes) {
        w->removed[o->c.node] = o->c.incarnation;
    }
    w->cover->entries++;
    for (qn_node_t i = 0; i < w->opts.replicas; i++) {
        w->process[i].learns_at = world_ms(w, 0, 100);
    }
}

static void say_changed(struct world *w, qn_node_t by, const struct order *o,
                        enum qn_voter_outcome outcome, int err)
{
    struct process *p = &w->process[by];
    if (outcome == QN_VOTER_OK) { /* it knows the entry */
        p->knows_voters = w->voters;
        p->knows_entries = w->entries;
    }
    say_to(w, by,
           &(struct qn_control_msg){
               .kind = QN_CTL_VOTER_CHANGED,
               .u.voter_changed = {.outcome = outcome,
                                   .number = o->c.number,
                                   .entries = p->knows_entries,
                                   .voters = p->knows_voters,
                                   .error = err}});
}

/* It is carried out, or refused. The one that was asked may not hear of it. */
static void carry_out(struct world *w, const struct order *o)
{
    static const int passing[] = {QN_EAGAIN, QN_ENOTLEADER, QN_EBUSY};
    const struct process *p = &w->process[o->by];
    const bool there = runs(w, p) && p->incarnation == o->by_incarnation;
    const bool odd = w->faulty && world_chance(w, 20);
    const int err = odd ? passing[world_random(w, 3)] : judge(w, o);
    if (err == QN_OK) {
        entry(w, o);
    }
    if (there && !(w->faulty && world_chance(w, 10))) {
        const bool unsure = w->faulty && world_chance(w, 15);
        say_changed(w, o->by, o,
                    unsure         ? QN_VOTER_UNKNOWN
                    : err == QN_OK ? QN_VOTER_OK
                                   : QN_VOTER_REFUSED,
                    unsure ? QN_ETIMEDOUT : err);
    }
}

void members_order(struct world *w, qn_node_t by,
                   const struct qn_ctl_voter_change *c)
{
    if (w->orders == ORDERS_MAX) {
        return; /* it is never answered */
    }
    w->order[w->orders++] =
        (struct order){.c = *c,
                       .by = by,
                       .by_incarnation = w->process[by].incarnation,
                       .supervisor = w->supervisors,
                       .at = world_chance(w, 20) ? world_ms(w, 500, 4000)
                                                 : world_ms(w, 0, 100)};
}

void members_turn(struct world *w)
{
    for (uint32_t k = 0; k < w->orders; k++) {
        if (w->order[k].at <= w->now) {
            const struct order o = w->order[k];
            w->order[k--] = w->order[--w->orders];
            carry_out(w, &o);
        }
    }
    for (qn_node_t i = 0; i < w->opts.replicas; i++) {
        struct process *p = &w->process[i];
        if (runs(w, p) && p->complete && p->learns_at <= w->now) {
            p->learns_at = QN_TIME_NEVER;
            p->knows_voters = w->voters;
            p->knows_entries = w->entries;
            if (!p->to_tell) {
                members_say(w, i);
            }
        }
    }
}

void members_say(struct world *w, qn_node_t i)
{
    const struct process *p = &w->process[i];
    if (p->knows_entries != 0) {
        say_to(
            w, i,
            &(struct qn_control_msg){.kind = QN_CTL_VOTERS,
                                     .u.voters = {.entries = p->knows_entries,
                                                  .voters = p->knows_voters}});
    }
}

qn_time_t members_deadline(const struct world *w)
{
    qn_time_t at = QN_TIME_NEVER;
    for (uint32_t k = 0; k < w->orders; k++) {
        at = QN_MIN(at, w->order[k].at);
    }
    for (qn_node_t i = 0; i < w->opts.replicas; i++) {
        const struct process *p = &w->process[i];
        if (runs(w, p) && p->complete) {
            at = QN_MIN(at, p->learns_at);
        }
    }
    return at;
}

/* It is absent for `i`, as before. */
static void drop(struct world *w, qn_node_t i, qn_node_t n)
{
    struct heard *h = &w->process[i].heard[n];
    h->up = h->down;
    w->cover->unmet++;
}

static void say_met(struct world *w, qn_node_t i, qn_node_t n,
                    uint64_t incarnation, int err)
{
    say_to(w, i,
           &(struct qn_control_msg){.kind = QN_CTL_PEER_MET,
                                    .u.peer_met = {.node = n,
                                                   .incarnation = incarnation,
                                                   .error = err}});
}

void members_meet(struct world *w, qn_node_t i, const struct qn_control_msg *m)
{
    struct process *p = &w->process[i];
    const qn_node_t n = m->u.peer_up.node;
    const struct process *o = &w->process[n];
    const bool present = o->alive && o->incarnation == m->u.peer_up.incarnation;
    const bool scarce = p->introduced && present && w->faulty && w->f.members &&
                        world_chance(w, 15);
    const bool seated = !present || (o->lanes & bit(i)) != 0;
    p->lanes |= scarce ? 0 : bit(n);
    if (p->introduced && (scarce || !seated)) {
        drop(w, i, n);
    }
    say_met(w, i, n, m->u.peer_up.incarnation,
            scarce                     ? QN_ENOMEM
            : p->introduced && !seated ? QN_EAGAIN
                                       : QN_OK);
}

/* Only a newcomer is waited for. */
static bool is_excused(const struct world *w, qn_node_t i, qn_node_t n)
{
    const struct qn_member_change *c = &w->sup.machine.change;
    return c->step == QN_MEMBER_NONE || c->node != i ||
           w->process[n].stopped_until != 0;
}

void members_start(struct world *w, qn_node_t i)
{
    const struct process *p = &w->process[i];
    for (qn_node_t n = 0; n < w->opts.replicas; n++) {
        const struct process *o = &w->process[n];
        const struct heard *h = &p->heard[n];
        if (n == i || !o->alive || h->up != o->incarnation ||
            h->up <= h->down || (o->lanes & bit(i)) != 0) {
            continue;
        }
        if (!is_excused(w, i, n)) {
            world_fail(w, "replica %u starts, and %u has no lanes for it", i,
                       n);
        }
        drop(w, i, n);
        say_met(w, i, n, o->incarnation, QN_EAGAIN);
    }
}

void members_ask(struct world *w, qn_node_t i)
{
    const struct process *p = &w->process[i];
    struct qn_control_msg m = {.kind = QN_CTL_MEMBER_LIST,
                               .u.member_list.client = CLIENT_LISTS};
    const uint64_t what = world_random(w, 10);
    if (what < 5) {
        m = (struct qn_control_msg){.kind = QN_CTL_MEMBER_ADD,
                                    .u.member_add.client = CLIENT_ADDS};
    } else if (what < 9) {
        m = (struct qn_control_msg){
            .kind = QN_CTL_MEMBER_REMOVE,
            .u.member_remove = {
                .node = (qn_node_t)world_random(w, w->opts.replicas),
                .client = CLIENT_REMOVES}};
    }
    if (runs(w, p) && p->linked && p->complete && !p->to_tell) {
        say_to(w, i, &m);
    }
}

/* What is said is true, at the time when it is said. */
void members_answered(struct world *w, qn_node_t to,
                      const struct qn_ctl_member_answer *a)
{
    const bool votes = (w->voters & bit(a->node)) != 0;
    const bool lives = w->process[a->node].alive;
    const bool done = a->why == QN_MEMBER_ERROR_NONE;
    if (a->client == CLIENT_LISTS) {
        return;
    }
    w->cover->members_added += done && a->client == CLIENT_ADDS;
    w->cover->members_removed += done && a->client == CLIENT_REMOVES;
    w->cover->members_unknown += a->why == QN_MEMBER_ERROR_UNKNOWN;
    w->cover->members_refused += !done && a->why != QN_MEMBER_ERROR_UNKNOWN;
    if (done && a->client == CLIENT_ADDS && !votes) {
        world_fail(w, "replica %u is said to be a member, and has no vote",
                   a->node);
    }
    if (done && a->client == CLIENT_REMOVES &&
        (votes || (lives && to != a->node))) {
        world_fail(w, "replica %u is said to be removed, and %s", a->node,
                   votes ? "votes" : "lives");
    }
    for (uint32_t k = 0; k < w->orders; k++) {
        const struct order *o = &w->order[k];
        if (o->supervisor == w->supervisors && o->c.number > w->former &&
            o->c.node == a->node && o->c.votes == (a->client == CLIENT_ADDS) &&
            (a->why == QN_MEMBER_ERROR_REFUSED ||
             a->why == QN_MEMBER_ERROR_QUORUM)) {
            world_fail(w,
                       "replica %u: a change is said to be refused, and may "
                       "still be done",
                       a->node);
        }
    }
    if (a->client == CLIENT_ADDS && lives && !votes &&
        (a->why == QN_MEMBER_ERROR_UNMET || a->why == QN_MEMBER_ERROR_SILENT ||
         a->why == QN_MEMBER_ERROR_ENDED || a->why == QN_MEMBER_ERROR_SPAWN)) {
        world_fail(w, "replica %u is said not to be added, and lives", a->node);
    }
}
