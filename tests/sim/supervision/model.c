/*
 * A replica's process, as far as its supervisor can see it.
 *
 *     started --HELLO--> waits for START --loads--> complete (READY)
 *
 * It loads from a complete replica that runs, or from the ring. It notices the
 * end of its supervisor; one that was not introduced yet ends with it. When an
 * adopter has connected it tells all that it knows, in order. It looks at
 * nothing while it is stopped.
 */
#include "tests/sim/supervision/world.h"

#include <signal.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "kvs/control/recovery_error.h"

void process_start(struct world *w, qn_node_t i, uint64_t incarnation)
{
    struct process *p = &w->process[i];
    const bool weak = w->faulty && w->f.weak && world_chance(w, 25);
    memset(p, 0, sizeof *p);
    p->alive = true;
    p->incarnation = incarnation;
    p->pid = (pid_t)(1000 + incarnation);
    p->build = w->sup.build;
    p->linked = true;
    p->hello_at = world_ms(w, 0, 20);
    p->complete_at = QN_TIME_NEVER;
    p->lanes = qn_supervision_taken(&w->sup.machine);
    p->learns_at = QN_TIME_NEVER;
    p->drained_at = p->answer_at = p->recovered_at = QN_TIME_NEVER;
    p->dies_at = weak ? world_ms(w, 0, 200) : QN_TIME_NEVER;
    p->stubborn = w->f.stubborn && world_chance(w, 30);
}

void process_end(struct world *w, qn_node_t i, int status)
{
    struct process *p = &w->process[i];
    if (!p->alive) {
        return;
    }
    world_trace(w, "replica %u (%llu) ends with %d", i,
                (unsigned long long)p->incarnation, status);
    p->alive = false;
    p->status = status;
    p->reported = false;
    w->undrained = w->undrained || (w->drained && p->complete && status != 0);
    /* One that is known to vote only later is started then. */
    if (p->asked_to_leave && status == 0 &&
        (w->sup.machine.voters >> i & 1) != 0) {
        w->left_mark[i] = p->incarnation;
    }
    world_note(w, p->incarnation << 8 | (uint64_t)status);
}

static void say(struct world *w, qn_node_t i, struct qn_control_msg m)
{
    struct process *p = &w->process[i];
    struct letter l = {.m = m};
    if (m.kind == QN_CTL_HELLO) {
        l.outbox = (struct qn_outbox_name){i, p->incarnation};
    } else if (m.kind == QN_CTL_PEER_UP) {
        l.outbox =
            (struct qn_outbox_name){m.u.peer_up.node, m.u.peer_up.incarnation};
    }
    if (p->linked) {
        channel_push(w, &p->out, &l);
    }
}

static void say_hello(struct world *w, qn_node_t i)
{
    struct process *p = &w->process[i];
    p->said_hello = true;
    say(w, i,
        (struct qn_control_msg){
            .kind = QN_CTL_HELLO,
            .u.hello = {.node = i, .incarnation = p->incarnation}});
}

/* To an adopter: the living and the dead that it knows, itself, and START. A
 * dead owner of the register is known with its memory. */
static void tell_all(struct world *w, qn_node_t i)
{
    struct process *p = &w->process[i];
    p->to_tell = false;
    for (qn_node_t n = 0; n < w->opts.replicas; n++) {
        const struct heard h = p->heard[n];
        const bool owns =
            h.up != 0 && w->owner.node == n && w->owner.incarnation == h.up;
        if (n != i && h.up != 0 && (h.up > h.down || owns)) {
            say(w, i,
                (struct qn_control_msg){
                    .kind = QN_CTL_PEER_UP,
                    .u.peer_up = {.node = n, .incarnation = h.up}});
        }
        if (n != i && h.down != 0 && h.down >= h.up) {
            say(w, i,
                (struct qn_control_msg){
                    .kind = QN_CTL_PEER_DOWN,
                    .u.peer_down = {.node = n, .incarnation = h.down}});
        }
    }
    say_hello(w, i);
    if (p->complete) {
        say(w, i, (struct qn_control_msg){.kind = QN_CTL_READY});
    }
    members_say(w, i);
    say(w, i, (struct qn_control_msg){.kind = QN_CTL_START});
}

