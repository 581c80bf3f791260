/*
 * A supervisor: kvs/supervisor without processes. Control channels have little
 * room in some seeds; what does not fit waits, as in control_backlog.c. It may
 * be killed between any two actions.
 */
#include "tests/sim/supervision/world.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"

/* ---- control channels ---------------------------------------------------- */

static void flush(struct world *w, qn_node_t i)
{
    struct process *p = &w->process[i];
    struct channel *wait = &w->sup.backlog[i];
    while (wait->count > 0 && p->in.count < w->room) {
        const struct letter l = channel_pop(wait);
        channel_push(w, &p->in, &l);
    }
}

static void do_send(struct world *w, const struct qn_supervision_action *a)
{
    if (a->message.kind == QN_CTL_MEMBER_ANSWER) {
        members_answered(w, a->node, &a->message.u.member_answer);
    }
    struct process *p = &w->process[a->node];
    const struct letter l = {.m = a->message, .outbox = a->outbox};
    bool held = a->outbox.incarnation == 0;
    for (uint32_t i = 0; i < w->sup.helds; i++) {
        held = held || (w->sup.held[i].node == a->outbox.node &&
                        w->sup.held[i].incarnation == a->outbox.incarnation);
    }
    if (!held) {
        world_fail(w, "an outbox is sent that is not held: %u, %llu",
                   a->outbox.node, (unsigned long long)a->outbox.incarnation);
    }
    if (!p->alive || !p->linked) {
        return; /* its end is about to be reported */
    }
    channel_push(w, &w->sup.backlog[a->node], &l);
    flush(w, a->node);
    w->cover->backlogged += w->sup.backlog[a->node].count > 0;
}

static bool is_end_of(const struct qn_control_msg *m, qn_node_t node,
                      uint64_t incarnation)
{
    return m->kind == QN_CTL_PEER_DOWN && m->u.peer_down.node == node &&
           m->u.peer_down.incarnation == incarnation;
}

static void do_skip(struct world *w, const struct qn_supervision_action *a)
{
    struct channel *c = &w->sup.backlog[a->node];
    for (uint32_t i = 0; i < c->count; i++) {
        const struct qn_control_msg *m = &c->item[i].m;
        uint32_t end = i + 1;
        if (m->kind != QN_CTL_PEER_UP || m->u.peer_up.node != a->outbox.node ||
            m->u.peer_up.incarnation == a->outbox.incarnation) {
            continue;
        }
        while (end < c->count && !is_end_of(&c->item[end].m, a->outbox.node,
                                            m->u.peer_up.incarnation)) {
            end++;
        }
        if (end < c->count) {
            w->cover->skipped++;
            c->count--;
            memmove(&c->item[end], &c->item[end + 1],
                    (c->count - end) * sizeof c->item[0]);
            c->count--;
            memmove(&c->item[i], &c->item[i + 1],
                    (c->count - i) * sizeof c->item[0]);
            i--;
        }
    }
}

/* ---- actions ------------------------------------------------------------- */

static void do_spawn(struct world *w, const struct qn_supervision_action *a)
{
    struct qn_supervision_event e = {
        .kind = QN_ON_SPAWN_FAILED, .node = a->node, .number = QN_EAGAIN};
    /* A replica may overwrite the count. Beside the supervisor that gave a
     * number, only the count knows one whose process never said HELLO. */
    if (w->faulty && !w->f.crash && !w->f.upgrade && world_chance(w, 30)) {
        w->incarnations = 0;
    }
    w->incarnations++;
    e.incarnation = QN_MAX(w->incarnations, a->incarnation);
    if (w->faulty && w->f.spawn && w->sup.machine.served &&
        world_chance(w, 30)) {
        w->cover->spawn_failures++;
    } else {
        check_spawn(w, a->node, e.incarnation);
        process_start(w, a->node, e.incarnation);
        w->cover->spawns++;
        e.kind = QN_ON_SPAWNED;
        e.pid = w->process[a->node].pid;
    }
    w->sup.later[w->sup.laters++] = e;
}

/* The kernel takes a moment, also for a stopped process. */
static void do_kill(struct world *w, qn_node_t i)
{
    struct process *p = &w->process[i];
    if (!p->alive) {
        return;
    }
    p->killed = true;
    p->dies_at = QN_MIN(p->dies_at, world_ms(w, 0, 20));
}

static void do_keep(struct world *w, const struct qn_supervision_action *a)
{
    struct supervisor *s = &w->sup;
    if (s->letter == NULL || s->letter->outbox.node != a->outbox.node ||
        s->letter->outbox.incarnation != a->outbox.incarnation) {
        world_fail(w, "an outbox is kept under another name than its own");
    }
    if (s->helds == QN_MIN(2 * w->opts.replicas + 2, 2 * WORLD_NODES + 2)) {
        world_fail(w, "more outboxes are held than there can be");
    }
    s->held[s->helds++] = a->outbox;
}

