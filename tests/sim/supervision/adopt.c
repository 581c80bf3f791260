/*
 * How a new supervisor meets the group, as supervisor_adopt.c and
 * supervisor_unreached.c do it. A stopped replica's socket takes the
 * connection, and nothing is said on it until it resumes. A busy one takes
 * none.
 */
#include "tests/sim/supervision/world.h"

#include <string.h>

#include "core/base/bits.h"

#define ASK_AGAIN (100 * QN_MS)

static void connect_to(struct world *w, qn_node_t i)
{
    struct process *p = &w->process[i];
    if (!p->alive || p->busy || !p->introduced) {
        return;
    }
    p->linked = true;
    p->to_tell = true;
    p->out.count = 0;
    shell_event(w, (struct qn_supervision_event){
                       .kind = QN_ON_ORPHAN_MET, .node = i, .pid = p->pid});
}

void adopt_begin(struct world *w)
{
    struct supervisor *s = &w->sup;
    const struct qn_supervision_opts unknown = {.replicas = 1};
    memset(s, 0, sizeof *s);
    s->alive = s->adopting = true;
    s->build = w->build;
    s->successor = w->start_upgrade;
    s->actions.deadline = QN_TIME_NEVER;
    w->start_at = QN_TIME_NEVER;
    w->unsent = 0;
    w->stays = 0; /* the former one gave them up, this one does not */
    w->cover->adoptions++;
    w->supervisors++;
    qn_supervision_init(&s->machine, &unknown);
    for (qn_node_t i = 0; i < w->opts.replicas; i++) {
        connect_to(w, i);
    }
}

static void report_vacant(struct world *w, qn_node_t i)
{
    const struct process *p = &w->process[i];
    const uint64_t last = w->sup.machine.orphans.newest[i];
    const bool left =
        last != 0 && p->incarnation == last && w->left_mark[i] == last;
    w->cover->left += left;
    shell_event(w, (struct qn_supervision_event){
                       .kind = QN_ON_VACANT, .node = i, .shut_down = left});
}

static void account_for(struct world *w, qn_node_t i)
{
    const struct process *p = &w->process[i];
    if (!p->alive) {
        report_vacant(w, i);
        return;
    }
    w->cover->unreached++;
    shell_event(w, (struct qn_supervision_event){.kind = QN_ON_UNREACHED,
                                                 .node = i,
                                                 .incarnation = p->incarnation,
                                                 .pid = p->pid});
}

static void upgrade(struct world *w)
{
    struct qn_supervision_event e = {.kind = QN_ON_UPGRADE};
    for (qn_node_t i = 0; i < w->opts.replicas; i++) {
        const bool same = w->process[i].build == w->sup.build;
        e.same_program |= same ? UINT64_C(1) << i : 0;
    }
    shell_event(w, e);
}

static void take_over(struct world *w)
{
    struct supervisor *s = &w->sup;
    const uint64_t met = s->machine.orphans.connected;
    s->adopting = false;
    w->cover->late += s->machine.orphans.awaited != 0;
    shell_event(w, (struct qn_supervision_event){.kind = QN_ON_TAKE_OVER,
                                                 .opts = &w->opts});
    for (qn_node_t i = 0; s->alive && i < w->opts.replicas; i++) {
        if ((met >> i & 1) == 0) {
            account_for(w, i);
        }
    }
    for (qn_node_t i = 0; s->alive && i < w->opts.replicas; i++) {
        shell_node_event(w, QN_ON_CATCH_UP, i);
    }
    shell_node_event(w, QN_ON_TAKEN_OVER, 0);
    for (qn_node_t i = 0; s->alive && i < w->opts.replicas; i++) {
        shell_hear(w, i);
    }
    if (s->alive && s->successor) {
        upgrade(w);
    }
    shell_node_event(w, QN_ON_TIMER, 0);
}

static bool is_lost(const struct world *w)
{
    for (qn_node_t i = 0; i < w->opts.replicas; i++) {
        if (w->process[i].alive) {
            return false;
        }
    }
    return true;
}

void adopt_turn(struct world *w)
{
    struct supervisor *s = &w->sup;
    const struct qn_orphans *o = &s->machine.orphans;
    for (qn_node_t i = 0; s->alive && i < w->opts.replicas; i++) {
        struct process *p = &w->process[i];
        const bool met = (o->connected >> i & 1) != 0;
        shell_hear(w, i);
        if (met && !p->alive) {
            p->reported = true;
            shell_node_event(w, QN_ON_ORPHAN_ENDED, i);
        } else if (!met && o->connected == 0) {
            connect_to(w, i); /* none was met: asked again */
        }
    }
    if (!s->alive || qn_supervision_awaits_orphans(&s->machine, w->now)) {
        return;
    }
    if (o->connected != 0 && s->configured) {
        take_over(w);
    } else if (is_lost(w)) { /* a new group would begin, empty */
        s->alive = false;
        w->over = true;
        w->status = -1;
    }
}

void late_turn(struct world *w)
{
    struct supervisor *s = &w->sup;
    if (!s->alive || s->machine.orphans.unreached == 0 || w->now < s->ask_at) {
        return;
    }
    s->ask_at = w->now + ASK_AGAIN;
    for (qn_node_t i = 0; s->alive && i < w->opts.replicas; i++) {
        if ((s->machine.orphans.unreached >> i & 1) != 0) {
            connect_to(w, i);
        }
    }
}