static void answer_roles(struct world *w, qn_node_t i, uint32_t token)
{
    uint64_t in_sync = 0;
    for (qn_node_t n = 0; n < w->opts.replicas; n++) {
        in_sync |= w->process[n].complete ? UINT64_C(1) << n : 0;
    }
    say(w, i,
        (struct qn_control_msg){.kind = QN_CTL_ROLES,
                                .u.roles = {.token = token,
                                            .epoch = w->epoch,
                                            .leader = w->leader,
                                            .acceptor = w->leader,
                                            .active = i == w->leader,
                                            .in_sync = in_sync}});
}

static void begin_drain(struct world *w, qn_node_t i)
{
    struct process *p = &w->process[i];
    if (p->draining) {
        return;
    }
    p->draining = true;
    say(w, i,
        (struct qn_control_msg){.kind = QN_CTL_DRAINING,
                                .u.draining.timeout_s =
                                    w->opts.shutdown_timeout_s});
    p->drained_at = p->stubborn ? QN_TIME_NEVER : world_ms(w, 0, 500);
}

static void on_letter(struct world *w, qn_node_t i, const struct letter *l)
{
    struct process *p = &w->process[i];
    const struct qn_control_msg *m = &l->m;
    switch (m->kind) {
    case QN_CTL_PEER_UP:
        check_heard(w, i, m);
        members_meet(w, i, m);
        break;
    case QN_CTL_PEER_DOWN:
        check_heard(w, i, m);
        break;
    case QN_CTL_VOTER_CHANGE:
        members_order(w, i, &m->u.voter_change);
        break;
    case QN_CTL_START:
        if (!p->introduced) {
            members_start(w, i);
            p->introduced = true;
            p->complete_at = world_ms(w, 1, 150);
        }
        break;
    case QN_CTL_DRAIN:
        begin_drain(w, i);
        break;
    case QN_CTL_STOP:
        process_end(w, i, 0);
        break;
    case QN_CTL_ROLES_QUERY:
        answer_roles(w, i, m->u.roles_query.token);
        break;
    case QN_CTL_LEAD:
        if (w->leader != m->u.lead.node && !world_chance(w, 5)) {
            w->leader = m->u.lead.node;
            w->epoch++;
        }
        break;
    case QN_CTL_RECOVER_QUERY:
        p->question = m->u.recover_query.question;
        p->answer_at = world_chance(w, 20) ? QN_TIME_NEVER : world_ms(w, 0, 50);
        break;
    case QN_CTL_RECOVER_ORDER:
        check_order_to_recover(w, i);
        p->recovered_at =
            world_chance(w, 10) ? QN_TIME_NEVER : world_ms(w, 0, 300);
        break;
    case QN_CTL_RECOVER_REFUSED:
        w->cover->recoveries_refused++;
        break;
    default: /* READY */
        break;
    }
}

/* A complete replica gives a snapshot, or the ring reaches back. */
static void load(struct world *w, qn_node_t i)
{
    struct process *p = &w->process[i];
    const bool donor = complete_count(w, true) > 0;
    if (!donor && !w->ring && w->sup.machine.served) {
        p->complete_at = world_ms(w, 5, 20);
        return;
    }
    w->cover->rebuilt += !donor && w->sup.machine.served;
    p->complete = true;
    p->learns_at = w->now; /* what it has loaded says so */
    p->complete_at = QN_TIME_NEVER;
    say(w, i, (struct qn_control_msg){.kind = QN_CTL_READY});
}

static void drained(struct world *w, qn_node_t i)
{
    struct process *p = &w->process[i];
    const uint64_t unsent = world_chance(w, 10) ? 1 + world_random(w, 9) : 0;
    p->drained_at = QN_TIME_NEVER;
    if (!p->linked) { /* without a supervisor it exits by itself */
        process_end(w, i, 0);
        return;
    }
    say(w, i,
        (struct qn_control_msg){.kind = QN_CTL_DRAINED,
                                .u.drained.unsent_replies = unsent});
}