static void do_drop(struct world *w, const struct qn_supervision_action *a)
{
    struct supervisor *s = &w->sup;
    for (uint32_t i = 0; i < s->helds; i++) {
        if (s->held[i].node == a->outbox.node &&
            s->held[i].incarnation == a->outbox.incarnation) {
            check_drop(w, a->outbox);
            s->held[i] = s->held[--s->helds];
            return;
        }
    }
    world_fail(w, "an outbox is dropped that is not held");
}

static void do_text(struct world *w, const char *text)
{
    unsigned node;
    const char *at = strstr(text, "the new replica ");
    w->cover->upgrades += strncmp(text, "done: ", 6) == 0;
    if (strncmp(text, "stopped: ", 9) != 0) {
        return;
    }
    w->cover->upgrades_stopped++;
    if ((at != NULL && sscanf(at, "the new replica %u", &node) == 1) ||
        (strstr(text, "cannot be started") != NULL &&
         sscanf(text, "stopped: replica %u", &node) == 1)) {
        w->stays |= UINT64_C(1) << node;
    }
}

static void do_finish(struct world *w, int status)
{
    struct supervisor *s = &w->sup;
    char text[512];
    s->alive = false;
    if (s->machine.handed_over) {
        w->cover->handovers++;
        for (qn_node_t i = 0; i < w->opts.replicas; i++) {
            w->process[i].linked = false;
        }
        w->build++;
        w->start_upgrade = true;
        w->start_at = w->now;
        return;
    }
    w->announced_lost +=
        qn_supervision_last_words(&s->machine, text, sizeof text);
    check_finish(w, status);
    for (qn_node_t i = 0; i < w->opts.replicas; i++) {
        process_end(w, i, SIGKILL);
    }
    w->over = true;
    w->status = status;
}

static void perform(struct world *w, const struct qn_supervision_action *a)
{
    struct supervisor *s = &w->sup;
    world_note(w, (uint64_t)a->kind << 32 | a->node << 16 |
                      (uint64_t)a->message.kind);
    if (a->kind == QN_DO_LOG || a->kind == QN_DO_PROGRESS) {
        world_trace(w, "    says: %s", s->actions.text[a->text]);
    } else if (a->kind == QN_DO_SEND) {
        world_trace(w, "    tells %u %s of %u, %llu", a->node,
                    qn_control_name(a->message.kind), a->outbox.node,
                    (unsigned long long)a->outbox.incarnation);
    } else {
        world_trace(w, "    action %u of %u (%u, %llu)", (unsigned)a->kind,
                    a->node, a->outbox.node,
                    (unsigned long long)a->outbox.incarnation);
    }
    switch (a->kind) {
    case QN_DO_SPAWN:
        do_spawn(w, a);
        break;
    case QN_DO_KILL:
        do_kill(w, a->node);
        break;
    case QN_DO_SEND:
        do_send(w, a);
        break;
    case QN_DO_SKIP_OBSOLETE:
        do_skip(w, a);
        break;
    case QN_DO_CLOSE_CONTROL:
        s->backlog[a->node].count = 0;
        break;
    case QN_DO_KEEP_OUTBOX:
        do_keep(w, a);
        break;
    case QN_DO_DROP_OUTBOX:
        do_drop(w, a);
        break;
    case QN_DO_PROGRESS:
        do_text(w, s->actions.text[a->text]);
        break;
    case QN_DO_ANSWER_SUCCESSOR:
        s->successor_step = 2;
        break;
    case QN_DO_REFUSE_SUCCESSOR:
    case QN_DO_HANG_UP_SUCCESSOR:
        s->successor_step = 0;
        break;
    case QN_DO_FINISH:
        do_finish(w, a->number);
        break;
    default: /* log, listeners, the line of readiness */
        break;
    }
}

void shell_crash(struct world *w)
{
    struct supervisor *s = &w->sup;
    s->alive = false;
    w->cover->crashes++;
    for (qn_node_t i = 0; i < w->opts.replicas; i++) {
        w->process[i].linked = false;
        w->process[i].to_tell = false;
        w->process[i].out.count = 0;
        s->backlog[i].count = 0;
    }
    w->start_at = world_ms(w, 1, 500);
    w->start_upgrade = w->f.upgrade && world_chance(w, 30);
    w->build += w->start_upgrade;
}

/* ---- events -------------------------------------------------------------- */

static struct qn_supervision_facts observe(const struct world *w)
{
    struct qn_supervision_facts f = {.group_known =
                                         !w->sup.adopting || w->sup.configured,
                                     .owned = w->owner.incarnation != 0,
                                     .owner = w->owner.node,
                                     .owner_incarnation = w->owner.incarnation};
    for (qn_node_t i = 0; i < w->opts.replicas; i++) {
        const struct process *p = &w->process[i];
        f.stopped |= p->alive && !runs(w, p) ? UINT64_C(1) << i : 0;
    }
    return f;
}

static void step(struct world *w, struct qn_supervision_event e)
{
    struct supervisor *s = &w->sup;
    e.facts = observe(w);
    world_note(w, (uint64_t)e.kind << 40 | e.node);
    world_trace(w, "event %u of %u: %s, %d", (unsigned)e.kind, e.node,
                e.message != NULL ? qn_control_name(e.message->kind) : "-",
                e.number);
    if (s->machine.change.step == QN_MEMBER_NONE) {
        w->former = s->machine.change.number;
    }
    qn_supervision_step(&s->machine, &e, w->now, &s->actions);
    w->cover->steps++;
    for (uint32_t i = 0; s->alive && i < s->actions.count; i++) {
        perform(w, &s->actions.action[i]);
        if (s->alive && s->crash_after > 0 && --s->crash_after == 0) {
            shell_crash(w);
        }
    }
    if (s->alive) {
        check_step(w);
    }
}

void shell_event(struct world *w, struct qn_supervision_event e)
{
    struct supervisor *s = &w->sup;
    if (s->alive) {
        step(w, e);
    }
    for (uint32_t i = 0; s->alive && i < s->laters; i++) {
        step(w, s->later[i]);
    }
    s->laters = 0;
}

void shell_node_event(struct world *w, enum qn_supervision_on kind, qn_node_t i)
{
    shell_event(w, (struct qn_supervision_event){.kind = kind, .node = i});
}

/* Before the group is ours: it has said all, and is heard again then. */
static bool is_enough(const struct world *w, qn_node_t i)
{
    return w->sup.adopting && (w->sup.machine.orphans.awaited >> i & 1) == 0;
}

void shell_hear(struct world *w, qn_node_t i)
{
    struct process *p = &w->process[i];
    while (w->sup.alive && p->linked && p->out.count > 0 && !is_enough(w, i)) {
        const struct letter l = channel_pop(&p->out);
        w->sup.letter = &l;
        w->unsent +=
            l.m.kind == QN_CTL_DRAINED ? l.m.u.drained.unsent_replies : 0;
        w->sup.configured = w->sup.configured || w->sup.adopting;
        shell_event(w, (struct qn_supervision_event){
                           .kind = QN_ON_MESSAGE,
                           .node = i,
                           .message = &l.m,
                           .with_outbox = l.outbox.incarnation != 0});
        w->sup.letter = NULL;
    }
}

static bool to_report(const struct world *w, qn_node_t i)
{
    const struct process *p = &w->process[i];
    return !p->alive && !p->reported && p->incarnation != 0 &&
           w->sup.machine.replica[i].state != QN_REPLICA_ENDED &&
           w->sup.machine.replica[i].incarnation == p->incarnation;
}

static bool report_ends(struct world *w)
{
    bool any = false;
    for (qn_node_t i = 0; w->sup.alive && i < w->opts.replicas; i++) {
        struct process *p = &w->process[i];
        if (to_report(w, i)) {
            const bool adopted = w->sup.machine.replica[i].adopted;
            shell_hear(w, i);
            p->reported = any = true;
            w->cover->exits++;
            shell_event(w, (struct qn_supervision_event){
                               .kind = QN_ON_EXIT,
                               .node = i,
                               .number = adopted ? 0 : p->status,
                               .shut_down = adopted &&
                                            w->left_mark[i] == p->incarnation});
        }
    }
    return any;
}

bool shell_has_work(const struct world *w)
{
    const struct supervisor *s = &w->sup;
    bool work = s->signals > 0 || s->successor_step > 0 ||
                s->actions.deadline <= w->now ||
                (s->machine.orphans.unreached != 0 && w->now >= s->ask_at);
    for (qn_node_t i = 0; i < w->opts.replicas; i++) {
        const struct process *p = &w->process[i];
        work = work || (p->linked && p->out.count > 0) || to_report(w, i) ||
               (s->backlog[i].count > 0 && p->in.count < w->room);
    }
    return work;
}

void shell_turn(struct world *w)
{
    struct supervisor *s = &w->sup;
    for (qn_node_t i = 0; i < w->opts.replicas; i++) {
        shell_hear(w, i);
    }
    bool ended = report_ends(w);
    while (s->alive && s->signals > 0) {
        s->signals--;
        shell_event(w, (struct qn_supervision_event){.kind = QN_ON_SIGNAL,
                                                     .number = SIGTERM});
    }
    if (s->alive && s->successor_step > 0) {
        const enum qn_supervision_on kind = s->successor_step == 1
                                                ? QN_ON_SUCCESSOR_ASKS
                                                : QN_ON_SUCCESSOR_TAKES;
        s->successor_step = 0;
        shell_node_event(w, kind, 0);
    }
    for (qn_node_t i = 0; ended && i < w->opts.replicas; i++) {
        shell_hear(w, i);
    }
    for (qn_node_t i = 0; s->alive && i < w->opts.replicas; i++) {
        flush(w, i);
    }
    late_turn(w);
    shell_node_event(w, QN_ON_TIMER, 0);
}