static void answer_question(struct world *w, qn_node_t i)
{
    struct process *p = &w->process[i];
    p->answer_at = QN_TIME_NEVER;
    say(w, i,
        (struct qn_control_msg){
            .kind = QN_CTL_RECOVERABLE,
            .u.recoverable = {.question = p->question,
                              .refusal = world_chance(w, 30)
                                             ? QN_RECOVERY_ERROR_LESS
                                             : QN_RECOVERY_ERROR_NONE}});
}

static bool due(const struct world *w, qn_time_t at)
{
    return at <= w->now;
}

void process_turn(struct world *w, qn_node_t i)
{
    struct process *p = &w->process[i];
    if (p->alive && due(w, p->dies_at)) {
        process_end(w, i, p->killed || world_chance(w, 50) ? SIGKILL : 1 << 8);
    }
    while (runs(w, p) && p->in.count > 0) {
        const struct letter l = channel_pop(&p->in);
        on_letter(w, i, &l);
    }
    if (!runs(w, p)) {
        return;
    }
    if (!p->linked && !p->introduced) { /* it would not be introduced */
        process_end(w, i, SIGKILL);
        return;
    }
    if (p->to_tell) {
        tell_all(w, i);
    }
    if (!p->said_hello && due(w, p->hello_at)) {
        say_hello(w, i);
    }
    if (due(w, p->complete_at)) {
        load(w, i);
    }
    if (due(w, p->answer_at)) {
        answer_question(w, i);
    }
    if (due(w, p->recovered_at)) {
        p->recovered_at = QN_TIME_NEVER;
        w->cover->recoveries++;
        say(w, i, (struct qn_control_msg){.kind = QN_CTL_RECOVERED});
    }
    if (due(w, p->drained_at)) {
        drained(w, i);
    }
}

qn_time_t process_deadline(const struct world *w, qn_node_t i)
{
    const struct process *p = &w->process[i];
    if (!p->alive) {
        return QN_TIME_NEVER;
    }
    if (p->stopped_until > w->now) {
        return QN_MIN(p->stopped_until, p->dies_at);
    }
    if (p->in.count > 0 || p->to_tell || (!p->linked && !p->introduced)) {
        return w->now;
    }
    qn_time_t at = QN_MIN(p->dies_at, p->complete_at);
    at = QN_MIN(at, QN_MIN(p->answer_at, p->recovered_at));
    at = QN_MIN(at, p->drained_at);
    return p->said_hello ? at : QN_MIN(at, p->hello_at);
}

static qn_node_t any_complete(struct world *w)
{
    const qn_node_t from = (qn_node_t)world_random(w, w->opts.replicas);
    for (qn_node_t k = 0; k < w->opts.replicas; k++) {
        const qn_node_t i = (from + k) % w->opts.replicas;
        if (runs(w, &w->process[i]) && w->process[i].complete &&
            (w->voters >> i & 1) != 0) {
            return i;
        }
    }
    return QN_NODES_MAX;
}

void group_turn(struct world *w)
{
    const struct process *leader = &w->process[w->leader];
    if (w->now < w->owner_at) {
        return;
    }
    w->owner_at = world_ms(w, 5, 80);
    const qn_node_t next = any_complete(w);
    if (next == QN_NODES_MAX) {
        return;
    }
    if (!leader->alive || !leader->complete ||
        (w->voters >> w->leader & 1) == 0) {
        w->leader = next;
        w->epoch++;
    }
    const struct process *owner = &w->process[w->owner.node];
    const bool lives =
        owner->alive && owner->incarnation == w->owner.incarnation;
    if (!lives || world_chance(w, 10)) {
        w->owner = (struct qn_outbox_name){next, w->process[next].incarnation};
    }
}
